"""What makes labels doubtful: each check says what it found."""
