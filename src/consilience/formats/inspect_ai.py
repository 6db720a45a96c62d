"""Inspect AI: logs of evaluations, as .eval and as JSON.

Relies on the log format of Inspect AI 0.3 (version 2 of its logs). A log is one task, done by one model: the system. A
.eval file is a zip archive, compressed by Zstandard, with a summary of each sample. A log that was interrupted has
these summaries in its journal. The samples themselves, which may also be in chunks, are not unpacked.

- A worker is a scorer. The reducer "collect" of `multi_scorer` keeps the values of several: each of these is a worker,
  called by its model. It drops a scorer that failed, and then nobody knows who said what: such lists are not used.
- An item is a sample, with the system, task and epoch where there are several. Logs of one task and model are runs.
- Grades are C, P, I and N; 0 and 1, and true and false, are I and C beside these. A value with keys answers one
  question for each key.
- A scorer that failed has the value NaN, and a reason. A sample with an error has no scores.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any
from zipfile import BadZipFile, ZipFile, ZipInfo

import pyarrow as pa

from ..errors import InputError, first_line, plural, warn_of
from ..limits import require_memory
from . import Codec, files
from .json_lines import Record
from .logs import Log, Reading, join_content, open_parts, peek_keys, read_parts

_TITLE = "Inspect AI"
_ZIP = b"PK\x03\x04"
_SUMMARIES, _JOURNAL, _HEADERS = "summaries.json", "_journal/summaries/", ("header.json", "_journal/start.json")
# Signed by each file of an archive; its name and further fields of variable length come after so many bytes.
_LOCAL = struct.Struct("<26xHH")
_ZSTANDARD = 93


def _recognise(head: bytes, _path: str) -> bool:
    if head.startswith(_ZIP):
        return b"_journal/start.json" in head or b"header.json" in head
    keys = peek_keys(head)
    return {"version", "status", "eval"} <= keys.keys() and keys["status"] is not None


def _open_member(path: str, member: ZipInfo) -> Any:
    """A stream of a file in an archive, decompressed by Arrow, which knows Zstandard; it ends where it should."""
    require_memory(member.compress_size, f"{member.filename!r} in {path!r} is large", "Export a smaller log.")
    with open(path, "rb") as file:
        file.seek(member.header_offset)
        file.seek(sum(_LOCAL.unpack(file.read(_LOCAL.size))), 1)
        content = pa.BufferReader(file.read(member.compress_size))
    return pa.input_stream(content, compression="zstd")


def _read_archive(path: str) -> Iterator[tuple[str, int, Any]]:
    """The header of a .eval file, and the summaries of its samples."""
    try:
        with ZipFile(path) as archive:
            members = {each.filename: each for each in archive.infolist()}  # of several of a name the last counts
            header = next((name for name in _HEADERS if name in members), None)
            journal = sorted(name for name in members if name.startswith(_JOURNAL))
            chosen = [_SUMMARIES] if _SUMMARIES in members else journal
            if header is None:
                raise InputError(f"{path!r} is an archive without {_HEADERS[0]}.", "Give a log of Inspect AI.")
            for name in (header, *chosen):
                is_plain = members[name].compress_type != _ZSTANDARD
                arrays = ("eval",) if name == header else ()
                with archive.open(name) if is_plain else _open_member(path, members[name]) as stream:
                    for part, line, value in read_parts(stream, f"{path}, {name}", *arrays):
                        if name != header or part == "eval":
                            yield "eval" if name == header else "samples", line, value
    except (BadZipFile, EOFError, struct.error, NotImplementedError, pa.ArrowException, OSError) as error:
        raise InputError(
            f"{path!r} cannot be read as an archive: {first_line(error)}.", "It may be cut off: copy it again."
        ) from error


def _collected(task: Record) -> dict[str, list[str]]:
    """The names of those whose values a scorer collects, by the name of this scorer."""
    found = {}
    for each in task.get("scorers") or []:
        options = each.get("options") or {}
        if options.get("reducer") == "collect" and isinstance(options.get("scorers"), list):
            models = [((one.get("params") or {}).get("model") or {}) for one in options["scorers"]]
            names = [
                str(model.get("model") if isinstance(model, dict) and model else model or one.get("name"))
                for one, model in zip(options["scorers"], models, strict=True)
            ]
            again = len(set(names)) < len(names)
            found[str(each.get("name"))] = [f"{name} {n}" if again else name for n, name in enumerate(names, 1)]
    return found


def _read(path: str, _wanted: object) -> pa.Table:
    log = Log(path, _TITLE, ("sample", "system", "evaluation", "epoch", "run"), words=("C", "I"))
    runs: Counter[tuple[str, str]] = Counter()
    n_failed = 0
    for file in files.list_inputs(path):
        with files.open_input(file) as stream:
            is_archive = stream.read(len(_ZIP)) == _ZIP
        reading, system, task = Reading(_TITLE, file), "", ""
        judges: dict[str, list[str]] = {}
        for name, line, value in _read_archive(file) if is_archive else open_parts(file, "samples"):
            with reading.at(line, value):
                if name == "eval":
                    system, task, judges = str(value["model"]), str(value["task"]), _collected(value)
                    runs[system, task] += 1
                elif name == "samples":
                    n_failed += not value.get("scores")
                    sample = value["id"] if type(value["id"]) is int else str(value["id"])
                    key = sample, system, task, int(value["epoch"]), runs[system, task]
                    _add(log, key, value, judges)
    if n_failed:
        what = plural(n_failed, "sample")
        warn_of(f"{what} of {path!r} left out, which have no score, such as those with an error.")
    return log.table()


def _add(log: Log, key: tuple[Any, ...], sample: Record, judges: dict[str, list[str]]) -> None:
    given = sample.get("scores") or {}
    said = next((each["answer"] for each in given.values() if isinstance(each, dict) and each.get("answer")), None)
    prompt = sample.get("input")
    if isinstance(prompt, list):  # a conversation: what was said last
        prompt = prompt[-1].get("content") if prompt and isinstance(prompt[-1], dict) else None
    log.begin(key, join_content(prompt, said), sample.get("completed_at"))
    for name, score in given.items():
        value = score.get("value") if isinstance(score, dict) else None
        if isinstance(value, list) and len(value) == len(judges.get(name, ())):
            for judge, each in zip(judges[name], value, strict=True):
                log.add(judge, each)
        elif isinstance(value, list):
            log.miss(name, "one of several failed, unknown which" if name in judges else "a list of values")
        elif type(value) is float and value != value and isinstance(score.get("reason"), str):
            log.miss(name, score["reason"])
        else:
            log.add(name, value)


INSPECT = Codec(read=_read, recognise=_recognise)
