"""Features of items from files: a matrix in a .npy file, or a sparse one in a .npz file that scipy wrote."""

from __future__ import annotations

import os
import zipfile
from typing import IO, Any

from ..arguments import to_path
from ..errors import InputError, first_line
from ..memory import require_memory
from .files import PathLike
from .reading import read_table

_ZIP = b"PK"
MOST_ROWS = 2**31 - 1


def open_item_data(source: Any, what: str) -> Any:
    """Return what a file holds about items: an array or a sparse matrix, or a table; anything else as it is.

    `what` is the parameter that the file is given for.
    """
    if not isinstance(source, (str, os.PathLike)):
        return source
    name = to_path(what, "fit", source)
    if name.lower().endswith((".npy", ".npz")) and os.path.isfile(name):
        return read_features(name)
    return read_table(name).table


def read_features(path: PathLike) -> Any:
    """Return the features in a file, one row per item. The content says whether they are sparse, whatever the suffix.

    Parameters
    ----------
    path : str or path-like
        What `numpy.save` or `scipy.sparse.save_npz` wrote.
    """
    import numpy as np
    from scipy.sparse import load_npz

    name = os.fspath(path)
    try:
        with open(name, "rb") as stream:  # NumPy leaves a damaged file open
            sparse = stream.read(len(_ZIP)) == _ZIP
            stream.seek(0)
            if sparse:
                check_unpacked(name, stream)
            features = load_npz(stream) if sparse else np.load(stream, allow_pickle=False)
    except InputError:
        raise
    except Exception as error:  # whatever NumPy meets in a damaged file
        raise InputError(
            f"{name!r} cannot be read: {first_line(error)}.",
            "Give a .npy array, or a .npz file of scipy.sparse.save_npz.",
        ) from error
    if len(features.shape) != 2:
        raise InputError(f"{name!r} must have one row for each item. It has the shape {features.shape}.")
    if features.shape[0] > MOST_ROWS:  # a sparse matrix may claim any number
        raise InputError(f"{name!r} has {features.shape[0]:,} rows, and there can be at most {MOST_ROWS:,} items.")
    return features


def check_unpacked(name: str, stream: IO[bytes]) -> None:
    """Raise an error for a compressed file that would be too large for the memory, and go back to its start."""
    with zipfile.ZipFile(stream) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    require_memory(unpacked, f"{name!r} holds compressed arrays")
    stream.seek(0)
