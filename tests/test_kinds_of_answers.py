"""What is promised of single labels holds of ratings, tags, questions, soft votes and comparisons too."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import consilience as cs
from consilience.formats.writing import write_table
from fuzz.kinds import demand_sound
from test_cli import run

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")

HOSTILE = [
    "<script>alert(1)</script>",
    "\x1b[31mred\x1b]0;title\x07",
    "=1+cmd|'/c calc'!A1",
    "\u202egnp.exe",
    "two\nlines",
    "x" * 5000,
]


# --------------------------------------------------------------------------------------------------------- hostile text


def make_hostile(kind: str) -> tuple[dict[str, list], list[str]]:
    """Return a table with such text in every name, and the options to read it."""
    n = 24
    names = [HOSTILE[i % 6] for i in range(n)]
    keys = {"item": [i // 4 for i in range(n)], "worker": [HOSTILE[i % 4] for i in range(n)]}
    if kind == "tags":
        return keys | {"tags": [[HOSTILE[i // 4 % 6], HOSTILE[(i // 4 + 1) % 6]] for i in range(n)]}, ["fuse"]
    if kind == "questions":
        table = keys | {name: [str(i // 8) for i in range(n)] for name in HOSTILE[:3]}
        return table, ["fuse", *(part for name in HOSTILE[:3] for part in ("--label", name))]
    if kind == "ratings":
        return keys | {"label": [HOSTILE[i // 4 % 3] for i in range(n)]}, ["fuse"]
    if kind == "soft votes":
        votes = {f"p({name})": [float(i // 4 % 3 == k) for i in range(n)] for k, name in enumerate(HOSTILE[:3])}
        return keys | votes, ["fuse", "--format", "soft"]
    right = [HOSTILE[(i + 1 + i // 6 % 2) % 6] for i in range(n)]
    return {"judge": keys["worker"], "left": names, "right": right, "winner": names}, ["rank"]


def robust(*kinds: str) -> list:
    """Return kinds of answers that are looked at only where there is time."""
    return [pytest.param(kind, marks=pytest.mark.robust) for kind in kinds]


@pytest.mark.parametrize("kind", ["tags", "comparisons", *robust("ratings", "questions", "soft votes")])
def test_hostile_text_is_inert(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, arguments = make_hostile(kind)
    write_table(pa.table(table), "a.parquet")
    done = run(
        arguments[0], "a.parquet", *arguments[1:], "-o", "out.parquet", "--report", "r.html", "--save", "m.model"
    )
    assert done.exit_code == 0, done.stderr
    for text in (done.stdout, done.stderr):
        assert "\x1b[31mred" not in text
        assert "\x1b]0;" not in text
        assert "\u202e" not in text
        assert max(map(len, text.splitlines()), default=0) <= 2000 + len("Warning: ")
    page = (tmp_path / "r.html").read_text()
    assert "<script>alert" not in page
    assert "\x1b" not in page
    demand_sound(cs.load("m.model"))


# ------------------------------------------------------------------------------------------------------------ same bits


def make_plain(kind: str) -> tuple[dict[str, np.ndarray], dict]:
    rng = np.random.default_rng(5)
    n = 240
    keys = {"item": np.repeat(np.arange(60), 4), "worker": np.tile([3, 1, 7, 14], 60)}
    truth = keys["item"] % 3
    said = np.where(rng.random(n) < 0.7, truth, rng.integers(3, size=n))
    if kind == "ratings":
        return keys | {"label": said}, {"ordered": True}
    if kind == "tags":
        words = np.array(["red", "red;blue", ""])
        return keys | {"label": words[said]}, {"separator": ";"}
    if kind == "questions":
        return keys | {"tone": said, "mood": (said + 1) % 3}, {"label": ["tone", "mood"]}
    votes = 0.1 + 0.7 * (said[:, None] == np.arange(3)) + 0.01 * rng.random((n, 3))
    votes /= votes.sum(axis=1, keepdims=True)
    return keys | {f"p({k})": votes[:, k] for k in range(3)}, {"format": "soft"}


def probabilities(fused) -> np.ndarray:
    """Return the probabilities of all models, items in the order of their ids."""
    models = fused.values() if hasattr(fused, "explain_sharing") else [fused]
    parts = []
    for model in models:
        keys = list(zip(*(map(str, column) for column in model.result_.labels.keys.values()), strict=True))
        parts.append(model.posterior_[sorted(range(len(keys)), key=keys.__getitem__)])
    return np.concatenate([part.ravel() for part in parts])


@pytest.mark.parametrize("kind", ["soft votes", *robust("ratings", "tags", "questions")])
def test_neither_threads_nor_the_order_of_rows_matter(kind):
    table, keywords = make_plain(kind)
    plain = probabilities(cs.fuse(table, engine=cs.engines.Threads(1), **keywords))
    again = probabilities(cs.fuse(table, engine=cs.engines.Threads(3), **keywords))
    assert np.array_equal(plain, again)
    order = np.random.default_rng(1).permutation(len(table["item"]))
    moved = cs.fuse({name: column[order] for name, column in table.items()}, **keywords)
    np.testing.assert_allclose(probabilities(moved), plain, rtol=0, atol=1e-6)


# --------------------------------------------------------------------------------------------------- what fuzzers found
