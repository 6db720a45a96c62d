"""Fuzzers: seeded generators of damaged input, and a harness that counts what becomes of it.

`python -m fuzz --cases 1000 --seed 7` in the folder `tests` runs all surfaces; see `python -m fuzz --help`.
"""
