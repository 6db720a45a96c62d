"""What readers and writers of annotation tools have in common: the files of a path, and annotations per document."""

from __future__ import annotations

import glob
import math
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from ..answers.columns import Values
from ..errors import DataWarning, InputError, first_line, listing, plural, shorten, warn
from ..tasks.spans import SpanCollector, Spans
from ..tasks.texts import Marks, Origin
from .files import find_format
from .records import Place, plain

Span = tuple[int, int, str]
# Under this key, the metadata of a table has the name of the question whose answers are called "label".
QUESTION = "question"


@dataclass(frozen=True)
class Reading:
    """One worker's annotation of one document, as it is written to a file."""

    worker: Any
    spans: list[Span]
    confidence: list[float] | None = None

    @property
    def scores(self) -> list[float | None]:
        """The confidence of each span, None where there is none."""
        return [None] * len(self.spans) if self.confidence is None else list(self.confidence)

    @property
    def score(self) -> float | None:
        """The mean confidence; None where there is none. Where there are no spans, there is nothing to doubt: 1."""
        if self.confidence is None:
            return None
        return sum(self.confidence) / len(self.confidence) if self.confidence else 1.0


class Verdict(NamedTuple):
    """The fused label of an item."""

    label: Any
    confidence: float | None


class Verdicts(NamedTuple):
    """Fused labels, as they are written to a tool's file.

    Attributes
    ----------
    of_item : dict
        The label of each item, by its id as text.
    question : str or None
        What was asked, where a file has several questions.
    """

    of_item: dict[str, Verdict]
    question: str | None = None

    def find(self, item: Any) -> Verdict | None:
        """Return the label of an item, None if it has none."""
        return self.of_item.get(str(item))

    def check_written(self, path: str, written: Collection[str]) -> None:
        """Raise an error unless the file has a record for each item."""
        lost = [item for item in self.of_item if item not in written]
        if lost:
            raise InputError(
                f"{path!r} has no record of {plural(len(lost), 'item')} with a label: {listing(lost)}.",
                "Give the file that the answers were read from; fuse it again if it has changed since.",
            )

    def choose(self, path: str, questions: Iterable[str]) -> str:
        """Return the question that was answered: the only one in the file, else the one that is named."""
        found = sorted(set(questions))
        if len(found) == 1:
            return found[0]
        if self.question in found:
            return str(self.question)
        raise InputError(f"It is not clear which question of {path!r} these labels answer: {listing(found)}.")


def list_readings(spans: Spans) -> list[list[Reading]]:
    """Return the annotations of each document, in order of workers."""
    found: dict[tuple[int, int], tuple[list[Span], list[float]]] = {
        (document, worker): ([], []) for document, worker in spans.readings.tolist()
    }
    is_judged = _find_judges(spans)
    for key, span, confidence in _rows(spans.marks, spans.labels):
        marks, scores = found[key]
        marks.append(span)
        scores.append(confidence)
    workers = [plain(worker) for worker in spans.workers.tolist()]
    readings: list[list[Reading]] = [[] for _ in spans.documents]
    for (document, worker), (marks, scores) in found.items():
        is_known = is_judged[worker] and not any(map(math.isnan, scores))
        readings[document].append(Reading(workers[worker], marks, scores if is_known else None))
    return readings


def _find_judges(spans: Spans) -> list[bool]:
    """Tell for each worker whether their spans have a confidence; where all spans have one, for all workers."""
    known = spans.marks.confidence
    if known is None or not np.isnan(known).any():
        return [known is not None] * len(spans.workers)
    n_known = np.bincount(spans.marks.worker[~np.isnan(known)], minlength=len(spans.workers))
    return [bool(number) for number in n_known]


def list_gold(spans: Spans) -> dict[int, list[Span]]:
    """Return the known spans of each document that has them."""
    known: dict[int, list[Span]] = {document: [] for document in spans.gold_documents.tolist()}
    if spans.gold is not None:
        for (document, _), span, _ in _rows(spans.gold, spans.labels):
            known[document].append(span)
    return known


def _rows(marks: Marks, labels: Values) -> Iterable[tuple[tuple[int, int], Span, float]]:
    names = [str(plain(label)) for label in labels.tolist()]
    confidence = [1.0] * len(marks.start) if marks.confidence is None else marks.confidence.tolist()
    columns = (marks.document, marks.worker, marks.start, marks.end, marks.label)
    for row, score in zip(zip(*(column.tolist() for column in columns), strict=True), confidence, strict=True):
        document, worker, start, end, label = row
        yield (document, worker), (start, end, names[label]), score


def index_documents(spans: Spans) -> dict[Any, int]:
    """Return the index of each document by its id."""
    return {name: index for index, name in enumerate(spans.documents.tolist())}


def token_places(spans: Spans, document: int) -> list[tuple[int, int]] | None:
    """Return (start, end) of the tokens of a document, None if there are none."""
    if spans.tokens is None:
        return None
    first, last = spans.tokens.offsets[document : document + 2]
    return list(zip(spans.tokens.start[first:last].tolist(), spans.tokens.end[first:last].tolist(), strict=True))


def is_folder(path: str) -> bool:
    """Tell whether a path is, or would be, that of a folder: it has no suffix.

    >>> is_folder("no-such/fused"), is_folder("fused.jsonl")
    (True, False)
    """
    if os.path.exists(path):
        return os.path.isdir(path)
    return path.endswith(os.sep) or not os.path.splitext(path)[1]


def make_folder(path: str) -> None:
    """Create a folder, unless it is there."""
    try:
        os.makedirs(path or ".", exist_ok=True)
    except (OSError, ValueError) as error:
        raise InputError(f"{path!r} cannot be created: {first_line(error)}.", "Write to another place.") from error


def list_inputs(path: str) -> list[str]:
    """Return the files that a path stands for: itself, those in a folder, or those that match a glob."""
    if os.path.isfile(path):
        return [path]
    try:
        if os.path.isdir(path):
            found = [os.path.join(path, name) for name in os.listdir(path) if not name.startswith(".")]
        else:
            found = glob.glob(path, recursive=True) if glob.has_magic(path) else []
    except (OSError, ValueError) as error:
        raise InputError(f"{path!r} cannot be read: {error}.", "Check the path.") from error
    files = sorted(file for file in found if os.path.isfile(file))
    if not files:
        raise InputError(f"No file to read in {path!r}.", "Check the path.")
    return _drop_others(files) if os.path.isdir(path) else files


def _drop_others(files: list[str]) -> list[str]:
    """Return the files of a folder without those of which no kind is known, such as a read-me.

    A damaged file may not be recognised. So files with the suffix of another that is recognised are kept.
    """
    known = {os.path.splitext(file)[1].lower() for file in files if find_format(file) is not None}
    return [file for file in files if os.path.splitext(file)[1].lower() in known] or files


def stem(path: str) -> str:
    """Return the name of a file without folder and suffixes that files of annotations have.

    >>> stem("folder/ann.b.jsonl.gz")
    'ann.b'
    """
    name = os.path.basename(path)
    for suffix in (".gz", os.path.splitext(name.removesuffix(".gz"))[1]):
        name = (name.removesuffix(suffix) if suffix else name) or name
    return name


def file_name(worker: Any) -> str:
    """Return the name of a file or folder for a worker."""
    name = str(worker)
    if not name or name.startswith(".") or any(sign in name for sign in '/\\\0:*?"<>|') or len(name.encode()) > 200:
        raise InputError(f"{worker!r} cannot be the name of a file.", "Rename the worker, or write another format.")
    return name


def say_spans(path: str, tool: str) -> NoReturn:
    """Raise the error for spans where answers were expected."""
    raise InputError(
        f"{path!r} holds spans marked in texts ({tool}), not one answer per item.",
        "Read it with consilience.read_spans, or give it to fuse without names of columns.",
    )


class NotSpans(InputError):
    """Answers about whole items where spans were expected."""


def say_answers(path: str, tool: str) -> NoReturn:
    """Raise the error for answers where spans were expected."""
    raise NotSpans(
        f"{path!r} holds answers about whole items ({tool}), not spans marked in texts.",
        "Read it with consilience.read_responses.",
    )


def say_nothing(path: str, tool: str) -> NoReturn:
    """Raise the error for a file without any annotation."""
    raise InputError(f"{path!r} holds no annotations ({tool}).", "Export the annotated records.")


def warn_dropped(path: str, number: int, noun: str, reason: str) -> None:
    """Warn that some annotations were not used, if there are any."""
    if number:
        verb = "was" if number == 1 else "were"
        warn(DataWarning(f"{plural(number, noun)} in {path!r} {verb} not used ({reason})."))


def build_table(path: str, tool: str, rows: list[dict[Any, Any]]) -> tuple[pa.Table, list[str]]:
    """Return answers as a table with columns item, worker and label, or one column per question if there are several.

    Parameters
    ----------
    path, tool : str
        For messages.
    rows : list of dict
        Item, worker, the answer to each question under ("question", name), and perhaps gold, which is kept only for a
        single question.
    """
    questions = sorted({key[1] for row in rows for key in row if isinstance(key, tuple)})
    if not questions:
        say_nothing(path, tool)
    taken = {"item", "worker", "gold"} & set(questions) if len(questions) > 1 else set()
    if taken:
        raise InputError(f"{path!r} has a question called {listing(taken)}.", "Rename it.")
    names = {("question", name): "label" if len(questions) == 1 else name for name in questions}
    keys: dict[Any, str] = {"item": "item", "worker": "worker", **names}
    if len(questions) == 1 and any(row.get("gold") is not None for row in rows):
        keys["gold"] = "gold"
    columns = {name: _to_array([row.get(key) for row in rows]) for key, name in keys.items()}
    # A single question may also be called by its own name.
    return pa.table(columns, metadata={QUESTION: questions[0]} if len(questions) == 1 else None), list(columns)


def _to_array(values: list[Any]) -> pa.Array:
    """Return a column; ids of several types become text."""
    kinds = {type(value) for value in values} - {type(None)}
    if len(kinds) > 1:
        values = [None if value is None else str(value) for value in values]
    return pa.array(values)


def choose(table: tuple[pa.Table, list[str]], wanted: Any) -> tuple[pa.Table, list[str]]:
    """Return the wanted columns of a table, and the names of all."""
    whole, names = table
    return whole.select([name for name in names if wanted is None or name in wanted]), names


def origin_of(spans: Spans, name: str) -> Origin | None:
    """Return where spans were read, if that was in the format of this name."""
    return spans.origin if spans.origin is not None and spans.origin.format == name else None


def choose_readings(readings: list[Reading], own: Collection[str], known: Collection[str]) -> list[Reading]:
    """Return the annotations to write into one of the records of a document.

    Parameters
    ----------
    readings : list of Reading
        All annotations of the document.
    own : collection of str
        The workers who have one in this record.
    known : collection of str
        The workers who have one in another record, so that it is not added to this.
    """
    return [each for each in readings if str(each.worker) in own or str(each.worker) not in known]


def check_unchanged(place: Place, text: str, known: str) -> None:
    """Raise an error if a record has another text than the one that was read."""
    if text != known:
        place.fail(f"the file has changed since it was read: the text is now {shorten(text)}.", _AGAIN)


def check_all_found(origin: Origin | None, documents: Iterable[Any], found: Collection[Any]) -> None:
    """Raise an error if some documents are no longer in the file that they were read from."""
    lost = [name for name in documents if name not in found]
    if origin is not None and lost:
        raise InputError(f"{origin.path!r} has changed since it was read: it has no document {listing(lost)}.", _AGAIN)


_AGAIN = "Read and fuse the file again."


def finish(collector: SpanCollector, path: str, name: str, questions: Iterable[str] = ()) -> Spans:
    """Return what a reader collected, and which questions about whole texts it met; an error names the file."""
    try:
        return replace(collector.finish(Origin(os.path.abspath(path), name)), questions=tuple(sorted(set(questions))))
    except InputError as error:
        raise InputError(f"{path}: {error.problem}", *error.remedies) from error
