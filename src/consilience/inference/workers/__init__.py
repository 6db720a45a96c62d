"""Worker models: how a worker answers. They turn answers into evidence, and posteriors into expected counts.

`confusion`, `sequential` and `one_coin` are worker models, which `register` lists. `base` says what a worker model is,
and `rows` holds what all of them share.
"""
