r"""The one writer of labels, part by part, whole or not at all; and which labels it leaves open.

Labels are left open if they are not certain enough. Of those whose confidence :math:`c_n` is at least t,
:math:`\sum_{n: c_n \geq t} (1 - c_n)` are expected to be wrong, as far as the probabilities are right. Confidences that
differ from t by rounding only are kept.

Without known labels the probabilities are too high where workers err together. `benchmarks/review.py` compares the
expectation with the truth on real crowds, and `describe` says what was found.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..answers.columns import Column
from ..answers.frames import build_frame
from ..arguments import is_number
from ..engines import EngineLike, open_engine
from ..errors import InputError, first_line, parameter_error, plural
from ..formats import usual_suffixes, writable_formats
from ..formats.writing import check_writable, sync, write_tables
from ..kernels import Floats
from ..kinds.base import TABLE, AnyKind
from ..storage.layout import claim_beside
from .parts import StoredLabels
from .record import SHARED_ERRORS
from .result import Labelled, Labels, NoLabels, Result, leave_open

PART = "part-{:05d}.parquet"
# What files in a folder of labels say of themselves, so that only such folders are replaced.
MARK = {b"consilience": b"labels"}
ROUNDING = 1e-12


def write_labels(found: Result, path: str, engine: EngineLike, undecided: float | None = None) -> None:
    """Write the labels of a result to a folder of Parquet files, or to one file; those below a confidence are open."""
    labels = found.labelled
    if isinstance(labels, NoLabels):
        labels.parts()
    assert isinstance(labels, (Labels, StoredLabels))
    if isinstance(labels, StoredLabels):
        check_apart(path, labels.answers.inputs)
    else:
        engine = None  # they are here
    if is_one_file(path):
        write_tables(list_tables(labels, found.task, undecided, engine), path)
    else:
        write_folder(path, partial(_write_parts, labels, found.task, undecided, engine))
    if isinstance(labels, StoredLabels) and labels.steps is not None:
        labels.steps.clear()


def is_one_file(path: str) -> bool:
    """Tell whether labels are written to one file, by its name, and not to a folder.

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


def write_folder(path: str, write: Callable[[Path], Mapping[str, int]]) -> None:
    """Write files into a folder, which takes its place when all are there.

    Whatever happens, the old labels are there or the new ones. If the process is killed between the two renames, the
    old ones come back with the next run.

    Parameters
    ----------
    path : str
        The folder. Of a link, the folder that it leads to is replaced.
    write : callable
        Writes files into a folder, and returns their names and sizes.
    """
    folder = Path(os.path.realpath(path))
    try:
        bring_back(folder)
        check_folder(folder)
        with claim_beside(folder, "writing") as work:
            keep_only(work, write(work))
            sync(work)
            exchange(work, folder)
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{str(folder)!r} cannot be written: {first_line(error)}.", "Free some space or write elsewhere."
        ) from error


def name_old(folder: Path) -> Path:
    """Return the name that a folder has while another takes its place."""
    return folder.with_name(f".{folder.name}.replaced")


def bring_back(folder: Path) -> None:
    """Give a folder its name again if the process was killed that was about to replace it."""
    old = name_old(folder)
    if old.is_dir() and not folder.exists():
        old.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def keep_only(folder: Path, sizes: Mapping[str, int]) -> None:
    """Remove all other files from a folder, after a check that these are complete.

    There may be others if work was done twice, since a worker of a cluster was taken for lost.
    """
    found = {path.name: path.stat().st_size for path in folder.iterdir()}
    if damaged := sorted(name for name, size in sizes.items() if found.get(name) != size):
        raise OSError(f"the file {damaged[0]!r} is not complete")
    for name in found.keys() - sizes.keys():
        (folder / name).unlink()


def exchange(work: Path, folder: Path) -> None:
    """Give a new folder the name of an old one, which is removed; if that fails, the old one keeps its name."""
    old = name_old(folder)
    if folder.exists():
        folder.rename(old)
    try:
        work.rename(folder)
    except BaseException:
        if old.exists():
            old.rename(folder)
        raise
    sync(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def check_folder(path: Path) -> None:
    """Raise an error for a folder that holds something else than labels, or that cannot be made."""
    folder = Path(os.path.realpath(path))
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{str(path)!r} is a file.", "Name a folder, or a file such as labels.parquet.")
    if Path.cwd().is_relative_to(folder):
        raise InputError(f"{str(path)!r} is the folder in which you are, or holds it.", "Name a new folder.")
    if not folder.is_dir():
        check_writable(folder.with_name(f"{folder.name}.parquet"))
        return
    if others := sorted(each.name for each in folder.iterdir() if not is_part(each)):
        raise InputError(
            f"The folder {str(path)!r} holds other files than labels, such as {others[0]!r}.", "Name a new folder."
        )


def is_part(path: Path) -> bool:
    """Tell whether a file holds labels that `write` wrote, or is what a second writer left of them."""
    if path.match(".part-*"):
        return True
    try:
        return path.match("part-*.parquet") and MARK.items() <= (parquet().read_schema(path).metadata or {}).items()
    except (OSError, pa.ArrowException):
        return False


def check_apart(path: str, inputs: Iterable[str]) -> None:
    """Raise an error if an output is the same as an input, or a folder that holds it."""
    real = os.path.realpath(path)
    for each in inputs:
        if Path(os.path.realpath(each)).is_relative_to(real):
            raise InputError(f"Writing to {path!r} would change the input {each!r}.", "Write to another place.")


def list_tables(
    labels: Labels | StoredLabels, task: AnyKind, undecided: float | None, engine: EngineLike
) -> Iterator[pa.Table]:
    """Yield the labels of each part as a table."""
    with open_engine(engine) as opened:
        yield from opened.map(make_table, opened.place(labels.numbers()), labels.lean(), task, undecided)


def _write_parts(
    labels: Labels | StoredLabels, task: AnyKind, undecided: float | None, engine: EngineLike, folder: Path
) -> dict[str, int]:
    shared = labels.lean(), task, undecided, str(folder)
    with open_engine(engine) as opened:
        return dict(opened.map(write_part, opened.place(labels.numbers()), *shared))


def parquet() -> Any:
    """Return Arrow's module of Parquet, which takes a while to load."""
    from pyarrow import parquet

    return parquet


def write_part(
    number: int, labels: Labels | StoredLabels, task: AnyKind, undecided: float | None, folder: str
) -> tuple[str, int]:
    """Write the labels of a part; return the name and the size of the file."""
    return save_part(make_table(number, labels, task, undecided), Path(folder), number)


def save_part(table: pa.Table, folder: Path, number: int) -> tuple[str, int]:
    """Write labels to a file of a folder; return its name and size. It is whole even if two write it at once."""
    path = folder / PART.format(number)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    marked = table.replace_schema_metadata({**(table.schema.metadata or {}), **MARK})
    parquet().write_table(marked, temporary, compression="zstd")
    sync(temporary)
    size = temporary.stat().st_size
    temporary.replace(path)
    return path.name, size


def make_table(
    number: int, labels: Labels | StoredLabels, task: AnyKind = TABLE, undecided: float | None = None
) -> pa.Table:
    """Return the labels of a part, with the columns of `to_frame`."""
    part = labels.part(number)
    arranged = task.arrange(part, part.shown, undecided)
    return task.mark(build_frame(list_undecided(part, undecided) if arranged is None else arranged, "pyarrow"))


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
    ordered : bool
        Whether labels are levels of a scale, of which there is no record.
    """

    confidence: float
    n_items: int
    n_kept: int
    expected_errors: float
    n_gold: int | None
    ordered: bool = False

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
        """Say it in words."""
        least = f"with a confidence of at least {self.confidence:g}"
        if not self.n_kept:
            return f"No label has a confidence of at least {self.confidence:g}. All {self.n_items:,} are left open."
        verb = "is" if self.n_kept == 1 else "are"
        kept = f"{self.n_kept:,} of {plural(self.n_items, 'label')} ({self.share_kept:.1%}) {verb} kept, {least}."
        number = f"{self.expected_errors:,.0f}" if self.expected_errors >= 10 else f"{self.expected_errors:.1f}"
        given = "By their probabilities" if self.n_gold != 0 else "If workers err independently"
        wrong = f"{given}, {self.expected_error_rate:.1%} of these are wrong (about {number})."
        return f"{kept} {wrong} {self._doubt()}".rstrip()

    def _doubt(self) -> str:
        """Say how far to believe the expectation."""
        if self.n_gold is None:
            return "These probabilities are not calibrated, so this can be far off."
        return "" if self.n_gold or self.ordered else SHARED_ERRORS


def check_confidence(value: object, name: str, owner: str) -> float:
    """Return the least confidence of a label that is kept, after a check; `name` is the parameter of `owner`."""
    if not is_number(value) or not 0 <= value <= 1:
        raise parameter_error(name, owner, "a number from 0 to 1", value)
    return float(value)


def find_open(confidence: Floats, least: float) -> NDArray[np.bool_]:
    """Tell which labels are left open.

    >>> find_open(np.array([0.1 + 0.6, 0.69, 1.0]), 0.7)
    array([False,  True, False])
    """
    return ~np.asarray(confidence >= least - ROUNDING)  # also what is not known


def count_kept(labelled: Labelled, least: float, n_gold: int | None) -> Undecided:
    """Return how many labels are kept, and how many of these are expected to be wrong."""
    n_kept, n_wrong = 0, 0.0
    for part in labelled.parts():
        confidence = part.shown_confidence
        kept = confidence[~find_open(confidence, least)]
        n_kept, n_wrong = n_kept + len(kept), n_wrong + float(np.sum(1.0 - kept))
    return Undecided(least, labelled.n_items, n_kept, n_wrong, n_gold)


def list_undecided(labels: Labels, least: float | None) -> dict[str, Column]:
    """Return the columns of a table of labels, of which those with a lower confidence are left open."""
    columns = labels.list_columns()
    if least is not None:
        columns["label"] = leave_open(columns["label"], find_open(labels.shown_confidence, least))
    return columns
