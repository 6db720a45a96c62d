"""Arrays in files of NumPy and scipy: matrices of answers, probabilities of workers, features of items, masks.

Probabilities may be in one .npy array of fractions, indexed by item, worker and class; or in a folder, or files that
match a pattern, with one file for each worker, called by the worker. Each of these is

- a .npy array of fractions with a row for each item and a column for each class, or
- a table with a column of items, none of workers or labels, and columns of numbers that sum to 1, one for each class.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..answers import DIALECTS
from ..answers.columns import to_column
from ..answers.soft_votes import SoftRows, find_class_columns, stack, sum_to_one, with_votes
from ..answers.tables import Table, open_frame
from ..errors import InputError, first_line, listing, quietly
from ..limits import NUMBER, require_few, require_memory
from .files import PathLike, list_inputs
from .reading import open_file, read_table

if TYPE_CHECKING:
    from scipy.sparse import spmatrix

MATRIX_SUFFIX = next(each.suffix for each in DIALECTS if each.name == "matrix")
NPY, NPZ = ".npy", ".npz"
SOFT_FILES = "soft-files"
MOST_ARRAY_ROWS = 2**31 - 1
_ZIP, _NUMPY = b"PK", b"\x93NUMPY"


@contextmanager
def open_faulty(path: str, *remedies: str) -> Iterator[IO[bytes]]:
    """Open a file that may be damaged: whatever a library meets in it is an `InputError`."""
    try:
        with open(path, "rb") as stream:
            yield stream
    except InputError:
        raise
    except Exception as error:
        why = first_line(error) or type(error).__name__
        raise InputError(f"{path!r} cannot be read: {why}.", *remedies) from error


def read_arrays(path: str) -> dict[str, NDArray[Any]]:
    """The arrays in a file of NumPy, by name; the name of a single one is empty."""
    with open_faulty(path, "Write it again with numpy.save, without objects.") as stream:
        if not _is_packed(path, stream):
            require_memory(os.path.getsize(path), f"{path!r} holds an array")
            return {"": np.load(stream, allow_pickle=False)}
        with np.load(stream, allow_pickle=False) as archive:
            arrays = {name: np.asarray(archive[name]) for name in archive.files}
        return {"": arrays["arr_0"]} if set(arrays) == {"arr_0"} else arrays


def _is_packed(name: str, stream: IO[bytes]) -> bool:
    """Whether a file is an archive, which must not be too large when it is unpacked; any other must be of NumPy."""
    head = stream.read(len(_NUMPY))
    stream.seek(0)
    if not head.startswith(_ZIP):
        if head != _NUMPY:
            raise InputError(f"{name!r} cannot be read: it is no file of NumPy arrays.", "Give a .npy or .npz file.")
        return False
    with zipfile.ZipFile(stream) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    require_memory(unpacked, f"{name!r} holds compressed arrays")
    packed, remedy = os.path.getsize(name), "Write it again without compression: numpy.savez."
    require_few("unpacked", unpacked, f"The {packed:,} bytes of {name!r} unpack to {unpacked:,}", remedy, n=packed)
    stream.seek(0)
    return True


def peek_array(path: str) -> tuple[tuple[int, ...], str]:
    """The shape of the array in a .npy file, and the kind of its numbers; nothing of either if it cannot be read."""
    try:
        with open(path, "rb") as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, kind = read(stream)
    except Exception:  # whatever NumPy meets in a damaged header
        return (), ""
    return shape, kind.kind


def read_features(path: PathLike) -> NDArray[Any] | spmatrix:
    """The features in a file, one row per item. The content says whether they are sparse, whatever the suffix.

    Parameters
    ----------
    path : str or path-like
        What `numpy.save` or `scipy.sparse.save_npz` wrote.
    """
    from scipy.sparse import load_npz

    name = os.fspath(path)
    with open_faulty(name, "Give a .npy array, or a .npz file of scipy.sparse.save_npz.") as stream:
        features = load_npz(stream) if _is_packed(name, stream) else np.load(stream, allow_pickle=False)
    if len(features.shape) != 2:
        raise InputError(f"{name!r} must have one row for each item. It has the shape {features.shape}.")
    if features.shape[0] > MOST_ARRAY_ROWS:  # a sparse matrix may claim any number
        raise InputError(
            f"{name!r} has {features.shape[0]:,} rows, and there can be at most {MOST_ARRAY_ROWS:,} items."
        )
    return features


def open_matrix(path: str) -> Table:
    """The matrix in a .npy file as a table with one column per worker, called 0, 1, 2, ...

    It has one row per item, and -1 for no answer, as snorkel has them.
    """
    arrays = read_arrays(path)
    matrix = arrays.get("", np.empty(0))
    if matrix.ndim != 2 or 0 in matrix.shape:
        what = f"It has the shape {matrix.shape}" if "" in arrays else f"It holds {listing(arrays)}"
        raise InputError(
            f"{path!r} must hold a matrix with items as rows and workers as columns. {what}.",
            "For probabilities, see Answers.from_probabilities.",
        )
    width = matrix.shape[1]
    remedy = "Give a table with one row per answer."
    require_few("columns", width, f"The matrix in {path!r} has {width:,} columns", remedy)
    return open_frame({str(w): matrix[:, w] for w in range(matrix.shape[1])}, path)


def open_votes(path: str, format: str | None) -> Table | None:
    """The probabilities at a path as a table with one row for each vote; None for anything else.

    `format` is the form that the user gave, if any. If it is that of such files, anything else is an error.
    """
    if format not in (None, SOFT_FILES):
        return None
    try:
        files = [] if os.path.isfile(path) else list_inputs(path)
    except InputError:
        return None  # whoever reads it says what is wrong
    workers = np.array([os.path.basename(file).removesuffix(".gz").rpartition(".")[0] for file in files], object)
    headers = [peek_array(file) for file in files]
    if not files and path.lower().endswith(NPY):
        shape, kind = peek_array(path)
        if kind == "f" and len(shape) == 3:
            return _lay_out(path, read_arrays(path)[""], np.arange(shape[1]))
    elif files and all(kind == "f" and len(shape) == 2 for shape, kind in headers):
        shapes = {shape: file for (shape, _), file in reversed(list(zip(headers, files, strict=True)))}
        if len(shapes) > 1:
            what = listing([f"{shape} in {os.path.basename(file)}" for shape, file in shapes.items()])
            raise InputError(
                f"Each file in {path!r} must have a row for each item and a column for each class, in the same order "
                f"in all. Their shapes are {what}.",
                "Give a class that a worker does not know a column of zeros, and an item without a vote a row of NaN.",
            )
        return _lay_out(path, np.stack([read_arrays(file)[""] for file in files], axis=1), workers)
    elif len(files) > 1 and not any(file.lower().endswith(NPY) for file in files) and _holds_votes(files[0]):
        sizes = [n_rows for _, n_rows in read_table(path).files]
        return open_file(path).add({"worker": to_column(np.repeat(workers, sizes))})
    if format is None:
        return None
    raise InputError(
        f"{SOFT_FILES!r} is for a folder with one file of probabilities for each worker, or for one array of "
        f"fractions, indexed by item, worker and class. {path!r} is neither.",
        "Leave out the format.",
        keyword="format",
    )


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
    return replace(with_votes(table, SoftRows(np.arange(n_classes), rows, named=False)), format=SOFT_FILES)


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
