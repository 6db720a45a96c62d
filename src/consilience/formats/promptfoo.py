"""promptfoo: results of an evaluation, as JSON or as JSON lines (`promptfoo eval -o results.json`).

Relies on results of version 3, as promptfoo 0.121 writes them. A result is what one provider, the system, made of one
prompt for one test.

- A worker is an assertion, called by its metric, else by its type; what several graders say of one metric is a question
  to these. It passes or not: the score behind that is not used.
- An item is a test, which is known by its variables, with the system and the prompt where there are several. Results
  that are the same in all of that are runs.
- A grader that failed has `graderError` in the metadata of its result, which promptfoo itself counts as not passed.
  Earlier versions say so only in the reason.
- What a person decided in the viewer is an assertion of type "human".
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa

from ..errors import plural, warn_of
from . import Codec, files
from .json_lines import Record
from .logs import Log, Reading, join_content, open_parts, peek_keys

_TITLE = "promptfoo"
_FAILURES = "Could not extract JSON", "No output", "API error", "Grader error"
_LONGEST = 60


def _recognise(head: bytes, _path: str) -> bool:
    keys = peek_keys(head).keys()
    return {"evalId", "results"} <= keys or {"gradingResult", "promptIdx", "testIdx"} <= keys


def _read(path: str, _wanted: object) -> pa.Table:
    log = Log(path, _TITLE, ("sample", "system", "template", "run"))
    tests: dict[str, int] = {}
    taken: set[int] = set()
    runs: Counter[tuple[Any, ...]] = Counter()
    n_failed = 0
    for file in files.list_inputs(path):
        is_lines, reading = "evalId" not in _peek(file), Reading(_TITLE, file)
        for name, line, result in open_parts(file, *([] if is_lines else ["results.results"])):
            if name not in ("", "results.results"):
                continue
            with reading.at(line, result):
                test, place = json.dumps(result["vars"], sort_keys=True), int(result["testIdx"])
                if test not in tests:  # another file may have another test in its place
                    tests[test] = place if place not in taken else max(taken) + 1
                    taken.add(tests[test])
                sample = tests[test]
                system = str(result["provider"].get("label") or result["provider"]["id"])
                prompt = str(result["prompt"].get("label") or result["prompt"]["raw"])
                if len(prompt) > _LONGEST:
                    prompt = f"{prompt[:_LONGEST]} {str(result.get('promptId'))[:8]}"
                runs[sample, system, prompt] += 1
                key = sample, system, prompt, runs[sample, system, prompt]
                parts = (result["gradingResult"] or {}).get("componentResults") or []
                n_failed += not parts
                log.begin(key, join_content(result["prompt"].get("raw"), (result.get("response") or {}).get("output")))
                for (judge, source), part in zip(_name(parts), parts, strict=True):
                    if _has_failed(part):
                        log.miss(judge, str(part.get("reason")), source)
                    else:
                        log.add(judge, part.get("pass"), source, judge == "human")
    if n_failed:
        what = plural(n_failed, "result")
        warn_of(f"{path!r} has {what} without an assertion, such as those with an error. They are left out.")
    return log.table()


def _peek(path: str) -> Record:
    with files.open_input(path) as stream:
        return peek_keys(bytes(stream.read(1 << 16)))


def _name(parts: list[Record]) -> list[tuple[str, str]]:
    """What each assertion of a result is called, and who graded it. Of several of a name the later are numbered."""
    names, counts = [], Counter[tuple[str, str]]()
    for part in parts:
        assertion = part.get("assertion") or {}
        grader = assertion.get("provider") or ""
        source = str(grader.get("id") if isinstance(grader, dict) else grader)
        name = str(assertion.get("metric") or assertion.get("type") or "assertion")
        counts[name, source] += 1
        n = counts[name, source]
        names.append((f"{name} {n}" if n > 1 else name, source))
    return names


def _has_failed(part: Record) -> bool:
    failed = bool((part.get("metadata") or {}).get("graderError"))
    return failed or (not part.get("pass") and str(part.get("reason")).startswith(_FAILURES))


PROMPTFOO = Codec(read=_read, recognise=_recognise)
