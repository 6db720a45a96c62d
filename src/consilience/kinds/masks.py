"""Masks: the items are the pixels of images that several readers segmented, linked to their neighbours.

Masks are held as codes of 8 bits: code c stands for the class `labels[c]`, and -1 for a pixel without an answer. The
pixels of all images are numbered one after the other, each image row by row (C order). Image i with P_i pixels has
the items o_i, ..., o_i + P_i - 1, where o_i = P_0 + ... + P_{i-1}. These numbers are the ids of the items, since ids
such as (image, row, column) would take far more memory than the masks. `Masks.locate` leads back.

Two readers are copies if their masks are the same. `consilience.inference.copies` judges workers by how often they
agree, and takes items as independent of each other. Pixels are not: two careful readers agree about whole stretches of
a boundary, and would look like copies. So they must agree about every pixel that both answered and about which any
readers disagree, and there must be at least `FEWEST_COMMON_PIXELS` such pixels to which both give one class, and as
many to which they give another. Two readers who both saw nothing have drawn the same mask, and are no copies.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..answers.answers import Answers
from ..answers.columns import Indices, Values, encode_in_order_of_appearance, encode_sorted, lookup, to_column
from ..answers.graph import NEIGHBOURHOODS, Graph
from ..answers.tables import read_names
from ..errors import (
    InputError,
    ParameterError,
    Sentence,
    first_line,
    listing,
    parameter_error,
    plural,
    shorten,
    warn_of,
)
from ..kernels import Floats
from ..limits import require_few
from ..options import is_whole
from .base import TABLE, AnyKind, Fused, FusedLabels, Kind, TableKind, list_given

ClassCodes: TypeAlias = NDArray[np.int8]

# Codes have 8 bits. More values than this are hardly classes.
MOST_MASK_CLASSES = 128
# In arrays of numbers: no number.
NO_NUMBER = np.iinfo(np.int64).min
# In codes of classes: no answer.
UNANSWERED = -1
# Of copies: see above. So many of the pixels about which readers disagree are looked at, evenly spaced.
FEWEST_COMMON_PIXELS, MOST_PIXELS = 50, 20_000
# Among more readers, those whose masks are the same are not looked for: each is compared with each.
MOST_READERS = 200


@dataclass(frozen=True, eq=False)
class Masks:
    """Masks of images, drawn by several readers. Build one with `from_arrays` or `consilience.read_masks`.

    Attributes
    ----------
    images : ndarray
        Ids of the images, in the order in which they were given.
    shapes : tuple of tuple of int
        Shape of each image: two numbers, or three for a volume.
    readers : ndarray
        Ids of the readers, sorted.
    classes : ndarray
        What pixels can be: the values found in the masks, sorted, or the names given to them.
    codes : tuple of dict
        The codes of each image, by the index of the reader; () where only the images are meant.
    values : ndarray
        The number that stands for each class in masks.
    missing : int or None
        The number of pixels without an answer.
    dtype : dtype
        Type of the arrays.
    suffix : str
        What files are called: ".png" or ".npy".

    Examples
    --------
    >>> import consilience as cs
    >>> scan = {"ann": [[0, 1, 1], [0, 0, 1]], "bob": [[0, 1, 1], [0, 1, 1]], "cy": [[1, 1, 1], [0, 1, 1]]}
    >>> masks = cs.Masks.from_arrays({"scan 1": scan}, classes={0: "healthy", 1: "lesion"})
    >>> masks
    Masks(1 image of 3 readers: 6 pixels, 2 classes: 'healthy', 'lesion')
    >>> masks.to_responses()
    Answers(18 answers: 6 items x 3 workers, 2 classes: 'healthy', 'lesion')
    """

    images: Values
    shapes: tuple[tuple[int, ...], ...]
    readers: Values
    classes: Values
    codes: tuple[Mapping[int, ClassCodes], ...]
    values: Indices
    missing: int | None
    dtype: np.dtype[Any]
    suffix: str = ".npy"

    def __repr__(self) -> str:
        drawn = f" of {plural(len(self.readers), 'reader')}"
        return f"Masks({self.describe(drawn)})"

    def describe(self, drawn: str = "") -> str:
        """What images there are, in words."""
        classes = "1 class" if len(self.classes) == 1 else f"{len(self.classes)} classes"
        pixels = plural(int(self.offsets[-1]), "pixel")
        return f"{plural(len(self.images), 'image')}{drawn}: {pixels}, {classes}: {listing(self.classes.tolist())}"

    @property
    def offsets(self) -> Indices:
        """Where the pixels of each image begin among the items, and their number."""
        return np.concatenate([[0], np.cumsum([math.prod(shape) for shape in self.shapes], dtype=np.int64)])

    def split(self, values: Values) -> dict[Any, Values]:
        """What is known of each item, as one array for each image."""
        parts = np.split(values, self.offsets[1:-1])
        shaped = [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]
        return dict(zip(self.images.tolist(), shaped, strict=True))

    def decode(self, codes: ClassCodes) -> Values:
        """The mask that has these codes."""
        unanswered = codes < 0
        if not unanswered.any():
            return self.values.astype(self.dtype)[codes]
        missing = UNANSWERED if self.missing is None else self.missing
        wide = np.result_type(self.dtype, np.min_scalar_type(missing))
        return np.where(unanswered, missing, self.values[codes]).astype(wide)

    @classmethod
    def from_arrays(
        cls,
        arrays: Any,
        *,
        readers: ArrayLike | None = None,
        classes: Mapping[int, Any] | None = None,
        missing: int | None = UNANSWERED,
    ) -> Masks:
        """Take masks from arrays.

        Parameters
        ----------
        arrays : dict, or array of shape (n_readers, height, width) or (n_readers, depth, height, width)
            ``{image: {reader: array}}``, with arrays of whole numbers or of truth values, in two dimensions or three.
            The arrays of an image have one shape. A reader may have left out images. Or one array, of one image.
        readers : array-like, optional
            Ids of the readers, if `arrays` is one array. Default: 0, 1, 2, ...
        classes : dict, optional
            Names of the values, such as ``{0: "background", 1: "lesion"}``, in the order that results have. All
            values that masks hold need one, and may have the same name. Default: the values are the classes.
        missing : int or None
            The value of pixels about which a reader says nothing. So do NaN and masked entries.

        Examples
        --------
        >>> import consilience as cs, numpy as np
        >>> cs.Masks.from_arrays(np.zeros((5, 64, 48), int))
        Masks(1 image of 5 readers: 3,072 pixels, 1 class: 0)
        """
        given = arrays
        if not isinstance(given, Mapping):
            stack = to_whole_numbers(arrays, "The array")
            if stack.ndim - 1 not in NEIGHBOURHOODS or not len(stack):
                raise InputError(
                    f"An array of masks has the readers along its first axis, then two or three axes of pixels. This "
                    f"one has the shape {stack.shape}.",
                    "For several images, give a dict: {image: {reader: array}}.",
                )
            check_readers(len(stack))
            given = {0: dict(zip(read_names(readers, len(stack), "readers").tolist(), stack, strict=True))}
        elif readers is not None:
            raise parameter_error("readers", "Masks.from_arrays", "None, since the dicts name the readers", readers)
        entries = []
        for image, by_reader in given.items():
            if not isinstance(by_reader, Mapping):
                raise parameter_error("arrays", "Masks.from_arrays", "{image: {reader: array}}", {image: by_reader})
            for reader, array in by_reader.items():
                entries.append((image, reader, array, f"mask of {shorten(image)} by {shorten(reader)}"))
        return encode_masks(entries, classes, missing)

    def to_responses(self) -> Answers:
        """Return every pixel as an item, and every reader's class of it as an answer. Item ids are 0, 1, 2, ...

        The answers do not tell which image a pixel is in. A model that is fitted to the `Masks` themselves knows it.
        """
        counts, workers, labels = [], [], []
        for by_reader in self.codes:
            members = np.array(sorted(by_reader), np.int32)
            answers = np.stack([by_reader[m].ravel() for m in members], axis=1)
            answered = answers >= 0
            counts.append(answered.sum(axis=1))
            workers.append(np.broadcast_to(members, answers.shape)[answered])
            labels.append(answers[answered])
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        return Answers(
            offsets=offsets,
            worker=np.concatenate(workers),
            label=np.concatenate(labels).astype(np.int32),
            weight=None,
            workers=self.readers,
            labels=self.classes,
            classes=self.classes,
            keys=np.arange(len(offsets) - 1),
        )

    def graph(self, connectivity: int | None = None) -> Graph:
        """Return the graph that links each pixel to its neighbours in the same image.

        Parameters
        ----------
        connectivity : int, optional
            Neighbours of an inner pixel, as in `Graph.grid`.
        """
        return Graph.grid(list(self.shapes), connectivity)

    def locate(self, items: ArrayLike) -> list[tuple[Any, ...]]:
        """Return image, row and column of items, the way back from their ids; of voxels all three coordinates.

        Examples
        --------
        >>> import consilience as cs, numpy as np
        >>> masks = cs.Masks.from_arrays({"a": {"ann": np.eye(2, dtype=int)}, "b": {"ann": np.eye(3, dtype=int)}})
        >>> masks.locate([3, 4, 12])
        [('a', 1, 1), ('b', 0, 0), ('b', 2, 2)]
        """
        wanted, offsets = np.asarray(items), self.offsets
        if wanted.dtype.kind not in "iu" or wanted.ndim != 1 or ((wanted < 0) | (wanted >= offsets[-1])).any():
            expected = f"whole numbers from 0 to {offsets[-1] - 1}"
            raise parameter_error("items", "Masks.locate", expected, items)
        owner = np.searchsorted(offsets, wanted, side="right") - 1
        names = self.images.tolist()
        return [
            (names[i], *map(int, np.unravel_index(int(pixel - offsets[i]), self.shapes[i])))
            for i, pixel in zip(owner.tolist(), wanted.tolist(), strict=True)
        ]

    def arrays(self) -> dict[Any, dict[Any, Values]]:
        """Return the masks as they were given: ``{image: {reader: array}}``."""
        readers, decode = self.readers.tolist(), self.decode
        return {
            image: {readers[m]: decode(codes) for m, codes in by_reader.items()}
            for image, by_reader in zip(self.images.tolist(), self.codes, strict=True)
        }


class FusedMasks(dict[Any, Values]):
    """One mask for each image: ``masks[image]`` is an array of the values that the readers' masks hold.

    Attributes
    ----------
    confidence : dict
        For each image the probability that the value of each pixel is right.
    """

    def __init__(self, pictures: Masks, codes: ClassCodes, confidence: Floats) -> None:
        super().__init__({image: pictures.decode(part) for image, part in pictures.split(codes).items()})
        self.confidence = pictures.split(confidence)
        self.suffix, self._images = pictures.suffix, pictures.describe()

    def __repr__(self) -> str:
        return f"FusedMasks({self._images})"


# ------------------------------------------------------------------------------------------------------- encoding


def check_readers(n_readers: int) -> None:
    """Raise an error for more masks of an image than there can be readers: the axes may be in another order."""
    problem = f"There are {n_readers:,} readers along the first axis"
    require_few("columns", n_readers, problem, "Give an array of the shape (readers, height, width).")


def encode_masks(
    entries: Iterable[tuple[Any, Any, ArrayLike, str]],
    classes: Mapping[Any, Any] | None,
    missing: int | None,
    suffix: str = ".npy",
) -> Masks:
    """Masks of arrays of numbers: image, reader, array, and what messages call it.

    `classes` and `missing` are as for `Masks.from_arrays`, `suffix` as in `Masks`.
    """
    if missing is not None and not is_whole(missing):
        raise parameter_error("missing", "Masks", "a whole number or None", missing)
    shapes: dict[Any, tuple[tuple[int, ...], str]] = {}
    given: list[tuple[Any, Any, Values]] = []
    for image, reader, array, name in entries:
        numbers = to_whole_numbers(array, f"The {name}")
        if numbers.ndim not in NEIGHBOURHOODS or 0 in numbers.shape:
            raise InputError(
                f"The {name} has the shape {numbers.shape}.", "Give one with two axes, or with three for a volume."
            )
        shape, first = shapes.setdefault(image, (numbers.shape, name))
        if shape != numbers.shape:
            raise InputError(
                f"The {name} has the shape {numbers.shape}, and the {first} has {shape}.",
                "All masks of an image must have one size: give them that of the image.",
            )
        given.append((image, reader, numbers))
    if not given:
        raise InputError("There are no masks.", "Give at least one.")
    values = np.unique(np.concatenate([np.unique(numbers).astype(np.int64) for _, _, numbers in given]))
    values = values[(values != NO_NUMBER) & (values != missing)]
    labels, shown, code_of_value = _name_values(values, classes)
    dtype = np.result_type(*{numbers.dtype for _, _, numbers in given})
    names = list(dict.fromkeys(reader for _, reader, _ in given))
    reader_codes, readers = encode_sorted(to_column(names, "Ids of readers"))
    number = dict(zip(names, reader_codes.tolist(), strict=True))
    by_image: dict[Any, dict[int, ClassCodes]] = {image: {} for image in shapes}
    while given:  # each array goes when it is encoded
        image, reader, numbers = given.pop(0)
        place = np.minimum(np.searchsorted(values, numbers), len(values) - 1)
        codes = np.where(values[place] == numbers, code_of_value[place], np.int8(UNANSWERED))
        by_image[image][number[reader]] = codes
    images = encode_in_order_of_appearance(to_column(list(shapes), "Ids of images"))[1]
    sizes = tuple(shape for shape, _ in shapes.values())
    return Masks(images, sizes, readers, labels, tuple(by_image.values()), shown, missing, dtype, suffix)


def to_whole_numbers(array: Any, name: str) -> Values:
    """An array of whole numbers or truth values, with `NO_NUMBER` where it holds none."""
    try:
        numbers = np.asarray(np.ma.getdata(array))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array of whole numbers; {first_line(error)}.") from error
    if numbers.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold whole numbers or truth values. It holds {numbers.dtype}.")
    empty = np.asarray(np.ma.getmaskarray(array))
    if numbers.dtype.kind == "f":
        empty = empty | np.isnan(numbers)
        odd = numbers[~empty & ((numbers != np.round(numbers)) | (np.abs(numbers) >= 2**53))]
        if len(odd):
            raise InputError(
                f"{name} holds {listing(odd[:10].tolist())}.",
                "Give the classes as whole numbers; compare probabilities with .5 first.",
            )
    if empty.any():
        return np.where(empty, NO_NUMBER, np.where(empty, 0, numbers).astype(np.int64))
    return numbers if numbers.dtype.kind in "bi" or numbers.dtype.itemsize < 8 else numbers.astype(np.int64)


def _name_values(values: Indices, classes: Mapping[Any, Any] | None) -> tuple[Values, Indices, ClassCodes]:
    """The classes, the value that stands for each, and the class of each of `values`."""
    if not len(values):
        raise InputError("The masks have no answers: every pixel of them is missing.")
    names = dict(zip(values.tolist(), values.tolist(), strict=True)) if classes is None else classes
    if not (isinstance(names, Mapping) and names and all(map(is_whole, names))):
        raise parameter_error("classes", "Masks", "a dict that names values, such as {0: 'background'}", classes)
    if max(len(values), len(names)) > MOST_MASK_CLASSES:
        raise InputError(
            f"The masks hold {len(values):,} different values: {listing(values.tolist())}. There can be "
            f"{MOST_MASK_CLASSES} classes.",
            "Check that these are masks of classes, and not images, or numbers of single objects.",
        )
    unnamed = [value for value in values.tolist() if value not in names]
    if unnamed:
        raise InputError(
            f"The masks hold {listing(unnamed)}, and only {listing(names)} have a name.",
            Sentence("Name all values with {classes}."),
            Sentence("If it is the value of pixels without an answer, name it with {missing}."),
            keyword="classes",
        )
    codes, labels = encode_in_order_of_appearance(to_column(list(names.values()), "Names of classes"))
    code_of, first = dict(zip(names, codes.tolist(), strict=True)), np.unique(codes, return_index=True)[1]
    of_values = np.array([code_of[each] for each in values.tolist()], np.int8)
    return labels, np.array(list(names), np.int64)[first], of_values


# ------------------------------------------------------------------------------------------------------ known masks


def list_known_pixels(masks: Masks, known: Masks) -> dict[str, Any]:
    """The classes of pixels that are known, as a table that models take as `gold`: item and label.

    Parameters
    ----------
    masks : Masks
        Whose pixels are the items.
    known : Masks
        Those of one reader, who is right. Images are found by their ids.
    """
    if len(known.readers) > 1:
        raise InputError(
            f"No masks are known: there are those of {plural(len(known.readers), 'reader')}, "
            f"{listing(known.readers.tolist())}.",
            "Give the masks of one reader.",
            keyword="gold",
        )
    place = lookup(masks.images, to_column(known.images))
    n_absent = int((place < 0).sum())
    if n_absent == len(place):
        raise InputError(
            f"No image is in both: the masks are of {listing(masks.images.tolist(), 3)}, those known of "
            f"{listing(known.images.tolist(), 3)}.",
            "Check that both use the same names.",
            keyword="gold",
        )
    if n_absent:
        warn_of(
            f"{n_absent:,} of {plural(len(place), 'image')} whose masks are known do not occur here, and are left out."
        )
    items, labels = [], []
    for i in np.flatnonzero(place >= 0).tolist():
        shape, image = known.shapes[i], int(place[i])
        if masks.shapes[image] != shape:
            raise InputError(
                f"The known mask of {shorten(known.images[i])} has the shape {shape}, and those of the readers "
                f"{masks.shapes[image]}.",
                "Give masks of the same size.",
                keyword="gold",
            )
        codes = known.codes[i][0].ravel()
        items.append(masks.offsets[image] + np.flatnonzero(codes >= 0))
        labels.append(known.classes[codes[codes >= 0]])
    return {"item": np.concatenate(items), "label": np.concatenate(labels)}


# --------------------------------------------------------------------------------------------------------- the kind


@dataclass(frozen=True, eq=False)
class MasksKind(Kind[Masks]):
    """The images whose pixels the items are, without what readers drew."""

    pictures: Masks

    name = "masks"
    brought = Masks
    title = "masks"
    is_saved = False
    item = "pixel"
    linked = True
    methods = ("to_masks",)
    origin = "", "masks"
    no_update = ("Masks cannot be added to a fit.", "Fit again, to the masks of all readers, with all known masks.")

    @classmethod
    def to_answers(cls, brought: Masks) -> tuple[MasksKind, Answers]:
        """The class that readers gave to each pixel."""
        return cls(replace(brought, codes=())), brought.to_responses()

    @classmethod
    def describe(cls, brought: Masks) -> str:
        """How many masks there are, by whom and of what."""
        masks = plural(sum(map(len, brought.codes)), "mask")
        return f"{masks} by {plural(len(brought.readers), 'reader')} of {plural(len(brought.codes), 'image')}"

    @classmethod
    def make_graph(cls, brought: Masks) -> Graph:
        """The graph that links pixels to their neighbours."""
        return brought.graph()

    @classmethod
    def take_known(
        cls, brought: Masks, gold: object, open_known: Callable[[object, object], object]
    ) -> tuple[Masks, object]:
        """The classes of pixels that known masks tell."""
        given = [open_known(each, brought) for each in list_given(gold)]
        return brought, [list_known_pixels(brought, each) if isinstance(each, Masks) else each for each in given]

    def to_saved(self, texts: bool) -> TableKind:  # noqa: ARG002
        """The kind of a table: files hold no sizes of images."""
        return TABLE

    def find_copies(self, r: Answers) -> list[list[int]]:
        """Groups of readers whose masks are the same, each by the indices of its members."""
        from scipy.sparse.csgraph import connected_components  # which takes a while to load

        answered = np.flatnonzero(np.diff(r.offsets))
        if r.n_workers > MOST_READERS or not len(answered):
            return []
        starts = r.offsets[answered]
        disputed = answered[np.minimum.reduceat(r.label, starts) != np.maximum.reduceat(r.label, starts)]
        chosen = disputed[:: max(1, -(-len(disputed) // MOST_PIXELS))]
        answers, place = r.answers_about(chosen)
        votes = np.full((r.n_workers, len(chosen)), -1, np.int32)
        votes[r.worker[answers], place] = r.label[answers]
        same = np.zeros((r.n_workers, r.n_workers), bool)
        for one, other in itertools.combinations(range(r.n_workers), 2):
            a, b = votes[one], votes[other]
            both = (a >= 0) & (b >= 0)
            same[one, other] = (a == b)[both].all() and int((np.bincount(a[both]) >= FEWEST_COMMON_PIXELS).sum()) > 1
        n_groups, group = connected_components(same, directed=False)
        groups = [np.flatnonzero(group == number).tolist() for number in range(n_groups)]
        return [members for members in groups if len(members) > 1]

    def from_labels(self, fused: Fused, labels: object) -> FusedMasks:  # noqa: ARG002
        """One mask for each image."""
        return draw_masks(self, fused.labels)


def draw_masks(kind: AnyKind, labels: FusedLabels, masks: Masks | None = None) -> FusedMasks:
    """One mask for each image, of a model that was fitted to `Masks`; see `Model.to_masks`."""
    if masks is not None and not isinstance(masks, Masks):
        raise parameter_error("masks", "to_masks", "the Masks that the model was fitted to", masks)
    pictures = masks if masks is not None else getattr(kind, "pictures", None)
    if pictures is None:
        raise ParameterError(
            "This model does not know of which images its items are pixels.",
            Sentence("If it was fitted to Masks, and loaded from a file, give them with {masks}."),
            keyword="masks",
        )
    codes = lookup(pictures.classes, to_column(labels.classes))
    if len(labels.codes) != pictures.offsets[-1] or (codes < 0).any():
        raise ParameterError("These are not the masks that the model was fitted to.", keyword="masks")
    return FusedMasks(pictures, codes.astype(np.int8)[labels.codes], labels.confidence)
