"""How many? Shares, means and differences by a sample of known labels, and audits of the workers by it."""
