"""Soft votes of classifiers: what `fuse` makes of them, compared with their mean, with labels, and with stacking.

Writes the tables of docs/soft-votes.md.

    python benchmarks/soft_votes.py            # a minute
    python benchmarks/soft_votes.py --quick    # one draw of each kind; prints, writes nothing

A classifier sees z = s onehot(truth) + noise, where the noise is standard normal and s is its skill. The probabilities
of the classes are then softmax(s z), if all classes are equally frequent. A sharpness above 1, which multiplies s z,
makes a classifier too sure, and one below 1 too cautious. It never changes the most probable class.

The second table has classifiers of scikit-learn, each trained on 80 rows with half of the columns, and items that none
of them has seen. The mean of their probabilities is what `VotingClassifier(voting="soft")` gives. Stacking is a
logistic regression of the log probabilities of all classifiers that was trained on so many further items of known
label, as `StackingClassifier` has it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.ensemble import AdaBoostClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import consilience as cs

OUTPUT = Path(__file__).parent.parent / "docs" / "measured" / "soft-votes.md"
ENSEMBLES = OUTPUT.with_name("soft-vote-ensembles.md")
N_ITEMS, N_CLASSES, N_DRAWS = 1000, 3, 10
SKILLS = (0.7, 2.0)
SURE, CAUTIOUS = 4.0, 0.3

Floats = NDArray[np.float64]
Draw = tuple[NDArray[np.int64], Floats]

KINDS: dict[str, Callable[[int], Floats]] = {
    "calibrated": lambda n: np.ones(n),
    "all too sure": lambda n: np.full(n, SURE),
    "all too cautious": lambda n: np.full(n, CAUTIOUS),
    "the worst too sure, the others calibrated": lambda n: np.append(SURE, np.ones(n - 1)),
}


class Scores(NamedTuple):
    """Accuracies of labels, and whether `fuse` of soft votes chose learned temperatures."""

    vote: float
    mean: float
    hard: float
    soft: float
    temperatures: bool


def simulate(n_classifiers: int, kind: str, seed: int, n_items: int = N_ITEMS) -> Draw:
    """Return the truth, and the probabilities [item, classifier, class] of classifiers from worst to best."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, N_CLASSES, n_items)
    skill = np.sort(rng.uniform(*SKILLS, n_classifiers))[:, None]
    seen = skill * np.eye(N_CLASSES)[truth][:, None, :] + rng.normal(size=(n_items, n_classifiers, N_CLASSES))
    logits = KINDS[kind](n_classifiers)[:, None] * skill * seen
    odds = np.exp(logits - logits.max(axis=2, keepdims=True))
    return truth, odds / odds.sum(axis=2, keepdims=True)


def score(truth: NDArray[np.int64], P: Floats) -> Scores:
    """Return how good each way is, on one draw."""
    hard, soft = cs.Answers.from_matrix(P.argmax(axis=2)), cs.Answers.from_probabilities(P)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fused = cs.fuse(soft)
    models = [cs.MajorityVote().fit(hard), cs.MajorityVote().fit(soft), cs.DawidSkene().fit(hard), fused]
    return Scores(*(cs.metrics.accuracy(truth, model.labels_) for model in models), fused.workers == "temperatures")


def write_row(n_classifiers: int, kind: str, scores: list[Scores]) -> str:
    """Return a line of the table: means over draws."""
    *means, _ = np.mean(scores, axis=0)
    figures = " | ".join(f"{value:.2f}" for value in means)
    return f"| {n_classifiers} | {kind} | {figures} | {sum(each.temperatures for each in scores)} of {len(scores)} |"


def compare(n_draws: int, n_items: int = N_ITEMS) -> str:
    """Return the table."""
    lines = [
        "| classifiers | probabilities | vote | mean | `DawidSkene`, classes | `fuse`, probabilities | temperatures |",
        "|---|---|:-:|:-:|:-:|:-:|:-:|",
    ]
    for n_classifiers in (4, 8):
        for kind in KINDS:
            scores = [score(*simulate(n_classifiers, kind, seed, n_items)) for seed in range(n_draws)]
            lines.append(write_row(n_classifiers, kind, scores))
    return "\n".join(lines)


def train_ensemble(x: Floats, y: NDArray[np.int64], seed: int, n_train: int = 80) -> Draw:
    """Return the truth and probabilities of items that none of nine classifiers has seen."""
    rng = np.random.default_rng(seed)
    pool = rng.permutation(len(y))
    seen, test = pool[: len(y) // 2], pool[len(y) // 2 :]
    votes = []
    for classifier in list_classifiers(seed):
        rows, columns = rng.choice(seen, n_train, False), rng.choice(x.shape[1], x.shape[1] // 2, False)
        model = make_pipeline(StandardScaler(), classifier).fit(x[rows][:, columns], y[rows])
        p = np.full((len(test), y.max() + 1), 1e-9)
        p[:, model.classes_] = model.predict_proba(x[test][:, columns])
        votes.append(p / p.sum(axis=1, keepdims=True))
    return y[test], np.stack(votes, axis=1)


def list_classifiers(seed: int) -> list[ClassifierMixin]:
    """Return nine classifiers, some of them too sure and some too cautious."""
    return [
        LogisticRegression(C=1e-3, max_iter=300),
        LogisticRegression(max_iter=300),
        GaussianNB(),
        RandomForestClassifier(50, random_state=seed),
        KNeighborsClassifier(15),
        DecisionTreeClassifier(max_depth=6, random_state=seed),
        MLPClassifier((20,), max_iter=300, random_state=seed),
        ExtraTreesClassifier(50, max_depth=3, random_state=seed),
        AdaBoostClassifier(n_estimators=30, random_state=seed),
    ]


def judge(truth: NDArray[np.int64], probabilities: Floats) -> tuple[float, float]:
    """Return accuracy and log loss."""
    found = probabilities[np.arange(len(truth)), truth]
    return float((probabilities.argmax(axis=1) == truth).mean()), float(-np.log(np.maximum(found, 1e-15)).mean())


def stack(truth: NDArray[np.int64], P: Floats, n_known: int) -> Floats:
    """Return the probabilities of all items but the first ones, from whose labels a logistic regression learns."""
    logs = np.log(np.maximum(P, 1e-3)).reshape(len(P), -1)
    model = LogisticRegression(C=0.1, max_iter=1000).fit(logs[:n_known], truth[:n_known])
    found = np.full((len(P) - n_known, P.shape[2]), 1e-9)
    found[:, model.classes_] = model.predict_proba(logs[n_known:])
    return found / found.sum(axis=1, keepdims=True)


def compare_ensembles(n_draws: int) -> str:
    """Return the table of classifiers of scikit-learn; means over draws."""
    made = {"digits": load_digits(return_X_y=True), "breast cancer": load_breast_cancer(return_X_y=True)}
    made["wine"] = load_wine(return_X_y=True)
    made["six classes"] = make_classification(
        3000, 30, n_informative=15, n_classes=6, n_clusters_per_class=1, class_sep=1.5, random_state=7
    )
    known = (50, 200)
    heads = ["classifiers on", "mean (`VotingClassifier`)", "`fuse`, labels", "`fuse`, probabilities"]
    heads += [f"stacking, {n} known" for n in known]
    lines = [f"| {' | '.join(heads)} |", "|---|" + ":-:|" * (len(heads) - 1)]
    for name, (x, y) in made.items():
        rows = [score_ensemble(*train_ensemble(x, y, seed), known) for seed in range(n_draws)]
        means = np.mean(rows, axis=0)
        cells = ["" if np.isnan(a) else f"{a:.3f} / {b:.2f}" for a, b in means]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def score_ensemble(truth: NDArray[np.int64], P: Floats, known: tuple[int, ...]) -> list[tuple[float, float]]:
    """Return accuracy and log loss of each way, on one draw; of stacking nan, if there are too few items."""
    names = [f"c{k}" for k in range(P.shape[2])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hard = cs.fuse(cs.Answers.from_matrix(P.argmax(axis=2), labels=names, classes=names))
        soft = cs.fuse(cs.Answers.from_probabilities(P, classes=names))
        found = [judge(truth, each) for each in (P.mean(axis=1), hard.posterior_, soft.posterior_)]
        for n in known:
            enough = n < len(truth) / 2
            found.append(judge(truth[n:], stack(truth, P, n)) if enough else (np.nan, np.nan))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one small draw of each kind; writes nothing")
    quick = parser.parse_args().quick
    tables = {OUTPUT: compare(1, 200) if quick else compare(N_DRAWS), ENSEMBLES: compare_ensembles(1 if quick else 5)}
    for path, table in tables.items():
        print(table)
        if not quick:
            path.write_text(table + "\n")


if __name__ == "__main__":
    main()
