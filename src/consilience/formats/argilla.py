"""Argilla: records exported with ``records.to_json`` or ``records.to_list``, as a JSON array or JSON lines.

Relies on the records of Argilla 2.x: ``fields``, ``responses`` (for each question a list of value, ``user_id``
and perhaps ``status``) and ``suggestions`` (for each question value, ``agent`` and ``score``). The responses of the
feedback datasets of Argilla 1.x (a list with ``values`` and ``status``) are read too.

- A worker is ``user_id``, for a suggestion its ``agent``, else "suggestion".
- Responses that were discarded, or are drafts, are no annotations.
- A list of {start, end, label} answers a question about spans. Text or a number is one answer; a table of answers has a
  column for each question if there are several.
- Offsets count characters. The text is the only field, else the one called "text".
- Spans with a confidence are written as suggestions, other spans as responses. Fused labels are suggestions. A question
  has one suggestion: those of other models become responses, without their scores.
- A path that ends in .jsonl or .ndjson gets JSON lines, any other an array.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from ..errors import InputError, listing, shorten
from ..tasks.spans import SpanCollector, Spans
from ..tasks.texts import FUSED
from .annotations import (
    Reading,
    Span,
    Verdict,
    Verdicts,
    build_table,
    check_all_found,
    check_unchanged,
    choose,
    choose_readings,
    finish,
    index_documents,
    list_inputs,
    list_readings,
    origin_of,
    say_answers,
    say_nothing,
    say_spans,
)
from .files import open_output
from .records import Identity, Place, peek_keys, plain, read_documents, write_array, write_lines
from .register import Codec
from .writing import replace_file

_NAME = "argilla"
_TOOL = "Argilla"
_AGENT = "suggestion"
_UNFINISHED = ("discarded", "draft")


class _Answer(NamedTuple):
    question: str
    worker: str
    value: Any
    score: Any
    is_suggestion: bool


def _records(path: str) -> Iterator[tuple[Place, Any, dict[str, Any]]]:
    """Yield place, id and content of each record."""
    for place, name, _, record in read_documents(list_inputs(path), _identify):
        yield place, name, record


def _identify(place: Place, record: dict[str, Any], file: str) -> Identity:
    if any(key.endswith(".responses") for key in record):
        place.fail("the records are flattened.", "Export them without flatten=True.")
    return Identity(record.get("id"), place.need(record, "fields", dict), file)


def _answers(place: Place, record: dict[str, Any]) -> Iterator[_Answer]:
    """Yield all responses and suggestions that count."""
    for question, response in _responses(place, record):
        status = place.get(response, "status", str, "submitted")
        if status not in ("submitted", *_UNFINISHED):
            place.fail(f"'status' must be submitted, draft or discarded, found {shorten(status)}.", "Correct it.")
        if status == "submitted" and response.get("value") is not None:
            worker = str(place.check_id(response.get("user_id"), "'user_id'"))
            yield _Answer(question, worker, response["value"], None, False)
    for question, suggestion in _suggestions(place, record):
        if suggestion.get("value") is not None:
            agent = suggestion.get("agent")
            worker = _AGENT if agent in (None, "") else str(place.check_id(agent, "'agent'"))
            yield _Answer(question, worker, suggestion["value"], suggestion.get("score"), True)


def _responses(place: Place, record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
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


def _suggestions(place: Place, record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    given = {} if record.get("suggestions") is None else record["suggestions"]
    if isinstance(given, list):
        for suggestion in place.check_all(given, dict, "'suggestions'"):
            yield place.need(suggestion, "question_name", str), suggestion
        return
    for question, suggestion in place.check(given, dict, "'suggestions'").items():
        yield question, place.check({} if suggestion is None else suggestion, dict, "a suggestion")


def _is_spans(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) and "start" in each for each in value)


def _field(place: Place, record: dict[str, Any]) -> str:
    texts = [key for key, value in record["fields"].items() if isinstance(value, str)]
    if len(texts) == 1:
        return str(texts[0])
    if "text" in texts:
        return "text"
    return place.fail(
        f"it is not clear which field holds the text: found {listing(texts) if texts else 'no text'}.",
        "Export the records with one field of text, or call it text.",
    )


# -------------------------------------------------------------------------------------------------------------- spans


def _find_question(path: str) -> str | None:
    """Return the question that is answered with spans."""
    found: dict[str, bool] = {}
    for place, _, record in _records(path):
        for answer in _answers(place, record):
            if _is_spans(answer.value):
                found[answer.question] = found.get(answer.question, False) or bool(answer.value)
    marked = [question for question, is_marked in found.items() if is_marked] or list(found)
    if len(marked) > 1:
        raise InputError(f"{path!r} has several questions about spans: {listing(marked)}.", "Keep one of them.")
    return marked[0] if marked else None


def _read_spans(path: str) -> Spans:
    question = _find_question(path)
    collector = SpanCollector()
    others: set[str] = set()
    documents: dict[Any, int] = {}
    for place, name, record in _records(path):
        text = record["fields"][_field(place, record)] if question is not None else ""
        if name not in documents:
            documents[name] = collector.add_document(name, text)
        document = documents[name]
        for answer in _answers(place, record):
            if answer.question != question:
                others.add(answer.question)
                continue
            spans, scores = _spans(place, text, answer)
            collector.add_reading(document, answer.worker, spans, scores)
    if question is None:
        (say_answers if others else say_nothing)(path, _TOOL)
    return finish(collector, path, _NAME, others)


def _spans(place: Place, text: str, answer: _Answer) -> tuple[list[Span], list[float] | None]:
    """Return the spans of an answer, and their scores if each has one."""
    found: dict[Span, float | None] = {}
    place.check(answer.value, list, f"the answer to {shorten(answer.question)}")
    scores = answer.score if isinstance(answer.score, list) else [None] * len(answer.value)
    if len(scores) != len(answer.value):
        place.fail(f"there are {len(scores)} scores of {len(answer.value)} spans.", "Give each span a score, or none.")
    for span, score in zip(place.check_all(answer.value, dict, "the spans"), scores, strict=True):
        start, end = (place.need(span, key, int) for key in ("start", "end"))
        place.check_span(text, start, end)
        found[start, end, place.need(span, "label", str)] = place.check_score(score)
    known = [score for score in found.values() if score is not None]
    return list(found), known if len(known) == len(found) > 0 else None


# ------------------------------------------------------------------------------------------------------------ answers


def _read(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    rows: list[dict[Any, Any]] = []
    n_spans = 0
    for place, name, record in _records(path):
        given: dict[str, dict[Any, Any]] = {}
        for answer in _answers(place, record):
            if _is_spans(answer.value):
                n_spans += 1
                continue
            value = answer.value
            if isinstance(value, list) and len(value) == 1:
                value = value[0]
            if isinstance(value, (list, dict, bool, float)) or value == "":
                place.fail(
                    f"the answer to {shorten(answer.question)} is {shorten(answer.value)}.",
                    "One label per item can be fused: ask about each label separately.",
                )
            place.check_id(value, f"the answer to {shorten(answer.question)}")
            row = given.setdefault(answer.worker, {"item": name, "worker": answer.worker})
            if ("question", answer.question) in row:
                place.fail(f"{shorten(answer.worker)} answers {shorten(answer.question)} twice.", "Keep one answer.")
            row["question", answer.question] = value
        rows += given.values()
    if n_spans and not rows:
        say_spans(path, _TOOL)
    return choose(build_table(path, _TOOL, rows), wanted)


# ------------------------------------------------------------------------------------------------------------ writing


def _write_spans(spans: Spans, path: str) -> None:
    _write(_updated_records(spans), path)


def _write(records: Iterable[dict[str, Any]], path: str) -> None:
    has_lines = path.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    with replace_file(path) as temporary, open_output(str(temporary)) as sink:
        (write_lines if has_lines else write_array)(records, sink)


def _updated_records(spans: Spans) -> Iterator[dict[str, Any]]:
    readings, left = list_readings(spans), index_documents(spans)
    origin = origin_of(spans, _NAME)
    question = (_find_question(origin.path) if origin else None) or "spans"
    indices, known = dict(left), _find_workers(origin.path, question) if origin else {}
    is_named = origin is not None and len(list_inputs(origin.path)) > 1  # in one file the same text is several records
    for place, name, record in _records(origin.path) if origin else ():
        index = indices.get(name)
        if index is not None:
            check_unchanged(place, record["fields"][_field(place, record)], spans.texts[index])
            own = {answer.worker for answer in _answers(place, record) if answer.question == question}
            chosen = choose_readings(readings[index], own, known[name])
            known[name].update(str(each.worker) for each in chosen)
            _update(place, record, question, chosen)
            left.pop(name, None)
        yield {**record, "id": plain(name)} if is_named else record
    check_all_found(origin, left, ())
    for name, index in left.items():
        record = {"id": str(name), "fields": {"text": spans.texts[index]}, "responses": {}, "suggestions": {}}
        _update(Place("", "record", index + 1), record, question, readings[index])
        yield record


def _find_workers(path: str, question: str) -> dict[Any, set[str]]:
    """Return who answered the question about each document."""
    found: dict[Any, set[str]] = {}
    for place, name, record in _records(path):
        workers = found.setdefault(name, set())
        workers.update(answer.worker for answer in _answers(place, record) if answer.question == question)
    return found


def _update(place: Place, record: dict[str, Any], question: str, readings: list[Reading]) -> None:
    """Put the spans of the workers into a record, whose responses become those of version 2."""
    responses: dict[str, list[dict[str, Any]]] = {}
    for each, response in _responses(place, record):
        responses.setdefault(each, []).append({key: value for key, value in response.items() if key != "values"})
    suggestions = dict(_suggestions(place, record))
    is_taken = False  # a question has one suggestion, so that of several models the others are responses
    for reading in readings:
        value = [{"start": start, "end": end, "label": label} for start, end, label in reading.spans]
        worker = str(reading.worker)
        agent = suggestions.get(question, {}).get("agent")
        agent = _AGENT if agent in (None, "") else str(agent)
        own = [
            each
            for each in responses.get(question, [])
            if str(each.get("user_id")) == worker and each.get("status") not in _UNFINISHED
        ]
        if own:
            own[0]["value"] = value
        elif question in suggestions and agent == worker:
            old, is_taken = suggestions[question], True
            is_same = old.get("value") == value and reading.confidence in (None, old.get("score"))
            suggestions[question] = {**old, **({} if is_same else {"value": value, "score": reading.confidence})}
        elif reading.confidence is not None and not is_taken:
            kept = _as_response(suggestions.get(question))
            if kept is not None:
                responses.setdefault(question, []).append(kept)
            suggestions[question], is_taken = {"value": value, "score": reading.confidence, "agent": worker}, True
        else:
            responses.setdefault(question, []).append({"value": value, "user_id": worker, "status": "submitted"})
    record["responses"], record["suggestions"] = responses, suggestions


def _as_response(suggestion: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the suggestion of a model as a response, which makes room for another; None if there is none to keep."""
    if suggestion is None or suggestion.get("value") is None or suggestion.get("agent") == FUSED:
        return None
    return {"value": suggestion["value"], "user_id": suggestion.get("agent") or _AGENT, "status": "submitted"}


def _write_labels(verdicts: Verdicts, origin: str, path: str) -> None:
    values = {
        answer.question: answer.value
        for place, _, record in _records(origin)
        for answer in _answers(place, record)
        if not _is_spans(answer.value)
    }
    question = verdicts.choose(origin, values)
    _write(_labelled_records(verdicts, origin, question, isinstance(values[question], list)), path)


def _labelled_records(verdicts: Verdicts, origin: str, question: str, in_list: bool) -> Iterator[dict[str, Any]]:
    written: set[str] = set()
    for place, name, record in _records(origin):
        verdict = verdicts.find(name)
        written.add(str(name))
        if verdict is not None:
            suggestion = _suggest(verdict, in_list)
            given = record.get("suggestions")
            _add_response(record, question, _as_response(dict(_suggestions(place, record)).get(question)))
            if isinstance(given, list):  # 1.x
                kept = [each for each in given if each.get("question_name") != question]
                record["suggestions"] = [*kept, {"question_name": question, **suggestion}]
            else:
                record["suggestions"] = {**dict(_suggestions(place, record)), question: suggestion}
        yield record
    verdicts.check_written(origin, written)


def _add_response(record: dict[str, Any], question: str, response: dict[str, Any] | None) -> None:
    """Add a response to a record, in the form that its responses have."""
    if response is None:
        return
    given = record.get("responses") or {}
    if isinstance(given, list):  # 1.x
        value = {"value": response.pop("value")}
        record["responses"] = [*given, {**response, "values": {question: value}}]
    else:
        record["responses"] = {**given, question: [*(given.get(question) or []), response]}


def _suggest(verdict: Verdict, in_list: bool) -> dict[str, Any]:
    score = verdict.confidence
    value = plain(verdict.label)
    return {"value": [value] if in_list else value, "score": [score] if in_list else score, "agent": FUSED}


def _recognise(head: bytes, _path: str) -> bool:
    keys = peek_keys(head)
    is_record = keys.get("fields") == "{" and bool({"responses", "suggestions"} & keys.keys())
    return is_record or any(key.endswith(".responses.users") for key in keys)


ARGILLA = Codec(
    _read,
    recognise=_recognise,
    read_spans=_read_spans,
    write_spans=_write_spans,
    carries=frozenset({"confidence", "white space"}),
    write_labels=_write_labels,
)
