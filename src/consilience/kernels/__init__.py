"""Compiled loops: functions on arrays, no validation, no classes, no knowledge of models.

Arrays arrive with frozen dtypes, C order and read-only inputs, so each function is compiled once per number of
classes. Every kernel has a slow, obviously right twin in the tests.
"""
