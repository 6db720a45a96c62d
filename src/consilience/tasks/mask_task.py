"""The task of masks: the items are the pixels of images, linked to their neighbours.

Two readers are copies if their masks are the same. `consilience.inference.copies` judges workers by how often they
agree, and takes items as independent of each other. Pixels are not: two careful readers agree about whole stretches of
a boundary, and would look like copies. So they must agree about every pixel that both answered and about which any
readers disagree, and there must be at least `FEWEST` such pixels to which both give one class, and as many to which
they give another. Two readers who both saw nothing have drawn the same mask, and are no copies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from ..answers.columns import to_column
from ..answers.graph import Graph
from ..answers.responses import Responses
from ..answers.vocabulary import lookup
from ..errors import ParameterError, Sentence, parameter_error, plural
from ..specs import NOT_SAVED
from .base import AnyTask, Fused, Labels, Links, Posed, Refusal, Task, Writers, list_given
from .mask_arrays import Pictures
from .masks import FusedMasks, Masks, cut_tiles, is_small, list_known_pixels
from .table_task import TABLE, TableTask

FEWEST = 50
# So many of the pixels about which readers disagree are looked at, evenly spaced.
MOST_PIXELS = 20_000


@dataclass(frozen=True, eq=False)
class MasksTask(Task[Masks]):
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

    def to_saved(self, texts: bool) -> TableTask:  # noqa: ARG002
        """Return the task of a table: files hold no sizes of images."""
        return TABLE

    def find_copies(self, r: Responses) -> list[list[int]]:
        """Return groups of readers whose masks are the same."""
        return find_same_masks(r)

    def write(self, fused: Fused, labels: object, path: str, writers: Writers) -> None:  # noqa: ARG002
        """Write one mask for each image."""
        writers.write_masks(draw_masks(self, fused.labels), path)


def draw_masks(task: AnyTask, labels: Labels, masks: Masks | None = None) -> FusedMasks:
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


def find_same_masks(r: Responses) -> list[list[int]]:
    """Return groups of readers whose masks are the same, each by the indices of its members."""
    from scipy.sparse.csgraph import connected_components  # which takes long to load

    votes = _list_disputed(r)
    pairs = [pair for pair in combinations(range(r.n_workers), 2) if _are_same(votes[pair[0]], votes[pair[1]])]
    if not pairs:
        return []
    first, second = np.array(pairs).T
    linked = coo_array((np.ones(len(pairs)), (first, second)), shape=(r.n_workers, r.n_workers))
    _, group = connected_components(linked, directed=False)
    return [np.flatnonzero(group == number).tolist() for number in np.flatnonzero(np.bincount(group) > 1)]


def _list_disputed(r: Responses) -> NDArray[np.int32]:
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
