"""Masks that are known, of the images of others."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..answers.vocabulary import lookup, to_column
from ..errors import DataWarning, InputError, listing, plural, shorten, warn
from .masks import Masks


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
        warn(DataWarning(f"{absent} whose masks are known do not occur here and were left out."))
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
