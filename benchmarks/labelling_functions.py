"""Labelling functions: silence as an answer, beside majority vote and snorkel's LabelModel.

Writes the tables of docs/labelling-functions.md. snorkel is not among the requirements: install it for this script
(`pip install snorkel`); without it, its rows say so, and nothing is written.

    python benchmarks/labelling_functions.py            # about three minutes; needs the real data ($CONSILIENCE_DATA)
    python benchmarks/labelling_functions.py --quick    # one small simulation; prints, writes nothing
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import consilience as cs
import real_crowds

DOCS = Path(__file__).parent.parent / "docs" / "measured"
N_ITEMS, QUICK_ITEMS, N_DRAWS = 2000, 300, 5
N_FUNCTIONS = (10, 20)
BALANCE = (0.85, 0.15)
HAS_SNORKEL = find_spec("snorkel") is not None


class Weak(NamedTuple):
    """A matrix of votes [item, function], -1 where a function is silent, and the truth."""

    votes: NDArray[np.int64]
    truth: NDArray[np.int64]


class Found(NamedTuple):
    """Labels and their probabilities."""

    labels: NDArray[Any]
    posterior: NDArray[np.float64]


def simulate(n_items: int, n_functions: int, seed: int) -> Weak:
    """Return functions that each say one of two labels: often about items of this class, and rarely about others."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_items) < BALANCE[1]).astype(int)
    side = np.arange(n_functions) % 2
    right, wrong = rng.uniform(0.1, 0.6, n_functions), rng.uniform(0, 0.1, n_functions)
    speaks = rng.random((n_items, n_functions)) < np.where(truth[:, None] == side, right, wrong)
    return Weak(np.where(speaks, side, -1), truth)


def read(votes: NDArray[np.int64], abstain: str) -> cs.Answers:
    """Return the votes. Items about which all are silent are in class 0."""
    background = 0 if abstain == "answer" else None
    return cs.Answers.from_matrix(votes, labels=[0, 1], abstain=abstain, background=background)


def vote(votes: NDArray[np.int64]) -> Found:
    return found(cs.MajorityVote().fit(read(votes, "answer")))


def ignore_silence(votes: NDArray[np.int64]) -> Found:
    return found(cs.DawidSkene().fit(read(votes, "ignore")))


def hear_silence(votes: NDArray[np.int64], prior: str | Sequence[float] = "learn") -> Found:
    return found(cs.DawidSkene(prior=prior).fit(read(votes, "answer")))


def found(model: cs.MajorityVote | cs.DawidSkene) -> Found:
    return Found(model.labels_, model.posterior_)


def ask_snorkel(votes: NDArray[np.int64], n_classes: int = 2, balance: Sequence[float] | None = None) -> Found:
    """Return what snorkel finds; of labels that are equally probable, the first."""
    from snorkel.labeling.model import LabelModel

    model = LabelModel(cardinality=n_classes, verbose=False)
    model.fit(votes, class_balance=balance, seed=0, progress_bar=False)
    posterior = np.asarray(model.predict_proba(votes))
    return Found(posterior.argmax(axis=1), posterior)


METHODS: dict[str, Callable[[NDArray[np.int64]], Found]] = {
    "majority vote": vote,
    "snorkel, `LabelModel`": ask_snorkel,
    "snorkel, `LabelModel`, class balance given": lambda votes: ask_snorkel(votes, balance=BALANCE),
    "`DawidSkene()`, silence ignored": ignore_silence,
    '`DawidSkene()`, `abstain="answer"`': hear_silence,
    '`DawidSkene(prior=...)`, `abstain="answer"`, class balance given': lambda votes: hear_silence(votes, BALANCE),
}


def score(method: Callable[[NDArray[np.int64]], Found], weak: Weak) -> tuple[float, float]:
    """Return the F1 of the rare class, and the log loss."""
    labels, posterior = method(weak.votes)
    return cs.metrics.class_f1(weak.truth, labels)[1].f1, cs.metrics.log_loss(weak.truth, posterior, [0, 1])


def compare_simulated(n_items: int, sizes: Sequence[int], n_draws: int) -> str:
    """Return the table of simulated functions, means over draws."""
    head = [f"{n} functions: F1 | log loss" for n in sizes]
    lines = [f"| | {' | '.join(head)} |", "|---|" + ":-:|" * (2 * len(sizes))]
    for name, method in METHODS.items():
        if "snorkel" in name and not HAS_SNORKEL:
            lines.append(f"| {name} | not installed |" + " |" * (2 * len(sizes) - 1))
            continue
        scores = [np.mean([score(method, simulate(n_items, n, seed)) for seed in range(n_draws)], 0) for n in sizes]
        lines.append(f"| {name} | {' | '.join(f'{value:.3f}' for value in np.concatenate(scores))} |")
    return "\n".join(lines)


def compare_real() -> str:
    """Return the table of BC5CDR: strict span F1."""
    stored = real_crowds.load("bc5cdr")
    r, gold = stored.responses, stored.gold
    spoken = cs.read_answers(stored.folder / "responses.parquet", items=list(gold))
    scores = {
        "majority vote, O where all are silent": span_f1(cs.MajorityVote().fit(r), gold),
        "`DawidSkene()`, silence ignored": span_f1(cs.DawidSkene().fit(spoken), gold),
        '`DawidSkene()`, `abstain="answer"`': span_f1(cs.DawidSkene().fit(r), gold),
        '`fuse`, `abstain="answer"`': span_f1(cs.fuse(r), gold),
    }
    rows = {name: f"{value:.3f}" for name, value in scores.items()}
    balance = np.array([list(gold.values()).count(c) for c in r.classes.tolist()]) / len(gold)
    for name, given in (("`LabelModel`", None), ("`LabelModel`, class balance of gold given", balance)):
        rows[f"snorkel, {name}"] = f"{snorkel_span_f1(r, gold, given):.3f}" if HAS_SNORKEL else "not installed"
    return "\n".join(["| | span F1 |", "|---|:-:|", *(f"| {name} | {value} |" for name, value in rows.items())])


def span_f1(model: Any, gold: dict[Any, Any]) -> float:
    spans = cs.evaluate(model, gold)
    assert spans is not None
    return spans.strict.f1


def snorkel_span_f1(r: cs.Answers, gold: dict[Any, Any], balance: Sequence[float] | None) -> float:
    """Return the score of snorkel's labels, which are O where all functions are silent."""
    classes = r.classes.tolist()
    votes = np.full((r.n_items, r.n_workers), -1)
    votes[r.item_of_answer(), r.worker] = np.array([classes.index(label) for label in r.labels.tolist()])[r.label]
    labels = ask_snorkel(votes, len(classes), balance).labels
    labels[(votes < 0).all(axis=1)] = classes.index("O")
    truth = [gold[tuple(item)] for item in r.items.tolist()]
    assert r.sequences is not None
    return cs.metrics.span_f1(truth, r.classes[labels], np.diff(r.sequences.offsets))


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small simulation; prints, writes nothing")
    warnings.simplefilter("ignore", cs.errors.ConsilienceWarning)  # that silence is ignored: here it is meant
    if parser.parse_args().quick:
        print(compare_simulated(QUICK_ITEMS, N_FUNCTIONS[:1], 1))
        return
    if not real_crowds.is_present("bc5cdr"):
        sys.exit("No data: bc5cdr. Set $CONSILIENCE_DATA to the folder that has it.")
    tables = {
        "functions-simulated.md": compare_simulated(N_ITEMS, N_FUNCTIONS, N_DRAWS),
        "functions-bc5cdr.md": compare_real(),
    }
    for name, text in tables.items():
        print(text, end="\n\n")
        if HAS_SNORKEL:
            (DOCS / name).write_text(f"{text}\n\n*snorkel {version('snorkel')}, default parameters, seed 0.*\n")


if __name__ == "__main__":
    main()
