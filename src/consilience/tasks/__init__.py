"""What users bring, turned into answers, and results turned back."""
