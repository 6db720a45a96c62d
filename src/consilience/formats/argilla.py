"""Argilla: records exported with ``records.to_json`` or ``records.to_list``, as a JSON array or JSON lines.

Relies on the records of Argilla 2.x: ``fields``, ``responses`` (for each question a list of value, ``user_id``
and perhaps ``status``) and ``suggestions`` (for each question value, ``agent`` and ``score``). The responses of the
feedback datasets of Argilla 1.x (a list with ``values`` and ``status``) are read too.

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
from typing import Any, NamedTuple

from ..errors import InputError, listing, shorten
from ..tasks.spans import Spans
from ..tasks.texts import FUSED
from . import Verdict, Verdicts
from .annotation_tools import Answer, Reading, Scored, SharedRecords, as_rating
from .records import Entry, Id, Identity, Place, Record, peek_record, plain, write_records

_AGENT = "suggestion"
_SPANS = "spans"  # the question where none has been asked yet
_UNFINISHED = ("discarded", "draft")


class Argilla(SharedRecords):
    """Records of Argilla."""

    name = "argilla"
    title = "Argilla"
    numbers_are_ratings = True

    def __init__(self, path: str | None) -> None:
        super().__init__(path)
        # The question that labels answer, and whether its answers are lists, or ratings.
        self.asked, self.in_list, self.is_rating = "", False, False

    @staticmethod
    def recognise(head: bytes, path: str) -> bool:  # noqa: ARG004
        """Tell whether the first bytes of a file are those of records."""
        first = peek_record(head)
        is_record = isinstance(first.get("fields"), dict) and bool({"responses", "suggestions"} & first.keys())
        return is_record or any(key.endswith(".responses.users") for key in first)

    def identify(self, place: Place, record: Record, file: str) -> Identity:
        """Return id and fields of a record; the same fields without an id may occur several times in a file."""
        if any(key.endswith(".responses") for key in record):
            place.fail("the records are flattened.", "Export them without flatten=True.")
        return Identity(record.get("id"), place.need(record, "fields", dict), file)

    @cached_property
    def question(self) -> str | None:
        """The question that is answered with spans."""
        found: dict[str, bool] = {}
        for entry in self.entries():
            for answer in _answers(entry):
                if _is_spans(answer.value) and answer.question not in self.choices:
                    found[answer.question] = found.get(answer.question, False) or bool(answer.value)
        marked = [question for question, is_marked in found.items() if is_marked] or list(found)
        if len(marked) > 1:
            raise InputError(
                f"{self.path!r} has several questions about spans: {listing(marked)}.", "Keep one of them."
            )
        return marked[0] if marked else None

    @cached_property
    def choices(self) -> frozenset[str]:
        """The questions that are answered with lists of labels."""
        return frozenset(
            answer.question
            for entry in self.entries()
            for answer in _answers(entry)
            if isinstance(answer.value, list) and not _is_spans(answer.value)
        )

    def text(self, entry: Entry) -> str:
        """Return the field that holds the text."""
        fields: dict[str, str] = {key: each for key, each in entry.record["fields"].items() if isinstance(each, str)}
        if len(fields) != 1 and "text" not in fields:
            entry.place.fail(
                f"it is not clear which field holds the text: found {listing(fields) if fields else 'no text'}.",
                "Export the records with one field of text, or call it text.",
            )
        return fields["text"] if len(fields) != 1 else next(iter(fields.values()))

    def readings(self, entry: Entry) -> Iterator[tuple[str, Scored]]:
        """Yield the spans of responses and suggestions."""
        for answer in _answers(entry):
            if answer.question == self.question:
                yield answer.worker, _spans(entry.place, self.text(entry), answer)
            else:
                self.questions.add(answer.question)

    def read_spans(self) -> Spans:
        """Return the texts, and the spans that workers marked in them."""
        if self.question is None:
            is_answered = any(True for entry in self.entries() for _ in _answers(entry))
            (self.say_answers if is_answered else self.say_nothing)()
        return super().read_spans()

    def answers(self, entry: Entry) -> Iterable[Answer]:
        """Return the answers of each worker."""
        place, given = entry.place, dict[str, dict[str, Id | list[Id]]]()
        for answer in _answers(entry):
            is_empty = answer.value == [] and answer.question in self.choices
            if _is_spans(answer.value) and not is_empty:
                self.n_spans += 1
                continue
            value, what = answer.value, f"the answer to {shorten(answer.question)}"
            if isinstance(value, (dict, bool, float)) or value == "":
                place.fail(f"{what} is {shorten(value)}.", "One label, or a list of labels, can be fused.")
            own = given.setdefault(answer.worker, {})
            if answer.question in own:
                place.fail(f"{shorten(answer.worker)} answers {shorten(answer.question)} twice.", "Keep one answer.")
            parts = [place.check_id(each, what) for each in (value if isinstance(value, list) else [value])]
            own[answer.question] = parts if isinstance(value, list) else parts[0]
        return [Answer(entry.name, worker, own) for worker, own in given.items()]

    # -------------------------------------------------------------------------------------------------------- writing

    def write_spans(self, spans: Spans, path: str) -> None:
        """Write the original records with the spans in place, then records of documents that they lack."""
        _write(self.updated_records(spans), path)

    def workers(self, entry: Entry) -> set[str]:
        """Return who answered the question about spans."""
        return {answer.worker for answer in _answers(entry) if answer.question == (self.question or _SPANS)}

    def new_record(self, name: Id, text: str) -> Record:
        """Return a record without annotations."""
        return {"id": str(name), "fields": {"text": text}, "responses": {}, "suggestions": {}}

    def update(self, place: Place, record: Record, text: str, readings: list[Reading]) -> None:  # noqa: ARG002
        """Put the spans of the workers into a record, whose responses become those of version 2."""
        question = self.question or _SPANS
        responses: dict[str, list[Record]] = {}
        for each, response in _responses(place, record):
            responses.setdefault(each, []).append({key: value for key, value in response.items() if key != "values"})
        finished = dict[str, Record]()
        for response in responses.get(question, []):
            if response.get("status") not in _UNFINISHED:
                finished.setdefault(str(response.get("user_id")), response)
        suggestions = dict(_suggestions(place, record))
        is_taken = False  # a question has one suggestion, so that of several models the others are responses
        for reading in readings:
            value = [{"start": start, "end": end, "label": label} for start, end, label in reading.spans]
            worker = str(reading.worker)
            agent = suggestions.get(question, {}).get("agent")
            agent = _AGENT if agent in (None, "") else str(agent)
            if worker in finished:
                finished[worker]["value"] = value
            elif question in suggestions and agent == worker:
                old, is_taken = suggestions[question], True
                is_same = old.get("value") == value and reading.confidence in (None, old.get("score"))
                suggestions[question] = {**old, **({} if is_same else {"value": value, "score": reading.confidence})}
            elif reading.confidence is not None and not is_taken:
                kept = _as_response(suggestions.get(question))
                if kept is not None:
                    responses.setdefault(question, []).append(kept)
                    finished.setdefault(str(kept["user_id"]), kept)
                suggestions[question], is_taken = {"value": value, "score": reading.confidence, "agent": worker}, True
            else:
                responses.setdefault(question, []).append({"value": value, "user_id": worker, "status": "submitted"})
        record["responses"], record["suggestions"] = responses, suggestions

    def write_labels(self, verdicts: Verdicts, path: str) -> None:
        """Write all records, with the fused labels as suggestions."""
        values = {
            answer.question: answer.value
            for entry in self.entries()
            for answer in _answers(entry)
            if not _is_spans(answer.value) or answer.question in self.choices
        }
        self.asked = verdicts.choose(self.path, values)
        self.in_list, self.is_rating = isinstance(values[self.asked], list), isinstance(values[self.asked], int)
        _write(self.labelled_records(verdicts), path)

    def add_label(self, entry: Entry, verdict: Verdict) -> None:
        """Put a suggestion into a record. That of another model, which it takes the place of, becomes a response."""
        place, _, _, record = entry
        score = verdict.confidence
        values = [plain(label) for label in verdict.labels]
        if self.is_rating:
            values = [as_rating(value, self.asked) for value in values]
        scores = [score for _ in values] if verdict.chances is None else verdict.chances
        listed: dict[str, object] = {"value": values, "score": scores}
        suggestion = listed if self.in_list else {"value": values[0], "score": score}
        suggestion["agent"] = FUSED
        given, suggestions = record.get("suggestions"), dict(_suggestions(place, record))
        _add_response(record, self.asked, _as_response(suggestions.get(self.asked)))
        if isinstance(given, list):  # 1.x
            kept = [each for each in given if each.get("question_name") != self.asked]
            record["suggestions"] = [*kept, {"question_name": self.asked, **suggestion}]
        else:
            record["suggestions"] = {**suggestions, self.asked: suggestion}


class _Given(NamedTuple):
    question: str
    worker: str
    value: Any
    score: Any


def _answers(entry: Entry) -> Iterator[_Given]:
    """Yield all responses and suggestions that count."""
    place, _, _, record = entry
    for question, response in _responses(place, record):
        status = place.get(response, "status", str, "submitted")
        if status not in ("submitted", *_UNFINISHED):
            place.fail(f"'status' must be submitted, draft or discarded, found {shorten(status)}.", "Correct it.")
        if status == "submitted" and response.get("value") is not None:
            worker = str(place.check_id(response.get("user_id"), "'user_id'"))
            yield _Given(question, worker, response["value"], None)
    for question, suggestion in _suggestions(place, record):
        if suggestion.get("value") is not None:
            agent = suggestion.get("agent")
            worker = _AGENT if agent in (None, "") else str(place.check_id(agent, "'agent'"))
            yield _Given(question, worker, suggestion["value"], suggestion.get("score"))


def _responses(place: Place, record: Record) -> Iterator[tuple[str, Record]]:
    given = {} if record.get("responses") is None else record["responses"]
    if isinstance(given, list):  # 1.x: one entry per user, with the values of all questions
        for response in place.check_all(given, dict, "'responses'"):
            for question, value in place.get(response, "values", dict, {}).items():
                inner = place.check(value, dict, f"the answer to {shorten(question)}").get("value")
                yield question, {**response, "value": inner}
        return
    for question, responses in place.check(given, dict, "'responses'").items():
        for response in place.check_all([] if responses is None else responses, dict, "'responses'"):
            yield question, response


def _suggestions(place: Place, record: Record) -> Iterator[tuple[str, Record]]:
    given = {} if record.get("suggestions") is None else record["suggestions"]
    if isinstance(given, list):
        for suggestion in place.check_all(given, dict, "'suggestions'"):
            yield place.need(suggestion, "question_name", str), suggestion
        return
    for question, suggestion in place.check(given, dict, "'suggestions'").items():
        yield question, place.check({} if suggestion is None else suggestion, dict, "a suggestion")


def _is_spans(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) and "start" in each for each in value)


def _spans(place: Place, text: str, answer: _Given) -> Scored:
    """Return the spans of an answer, each with its score if there is one."""
    found: Scored = {}
    place.check(answer.value, list, f"the answer to {shorten(answer.question)}")
    scores = answer.score if isinstance(answer.score, list) else [None] * len(answer.value)
    if len(scores) != len(answer.value):
        place.fail(f"there are {len(scores)} scores of {len(answer.value)} spans.", "Give each span a score, or none.")
    for span, score in zip(place.check_all(answer.value, dict, "the spans"), scores, strict=True):
        start, end = (place.need(span, key, int) for key in ("start", "end"))
        place.check_span(text, start, end)
        found[start, end, place.need(span, "label", str)] = place.check_score(score)
    return found


def _as_response(suggestion: Record | None) -> Record | None:
    """Return the suggestion of a model as a response, which makes room for another; None if there is none to keep."""
    if suggestion is None or suggestion.get("value") is None or suggestion.get("agent") == FUSED:
        return None
    return {"value": suggestion["value"], "user_id": suggestion.get("agent") or _AGENT, "status": "submitted"}


def _add_response(record: Record, question: str, response: Record | None) -> None:
    """Add a response to a record, in the form that its responses have."""
    if response is None:
        return
    given = record.get("responses") or {}
    if isinstance(given, list):  # 1.x
        value = {"value": response.pop("value")}
        record["responses"] = [*given, {**response, "values": {question: value}}]
    else:
        record["responses"] = {**given, question: [*(given.get(question) or []), response]}


def _write(records: Iterable[Record], path: str) -> None:
    write_records(records, path, as_array=not path.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson")))


ARGILLA = Argilla.codec()
