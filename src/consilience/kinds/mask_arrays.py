"""Arrays of pixel values, collected, turned into codes of classes, and back into masks.

Masks are held as codes of 8 bits: code c stands for the class `labels[c]`, and -1 for a pixel without an answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..answers.columns import Indices, Values, encode_in_order_of_appearance, encode_sorted, objects, to_column
from ..answers.graph import NEIGHBOURHOODS
from ..arguments import is_whole
from ..errors import InputError, Sentence, first_line, listing, parameter_error, plural
from ..kernels import Floats, Truths

# Codes have 8 bits. More values than this are hardly classes.
MOST_CLASSES = 128
# In arrays of numbers: no number.
NOTHING = np.iinfo(np.int64).min
# In codes of classes: no answer.
UNANSWERED = -1

ClassCodes: TypeAlias = NDArray[np.int8]


class Colours(NamedTuple):
    """How pixel values are shown in a picture.

    Attributes
    ----------
    channels : int
        0: a value is a number in the mask. 3 or 4: it is a colour, of 8 bits each for red, green, blue, and opacity.
    palette : bytes or None
        Of numbers: the colours in which a picture shows 0, 1, 2, ..., three bytes each.
    """

    channels: int = 0
    palette: bytes | None = None


@dataclass(frozen=True, eq=False)
class Coding:
    """What the values in masks stand for.

    Attributes
    ----------
    labels : ndarray
        The classes.
    values : ndarray
        The number, or colour, that stands for each of them.
    missing : int or None
        The number of pixels without an answer.
    dtype : dtype
        Type of the arrays.
    colours : Colours
        How pictures show them.
    suffix : str
        What files are called: ".png" or ".npy".
    """

    labels: Values
    values: Indices
    missing: int | None
    dtype: np.dtype[Any]
    colours: Colours = field(default_factory=Colours)
    suffix: str = ".npy"

    def decode(self, codes: ClassCodes) -> Values:
        """Return the array that has these codes. Colours are along its last axis."""
        if self.colours.channels:
            values = self.values.astype(np.uint32)[codes]
            shifts = 8 * np.arange(self.colours.channels)[::-1]
            return np.stack([(values >> shift).astype(np.uint8) for shift in shifts], axis=-1)
        unanswered = codes < 0
        if not unanswered.any():
            return self.values.astype(self.dtype)[codes]
        missing = UNANSWERED if self.missing is None else self.missing
        wide = np.result_type(self.dtype, np.min_scalar_type(missing))
        return np.where(unanswered, missing, self.values[codes]).astype(wide)


class Pictures(NamedTuple):
    """The images that the items are pixels of: their ids and shapes, and what values of pixels stand for."""

    images: Values
    shapes: tuple[tuple[int, ...], ...]
    coding: Coding

    @property
    def offsets(self) -> Indices:
        """Where the pixels of each image begin among the items, and their number."""
        sizes = [math.prod(shape) for shape in self.shapes]
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


class MaskCollector:
    """Masks as they are met, one by one."""

    def __init__(self, colours: Colours | None = None, suffix: str = ".npy") -> None:
        self._entries: dict[tuple[Any, Any], Values] = {}
        self._shapes: dict[Any, tuple[tuple[int, ...], str]] = {}
        self._colours, self._suffix = colours or Colours(), suffix

    def add(self, image: object, reader: object, array: ArrayLike, name: str) -> None:
        """Add a mask: an array of numbers; `name` stands for it in messages."""
        numbers = to_numbers(array, f"The {name}")
        if numbers.ndim not in NEIGHBOURHOODS or 0 in numbers.shape:
            raise InputError(
                f"The {name} has the shape {numbers.shape}.", "Give one with two axes, or with three for a volume."
            )
        shape, first = self._shapes.setdefault(image, (numbers.shape, name))
        if shape != numbers.shape:
            raise InputError(
                f"The {name} has the shape {numbers.shape}, and the {first} has {shape}.",
                "All masks of an image must have one size: give them that of the image.",
            )
        self._entries[image, reader] = numbers

    def finish(
        self, classes: Mapping[Any, Any] | None, missing: int | None
    ) -> tuple[Pictures, Values, tuple[Mapping[int, ClassCodes], ...]]:
        """Return all that was added, as the arguments of `Masks`; see `Masks.from_arrays`."""
        if not self._entries:
            raise InputError("There are no masks.", "Give at least one.")
        if missing is not None and not is_whole(missing):
            raise parameter_error("missing", "Masks", "a whole number or None", missing)
        values = np.unique(np.concatenate([_find_values(array) for array in self._entries.values()]))
        values = values[(values != NOTHING) & (values != missing)]
        self._check_values(values)
        labels, shown, code_of_value = self._name_values(values, classes)
        dtype = np.result_type(*{array.dtype for array in self._entries.values()})
        images = list(self._shapes)
        names = list(dict.fromkeys(reader for _, reader in self._entries))
        reader_codes, readers = encode_sorted(to_column(names, "Ids of readers"))
        place_of_reader = dict(zip(names, reader_codes.tolist(), strict=True))
        by_image: dict[Any, dict[int, ClassCodes]] = {image: {} for image in images}
        for image, reader in list(self._entries):
            array = self._entries.pop((image, reader))  # not needed any more
            by_image[image][place_of_reader[reader]] = _encode(array, values, code_of_value)
        pictures = Pictures(
            encode_in_order_of_appearance(to_column(images, "Ids of images"))[1],
            tuple(shape for shape, _ in self._shapes.values()),
            Coding(labels, shown, missing, dtype, self._colours, self._suffix),
        )
        return pictures, readers, tuple(by_image.values())

    def _check_values(self, values: Indices) -> None:
        """Raise an error for values that are hardly classes."""
        if not len(values):
            raise InputError("The masks have no answers: every pixel of them is missing.")
        if len(values) > MOST_CLASSES:
            found = listing(self._spell(value) for value in values.tolist())
            raise InputError(
                f"The masks hold {len(values):,} different values: {found}. There can be {MOST_CLASSES} classes.",
                "Check that these are masks of classes, and not images, numbers of single objects, or pictures whose "
                "edges are smoothed.",
            )

    def _name_values(self, values: Indices, classes: object) -> tuple[Values, Indices, NDArray[np.int8]]:
        """Return the classes, the value that stands for each, and the class of each of `values`."""
        if classes is None:
            labels = objects([self._spell(value) for value in values.tolist()]) if self._colours.channels else values
            return labels, values, np.arange(len(values), dtype=np.int8)
        if not isinstance(classes, Mapping) or not classes:
            raise parameter_error("classes", "Masks", "a dict that names values, such as {0: 'background'}", classes)
        named = {self._read_value(value): name for value, name in classes.items()}
        unnamed = [self._spell(value) for value in values.tolist() if value not in named]
        if unnamed:
            raise InputError(
                f"The masks hold {listing(unnamed)}, and only {listing(classes)} have a name.",
                Sentence("Name all values with {classes}."),
                Sentence("If it is the value of pixels without an answer, name it with {missing}."),
                keyword="classes",
            )
        codes, labels = encode_in_order_of_appearance(to_column(list(named.values()), "Names of classes"))
        if len(labels) > MOST_CLASSES:
            raise parameter_error("classes", "Masks", f"a dict with at most {MOST_CLASSES} names", classes)
        shown = np.array(list(named), np.int64)[np.unique(codes, return_index=True)[1]]
        place = dict(zip(named, codes.tolist(), strict=True))
        return labels, shown, np.array([place[value] for value in values.tolist()], np.int8)

    def _spell(self, value: int) -> Any:
        """Return a value as users write it."""
        digits = 2 * self._colours.channels
        return f"#{value:0{digits}x}" if digits else value

    def _read_value(self, value: Any) -> int:
        """Return the value that a user writes."""
        channels = self._colours.channels
        with suppress(ValueError):
            if channels and isinstance(value, str) and len(value) == 1 + 2 * channels and value[0] == "#":
                return int(value[1:], 16)
        if not channels and is_whole(value):
            return int(value)
        example = "colours such as '#ff0000'" if channels else "whole numbers"
        raise parameter_error("classes", "Masks", f"a dict whose keys are {example}", value)


def to_numbers(array: Any, name: str) -> Values:
    """Return an array of whole numbers or truth values, with `NOTHING` where it holds none."""
    try:
        numbers = np.asarray(np.ma.getdata(array))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array of whole numbers; {first_line(error)}.") from error
    if numbers.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold whole numbers or truth values. It holds {numbers.dtype}.")
    empty = np.isnan(numbers) if numbers.dtype.kind == "f" else np.zeros((), bool)
    if isinstance(array, np.ma.MaskedArray):
        empty = empty | np.ma.getmaskarray(array)
    if numbers.dtype.kind == "f":
        odd = numbers[~empty & ((numbers != np.round(numbers)) | (np.abs(numbers) >= 2**53))]
        if len(odd):
            raise InputError(
                f"{name} holds {listing(odd[:10].tolist())}.",
                "Give the classes as whole numbers; compare probabilities with .5 first.",
            )
    elif numbers.dtype == np.uint64 and numbers.size and numbers.max() > np.iinfo(np.int64).max:
        raise InputError(f"{name} holds {numbers.max()}, which is too large for a class.")
    if empty.any():
        return np.where(empty, NOTHING, np.where(empty, 0, numbers).astype(np.int64))
    return numbers.astype(np.int64) if numbers.dtype.kind == "f" or numbers.dtype == np.uint64 else numbers


def _find_values(array: Values) -> Indices:
    """Return the values of a mask, sorted; only pixels that differ from the one before them are looked at."""
    flat = array.ravel()
    first = np.ones(flat.size, bool)
    np.not_equal(flat[1:], flat[:-1], out=first[1:])
    return np.unique(flat[first]).astype(np.int64)


def _encode(array: Values, values: Indices, codes: ClassCodes) -> ClassCodes:
    """Return the code of each pixel, `codes[i]` where it has `values[i]`, and -1 where it has none of them."""
    if array.dtype in (np.bool_, np.uint8):
        table = np.full(256, UNANSWERED, np.int8)
        inside = (values >= 0) & (values < 256)
        table[values[inside]] = codes[inside]
        return table[array.astype(np.uint8, copy=False)]
    place = np.minimum(np.searchsorted(values, array), len(values) - 1)
    return np.where(values[place] == array, codes[place], np.int8(UNANSWERED))


class FusedMasks(Mapping[Any, Values]):
    """One mask for each image: ``masks[image]`` is an array of the values that the readers' masks hold.

    Attributes
    ----------
    confidence : dict
        For each image the probability that the value of each pixel is right.
    """

    def __init__(self, pictures: Pictures, codes: ClassCodes, confidence: Floats) -> None:
        self.pictures = pictures
        self._codes = split_pixels(pictures, codes)
        self.confidence = dict(zip(pictures.images.tolist(), split_pixels(pictures, confidence), strict=True))
        self._index = {image: i for i, image in enumerate(self.confidence)}

    def __getitem__(self, image: object) -> Values:
        return self.pictures.coding.decode(self._codes[self._index[image]])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        return f"FusedMasks({describe_pictures(self.pictures)})"


def split_pixels(pictures: Pictures, values: Values) -> list[Values]:
    """Return what is known of each item as one array for each image."""
    parts = np.split(values, pictures.offsets[1:-1])
    return [part.reshape(shape) for part, shape in zip(parts, pictures.shapes, strict=True)]


def describe_pictures(pictures: Pictures, n_readers: int | None = None) -> str:
    """Return in words what there is."""
    labels = pictures.coding.labels
    classes = "1 class" if len(labels) == 1 else f"{len(labels)} classes"
    drawn = "" if n_readers is None else f" of {plural(n_readers, 'reader')}"
    pixels = plural(int(pictures.offsets[-1]), "pixel")
    return f"{plural(len(pictures.images), 'image')}{drawn}: {pixels}, {classes}: {listing(labels.tolist())}"


def find_disputes(by_reader: Mapping[int, ClassCodes]) -> Truths:
    """Return the pixels to which readers give different classes."""
    first, *others = by_reader.values()
    known, disputed = first.copy(), np.zeros(first.shape, bool)
    for codes in others:
        disputed |= (codes != known) & (codes >= 0) & (known >= 0)
        np.copyto(known, codes, where=known < 0)
    return disputed
