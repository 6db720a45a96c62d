"""Arrays in files: those of NumPy and scipy, and pictures through pillow, which no other file imports.

A pixel of a picture stands for a class by a number of 1, 2, 4, 8 or 16 bits: a grey value, or an index into a palette.
"""

from __future__ import annotations

import io
import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..answers import DIALECTS
from ..answers.tables import Table, open_frame
from ..errors import InputError, MissingDependencyError, first_line, listing
from ..limits import require_few, require_memory
from .files import PathLike

if TYPE_CHECKING:
    from scipy.sparse import spmatrix

MATRIX = next(each.suffix for each in DIALECTS if each.name == "matrix")
PNG, NPY, NPZ = ".png", ".npy", ".npz"
MOST_ROWS = 2**31 - 1
_ZIP, _NUMPY = b"PK", b"\x93NUMPY"
_GREY = ("1", "L", "I;16", "I")
# Where the header of a PNG file says how many bits a number has.
_DEPTH = 24


@contextmanager
def _open_faulty(path: str, *remedies: str) -> Iterator[IO[bytes]]:
    """Open a file that may be damaged: whatever a library meets in it is an `InputError`."""
    try:
        with open(path, "rb") as stream:
            yield stream
    except InputError:
        raise
    except Exception as error:
        why = first_line(error) or type(error).__name__
        raise InputError(f"{path!r} cannot be read: {why}.", *remedies) from error


# ---------------------------------------------------------------------------------------------------------------- NumPy


def open_matrix(path: str) -> Table:
    """The matrix in a .npy file as a table with one column per worker, called 0, 1, 2, ...

    It has one row per item, and -1 for no answer, as snorkel has them.
    """
    arrays = read_arrays(path)
    matrix = arrays.get("", np.empty(0))
    if matrix.ndim != 2 or 0 in matrix.shape:
        found = f"It has the shape {matrix.shape}" if "" in arrays else f"It holds {listing(arrays)}"
        raise InputError(
            f"{path!r} must hold a matrix with items as rows and workers as columns. {found}.",
            "For probabilities, see Answers.from_probabilities.",
        )
    width = matrix.shape[1]
    remedy = "Give a table with one row per answer."
    require_few("columns", width, f"The matrix in {path!r} has {width:,} columns", remedy)
    return open_frame({str(w): matrix[:, w] for w in range(matrix.shape[1])}, path)


def read_features(path: PathLike) -> NDArray[Any] | spmatrix:
    """The features in a file, one row per item. The content says whether they are sparse, whatever the suffix.

    Parameters
    ----------
    path : str or path-like
        What `numpy.save` or `scipy.sparse.save_npz` wrote.
    """
    from scipy.sparse import load_npz

    name = os.fspath(path)
    with _open_faulty(name, "Give a .npy array, or a .npz file of scipy.sparse.save_npz.") as stream:
        features = load_npz(stream) if _is_packed(name, stream) else np.load(stream, allow_pickle=False)
    if len(features.shape) != 2:
        raise InputError(f"{name!r} must have one row for each item. It has the shape {features.shape}.")
    if features.shape[0] > MOST_ROWS:  # a sparse matrix may claim any number
        raise InputError(f"{name!r} has {features.shape[0]:,} rows, and there can be at most {MOST_ROWS:,} items.")
    return features


def read_arrays(path: str) -> dict[str, NDArray[Any]]:
    """The arrays in a file of NumPy, by name; the name of a single one is empty."""
    with _open_faulty(path, "Write it again with numpy.save, without objects.") as stream:
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


# ------------------------------------------------------------------------------------------------------------- pictures


def read_picture(path: str) -> NDArray[Any]:
    """The numbers of the pixels of a PNG file; every fault in it is an `InputError`."""
    pillow = _import_pillow()
    with (
        _open_faulty(path, "It may be damaged, cut off, or no PNG file: write it again.") as stream,
        warnings.catch_warnings(action="error", category=pillow.DecompressionBombWarning),
    ):
        depth = stream.read(_DEPTH + 1)[_DEPTH:]
        stream.seek(0)
        with pillow.open(stream, formats=["PNG"]) as image:
            width, height = image.size
            require_memory(4 * width * height, f"{path!r} is a picture of {width:,} x {height:,} pixels")
            values = np.array(image if image.mode in ("P", *_GREY) else image.convert("RGB"))
        if values.ndim == 3:
            if (values != values[..., :1]).any():
                raise InputError(
                    f"{path!r} is a picture in colour.",
                    "Save it with a number for each class: in grey, or with a palette.",
                )
            return np.ascontiguousarray(values[..., 0])
        if image.mode == "L" and depth[0] in (2, 4):
            values //= 255 // (2 ** depth[0] - 1)  # pillow spreads few bits over 0 to 255
        return values.astype(np.uint16) if image.mode == "I" else values


def write_picture(path: str, pixels: NDArray[Any]) -> None:
    """Write a PNG file of truth values, or of grey values from 0 to 65535."""
    pillow = _import_pillow()
    if pixels.dtype.kind not in "bu" or pixels.dtype.itemsize > 2:
        pixels = pixels.astype(np.uint8 if pixels.max() <= 255 else np.uint16)
    pillow.fromarray(np.ascontiguousarray(pixels)).save(path, format="PNG")


def shrink_picture(path: str, side: int) -> tuple[str, bytes]:
    """Return a small copy of a picture, neither wider nor higher than `side`: its type ("png", "jpeg") and its bytes.

    Every fault in the file is an `InputError`. Nothing but the pixels is copied.
    """
    pillow = _import_pillow("Pictures in reports", "Or leave out the pictures.")
    with (
        _open_faulty(path) as stream,
        warnings.catch_warnings(action="error", category=pillow.DecompressionBombWarning),
        pillow.open(stream, formats=["PNG", "JPEG", "GIF", "WEBP", "BMP"]) as image,
    ):
        image.draft("RGB", (side, side))
        clear = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
        small = image.convert("RGBA" if clear else "RGB")
    small.thumbnail((side, side))
    stream = io.BytesIO()
    small.save(stream, **({"format": "PNG", "optimize": True} if clear else {"format": "JPEG", "quality": 80}))
    return "png" if clear else "jpeg", stream.getvalue()


def _import_pillow(
    what: str = "Masks in PNG files", instead: str = "Or save the masks with numpy.save, as .npy."
) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError(
            f"{what} need pillow, which is not installed.",
            "Install it with: pip install 'consilience[images]'",
            instead,
        ) from error
    return Image
