"""Prodigy: the JSON lines of ``db-out``.

Relies on the task formats of Prodigy 1.x (documentation page "Annotation interfaces"). A line is what one
annotator did with one text.

- The worker is ``_annotator_id``, else ``_session_id``, else the name of the file.
- The document is ``_input_hash``, else ``id``, else the text.
- ``answer`` is not a label. "accept" confirms what the annotator marked or chose; "ignore" is no annotation. "reject"
  of marked spans says that something is wrong with the text or the spans, so that it is no annotation either.
- A task with one ``label`` is a question, whether the label fits: accept and reject are its answers. So they are where
  there is only a text. The item is the text, or text and label if there are several labels.
- A task with ``options`` is a choice: ``accept`` lists the ids that were chosen.
- Tasks of the interfaces "ner" and "spans" (binary) confirm single suggestions. They are not annotations of the text.
  So a task must have ``tokens``, as all manual tasks do, or say in ``_view_id`` that it is one ("ner_manual").
- Fused spans and labels are written as the tasks of one more annotator.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa

from ..errors import shorten
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
    finish,
    index_documents,
    list_inputs,
    list_readings,
    origin_of,
    say_answers,
    say_nothing,
    say_spans,
    stem,
    token_places,
    warn_dropped,
)
from .files import open_output
from .records import Identity, Place, is_array, peek_keys, plain, read_documents, write_lines
from .register import Codec
from .writing import replace_file

_NAME = "prodigy"
_TOOL = "Prodigy"
_ANSWERS = ("accept", "reject", "ignore")
_BINARY = ("ner", "spans")


def _tasks(path: str) -> Iterator[tuple[Place, Any, str, dict[str, Any]]]:
    """Yield place, document, worker and content of each line."""
    for place, name, file, task in read_documents(list_inputs(path), _identify):
        answer = place.need(task, "answer", str)
        if answer not in _ANSWERS:
            place.fail(f"'answer' must be one of {', '.join(_ANSWERS)}, found {shorten(answer)}.", "Correct it.")
        yield place, name, _worker(place, task, file), task


def _identify(place: Place, task: dict[str, Any], file: str) -> Identity:
    name = next((task[key] for key in ("_input_hash", "id") if task.get(key) is not None), None)
    text = next((place.get(task, key, str) for key in ("text", "html", "image") if task.get(key)), "")
    return Identity(name, text, (_worker(place, task, file), place.get(task, "label", str)))


def _worker(place: Place, task: dict[str, Any], file: str) -> str:
    worker = next((task[key] for key in ("_annotator_id", "_session_id") if task.get(key) is not None), None)
    return stem(file) if worker is None else str(place.check_id(worker, "the annotator's id"))


def _is_choice(task: dict[str, Any]) -> bool:
    return task.get("options") is not None


def _is_marked(task: dict[str, Any]) -> bool:
    """Tell whether a task is one of marking spans: it has spans; or none of them, tokens to mark, and no question."""
    if _is_choice(task):
        return False
    return bool(task.get("spans")) or (task.get("label") is None and ("spans" in task or "tokens" in task))


# -------------------------------------------------------------------------------------------------------------- spans


def _read_spans(path: str) -> Spans:
    collector = SpanCollector()
    documents: dict[Any, tuple[int, str]] = {}
    n_rejected = n_answers = n_readings = 0
    for place, name, worker, task in _tasks(path):
        if not _is_marked(task):
            n_answers += 1
            continue
        if task.get("_view_id") in _BINARY or not (task.get("tokens") is not None or _says_manual(place, task)):
            place.fail(
                "the task seems to confirm a single suggestion, so that other spans of the text are not known.", _FULL
            )
        text = place.need(task, "text", str)
        if name not in documents:
            documents[name] = collector.add_document(name, text, _tokens(place, task, text)), text
        document, known = documents[name]
        if known != text:
            place.fail(f"another line has another text for the input {shorten(name)}.", "Export the file again.")
        n_rejected += task["answer"] == "reject"
        if task["answer"] == "accept":
            n_readings += 1
            spans = _spans(place, task, text)
            scores = [score for score in spans.values() if score is not None]
            collector.add_reading(document, worker, spans, scores if len(scores) == len(spans) > 0 else None)
    if n_answers and not n_readings:
        say_answers(path, _TOOL)
    if not n_readings:
        say_nothing(path, _TOOL)
    warn_dropped(path, n_answers, "line", "answers about the whole text")
    warn_dropped(path, n_rejected, "line", "rejected, which is no annotation of the text")
    return finish(collector, path, _NAME)


_FULL = 'Give full annotations, as of ner.manual or spans.manual; add "_view_id": "ner_manual" if they are that.'


def _says_manual(place: Place, task: dict[str, Any]) -> bool:
    return str(place.get(task, "_view_id", str, "")).endswith("_manual")


def _spans(place: Place, task: dict[str, Any], text: str) -> dict[Span, float | None]:
    found = {}
    for span in place.entries(task, "spans", dict):
        start, end = (place.need(span, key, int) for key in ("start", "end"))
        place.check_span(text, start, end)
        found[start, end, place.need(span, "label", str)] = place.check_score(span.get("score"))
    return found


def _tokens(place: Place, task: dict[str, Any], text: str) -> list[tuple[int, int]] | None:
    """Return the places of the tokens, without those that are blank."""
    if task.get("tokens") is None:
        return None
    places = []
    last = 0
    for token in place.check_all(task["tokens"], dict, "'tokens'"):
        start, end = (place.need(token, key, int) for key in ("start", "end"))
        if start == end:
            continue
        place.check_span(text, start, end)
        if start < last:
            place.fail(f"the token at {start} overlaps the one before.", "Export the file again.")
        last = end
        if text[start:end].strip():
            places.append((start, end))
    return places


# ------------------------------------------------------------------------------------------------------------ answers


def _read(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    choices: list[dict[Any, Any]] = []
    questions: list[tuple[Any, str, str, str]] = []
    n_spans = n_rejected = 0
    for place, name, worker, task in _tasks(path):
        answer = task["answer"]
        n_spans += _is_marked(task)
        if answer == "ignore" or _is_marked(task):
            continue
        asked = _asked_label(place, task)
        if asked is not None:
            questions.append((name, worker, asked, answer))
        elif answer == "reject":
            n_rejected += 1
        else:
            label = _chosen(place, task)
            choices.append({"item": name, "worker": worker, ("question", "label"): label})
    if choices and questions:
        Place(path, "line", 1).fail("some lines are choices, others questions about one label.", "Read them apart.")
    if n_spans and not choices and not questions:
        say_spans(path, _TOOL)
    warn_dropped(path, n_spans, "line", "tasks of marking spans")
    warn_dropped(path, n_rejected, "line", "rejected choices")
    labels = {label for _, _, label, _ in questions}
    for name, worker, label, answer in questions:
        choices.append({"item": _item(name, label, labels), "worker": worker, ("question", "label"): answer})
    return choose(build_table(path, _TOOL, choices), wanted)


def _asked_label(place: Place, task: dict[str, Any]) -> str | None:
    """Return the label that a task asks about, None if it asks about none, or was not answered."""
    if task["answer"] == "ignore" or _is_choice(task) or _is_marked(task):
        return None
    return str(place.get(task, "label", str, ""))


def _item(name: Any, label: str, labels: Collection[str]) -> Any:
    """Return what a question about a label is about: the text, or text and label if there are several labels."""
    return name if len(labels) == 1 else f"{name} {label}"


def _chosen(place: Place, task: dict[str, Any]) -> Any:
    """Return the one option that was chosen."""
    ids = [place.check_id(place.check(option, dict, "an entry of 'options'").get("id"), "the id of an option")
           for option in place.check(task["options"], list, "'options'")]  # fmt: skip
    chosen = place.get(task, "accept", list, [])
    if len(chosen) != 1:
        place.fail(
            f"{'several options are' if chosen else 'no option is'} chosen.",
            "One label per item can be fused: ask about each option separately, or ignore the task.",
        )
    if chosen[0] not in ids:
        place.fail(f"{shorten(chosen[0])} is chosen, which is not among the options.", "Export the file again.")
    return place.check_id(chosen[0], "an entry of 'accept'")


# ------------------------------------------------------------------------------------------------------------ writing


def _write_spans(spans: Spans, path: str) -> None:
    with replace_file(path) as temporary, open_output(str(temporary)) as sink:
        write_lines(_updated_tasks(spans), sink)


def _updated_tasks(spans: Spans) -> Iterator[dict[str, Any]]:
    """Yield a task for each annotation: the original one where there is one, else one like another of the document."""
    readings = list_readings(spans)
    left = index_documents(spans)
    origin = origin_of(spans, _NAME)
    is_shared = origin is not None and len(list_inputs(origin.path)) > 1
    done: set[tuple[Any, str]] = set()
    models: dict[Any, dict[str, Any]] = {}
    for place, name, worker, task in _tasks(origin.path) if origin else ():
        index = left.get(name)
        task = _sign(task, worker) if is_shared else task
        if index is None or not _is_marked(task):
            yield task
            continue
        check_unchanged(place, place.need(task, "text", str), spans.texts[index])
        models.setdefault(name, task)
        reading = next((each for each in readings[index] if str(each.worker) == worker), None)
        if reading is not None and task["answer"] == "accept":
            done.add((name, worker))
            yield {**task, "spans": _to_spans(task, reading, task.get("spans") or [])}
        else:
            yield task
    check_all_found(origin, left, models)
    for name, index in left.items():
        for reading in readings[index]:
            if (name, str(reading.worker)) not in done:
                yield _new_task(spans, name, index, reading, models.get(name))


def _sign(task: dict[str, Any], worker: str) -> dict[str, Any]:
    """Return a task that says who did it, where only the name of its file said so."""
    says_who = any(task.get(key) is not None for key in ("_annotator_id", "_session_id"))
    return task if says_who else {**task, "_annotator_id": worker}


_OWN = ("_task_hash", "_timestamp", "_session_id", "_annotator_id", "spans", "accept", "answer")


def _new_task(spans: Spans, name: Any, index: int, reading: Reading, model: dict[str, Any] | None) -> dict[str, Any]:
    key = "_input_hash" if isinstance(plain(name), int) else "id"
    new = {"text": spans.texts[index], key: plain(name), "_view_id": "spans_manual"}
    task = new if model is None else dict(model)
    task = {key: value for key, value in task.items() if key not in _OWN}
    places = token_places(spans, index)
    if model is None and places is not None:
        task["tokens"] = [
            {"text": spans.texts[index][start:end], "start": start, "end": end, "id": number,
             "ws": spans.texts[index][end : end + 1].isspace()}
            for number, (start, end) in enumerate(places)
        ]  # fmt: skip
    worker = str(reading.worker)
    return {
        **task,
        "spans": _to_spans(task, reading, []),
        "answer": "accept",
        "_annotator_id": worker,
        "_session_id": worker,
    }


def _to_spans(task: dict[str, Any], reading: Reading, old: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return spans as objects; those that were there keep all that they have.

    The numbers of the first and the last token count in the tokens of the task. A span that does not begin and end with
    a token has none.
    """
    known = {(each["start"], each["end"], each["label"]): each for each in old}
    tokens = [(number, each["start"], each["end"]) for number, each in enumerate(task.get("tokens") or [])]
    first = {start: number for number, start, end in tokens if start < end}
    last = {end: number for number, start, end in tokens if start < end}
    written = []
    for (start, end, label), score in zip(reading.spans, reading.scores, strict=True):
        each = dict(known.get((start, end, label), {"start": start, "end": end, "label": label}))
        if start in first and end in last:
            each.setdefault("token_start", first[start])
            each.setdefault("token_end", last[end])
        written.append(each if score is None else {**each, "score": score})
    return written


def _write_labels(verdicts: Verdicts, origin: str, path: str) -> None:
    """Write all lines, and one more for each item."""
    with replace_file(path) as temporary, open_output(str(temporary)) as sink:
        write_lines(_labelled_tasks(verdicts, origin), sink)


def _labelled_tasks(verdicts: Verdicts, origin: str) -> Iterator[dict[str, Any]]:
    """Yield all tasks, then one with the fused answer for each item."""
    asked = (_asked_label(place, task) for place, _, _, task in _tasks(origin))
    labels = {label for label in asked if label is not None}
    is_shared = len(list_inputs(origin)) > 1
    added: dict[str, dict[str, Any]] = {}
    for place, name, worker, task in _tasks(origin):
        if _is_marked(task) or worker != FUSED:
            yield _sign(task, worker) if is_shared else task
        label = _asked_label(place, task)
        if label is None and not (_is_choice(task) and task["answer"] == "accept"):
            continue
        item = name if label is None else _item(name, label, labels)
        verdict = verdicts.find(item)
        if verdict is not None and str(item) not in added:
            added[str(item)] = _answered(task, verdict, label is not None)
    verdicts.check_written(origin, added)
    yield from added.values()


def _answered(task: dict[str, Any], verdict: Verdict, is_question: bool) -> dict[str, Any]:
    """Return a task with the fused answer."""
    kept = {key: value for key, value in task.items() if key not in _OWN}
    if is_question:
        said: dict[str, Any] = {"answer": str(verdict.label)}
    else:
        ids = {str(option["id"]): option["id"] for option in task["options"]}
        said = {"accept": [ids.get(str(verdict.label), str(verdict.label))], "answer": "accept"}
    score = {} if verdict.confidence is None else {"score": verdict.confidence}
    return {**kept, **said, **score, "_annotator_id": FUSED, "_session_id": FUSED}


def _recognise(head: bytes, _path: str) -> bool:
    keys = peek_keys(head)
    if is_array(head):
        return False
    if {"_input_hash", "_task_hash"} <= keys.keys():
        return True  # the answer may come after many tokens
    signs = {"_input_hash", "_session_id", "_annotator_id", "_view_id"} & keys.keys()
    lists = {key for key in ("spans", "tokens", "options") if keys.get(key) == "["}
    return keys.get("answer") == '"' and bool(signs or lists)


PRODIGY = Codec(
    _read,
    recognise=_recognise,
    read_spans=_read_spans,
    write_spans=_write_spans,
    carries=frozenset({"confidence", "tokens", "white space"}),
    write_labels=_write_labels,
)
