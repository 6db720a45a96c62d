"""Potato: the states of annotators (user_state.json in a folder for each), and the JSONL export.

Relies on Potato 2. Files of annotators are read together: 'annotation_output/*/user_state.json'.

- A scheme is a question. Of radio buttons, likert scales and checkboxes the options that were chosen are the answer: a
  set where somebody chose several, and else one label. Sliders are numbers, text boxes texts.
- Options that are all left open are no answer, and the empty set of checkboxes.
- Spans are not read, since these files do not hold the texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa

from ..errors import plural, warn_of
from . import Codec, files
from .json_lines import Record
from .logs import Log, Reading, open_parts, peek_keys

_TITLE = "Potato"
# What is stored for an option that was not chosen.
_OPEN = (False, None, "", "false", "False", 0, "0")
# The names of fields whose value is the answer, and not their name.
_FIELDS = ("slider", "text_box", "textbox", "number", "text")


def _recognise(head: bytes, _path: str) -> bool:
    keys = peek_keys(head).keys()
    return {"user_id", "instance_id_ordering"} <= keys or {"instance_id", "user_id", "labels"} <= keys


def _schemes(record: Record) -> Iterator[tuple[str, dict[str, dict[str, Any]], int]]:
    """The items in a record, each with the fields of each scheme, and the number of spans."""
    if "instance_id" in record:
        spans = sum(map(len, (record.get("spans") or {}).values()))
        yield str(record["instance_id"]), record["labels"], spans
        return
    marked = record.get("instance_id_to_span_to_value") or {}
    for item, fields in record["instance_id_to_label_to_value"].items():
        schemes: dict[str, dict[str, Any]] = {}
        for field, value in fields:
            schemes.setdefault(str(field["schema"]), {})[str(field["name"])] = value
        yield str(item), schemes, len(marked.get(item) or ())


def _answer(fields: dict[str, Any]) -> Any:
    """What was answered: the options that were chosen, a number, a text, or None."""
    if len(fields) == 1:
        ((name, value),) = fields.items()
        if name in _FIELDS or (isinstance(value, str) and value not in (name, "true", *_OPEN)):
            with suppress(TypeError, ValueError):
                value = float(value)
            return value
    return [name for name, value in fields.items() if value not in _OPEN or str(value) == name]


def _read(path: str, _wanted: object) -> pa.Table:
    log = Log(path, _TITLE, ("item",), missing=("question", "since what was left open has no answer"))
    said: list[tuple[str, str, dict[str, Any]]] = []
    n_spans = 0
    for file in files.list_inputs(path):
        reading = Reading(_TITLE, file)
        for _, line, record in open_parts(file):
            with reading.at(line, record):
                for item, schemes, spans in _schemes(record):
                    n_spans += spans
                    said.append((item, str(record["user_id"]), {name: _answer(schemes[name]) for name in schemes}))
    answers = [each for *_, given in said for each in given.items()]
    sets = {name for name, answer in answers if isinstance(answer, list) and len(answer) > 1}
    for item, worker, given in said:
        log.begin((item,))
        for name, answer in given.items():
            if isinstance(answer, list) and name not in sets:
                answer = answer[0] if answer else None
                answer = int(answer) if answer and answer.isdecimal() and str(int(answer)) == answer else answer
            log.add(worker, answer, question=name)
    if n_spans:
        warn_of(f"Not used of {path!r}: {plural(n_spans, 'span')}, since these files do not hold the texts.")
    return log.table()


POTATO = Codec(read=_read, recognise=_recognise)
