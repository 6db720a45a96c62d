"""Label matrices in .npy files: one row per item, one column per worker, -1 for no answer, as snorkel has them."""

from __future__ import annotations

import os

from ..answers.dialects.register import DIALECTS
from ..answers.frames import open_frame
from ..answers.tables import Table
from ..errors import InputError, first_line, listing
from ..memory import require_memory

SUFFIX = next(each.suffix for each in DIALECTS if each.name == "matrix")


def open_matrix(path: str) -> Table:
    """Return the matrix in a file as a table with one column per worker, called 0, 1, 2, ..."""
    import numpy as np

    try:
        with open(path, "rb") as stream:  # NumPy leaves a damaged file open
            require_memory(os.path.getsize(path), f"{path!r} holds a matrix")
            matrix = np.load(stream, allow_pickle=False)
    except InputError:
        raise
    except Exception as error:  # whatever NumPy meets in a damaged file
        raise InputError(
            f"{path!r} cannot be read: {first_line(error)}.", "Give what numpy.save wrote, without objects."
        ) from error
    shape = getattr(matrix, "shape", None)
    if shape is None or len(shape) != 2 or 0 in shape:
        found = f"It has the shape {shape}" if shape is not None else f"It holds {listing(matrix)}"
        raise InputError(
            f"{path!r} must hold a matrix with items as rows and workers as columns. {found}.",
            "For probabilities, see Responses.from_probabilities.",
        )
    return open_frame({str(w): matrix[:, w] for w in range(shape[1])}, path)
