"""Models: thin, named combinations of a structure, a worker model and a way of fitting."""
