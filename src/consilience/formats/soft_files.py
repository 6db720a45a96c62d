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
from ..answers.soft_votes import SoftRows, find_class_columns, stack, sum_to_one, with_votes
from ..answers.tables import Table, open_frame
from ..errors import InputError, listing, quietly
from ..limits import NUMBER, require_memory
from .arrays import NPY, peek_array, read_arrays
from .files import list_inputs
from .reading import open_file, read_table

NAME = "soft-files"


def open_votes(path: str, format: str | None) -> Table | None:
    """The soft votes at a path as a table with one row for each; None for anything else.

    `format` is the form that the user gave, if any. If it is that of such files, anything else is an error.
    """
    if format not in (None, NAME):
        return None
    if os.path.isfile(path):
        if path.lower().endswith(NPY) and _are_fractions(path, 3):
            votes = read_arrays(path)[""]
            return _lay_out(path, votes, np.arange(votes.shape[1]))
        if format is None:
            return None
        raise InputError(
            f"{NAME!r} is for a folder with one file of probabilities for each worker, or for one array of fractions, "
            f"indexed by item, worker and class. {path!r} is neither.",
            "Leave out the format.",
            keyword="format",
        )
    try:
        files = list_inputs(path)
    except InputError:
        return None  # whoever reads it says what is wrong
    workers = [os.path.basename(file).removesuffix(".gz").rpartition(".")[0] for file in files]
    arrays = [file for file in files if file.lower().endswith(NPY)]
    if arrays and len(arrays) < len(files):
        return None
    if arrays:
        odd = [file for file in files if not _are_fractions(file, 2)]
        if odd and format is None:
            return None
        shapes = {peek_array(file)[0]: file for file in reversed(files)}
        if odd or len(shapes) > 1:
            found = listing([f"{shape} in {os.path.basename(file)}" for shape, file in shapes.items()])
            raise InputError(
                f"Each file in {path!r} must hold fractions, with a row for each item and a column for each class, in "
                f"the same order in all. Their shapes are {found}.",
                "Give a class that a worker does not know a column of zeros, and an item without a vote a row of NaN.",
            )
        votes = np.stack([np.asarray(read_arrays(file)[""], np.float64) for file in files], axis=1)
        return _lay_out(path, votes, np.array(workers, object))
    if format is None and (len(files) < 2 or not _holds_votes(files[0])):
        return None
    table = open_file(path)
    if table.find("worker") is not None:
        raise InputError(
            f"The files in {path!r} have a column of workers, {table.find('worker')!r}.",
            "Leave out the format: the file's name is not that of the worker.",
            keyword="format",
        )
    sizes = [n_rows for _, n_rows in read_table(path).files]
    return table.add({"worker": to_column(np.repeat(np.array(workers, object), sizes))})


def _are_fractions(path: str, n_axes: int) -> bool:
    shape, kind = peek_array(path)
    return len(shape) == n_axes and kind == "f"


def _lay_out(path: str, votes: NDArray[np.generic], workers: NDArray[np.generic]) -> Table:
    """A table of votes P[item, worker, class]."""
    n_items, n_workers, n_classes = votes.shape
    require_memory(2 * NUMBER * votes.size, f"{path!r} holds arrays")
    if 0 in votes.shape:
        raise InputError(f"{path!r} has the shape {votes.shape}: there are no votes.")
    item, worker = np.divmod(np.arange(n_items * n_workers), n_workers)
    table = replace(
        open_frame({"item": item, "worker": to_column(workers).take(worker)}, path),
        locate=lambda row: f"row {row // n_workers} of {workers.tolist()[row % n_workers]!r}",
        items=to_column(np.arange(n_items)),
    )
    rows = np.asarray(votes, np.float64).reshape(-1, n_classes)
    return replace(with_votes(table, SoftRows(np.arange(n_classes), rows, named=False)), format=NAME)


def _holds_votes(path: str) -> bool:
    """Whether a file has a column of items, and others of numbers that sum to 1."""
    try:
        with quietly():  # what is to be said of it is said when all files are read
            table = open_file(path)
    except InputError:
        return False
    if table.find("item") is None or any(table.find(role) is not None for role in ("worker", "label")):
        return False
    votes = stack(table, list(find_class_columns(table, {})))
    return votes is not None and votes.shape[1] > 1 and sum_to_one(votes)
