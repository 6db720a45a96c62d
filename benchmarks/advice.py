"""What `fuse` says in situations whose truth is known.

Writes the tables of docs/advice.md that list what is found, and in which situation. They are the same in every run:

    python benchmarks/advice.py
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import consilience as cs
from consilience.checks.register import CHECKS
from consilience.inference.recipes.independent import find_tied

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.masks import draw_masks  # noqa: E402

TABLE = ROOT / "docs" / "measured" / "advice.md"
KINDS = ROOT / "docs" / "measured" / "findings.md"


class Situation(NamedTuple):
    """What is given to `fuse`, and the true label of each item."""

    source: Any
    truth: NDArray[Any]
    graph: Any = None


class Said(NamedTuple):
    """What `fuse` said, and what is true."""

    fused: Any
    sentences: list[str]
    accuracy: float
    vote: float  # as expected over random ties


def noise(n_classes: int) -> Situation:
    """Workers who answer at random."""
    rng = np.random.default_rng(0)
    answers = cs.Responses.from_matrix(rng.integers(n_classes, size=(200, 8)))
    return Situation(answers, rng.integers(n_classes, size=200))


def draw(n_items: int, n_workers: int, n_classes: int, **options: Any) -> Situation:
    """Workers who err independently of each other."""
    crowd = cs.simulate.independent(n_items, n_workers, n_classes, **options)
    return Situation(crowd.responses, crowd.truth)


def functions(**options: Any) -> Situation:
    """Twelve labelling functions, each of which only ever says one label: nine the rare one."""
    rng = np.random.default_rng(0)
    truth = (rng.random(2000) < 0.2).astype(int)
    votes = np.full((2000, 12), -1)
    for function in range(12):
        label = int(function < 9)
        speaks = np.where(truth == label, rng.uniform(0.2, 0.6), rng.uniform(0.02, 0.08))
        votes[rng.random(2000) < speaks, function] = label
    return Situation(cs.Responses.from_matrix(votes, **options), truth)


def copies() -> Situation:
    """Ten workers, of whom five give the answers of one of them."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=1000)
    right = rng.random((1000, 10)) < np.array([0.6, 0.75, 0.75, 0.75, 0.75, 0.75, 0, 0, 0, 0])
    answers = np.where(right, truth[:, None], (truth[:, None] + rng.integers(1, 3, size=(1000, 10))) % 3)
    answers[:, 6:] = answers[:, :1]
    return Situation(cs.Responses.from_matrix(answers), truth)


def outlines() -> Situation:
    """Five readers who outline a shape, and err smoothly along its boundary."""
    masks = draw_masks(0)
    return Situation(masks.responses, masks.truth, masks.graph)


def shuffled() -> Situation:
    """A network whose edges were shuffled, so that they tell nothing."""
    crowd = cs.simulate.network(1000, n_workers=5, n_classes=3, degree=6, accuracy=0.6, seed=1)
    return Situation(crowd.responses, crowd.truth, crowd.graph.shuffled(0))


def spellings() -> Situation:
    """Cats and dogs, with blanks and capitals as they come."""
    rng = np.random.default_rng(0)
    truth = np.array(["cat", "dog"])[rng.integers(2, size=300)]
    item, worker = np.repeat(np.arange(300), 5), np.tile(np.arange(5), 300)
    label = np.where(rng.random(1500) < 0.85, truth[item], np.where(truth[item] == "cat", "dog", "cat"))
    forms = [str, str.capitalize, lambda text: f" {text.capitalize()}"]
    spelled = [forms[form](text) for form, text in zip(rng.integers(3, size=1500), label.tolist(), strict=True)]
    return Situation({"item": item, "worker": worker, "label": spelled}, truth)


SITUATIONS: dict[str, Callable[[], Situation]] = {
    "noise, 2 classes": lambda: noise(2),
    "noise, 3 classes": lambda: noise(3),
    "a pilot: 120 items, 5 answers each": lambda: draw(120, 20, 3, answers_per_item=5, accuracy=(0.5, 0.95), seed=0),
    "5 million answers by 3,000 workers": lambda: draw(
        1_000_000, 3000, 4, answers_per_item=5, accuracy=(0.5, 0.9), seed=3
    ),
    "labelling functions, silence ignored": functions,
    "labelling functions, silence as an answer": lambda: functions(abstain="answer", background=0),
    "five of ten workers copy one": copies,
    "a graph with smooth errors": outlines,
    "a shuffled graph": shuffled,
    "one answer per item": lambda: draw(300, 20, 3, answers_per_item=1, seed=1),
    "one worker": lambda: draw(300, 1, 3, seed=1),
    "labels in three spellings": spellings,
}


def listen(make: Callable[[], Situation]) -> Said:
    """Read the answers, fuse them, and return what was said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        situation = make()
        r = situation.source
        r = r if isinstance(r, cs.Responses) else cs.Responses.from_frame(r)
        fused = cs.fuse(r, graph=situation.graph)
    tied = find_tied(cs.MajorityVote().fit(r).posterior_)
    chances = tied / tied.sum(axis=1, keepdims=True)
    right = fused.classes_[None, :] == situation.truth[:, None]
    vote = float((chances * right).sum(axis=1).mean())
    return Said(fused, [str(each.message) for each in caught], float((fused.labels_ == situation.truth).mean()), vote)


def describe(said: Said) -> str:
    """Return the verdict, the kinds of what was found, and what else was warned of, as one cell of a table."""
    comparison, findings = said.fused.comparison_, said.fused.findings_
    verdict = f"**{comparison.verdict}**{'' if comparison.tested else ', not tested'}"
    kinds = dict.fromkeys(f"`{finding.kind}`" for finding in findings)
    told = {str(finding.warning()) for finding in findings}
    others = [sentence.replace("|", "\\|") for sentence in said.sentences if sentence not in told]
    return "; ".join([verdict, *([", ".join(kinds)] if kinds else []), *others])


def list_kinds() -> str:
    """Return all kinds of findings as Markdown, from the register."""
    rows = [(kind, str(check.find.__doc__).partition("\n")[0]) for kind, check in CHECKS.items()]
    return (
        "\n".join(["| kind | what was found |", "|---|---|", *(f"| `{kind}` | {when} |" for kind, when in rows)]) + "\n"
    )


def tabulate() -> str:
    """Return all situations as Markdown."""
    lines = ["| situation | accuracy | vote | what is said |", "|---|:-:|:-:|---|"]
    for name, make in SITUATIONS.items():
        said = listen(make)
        lines.append(f"| {name} | {said.accuracy:.3f} | {said.vote:.3f} | {describe(said)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = tabulate()
    print(text)
    TABLE.write_text(text)
    KINDS.write_text(list_kinds())
