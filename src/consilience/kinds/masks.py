"""The task of masks: the items are the pixels of images that several readers segmented, linked to their neighbours.

The pixels of all images are numbered one after the other, each image row by row (C order). Image i with P_i pixels has
the items o_i, ..., o_i + P_i - 1, where o_i = P_0 + ... + P_{i-1}. These numbers are the ids of the items, since ids
such as (image, row, column) would take far more memory than the masks. `Masks.locate` and `Masks.pixels` lead back.

How to fuse large masks is found out on a part of them. Whether neighbouring pixels help, and how strongly to couple
them, takes many fits. For large images a few tiles tell as much, since errors show only where readers disagree, and
that is a small part of the pixels. So `N_TILES` tiles in which readers disagree are taken, and fused as small masks
are. Half of them are drawn at random. The others are those of `N_LOOKED_AT` further ones in which the answers vary
most, since within one region all neighbours agree whatever readers do. All pixels are then fitted once, with the
coupling found on the tiles, or without a graph if it is of no use there.

Two readers are copies if their masks are the same. `consilience.inference.copies` judges workers by how often they
agree, and takes items as independent of each other. Pixels are not: two careful readers agree about whole stretches of
a boundary, and would look like copies. So they must agree about every pixel that both answered and about which any
readers disagree, and there must be at least `FEWEST` such pixels to which both give one class, and as many to which
they give another. Two readers who both saw nothing have drawn the same mask, and are no copies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array

from ..answers.answers import Answers
from ..answers.columns import Indices, Values, lookup, objects, to_column
from ..answers.graph import NEIGHBOURHOODS, Graph
from ..answers.tables import MOST_COLUMNS, read_names
from ..errors import InputError, ParameterError, Sentence, listing, parameter_error, plural, shorten, warn_of
from ..kernels import Truths
from ..specs import NOT_SAVED
from .base import TABLE, AnyKind, Fused, Kind, Labels, Links, Posed, Refusal, TableKind, Writers, list_given
from .mask_arrays import (
    UNANSWERED,
    ClassCodes,
    FusedMasks,
    MaskCollector,
    Pictures,
    describe_pictures,
    find_disputes,
    to_numbers,
)

# Tiles have this many pixels along each axis, in two dimensions and in three.
N_TILES, SIDES = 12, {2: 48, 3: 13}
N_LOOKED_AT = 200
# So many pixels are fused as they are. The tiles have as many.
SMALL = 30_000


def check_readers(n_readers: int) -> None:
    """Raise an error for more masks of an image than there can be readers: the axes may be in another order."""
    if n_readers > MOST_COLUMNS:
        raise InputError(
            f"There are {n_readers:,} readers along the first axis, and at most {MOST_COLUMNS:,} are read.",
            "Give an array of the shape (readers, height, width).",
        )


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

    pictures: Pictures
    readers: Values
    codes: tuple[Mapping[int, ClassCodes], ...]  # of each image, by the index of the reader

    def __repr__(self) -> str:
        return f"Masks({describe_pictures(self.pictures, len(self.readers))})"

    @property
    def images(self) -> Values:
        """Ids of the images."""
        return self.pictures.images

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each image."""
        return self.pictures.shapes

    @property
    def classes(self) -> Values:
        """What pixels can be."""
        return self.pictures.coding.labels

    @classmethod
    def from_arrays(
        cls,
        arrays: object,
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
        if isinstance(arrays, Mapping):
            if readers is not None:
                raise parameter_error("readers", "Masks.from_arrays", "None, since the dicts name the readers", readers)
            given = _read_dicts(arrays)
        else:
            stack = to_numbers(arrays, "The array")
            if stack.ndim - 1 not in NEIGHBOURHOODS or not len(stack):
                raise InputError(
                    f"An array of masks has the readers along its first axis, then two or three axes of pixels. This "
                    f"one has the shape {stack.shape}.",
                    "For several images, give a dict: {image: {reader: array}}.",
                )
            check_readers(len(stack))
            names = read_names(readers, len(stack), "readers")
            given = {0: dict(zip(names.tolist(), stack, strict=True))}
        collector = MaskCollector()
        for image, by_reader in given.items():
            for reader, array in by_reader.items():
                collector.add(image, reader, array, f"mask of {shorten(image)} by {shorten(reader)}")
        return cls(*collector.finish(classes, missing))

    def to_responses(self) -> Answers:
        """Return every pixel as an item, and every reader's class of it as an answer. Item ids are 0, 1, 2, ...

        The answers do not tell which image a pixel is in. A model that is fitted to the `Masks` themselves knows it.
        """
        starts = self.pictures.offsets
        n_pixels = int(starts[-1])
        counts = np.zeros(n_pixels, np.int64)
        for begin, by_reader in zip(starts[:-1], self.codes, strict=True):
            for codes in by_reader.values():
                counts[begin : begin + codes.size] += codes.ravel() >= 0
        offsets = np.concatenate([[0], np.cumsum(counts)])
        worker, label = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int32)
        for begin, end, by_reader in zip(starts[:-1], starts[1:], self.codes, strict=True):
            members = np.array(sorted(by_reader), np.int32)
            answers = np.stack([by_reader[m].ravel() for m in members], axis=1)
            answered = answers >= 0
            here = slice(offsets[begin], offsets[end])
            worker[here] = np.broadcast_to(members, answers.shape)[answered]
            label[here] = answers[answered]
        return Answers(
            offsets=offsets,
            worker=worker,
            label=label,
            weight=None,
            workers=self.readers,
            labels=self.classes,
            classes=self.classes,
            keys=np.arange(n_pixels),
        )

    def are_complete(self) -> bool:
        """Tell whether every pixel has an answer."""
        return all(bool(np.any([codes >= 0 for codes in by_reader.values()], axis=0).all()) for by_reader in self.codes)

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
        wanted, offsets = np.asarray(items), self.pictures.offsets
        if wanted.dtype.kind not in "iu" or wanted.ndim != 1 or ((wanted < 0) | (wanted >= offsets[-1])).any():
            expected = f"whole numbers from 0 to {offsets[-1] - 1}"
            raise parameter_error("items", "Masks.locate", expected, items)
        owner = np.searchsorted(offsets, wanted, side="right") - 1
        names = self.images.tolist()
        return [
            (names[i], *map(int, np.unravel_index(int(pixel - offsets[i]), self.shapes[i])))
            for i, pixel in zip(owner.tolist(), wanted.tolist(), strict=True)
        ]

    def pixels(self, image: object) -> Indices:
        """Return the items that are the pixels of an image, in its shape.

        Examples
        --------
        >>> import consilience as cs
        >>> masks = cs.Masks.from_arrays([[[0, 1, 1], [0, 0, 1]]])
        >>> masks.pixels(0)
        array([[0, 1, 2],
               [3, 4, 5]])
        """
        names = self.images.tolist()
        if image not in names:
            raise parameter_error("image", "Masks.pixels", f"one of {listing(names)}", image)
        i = names.index(image)
        return np.arange(self.pictures.offsets[i], self.pictures.offsets[i + 1]).reshape(self.shapes[i])

    def arrays(self) -> dict[Any, dict[Any, Values]]:
        """Return the masks as they were given: ``{image: {reader: array}}``."""
        readers, decode = self.readers.tolist(), self.pictures.coding.decode
        return {
            image: {readers[m]: decode(codes) for m, codes in by_reader.items()}
            for image, by_reader in zip(self.images.tolist(), self.codes, strict=True)
        }


def _read_dicts(arrays: Mapping[Any, Any]) -> Mapping[Any, Mapping[Any, Any]]:
    for image, by_reader in arrays.items():
        if not isinstance(by_reader, Mapping):
            raise parameter_error("arrays", "Masks.from_arrays", "{image: {reader: array}}", {image: by_reader})
    return arrays


def list_known_pixels(masks: Masks, known: Masks) -> dict[str, Any]:
    """Return the classes of pixels that are known, as a table that models take as `gold`: item and label.

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
    if (place < 0).all():
        raise InputError(
            f"No image is in both: the masks are of {listing(masks.images.tolist(), 3)}, those known of "
            f"{listing(known.images.tolist(), 3)}.",
            "Check that both use the same names.",
            keyword="gold",
        )
    if (place < 0).any():
        absent = f"{int((place < 0).sum()):,} of {plural(len(place), 'image')}"
        warn_of(f"{absent} whose masks are known do not occur here and were left out.")
    items, codes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for i, (image, shape) in enumerate(zip(place.tolist(), known.shapes, strict=True)):
        if image < 0:
            continue
        if masks.shapes[image] != shape:
            raise InputError(
                f"The known mask of {shorten(known.images[i])} has the shape {shape}, and those of the readers "
                f"{masks.shapes[image]}.",
                "Give masks of the same size.",
                keyword="gold",
            )
        found = known.codes[i][0].ravel().astype(np.int64)
        pixels = np.flatnonzero(found >= 0)
        items.append(masks.pictures.offsets[image] + pixels)
        codes.append(found[pixels])
    return {"item": np.concatenate(items), "label": known.classes[np.concatenate(codes)]}


class Tile(NamedTuple):
    """A part of an image: the index of the image, and where the part is in it."""

    image: int
    place: tuple[slice, ...]


def is_small(masks: Masks) -> bool:
    """Tell whether masks are small enough to be fused without a look at a part of them."""
    return bool(masks.pictures.offsets[-1] <= SMALL)


def cut_tiles(masks: Masks) -> Masks | None:
    """Return the tiles as images of their own; None if readers agree about all pixels."""
    disputed = [
        Tile(i, place)
        for i, by_reader in enumerate(masks.codes)
        for place in _find_disputed(masks.shapes[i], find_disputes(by_reader))
    ]
    if not disputed:
        return None
    tiles = choose_tiles(masks, disputed)
    codes = tuple({m: whole[each.place] for m, whole in masks.codes[each.image].items()} for each in tiles)
    shapes = tuple(next(iter(by_reader.values())).shape for by_reader in codes)
    pictures = masks.pictures._replace(images=objects([f"tile {i}" for i in range(len(tiles))]), shapes=shapes)
    return replace(masks, pictures=pictures, codes=codes)


def choose_tiles(masks: Masks, tiles: list[Tile]) -> list[Tile]:
    """Return the tiles to look at, in order of place."""
    drawn = np.random.default_rng(0).permutation(len(tiles))
    first, others = drawn[: N_TILES // 2], drawn[N_TILES // 2 :][:N_LOOKED_AT]
    varied = sorted(others.tolist(), key=lambda i: -measure_variety(masks, tiles[i]))
    return [tiles[i] for i in sorted([*first.tolist(), *varied[: N_TILES - len(first)]])]


def measure_variety(masks: Masks, tile: Tile) -> float:
    """Return the share of the answers in a tile that are not the most frequent one."""
    codes = np.concatenate([whole[tile.place].ravel() for whole in masks.codes[tile.image].values()])
    counts = np.bincount(codes[codes >= 0])
    return float(1 - counts.max() / counts.sum())


def _find_disputed(shape: tuple[int, ...], disputed: Truths) -> list[tuple[slice, ...]]:
    """Return the places of tiles with disputed pixels, row by row."""
    side = SIDES[len(shape)]
    starts = [range(0, extent, side) for extent in shape]
    for axis, firsts in enumerate(starts):
        disputed = np.logical_or.reduceat(disputed, list(firsts), axis=axis)
    places = product(*([slice(first, first + side) for first in firsts] for firsts in starts))
    return [place for place, found in zip(places, disputed.ravel().tolist(), strict=True) if found]


FEWEST = 50
# So many of the pixels about which readers disagree are looked at, evenly spaced.
MOST_PIXELS = 20_000
# Among more readers, those whose masks are the same are not looked for: each is compared with each.
MOST_READERS = 200


@dataclass(frozen=True, eq=False)
class MasksKind(Kind[Masks]):
    """The images whose pixels the items are."""

    pictures: Annotated[Pictures, NOT_SAVED]

    name = "masks"
    brought = Masks
    title = "masks"
    is_saved = False
    item = "pixel"
    reviewed = False
    no_update = Refusal("A fit to masks cannot go on.", "Fit again, to the masks of all readers, with all known masks.")
    no_joining = Refusal("Masks cannot be added to a fit.", "Fit again, to the masks of all readers.")

    @classmethod
    def pose(cls, brought: Masks) -> Posed:
        """Return the class that readers gave to each pixel."""
        return Posed(cls(brought.pictures), brought.to_responses())

    @classmethod
    def describe(cls, brought: Masks) -> str:
        """Return how many masks there are, by whom and of what."""
        masks = plural(sum(map(len, brought.codes)), "mask")
        return f"{masks} by {plural(len(brought.readers), 'reader')} of {plural(len(brought.codes), 'image')}"

    @classmethod
    def find_format(cls, brought: Masks) -> str:  # noqa: ARG003
        """Return the name of the format."""
        return cls.name

    @classmethod
    def find_links(cls, brought: Masks) -> Links:
        """Return how pixels are linked to their neighbours."""

        def take_part() -> tuple[Posed, Graph] | None:
            tiles = cut_tiles(brought)
            return None if tiles is None else (cls.pose(tiles), tiles.graph())

        return Links(brought.graph, is_small(brought), take_part, brought.are_complete)

    @classmethod
    def take_known(
        cls, brought: Masks, gold: object, open_known: Callable[[object, object], object]
    ) -> tuple[Masks, object]:
        """Return the classes of pixels that known masks tell."""
        given = [open_known(each, brought) for each in list_given(gold)]
        return brought, [list_known_pixels(brought, each) if isinstance(each, Masks) else each for each in given]

    @classmethod
    def convert(cls, brought: Masks, path: str, writers: Writers) -> None:
        """Write the masks of all readers."""
        writers.write_masks(brought, path)

    def to_saved(self, texts: bool) -> TableKind:  # noqa: ARG002
        """Return the task of a table: files hold no sizes of images."""
        return TABLE

    def find_copies(self, r: Answers) -> list[list[int]]:
        """Return groups of readers whose masks are the same."""
        return find_same_masks(r)

    def write(self, fused: Fused, labels: object, path: str, writers: Writers) -> None:  # noqa: ARG002
        """Write one mask for each image."""
        writers.write_masks(draw_masks(self, fused.labels), path)


def draw_masks(task: AnyKind, labels: Labels, masks: Masks | None = None) -> FusedMasks:
    """Return one mask for each image, of a model that was fitted to `Masks`; see `Model.to_masks`."""
    if masks is not None and not isinstance(masks, Masks):
        raise parameter_error("masks", "to_masks", "the Masks that the model was fitted to", masks)
    pictures = masks.pictures if masks is not None else getattr(task, "pictures", None)
    if pictures is None:
        raise ParameterError(
            "This model does not know of which images its items are pixels.",
            Sentence("If it was fitted to Masks, and loaded from a file, give them with {masks}."),
            keyword="masks",
        )
    codes = lookup(pictures.coding.labels, to_column(labels.classes))
    if len(labels.codes) != pictures.offsets[-1] or (codes < 0).any():
        raise ParameterError("These are not the masks that the model was fitted to.", keyword="masks")
    return FusedMasks(pictures, codes.astype(np.int8)[labels.codes], labels.confidence)


def find_same_masks(r: Answers) -> list[list[int]]:
    """Return groups of readers whose masks are the same, each by the indices of its members."""
    from scipy.sparse.csgraph import connected_components  # which takes long to load

    if r.n_workers > MOST_READERS:
        return []
    votes = _list_disputed(r)
    pairs = [pair for pair in combinations(range(r.n_workers), 2) if _are_same(votes[pair[0]], votes[pair[1]])]
    if not pairs:
        return []
    first, second = np.array(pairs).T
    linked = coo_array((np.ones(len(pairs)), (first, second)), shape=(r.n_workers, r.n_workers))
    _, group = connected_components(linked, directed=False)
    return [np.flatnonzero(group == number).tolist() for number in np.flatnonzero(np.bincount(group) > 1)]


def _list_disputed(r: Answers) -> NDArray[np.int32]:
    """Return what each reader says of pixels about which some disagree (reader, pixel); -1 where that is nothing."""
    answered = np.flatnonzero(np.diff(r.offsets))
    if not len(answered):
        return np.full((r.n_workers, 0), -1, np.int32)
    starts = r.offsets[answered]
    differ = np.minimum.reduceat(r.label, starts) != np.maximum.reduceat(r.label, starts)
    disputed = answered[differ]
    chosen = disputed[:: max(1, -(-len(disputed) // MOST_PIXELS))]
    answers, place = r.answers_about(chosen)
    votes = np.full((r.n_workers, len(chosen)), -1, np.int32)
    votes[r.worker[answers], place] = r.label[answers]
    return votes


def _are_same(a: NDArray[np.int32], b: NDArray[np.int32]) -> bool:
    both = (a >= 0) & (b >= 0)
    if (a != b)[both].any():
        return False
    return int((np.bincount(a[both]) >= FEWEST).sum()) > 1
