"""Fuzzers: seeded generators of input, and a harness that counts what becomes of it.

A surface is one way to reach the package: valid crowds of every kind (crowds), and kinds of answers that are more than
one label (kinds). `make fuzz` runs both, and so does `python -m fuzz --cases 1000 --seed 7` in the folder `tests`,
where `--help` tells more. Cases have numbers: `python -m fuzz kinds --seed 7 --only 42` runs one of them again.
"""
