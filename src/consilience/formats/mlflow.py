"""MLflow: traces with assessments, as `Trace.to_json` and `search_traces` give them, one or several in a file of JSON.

Relies on the traces of MLflow 3.

- A feedback that several sources give (people, judges, code) is a question to these; each other feedback is a worker.
- An item is a trace, or a span of one. The system is the logged model, else the run.
- A feedback with an error says nothing. One that was overridden is not used. Expectations are no verdicts.
- What people said is also in the column human: with it as known labels, judges are measured by people.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..errors import plural, warn_of
from . import Codec, files
from .json_lines import Record
from .logs import Log, Reading, join_content, open_parts, peek_keys

_TITLE = "MLflow"
_SYSTEMS = ("mlflow.modelId", "mlflow.sourceRun")


def _recognise(head: bytes, _path: str) -> bool:
    keys = peek_keys(head)
    if "traces" in keys:
        keys = peek_keys(head.partition(b'"traces"')[2].lstrip(b" :\n\t"))
    if "info" in keys and keys["info"] is None:
        return b'"trace_id"' in head and b'"assessment_name"' in head
    info = keys.get("info") or keys
    return isinstance(info, dict) and {"trace_id", "assessments"} <= info.keys()


def _read(path: str, _wanted: object) -> pa.Table:
    log = Log(path, _TITLE, ("item", "system", "span"), words=("yes", "no"))
    n_overridden = 0
    for file in files.list_inputs(path):
        with files.open_input(file) as stream:
            is_page = "traces" in peek_keys(bytes(stream.read(1 << 16)))
        reading = Reading(_TITLE, file)
        for name, line, trace in open_parts(file, *(["traces"] if is_page else [])):
            if name not in ("", "traces"):
                continue
            with reading.at(line, trace):
                info = trace.get("info") or trace
                told = info.get("trace_metadata") or {}
                system = next((str(told[each]) for each in _SYSTEMS if told.get(each)), "")
                content = join_content(info.get("request_preview"), info.get("response_preview"))
                for each in info.get("assessments") or []:
                    if each.get("valid") is False:
                        n_overridden += 1
                    elif each.get("feedback") is not None:
                        key = str(info["trace_id"]), system, str(each.get("span_id") or "")
                        _add(log, key, each, content)
    if n_overridden:
        warn_of(f"Not used of {path!r}: {plural(n_overridden, 'assessment')} (overridden).")
    return log.table()


def _add(log: Log, key: tuple[Any, ...], assessment: Record, content: str | None) -> None:
    name, source = str(assessment["assessment_name"]), assessment["source"]
    kind, author = str(source["source_type"]).lower(), str(source.get("source_id") or "")
    who = author if author not in ("", "default") else kind
    human, feedback = kind == "human", assessment["feedback"]
    who = f"human {author}" if human and who == author else who
    if feedback.get("error"):
        error = feedback["error"]
        log.miss(name, str(error.get("error_message") or error.get("error_code")), who)
    else:
        log.begin(key, content, assessment.get("create_time"))
        log.add(name, feedback.get("value"), who, human)


MLFLOW = Codec(read=_read, recognise=_recognise)
