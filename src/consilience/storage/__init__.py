"""Answers that are larger than memory: a folder of blocks on disk, built once and read as often as needed.

A *store* is made in two steps, of which neither holds more than a part of the answers in memory:

1. Rows of the files are split into *partitions* by a hash of the item (of the sequence). Workers and labels become
   codes on the way, since their vocabularies are small. Items need no vocabulary.
2. Each partition is read as an ordinary `Answers`, so that duplicates, weights and positions mean the same as in
   memory, and is cut into the same blocks.

Where a row goes depends on its item alone, and the number of partitions on the size of the input alone. So the blocks,
and every sum over them, are the same for any number of threads or machines.
"""
