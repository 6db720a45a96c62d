"""`python -m consilience` is the command line."""

from .cli.main import main

main()
