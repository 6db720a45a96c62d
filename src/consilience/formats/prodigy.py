"""Prodigy: the JSON lines of ``db-out``.

Relies on the task formats of Prodigy 1.x (documentation page "Annotation interfaces"). A line is what one
annotator did with one text.

- The worker is ``_annotator_id``, else ``_session_id``, else the name of the file.
- The document is ``_input_hash``, else ``id``, else the text.
- ``answer`` is not a label. "accept" confirms what the annotator marked or chose; "ignore" is no annotation. "reject"
  of marked spans says that something is wrong with the text or the spans, so that it is no annotation either.
- A task with one ``label`` is a question, whether the label fits: accept and reject are its answers. So they are where
  there is only a text. The item is the text, or text and label if there are several labels.
- A task with ``options`` is a choice: ``accept`` lists the ids that were chosen. Choices are sets of tags if several
  are chosen in some task, or the tasks say that there may be (``choice_style``).
- Tasks of the interfaces "ner" and "spans" (binary) confirm single suggestions. They are not annotations of the text.
  So a task must have ``tokens``, as all manual tasks do, or say in ``_view_id`` that it is one ("ner_manual").
- Fused spans and labels are written as the tasks of one more annotator.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..errors import shorten
from ..tasks.spans import Spans
from ..tasks.texts import FUSED
from . import Verdict, Verdicts
from .annotation_tools import (
    Answer,
    JsonTool,
    Reading,
    Scored,
    are_several,
    check_all_found,
    check_unchanged,
    index_documents,
    list_readings,
    token_places,
)
from .files import stem
from .records import Entry, Id, Identity, Place, Record, is_array, peek_record, plain, write_records

_ANSWERS = ("accept", "reject", "ignore")
_BINARY = ("ner", "spans")
_FULL = 'Give full annotations, as of ner.manual or spans.manual; add "_view_id": "ner_manual" if they are that.'
# What an annotator adds to a task.
_OWN = ("_task_hash", "_timestamp", "_session_id", "_annotator_id", "spans", "accept", "answer")
_SIGNATURES = ("_annotator_id", "_session_id")


class Prodigy(JsonTool):
    """Tasks of Prodigy."""

    name = "prodigy"
    title = "Prodigy"
    carries = frozenset({"confidence", "tokens", "white space"})

    def __init__(self, path: str | None) -> None:
        super().__init__(path)
        self.n_answers = self.n_rejected = 0
        self.empty: Place | None = None  # where no option is chosen
        self.asked: list[tuple[Id, str, str, str]] = []  # name, worker, label and answer of questions about a label

    @staticmethod
    def recognise(head: bytes, path: str) -> bool:  # noqa: ARG004
        """Tell whether the first bytes of a file are those of tasks."""
        first = peek_record(head)
        if is_array(head):
            return False
        if {"_input_hash", "_task_hash"} <= first.keys():
            return True
        signs = {"_input_hash", "_session_id", "_annotator_id", "_view_id"} & first.keys()
        lists = any(isinstance(first.get(key), list) for key in ("spans", "tokens", "options"))
        return isinstance(first.get("answer"), str) and (bool(signs) or lists)

    def identify(self, place: Place, record: Record, file: str) -> Identity:
        """Return hash or id, and text; an annotator answers a question about it once."""
        name = _first(record, "_input_hash", "id")
        text = next((place.get(record, key, str) for key in ("text", "html", "image") if record.get(key)), "")
        return Identity(name, text, (_worker(place, record, file), place.get(record, "label", str)))

    def entries(self) -> Iterator[Entry]:
        """Yield all lines."""
        for entry in super().entries():
            answer = entry.place.need(entry.record, "answer", str)
            if answer not in _ANSWERS:
                entry.place.fail(
                    f"'answer' must be one of {', '.join(_ANSWERS)}, found {shorten(answer)}.", "Correct it."
                )
            yield entry

    def is_marked(self, entry: Entry) -> bool:
        """Tell whether a task is one of marking spans. It must be one of marking all of them."""
        place, _, _, task = entry
        if not _is_marked(task):
            self.n_answers += 1
            return False
        is_manual = task.get("tokens") is not None or place.get(task, "_view_id", str, "").endswith("_manual")
        if task.get("_view_id") in _BINARY or not is_manual:
            place.fail(
                "the task seems to confirm a single suggestion, so that other spans of the text are not known.", _FULL
            )
        return True

    def text(self, entry: Entry) -> str:
        """Return the text of a task."""
        return entry.place.need(entry.record, "text", str)

    def tokens(self, entry: Entry) -> list[tuple[int, int]] | None:
        """Return the places of the tokens, without those that are blank."""
        place, _, _, task = entry
        if task.get("tokens") is None:
            return None
        text, places, last = self.text(entry), list[tuple[int, int]](), 0
        for token in place.check_all(task["tokens"], dict, "'tokens'"):
            start, end = (place.need(token, key, int) for key in ("start", "end"))
            if start == end:
                continue
            place.check_span(text, start, end)
            if start < last:
                place.fail(f"the token at {start} overlaps the one before.")
            last = end
            if text[start:end].strip():
                places.append((start, end))
        return places

    def readings(self, entry: Entry) -> Iterator[tuple[str, Scored]]:
        """Yield the spans of a task that was accepted."""
        place, _, file, task = entry
        self.n_rejected += task["answer"] == "reject"
        if task["answer"] == "accept":
            found: Scored = {}
            for span in place.entries(task, "spans", dict):
                start, end = (place.need(span, key, int) for key in ("start", "end"))
                place.check_span(self.text(entry), start, end)
                found[start, end, place.need(span, "label", str)] = place.check_score(span.get("score"))
            yield _worker(place, task, file), found

    def check_spans(self, n_readings: int, n_spans: int) -> None:  # noqa: ARG002
        """Warn of answers about whole texts, and of rejected tasks."""
        if not n_readings:
            (self.say_answers if self.n_answers else self.say_nothing)()
        self.warn_dropped(self.n_answers, "line", "answers about the whole text")
        self.warn_dropped(self.n_rejected, "line", "rejected, which is no annotation of the text")

    def answers(self, entry: Entry) -> Iterator[Answer]:
        """Yield the choice of a task; what is said of a single label is kept apart."""
        place, name, file, task = entry
        self.n_spans += _is_marked(task)
        if task["answer"] == "ignore" or _is_marked(task):
            return
        asked = _asked_label(place, task)
        if asked is not None:
            self.asked.append((name, _worker(place, task, file), asked, task["answer"]))
        elif task["answer"] == "reject":
            self.n_rejected += 1
        else:
            chosen = _chosen(place, task)
            self.are_sets |= place.get(task, "config", dict, {}).get("choice_style") == "multiple"
            if not chosen and self.empty is None:
                self.empty = place
            yield Answer(name, _worker(place, task, file), {"label": chosen})

    def check_answers(self, answers: list[Answer]) -> list[Answer]:
        """Return all choices, or all answers to questions about labels."""
        if answers and self.asked:
            Place(self.path, "line", 1).fail(
                "some lines are choices, others questions about one label.", "Read them apart."
            )
        if self.n_spans and not answers and not self.asked:
            self.say_spans()
        self.warn_dropped(self.n_spans, "line", "tasks of marking spans")
        self.warn_dropped(self.n_rejected, "line", "rejected choices")
        several = self.are_sets or any(are_several(each.given["label"]) for each in answers)
        if self.empty is not None and not several:
            self.empty.fail(
                "no option is chosen, and nobody chose several.",
                'Ignore the task. If options are tags, say so with "config": {"choice_style": "multiple"}.',
            )
        labels = {label for _, _, label, _ in self.asked}
        said = [Answer(_item(name, label, labels), who, {"label": answer}) for name, who, label, answer in self.asked]
        return answers + said

    # -------------------------------------------------------------------------------------------------------- writing

    def write_spans(self, spans: Spans, path: str) -> None:
        """Write a task for each annotation."""
        write_records(self._updated_tasks(spans), path)

    def _updated_tasks(self, spans: Spans) -> Iterator[Record]:
        """Yield the original task of each annotation where there is one, else one like another of the document."""
        readings, indices = list_readings(spans), index_documents(spans)
        of_worker = [{str(each.worker): each for each in reversed(read)} for read in readings]
        done: set[tuple[Id, str]] = set()
        models: dict[Id, Record] = {}
        for entry in self.entries():
            place, name, file, _ = entry
            index, worker, task = indices.get(name), _worker(place, entry.record, file), self._sign(entry)
            if index is None or not _is_marked(task):
                yield task
                continue
            check_unchanged(place, self.text(entry), spans.texts[index])
            models.setdefault(name, task)
            reading = of_worker[index].get(worker)
            if reading is not None and task["answer"] == "accept":
                done.add((name, worker))
                yield {**task, "spans": _to_spans(task, reading, task.get("spans") or [])}
            else:
                yield task
        check_all_found(self.origin, indices, models)
        for name, index in indices.items():
            for reading in readings[index]:
                if (name, str(reading.worker)) not in done:
                    yield _new_task(spans, name, index, reading, models.get(name))

    def _sign(self, entry: Entry) -> Record:
        """Return a task that says who did it, where only the name of one of several files said so."""
        place, _, file, task = entry
        if not self.is_spread or _first(task, *_SIGNATURES) is not None:
            return task
        return {**task, "_annotator_id": _worker(place, task, file)}

    def write_labels(self, verdicts: Verdicts, path: str) -> None:
        """Write all lines, and one more for each item."""
        write_records(self._labelled_tasks(verdicts), path)

    def _labelled_tasks(self, verdicts: Verdicts) -> Iterator[Record]:
        """Yield all tasks, then one with the fused answer for each item."""
        asked = (_asked_label(entry.place, entry.record) for entry in self.entries())
        labels = {label for label in asked if label is not None}
        added: dict[str, Record] = {}
        for entry in self.entries():
            place, name, file, task = entry
            if _is_marked(task) or _worker(place, task, file) != FUSED:
                yield self._sign(entry)
            label = _asked_label(place, task)
            if label is None and not (_is_choice(task) and task["answer"] == "accept"):
                continue
            item = name if label is None else _item(name, label, labels)
            verdict = verdicts.find(item)
            if verdict is not None and str(item) not in added:
                added[str(item)] = _answered(task, verdict, label is not None)
        verdicts.check_written(self.path, added)
        yield from added.values()


def _first(task: Record, *keys: str) -> Id | None:
    """Return the first value that is there."""
    return next((task[key] for key in keys if task.get(key) is not None), None)


def _worker(place: Place, task: Record, file: str) -> str:
    worker = _first(task, *_SIGNATURES)
    return stem(file) if worker is None else str(place.check_id(worker, "the annotator's id"))


def _is_choice(task: Record) -> bool:
    return task.get("options") is not None


def _is_marked(task: Record) -> bool:
    """Tell whether a task is one of marking spans: it has spans; or none of them, tokens to mark, and no question."""
    if _is_choice(task):
        return False
    return bool(task.get("spans")) or (task.get("label") is None and ("spans" in task or "tokens" in task))


def _asked_label(place: Place, task: Record) -> str | None:
    """Return the label that a task asks about, None if it asks about none, or was not answered."""
    if task["answer"] == "ignore" or _is_choice(task) or _is_marked(task):
        return None
    return place.get(task, "label", str, "")


def _item(name: Id, label: str, labels: Collection[str]) -> Id:
    """Return what a question about a label is about: the text, or text and label if there are several labels."""
    return name if len(labels) == 1 else f"{name} {label}"


def _chosen(place: Place, task: Record) -> list[Id]:
    """Return the options that were chosen."""
    ids = [place.check_id(place.check(option, dict, "an entry of 'options'").get("id"), "the id of an option")
           for option in place.check(task["options"], list, "'options'")]  # fmt: skip
    chosen = [place.check_id(each, "an entry of 'accept'") for each in place.get(task, "accept", list, [])]
    for each in chosen:
        if each not in ids:
            place.fail(f"{shorten(each)} is chosen, which is not among the options.")
    return chosen


def _new_task(spans: Spans, name: Id, index: int, reading: Reading, model: Record | None) -> Record:
    key = "_input_hash" if isinstance(plain(name), int) else "id"
    new = {"text": spans.texts[index], key: plain(name), "_view_id": "spans_manual"}
    task = {key: value for key, value in (new if model is None else model).items() if key not in _OWN}
    places = token_places(spans, index)
    if model is None and places is not None:
        task["tokens"] = [
            {"text": spans.texts[index][start:end], "start": start, "end": end, "id": number,
             "ws": spans.texts[index][end : end + 1].isspace()}
            for number, (start, end) in enumerate(places)
        ]  # fmt: skip
    return {**task, "spans": _to_spans(task, reading, []), "answer": "accept", **_signed(str(reading.worker))}


def _signed(worker: str) -> Record:
    return dict.fromkeys(_SIGNATURES, worker)


def _to_spans(task: Record, reading: Reading, old: list[Record]) -> list[Record]:
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


def _answered(task: Record, verdict: Verdict, is_question: bool) -> Record:
    """Return a task with the fused answer."""
    kept = {key: value for key, value in task.items() if key not in _OWN}
    if is_question:
        said: Record = {"answer": str(verdict.label)}
    else:
        ids = {str(option["id"]): option["id"] for option in task["options"]}
        said = {"accept": [ids.get(str(label), str(label)) for label in verdict.labels], "answer": "accept"}
    score = {} if verdict.confidence is None else {"score": verdict.confidence}
    return {**kept, **said, **score, **_signed(FUSED)}


PRODIGY = Prodigy.codec()
