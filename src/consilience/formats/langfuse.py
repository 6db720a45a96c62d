"""Langfuse: scores, as JSON of the API or the SDK, and as the CSV and JSON that the table of scores exports.

Relies on the scores of Langfuse 3 (API versions 1 to 3), whose columns in CSV are called alike.

- A score that several sources give (people, evaluators, the API) is a question to these; each other score is a worker.
  People are told apart by their ids.
- An item is a trace, with the observation where scores are about these; else a session, or a run of a data set.
- Categories are labels, not the numbers behind them. What people said is also in the column human: with it as known
  labels, evaluators are measured by people.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from . import Codec, files
from .json_lines import Record
from .logs import Log, Reading, open_parts, peek_keys, read_rows, recognise_columns

_TITLE = "Langfuse"
_NEEDED = ("name", "value", "source")


def _recognise(head: bytes, _path: str) -> bool:
    if recognise_columns(head, *_NEEDED, "traceId"):
        return True
    keys = peek_keys(head)
    inner = keys.get("data")
    first = inner[0] if isinstance(inner, list) and inner and isinstance(inner[0], dict) else keys
    if first is keys and "data" in keys:  # of a page that is longer than what was read
        first = peek_keys(head.partition(b'"data"')[2].lstrip(b" :\n\t"))
    return {*_NEEDED, "dataType"} <= first.keys()


def _scores(path: str) -> Iterator[tuple[str, int, Record]]:
    """All scores, each with its file and line."""
    for file in files.list_inputs(path):
        with files.open_input(file) as stream:
            head = bytes(stream.read(1 << 16)).removeprefix(b"\xef\xbb\xbf").lstrip()
        if not head.startswith((b"{", b"[")):
            yield from read_rows(file, _TITLE, *_NEEDED)
            continue
        is_page = "data" in peek_keys(head)
        for name, line, score in open_parts(file, *(["data"] if is_page else [])):
            if name in ("", "data"):
                yield file, line, score


def _read(path: str, _wanted: object) -> pa.Table:
    log = Log(path, _TITLE, ("item", "observation"))
    reading = Reading(_TITLE)
    for file, line, score in _scores(path):
        with reading.at(line, score, file):
            subject = score.get("subject") or {}
            places = score.get("traceId"), score.get("sessionId"), score.get("datasetRunId"), subject.get("traceId")
            item = next(filter(None, places), None) or subject["id"]
            observation = score.get("observationId") or (subject.get("kind") == "observation" and subject["id"]) or ""
            source, author = str(score["source"]).lower(), score.get("authorUserId")
            human = source == "annotation"
            who = f"human {author}" if human and author else "human" if human else source
            log.begin((str(item), str(observation)), time=score.get("timestamp"))
            log.add(str(score["name"]), _value(score), who, human)
    return log.table()


def _value(score: Record) -> Any:
    """What a score says: the category, or a number, which is text in CSV."""
    value, kind = score["value"], score.get("dataType")
    if kind in ("CATEGORICAL", "TEXT", "CORRECTION"):
        return score.get("stringValue") or value
    if isinstance(value, str) and value:
        value = {"true": 1, "false": 0}[value.lower()] if value.lower() in ("true", "false") else float(value)
    return bool(value) if kind == "BOOLEAN" and value not in ("", None) else value


LANGFUSE = Codec(read=_read, recognise=_recognise)
