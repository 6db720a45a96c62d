"""Masks in files: a folder with one folder per reader or per image, or one array.

In a folder of folders every mask has two names, that of its folder and its own. One of them is the reader, the other is
the image. Masks of one image have one size, and overlap more than masks of different images. A mask marks the pixels
that differ from its most frequent value. The distance of two masks A and B is 1 - |A and B| / |A or B|, and 1 if their
sizes differ. With d_file the mean distance of masks with the same file name, and d_folder that of masks in the same
folder,

    folders are readers  if  d_file < RATIO d_folder,        folders are images  if  d_folder < RATIO d_file.

Where no two masks have the same file name, or none the same folder, that distance is taken as 1. If neither holds, the
user has to say.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import combinations, islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..arguments import is_among, to_path
from ..errors import DataWarning, InputError, Sentence, first_line, listing, parameter_error, plural, shorten, warn
from ..kinds.masks import UNANSWERED, FusedMasks, Masks, Pictures, check_readers, encode_masks
from . import Codec, list_suffixes, readable_formats
from .arrays import NPY, NPZ, PNG, count_pixels, look_at, read_arrays, read_picture, write_picture
from .files import PathLike, make_folder
from .writing import replace_file

FOLDERS = ("readers", "images")
# How much less the masks of an image must differ than those of a reader, and how many pairs and pixels are looked at.
RATIO, MOST_PAIRS, MOST_PIXELS = 0.7, 60, 2**16
# Pixels that are read to find out what folders stand for. It takes two seconds at most.
MOST_READ = 2**26

Key: TypeAlias = tuple[str, str]  # folder and file, without suffix
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
        As in `Masks.from_arrays`. Classes of coloured pictures are colours such as ``"#ff0000"``.

    Returns
    -------
    Masks

    Notes
    -----
    A pixel of a PNG file stands for a class by its number (grey value, or index into the palette) or, in a file without
    such numbers, by its colour. If all colours are shades of grey, the number is the grey value. What is fully
    transparent is black.

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
    """Tell whether a path is that of masks: a folder of folders with PNG or NumPy files, or a file of NumPy arrays.

    A folder that also holds tables is one of answers.
    """
    try:
        if not os.path.isdir(path):
            if not os.path.isfile(path):
                return False
            shape, kind = look_at(path) if path.lower().endswith(NPY) else ((), "")
            return path.lower().endswith(NPZ) or (len(shape) in (3, 4) and kind in "biu")
        tables = tuple(list_suffixes(readable_formats()))
        if any(name.lower().endswith(tables) for name in os.listdir(path)):
            return False
        inner = [each.path for each in os.scandir(path) if each.is_dir() and not each.name.startswith(".")]
        return any(name.lower().endswith((PNG, NPY)) for folder in inner for name in os.listdir(folder))
    except (OSError, ValueError):
        return False


def _read_folder(path: str, folders: str | None, classes: Mapping[Any, Any] | None, missing: int | None) -> Masks:
    files = _find_files(path)
    meaning = folders or _tell_folders(path, files)
    found = {key: _read_file(file) for key, file in files.items()}
    # Colours that are all shades of grey are numbers.
    if all(not coloured or _is_grey(values) for values, coloured in found.values()):
        found = {
            key: ((values & np.uint32(255)).astype(np.uint8) if coloured else values, False)
            for key, (values, coloured) in found.items()
        }
    are_coloured = {coloured for _, coloured in found.values()}
    if len(are_coloured) > 1:
        odd, even = (next(files[key] for key, each in found.items() if each[1] == way) for way in (False, True))
        raise InputError(f"{odd!r} holds numbers, and {even!r} colours.", "Save all masks in one form.")
    entries = (
        (*((name, folder) if meaning == "readers" else (folder, name)), values, f"mask {files[folder, name]!r}")
        for (folder, name), (values, _) in found.items()
    )
    suffix = os.path.splitext(next(iter(files.values())))[1].lower()
    masks = encode_masks(entries, classes, missing, are_coloured.pop(), suffix)
    _warn_of_scales(masks)
    return masks


def _find_files(path: str) -> dict[Key, str]:
    """Return the masks in the folders of a folder, in order of name."""
    files: dict[Key, str] = {}
    others: list[str] = []
    try:
        for folder in sorted(os.listdir(path)):
            inside = os.path.join(path, folder)
            if not os.path.isdir(inside):
                others += [] if folder.startswith(".") else [folder]
                continue
            for name in sorted(os.listdir(inside)) if not folder.startswith(".") else ():
                stem, suffix = os.path.splitext(name)
                file = os.path.join(inside, name)
                if name.startswith("."):
                    continue
                if suffix.lower() not in (PNG, NPY) or not os.path.isfile(file):
                    others.append(os.path.join(folder, name))
                elif (folder, stem) in files:
                    raise InputError(
                        f"{files[folder, stem]!r} and {file!r} have the same name.", "Keep one of the two files."
                    )
                else:
                    files[folder, stem] = file
    except OSError as error:
        raise InputError(f"{path!r} cannot be read: {first_line(error)}.", "Check its permissions.") from error
    if not files:
        seen = f"It holds {listing(others)}." if others else "It is empty."
        raise InputError(
            f"There are no masks in {path!r}. {seen}",
            f"Put the masks ({PNG} or {NPY}) of each reader into a folder of their own, with one name for each image.",
        )
    if others:
        warn(
            DataWarning(
                f"{plural(len(others), 'file')} in {path!r} {'is' if len(others) == 1 else 'are'} left out, since only "
                f"{PNG} and {NPY} files in its folders are read: {listing(others)}."
            )
        )
    return files


def _read_file(path: str) -> tuple[Pixels, bool]:
    """The values of a mask, and whether they are colours."""
    if path.lower().endswith(PNG):
        return read_picture(path)
    arrays = read_arrays(path)
    if set(arrays) != {""}:
        raise InputError(f"{path!r} holds several arrays.", "Save each mask with numpy.save.")
    return arrays[""], False


def _tell_folders(path: str, found: Mapping[Key, str]) -> str:
    """What the folders stand for: "readers" or "images"."""
    looks: dict[str, tuple[tuple[int, ...], Pixels]] = {}
    n_left = MOST_READ

    def look(file: str) -> tuple[tuple[int, ...], Pixels]:
        """The shape of a mask, and which of some of its pixels it marks."""
        if file not in looks:
            values, _ = _read_file(file)
            some = values.ravel()[:: -(-values.size // MOST_PIXELS) or 1]
            distinct, counts = np.unique(some, return_counts=True)
            looks[file] = values.shape, some != distinct[counts.argmax()]
        return looks[file]

    means = []
    for part in (1, 0):  # masks with the same file name, then masks in the same folder
        groups: dict[str, list[str]] = {}
        for key, file in found.items():
            groups.setdefault(key[part], []).append(file)
        shared = [group for group in groups.values() if len(group) > 1]
        most, distances = max(1, MOST_PAIRS // max(len(shared), 1)), []
        pairs = (pair for group in shared for pair in islice(combinations(group, 2), most))
        for pair in islice(pairs, MOST_PAIRS):
            n_left -= sum(count_pixels(file) for file in pair if file not in looks)
            if n_left < 0:
                continue
            (shape, marked), (other_shape, other) = map(look, pair)
            if shape != other_shape:
                distances.append(1.0)
            elif marked.any() and other.any():
                distances.append(float((marked ^ other).sum() / (marked | other).sum()))
        means.append(float(np.mean(distances)) if distances else 1.0)
    by_file, by_folder = means
    if by_file < RATIO * by_folder:
        return "readers"
    if by_folder < RATIO * by_file:
        return "images"
    names = sorted({folder for folder, _ in found}), sorted({name for _, name in found})
    raise InputError(
        f"It is not clear what the folders in {path!r} stand for. They may be readers ({listing(names[0])}) who drew "
        f"masks of the images {listing(names[1])}; or images of which {listing(names[1])} are the readers.",
        Sentence("Say so with {folders}.", folders="readers"),
        Sentence("Or with {folders}.", folders="images"),
        keyword="folders",
    )


def _is_grey(values: NDArray[np.uint32]) -> bool:
    """Whether all colours are shades of grey."""
    return bool(np.all(values == (values & np.uint32(255)) * np.uint32(0x010101)))


def _warn_of_scales(masks: Masks) -> None:
    """Warn if some readers mark with 1 and others with 255."""
    if masks.pictures.coloured or masks.pictures.values.tolist() != [0, 1, 255]:
        return
    used: dict[int, set[int]] = {}
    for by_reader in masks.codes:
        for reader, codes in by_reader.items():
            used.setdefault(reader, set()).update(np.unique(codes[codes > 0]).tolist())
    ones, others = ([m for m, codes in used.items() if codes == {code}] for code in (1, 2))
    if ones and others and len(ones) + len(others) == sum(map(bool, used.values())):
        names = [listing(masks.readers[group].tolist()) for group in (ones, others)]
        warn(
            DataWarning(
                f"Marked pixels are 1 in the masks of {names[0]}, and 255 in those of {names[1]}. These are different "
                "classes.",
                Sentence("If both mean the same, say so with {classes}.", classes={0: "no", 1: "yes", 255: "yes"}),
            )
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
        name = _file_name(image, "image")
        by_reader = drawn if isinstance(drawn, dict) else {None: drawn}
        for reader, array in by_reader.items():
            path = name if reader is None else os.path.join(_file_name(reader, "reader"), name)
            if path in files:
                raise InputError(f"Two masks would be written to {path!r}.", "Give images and readers other ids.")
            files[path] = array
    for path, array in files.items():
        _write_array(os.path.join(target, path), array, masks.pictures)


def _write_array(stem: str, array: Pixels, pictures: Pictures) -> None:
    suffix, flat = pictures.suffix, array.ndim == 2 + pictures.coloured
    if suffix == PNG and not (flat and array.min() >= 0 and array.max() <= np.iinfo(np.uint16).max):
        suffix = NPY
    make_folder(os.path.dirname(stem))
    with replace_file(stem + suffix) as temporary:
        if suffix == PNG:
            write_picture(os.fspath(temporary), array)
        else:
            np.save(temporary, array, allow_pickle=False)


def _file_name(value: object, what: str) -> str:
    """Return the id of an image or a reader as the name of a file, which stays within its folder."""
    name = str(value)
    if not name or name.startswith(".") or any(sign in name for sign in ("/", "\\", "\0", os.sep)):
        raise InputError(
            f"The {what} {shorten(value)} cannot be the name of a file.",
            "Give it an id without slashes that does not begin with a dot.",
        )
    return name


MASKS = Codec(read_masks=read_masks, write_masks=write_masks)
