"""What makes labels doubtful: each check is a function from a `Result` to findings, and fits nothing.

`short_checks` holds the checks, and `register` lists and runs them.
"""
