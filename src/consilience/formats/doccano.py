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
from typing import TypeAlias

from ..answers.tables import ALIASES, OTHER_ALIASES, squeeze
from ..errors import DataWarning, InputError, plural, shorten, warn
from ..tasks.spans import Spans
from ..tasks.texts import FUSED
from . import Verdicts
from .annotation_tools import (
    Answer,
    JsonTool,
    Reading,
    Scored,
    Span,
    check_all_found,
    check_unchanged,
    index_documents,
    list_readings,
)
from .files import file_name, is_folder, list_inputs, make_folder, stem
from .records import Entry, Identity, Place, Record, peek_record, plain, write_records
from .writing import replace_together

_TEXTS = ("text", "data")
_LABELS = ("entities", "label", "labels")
_CONFIDENCE = "confidence"  # our own key: the tool has none
_NOBODY, _EVERYBODY = "unknown", "all"
_MEANING = {_NOBODY: "texts that nobody labelled", _EVERYBODY: "the labels of all annotators together"}
# Lines by the worker in whose file they are and the document; with None, the first one of a document.
Known: TypeAlias = dict[tuple[object, object], Entry]
_WORKERS = {squeeze(name) for names in (ALIASES["worker"], *OTHER_ALIASES["worker"]) for name in names}


class Doccano(JsonTool):
    """Texts of doccano."""

    name = "doccano"
    title = "doccano"

    def __init__(self, path: str | None) -> None:
        super().__init__(path)
        self.n_fused = 0

    @staticmethod
    def recognise(head: bytes, path: str) -> bool:  # noqa: ARG004
        """Tell whether the first bytes of a file are those of texts."""
        first = peek_record(head)
        has_text = any(isinstance(first.get(key), str) for key in _TEXTS)
        has_labels = any(isinstance(first.get(key), list) for key in _LABELS)
        others = {"answer", "fields", "annotations", "tokens", "_input_hash", "item"} & first.keys()
        says_who = any(squeeze(key) in _WORKERS for key in first)  # so that it is a table
        return has_text and has_labels and not others and not says_who

    def files(self) -> list[str]:
        """Return the files of annotators, without those of doccano about nobody and everybody, if there are others."""
        files = super().files()
        for other in (_NOBODY, _EVERYBODY):
            files = [file for file in files if stem(file) != other] or files
        return files

    def identify(self, place: Place, record: Record, file: str) -> Identity:
        """Return id and text; a text without an id occurs once in a file."""
        return Identity(record.get("id"), _text(place, record), file)

    def entries(self) -> Iterator[Entry]:
        """Yield all lines."""
        unnamed: set[tuple[str, str]] = set()
        for entry in super().entries():
            place, _, file, record = entry
            if record.get("id") is None:
                text = _text(place, record)
                if (file, text) in unnamed:
                    place.fail(
                        f"the text {shorten(text)} occurs twice in this file, and has no id.",
                        "Give each text an id; in a table of answers, say who gave them in a column called worker.",
                    )
                unnamed.add((file, text))
            if record.get(_key(record)) is None:
                place.fail("'label' is missing.")
            self.n_fused += _CONFIDENCE in record
            yield entry

    def text(self, entry: Entry) -> str:
        """Return the text of a line."""
        return _text(entry.place, entry.record)

    def readings(self, entry: Entry) -> Iterator[tuple[str, Scored]]:
        """Yield the spans of a line."""
        if _is_answer(entry.record):
            self.say_answers()
        yield stem(entry.file), dict.fromkeys(_spans(entry.place, entry.record))

    def check_spans(self, n_readings: int, n_spans: int) -> None:  # noqa: ARG002
        """Warn of files that are not those of one annotator."""
        if not n_readings:
            self.say_nothing()
        self._warn_of_files()

    def answers(self, entry: Entry) -> list[Answer]:
        """Return the label of a line."""
        place, name, file, record = entry
        labels = place.need(record, _key(record), list)
        if labels and not _is_answer(record):
            self.n_spans += len(_spans(place, record))
            return []
        return [Answer(name, stem(file), {"label": list(labels)})]

    def check_answers(self, answers: list[Answer]) -> list[Answer]:
        """Return all answers, after a warning of files that are not those of one annotator."""
        if self.n_spans:
            self.say_spans()
        self._warn_of_files()
        return answers

    def _warn_of_files(self) -> None:
        """Warn of files that are not those of one annotator; fused results alone are read without more ado."""
        used = self.files()
        for file in list_inputs(self.path):
            said = _MEANING.get(stem(file))
            if said is not None:
                what = "It is read as that of one worker." if file in used else "It was not used."
                warn(DataWarning(f"doccano writes {said} to a file called {os.path.basename(file)!r}. {what}"))
        if self.n_fused and len(used) > 1:
            verb = "has" if self.n_fused == 1 else "have"
            warn(
                DataWarning(
                    f"{plural(self.n_fused, 'record')} in {self.path!r} {verb} a confidence, as fused results do. "
                    "These count as one more worker.",
                    "Fuse the files of the annotators alone.",
                )
            )

    # -------------------------------------------------------------------------------------------------------- writing

    def write_spans(self, spans: Spans, path: str) -> None:
        """Write one file; or a folder of one file per worker, if there are several or the path is a folder."""
        workers = [plain(worker) for worker in spans.workers.tolist()]
        if len(workers) != 1 and not is_folder(path):
            raise InputError(
                f"{path!r} is a file, and these are the annotations of {plural(len(workers), 'worker')}.",
                "Give a folder: doccano has one file per annotator.",
            )
        known: Known = {}
        for entry in self.entries():
            known.setdefault((None, entry.name), entry)
            known[stem(entry.file), entry.name] = entry
        check_all_found(self.origin, index_documents(spans), {name for _, name in known})
        readings: dict[object, list[tuple[int, Reading]]] = {worker: [] for worker in workers}
        for index, of_document in enumerate(list_readings(spans)):
            for reading in of_document:
                readings[reading.worker].append((index, reading))
        if is_folder(path):
            make_folder(path)
        with replace_together():
            for worker, read in readings.items():
                file = os.path.join(path, f"{file_name(worker)}.jsonl") if is_folder(path) else path
                write_records((self._updated(spans, index, each, known) for index, each in read), file)

    def _updated(self, spans: Spans, index: int, reading: Reading, known: Known) -> Record:
        """Return a text that a worker read: as in the worker's file, else as in any other file, else as new."""
        name, text = spans.documents[[index]].tolist()[0], spans.texts[index]
        record: Record = {"id": plain(name), "text": text, "label": list(map(list, reading.spans))}
        entry = known.get((reading.worker, name), known.get((None, name)))
        if entry is not None:
            check_unchanged(entry.place, self.text(entry), text)
            record = _update(entry, reading, (reading.worker, name) in known)
        return record if reading.confidence is None else {**record, _CONFIDENCE: reading.confidence}

    def write_labels(self, verdicts: Verdicts, path: str) -> None:
        """Write one file, into the folder if the path is that of one."""
        if is_folder(path):
            make_folder(path)
            path = os.path.join(path, f"{FUSED}.jsonl")
        write_records(self._labelled_records(verdicts), path)

    def _labelled_records(self, verdicts: Verdicts) -> Iterator[Record]:
        seen: set[object] = set()
        for _, name, _, record in self.entries():
            verdict = None if name in seen else verdicts.find(name)
            seen.add(name)
            if verdict is not None:
                confidence = {} if verdict.confidence is None else {_CONFIDENCE: verdict.confidence}
                yield {**record, _key(record): list(map(str, verdict.labels)), **confidence}
        verdicts.check_written(self.path, set(map(str, seen)))


def _text(place: Place, record: Record) -> str:
    return place.need(record, next((key for key in _TEXTS if record.get(key) is not None), "text"), str)


def _key(record: Record) -> str:
    """Return under which key the labels are, or would be."""
    return next((key for key in _LABELS if record.get(key) is not None), "label")


def _spans(place: Place, record: Record) -> list[Span]:
    text, found = _text(place, record), list[Span]()
    for entry in place.need(record, _key(record), list):
        if isinstance(entry, dict):
            start, end = (place.need(entry, name, int) for name in ("start_offset", "end_offset"))
            label = place.need(entry, "label", str)
        elif isinstance(entry, list) and len(entry) == 3:
            start, end, label = entry
            place.check(label, str, "the label of a span")
        else:
            place.fail(f"a span must be [start, end, label], found {shorten(entry)}.")
        place.check_span(text, start, end)
        found.append((start, end, label))
    return found


def _is_answer(record: Record) -> bool:
    """Tell whether labels are of the whole text."""
    value = record.get(_key(record))
    return isinstance(value, list) and len(value) > 0 and all(isinstance(each, str) for each in value)


def _update(entry: Entry, reading: Reading, is_own: bool) -> Record:
    """Return a record with other spans. Those that stay keep their ids, and relations between them are kept."""
    place, _, _, record = entry
    key = _key(record)
    if key != "entities":
        return {**record, key: list(map(list, reading.spans))}
    old = dict(zip(_spans(place, record), record[key], strict=True)) if is_own else {}
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
    return record


DOCCANO = Doccano.codec()
