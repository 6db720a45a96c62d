"""Masks on the command line: what goes with them, and where fused ones may be written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InputError
from ..formats.register import list_suffixes, writable_formats

if TYPE_CHECKING:
    from .fuse import Options

# These say how to read a table.
_TABULAR = ("item", "worker", "label", "sequence", "position", "weight", "classes", "background", "items", "knn")


def check_masks(options: Options) -> bool:
    """Return whether fused masks are to be written to a folder, after a check that the options go with masks."""
    from ..formats.masks import are_masks

    if not are_masks(options.source):
        return False
    for name in _TABULAR:
        if getattr(options, name) is not None:
            raise click.UsageError(f"--{name} is for tables, and {options.source!r} holds masks. Leave it out.")
    output = options.output
    if output is None or output.lower().endswith(tuple(list_suffixes(writable_formats()))):
        return False
    if os.path.exists(output) and not os.path.isdir(output):
        raise InputError(f"{output!r} is a file.", "Give a folder for the fused masks.")
    if Path(os.path.realpath(output)).is_relative_to(os.path.realpath(options.source)):
        raise InputError(
            f"Writing to {output!r} would add to the masks in {options.source!r}.", "Write to another folder."
        )
    return True
