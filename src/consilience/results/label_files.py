r"""The one writer of labels, run by run; and which labels it leaves open.

Labels are left open if they are not certain enough. Of those whose confidence :math:`c_n` is at least t,
:math:`\sum_{n: c_n \geq t} (1 - c_n)` are expected to be wrong, as far as the probabilities are right. Confidences that
differ from t by rounding only are kept.

Without known labels the probabilities are too high where workers err together. `benchmarks/review.py` compares the
expectation with the truth on real crowds, and `describe` says what was found.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.columns import Column
from ..answers.tables import build_frame
from ..engines import open_engine
from ..errors import InputError, first_line, parameter_error, plural
from ..formats import usual_suffixes, writable_formats
from ..formats.writing import check_writable, write_tables
from ..kernels import ROUNDING, Floats
from ..kinds.base import AnyKind
from ..limits import release_mapped
from ..options import is_number
from .record import SHARED_ERRORS
from .result import Labels, Result, leave_open

PART = "part-{:05d}.parquet"
# What files in a folder of labels say of themselves, so that only such folders are replaced.
MARK = {b"consilience": b"labels"}


def write_label_files(result: Result, path: str, undecided: float | None = None) -> None:
    """Write the labels of a result to a folder of Parquet files, or to one file; those below a confidence are open.

    Files are written beside the folder first. So the labels of an earlier fit stay if there is no room for new ones.
    """
    if is_one_file(path):
        write_tables(list_tables(result, undecided), path)
        return
    from pyarrow import parquet  # which takes a while to load

    folder = Path(os.path.realpath(path))  # of a link, the folder that it leads to
    check_label_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as work:
            for number, table in enumerate(list_tables(result, undecided)):
                marked = table.replace_schema_metadata({**(table.schema.metadata or {}), **MARK})
                parquet.write_table(marked, Path(work, PART.format(number)), compression="zstd")
            new = sorted(os.listdir(work))
            for name in new:
                os.replace(Path(work, name), folder / name)
        for file in folder.iterdir():
            if file.name not in new:
                file.unlink()
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{str(folder)!r} cannot be written: {first_line(error)}.", "Free some space or write elsewhere."
        ) from error


def list_tables(result: Result, undecided: float | None) -> Iterator[pa.Table]:
    """Yield the labels as tables with the columns of `to_frame`, one for each run of items."""
    with open_engine(None) as engine:
        kind, runs = result.kind, engine.place(result.labels.runs())
        listed = engine.map(lambda run: list_columns(result.labels.part(run), kind, undecided), runs)
        for columns in listed:
            release_mapped()
            yield kind.mark(build_frame(columns, "pyarrow"))


def is_one_file(path: str) -> bool:
    """Whether labels are written to one file, by its name, and not to a folder.

    A name such as labels.xlsx is an error, unless there is such a folder, or a slash follows.

    >>> is_one_file("labels.parquet"), is_one_file("labels"), is_one_file("labels.v2/")
    (True, False, False)
    """
    if any(each.fits(path) for each in writable_formats()):
        return True
    suffix = os.path.splitext(path)[1]
    if suffix[1:2].isalpha() and not os.path.isdir(path):
        raise InputError(
            f"Labels cannot be written to {path!r}: {suffix} is not among {usual_suffixes(writable_formats())}.",
            "Name a file such as labels.parquet, or a folder, with a slash at its end.",
        )
    return False


def check_label_folder(path: Path) -> None:
    """Raise an error for a folder that holds something else than labels, or that cannot be made."""
    from pyarrow import parquet

    folder = Path(os.path.realpath(path))
    if not folder.is_dir():
        if folder.exists():
            raise InputError(f"{str(path)!r} is a file.", "Name a folder, or a file such as labels.parquet.")
        check_writable(folder.with_name(f"{folder.name}.parquet"))
        return
    for file in sorted(folder.iterdir()):
        try:
            metadata = parquet.read_schema(file).metadata if file.match("part-*.parquet") else None
        except (OSError, pa.ArrowException):
            metadata = None
        if not MARK.items() <= (metadata or {}).items():
            raise InputError(
                f"The folder {str(path)!r} holds other files than labels, such as {file.name!r}.", "Name a new folder."
            )


class Undecided(NamedTuple):
    """How many labels are certain enough to be kept, and how many of these are expected to be wrong.

    Attributes
    ----------
    confidence : float
        The least confidence of a label that is kept.
    n_items : int
        How many items there are.
    n_kept : int
        How many labels are kept.
    expected_errors : float
        How many of these are wrong, by their probabilities.
    n_gold : int or None
        How many known labels the probabilities were calibrated by; None if they are not calibrated.
    no_record : bool
        Whether there is no record of such data, such as of levels of a scale.
    """

    confidence: float
    n_items: int
    n_kept: int
    expected_errors: float
    n_gold: int | None
    no_record: bool = False

    @property
    def n_open(self) -> int:
        """How many labels are left open."""
        return self.n_items - self.n_kept

    @property
    def share_kept(self) -> float:
        """Share of the items whose label is kept."""
        return self.n_kept / self.n_items

    @property
    def expected_error_rate(self) -> float:
        """Share of the kept labels that are wrong, by their probabilities; NaN if none is kept."""
        return self.expected_errors / self.n_kept if self.n_kept else float("nan")

    def describe(self) -> str:
        """How many labels are kept, how many of these are expected to be wrong, and how far to believe it."""
        if not self.n_kept:
            return f"No label has a confidence of at least {self.confidence:g}. All {self.n_items:,} are left open."
        verb = "is" if self.n_kept == 1 else "are"
        kept = f"{self.n_kept:,} of {plural(self.n_items, 'label')} ({self.share_kept:.1%}) {verb} kept"
        number = f"{self.expected_errors:,.0f}" if self.expected_errors >= 10 else f"{self.expected_errors:.1f}"
        given = "By their probabilities" if self.n_gold != 0 else "If workers err independently"
        wrong = f"{given}, {self.expected_error_rate:.1%} of these are wrong (about {number})."
        doubt = "" if self.n_gold or self.no_record else SHARED_ERRORS
        if self.n_gold is None:
            doubt = "These probabilities are not calibrated, so this can be far off."
        return f"{kept}, with a confidence of at least {self.confidence:g}. {wrong} {doubt}".rstrip()


def check_confidence(value: object, name: str, owner: str) -> float:
    """The least confidence of a label that is kept, which must be a number from 0 to 1."""
    if not is_number(value) or not 0 <= value <= 1:
        raise parameter_error(name, owner, "a number from 0 to 1", value)
    return float(value)


def find_open(confidence: Floats, least: float) -> NDArray[np.bool_]:
    """Which labels are left open.

    >>> find_open(np.array([0.1 + 0.6, 0.69, 1.0]), 0.7)
    array([False,  True, False])
    """
    return ~np.asarray(confidence >= least - ROUNDING)  # also what is not known


def count_kept(result: Result, least: float) -> Undecided:
    """How many labels are kept, and how many of these are expected to be wrong."""
    confidence = result.labels.shown_confidence
    kept = confidence[~find_open(confidence, least)]
    no_record = result.names.positions is not None
    no_record |= result.comparison is not None and not result.comparison.like_record
    return Undecided(least, len(confidence), len(kept), float(np.sum(1.0 - kept)), result.n_calibrating, no_record)


def list_columns(labels: Labels, kind: AnyKind, least: float | None = None) -> dict[str, Column]:
    """The columns of a table of labels, of which those with a lower confidence are left open."""
    columns = kind.arrange(labels, labels.shown, least)
    if columns is None:
        columns = labels.list_columns()
        if least is not None:
            columns["label"] = leave_open(columns["label"], find_open(labels.shown_confidence, least))
    return columns
