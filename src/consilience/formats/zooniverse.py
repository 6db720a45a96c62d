"""Zooniverse: exports of classifications, CSV with JSON in its cells.

Relies on the classification exports of Panoptes. A row is what one volunteer did with one subject.

- Each task is a question, called as in the workflow (T0), after the workflow's number if there are several of these.
  Questions, dropdowns, sliders and texts have one answer; multiple choices, and surveys where somebody chose several,
  have sets of them. Of a survey the choices are read. Combined tasks are taken apart. Shapes are not read.
- An item is a subject, or several that were shown together.
- Volunteers who are not logged in are told apart by their session, else by their address: both are hashes, of which
  another hash becomes the name, so that no name leads back to them.
- A task that a volunteer skipped has no answer.
- Classifications with a gold standard flag are known labels, and not answers of a worker.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa

from ..errors import InputError, listing, plural, shorten, warn_of
from . import Codec
from .files import name_of
from .json_lines import Record
from .logs import Log, read_rows, recognise_columns

_TITLE = "Zooniverse classifications"
_REMEDY = "Export the classifications again."
_NEEDED = ("annotations", "subject_ids", "user_name", "workflow_id")
_CONTENT = ("content", "text", "image", "filename", "name", "url")


def _recognise(head: bytes, _path: str) -> bool:
    return recognise_columns(head, *_NEEDED, "classification_id")


def _parse(place: str, row: Record, column: str, kind: type) -> Any:
    """The JSON in a cell."""
    try:
        value = json.loads(row.get(column) or "null")
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: {column!r} is not valid JSON: {shorten(row[column])}.", _REMEDY) from error
    if value is None:
        return kind()
    if not isinstance(value, kind):
        what = "list" if kind is list else "object"
        raise InputError(f"{place}: {column!r} must be a JSON {what}, found {shorten(value)}.", _REMEDY)
    return value


def _flatten(place: str, annotations: list[Any]) -> Iterator[tuple[str, Any]]:
    """The tasks of a classification, those of combined tasks too."""
    for each in annotations:
        if not isinstance(each, dict) or "task" not in each:
            raise InputError(f"{place}: an annotation is no object with a task: {shorten(each)}.", _REMEDY)
        value = each.get("value")
        parts = value if isinstance(value, list) else []
        if parts and all(isinstance(one, dict) and {"task", "value"} <= one.keys() for one in parts):
            yield from _flatten(place, parts)
        else:
            if str(each.get("taskType")).startswith("slider") and isinstance(value, str):
                with suppress(ValueError):
                    value = float(value)
            yield str(each["task"]), value


def _answer(task: str, value: Any) -> dict[str, Any] | None:
    """The answers to a task by question, None for shapes."""
    parts = value if isinstance(value, list) else [value]
    objects = [one for one in parts if isinstance(one, dict)]
    if not objects:
        return {task: [str(one) for one in value] if isinstance(value, list) else value}
    if len(objects) < len(parts):
        return None
    if all("choice" in one for one in objects):
        return {task: [str(one["choice"]) for one in objects]}
    if all("option" in one for one in objects):  # menus of a dropdown
        keys = "label", "value", "selection"
        chosen = [next((one[key] for key in keys if one.get(key) is not None), None) for one in objects]
        return {task if len(parts) == 1 else f"{task}.{n}": one for n, one in enumerate(chosen)}
    return None


def _name(place: str, row: Record) -> str:
    if row.get("user_id") or not str(row["user_name"]).startswith("not-logged-in"):
        return str(row["user_name"])
    session = _parse(place, row, "metadata", dict).get("session")
    trace = str(session or row.get("user_ip") or row["user_name"])
    return f"anonymous-{hashlib.blake2b(trace.encode(), digest_size=5, person=b'consilience').hexdigest()}"


def _read(path: str, _wanted: object) -> pa.Table:
    log = Log(path, _TITLE, ("item",), missing=("task", "since what was skipped has no answer"))
    shapes: dict[str, int] = {}
    contents: dict[int | str, str | None] = {}
    doubtful: set[tuple[int | str, str]] = set()
    workflows = {row["workflow_id"] for _, _, row in read_rows(path, _TITLE, *_NEEDED)}
    for file, line, row in read_rows(path, _TITLE, *_NEEDED):
        place = f"{name_of(file)}, line {line}"
        subject = int(row["subject_ids"]) if row["subject_ids"].isdecimal() else row["subject_ids"]
        answers: dict[str, Any] = {}
        for task, value in _flatten(place, _parse(place, row, "annotations", list)):
            name = f"{row['workflow_id']}.{task}" if len(workflows) > 1 else task
            found = _answer(name, value)
            if found is None:
                shapes[name] = shapes.get(name, 0) + 1
            else:
                answers |= found
        if subject not in contents:
            contents[subject] = _find_content(_parse(place, row, "subject_data", dict))
        if str(row.get("gold_standard")).lower() == "true":
            for question, value in answers.items():
                known = log.known.setdefault(((subject,), question), value)
                doubtful |= {(subject, question)} if known != value else set()
        else:
            log.begin((subject,), contents[subject], row.get("created_at"))
            log.add(_name(place, row), answers)
    for subject, question in doubtful:
        log.known[(subject,), question] = None
    if doubtful:
        warn_of(f"Gold standards of {path!r} differ for {plural(len(doubtful), 'answer')}, which are not known labels.")
    if shapes:
        warn_of(f"Not used of {path!r}: shapes and other results that are no answers, in {listing(shapes)}.")
    return log.table()


def _find_content(data: Record) -> str | None:
    """What a subject looks like: the first text that its manifest has under a usual name."""
    for subject in data.values():
        if isinstance(subject, dict):
            plain = {str(key).strip("#/ ").lower(): value for key, value in subject.items()}
            return next((plain[name] for name in _CONTENT if isinstance(plain.get(name), str)), None)
    return None


ZOONIVERSE = Codec(read=_read, recognise=_recognise)
