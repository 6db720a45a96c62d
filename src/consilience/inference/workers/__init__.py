"""Worker models: how a worker answers. They turn answers into evidence, and posteriors into expected counts."""
