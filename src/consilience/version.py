"""The version of the package, which may matter to what it has written."""

__version__ = "0.1.0"
