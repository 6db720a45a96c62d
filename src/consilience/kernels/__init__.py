"""Compiled loops: functions on arrays, no validation, no classes, no knowledge of models.

Arrays arrive with frozen dtypes, in C order, and read-only where they are inputs, so that each kernel is compiled once
(for large data, once per number of classes; see `compile`). Compiling takes longer than most fits: kernels are few and
small, hold nothing but loops over numbers, and are given the scratch memory they need, which a plain function beside
the kernel allocates. Every kernel has a slow, obviously right twin in the tests.
"""
