"""Argilla: records exported with ``records.to_json`` or ``records.to_list``, as a JSON array or JSON lines.

Relies on the records of Argilla 2.x: ``fields``, ``responses`` (for each question a list of value, ``user_id``
and perhaps ``status``) and ``suggestions`` (for each question value, ``agent`` and ``score``).

- A worker is ``user_id``, for a suggestion its ``agent``, else "suggestion".
- Answers that were discarded, or are drafts, are no annotations.
- A list of {start, end, label} answers a question about spans. Text or a number is one answer, a list of these a set of
  tags; a table of answers has a column for each question if there are several.
- Offsets count characters. The text is the only field, else the one called "text".
- Spans with a confidence are written as suggestions, other spans as responses. Fused labels are suggestions. A question
  has one suggestion: those of other models become responses, without their scores.
- A path that ends in .jsonl or .ndjson gets JSON lines, any other an array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from ..errors import InputError, listing, shorten
from ..kinds.base import FUSED
from ..kinds.spans import MarkedText, Reading
from . import Verdict
from .annotation_tools import Annotation, Entry, Id, Tool, as_rating
from .json_lines import Record

_AGENT = "suggestion"
_SPANS = "spans"  # the question where none has been asked yet
_SUBMITTED = "submitted"  # not a draft, nor discarded


class Argilla(Tool):
    """Records of Argilla."""

    name = "argilla"
    title = "Argilla"
    numbers_are_ratings = True

    @staticmethod
    def recognise(first: Record, in_array: bool) -> bool:  # noqa: ARG004
        """Whether this is a record."""
        return isinstance(first.get("fields"), dict) and bool({"responses", "suggestions"} & first.keys())

    def as_array(self, path: str) -> bool:
        """Records are an array unless the path says that they are lines."""
        return not path.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson"))

    def identify(self, entry: Entry) -> tuple[Id | None, object, object]:
        """Id and fields of a record; the same fields without an id may occur several times in a file."""
        return entry.record.get("id"), entry.need(entry.record, "fields", dict), entry.path

    def text(self, entry: Entry) -> str | None:
        """The field that holds the text; None where nobody was asked about spans."""
        if self.question is None and self.asked:
            return None
        fields = {key: each for key, each in entry.record["fields"].items() if isinstance(each, str)}
        if len(fields) != 1 and "text" not in fields:
            entry.fail(
                f"it is not clear which field holds the text: found {listing(fields) if fields else 'no text'}.",
                "Export the records with one field of text, or call it text.",
            )
        return fields["text"] if "text" in fields else next(iter(fields.values()))

    @cached_property
    def question(self) -> str | None:
        """The question that is answered with spans, None if there is none."""
        spans, others, empty = set[str](), set[str](), set[str]()
        for entry in self.entries:
            for question, _, held in _given(entry):
                value = held["value"]
                if isinstance(value, list):
                    are_spans = all(isinstance(each, dict) and "start" in each for each in value)
                    (empty if not value else spans if are_spans else others).add(question)
        names = sorted((spans or empty) - others)
        if len(names) > 1:
            raise InputError(f"{self.path!r} has several questions about spans: {listing(names)}.", "Keep one of them.")
        return names[0] if names else None

    def annotations(self, entry: Entry) -> Iterable[Annotation]:
        """What each worker and each model says of all questions."""
        annotations: dict[str, Annotation] = {}
        for question, worker, held in _given(entry):
            said = annotations.setdefault(worker, Annotation(worker, None, {}))
            if question in said.answers or (question == self.question and said.marks is not None):
                entry.fail(f"{shorten(worker)} answers {shorten(question)} twice.", "Keep one answer.")
            if question != self.question:
                said.answers[question] = held["value"]
                continue
            marks = entry.entries(held, "value", dict)
            scores = held["score"] if isinstance(held.get("score"), list) else [None] * len(marks)
            if len(scores) != len(marks):
                entry.fail(f"there are {len(scores)} scores of {len(marks)} spans.", "Give each span a score, or none.")
            marks = [{**mark, "score": score} for mark, score in zip(marks, scores, strict=True)]
            annotations[worker] = said._replace(marks=marks)
        return annotations.values()

    def make_record(self, document: MarkedText, like: Record | None) -> Record:  # noqa: ARG002
        """A record without annotations."""
        return {"id": str(document.name), "fields": {"text": document.text}, "responses": {}, "suggestions": {}}

    def add_spans(self, record: Record, document: MarkedText, reading: Reading) -> None:  # noqa: ARG002
        """Add spans as a response, or as the suggestion if they have a confidence and there is none yet."""
        question, suggestions = self.question or _SPANS, record.get("suggestions") or {}
        value = [{"start": start, "end": end, "label": label} for start, end, label in reading.spans]
        if reading.worker == FUSED or (reading.is_judged and not suggestions.get(question)):
            scores = list(reading.spans.values()) if reading.is_judged else None
            _suggest(record, question, {"value": value, "score": scores, "agent": reading.worker})
        elif reading.worker is not None:
            _respond(record, question, value, reading.worker)

    def label(self, entry: Entry, question: str, said: Any, verdict: Verdict) -> Record:
        """The record with a suggestion."""
        value: Any = [each if isinstance(each, (str, int, float)) else str(each) for each in verdict.labels]
        score: Any = verdict.confidence
        if isinstance(said, list):
            score = [score] * len(value) if verdict.chances is None else verdict.chances
        else:
            value = as_rating(value[0], question) if isinstance(said, int) else value[0]
        _suggest(entry.record, question, {"value": value, "score": score, "agent": FUSED})
        return entry.record


def _given(entry: Entry) -> Iterator[tuple[str, str, Record]]:
    """Yield question, worker, and what holds the answer, of all responses and suggestions that count."""
    responses = entry.get(entry.record, "responses", dict, {})
    for question in responses:
        for response in entry.entries(responses, question, dict):
            if response.get("status") in (None, _SUBMITTED) and response.get("value") is not None:
                yield question, str(entry.check_id(response.get("user_id"), "'user_id'")), response
    for question, suggestion in entry.get(entry.record, "suggestions", dict, {}).items():
        if suggestion is not None and entry.check(suggestion, dict, "a suggestion").get("value") is not None:
            yield question, str(entry.check_id(suggestion.get("agent") or _AGENT, "'agent'")), suggestion


def _suggest(record: Record, question: str, new: Record) -> None:
    """Put a suggestion into a record. That of another model, which it takes the place of, becomes a response."""
    suggestions = record.get("suggestions") or {}
    old = suggestions.get(question) or {}
    if old.get("value") is not None and old.get("agent") != FUSED:
        _respond(record, question, old["value"], old.get("agent") or _AGENT)
    record["suggestions"] = {**suggestions, question: new}


def _respond(record: Record, question: str, value: object, worker: str) -> None:
    """Add a response to a record."""
    responses = record.get("responses") or {}
    new = {"value": value, "user_id": worker, "status": _SUBMITTED}
    record["responses"] = {**responses, question: [*(responses.get(question) or []), new]}


ARGILLA = Argilla.codec()
