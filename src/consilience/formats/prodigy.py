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
from ..kinds.spans import MarkedText, Reading
from . import Verdict
from .annotation_tools import Annotation, Entry, Id, Tool
from .files import stem
from .json_lines import Record

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

    def identify(self, entry: Entry) -> tuple[Id | None, object, object]:
        """Hash or id, and text; an annotator answers a question about it once."""
        task = entry.record
        answer = entry.need(task, "answer", str)
        if answer not in _ANSWERS:
            entry.fail(f"'answer' must be one of {', '.join(_ANSWERS)}, found {shorten(answer)}.", "Correct it.")
        text = next((entry.get(task, key, str) for key in ("text", "html", "image") if task.get(key)), "")
        return _first(task, "_input_hash", "id"), text, (_worker(entry), entry.get(task, "label", str))

    def text(self, entry: Entry) -> str | None:
        """The text of a task of marking spans, which must be one of marking all of them."""
        task = entry.record
        if not _is_marked(task):
            return None
        is_manual = task.get("tokens") is not None or entry.get(task, "_view_id", str, "").endswith("_manual")
        if task.get("_view_id") in ("ner", "spans") or not is_manual:
            entry.fail(
                "the task seems to confirm a single suggestion, so that other spans of the text are not known.", _FULL
            )
        return str(entry.need(task, "text", str))

    def tokens(self, entry: Entry) -> list[tuple[int, int]] | None:
        """The places of the tokens, without those that are blank."""
        if entry.record.get("tokens") is None:
            return None
        text, places = entry.need(entry.record, "text", str), list[tuple[int, int]]()
        for token in entry.entries(entry.record, "tokens", dict):
            start, end = entry.need(token, "start", int), entry.need(token, "end", int)
            if start < end:
                entry.check_span(text, start, end)
            if places and start < places[-1][1]:
                entry.fail(f"the token at {start} overlaps the one before.")
            if text[start:end].strip():
                places.append((start, end))
        return places

    def annotations(self, entry: Entry) -> Iterator[Annotation]:
        """The spans or the choice of a task that was accepted, or the answer to a question."""
        task, worker = entry.record, _worker(entry)
        if task["answer"] == "ignore":
            return
        is_marked = _is_marked(task)
        if not is_marked and task.get("options") is None:
            yield Annotation(worker, None, {"label": task["answer"]})
        elif task["answer"] == "reject":
            said = "rejected, which is no annotation of the text" if is_marked else "rejected choices"
            self.unused["line", said] += 1
        elif is_marked:
            yield Annotation(worker, entry.entries(task, "spans", dict), {})
        else:
            chosen = [entry.check_id(each, "an entry of 'accept'") for each in entry.get(task, "accept", list, [])]
            self.unused["line", "no option is chosen, and nobody chose several"] += not chosen and not self.are_sets
            yield Annotation(worker, None, {"label": chosen})

    @cached_property
    def are_sets(self) -> bool:
        """Whether several options can be chosen: somebody did, or a task says so."""
        return any(
            len(entry.get(entry.record, "accept", list, [])) > 1
            or entry.get(entry.record, "config", dict, {}).get("choice_style") == "multiple"
            for entry in self.entries
            if entry.record.get("options") is not None
        )

    @cached_property
    def labels(self) -> set[str]:
        """The labels that questions are about, which were answered."""
        tasks = [entry.record for entry in self.entries]
        asked = [task for task in tasks if task["answer"] != "ignore" and not _is_marked(task)]
        return {str(task.get("label") or "") for task in asked if task.get("options") is None}

    def item(self, entry: Entry) -> Id:
        """What an answer is about: the text, or text and label if there are questions about several labels."""
        return f"{entry.name} {entry.record.get('label') or ''}" if len(self.labels) > 1 else entry.name

    # Writing

    def keep(self, entry: Entry) -> Record:
        """A task that says who did it, also where only the name of one of several files said so."""
        if len(self.files()) == 1 or _first(entry.record, *_SIGNATURES) is not None:
            return entry.record
        return {**entry.record, "_annotator_id": _worker(entry)}

    def make_record(self, document: MarkedText, like: Record | None) -> Record:
        """A task without annotations."""
        if like is not None:
            return {key: value for key, value in like.items() if key not in _OWN}
        name, text = document.name, document.text
        task: Record = {
            "text": text,
            "_input_hash" if isinstance(name, int) else "id": name,
            "_view_id": "spans_manual",
        }
        if document.tokens is not None:
            task["tokens"] = [
                {"text": text[start:end], "start": start, "end": end, "id": n, "ws": text[end : end + 1].isspace()}
                for n, (start, end) in enumerate(document.tokens)
            ]
        return task

    def add_spans(self, record: Record, document: MarkedText, reading: Reading) -> None:  # noqa: ARG002
        """Add the spans of an annotator to a task.

        The numbers of the first and the last token count in the tokens of the task. A span that does not begin and end
        with a token has none.
        """
        places = [(token["start"], token["end"]) for token in record.get("tokens") or []]
        first = {start: number for number, (start, end) in enumerate(places) if start < end}
        last = {end: number for number, (start, end) in enumerate(places) if start < end}
        record["spans"] = []
        for (start, end, label), score in reading.spans.items():
            span: Record = {"start": start, "end": end, "label": label}
            if start in first and end in last:
                span = {"token_start": first[start], "token_end": last[end], **span}
            record["spans"].append(span if score is None else {**span, "score": score})
        record |= {"answer": "accept", **dict.fromkeys(_SIGNATURES, reading.worker)}

    def label(self, entry: Entry, question: str, said: Any, verdict: Verdict) -> Record:  # noqa: ARG002
        """A task with the fused answer."""
        task = {key: value for key, value in entry.record.items() if key not in _OWN}
        if task.get("options") is None:
            task["answer"] = str(verdict.label)
        else:
            ids = {str(option.get("id")): option.get("id") for option in entry.entries(task, "options", dict)}
            task |= {"accept": [ids.get(str(label), str(label)) for label in verdict.labels], "answer": "accept"}
        score = {} if verdict.confidence is None else {"score": verdict.confidence}
        return {**task, **score, **dict.fromkeys(_SIGNATURES, FUSED)}


def _first(task: Record, *keys: str) -> Id | None:
    """The first value that is there."""
    return next((task[key] for key in keys if task.get(key) is not None), None)


def _worker(entry: Entry) -> str:
    worker = _first(entry.record, *_SIGNATURES)
    return stem(entry.path) if worker is None else str(entry.check_id(worker, "the annotator's id"))


def _is_marked(task: Record) -> bool:
    """Whether a task is one of marking spans: it has spans; or none of them, tokens to mark, and no question."""
    if task.get("options") is not None:
        return False
    return bool(task.get("spans")) or (task.get("label") is None and ("spans" in task or "tokens" in task))


PRODIGY = Prodigy.codec()
