"""Whether intervals of estimates and audits hold, and how wide they are, on real crowds and on simulated ones.

Writes the tables of docs/estimates.md, which are the same in every run:

    python benchmarks/estimates.py            # about ten minutes; needs the real data ($CONSILIENCE_DATA)
    python benchmarks/estimates.py --quick    # two simulated crowds and few draws; prints, writes nothing

Known labels are drawn at random, or in strata as `draw_items` does. The share of a class is that among all items with a
known label. "Alone" is the same estimate without predictions, Wilson's interval is that of the labels alone.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import consilience as cs
import real_crowds
from consilience.estimation.difference import estimate_means
from consilience.estimation.judges import find_wilson

TABLES = Path(__file__).parent.parent / "docs" / "measured" / "estimates.md"
CROWDS = ("bluebird", "rte", "dog", "web", "product", "llm_judges", "sentence_polarity", "music")
SIMULATED = ("independent", "shared errors", "leaning to a class", "three answers per item", "two classes")
SIZES, N_DRAWS, N_SEEDS = (30, 50, 100), 200, 20


class Held(NamedTuple):
    """Whether an interval holds, and how wide it is: with predictions, alone, and Wilson's."""

    holds: bool
    width: float
    alone: float
    wilson: float


class Crowd(NamedTuple):
    """A fit that saw no known label, and the truth of its items, as indices of classes."""

    fit: Any
    truth: NDArray[np.int64]


def load(name: str) -> Crowd:
    """Return a real crowd without the items of unknown label."""
    stored = real_crowds.load(name)
    r = stored.responses
    item = r.items[r.item_of_answer()].tolist()
    kept = np.array([each in stored.gold for each in item])
    table = {"item": r.items[r.item_of_answer()], "worker": r.workers[r.worker], "label": r.labels[r.label]}
    answers = cs.Answers.from_frame({key: values[kept] for key, values in table.items()}, classes=r.classes.tolist())
    place = {each: k for k, each in enumerate(answers.classes.tolist())}
    return Crowd(cs.fuse(answers), np.array([place[stored.gold[each]] for each in answers.items.tolist()]))


def simulate(kind: str, seed: int, n_items: int = 1000, n_workers: int = 5) -> Crowd:
    """Return a crowd of workers who are right in 50 to 80 %, three classes and all items answered by all."""
    rng = np.random.default_rng(seed)
    n_classes = 2 if kind == "two classes" else 3
    truth = rng.choice(n_classes, n_items, p=rng.dirichlet(np.full(n_classes, 3.0)))
    misleading = rng.random(n_items) < (0.2 if kind == "shared errors" else 0.0)
    decoy = (truth + rng.integers(1, n_classes, n_items)) % n_classes
    votes = np.empty((n_items, n_workers), np.int64)
    for m, skill in enumerate(rng.uniform(0.5, 0.8, n_workers)):
        wrong = (truth + rng.integers(1, n_classes, n_items)) % n_classes
        if kind == "leaning to a class":
            wrong = np.where(rng.random(n_items) < 0.8, 0, wrong)
        votes[:, m] = np.where(rng.random(n_items) < skill, truth, wrong)
        votes[:, m] = np.where(misleading & (rng.random(n_items) < 0.8), decoy, votes[:, m])
    if kind == "three answers per item":
        for row in votes:
            row[rng.permutation(n_workers)[3:]] = -1
    answers = cs.Answers.from_matrix(votes, classes=list(range(n_classes)))
    return Crowd(cs.DawidSkene().fit(answers), truth)


def judge(crowd: Crowd, size: int, draws: int, strata: bool = False) -> Iterator[Held]:
    """Yield what each draw of known labels says of each class."""
    fit, classes, items = crowd.fit, crowd.fit.classes_, crowd.fit.result_.answers.items.tolist()
    place = {item: row for row, item in enumerate(items)}
    shares = np.bincount(crowd.truth, minlength=len(classes)) / len(items)
    for seed in range(draws):
        fit.set_params(seed=seed)
        table = fit.draw_items(size, strata=strata).to_pydict()
        rows = np.array([place[item] for item in table["item"]])
        if len(np.unique(crowd.truth[rows])) < 2:
            continue
        estimate = fit.estimate(table | {"label": classes[crowd.truth[rows]]})
        for k, row in enumerate(each for each in estimate.rows if each["of"] != "mean"):
            seen = np.mean(crowd.truth[rows] == k)
            low, high = find_wilson(np.array([seen]), np.array([size / max(1 - size / len(items), 1e-9)]))
            alone = np.nan if row["labels_alone"] is None else row["labels_alone_high"] - row["labels_alone_low"]
            holds = row["low"] - 1e-12 <= shares[k] <= row["high"] + 1e-12
            yield Held(holds, row["high"] - row["low"], alone, float(high[0] - low[0]))


def draw_groups(seed: int, sizes: tuple[int, ...], is_useless: bool) -> tuple[NDArray[Any], ...]:
    """Return truths, predictions, groups and pairs: groups differ in shares and errors, pairs share both."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    pair = np.concatenate([rng.permutation(max(sizes))[:size] for size in sizes])
    hard, shared = rng.normal(0, 1, max(sizes))[pair], rng.normal(0, 1.2, max(sizes))[pair]
    truth = rng.random(len(group)) < 1 / (1 + np.exp(-rng.normal(0, 0.7, len(sizes))[group] - hard))
    score = (2 * truth - 1) * rng.choice([1.0, 2.0, 3.0]) + shared + rng.normal(0, 0.8, len(sizes))[group]
    score = np.zeros(len(group)) if is_useless else score
    return truth * 1.0, 1 / (1 + np.exp(-score - rng.normal(0, 1, len(group)))), group, pair


def judge_groups(sizes: tuple[int, ...], n: int, draws: int, by_pair: bool, is_useless: bool = False) -> list[float]:
    """Return how often intervals of groups and of differences hold, and widths in those of labels alone."""
    held, differ, widths = [], [], []
    for seed in range(draws):
        truth, predicted, group, pair = draw_groups(seed, sizes, is_useless)
        rng = np.random.default_rng(seed + 10_000)
        rows = rng.choice(len(truth), n, replace=False)
        if by_pair:
            rows = np.flatnonzero(np.isin(pair, rng.choice(max(sizes), n // len(sizes), replace=False)))
        shares = np.bincount(group, truth) / np.bincount(group)
        means, alone = (
            estimate_means(truth[rows], rows, predicted, group, cluster=pair, power=power, n_groups=len(sizes))
            for power in (None, 0.0)
        )
        told = np.flatnonzero(np.bincount(group[rows], minlength=len(sizes)) >= 5).tolist()
        (_, low, high), (_, least, most) = means.find_intervals(), alone.find_intervals()
        held += [low[g] <= shares[g] <= high[g] for g in told]
        widths += [(high[g] - low[g], most[g] - least[g]) for g in told]
        for a in told:
            for b in told[: told.index(a)]:
                _, start, end = means.compare(a, b)
                differ.append(start <= shares[a] - shares[b] <= end)
    total = np.sum(widths, axis=0)
    return [float(np.mean(held)), float(np.mean(differ)), float(total[0] / total[1])]


def judge_audits(n_known: int, n_panels: int) -> list[float]:
    """Return how often intervals of accuracies and sensitivities hold, of ten judges in each panel."""
    accuracy, sensitivity = [], []
    for seed in range(n_panels):
        rng = np.random.default_rng(seed)
        skill, truth = rng.uniform(0.6, 0.95, 10), rng.integers(0, 2, 400)
        votes = np.where(rng.random((400, 10)) < skill, truth[:, None], 1 - truth[:, None])
        fit = cs.MajorityVote().fit(cs.Answers.from_matrix(votes, classes=[0, 1]))
        drawn = rng.choice(400, n_known, replace=False)
        rows = fit.audit(dict(zip(drawn.tolist(), truth[drawn].tolist(), strict=True))).rows
        for row, p in zip(rows, skill.tolist(), strict=True):
            accuracy.append(row["accuracy_low"] <= p <= row["accuracy_high"])
            sensitivity.append(row["sensitivity_low"] <= p <= row["sensitivity_high"])
    return [float(np.mean(accuracy)), float(np.mean(sensitivity))]


def summarise(held: list[Held]) -> list[float]:
    """Return the share of intervals that hold, and widths in those of labels alone and of Wilson's."""
    widths = np.array([each[1:] for each in held if not np.isnan(each.alone)]).sum(axis=0)
    return [float(np.mean([each.holds for each in held])), widths[0] / widths[1], widths[0] / widths[2]]


def to_row(name: str, figures: list[float]) -> str:
    return f"| {name} | " + " | ".join(f"{each:.3f}" for each in figures) + " |"


def tabulate(crowds: dict[str, list[Crowd]], draws: int, sizes: tuple[int, ...], strata: bool = False) -> list[str]:
    """Return a row for each crowd: how often intervals hold with each number of labels, and how wide all are."""
    lines, every = [], list[Held]()
    for name, fits in crowds.items():
        by_size = [[each for crowd in fits for each in judge(crowd, size, draws, strata)] for size in sizes]
        whole = [each for held in by_size for each in held]
        lines.append(to_row(name, [*(summarise(held)[0] for held in by_size), *summarise(whole)]))
        print(lines[-1], flush=True)
        every += whole
    return [*lines, to_row("all", [*([np.nan] * len(sizes)), *summarise(every)]).replace("nan", "")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    draws, seeds, sizes = (5, 1, (30,)) if quick else (N_DRAWS, N_SEEDS, SIZES)
    heads = " | ".join(f"{size} labels" for size in sizes)
    head = [f"| crowd | {heads} | all | width / labels alone | width / Wilson |", "|---|" + ":-:|" * (len(sizes) + 3)]
    parts = list[str]()
    if not quick:
        real = {f"`{name}`": [load(name)] for name in CROWDS}
        for words, strata in (("at random", False), ("in strata", True)):
            parts += [f"Labels drawn {words}:\n", *head, *tabulate(real, draws, sizes, strata), ""]
    kinds = SIMULATED[:2] if quick else SIMULATED
    made = {kind: [simulate(kind, seed) for seed in range(seeds)] for kind in kinds}
    parts += ["Simulated crowds:\n", *head, *tabulate(made, max(5, draws // seeds), sizes), ""]

    rows, n_groups = list[str](), 50 if quick else 1000
    for name, groups, n, by_pair, useless in (
        ("five groups of 100 to 1,000 items, 100 labels", (1000, 500, 250, 150, 100), 100, False, False),
        ("the same, 300 labels", (1000, 500, 250, 150, 100), 300, False, False),
        ("the same, predictions at random", (1000, 500, 250, 150, 100), 300, False, True),
        ("two systems on 300 prompts, 30 items", (300, 300), 30, False, False),
        ("two systems, 50 prompts with both", (300, 300), 100, True, False),
        ("four systems, 25 prompts with all", (200,) * 4, 100, True, False),
    ):
        rows.append(to_row(name, judge_groups(groups, n, n_groups, by_pair, useless)))
    parts += [
        "Groups:\n",
        "| groups | holds | differences hold | width / labels alone |",
        "|---|:-:|:-:|:-:|",
        *rows,
        "",
    ]
    audits = [to_row(f"{n} labels", judge_audits(n, 5 if quick else 50)) for n in sizes]
    parts += ["Audits of 500 judges:\n", "| | accuracy holds | sensitivity holds |", "|---|:-:|:-:|", *audits, ""]
    print("\n".join(parts))
    if not quick:
        TABLES.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
