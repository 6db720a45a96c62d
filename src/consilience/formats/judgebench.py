"""JudgeBench: outputs of judges on pairs of answers, of which one is known to be right, as JSON lines.

- A worker is a judge: its model, else its name. The second game of a pair, in the other order, is that of a further
  worker, so that a judge who prefers the first place shows.
- An item is a pair, a label says which answer is better: A>B, B>A or A=B. The known label is in the column gold.
- A game that failed is null, or without a decision.
"""

from __future__ import annotations

import os

import pyarrow as pa

from . import Codec, files
from .logs import Log, Reading, join_content, open_parts, peek_keys

_TITLE = "JudgeBench"
_OTHER = {"A>B": "B>A", "B>A": "A>B"}


def _recognise(head: bytes, _path: str) -> bool:
    return {"pair_id", "response_A", "response_B", "judge_name", "judgments"} <= peek_keys(head).keys()


def _read(path: str, _wanted: object) -> pa.Table:
    log = Log(path, _TITLE, ("item",))
    for file in files.list_inputs(path):
        reading = Reading(_TITLE, file)
        model = os.path.basename(file).partition("judge_model=")[2].removesuffix(".jsonl")
        for _, line, pair in open_parts(file):
            with reading.at(line, pair):
                key = (str(pair["pair_id"]),)
                log.begin(key, join_content(pair.get("question"), pair["response_A"], pair["response_B"]))
                if pair.get("label"):
                    log.known[key, "grade"] = pair["label"]
                for game, each in enumerate(pair["judgments"]):
                    said = (each or {}).get("decision")
                    own = ((each or {}).get("judgment") or {}).get("judge_model")
                    judge = f"{model or own or pair['judge_name']}{', swapped' if game else ''}"
                    if said in (None, ""):
                        log.miss(judge, "no decision")
                    else:
                        log.add(judge, _OTHER.get(said, said) if game else said)
    return log.table()


JUDGEBENCH = Codec(read=_read, recognise=_recognise)
