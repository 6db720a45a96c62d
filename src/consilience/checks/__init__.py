"""What makes labels doubtful: each check says what it found.

`short_checks`, `drift`, `graph_check` and `scale_check` hold checks. `register` lists and runs them. The rest is
shared: `subject` is what a check looks at, and `comparison` compares a fit with the vote.
"""
