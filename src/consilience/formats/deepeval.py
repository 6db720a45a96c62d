"""DeepEval: test runs, as `evaluate` writes them (DEEPEVAL_RESULTS_FOLDER, or .deepeval/.latest_run_full.json).

Relies on DeepEval 4. A file is one run: a system, called as the file where there are several.

- A worker is a metric; one with several evaluation models is a question to these. It succeeds or not: the score behind
  that is not used.
- An item is a test case, by its name.
- A metric with an error did not judge, which DeepEval itself counts as a failure.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from . import Codec, files
from .logs import Log, Reading, join_content, open_parts, peek_keys

_TITLE = "DeepEval"
_CASES = ("testCases", "conversationalTestCases")
_ARRAYS = (*_CASES, *(f"testRunData.{name}" for name in _CASES))


def _recognise(head: bytes, _path: str) -> bool:
    keys = peek_keys(head)
    inner = keys.get("testRunData") or {}
    return "testCases" in keys or ("testRunData" in keys and (not inner or "testCases" in inner))


def _read(path: str, _wanted: object) -> pa.Table:
    log = Log(path, _TITLE, ("sample", "system", "run"))
    for file in files.list_inputs(path):
        seen, reading = Counter[str](), Reading(_TITLE, file)
        for name, line, case in open_parts(file, *_ARRAYS):
            if name not in _ARRAYS:
                continue
            with reading.at(line, case):
                sample = str(case["name"])
                seen[sample] += 1
                key = sample, files.stem(file), seen[sample]
                log.begin(key, join_content(case.get("input"), case.get("actualOutput")))
                for metric in case.get("metricsData") or []:
                    judge, model = str(metric["name"]), str(metric.get("evaluationModel") or "")
                    if metric.get("error"):
                        log.miss(judge, str(metric["error"]), model)
                    else:
                        log.add(judge, None if metric.get("success") is None else bool(metric["success"]), model)
    return log.table()


DEEPEVAL = Codec(read=_read, recognise=_recognise)
