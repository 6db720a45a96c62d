"""What is more than one label an answer: ratings, sets of tags, several questions, soft votes, comparisons.

A case makes a small table of one kind, and fuses or ranks it. Whatever comes out must be sound, also after saving.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import consilience as cs
from consilience.formats.writing import write_table
from fuzz.crowds import demand, demand_distributions
from fuzz.harness import Nonsense

Rng = np.random.Generator
Columns = dict[str, list[Any]]

WORKERS = ["ann", "bob", "cy"]
TAGS = ["red", "green", "blue"]


class Drawn(NamedTuple):
    """A table of one kind, and what to say about it."""

    table: Columns
    keywords: dict[str, Any]
    open: Callable[..., Any] = cs.fuse


# --------------------------------------------------------------------------------------------------------------- tables


def draw_rows(rng: Rng) -> tuple[list[Any], list[str]]:
    """Return items and workers of a few answers, one for each pair of them."""
    n_items, n_workers = int(rng.choice([1, 2, 4, 10])), int(rng.choice([1, 2, 3]))
    pairs = [(i, WORKERS[w]) for i in range(n_items) for w in range(n_workers)]
    kept = [pair for pair in pairs if rng.random() < 0.8] or pairs[:1]
    return [item for item, _ in kept], [worker for _, worker in kept]


def draw_ratings(rng: Rng) -> Drawn:
    items, workers = draw_rows(rng)
    levels: list[Any] = [[1, 2, 3, 4, 5], [0.5, 1.0, 1.5], ["low", "mid", "high"], [-2, 0, 7]][rng.integers(4)]
    said = [levels[k] for k in rng.integers(len(levels), size=len(items))]
    keywords: dict[str, Any] = {"ordered": True}
    if isinstance(levels[0], str) or rng.random() < 0.3:
        keywords["classes"] = levels
    if rng.random() < 0.2:
        places = [0, 1, 5, 6, 9, 20][: len(levels)]
        keywords |= {"classes": levels, "positions": places if rng.random() < 0.7 else ODD_NUMBERS[: len(levels)]}
    return Drawn({"item": items, "worker": workers, "rating": said}, keywords)


ODD_NUMBERS = [float("nan"), -1e308, 1e308, 0, 0]


def draw_sets(rng: Rng, n: int) -> list[list[str]]:
    return [[tag for tag in TAGS if rng.random() < 0.4] for _ in range(n)]


def draw_tags(rng: Rng) -> Drawn:
    """Return sets of tags in cells, as lists, with a column or a row for each tag."""
    items, workers = draw_rows(rng)
    sets = draw_sets(rng, len(items))
    keys: Columns = {"item": items, "worker": workers}
    way = rng.integers(4)
    if way == 0:
        sign = (";", "|", ", ", " ")[rng.integers(4)]
        return Drawn(keys | {"tags": [sign.join(each) for each in sets]}, {"separator": sign})
    if way == 1:
        return Drawn(keys | {"tags": sets}, {})
    if way == 2:
        words: list[Any] = [(0, 1), ("no", "yes"), (False, True)][rng.integers(3)]
        return Drawn(
            keys | {tag: [words[tag in each] for each in sets] for tag in TAGS},
            {"format": "one-hot"},
        )
    rows = [(i, w, tag) for i, w, each in zip(items, workers, sets, strict=True) for tag in each or [None]]
    return Drawn(dict(zip(("item", "worker", "tag"), map(list, zip(*rows, strict=True)), strict=True)), {})


def draw_questions(rng: Rng) -> Drawn:
    items, workers = draw_rows(rng)
    n = len(items)
    names = ["tone", "stars", "topics"][: rng.integers(2, 4)]
    said: Columns = {
        "tone": [("good", "bad", None)[k] for k in rng.choice(3, p=[0.5, 0.4, 0.1], size=n)],
        "stars": [(1, 2, 3, 4, None)[k] for k in rng.integers(5, size=n)],
        "topics": [";".join(each) for each in draw_sets(rng, n)],
    }
    keywords: dict[str, Any] = {"label": names}
    if rng.random() < 0.5:
        keywords["ordered"] = {"stars": True}
    if "topics" in names:
        keywords["separator"] = {"topics": ";"}
    return Drawn({"item": items, "worker": workers} | {name: said[name] for name in names}, keywords)


def draw_probabilities(rng: Rng, n: int, k: int) -> Any:
    """Return votes, some of them no probabilities at all."""
    votes = rng.dirichlet(np.ones(k), size=n)
    way = rng.integers(9)
    if way == 0:
        votes = np.log(votes)
    elif way == 1:
        votes[rng.integers(n)] = np.nan
    elif way == 2:
        votes[rng.integers(n), 0] = rng.choice([np.nan, -0.1, 2.0, np.inf, 1e308, -np.inf, 5e-324])
    elif way == 3:
        votes = np.round(votes, 1)
    elif way == 4:
        votes = np.eye(k)[rng.integers(k, size=n)]
    return votes


def draw_soft(rng: Rng) -> Drawn:
    """Return soft votes: a row for each vote, or for each label of one."""
    items, workers = draw_rows(rng)
    classes = ["cat", "dog", "owl"][: rng.integers(1, 4)]
    way = ("soft", "soft-long")[rng.integers(2)]
    keywords: dict[str, Any] = {"rescale": True} if rng.random() < 0.4 else {}
    if rng.random() < 0.5:
        keywords["format"] = way
    votes = draw_probabilities(rng, len(items), len(classes))
    if way == "soft":
        cells = {f"p({c})": votes[:, k].tolist() for k, c in enumerate(classes)}
        return Drawn({"item": items, "worker": workers} | cells, keywords)
    k = len(classes)
    long = {"item": np.repeat(items, k).tolist(), "worker": np.repeat(workers, k).tolist()}
    return Drawn(long | {"label": classes * len(items), "probability": votes.ravel().tolist()}, keywords)


SPELLINGS: list[tuple[Any, Any, Any]] = [
    ("left", "right", "tie"),
    ("A", "B", "tie"),
    ("model_a", "model_b", "tie (bothbad)"),
    (1, 2, 0),
    (1, -1, 0),
    (1, 0, 0.5),
    (">", "<", "="),
    (None, None, "tie"),  # the candidate's own name
]


def draw_comparisons(rng: Rng) -> Drawn:
    """Return verdicts on pairs in any spelling, or scores or ranks of candidates."""
    n, candidates = int(rng.choice([1, 2, 5, 30])), ["ada", "bix", "col", "dot", "A", "1"][: rng.integers(2, 7)]
    workers = [WORKERS[k] for k in rng.integers(3, size=n)]
    parameters = {"n_draws": 50, "max_iter": 50}
    if rng.random() < 0.2:
        name = ("score", "rank")[rng.integers(2)]
        rows = [(w, i, c) for w in WORKERS for i in range(n % 7 + 1) for c in candidates if rng.random() < 0.7]
        rows = rows or [("ann", 0, "ada"), ("ann", 0, "bix")]
        table = dict(zip(("judge", "prompt", "model"), map(list, zip(*rows, strict=True)), strict=True))
        table[name] = rng.integers(1, 5, size=len(rows)).tolist()
        named = {"candidate": "model", name: name} if rng.random() < 0.5 else {}
        return Drawn(table, parameters | named, cs.rank)
    pairs = [rng.choice(len(candidates), 2, replace=False) for _ in range(n)]
    left, right = ([candidates[pair[side]] for pair in pairs] for side in (0, 1))
    spelling = SPELLINGS[rng.integers(len(SPELLINGS))]
    codes = rng.choice(3, p=[0.5, 0.4, 0.1], size=n)
    won = [(a, b, "tie")[k] if spelling[0] is None else spelling[k] for a, b, k in zip(left, right, codes, strict=True)]
    first, second = [("left", "right"), ("model_a", "model_b"), ("response_a", "response_b")][rng.integers(3)]
    table = {"judge": workers, first: left, second: right, "winner": won}
    named = {}
    for role, values in {
        "item": [f"prompt {i // 3}" for i in range(n)],
        "group": [w[0] for w in workers],
        "weight": rng.choice([0.5, 1.0, 1e6, 1e-300], size=n).tolist(),
    }.items():
        if rng.random() < 0.25:
            table[role] = values
            named[role] = role
    return Drawn(table, parameters | named, cs.rank)


# ------------------------------------------------------------------------------------------------------------ soundness


def demand_sound(result: Any) -> None:
    """Demand that a model of any kind holds probabilities and numbers, and can be shown."""
    if isinstance(result, cs.BradleyTerry):
        demand_ranking(result)
    elif hasattr(result, "explain_sharing"):
        for model in result.values():
            demand_sound(model)
        demand(len(result.to_frame()) == sum(len(m.to_frame()) for m in result.values()), "to_frame of questions")
        result.to_frame(wide=True)
        result.worker_report()
        result.explain_sharing()
    else:
        demand_distributions(result.posterior_, "posterior_")
        demand(set(result.labels_.tolist()) <= set(result.classes_.tolist()), "labels that are no classes")
        result.to_frame()
        result.worker_report()
    demand(len(repr(result)) <= 2000, "a long repr")


def demand_ranking(model: Any) -> None:
    scores, table = model.scores_, model.ranking_
    demand(np.isfinite(scores).all(), "scores are not finite", scores)
    column = {name: np.array(table[name]) for name in ("score", "low", "high", "rank", "rank_low", "rank_high")}
    ordered = (column["low"] <= column["score"]) & (column["score"] <= column["high"])
    demand(ordered.all(), "a score is not in its interval", column)
    within = (column["rank_low"] <= column["rank"]) & (column["rank"] <= column["rank_high"])
    demand(within.all(), "a rank is not in its interval", column)
    wins = model.result_.win_matrix()
    both = wins + wins.T
    demand(((wins >= 0) & (wins <= 1) | np.isnan(wins)).all(), "win probabilities", wins)
    demand(np.allclose(both[np.isfinite(both)], 1), "win probabilities that do not sum to one", wins)
    model.judge_report()
    list(map(str, model.findings_))


def demand_saved(result: Any, folder: Path) -> None:
    """Demand that a model has the same numbers after it was saved and loaded."""
    loaded = cs.load(result.save(folder / "kind.model"))
    demand_sound(loaded)
    for one, other in zip(list_models(result), list_models(loaded), strict=True):
        name = "scores_" if isinstance(one, cs.BradleyTerry) else "posterior_"
        demand(np.array_equal(getattr(one, name), getattr(other, name)), f"{name} is another after loading")


def list_models(result: Any) -> list[Any]:
    return list(result.values()) if hasattr(result, "explain_sharing") else [result]


# ------------------------------------------------------------------------------------------------------------- the case

DRAWS: list[Callable[[Rng], Drawn]] = [draw_ratings, draw_tags, draw_questions, draw_soft, draw_comparisons]


def prepare() -> None:
    """Compile and import: the first cases would take seconds."""
    for draw in DRAWS:
        for seed in range(6):
            drawn = draw(np.random.default_rng(seed))
            with warnings.catch_warnings(), suppress(cs.errors.ConsilienceError, Nonsense):
                warnings.simplefilter("ignore")
                demand_sound(apply(drawn, drawn.table))


def apply(drawn: Drawn, source: Any) -> Any:
    return drawn.open(source, **{"max_iter": 5} | drawn.keywords)


def run(rng: Rng, folder: Path) -> str:
    """Fuse or rank one kind of answers, from a table or a file."""
    draw = DRAWS[rng.integers(len(DRAWS))]
    drawn = draw(rng)
    has_lists = any(isinstance(cell, list) for cell in drawn.table.get("tags", ()))
    suffix = (".csv", ".tsv", ".jsonl", ".parquet", ".arrow")[rng.integers(2 * has_lists, 5)]
    path = folder / f"answers{suffix}"
    if rng.random() < 0.7:
        write_table(pa.table(drawn.table), path)
    result = apply(drawn, path if path.exists() else drawn.table)
    demand_sound(result)
    if rng.random() < 0.3:
        demand_saved(result, folder)
    return draw.__name__
