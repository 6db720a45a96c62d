"""Battles of two systems for rankings: MT-Bench judgments, AlpacaEval annotations, and files of arenas.

Relies on FastChat 0.2 (llm_judge), AlpacaEval 0.6 (annotations.json) and the files that arenas publish, all of which
are JSON records: one per line, or in an array.

- A worker is a judge: of MT-Bench the model, and the prompt where it is not the usual one; of AlpacaEval the annotator.
- MT-Bench plays each pair twice, in both orders. Each game is a comparison, with what stood first on the left. Grades
  of single answers are answers about a question, a system and a turn.
- AlpacaEval's preferences between 1 and 2 are for the nearer system, and 1.5 is a tie.
- The winner "error", the grade -1 and a preference that is null are of a judge that failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from ..errors import InputError, plural, warn_of
from . import Codec, files
from .json_lines import Record
from .logs import Log, Reading, make_column, open_parts, peek_keys

# Item, worker, left, right, and winner: "left", "right" or "tie", None where the judge failed.
Battle: TypeAlias = tuple[Any, str, str, str, str | None]

_PROMPTS = ("pair-v2", "pair-v2-multi-turn", "pair-math-v1", "pair-math-v1-multi-turn")
_TIES = ("tie", "tie (bothbad)", "both_bad", "bothbad")


def _name_judge(judge: Any) -> str:
    """A judge as text: files hold the model with the name of the prompt, or only a name."""
    parts = [str(each) for each in judge] if isinstance(judge, list) else [str(judge)]
    usual = len(parts) == 2 and (parts[1] in _PROMPTS or parts[1].startswith("single-"))
    return parts[0] if usual else " ".join(parts)


def _read_mt_bench(record: Record) -> Iterator[Battle]:
    first, second = str(record["model_1"]), str(record["model_2"])
    item, judge = f"{record['question_id']} turn {record['turn']}", _name_judge(record["judge"])
    sides = {"model_1": "left", "model_2": "right", "tie": "tie"}
    yield item, judge, first, second, sides.get(record["g1_winner"])
    other = {"left": "right", "right": "left"}
    if "g2_winner" in record:
        winner = sides.get(record["g2_winner"])
        yield item, judge, second, first, None if winner is None else other.get(winner, winner)


def _read_alpaca_eval(record: Record) -> Iterator[Battle]:
    said = record["preference"]
    known = isinstance(said, (int, float)) and said == said
    winner = None if not known else "tie" if said in (0, 1.5) else "left" if said < 1.5 else "right"
    names = str(record["generator_1"]), str(record["generator_2"])
    yield str(record["instruction"]), str(record.get("annotator") or "judge"), *names, winner


def _read_arena(record: Record) -> Iterator[Battle]:
    item = next((record[key] for key in ("question_id", "id", "conversation_id") if record.get(key) is not None), "")
    judge = _name_judge(record.get("judge") or record.get("judge_hash") or "visitors")
    sides = {"model_a": "left", "model_b": "right"} | dict.fromkeys(_TIES, "tie")
    turn = f" turn {record['turn']}" if record.get("turn") is not None else ""
    yield f"{item}{turn}", judge, str(record["model_a"]), str(record["model_b"]), sides.get(record["winner"])


def _read(title: str, read: Callable[[Record], Iterator[Battle]], path: str, _wanted: object) -> pa.Table:
    battles: list[Battle] = []
    failed: Counter[str] = Counter()
    n_alone = 0
    grades = Log(path, title, ("sample", "system", "turn"))
    for file in files.list_inputs(path):
        reading = Reading(title, file)
        for _, line, record in open_parts(file):
            with reading.at(line, record):
                if "score" in record and "model" in record:
                    grades.begin((record["question_id"], str(record["model"]), int(record["turn"])))
                    said = record["score"]
                    grades.add(_name_judge(record["judge"]), None if said == -1 else said)
                    continue
                for battle in read(record):
                    if battle[-1] is None:
                        failed[battle[1]] += 1
                    elif battle[2] == battle[3]:
                        n_alone += 1
                    else:
                        battles.append(battle)
    if grades.keys:
        if battles:
            raise InputError(f"{path!r} holds battles of pairs and grades of single answers.", "Read them one by one.")
        return grades.table()
    if failed:
        judges = ", ".join(f"{n:,} of {judge}" for judge, n in failed.most_common(5))
        total = plural(failed.total(), "verdict")
        warn_of(f"{total} of {path!r} left out, since a judge that failed gives no verdict: {judges}.")
    if n_alone:
        warn_of(f"{plural(n_alone, 'verdict')} of {path!r} left out, where a system meets itself.")
    if not battles:
        raise InputError(f"{path!r} holds no verdicts ({title}).", "Give the file with the judgments.")
    names = ("item", "worker", "left", "right", "winner")
    table = {name: make_column([battle[at] for battle in battles]) for at, name in enumerate(names)}
    return pa.table(table if len(table["item"].unique()) > 1 else {name: table[name] for name in names[1:]})


def _has(head: bytes, *names: str, some: tuple[str, ...] = ()) -> bool:
    keys = peek_keys(head).keys()
    return {*names} <= keys and (not some or not keys.isdisjoint(some))


MT_BENCH = Codec(
    read=partial(_read, "MT-Bench", _read_mt_bench),
    recognise=lambda head, _path: (
        _has(head, "question_id", "model_1", "model_2", "g1_winner")
        or _has(head, "question_id", "model", "judge", "score", "turn")
    ),
)
ALPACA_EVAL = Codec(
    read=partial(_read, "AlpacaEval", _read_alpaca_eval),
    recognise=lambda head, _path: _has(head, "instruction", "generator_1", "generator_2", "preference"),
)
ARENA = Codec(
    read=partial(_read, "arenas", _read_arena),
    recognise=lambda head, _path: _has(
        head, "model_a", "model_b", "winner", some=("conversation_a", "tstamp", "anony", "judge_hash")
    ),
)
