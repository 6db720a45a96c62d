"""How each model is fitted: its settings, checked, and what they mean for the problem that the loop solves."""
