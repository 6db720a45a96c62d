"""Neighbouring pixels of images, and voxels of volumes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import is_among, is_whole
from ..errors import Sentence, parameter_error, plural
from ..memory import NUMBER, require_memory

# For images of two and three dimensions: along how many axes at once a neighbour may be away, by how many neighbours an
# inner pixel then has.
NEIGHBOURHOODS = {2: {4: 1, 8: 2}, 3: {6: 1, 18: 2, 26: 3}}


def link_pixels(shape: Any, connectivity: int | None) -> tuple[NDArray[np.int64], NDArray[np.int64], int, str]:
    """Return both ends of the edges between pixels, the number of pixels, and a description; see `Graph.grid`."""
    sources, targets, kinds, first = [], [], [], 0
    for extent in _image_shapes(shape):
        known = NEIGHBOURHOODS[len(extent)]
        n_neighbours = max(known) if connectivity is None else connectivity
        if not is_among(n_neighbours, known):
            allowed = "4 or 8 for images" if len(extent) == 2 else "6, 18 or 26 for volumes"
            raise parameter_error("connectivity", "Graph.grid", allowed, connectivity)
        n_pixels = math.prod(extent)
        require_memory(
            NUMBER * (first + n_pixels) * (1 + n_neighbours),
            f"A grid of {plural(first + n_pixels, 'pixel')} x {n_neighbours} neighbours is too large",
            Sentence("Give a smaller {shape}."),
            keyword="shape",
        )
        index = np.arange(n_pixels).reshape(extent) + first
        for step in _half_neighbourhood(len(extent), known[n_neighbours]):
            here = tuple(slice(max(0, -d), n - max(0, d)) for d, n in zip(step, extent, strict=True))
            there = tuple(slice(max(0, d), n - max(0, -d)) for d, n in zip(step, extent, strict=True))
            sources.append(index[here].ravel())
            targets.append(index[there].ravel())
        first += index.size
        kinds.append(f"{n_neighbours}-neighbour grid")
    return np.concatenate(sources), np.concatenate(targets), first, " and ".join(dict.fromkeys(kinds))


def _image_shapes(shape: Any) -> list[tuple[int, ...]]:
    """Return the shapes of one or several images or volumes."""
    expected = "a tuple of two or three whole numbers >= 1, or a list of such tuples"
    try:
        shapes = [tuple(shape)] if all(np.ndim(n) == 0 for n in shape) else [tuple(size) for size in shape]
    except (TypeError, NotImplementedError) as error:
        raise parameter_error("shape", "Graph.grid", expected, shape) from error
    for extent in shapes:
        whole = all(is_whole(n) and n >= 1 for n in extent)
        if len(extent) not in NEIGHBOURHOODS or not whole:
            raise parameter_error("shape", "Graph.grid", expected, shape)
    if sum(math.prod(map(int, extent)) for extent in shapes) >= 2**31:  # indices of neighbours have 32 bits
        raise parameter_error("shape", "Graph.grid", "that of fewer than 2**31 pixels", shape)
    return [tuple(map(int, extent)) for extent in shapes]


def _half_neighbourhood(dimensions: int, reach: int) -> Sequence[tuple[int, ...]]:
    """Return the steps to neighbours at most `reach` axes away, one of each opposite pair."""
    steps = product((-1, 0, 1), repeat=dimensions)
    return [step for step in steps if 0 < sum(map(abs, step)) <= reach and step > (0,) * dimensions]
