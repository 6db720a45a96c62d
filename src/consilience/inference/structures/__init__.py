"""Structures: how labels hang together. They turn evidence into posteriors, and posteriors into their own counts."""
