"""doccano: JSON lines, one file per annotator.

Relies on the format JSONL of doccano 1.x. A line has ``id``, ``text`` and ``label``: a
list of [start, end, label] for spans, of labels for classification: one, or the set of all that apply. With relations,
spans are in ``entities``.

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
from collections.abc import Iterator
from typing import Any

from ..answers.tables import ALIASES, OTHER_ALIASES, squeeze
from ..errors import InputError, plural, shorten, warn_of
from ..kinds.spans import FUSED, Spans
from . import Verdict
from .annotation_tools import (
    Annotation,
    Document,
    Entry,
    Id,
    Place,
    Reading,
    Record,
    Tool,
    check_all_found,
    check_unchanged,
    list_documents,
    write_records,
)
from .files import file_name, is_folder, list_inputs, make_folder, stem

_TEXTS = ("text", "data")
_LABELS = ("entities", "label", "labels")
_CONFIDENCE = "confidence"  # our own key: the tool has none
_NO_ANNOTATORS = {"unknown": "texts that nobody labelled", "all": "the labels of all annotators together"}
_WORKERS = {squeeze(name) for names in (ALIASES["worker"], *OTHER_ALIASES["worker"]) for name in names}


class Doccano(Tool):
    """Texts of doccano."""

    name = "doccano"
    title = "doccano"
    unit = "line"

    def __init__(self, path: str | None) -> None:
        super().__init__(path)
        self.unnamed: set[tuple[str, str]] = set()

    @staticmethod
    def recognise(first: Record, in_array: bool) -> bool:  # noqa: ARG004
        """Tell lines with a text and labels; those that say who gave a label are a table."""
        has_text = any(isinstance(first.get(key), str) for key in _TEXTS)
        has_labels = any(isinstance(first.get(key), list) for key in _LABELS)
        others = {"answer", "fields", "annotations", "tokens", "_input_hash", "item"} & first.keys()
        return has_text and has_labels and not others and not any(squeeze(key) in _WORKERS for key in first)

    def files(self) -> list[str]:
        """The files of annotators, without those of doccano about nobody and everybody, if there are others."""
        files = super().files()
        for other in _NO_ANNOTATORS:
            files = [file for file in files if stem(file) != other] or files
        return files

    def identify(self, place: Place, record: Record, file: str) -> tuple[Id | None, object, object]:
        """Id and text; a text without an id occurs once in a file."""
        text = _text(place, record)
        if record.get(_key(record)) is None:
            place.fail("'label' is missing.")
        if record.get("id") is None:
            if (file, text) in self.unnamed:
                place.fail(
                    f"the text {shorten(text)} occurs twice in this file, and has no id.",
                    "Give each text an id; in a table of answers, say who gave them in a column called worker.",
                )
            self.unnamed.add((file, text))
        return record.get("id"), text, file

    def text(self, entry: Entry) -> str | None:
        """The text of a line."""
        return _text(entry.place, entry.record)

    def annotations(self, entry: Entry) -> Iterator[Annotation]:
        """Spans or labels of a line; without either, the annotator found nothing."""
        place, _, file, record = entry
        labels = place.need(record, _key(record), list)
        if labels and all(isinstance(each, str) for each in labels):
            yield Annotation(stem(file), None, {"label": labels})
        else:
            yield Annotation(stem(file), _to_marks(place, labels), {} if labels else {"label": []})

    def report(self, wanted: str, n_found: int) -> None:  # noqa: ARG002
        """Warn of files that are not those of one annotator; fused results alone are read without more ado."""
        used = self.files()
        for file in list_inputs(self.path):
            if stem(file) in _NO_ANNOTATORS:
                what = "It is read as that of one worker." if file in used else "It was not used."
                meaning = _NO_ANNOTATORS[stem(file)]
                warn_of(f"doccano writes {meaning} to a file called {os.path.basename(file)!r}. {what}")
        n_fused = sum(_CONFIDENCE in entry.record for entry in self.entries)
        if n_fused and len(used) > 1:
            verb = "has" if n_fused == 1 else "have"
            warn_of(
                f"{plural(n_fused, 'record')} in {self.path!r} {verb} a confidence, as fused results do. These count "
                "as one more worker.",
                "Fuse the files of the annotators alone.",
            )

    # Writing

    def write_spans(self, spans: Spans, path: str) -> None:
        """Write one file; or a folder of one file per worker, if there are several or the path is a folder."""
        documents = list_documents(spans)
        if len(spans.workers) != 1 and not is_folder(path):
            raise InputError(
                f"{path!r} is a file, and these are the annotations of {plural(len(spans.workers), 'worker')}.",
                "Give a folder: doccano has one file per annotator.",
            )
        # Lines by document, and by document and worker.
        known = {str(entry.name): entry for entry in reversed(self.entries)}
        own = {(str(entry.name), stem(entry.file)): entry for entry in self.entries}
        check_all_found(self.path or None, documents, known)
        lines: dict[str, list[Record]] = {str(worker): [] for worker in spans.workers.tolist()}
        for name, document in documents.items():
            for reading in document.readings:
                if reading.worker is not None:
                    entry = own.get((name, reading.worker))
                    if entry is not None:
                        self.put(entry, document, reading, None)
                    new = self.new_record(document, reading, known.get(name)) if entry is None else entry.record
                    lines[reading.worker].append(new)
        if is_folder(path):
            make_folder(path)
        for worker, records in lines.items():
            write_records(records, os.path.join(path, f"{file_name(worker)}.jsonl") if is_folder(path) else path)

    def new_record(self, document: Document, reading: Reading | None, model: Entry | None) -> Record:
        """A line with the spans of one worker, like another of the document."""
        entry = Entry(document.place, document.name, "", {"id": document.name, "text": document.text, "label": []})
        if model is not None:
            kept = {key: value for key, value in model.record.items() if key != _CONFIDENCE}
            empty: Record = {key: [] for key in (_key(kept), "relations") if key in kept}
            entry = model._replace(record={**kept, **empty})
        if reading is not None:
            self.put(entry, document, reading, None)
        return entry.record

    def put(self, entry: Entry, document: Document, reading: Reading, old: Annotation | None) -> None:  # noqa: ARG002
        """Put spans into a line. Those that stay keep their ids, and relations between them are kept."""
        place, _, _, record = entry
        check_unchanged(place, _text(place, record), document.text)
        key = _key(record)
        entities = record[key]
        if key != "entities":
            record[key] = [list(span) for span in reading.spans]
        else:
            spans = (tuple(mark.values()) for mark in _to_marks(place, entities))
            there = dict(zip(spans, entities, strict=True))
            last = max((each["id"] for each in entities if isinstance(each.get("id"), int)), default=0)
            record[key] = []
            for start, end, label in reading.spans:
                entity = there.get((start, end, label))
                if entity is None:
                    last += 1
                    entity = {"id": last, "label": label, "start_offset": start, "end_offset": end}
                record[key].append(entity)
            if isinstance(record.get("relations"), list):
                ids = [entity.get("id") for entity in record[key]]
                record["relations"] = [
                    each
                    for each in record["relations"]
                    if isinstance(each, dict) and each.get("from_id") in ids and each.get("to_id") in ids
                ]
        if reading.is_judged:
            record[_CONFIDENCE] = list(reading.spans.values())

    def keep(self, entry: Entry) -> Record | None:  # noqa: ARG002
        """Nothing: fused results are the file of one more annotator."""
        return None

    def write_labels(self, verdicts: dict[str, Verdict], question: str | None, path: str) -> None:
        """Write one file, into the folder if the path is that of one."""
        if is_folder(path):
            make_folder(path)
            path = os.path.join(path, f"{FUSED}.jsonl")
        super().write_labels(verdicts, question, path)

    def label(self, entry: Entry, question: str, said: Any, verdict: Verdict) -> Record:  # noqa: ARG002
        """A line with the fused labels."""
        record = {**entry.record, _key(entry.record): [str(label) for label in verdict.labels]}
        return record if verdict.confidence is None else {**record, _CONFIDENCE: verdict.confidence}


def _text(place: Place, record: Record) -> str:
    return place.need(record, next((key for key in _TEXTS if record.get(key) is not None), "text"), str)


def _key(record: Record) -> str:
    """Under which key the labels are, or would be."""
    return next((key for key in _LABELS if record.get(key) is not None), "label")


def _to_marks(place: Place, labels: list[Any]) -> list[Record]:
    """Spans as they are in a line, in the form of all tools."""
    marks = []
    for each in labels:
        if isinstance(each, dict):
            start, end = (place.need(each, name, int) for name in ("start_offset", "end_offset"))
            marks.append({"start": start, "end": end, "label": each.get("label")})
        elif isinstance(each, list) and len(each) == 3:
            marks.append(dict(zip(("start", "end", "label"), each, strict=True)))
        else:
            place.fail(f"a span must be [start, end, label], found {shorten(each)}.")
    return marks


DOCCANO = Doccano.codec()
