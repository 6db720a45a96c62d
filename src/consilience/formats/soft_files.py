"""Soft votes in files of their own: one array or table of probabilities for each worker, or one array of all of them.

A folder, or a pattern, is read so if each of its files is

- a .npy array of fractions with a row for each item and a column for each class, or
- a table with a column of items, none of workers or labels, and columns of numbers that sum to 1, one for each class.

The name of a file without its suffix is that of the worker. A single .npy array of fractions with three axes is indexed
by item, worker and class.
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import to_column
from ..answers.soft_votes import SoftRows, list_classes, stack, sum_to_one, with_votes
from ..answers.tables import Table, open_frame
from ..errors import InputError, listing, quietly
from ..kernels import Floats
from ..limits import NUMBER, require_memory
from .arrays import NPY, peek_array, read_arrays
from .files import list_inputs
from .reading import open_file, read_table

NAME = "soft-files"


def open_votes(path: str, format: str | None) -> Table | None:
    """Return the soft votes at a path as a table with one row for each; None for anything else.

    `format` is the form that the user gave, if any. If it is that of such files, anything else is an error.
    """
    if format not in (None, NAME):
        return None
    if os.path.isfile(path) and not path.lower().endswith(NPY):
        if format is None:
            return None
        raise InputError(
            f"{path!r} is one table, and {NAME!r} is for a folder with one file for each worker.",
            "Leave out the format.",
            keyword="format",
        )
    if os.path.isfile(path):
        return _open_stack(path, format)
    try:
        files = list_inputs(path)
    except InputError:
        return None  # whoever reads it says what is wrong
    arrays = [file for file in files if file.lower().endswith(NPY)]
    if arrays and len(arrays) == len(files):
        return _open_arrays(path, files, format)
    return _open_tables(path, files, format) if not arrays else None


def _open_stack(path: str, format: str | None) -> Table | None:
    """Return an array P[item, worker, class]."""
    shape, kind = peek_array(path)
    if len(shape) != 3 or kind != "f":
        if format is None:
            return None
        raise InputError(
            f"{path!r} must hold fractions, indexed by item, worker and class. It has the shape {shape}.",
            "Give such an array, or a folder with one file for each worker.",
        )
    (votes,) = read_arrays(path).values()
    return _lay_out(path, votes, np.arange(votes.shape[1]))


def _open_arrays(path: str, files: list[str], format: str | None) -> Table | None:
    """Return arrays with a row for each item and a column for each class, one of each worker."""
    looks = [peek_array(file) for file in files]
    odd = [file for file, (shape, kind) in zip(files, looks, strict=True) if len(shape) != 2 or kind != "f"]
    if odd:
        if format is None:
            return None
        raise InputError(
            f"Each file in {path!r} must hold fractions, with a row for each item and a column for each class. Others: "
            f"{listing(map(os.path.basename, odd))}.",
            "Save probabilities with numpy.save.",
        )
    shapes = {shape: file for file, (shape, _) in zip(reversed(files), reversed(looks), strict=True)}
    if len(shapes) > 1:
        (other, second), (one, first) = list(shapes.items())[-2:]
        what = "classes" if one[0] == other[0] else "items"
        raise InputError(
            f"{first!r} has {one[0]:,} rows and {one[1]:,} columns, and {second!r} {other[0]:,} and {other[1]:,}. All "
            f"must be about the same {what}, in the same order.",
            "Give a class that a worker does not know a column of zeros, and an item without a vote a row of NaN.",
        )
    votes = np.stack([np.asarray(next(iter(read_arrays(file).values())), np.float64) for file in files], axis=1)
    return _lay_out(path, votes, np.array([name_worker(file) for file in files], object))


def name_worker(path: str) -> str:
    """Return the name of the worker whose votes are in a file.

    >>> name_worker("votes/forest.npy"), name_worker("votes/linear.csv.gz")
    ('forest', 'linear')
    """
    return os.path.basename(path).removesuffix(".gz").rpartition(".")[0]


def _lay_out(path: str, votes: NDArray[np.generic], workers: NDArray[np.generic]) -> Table:
    """Return a table of votes P[item, worker, class]."""
    n_items, n_workers, n_classes = votes.shape
    require_memory(2 * NUMBER * votes.size, f"{path!r} holds arrays")
    if 0 in votes.shape:
        raise InputError(f"{path!r} has the shape {votes.shape}: there are no votes.")
    item, worker = (each.ravel() for each in np.indices((n_items, n_workers)))
    table = open_frame({"item": item, "worker": to_column(workers).take(worker)}, path)
    table = replace(
        table,
        locate=lambda row: f"row {row // n_workers} of {workers.tolist()[row % n_workers]!r}",
        items=to_column(np.arange(n_items)),
    )
    rows: Floats = np.asarray(votes, np.float64).reshape(-1, n_classes)
    return replace(with_votes(table, SoftRows(np.arange(n_classes), rows, named=False)), format=NAME)


def _open_tables(path: str, files: list[str], format: str | None) -> Table | None:
    """Return tables with a row for each item and a column for each class, one of each worker."""
    if format is None and (len(files) < 2 or not _holds_votes(files[0])):
        return None
    source = read_table(path)
    owner = np.repeat(np.arange(len(source.files)), [size for _, size in source.files])
    names = to_column(np.array([name_worker(file) for file, _ in source.files], object))
    table = open_file(path)
    if table.find("worker") is not None:
        raise InputError(
            f"The files in {path!r} have a column of workers, {table.find('worker')!r}.",
            "Leave out the format: the file's name is not that of the worker.",
            keyword="format",
        )
    return table.add({"worker": names.take(owner)})


def _holds_votes(path: str) -> bool:
    """Tell whether a file has a column of items, and others of numbers that sum to 1."""
    try:
        with quietly():  # what is to be said of it is said when all files are read
            table = open_file(path)
    except InputError:
        return False
    if table.find("item") is None or any(table.find(role) is not None for role in ("worker", "label")):
        return False
    votes = stack(table, list(list_classes(table, {})))
    return votes is not None and votes.shape[1] > 1 and sum_to_one(votes)
