"""What a fit found: labels and probabilities, intervals, tables, files."""
