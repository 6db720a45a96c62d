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
from collections.abc import Iterator, Sequence
from typing import Any

from ..answers.tables import ALIASES, squeeze
from ..errors import InputError, listing, plural, shorten, warn_of
from ..kinds.spans import MarkedText, Reading
from . import Verdict
from .annotation_tools import Annotation, Entry, Id, Owned, Tool
from .files import file_name, is_folder, make_folder, stem
from .json_lines import Record

_TEXTS = ("text", "data")
_LABELS = ("entities", "label", "labels")
_CONFIDENCE = "confidence"  # our own key: the tool has none
_NO_ANNOTATORS = ("unknown", "all")
_WORKERS = {squeeze(name) for names in ALIASES["worker"] for name in names}


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
        """Whether this is a line with a text and labels; those that say who gave a label are a table."""
        has_text = any(isinstance(first.get(key), str) for key in _TEXTS)
        has_labels = any(isinstance(first.get(key), list) for key in _LABELS)
        others = {"answer", "fields", "annotations", "tokens", "_input_hash", "item"} & first.keys()
        return has_text and has_labels and not others and not any(squeeze(key) in _WORKERS for key in first)

    def files(self) -> list[str]:
        """The files of annotators, without those of doccano about nobody and everybody, if there are others."""
        files = super().files()
        return [file for file in files if stem(file) not in _NO_ANNOTATORS] or files

    def identify(self, entry: Entry) -> tuple[Id | None, object, object]:
        """Id and text; a text without an id occurs once in a file."""
        record, text = entry.record, self.text(entry)
        if record.get(_find_key(record)) is None:
            entry.fail("'label' is missing.")
        if record.get("id") is None:
            if (entry.path, text) in self.unnamed:
                entry.fail(f"the text {shorten(text)} occurs twice in this file.", "Give each text an id.")
            self.unnamed.add((entry.path, text))
        return record.get("id"), text, entry.path

    def text(self, entry: Entry) -> str:
        """The text of a line."""
        key = next((key for key in _TEXTS if entry.record.get(key) is not None), "text")
        return str(entry.need(entry.record, key, str))

    def annotations(self, entry: Entry) -> Iterator[Annotation]:
        """Spans or labels of a line; without either, the annotator found nothing."""
        labels = entry.need(entry.record, _find_key(entry.record), list)
        if labels and all(isinstance(each, str) for each in labels):
            yield Annotation(stem(entry.path), None, {"label": labels})
            return
        marks = []
        for each in labels:
            if isinstance(each, dict):
                marks.append({"start": each.get("start_offset"), "end": each.get("end_offset"), **each})
            elif isinstance(each, list) and len(each) == 3:
                marks.append(dict(zip(("start", "end", "label"), each, strict=True)))
            else:
                entry.fail(f"a span must be [start, end, label], found {shorten(each)}.")
        yield Annotation(stem(entry.path), marks, {} if labels else {"label": []})

    def report(self, n_found: int) -> None:  # noqa: ARG002
        """Warn of files that are not those of one annotator; fused results alone are read without more ado."""
        used = self.files()
        left_out = [os.path.basename(file) for file in super().files() if file not in used]
        if left_out:
            warn_of(f"{listing(left_out)} in {self.path!r} is not used: doccano writes it for nobody or everybody.")
        fused = {os.path.basename(entry.path) for entry in self.entries if _CONFIDENCE in entry.record}
        if fused and len(used) > 1:
            warn_of(
                f"Labels in {listing(sorted(fused))} have a confidence, as fused results do, and count as a worker's."
            )

    # Writing

    def keep(self, entry: Entry) -> Record:
        """A line as it is."""
        return entry.record

    def make_record(self, document: MarkedText, like: Record | None) -> Record:
        """A line without labels."""
        if like is None:
            return {"id": document.name, "text": document.text, "label": []}
        kept = {key: value for key, value in like.items() if key != _CONFIDENCE}
        return {**kept, **{key: [] for key in (_find_key(kept), "relations") if key in kept}}

    def add_spans(self, record: Record, document: MarkedText, reading: Reading) -> None:  # noqa: ARG002
        """Add spans to a line."""
        key = _find_key(record)
        record[key] = [list(span) for span in reading.spans]
        if key == "entities":
            record[key] = [
                {"id": number, "label": label, "start_offset": start, "end_offset": end}
                for number, (start, end, label) in enumerate(reading.spans, 1)
            ]
        if reading.is_judged:
            record[_CONFIDENCE] = list(reading.spans.values())

    def label(self, entry: Entry, question: str, said: Any, verdict: Verdict) -> Record:  # noqa: ARG002
        """A line with the fused labels."""
        record = {**entry.record, _find_key(entry.record): [str(label) for label in verdict.labels]}
        return record if verdict.confidence is None else {**record, _CONFIDENCE: verdict.confidence}

    def write(self, records: Owned, workers: Sequence[str], path: str) -> None:
        """Write one file; or a folder of one file per worker, if there are several or the path is a folder."""
        if len(workers) != 1 and not is_folder(path):
            raise InputError(
                f"{path!r} is a file, and these are the annotations of {plural(len(workers), 'worker')}.",
                "Give a folder: doccano has one file per annotator.",
            )
        lines: dict[str | None, Owned] = {worker: [] for worker in workers}
        for worker, record in records:
            if worker in lines:
                lines[worker].append((worker, record))
        if is_folder(path):
            make_folder(path)
        for worker, own in lines.items():
            super().write(own, [], os.path.join(path, f"{file_name(worker)}.jsonl") if is_folder(path) else path)


def _find_key(record: Record) -> str:
    """Under which key the labels are, or would be."""
    return next((key for key in _LABELS if record.get(key) is not None), "label")


DOCCANO = Doccano.codec()
