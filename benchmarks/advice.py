"""What `fuse` says in situations whose truth is known.

Writes the tables of docs/evidence.md that list what is found, and in which situation. They are the same in every run:

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
from consilience.inference.labels import find_tied

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
    gold: Any = None
    features: Any = None


class Said(NamedTuple):
    """What `fuse` said, and what is true."""

    fused: Any
    sentences: list[str]
    accuracy: float
    vote: float  # as expected over random ties


def noise(n_classes: int) -> Situation:
    """Workers who answer at random."""
    rng = np.random.default_rng(0)
    answers = cs.Answers.from_matrix(rng.integers(n_classes, size=(200, 8)))
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
    return Situation(cs.Answers.from_matrix(votes, **options), truth)


def copies() -> Situation:
    """Ten workers, of whom five give the answers of one of them."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=1000)
    right = rng.random((1000, 10)) < np.array([0.6, 0.75, 0.75, 0.75, 0.75, 0.75, 0, 0, 0, 0])
    answers = np.where(right, truth[:, None], (truth[:, None] + rng.integers(1, 3, size=(1000, 10))) % 3)
    answers[:, 6:] = answers[:, :1]
    return Situation(cs.Answers.from_matrix(answers), truth)


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


def make_table(truth: NDArray[Any], answers: NDArray[Any], asked: NDArray[np.bool_] | None = None) -> Situation:
    """Answers (items, workers) as a table, of which only those that were asked for are given."""
    item, worker = np.nonzero(np.ones(answers.shape, bool) if asked is None else asked)
    table = {"item": item, "worker": [f"w{each}" for each in worker], "label": answers[item, worker]}
    return Situation(table, truth)


def say(truth: NDArray[np.int64], right: NDArray[np.bool_], n_classes: int, seed: int = 0) -> NDArray[np.int64]:
    """Right answers where they are right, and another class elsewhere."""
    wrong = truth[:, None] + np.random.default_rng(seed).integers(1, n_classes, size=right.shape)
    return np.where(right, truth[:, None], wrong % n_classes)


def one_sided() -> Situation:
    """Nine workers, of whom three say always the same, each a class of their own."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=400)
    answers = say(truth, rng.random((400, 9)) < 0.8, 3)
    answers[:, :3] = np.arange(3)
    return make_table(truth, answers)


def contrary() -> Situation:
    """Eight workers, of whom one swaps yes and no."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=300)
    return make_table(truth, say(truth, rng.random((300, 8)) < np.array([0.1] + [0.8] * 7), 2))


def tired() -> Situation:
    """Six workers, of whom one is right in 95 % of the first half, and in half of the second."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=800)
    accuracy = np.full((800, 6), 0.85)
    accuracy[:, 0] = np.where(np.arange(800) < 400, 0.95, 0.5)
    situation = make_table(truth, say(truth, rng.random((800, 6)) < accuracy, 2))
    table = situation.source | {"hour": situation.source["item"]}
    return situation._replace(source=cs.Answers.from_frame(table, order="hour"))


def sets() -> Situation:
    """Sets of tags in one cell, which are no classes."""
    rng = np.random.default_rng(0)
    truth = rng.random((300, 6)) < 0.3
    said = truth[:, None, :] ^ (rng.random((300, 5, 6)) < 0.1)
    join = np.vectorize(lambda *row: ";".join(tag for tag, there in zip("abcdef", row, strict=True) if there) or "none")
    return make_table(join(*truth.T), join(*np.moveaxis(said, 2, 0)))


def known(share: float) -> Situation:
    """A crowd that errs together on a tenth of the items, with some labels that are known."""
    crowd = cs.simulate.independent(600, 25, 3, answers_per_item=5, accuracy=(0.6, 0.95), hard=0.1, seed=4)
    items = np.random.default_rng(0).choice(600, round(600 * share), replace=False)
    gold = {"item": crowd.responses.items[items], "label": crowd.truth[items]} if share else None
    return Situation(crowd.responses, crowd.truth, gold=gold)


def swapped() -> Situation:
    """A table whose columns of items and workers were taken for each other."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=300)
    asked = rng.random((300, 12)).argsort(axis=1) < 5
    table = make_table(truth, say(truth, rng.random((300, 12)) < 0.8, 3), asked).source
    return Situation(table | {"item": table["worker"], "worker": table["item"]}, np.zeros(12, int))


def describe_items() -> Situation:
    """Few answers about items whose features tell their class."""
    situation = draw(500, 20, 2, answers_per_item=2, accuracy=0.7, seed=3)
    rng = np.random.default_rng(0)
    features = {"item": np.arange(500)} | {f"x{j}": rng.normal(size=500) + 1.5 * situation.truth for j in range(4)}
    return situation._replace(features=features)


def soft() -> Situation:
    """Six classifiers that give probabilities."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=500)
    scores = rng.normal(size=(500, 6, 3)) + 1.5 * np.eye(3)[truth][:, None, :]
    shares = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    return Situation(cs.Answers.from_probabilities(shares), truth)


def network(**options: Any) -> Situation:
    """A network whose edges mostly join items of one class."""
    crowd = cs.simulate.network(1000, n_workers=12, n_classes=3, answers_per_item=2, accuracy=0.65, seed=1, **options)
    return Situation(crowd.responses, crowd.truth, crowd.graph)


def sequences() -> Situation:
    """Sequences whose labels mostly stay as they are from one item to the next."""
    crowd = cs.simulate.sequences(30, 40, n_workers=12, n_classes=3, answers_per_item=2, stickiness=0.8, seed=1)
    return Situation(crowd.responses, crowd.truth)


SITUATIONS: dict[str, Callable[[], Situation]] = {
    "noise, 2 classes": lambda: noise(2),
    "noise, 3 classes": lambda: noise(3),
    "a pilot: 120 items, 5 answers each": lambda: draw(120, 20, 3, answers_per_item=5, accuracy=(0.5, 0.95), seed=0),
    "ten items, three workers": lambda: draw(10, 3, 2, accuracy=0.8, seed=0),
    "5 million answers by 3,000 workers": lambda: draw(
        1_000_000, 3000, 4, answers_per_item=5, accuracy=(0.5, 0.9), seed=3
    ),
    "30 classes": lambda: draw(600, 30, 30, answers_per_item=5, accuracy=(0.6, 0.9), seed=0),
    "one class in twenty items": lambda: draw(
        1000, 20, 2, answers_per_item=5, accuracy=(0.7, 0.95), prior=[0.95, 0.05], seed=0
    ),
    "everyone says the same": lambda: draw(200, 5, 2, accuracy=1.0, prior=[1, 0], seed=0),
    "a fifth of the workers click at random": lambda: draw(
        500, 40, 4, answers_per_item=5, accuracy=(0.6, 0.95), spammers=8, seed=0
    ),
    "three of nine workers say always the same": one_sided,
    "one of eight workers swaps yes and no": contrary,
    "one of six workers tires": tired,
    "two workers": lambda: draw(300, 2, 3, accuracy=0.8, seed=1),
    "all err together on a tenth of the items": lambda: known(0.0),
    "the same, with 30 known labels": lambda: known(0.05),
    "the same, with 120 known labels": lambda: known(0.2),
    "twenty judges, who all err together on some items": lambda: draw(
        400, 20, 3, accuracy=(0.8, 0.97), hard=0.15, seed=0
    ),
    "labelling functions, silence ignored": functions,
    "labelling functions, silence as an answer": lambda: functions(abstain="answer", background=0),
    "classifiers that give probabilities": soft,
    "sets of tags in one cell": sets,
    "five of ten workers copy one": copies,
    "sequences": sequences,
    "a graph that tells": network,
    "a graph with smooth errors": outlines,
    "a shuffled graph": shuffled,
    "features that tell": describe_items,
    "columns of items and workers swapped": swapped,
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
        r = r if isinstance(r, cs.Answers) else cs.Answers.from_frame(r)
        fused = cs.fuse(r, graph=situation.graph, gold=situation.gold, features=situation.features)
    tied = find_tied(cs.MajorityVote().fit(r).posterior_)
    chances = tied / tied.sum(axis=1, keepdims=True)
    right = fused.classes_[None, :] == situation.truth[:, None]
    vote = float((chances * right).sum(axis=1).mean())
    return Said(fused, [str(each.message) for each in caught], float((fused.labels_ == situation.truth).mean()), vote)


def describe_accuracy(said: Said) -> str:
    """Return the range of the accuracy as it is printed, as one cell of a table; nothing where none is claimed."""
    comparison = said.fused.comparison_
    return f"{comparison.accuracy_low:.0%} to {comparison.accuracy_high:.0%}" if comparison.known else ""


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
    lines = ["| situation | accuracy | vote | right, as printed | what is said |", "|---|:-:|:-:|:-:|---|"]
    return "\n".join([*lines, *(make_row(name, listen(make)) for name, make in SITUATIONS.items())]) + "\n"


def make_row(name: str, said: Said) -> str:
    """Return a row of the table of situations."""
    cells = (name, f"{said.accuracy:.3f}", f"{said.vote:.3f}", describe_accuracy(said), describe(said))
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    text = tabulate()
    print(text)
    TABLE.write_text(text)
    KINDS.write_text(list_kinds())
