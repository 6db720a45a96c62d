"""What to label next, whom to ask, and when to stop."""
