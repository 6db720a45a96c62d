"""What makes labels doubtful: each check says what it found.

`answers`, `workers`, `labels`, `drift` and `graph_check` hold checks, which `register` lists. The rest is shared:
`subject` is what a check looks at, `judging` runs the checks of a fit, and `comparison` compares it with the vote.
"""
