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

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ..errors import shorten
from ..kinds.base import FUSED
from . import Verdict
from .annotation_tools import Annotation, Id, MarkedText, Place, PlacedRecord, Reading, Record, Tool
from .files import stem

_ANSWERS = ("accept", "reject", "ignore")
_FULL = 'Give full annotations, as of ner.manual or spans.manual; add "_view_id": "ner_manual" if they are that.'
_SIGNATURES = ("_annotator_id", "_session_id")
# What an annotator adds to a task.
_OWN = ("_task_hash", "_timestamp", *_SIGNATURES, "spans", "accept", "answer")


class Prodigy(Tool):
    """Tasks of Prodigy."""

    name = "prodigy"
    title = "Prodigy"
    unit = "line"
    carries = frozenset({"confidence", "tokens", "white space"})

    @staticmethod
    def recognise(first: Record, in_array: bool) -> bool:
        """Whether this is a line of a task."""
        signs = {"_input_hash", "_session_id", "_annotator_id", "_view_id"} & first.keys()
        lists = any(isinstance(first.get(key), list) for key in ("spans", "tokens", "options"))
        is_answered = isinstance(first.get("answer"), str) and (bool(signs) or lists)
        return not in_array and (is_answered or {"_input_hash", "_task_hash"} <= first.keys())

    def identify(self, place: Place, record: Record, file: str) -> tuple[Id | None, object, object]:
        """Hash or id, and text; an annotator answers a question about it once."""
        answer = place.need(record, "answer", str)
        if answer not in _ANSWERS:
            place.fail(f"'answer' must be one of {', '.join(_ANSWERS)}, found {shorten(answer)}.", "Correct it.")
        text = next((place.get(record, key, str) for key in ("text", "html", "image") if record.get(key)), "")
        scope = (_worker(place, record, file), place.get(record, "label", str))
        return _first(record, "_input_hash", "id"), text, scope

    def text(self, entry: PlacedRecord) -> str | None:
        """The text of a task of marking spans, which must be one of marking all of them."""
        place, _, _, task = entry
        if not _is_marked(task):
            return None
        is_manual = task.get("tokens") is not None or place.get(task, "_view_id", str, "").endswith("_manual")
        if task.get("_view_id") in ("ner", "spans") or not is_manual:
            place.fail(
                "the task seems to confirm a single suggestion, so that other spans of the text are not known.", _FULL
            )
        return str(place.need(task, "text", str))

    def tokens(self, entry: PlacedRecord) -> list[tuple[int, int]] | None:
        """The places of the tokens, without those that are blank."""
        place, _, _, task = entry
        if task.get("tokens") is None:
            return None
        text, places = place.need(task, "text", str), list[tuple[int, int]]()
        for token in place.entries(task, "tokens", dict):
            start, end = (place.need(token, key, int) for key in ("start", "end"))
            if start == end:
                continue
            place.check_span(text, start, end)
            if places and start < places[-1][1]:
                place.fail(f"the token at {start} overlaps the one before.")
            if text[start:end].strip():
                places.append((start, end))
        return places

    def annotations(self, entry: PlacedRecord) -> Iterator[Annotation]:
        """The spans or the choice of a task that was accepted, or the answer to a question."""
        place, _, file, task = entry
        worker = _worker(place, task, file)
        if task["answer"] == "ignore":
            return
        is_marked, is_choice = _is_marked(task), task.get("options") is not None
        if not is_marked and not is_choice:
            yield Annotation(worker, None, {"label": task["answer"]})
        elif task["answer"] == "reject":
            said = "rejected, which is no annotation of the text" if is_marked else "rejected choices"
            self.unused["line", said] += 1
        elif is_marked:
            yield Annotation(worker, place.entries(task, "spans", dict), {})
        else:
            options = place.entries(task, "options", dict)
            ids = [place.check_id(option.get("id"), "the id of an option") for option in options]
            chosen = [place.check_id(each, "an entry of 'accept'") for each in place.get(task, "accept", list, [])]
            for each in chosen:
                if each not in ids:
                    place.fail(f"{shorten(each)} is chosen, which is not among the options.")
            if self.labels:
                place.fail("some lines are choices, others questions about one label.", "Read them apart.")
            if not chosen and not self.are_sets:
                place.fail(
                    "no option is chosen, and nobody chose several.",
                    'Ignore the task. If options are tags, say so with "config": {"choice_style": "multiple"}.',
                )
            yield Annotation(worker, None, {"label": chosen})

    @cached_property
    def are_sets(self) -> bool:
        """Whether several options can be chosen: somebody did, or a task says so."""
        return any(
            len(place.get(task, "accept", list, [])) > 1
            or place.get(task, "config", dict, {}).get("choice_style") == "multiple"
            for place, _, _, task in self.entries
            if task.get("options") is not None
        )

    @cached_property
    def labels(self) -> set[str]:
        """The labels that questions are about, which were answered."""
        tasks = (task for _, _, _, task in self.entries if task["answer"] != "ignore" and not _is_marked(task))
        return {str(task.get("label") or "") for task in tasks if task.get("options") is None}

    def item(self, entry: PlacedRecord) -> Id:
        """What an answer is about: the text, or text and label if there are questions about several labels."""
        return f"{entry.name} {entry.record.get('label') or ''}" if len(self.labels) > 1 else entry.name

    # Writing

    def keep(self, entry: PlacedRecord) -> Record:
        """A task that says who did it, also where only the name of one of several files said so."""
        place, _, file, task = entry
        if len(self.files()) == 1 or _first(task, *_SIGNATURES) is not None:
            return task
        return {**task, "_annotator_id": _worker(place, task, file)}

    def make_record(self, document: MarkedText, like: PlacedRecord | None) -> Record:
        """A task without annotations."""
        _, name, text, places, _ = document
        if like is not None:
            return {key: value for key, value in like.record.items() if key not in _OWN}
        task: Record = {
            "text": text,
            "_input_hash" if isinstance(name, int) else "id": name,
            "_view_id": "spans_manual",
        }
        if places is not None:
            task["tokens"] = [
                {"text": text[start:end], "start": start, "end": end, "id": n, "ws": text[end : end + 1].isspace()}
                for n, (start, end) in enumerate(places)
            ]
        return task

    def add_spans(self, entry: PlacedRecord, document: MarkedText, reading: Reading) -> None:  # noqa: ARG002
        """Add the spans of an annotator to a task.

        The numbers of the first and the last token count in the tokens of the task. A span that does not begin and end
        with a token has none.
        """
        place, _, _, task = entry
        places = [(token["start"], token["end"]) for token in place.entries(task, "tokens", dict)]
        first = {start: number for number, (start, end) in enumerate(places) if start < end}
        last = {end: number for number, (start, end) in enumerate(places) if start < end}
        task["spans"] = []
        for (start, end, label), score in reading.spans.items():
            span: Record = {"start": start, "end": end, "label": label}
            if start in first and end in last:
                span = {"token_start": first[start], "token_end": last[end], **span}
            task["spans"].append(span if score is None else {**span, "score": score})
        task |= {"answer": "accept", **dict.fromkeys(_SIGNATURES, reading.worker)}

    def label(self, entry: PlacedRecord, question: str, said: Any, verdict: Verdict) -> Record:  # noqa: ARG002
        """A task with the fused answer."""
        task = {key: value for key, value in entry.record.items() if key not in _OWN}
        if task.get("options") is None:
            task["answer"] = str(verdict.label)
        else:
            ids = {str(option["id"]): option["id"] for option in task["options"]}
            task |= {"accept": [ids.get(str(label), str(label)) for label in verdict.labels], "answer": "accept"}
        score = {} if verdict.confidence is None else {"score": verdict.confidence}
        return {**task, **score, **dict.fromkeys(_SIGNATURES, FUSED)}


def _first(task: Record, *keys: str) -> Id | None:
    """The first value that is there."""
    return next((task[key] for key in keys if task.get(key) is not None), None)


def _worker(place: Place, task: Record, file: str) -> str:
    worker = _first(task, *_SIGNATURES)
    return stem(file) if worker is None else str(place.check_id(worker, "the annotator's id"))


def _is_marked(task: Record) -> bool:
    """Whether a task is one of marking spans: it has spans; or none of them, tokens to mark, and no question."""
    if task.get("options") is not None:
        return False
    return bool(task.get("spans")) or (task.get("label") is None and ("spans" in task or "tokens" in task))


PRODIGY = Prodigy.codec()
