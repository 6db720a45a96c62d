"""Compiled loops: functions on arrays, no validation, no classes, no knowledge of models.

Inputs are arrays of one dtype, in C order and read-only, so that each kernel is compiled once (for large data, once per
number of classes; see `compile`). Compiling takes longer than most fits. Therefore kernels are few and small, hold
nothing but loops over numbers, and are given the scratch memory they need by a plain function of the same module. Every
kernel has a slow, obviously right twin in the tests.
"""
