"""Label Studio: the JSON export of tasks, and tasks with predictions to import.

Relies on the task format of Label Studio 1.x (guide pages "Label Studio Task Format" and "Import pre-annotated
data"). A task has ``data`` (the text is one of its values), ``annotations`` by people and ``predictions`` by models.
Each of these has a list ``result``: entries of type ``labels`` are spans, those of type ``choices``, ``rating`` and
``number`` are answers about the whole task.

- A worker is the email, else the id, in ``completed_by``, as text; for a prediction it is ``model_version``.
- Cancelled annotations (``was_cancelled``) and drafts are no annotations. An annotation without spans is an empty one.
- An annotation marked as ``ground_truth`` is the truth, not the annotation of a worker.
- Offsets count characters. A region that is not where the text is that it quotes is moved to the nearest place where
  that is, with a warning: older exports count UTF-16 units, and browsers turned line breaks of two characters into one.
- The text is the value of ``data`` in which the regions fit; if several do, the one called as ``to_name``.
- Ratings are whole numbers, and levels of a scale. Numbers, of sliders too, are measurements. Choices are text.
- Spans with a confidence are written as predictions, other spans as annotations. Fused labels are predictions with one
  choice, or a rating.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ..errors import Python, Sentence, listing, plural, shorten, warn_of
from ..kinds.base import FUSED
from ..kinds.spans import MarkedText, Reading, Scored
from . import Verdict
from .annotation_tools import Annotation, Entry, Id, Tool, as_rating
from .json_lines import Record

_ANSWERS = {"choices": list, "rating": float, "number": float}
_PLAIN = "Only spans in plain text (labels), choices, ratings and numbers can be read."


class LabelStudio(Tool):
    """Tasks of Label Studio."""

    name = "label-studio"
    title = "Label Studio"
    carries = frozenset({"confidence", "gold", "white space"})
    numbers_are_ratings = True
    silence_is_empty = True

    def __init__(self, path: str | None) -> None:
        super().__init__(path)
        self.n_moved = 0
        self.models: set[str] = set()
        self.other_types: dict[str, Entry] = {}  # of results that are neither spans nor answers
        self.targets: dict[str, str] = {}  # what the answers to each question are about

    @staticmethod
    def recognise(first: Record, in_array: bool) -> bool:  # noqa: ARG004
        """Whether this is a task, or one of JSON-MIN, for which the reader has an error."""
        is_answered = any(isinstance(first.get(key), list) for key in ("annotations", "predictions"))
        is_minimal = {"annotation_id", "annotator", "lead_time"} <= first.keys()
        return is_minimal or (isinstance(first.get("data"), dict) and is_answered)

    def as_array(self, path: str) -> bool:  # noqa: ARG002
        """Tasks are always imported as an array."""
        return True

    def identify(self, entry: Entry) -> tuple[Id | None, object, object]:
        """Id and data of a task; the same data without an id may occur several times in a file."""
        task = entry.record
        if not isinstance(task.get("data"), dict):
            entry.fail(
                "this is no task of Label Studio: 'data' is missing, as in the export JSON-MIN.",
                "Export as JSON from Label Studio, or give a table as JSON lines.",
            )
        return task.get("id"), task["data"], entry.path

    def annotations(self, entry: Entry) -> Iterator[Annotation]:
        """Annotations of people, the truth, and predictions of models."""
        for each in entry.entries(entry.record, "annotations", dict):
            if entry.get(each, "was_cancelled", bool, False):
                continue
            if entry.get(each, "ground_truth", bool, False):
                yield self._annotation(entry, None, each)
                continue
            who = each.get("completed_by")
            if isinstance(who, dict):
                who = who.get("email") or who.get("id")
            yield self._annotation(entry, str(entry.check_id(who, "'completed_by' of an annotation")), each)
        for each in entry.get(entry.record, "predictions", list, []):
            if type(each) is not int:  # exports may have only the ids of predictions
                prediction = entry.check(each, dict, "an entry of 'predictions'")
                model = str(entry.check_id(_model_of(prediction), "'model_version'"))
                self.models.add(model)
                yield self._annotation(entry, model, prediction)

    def _annotation(self, entry: Entry, worker: str | None, held: Record) -> Annotation:
        marks: list[Record] = []
        answers: dict[str, Any] = {}
        for result in entry.entries(held, "result", dict):
            kind, value = entry.get(result, "type", str, ""), result.get("value")
            value = value if isinstance(value, dict) else {}
            if kind == "labels":
                marks.append(result)
            elif kind in _ANSWERS and "start" not in value:
                question = entry.need(result, "from_name", str)
                if question in answers:
                    entry.fail(f"choices for {shorten(question)} are made twice.", "Keep one of them.")
                answers[question] = entry.get(value, kind, _ANSWERS[kind])
                self.measured |= {question} if kind == "number" else set()
                self.targets[question] = entry.need(result, "to_name", str)
            elif kind not in ("relation", "", *_ANSWERS) or "labels" in value:
                self.other_types.setdefault(kind, entry)
        return Annotation(worker, marks, answers)

    def report(self, n_found: int) -> None:
        """Say what else there is, which regions were moved, and that models count as workers."""
        if self.other_types and not n_found:
            next(iter(self.other_types.values())).fail(f"found results of type {listing(self.other_types)}.", _PLAIN)
        if self.other_types:
            warn_of(f"Results of type {listing(sorted(self.other_types))} in {self.path!r} are not used. {_PLAIN}")
        if self.n_moved:
            moved = plural(self.n_moved, "region")
            warn_of(f"In {self.path!r}, the offsets of {moved} do not lead to the text quoted. It was found elsewhere.")
        models = sorted(self.models - {FUSED})  # others warn of fused results
        if models and any(each.worker not in self.models for _, given in self.annotated for each in given):
            without = Python(f"fuse(source, block={models!r})", "FILE")
            warn_of(
                f"In {self.path!r}, predictions of {listing(models)} count as those of further workers.",
                Sentence("To fuse without predictions, use {block}.", block=without),
            )

    # Spans

    @cached_property
    def marked(self) -> list[tuple[Entry, Record]]:
        """All regions."""
        return [(entry, region) for entry, given in self.annotated for each in given for region in each.marks or ()]

    @cached_property
    def key(self) -> str | None:
        """Which value of the data is the text, None if there are no regions.

        It is the one in which most regions fit; if several are, names decide, and then the order.
        """
        if not self.marked:
            return None
        tally: Counter[str] = Counter()
        for entry, region in self.marked:
            start, end, quote = _read_region(entry, region)
            for key, text in _texts(entry).items():
                tally[key] += _fits(text, start, end, quote) or (quote is not None and quote in text)
        names = {str(region.get("source") or "").removeprefix("$"), region["to_name"]}
        return max(tally, key=lambda key: (tally[key], key in names))

    def text(self, entry: Entry) -> str:
        """The value of the data in which the regions are; without regions in the file, the longest text."""
        texts = _texts(entry)
        if self.key is not None and self.key not in texts:
            entry.fail(f"'data' has no text {self.key!r}, in which the regions of other tasks are.")
        return max(texts.values(), key=len) if self.key is None else texts[self.key]

    def locate(self, entry: Entry, text: str, marks: list[Record]) -> Scored:
        """The spans of one annotation. A region is where its text is, which may be elsewhere than it says."""
        spans: Scored = {}
        for region in marks:
            start, end, quote = _read_region(entry, region)
            if not _fits(text, start, end, quote):
                places = [match.start() for match in re.finditer(re.escape(quote), text)] if quote else []
                if not places:
                    start, end = entry.check_span(text, start, end)
                    entry.fail(
                        f"a region quotes {shorten(quote)}, but from {start} to {end} the text is "
                        f"{shorten(text[start:end])}.",
                        "Check that the annotations belong to this text.",
                    )
                claimed = start
                start = min(places, key=lambda place: abs(place - claimed))
                end, self.n_moved = start + len(quote or ""), self.n_moved + 1
            labels, score = entry.entries(region["value"], "labels", str), entry.check_score(region.get("score"))
            self.unused["region", "no label"] += not labels
            spans |= dict.fromkeys(((start, end, label) for label in labels), score)
        return spans

    # Writing

    def make_record(self, document: MarkedText, like: Record | None) -> Record:  # noqa: ARG002
        """A task without annotations."""
        return {"id": document.name, "data": {self.key or "text": document.text}}

    @cached_property
    def names(self) -> dict[str | None, tuple[str, str]]:
        """Of the regions with each label, and of any, the tags of the project: from_name and to_name."""
        names: dict[str | None, tuple[str, str]] = {}
        for _, region in self.marked:
            for label in [None, *(region["value"].get("labels") or [])]:
                names.setdefault(label, (region["from_name"], region["to_name"]))
        return {None: ("label", "text")} | names

    def add_spans(self, record: Record, document: MarkedText, reading: Reading) -> None:
        """Add the spans of a worker to a task: as a prediction if they have a confidence, else as an annotation."""
        who, results = reading.worker, []
        for (start, end, label), score in reading.spans.items():
            from_name, to_name = self.names.get(label, self.names[None])
            region = {
                "id": _make_id(document.name, who, start, end, label),
                "from_name": from_name,
                "to_name": to_name,
                "type": "labels",
                "value": {"start": start, "end": end, "text": document.text[start:end], "labels": [label]},
            }
            results.append(region if score is None else {**region, "score": score})
        if who is not None and reading.is_judged:
            scores = [score for score in reading.spans.values() if score is not None]
            mean = sum(scores) / len(scores) if scores else 1.0  # where there are no spans, there is nothing to doubt
            prediction = {"model_version": who, "score": mean, "result": results}
            _predict(record, prediction, {tag for tag, _ in self.names.values()})
            return
        new: Record = {"ground_truth": True, "result": results}
        if who is not None:
            is_number = who.isdecimal() and len(who) < 19 and str(int(who)) == who
            new = {"completed_by": int(who) if is_number else {"email": who}, "result": results}
        record["annotations"] = [*(record.get("annotations") or []), new]

    def label(self, entry: Entry, question: str, said: Any, verdict: Verdict) -> Record:
        """The task with a prediction, in place of an earlier fused label for the same question."""
        is_rating = isinstance(said, (int, float))
        value: Any = [str(label) for label in verdict.labels]
        kind = "number" if question in self.measured else "rating" if is_rating else "choices"
        if is_rating:
            value = float(str(verdict.label)) if kind == "number" else as_rating(verdict.label, question)
        result = {
            "id": _make_id(entry.name, FUSED, question),
            "from_name": question,
            "to_name": self.targets[question],
            "type": kind,
            "value": {kind: value},
        }
        _predict(entry.record, {"model_version": FUSED, "score": verdict.confidence, "result": [result]}, {question})
        return entry.record


def _model_of(prediction: Record) -> object:
    version = prediction.get("model_version")
    return "prediction" if version in (None, "") else version


def _predict(task: Record, new: Record, tags: set[str]) -> None:
    """Add a prediction to a task, in place of that of the same model about these tags of the project."""

    def is_old(held: object) -> bool:
        if not isinstance(held, dict) or str(_model_of(held)) != new["model_version"]:
            return False
        return {result.get("from_name") for result in held.get("result") or []} <= tags

    task["predictions"] = [each for each in task.get("predictions") or [] if not is_old(each)] + [new]


def _texts(entry: Entry) -> dict[str, str]:
    texts = {key: value for key, value in entry.record["data"].items() if isinstance(value, str)}
    if not texts:
        entry.fail("'data' holds no text.", _PLAIN)
    return texts


def _read_region(entry: Entry, region: Record) -> tuple[int, int, str | None]:
    """Where a region is by its own account, and what it quotes."""
    value = entry.need(region, "value", dict)
    if "channel" in value or isinstance(value.get("start"), (float, str)):
        entry.fail("the regions are not in plain text, but in audio, a time series or HTML.", _PLAIN)
    entry.need(region, "from_name", str)
    entry.need(region, "to_name", str)
    return entry.need(value, "start", int), entry.need(value, "end", int), entry.get(value, "text", str)


def _fits(text: str, start: int, end: int, quote: str | None) -> bool:
    """Whether a region is within its text, which there is what the region quotes, but for white space."""

    def squeeze(words: str) -> str:
        return re.sub(r"\s+|\\n|\\r", "", words)

    within = 0 <= start < end <= len(text)
    return within and (quote is None or squeeze(text[start:end]) == squeeze(quote))


def _make_id(*key: object) -> str:
    """The id of a region or a choice, the same whenever it is written."""
    return hashlib.blake2b(repr(key).encode(), digest_size=5).hexdigest()


LABEL_STUDIO = LabelStudio.codec()
