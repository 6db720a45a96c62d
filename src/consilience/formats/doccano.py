"""doccano: JSON lines, one file per annotator.

Relies on the format JSONL of doccano 1.x. A line has ``id``, ``text`` and ``label``: a
list of [start, end, label] for spans, of labels for classification. With relations, spans are in ``entities``.

- The worker is the name of the file without its suffix. Several files are given as a folder or a pattern.
- Documents of several files are the same if they have the same id and text; without ids, the same text.
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

from ..data.spans import FUSED, SpanCollector, Spans
from ..errors import InputError, plural, shorten
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
from .records import Names, Place, peek_keys, plain, read_records, write_lines
from .register import Codec
from .writing import replace_file, replace_together

_NAME = "doccano"
_TOOL = "doccano"
_TEXTS = ("text", "data")
_LABELS = ("entities", "label", "labels")


def _records(path: str) -> Iterator[tuple[Place, Any, str, str, dict[str, Any]]]:
    """Yield place, document, worker, key of the labels and content of each line."""
    names = Names()
    texts: dict[Any, str] = {}
    for file in list_inputs(path):
        for place, record in read_records(file):
            text = _text(place, record)
            name = record.get("id")
            name = names.find(text, file) if name is None else place.check_id(name, "'id'")
            place = Place(place.path, place.unit, place.number, record.get("id"))
            if texts.setdefault(name, text) != text:
                place.fail(
                    f"another file has another text for the document {shorten(name)}.",
                    "Give a text the same id in all files, or leave the ids out.",
                )
            key = next((key for key in _LABELS if record.get(key) is not None), None)
            if key is None:
                place.fail("'label' is missing.", "Export the file again.")
            yield place, name, stem(file), key, record


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
    for place, name, worker, key, record in _records(path):
        if _is_answer(record, key):
            say_answers(path, _TOOL)
        spans = _spans(place, record, key)
        if name not in documents:
            documents[name] = collector.add_document(name, _text(place, record))
        collector.add_reading(documents[name], worker, spans)
    if not documents:
        say_nothing(path, _TOOL)
    return finish(collector, path, _NAME)


def _read(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    rows: list[dict[Any, Any]] = []
    n_spans = 0
    for place, name, worker, key, record in _records(path):
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
    return record if reading.confidence is None else {**record, "confidence": reading.confidence}


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
            confidence = {} if verdict.confidence is None else {"confidence": verdict.confidence}
            yield {**record, key: [str(verdict.label)], **confidence}
    verdicts.check_written(origin, set(map(str, seen)))


def _recognise(head: bytes, _path: str) -> bool:
    keys = peek_keys(head)
    has_text = any(keys.get(key) == '"' for key in _TEXTS)
    has_labels = any(keys.get(key) == "[" for key in _LABELS)
    others = {"answer", "fields", "annotations", "tokens", "_input_hash", "item", "worker"} & keys.keys()
    return has_text and has_labels and not others


DOCCANO = Codec(
    _read,
    recognise=_recognise,
    read_spans=_read_spans,
    write_spans=_write_spans,
    carries=frozenset({"confidence", "white space"}),
    write_labels=_write_labels,
)
