"""Fused labels against known ones, and what a file of answers holds.

==================  ================================================================================
`labels.py`         `evaluate`, which compares whatever was fused, and the comparison of labels
`evaluation.py`     `Evaluation`: what it returns, with its scores as a table and as text
`spans.py`          the comparison of spans; beside it `tags.py`, `numbers.py` and `rankings.py`
`checking.py`       `check`: what a file holds, and what can be done with it, before anything is fitted
==================  ================================================================================
"""
