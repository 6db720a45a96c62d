"""What makes labels doubtful: each check says what it found.

`short_checks` and `graph_check` hold checks, and `register` lists and runs them. `comparison` compares a fit with the
vote, and `ways` chooses between two ways to fuse.
"""
