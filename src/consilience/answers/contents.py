"""What items are: tokens of texts, pixels of images, or anything that numbers describe."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Indices
from ..errors import InputError, listing, plural
from ..specs import WHOLE_COUNTS, ArraySpec, ColumnSpec
from .columns import Values, spell_surrogates

ClassCodes: TypeAlias = NDArray[np.int8]
UNANSWERED = -1


class Passages(NamedTuple):
    """The texts whose tokens the items are, so that tags can become spans again.

    Attributes
    ----------
    documents : ndarray
        Ids of all documents, those without a reader included.
    texts : list of str or None
        Their texts; None if they were not saved.
    offsets : int64 array (D + 1,)
        Document d owns the tokens offsets[d]:offsets[d + 1].
    start, end : int64 array
        Where each token is in its text.
    fused : int64 array
        The document of each sequence; its tokens are the items.
    origin : tuple of str or None
        Path and format of the file.
    """

    documents: Annotated[Values, ColumnSpec("*", "values")]
    texts: Annotated[list[str], ColumnSpec("*", "texts")] | None
    offsets: Annotated[Indices, ArraySpec("*", WHOLE_COUNTS)]
    start: Annotated[Indices, ArraySpec("*", WHOLE_COUNTS)]
    end: Annotated[Indices, ArraySpec("*", WHOLE_COUNTS)]
    fused: Annotated[Indices, ArraySpec("*", WHOLE_COUNTS)]
    origin: tuple[str, str] | None

    def first_tokens(self) -> Indices:
        """Return the first token of each sequence."""
        return self.offsets[self.fused]

    def read_words(self, items: Sequence[int], offsets: Indices) -> list[str]:
        """Return the words of some tokens; sequence s owns the items offsets[s]:offsets[s + 1]."""
        assert self.texts is not None
        rows = np.asarray(items, np.int64)
        number = np.searchsorted(offsets, rows, side="right") - 1
        document = self.fused[number]
        token = self.offsets[document] + rows - offsets[number]
        places = zip(document.tolist(), self.start[token].tolist(), self.end[token].tolist(), strict=True)
        return [spell_surrogates(self.texts[d][start:end]) for d, start, end in places]


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


@dataclass(frozen=True, eq=False)
class Features:
    """Features of some items.

    Attributes
    ----------
    rows : array or sparse array (n, D)
        The numbers, in single or double precision.
    item : int64 array (n,)
        The item that each row is about, ascending.
    names : list of str or None
        The columns of the table that they came in.
    """

    rows: Any
    item: Indices
    names: list[str] | None = None

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.rows.shape[1])

    def select(self, names: list[str] | None, n_columns: int) -> Any:
        """Return the rows with the columns of a fit, which had these names; without names, with as many columns."""
        if names is not None and self.names is not None:
            missing = [name for name in names if name not in self.names]
            if missing:
                raise InputError(
                    f"The model was fitted with the features {listing(names)}, and these have no column "
                    f"{listing(missing)}.",
                    keyword="features",
                )
            place = {name: number for number, name in enumerate(self.names)}
            return self.rows[:, [place[name] for name in names]]
        if self.n_columns != n_columns:
            raise InputError(
                f"The model was fitted with {plural(n_columns, 'feature')}, and these are {self.n_columns:,}.",
                keyword="features",
            )
        return self.rows
