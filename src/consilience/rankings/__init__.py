"""Comparisons of two candidates: tables of verdicts, the model, the ranking, its checks, and what to ask next."""
