"""Label Studio: the JSON export of tasks, and tasks with predictions to import.

Relies on the task format of Label Studio 1.x (guide pages "Label Studio Task Format" and "Import pre-annotated
data"). A task has ``data`` (the text is one of its values), ``annotations`` by people and ``predictions`` by models.
Each of these has a list ``result``: entries of type ``labels`` are spans, those of type ``choices`` and ``rating`` are
answers about the whole task.

- A worker is the email, else the id, in ``completed_by``, as text; for a prediction it is ``model_version``, with
  "model" before it if an annotator is called the same.
- Cancelled annotations (``was_cancelled``) and drafts are no annotations. An annotation without spans is an empty one.
- An annotation marked as ``ground_truth`` is the truth, not the annotation of a worker.
- Offsets count characters. Older exports count UTF-16 units, which differs after an emoji; ``value.text`` shows which
  of the two it is. So it does where a browser turned line breaks of two characters into one. A region that is not
  where its text is, is moved there if the text occurs once, with a warning.
- The text is the value of ``data`` in which the regions fit; if several do, the one called as ``to_name``.
- Ratings are whole numbers, and levels of a scale. Choices are text.
- Spans with a confidence are written as predictions, other spans as annotations. Fused labels are predictions with one
  choice, or a rating.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ..errors import Python, Sentence, listing, plural, shorten, warn_of
from ..kinds.base import FUSED
from . import Verdict
from .annotation_tools import Annotation, Id, MarkedText, Place, PlacedRecord, Reading, Record, Scored, Tool, as_rating

_ANSWERS = ("choices", "rating")
_PLAIN = "Only spans in plain text (labels), choices and ratings can be read."
_MODEL = "prediction"  # the worker of predictions without a model_version


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
        self.other_types: dict[str, Place] = {}  # of results that are neither spans nor answers
        self.targets: dict[str, str] = {}  # what the answers to each question are about
        self.models: set[str] = set()

    @staticmethod
    def recognise(first: Record, in_array: bool) -> bool:  # noqa: ARG004
        """Whether this is a task, or one of JSON-MIN, for which the reader has an error."""
        is_answered = any(isinstance(first.get(key), list) for key in ("annotations", "predictions"))
        is_minimal = {"annotation_id", "annotator", "lead_time"} <= first.keys()
        return is_minimal or (isinstance(first.get("data"), dict) and is_answered)

    def as_array(self, path: str) -> bool:  # noqa: ARG002
        """Tasks are always imported as an array."""
        return True

    def identify(self, place: Place, record: Record, file: str) -> tuple[Id | None, object, object]:
        """Id and data of a task; the same data without an id may occur several times in a file."""
        if "annotation_id" in record and "data" not in record:
            place.fail("this is the export JSON-MIN, which leaves out what is needed.", "Export as JSON.")
        if not isinstance(record.get("data"), dict):
            place.fail(
                "this is no task of Label Studio: 'data' is missing.",
                "Export as JSON from Label Studio, or give a table as JSON lines.",
            )
        return record.get("id"), record["data"], file

    def annotations(self, entry: PlacedRecord) -> Iterator[Annotation]:
        """Annotations of people, the truth, and predictions of models."""
        place, task = entry.place, entry.record
        for worker, each in _list_annotations(place, task):
            yield self._annotation(place, worker, each)
        for each in place.get(task, "predictions", list, []):
            if type(each) is not int:  # exports may have only the ids of predictions
                model = _model(place, place.check(each, dict, "an entry of 'predictions'"))
                model = f"model {model}" if model in self.people else model
                self.models.add(model)
                yield self._annotation(place, model, each)

    def _annotation(self, place: Place, worker: str | None, held: Record) -> Annotation:
        marks: list[Record] = []
        answers: dict[str, Any] = {}
        for result in place.entries(held, "result", dict):
            kind, value = place.get(result, "type", str, ""), result.get("value")
            value = value if isinstance(value, dict) else {}
            if kind == "labels":
                marks.append(result)
            elif kind in _ANSWERS and "start" not in value:
                question = place.need(result, "from_name", str)
                if question in answers:
                    place.fail(f"choices for {shorten(question)} are made twice.", "Keep one of them.")
                answers[question] = place.get(value, kind, list if kind == "choices" else float)
                self.targets[question] = place.need(result, "to_name", str)
            elif kind not in ("relation", "", *_ANSWERS) or "labels" in value:
                self.other_types.setdefault(kind, place)
        return Annotation(worker, marks, answers)

    @cached_property
    def people(self) -> set[str | None]:
        """The names of all annotators, which a model must not share."""
        given = (_list_annotations(place, task) for place, _, _, task in self.entries)
        return {worker for each in given for worker, _ in each} - {None}

    def report(self, wanted: str, n_found: int) -> None:
        """Say what else there is, which regions were moved, and that models count as workers."""
        strange = [kind for kind in self.other_types if kind.endswith("labels")]
        if strange and wanted == "spans":
            self.other_types[strange[0]].fail(f"a region has type {shorten(strange[0])}.", _PLAIN)
        if self.other_types and not n_found:
            next(iter(self.other_types.values())).fail(f"found results of type {listing(self.other_types)}.", _PLAIN)
        if self.other_types:
            warn_of(f"Results of type {listing(sorted(self.other_types))} in {self.path!r} are not used. {_PLAIN}")
        if self.n_moved:
            where = "were moved to the texts that they quote, which are"
            where = "was moved to the text that it quotes, which is" if self.n_moved == 1 else where
            warn_of(f"{plural(self.n_moved, 'region')} in {self.path!r} {where} not at the offsets given.")
        models = sorted(self.models - {FUSED})  # others warn of fused results
        if models and self.people:
            count = "counts as a worker, who is a model" if len(models) == 1 else "count as workers, who are models"
            given = Python(f"fuse(source, block={models!r})", "FILE")
            warn_of(
                f"In {self.path!r}, {listing(models)} {count}: there are predictions.",
                Sentence("To fuse without predictions, use {block}.", block=given),
            )

    # Spans

    @cached_property
    def marked(self) -> list[tuple[PlacedRecord, list[Record]]]:
        """The regions of all annotations that have some."""
        return [(entry, each.marks) for entry, annotations in self.annotated for each in annotations if each.marks]

    @cached_property
    def key(self) -> str | None:
        """Which value of the data is the text, None if there are no regions.

        It is the one in which most regions fit, by offsets and by what they quote; if several are, names decide.
        """
        if not self.marked:
            return None
        tally: Counter[str] = Counter()
        for (place, _, _, task), regions in self.marked:
            offsets, quotes = _read_regions(place, regions)
            for key, text in _texts(task).items():
                tally[key] += sum(map(bool, _align(text, offsets, quotes)))
        if not tally:
            place.fail("'data' holds no text.", _PLAIN)
        names = {str(regions[-1].get("source") or "").removeprefix("$"), regions[-1]["to_name"]}
        ranks = {key: (number, key in names) for key, number in tally.items()}
        best = [key for key, rank in ranks.items() if rank == max(ranks.values())]
        if len(best) > 1:
            place.fail(
                f"it is not clear which value of 'data' is the text: {listing(tally)}. The regions fit "
                f"{'several' if any(tally.values()) else 'none'} of them.",
                "Export the text that each region quotes, or call the text as 'to_name' of the regions does.",
            )
        return best[0]

    def text(self, entry: PlacedRecord) -> str:
        """The value of the data in which the regions are; without regions in the file, the longest text."""
        place, _, _, task = entry
        if self.key is not None:
            return str(place.need(task["data"], self.key, str, "in 'data' the text "))
        if not _texts(task):
            place.fail("'data' holds no text.", _PLAIN)
        return max(_texts(task).values(), key=len)

    def locate(self, place: Place, text: str, marks: list[Record]) -> Scored:
        """The spans of one annotation. A region that is not where its text is, is moved there if it occurs once."""
        target = self.marked[0][1][0].get("to_name") if marks else None
        offsets, quotes = _read_regions(place, marks)
        found: Scored = {}
        for region, where, given, quote in zip(marks, _align(text, offsets, quotes), offsets, quotes, strict=True):
            if region["to_name"] != target:
                place.fail(
                    f"regions are in several texts: {shorten(target)} and {shorten(region['to_name'])}.",
                    "Keep the annotations of one of them.",
                )
            if where is None and quote and text.count(quote) == 1:
                where, self.n_moved = (text.index(quote), text.index(quote) + len(quote)), self.n_moved + 1
            elif where is None:
                start, end = place.check_span(text, *given)
                place.fail(
                    f"a region quotes {shorten(quote)}, but from {start} to {end} the text is "
                    f"{shorten(text[start:end])}.",
                    "Check that the annotations belong to this text.",
                )
            labels, score = place.entries(region["value"], "labels", str), place.check_score(region.get("score"))
            self.unused["region", "no label"] += not labels
            found |= dict.fromkeys(((*where, label) for label in labels), score)
        return found

    # Writing

    def make_record(self, document: MarkedText, like: PlacedRecord | None) -> Record:  # noqa: ARG002
        """A task without annotations."""
        return {"id": document.name, "data": {self.key or "text": document.text}}

    @cached_property
    def names(self) -> dict[str | None, tuple[str, str]]:
        """Of the regions with each label, and of any, the tags of the project: from_name and to_name."""
        names: dict[str | None, tuple[str, str]] = {}
        for (place, _, _, _), regions in self.marked:
            for region in regions:
                for label in [None, *place.entries(region["value"], "labels", str)]:
                    names.setdefault(label, (region["from_name"], region["to_name"]))
        return {None: ("label", "text")} | names

    def add_spans(self, entry: PlacedRecord, document: MarkedText, reading: Reading) -> None:
        """Add the spans of a worker to a task: as a prediction if they have a confidence, else as an annotation."""
        place, name, _, task = entry
        who, results = reading.worker, []
        for (start, end, label), score in reading.spans.items():
            from_name, to_name = self.names.get(label, self.names[None])
            region = {
                "id": _make_id(name, who, start, end, label),
                "from_name": from_name,
                "to_name": to_name,
                "type": "labels",
                "value": {"start": start, "end": end, "text": document.text[start:end], "labels": [label]},
            }
            results.append(region if score is None else {**region, "score": score})
        if who is not None and reading.is_judged:
            scores = [score for score in reading.spans.values() if score is not None]
            mean = sum(scores) / len(scores) if scores else 1.0  # where there are no spans, there is nothing to doubt
            _predict(
                place,
                task,
                {"model_version": who, "score": mean, "result": results},
                {each for each, _ in self.names.values()},
            )
            return
        new: Record = {"ground_truth": True, "result": results}
        if who is not None:
            is_number = who.isdecimal() and len(who) < 19 and str(int(who)) == who
            new = {"completed_by": int(who) if is_number else {"email": who}, "result": results}
        task["annotations"] = [*(task.get("annotations") or []), new]

    def label(self, entry: PlacedRecord, question: str, said: Any, verdict: Verdict) -> Record:
        """The task with a prediction, in place of an earlier fused label for the same question."""
        place, name, _, task = entry
        kind, value = "choices", [str(label) for label in verdict.labels]
        if isinstance(said, (int, float)):
            kind, value = "rating", as_rating(verdict.label, question)  # type: ignore[assignment]
        result = {
            "id": _make_id(name, FUSED, question),
            "from_name": question,
            "to_name": self.targets[question],
            "type": kind,
            "value": {kind: value},
        }
        _predict(place, task, {"model_version": FUSED, "score": verdict.confidence, "result": [result]}, {question})
        return task


def _list_annotations(place: Place, task: Record) -> Iterator[tuple[str | None, Record]]:
    """Yield the annotator of each annotation that counts, None for what is known, and the annotation."""
    for each in place.entries(task, "annotations", dict):
        if place.get(each, "was_cancelled", bool, False):
            continue
        if place.get(each, "ground_truth", bool, False):
            yield None, each
            continue
        who = each.get("completed_by")
        if isinstance(who, dict):
            who = who.get("email") or who.get("id")
        if who is None:
            place.fail("an annotation has no 'completed_by'.", "Say in it who made the annotation.")
        yield str(place.check_id(who, "'completed_by'")), each


def _model(place: Place, prediction: Record) -> str:
    version = prediction.get("model_version")
    return _MODEL if version in (None, "") else str(place.check_id(version, "'model_version'"))


def _predict(place: Place, task: Record, new: Record, tags: set[str]) -> None:
    """Add a prediction to a task, in place of that of the same model about these tags of the project."""

    def is_old(held: object) -> bool:
        if not isinstance(held, dict) or _model(place, held) != new["model_version"]:
            return False
        return {result.get("from_name") for result in place.entries(held, "result", dict)} <= tags

    task["predictions"] = [each for each in place.get(task, "predictions", list, []) if not is_old(each)] + [new]


def _texts(task: Record) -> dict[str, str]:
    return {key: value for key, value in task["data"].items() if isinstance(value, str)}


def _read_regions(place: Place, regions: list[Record]) -> tuple[list[tuple[int, int]], list[str | None]]:
    """Where regions are by their own account, and what they quote."""
    offsets, quotes = [], []
    for region in regions:
        value = place.need(region, "value", dict)
        if "channel" in value or isinstance(value.get("start"), (float, str)):
            place.fail("the regions are not in plain text, but in audio, a time series or HTML.", _PLAIN)
        place.need(region, "from_name", str)
        place.need(region, "to_name", str)
        offsets.append((place.need(value, "start", int), place.need(value, "end", int)))
        quotes.append(place.get(value, "text", str))
    return offsets, quotes


def _align(text: str, offsets: list[tuple[int, int]], quotes: list[str | None]) -> list[tuple[int, int] | None]:
    """Start and end of the regions of one annotation in characters; None for one that does not fit.

    A region fits if it is within the text, which there is what the region quotes, but for line breaks.
    """

    def fits(start: int, end: int, quote: str | None) -> bool:
        within = 0 <= start < end <= len(text)
        return within and (quote is None or text[start:end].replace("\r\n", "\n") == quote.replace("\r\n", "\n"))

    def squeeze(words: str) -> str:
        return re.sub(r"\s+|\\n|\\r", "", words)

    right = [fits(*each, quote) for each, quote in zip(offsets, quotes, strict=True)]
    if all(right):
        return list(offsets)
    utf_16 = [1 + (sign > "\uffff") for sign in text]
    short_breaks = [int(text[i : i + 2] != "\r\n") for i in range(len(text))]  # a line break is one character
    for widths in (utf_16, short_breaks):
        index = {offset: i for i, offset in reversed(list(enumerate(itertools.accumulate(widths, initial=0))))}
        other = [(index.get(start, -1), index.get(end, -1)) for start, end in offsets]
        if all(fits(*each, quote) for each, quote in zip(other, quotes, strict=True)):
            return list(other)
    return [
        (start, end)
        if fit or (quote and 0 <= start < end and squeeze(text[start:end]) == squeeze(quote) != "")
        else None
        for fit, (start, end), quote in zip(right, offsets, quotes, strict=True)
    ]


def _make_id(*key: object) -> str:
    """The id of a region or a choice, the same whenever it is written."""
    return hashlib.blake2b(repr(key).encode(), digest_size=5).hexdigest()


LABEL_STUDIO = LabelStudio.codec()
