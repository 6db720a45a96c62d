"""How to fuse large masks, found out on a part of them.

Whether neighbouring pixels help, and how strongly to couple them, takes many fits. For large images a few tiles tell as
much, since errors show only where readers disagree, and that is a small part of the pixels. So `N_TILES` tiles in which
readers disagree are taken, and fused as small masks are. Half of them are drawn at random. The others are those of
`N_LOOKED_AT` further ones in which the answers vary most, since within one region all neighbours agree whatever readers
do. All pixels are then fitted once, with the coupling found on the tiles, or without a graph if it is of no use there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.vocabulary import objects
from .masks import ClassCodes, Masks

# Tiles have this many pixels along each axis, in two dimensions and in three.
N_TILES, SIDES = 12, {2: 48, 3: 13}
N_LOOKED_AT = 200
# So many pixels are fused as they are. The tiles have as many.
SMALL = 30_000


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


def find_disputes(by_reader: Mapping[int, ClassCodes]) -> NDArray[np.bool_]:
    """Return the pixels to which readers give different classes."""
    first, *others = by_reader.values()
    known, disputed = first.copy(), np.zeros(first.shape, bool)
    for codes in others:
        disputed |= (codes != known) & (codes >= 0) & (known >= 0)
        np.copyto(known, codes, where=known < 0)
    return disputed


def _find_disputed(shape: tuple[int, ...], disputed: NDArray[np.bool_]) -> list[tuple[slice, ...]]:
    """Return the places of tiles with disputed pixels, row by row."""
    side = SIDES[len(shape)]
    starts = [range(0, extent, side) for extent in shape]
    for axis, firsts in enumerate(starts):
        disputed = np.logical_or.reduceat(disputed, list(firsts), axis=axis)
    places = product(*([slice(first, first + side) for first in firsts] for firsts in starts))
    return [place for place, found in zip(places, disputed.ravel().tolist(), strict=True) if found]
