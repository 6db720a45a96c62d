"""lm-evaluation-harness: samples, as `lm-eval --log_samples` writes them.

Relies on lm-evaluation-harness 0.4. A file samples_<task>_<date>.jsonl holds the samples of one task, in a folder
called by the model: the system.

- A worker is a metric, with the filter where there are several. Metrics of 0 and 1 answer one question, those with
  other numbers another. What is a number of the whole corpus (BLEU) has no value for a sample.
- An item is a document, with the task and the system where there are several.
"""

from __future__ import annotations

import os
import re

import pyarrow as pa

from ..errors import warn_of
from . import Codec, files
from .logs import Log, Reading, join_content, open_parts, peek_keys

_TITLE = "lm-evaluation-harness"
_NEEDED = frozenset({"doc_id", "doc", "target", "arguments", "resps", "filtered_resps"})
_OTHERS = _NEEDED | {"filter", "metrics", "doc_hash", "prompt_hash", "target_hash"}
_NAME = re.compile(r"samples_(.+?)(_\d{4}-\d\d-\d\dT.*)?\.jsonl(\.gz)?")


def _recognise(head: bytes, _path: str) -> bool:
    return peek_keys(head).keys() >= _NEEDED


def _read(path: str, _wanted: object) -> pa.Table:
    log = Log(path, _TITLE, ("sample", "system", "evaluation"))
    lists: dict[str, None] = {}
    for file in files.list_inputs(path):
        name = _NAME.fullmatch(os.path.basename(file))
        task = name[1] if name else files.stem(file)
        system = os.path.basename(os.path.dirname(os.path.abspath(file)))
        reading = Reading(_TITLE, file)
        for _, line, sample in open_parts(file):
            with reading.at(line, sample):
                key = int(sample["doc_id"]), system, task
                arguments = sample["arguments"]  # in early releases of 0.4 a list for each request
                is_named = isinstance(arguments, dict)
                prompt = (arguments.get("gen_args_0") or {}).get("arg_0") if is_named else arguments[0][0]
                log.begin(key, join_content(prompt, *sample["filtered_resps"][:1]))
                source = str(sample.get("filter") or "")
                for metric in sample.get("metrics") or sample.keys() - _OTHERS:
                    value = sample.get(metric)
                    if isinstance(value, (list, dict)):
                        lists[metric] = None
                    else:
                        log.add(metric, value, source)
    if lists:
        warn_of(f"Not used of {path!r}: {', '.join(lists)}, which have no value for a single sample.")
    return log.table(apart=True)


LM_EVAL = Codec(read=_read, recognise=_recognise)
