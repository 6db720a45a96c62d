"""What to label next, and whom to ask what: `items` to label, a random `sample` of them, and `questions` to workers."""
