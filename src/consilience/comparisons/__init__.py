"""Comparisons that `fuse` makes, each by fits of its own, before a result is made or a model chosen.

`vote` compares a fit with majority vote, `graph` a graph with a shuffled one, and `ways` two ways to fuse.
"""
