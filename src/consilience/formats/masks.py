"""Masks in files: a folder with one folder per reader or per image, or one array; and pictures, through pillow.

In a folder of folders every mask has two names, that of its folder and its own. One of them is the reader, the other is
the image. Masks of one image are more alike than masks of different images. The distance of two masks is the share of
pixels that differ, and 1 if their sizes do; masks of one class tell nothing. With d_file the mean distance of masks
with the same file name, and d_folder that of masks in the same folder,

    folders are readers  if  d_file < RATIO d_folder,        folders are images  if  d_folder < RATIO d_file.

Where no two masks have the same file name, or none the same folder, that distance is taken as 1. If neither holds, the
user has to say.

A pixel of a picture stands for a class by a number of 1, 2, 4, 8 or 16 bits. No other file imports pillow.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping
from itertools import combinations, islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, MissingDependencyError, Sentence, first_line, listing, parameter_error, warn_of
from ..kinds.masks import UNANSWERED, FusedMasks, Masks, check_readers, encode_masks
from ..limits import require_memory
from ..options import is_among, to_path
from . import Codec, list_suffixes, readable_formats
from .arrays import NPY, NPZ, open_faulty, peek_array, read_arrays
from .files import PathLike, file_name, make_folder
from .writing import replace_file

PNG = ".png"
FOLDERS = ("readers", "images")
# How much less the masks of an image must differ than those of a reader, and about how many pairs are looked at.
RATIO, MOST_PAIRS = 0.7, 60
_GREY = ("1", "L", "I;16", "I")
# Where the header of a PNG file says how many bits a number has.
_DEPTH = 24

Pixels: TypeAlias = NDArray[Any]


def read_masks(
    path: PathLike,
    *,
    folders: str | None = None,
    classes: Mapping[Any, Any] | None = None,
    missing: int | None = UNANSWERED,
) -> Masks:
    """Read the masks that several readers drew of the same images.

    Parameters
    ----------
    path : str or path
        One of these:

        - a folder with one folder per reader, in which the file of an image always has the same name; or with one
          folder per image, in which the file of a reader has. Files are PNG pictures (which need pillow: ``pip install
          'consilience[images]'``) or .npy arrays. A file that is not there is a mask that was not drawn.
        - a .npy array of shape (n_readers, height, width) or (n_readers, depth, height, width);
        - a .npz file with such an array for each image. Its name is the id of the image.
    folders : {"readers", "images"}, optional
        What the folders stand for. By default it is found out by which masks are alike.
    classes, missing
        As in `Masks.from_arrays`.

    Returns
    -------
    Masks

    Notes
    -----
    A pixel of a PNG file stands for a class by its number: the grey value, or the index into a palette.

    Examples
    --------
    >>> import consilience as cs, numpy as np, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "masks.npy"
    >>> np.save(file, np.ones((4, 32, 32), np.uint8))
    >>> cs.read_masks(file)
    Masks(1 image of 4 readers: 1,024 pixels, 1 class: 1)
    """
    source = to_path("path", "read_masks", path)
    if folders is not None and not is_among(folders, FOLDERS):
        raise parameter_error("folders", "read_masks", "'readers', 'images' or None", folders)
    if os.path.isdir(source):
        return _read_folder(source, folders, classes, missing)
    if not os.path.exists(source):
        raise InputError(f"There is no file or folder {source!r}.", "Check the name.")
    arrays = read_arrays(source)
    if set(arrays) == {""}:
        return Masks.from_arrays(arrays[""], classes=classes, missing=missing)
    n_readers = {len(array) if array.ndim else 0 for array in arrays.values()}
    if len(n_readers) > 1:
        raise InputError(
            f"The arrays in {source!r} have {listing(sorted(n_readers))} masks, so it is not known who drew which.",
            "Give all images the same readers, along the first axis, with -1 where a mask is missing.",
        )
    check_readers(max(n_readers, default=0))
    by_image = {image: dict(enumerate(array)) for image, array in arrays.items()}
    return Masks.from_arrays(by_image, classes=classes, missing=missing)


def are_masks(path: str) -> bool:
    """Whether a path is that of masks: a folder of folders with PNG or NumPy files, or a file of NumPy arrays.

    A folder that also holds tables is one of answers.
    """
    try:
        if not os.path.isdir(path):
            if not os.path.isfile(path):
                return False
            shape, kind = peek_array(path) if path.lower().endswith(NPY) else ((), "")
            return path.lower().endswith(NPZ) or (len(shape) in (3, 4) and kind in "biu")
        tables = tuple(list_suffixes(readable_formats()))
        if any(name.lower().endswith(tables) for name in os.listdir(path)):
            return False
        inner = [each.path for each in os.scandir(path) if each.is_dir() and not each.name.startswith(".")]
        return any(name.lower().endswith((PNG, NPY)) for folder in inner for name in os.listdir(folder))
    except (OSError, ValueError):
        return False


def _read_folder(path: str, folders: str | None, classes: Mapping[Any, Any] | None, missing: int | None) -> Masks:
    """The masks in the folders of a folder, in order of name; of each file the folder and the name without suffix."""
    shown = (file for file in Path(path).glob("*/*") if not file.parent.name.startswith("."))
    try:
        files = sorted(file for file in shown if not file.name.startswith("."))
    except OSError as error:
        raise InputError(f"{path!r} cannot be read: {first_line(error)}.", "Check its permissions.") from error
    drawn = [file for file in files if file.suffix.lower() in (PNG, NPY) and file.is_file()]
    others = [file.name for file in files if file not in drawn]
    masks: dict[tuple[str, str], Pixels] = {}
    for file in drawn:
        arrays = {"": read_picture(str(file))} if file.suffix.lower() == PNG else read_arrays(str(file))
        if set(arrays) != {""} or (file.parent.name, file.stem) in masks:
            raise InputError(f"{str(file)!r} is not the only mask of its name.", "Give each mask a file of its own.")
        masks[file.parent.name, file.stem] = arrays[""]
    if not masks:
        raise InputError(
            f"There are no masks in {path!r}.",
            f"Put the masks ({PNG} or {NPY}) of each reader into a folder of their own, with one name for each image.",
        )
    if others:
        warn_of(f"Only {PNG} and {NPY} files in {path!r} are read, and not {listing(others)}.")
    meaning = folders or _find_meaning(path, masks)
    entries = [
        (*((name, folder) if meaning == "readers" else (folder, name)), pixels, f"mask {str(file)!r}")
        for file, ((folder, name), pixels) in zip(drawn, masks.items(), strict=True)
    ]
    encoded = encode_masks(entries, classes, missing, drawn[0].suffix.lower())
    if encoded.values.tolist() == [0, 1, 255]:
        warn_of(
            f"Marked pixels are both 1 and 255 in {path!r}. These are different classes.",
            Sentence("If both mean the same, say so with {classes}.", classes={0: "no", 1: "yes", 255: "yes"}),
        )
    return encoded


def _find_meaning(path: str, masks: Mapping[tuple[str, str], Pixels]) -> str:
    """What the folders stand for: "readers" or "images"."""

    def mean_distance(part: int) -> float:  # of masks in the same folder (0), or with the same file name (1)
        groups: dict[str, list[Pixels]] = {}
        for key, pixels in masks.items():
            groups.setdefault(key[part], []).append(pixels)
        distances = [
            float(np.mean(one != other)) if one.shape == other.shape else 1.0
            for group in groups.values()
            for one, other in islice(combinations(group, 2), max(1, MOST_PAIRS // len(groups)))
            if one.min() < one.max() and other.min() < other.max()
        ]
        return float(np.mean(distances)) if distances else 1.0

    by_folder, by_file = mean_distance(0), mean_distance(1)
    if by_file < RATIO * by_folder:
        return "readers"
    if by_folder < RATIO * by_file:
        return "images"
    folders, names = (listing(sorted({key[part] for key in masks})) for part in (0, 1))
    raise InputError(
        f"It is not clear what the folders in {path!r} stand for. They may be readers ({folders}) who drew "
        f"masks of the images {names}; or images of which {names} are the readers.",
        Sentence("Say so with {folders}.", folders="readers"),
        Sentence("Or with {folders}.", folders="images"),
        keyword="folders",
    )


def write_masks(masks: Masks | FusedMasks, folder: PathLike) -> None:
    """Write masks to a folder: those of several readers in one folder per reader, fused ones beside each other.

    Files are PNG pictures with the values that the masks were read with, or .npy arrays if the masks were not read
    from pictures, or cannot be written as such. Other files in the folder stay.

    Parameters
    ----------
    masks : Masks or FusedMasks
        What to write: readers' masks, or the result of a model's `to_masks`.
    folder : str or path
        Where. It is created if need be.
    """
    target = to_path("folder", "write_masks", folder)
    if not isinstance(masks, (Masks, FusedMasks)):
        raise parameter_error("masks", "write_masks", "Masks or FusedMasks", masks)
    files: dict[str, Pixels] = {}
    for image, drawn in (masks if isinstance(masks, FusedMasks) else masks.arrays()).items():
        for reader, array in (drawn if isinstance(drawn, dict) else {None: drawn}).items():
            names = (image,) if reader is None else (reader, image)
            path = os.path.join(target, *map(file_name, names))
            if path in files:
                raise InputError(f"Two masks would be written to {path!r}.", "Give images and readers other ids.")
            files[path] = array
    for path, array in files.items():
        fits = array.ndim == 2 and array.min() >= 0 and array.max() <= np.iinfo(np.uint16).max
        suffix = PNG if masks.suffix == PNG and fits else NPY
        make_folder(os.path.dirname(path))
        with replace_file(path + suffix) as temporary:
            if suffix == PNG:
                write_picture(os.fspath(temporary), array)
            else:
                np.save(temporary, array, allow_pickle=False)


# ------------------------------------------------------------------------------------------------------------- pictures


def read_picture(path: str) -> NDArray[Any]:
    """The numbers of the pixels of a PNG file; every fault in it is an `InputError`."""
    pillow = _import_pillow()
    with (
        open_faulty(path, "It may be damaged, cut off, or no PNG file: write it again.") as stream,
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
        open_faulty(path) as stream,
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


MASKS = Codec(load=read_masks, save=write_masks, is_at=are_masks)
