"""doccano: JSON lines, one file per annotator.

Relies on the format JSONL of doccano 1.x. A line has ``id``, ``text`` and ``label``: a
list of [start, end, label] for spans, of labels for classification. With relations, spans are in ``entities``.

- The worker is the name of the file without its suffix. Several files are given as a folder or a pattern.
- Documents of several files are the same if they have the same id; without ids, the same text.
- "unknown.jsonl" holds texts that nobody labelled, and "all.jsonl" the labels of all annotators. They are left out
  beside other files, with a warning.
- doccano does not say which texts an annotator has seen, so each text in a file counts as read by its annotator. Export
  only approved texts.
- Offsets count characters.
- Fused spans and labels are written as the file of one more annotator.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa

from ..answers.tables import ALIASES, OTHER_ALIASES, squeeze
from ..errors import DataWarning, InputError, plural, shorten, warn
from ..tasks.spans import SpanCollector, Spans
from ..tasks.texts import FUSED
from .annotations import (
    Reading,
    Span,
    Verdicts,
    build_table,
    check_all_found,
    check_unchanged,
    choose,
    file_name,
    finish,
    index_documents,
    is_folder,
    list_inputs,
    list_readings,
    make_folder,
    origin_of,
    say_answers,
    say_nothing,
    say_spans,
    stem,
)
from .files import open_output
from .records import Identity, Place, peek_keys, plain, read_documents, write_lines
from .register import Codec
from .writing import replace_file, replace_together

_NAME = "doccano"
_TOOL = "doccano"
_TEXTS = ("text", "data")
_LABELS = ("entities", "label", "labels")
_CONFIDENCE = "confidence"  # our own key: the tool has none
_NOBODY, _EVERYBODY = "unknown", "all"
_MEANING = {_NOBODY: "texts that nobody labelled", _EVERYBODY: "the labels of all annotators together"}
_WORKERS = {squeeze(name) for names in (ALIASES["worker"], *OTHER_ALIASES["worker"]) for name in names}


def _records(path: str) -> Iterator[tuple[Place, Any, str, str, dict[str, Any]]]:
    """Yield place, document, worker, key of the labels and content of each line."""
    unnamed: set[tuple[str, str]] = set()
    for place, name, file, record in read_documents(_list_files(path), _identify):
        if record.get("id") is None:
            text = _text(place, record)
            if (file, text) in unnamed:
                place.fail(
                    f"the text {shorten(text)} occurs twice in this file, and has no id.",
                    "Give each text an id; in a table of answers, say who gave them in a column called worker.",
                )
            unnamed.add((file, text))
        key = next((key for key in _LABELS if record.get(key) is not None), None)
        if key is None:
            place.fail("'label' is missing.", "Export the file again.")
        yield place, name, stem(file), key, record


def _identify(place: Place, record: dict[str, Any], file: str) -> Identity:
    return Identity(record.get("id"), _text(place, record), file)


def _list_files(path: str) -> list[str]:
    """Return the files of annotators, without those of doccano about nobody and everybody, if there are others."""
    files = list_inputs(path)
    for other in (_NOBODY, _EVERYBODY):
        files = [file for file in files if stem(file) != other] or files
    return files


def _warn_of_files(path: str) -> None:
    """Warn of files that are not those of one annotator."""
    used = _list_files(path)
    for file in list_inputs(path):
        said = _MEANING.get(stem(file))
        if said is not None:
            what = "It is read as that of one worker." if file in used else "It was not used."
            warn(DataWarning(f"doccano writes {said} to a file called {os.path.basename(file)!r}. {what}"))


def _warn_of_fused(path: str, n_fused: int) -> None:
    """Warn of fused results beside the files of annotators; alone they are read without more ado."""
    if n_fused and len(_list_files(path)) > 1:
        verb = "has" if n_fused == 1 else "have"
        warn(
            DataWarning(
                f"{plural(n_fused, 'record')} in {path!r} {verb} a confidence, as fused results do. "
                "These count as one more worker.",
                "Fuse the files of the annotators alone.",
            )
        )


def _text(place: Place, record: dict[str, Any]) -> str:
    key = next((key for key in _TEXTS if record.get(key) is not None), "text")
    return str(place.need(record, key, str))


def _spans(place: Place, record: dict[str, Any], key: str) -> list[Span]:
    text = _text(place, record)
    found = []
    for entry in place.need(record, key, list):
        if isinstance(entry, dict):
            start, end = (place.need(entry, name, int) for name in ("start_offset", "end_offset"))
            label = place.need(entry, "label", str)
        elif isinstance(entry, list) and len(entry) == 3:
            start, end, label = entry
            place.check(label, str, "the label of a span")
        else:
            place.fail(f"a span must be [start, end, label], found {shorten(entry)}.", "Export the file again.")
        place.check_span(text, start, end)
        found.append((start, end, label))
    return found


def _is_answer(record: dict[str, Any], key: str) -> bool:
    """Tell whether labels are of the whole text."""
    value = record.get(key)
    return isinstance(value, list) and len(value) > 0 and all(isinstance(each, str) for each in value)


def _read_spans(path: str) -> Spans:
    collector = SpanCollector()
    documents: dict[Any, int] = {}
    n_fused = 0
    for place, name, worker, key, record in _records(path):
        n_fused += _CONFIDENCE in record
        if _is_answer(record, key):
            say_answers(path, _TOOL)
        spans = _spans(place, record, key)
        if name not in documents:
            documents[name] = collector.add_document(name, _text(place, record))
        collector.add_reading(documents[name], worker, spans)
    if not documents:
        say_nothing(path, _TOOL)
    _warn_of_files(path)
    _warn_of_fused(path, n_fused)
    return finish(collector, path, _NAME)


def _read(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    rows: list[dict[Any, Any]] = []
    n_spans = n_fused = 0
    for place, name, worker, key, record in _records(path):
        n_fused += _CONFIDENCE in record
        value = place.need(record, key, list)
        if value and not _is_answer(record, key):
            n_spans += len(_spans(place, record, key))
            continue
        if len(value) > 1:
            place.fail(
                f"there are several labels: {shorten(value)}.",
                "One label per item can be fused: make one project per label.",
            )
        rows += [{"item": name, "worker": worker, ("question", "label"): label} for label in value]
    if n_spans:
        say_spans(path, _TOOL)
    _warn_of_files(path)
    _warn_of_fused(path, n_fused)
    return choose(build_table(path, _TOOL, rows), wanted)


# ------------------------------------------------------------------------------------------------------------ writing


def _write_spans(spans: Spans, path: str) -> None:
    """Write one file; or a folder of one file per worker, if there are several or the path is a folder."""
    workers = [plain(worker) for worker in spans.workers.tolist()]
    if len(workers) == 1 and not is_folder(path):
        with replace_file(path) as temporary, open_output(str(temporary)) as sink:
            write_lines(_updated_records(spans, workers[0]), sink)
        return
    if not is_folder(path):
        raise InputError(
            f"{path!r} is a file, and these are the annotations of {plural(len(workers), 'worker')}.",
            "Give a folder: doccano has one file per annotator.",
        )
    make_folder(path)
    with replace_together():
        for worker in workers:
            target = os.path.join(path, f"{file_name(worker)}.jsonl")
            with replace_file(target) as temporary, open_output(str(temporary)) as sink:
                write_lines(_updated_records(spans, worker), sink)


def _updated_records(spans: Spans, worker: Any) -> Iterator[dict[str, Any]]:
    """Yield the texts that a worker read: as in the worker's file, else as in any other file, else as new."""
    readings = list_readings(spans)
    origin = origin_of(spans, _NAME)
    known: dict[Any, tuple[bool, Place, str, dict[str, Any]]] = {}
    for place, name, who, key, record in _records(origin.path) if origin else ():
        if name not in known or who == worker:
            known[name] = who == worker, place, key, record
    check_all_found(origin, index_documents(spans), known)
    for name, index in index_documents(spans).items():
        reading = next((each for each in readings[index] if each.worker == worker), None)
        if reading is None:
            continue
        if name in known:
            is_own, place, key, record = known[name]
            check_unchanged(place, _text(place, record), spans.texts[index])
            yield _update(place, record, key, reading, is_own)
        else:
            yield _with_confidence({"id": plain(name), "text": spans.texts[index], "label": _triples(reading)}, reading)


def _triples(reading: Reading) -> list[list[Any]]:
    return [list(span) for span in reading.spans]


def _update(place: Place, record: dict[str, Any], key: str, reading: Reading, is_own: bool) -> dict[str, Any]:
    """Return a record with other spans. Those that stay keep their ids, and relations between them are kept."""
    if key != "entities":
        return _with_confidence({**record, key: _triples(reading)}, reading)
    old = dict(zip(_spans(place, record, key), record[key], strict=True)) if is_own else {}
    taken = [each["id"] for each in old.values() if isinstance(each, dict) and isinstance(each.get("id"), int)]
    entities = []
    for start, end, label in reading.spans:
        entity = old.get((start, end, label))
        if entity is None:
            taken.append(max(taken, default=0) + 1)
            entity = {"id": taken[-1], "label": label, "start_offset": start, "end_offset": end}
        entities.append(entity)
    record = {**record, key: entities}
    if isinstance(record.get("relations"), list):
        ids = [entity.get("id") for entity in entities] if is_own else []
        record["relations"] = [
            each
            for each in record["relations"]
            if isinstance(each, dict) and is_own and each.get("from_id") in ids and each.get("to_id") in ids
        ]
    return _with_confidence(record, reading)


def _with_confidence(record: dict[str, Any], reading: Reading) -> dict[str, Any]:
    return record if reading.confidence is None else {**record, _CONFIDENCE: reading.confidence}


def _write_labels(verdicts: Verdicts, origin: str, path: str) -> None:
    """Write one file, into the folder if the path is that of one."""
    if is_folder(path):
        make_folder(path)
        path = os.path.join(path, f"{FUSED}.jsonl")
    with replace_file(path) as temporary, open_output(str(temporary)) as sink:
        write_lines(_labelled_records(verdicts, origin), sink)


def _labelled_records(verdicts: Verdicts, origin: str) -> Iterator[dict[str, Any]]:
    seen: set[Any] = set()
    for _, name, _, key, record in _records(origin):
        verdict = None if name in seen else verdicts.find(name)
        seen.add(name)
        if verdict is not None:
            confidence = {} if verdict.confidence is None else {_CONFIDENCE: verdict.confidence}
            yield {**record, key: [str(verdict.label)], **confidence}
    verdicts.check_written(origin, set(map(str, seen)))


def _recognise(head: bytes, _path: str) -> bool:
    keys = peek_keys(head)
    has_text = any(keys.get(key) == '"' for key in _TEXTS)
    has_labels = any(keys.get(key) == "[" for key in _LABELS)
    others = {"answer", "fields", "annotations", "tokens", "_input_hash", "item"} & keys.keys()
    says_who = any(squeeze(key) in _WORKERS for key in keys)  # so that it is a table
    return has_text and has_labels and not others and not says_who


DOCCANO = Codec(
    _read,
    recognise=_recognise,
    read_spans=_read_spans,
    write_spans=_write_spans,
    carries=frozenset({"confidence", "white space"}),
    write_labels=_write_labels,
)
