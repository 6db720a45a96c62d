"""The command line: parsing, calling and printing. click and rich are imported here and nowhere else."""
