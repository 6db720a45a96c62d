"""Workers who copy each other: how many are found, how many others are named, and how good `fuse` is with them.

Writes the tables of docs/evidence.md, which are the same in every run but for the times:

    python benchmarks/copies.py            # about five minutes; real crowds only with $CONSILIENCE_DATA
    python benchmarks/copies.py --quick    # a few crowds; prints, writes nothing
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import consilience as cs
import real_crowds
from consilience.engines import Threads
from consilience.inference.estimator import renew
from consilience.results.fitting import fit_model, make_observations

TABLES = Path(__file__).parent.parent / "docs" / "measured" / "copies.md"

SKILLS = {"0.6 to 0.8": (0.6, 0.8), "0.7 to 0.9": (0.7, 0.9), "0.9 to 0.97": (0.9, 0.97)}
CLEAN = ("mixed", "skilled", "a few experts", "hard", "half at random", "one-sided")
SIZES = ((5, 200, None), (10, 300, None), (12, 2000, None), (20, 1000, 5), (60, 1000, 10), (100, 4000, 8))
REAL = ("bluebird", "dog", "rte", "web", "music", "llm_judges", "sentence_polarity", "product", "ner", "sleep", "pico")
N_DRAWS = 5
N_ROUNDS = 15


class Found(NamedTuple):
    """What became of a crowd in which one worker is copied."""

    detected: float  # share of the workers of the group who are named
    plain: float  # accuracy of DawidSkene
    fused: float  # accuracy of fuse
    without: float  # accuracy of DawidSkene without the copies


def draw_answers(
    rng: np.random.Generator, truth: NDArray[np.int64], accuracy: NDArray[np.float64], n_classes: int, hard: float = 0.0
) -> NDArray[np.int64]:
    """Return answers [item, worker]. About hard items all are half as accurate, and err in the same way."""
    shape = len(truth), len(accuracy)
    is_hard = rng.random((len(truth), 1)) < hard
    right = rng.random(shape) < np.where(is_hard, accuracy / 2, accuracy)
    decoy = rng.integers(1, n_classes, (len(truth), 1))
    wrong = (truth[:, None] + np.where(is_hard, decoy, rng.integers(1, n_classes, shape))) % n_classes
    return np.where(right, truth[:, None], wrong)


def draw_crowd(
    n_items: int,
    n_classes: int,
    skill: tuple[float, float],
    n_honest: int,
    n_copies: int,
    share: float,
    seed: int,
    answers_per_item: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return votes [item, worker] and the truth; the last workers repeat a share of the answers of worker 0."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    votes = draw_answers(rng, truth, rng.uniform(*skill, n_honest + n_copies), n_classes)
    repeated = rng.random((n_items, n_copies)) < share
    votes[:, n_honest:] = np.where(repeated, votes[:, :1], votes[:, n_honest:])
    return thin_out(rng, votes, answers_per_item), truth


def draw_clean(
    kind: str, n_items: int, n_workers: int, n_classes: int, seed: int, answers_per_item: int | None = None
) -> cs.Answers:
    """Return the answers of a crowd without copies."""
    rng = np.random.default_rng([seed, n_workers, n_classes])
    order = np.arange(n_workers)
    accuracy = {
        "mixed": rng.uniform(0.5, 0.95, n_workers),
        "skilled": rng.uniform(0.9, 0.99, n_workers),
        "a few experts": np.where(order < max(2, n_workers // 4), 0.97, 0.55),
        "hard": rng.uniform(0.6, 0.95, n_workers),
        "half at random": np.where(order % 2, 1 / n_classes, 0.85),
        "one-sided": rng.uniform(0.7, 0.9, n_workers),
    }[kind]
    truth = rng.integers(0, n_classes, n_items)
    votes = draw_answers(rng, truth, accuracy, n_classes, 0.2 if kind == "hard" else 0.0)
    if kind == "one-sided":
        stubborn = (rng.random(votes.shape) < 0.9) & (order % 2 == 0)
        votes = np.where(stubborn, order // 2 % n_classes, votes)
    return cs.Answers.from_matrix(thin_out(rng, votes, answers_per_item), labels=list(range(n_classes)))


def draw_teams(n_teams: int, n_copying: int, seed: int = 0) -> tuple[cs.Answers, list[list[int]]]:
    """Return answers of teams of ten workers, of which some have three exact copies, and these groups.

    A team has a hundred items of four classes, and its workers have an accuracy of 0.7. Rows are in no order.
    """
    rng = np.random.default_rng(seed)
    votes = draw_answers(rng, rng.integers(0, 4, 100 * n_teams), np.full(10, 0.7), 4).reshape(n_teams, 100, 10)
    votes[:n_copying, :, 1:3] = votes[:n_copying, :, :1]
    team, item, member = (index.ravel() for index in np.indices(votes.shape))
    table = {"item": team * 100 + item, "worker": team * 10 + member, "label": votes.ravel()}
    order = rng.permutation(votes.size)
    r = cs.Answers.from_frame({name: column[order] for name, column in table.items()})
    return r, [[10 * t, 10 * t + 1, 10 * t + 2] for t in range(n_copying)]


def thin_out(rng: np.random.Generator, votes: NDArray[np.int64], per_item: int | None) -> NDArray[np.int64]:
    """Return the votes with so many of each item, at random, and -1 for the others."""
    if per_item is None:
        return votes
    rank = rng.random(votes.shape).argsort(axis=1).argsort(axis=1)
    return np.where(rank < per_item, votes, -1)


def measure(n_items: int, n_classes: int, skill: tuple[float, float], share: float, seed: int) -> Found:
    """Let four of ten workers copy a fifth."""
    votes, truth = draw_crowd(n_items, n_classes, skill, 6, 4, share, seed)
    r, honest = cs.Answers.from_matrix(votes), cs.Answers.from_matrix(votes[:, :6])
    fused = cs.fuse(r)
    named = {worker for group in fused.copies_ for worker in group}
    scores = [cs.metrics.accuracy(truth, fit.labels_) for fit in (cs.DawidSkene().fit(r), fused)]
    without = cs.metrics.accuracy(truth, cs.DawidSkene().fit(honest).labels_)
    return Found(len(named & {0, 6, 7, 8, 9}) / 5, *scores, without)


def tabulate_copies(sizes: Sequence[int], shares: Sequence[float], n_draws: int) -> str:
    """Return what is found, and what fuse makes of it, by skill, items and share of copied answers."""
    lines = [
        _row("accuracy of workers", "items", "copied", "found", "`DawidSkene`", "`fuse`", "without copies"),
        "|---|" + ":-:|" * 6,
    ]
    for name, skill in SKILLS.items():
        for n_items in sizes:
            for share in shares:
                draws = [
                    measure(n_items, n_classes, skill, share, seed) for n_classes in (2, 4) for seed in range(n_draws)
                ]
                found = Found(*np.mean(draws, axis=0).tolist())
                figures = map(_number, (found.plain, found.fused, found.without))
                lines.append(_row(name, f"{n_items:,}", f"{share:.0%}", f"{found.detected:.0%}", *figures))
    return "\n".join(lines)


def tabulate_clean(kinds: Sequence[str], sizes: Sequence[tuple[int, int, int | None]], n_draws: int) -> str:
    """Return how many workers of crowds without copies are named."""
    lines = [_row("crowd", "workers in all", "named", "per 100"), "|---|:-:|:-:|:-:|"]
    for kind in kinds:
        n_workers = n_named = 0
        for m, n, per_item in sizes:
            for n_classes in (2, 3, 5):
                for seed in range(n_draws):
                    fitted = cs.MajorityVote().fit(draw_clean(kind, n, m, n_classes, seed, per_item))
                    n_workers += m
                    n_named += sum(map(len, fitted.copies_))
        lines.append(_row(kind, f"{n_workers:,}", n_named, f"{100 * n_named / n_workers:.2f}"))
    return "\n".join(lines)


def tabulate_teams(sizes: Sequence[int], n_draws: int) -> str:
    """Return how many copies are found in crowds of any size, whose workers have a hundred items each."""
    lines = [_row("workers", "copies found", "others named"), "|---|:-:|:-:|"]
    for n_workers in sizes:
        n_found = n_wrong = n_true = 0
        for seed in range(n_draws):
            r, groups = draw_teams(n_workers // 10, 3, seed)
            true = {worker for group in groups for worker in group}
            named = {worker for group in cs.MajorityVote().fit(r).copies_ for worker in group}
            n_found, n_wrong, n_true = n_found + len(named & true), n_wrong + len(named - true), n_true + len(true)
        lines.append(_row(f"{n_workers:,}", f"{n_found / n_true:.0%}", n_wrong))
    return "\n".join(lines)


def tabulate_real(names: Sequence[str]) -> str:
    """Return who is named in real crowds, and the accuracy with and without counting groups once."""
    lines = [_row("crowd", "workers", "groups", "named", "plain fit", "`fuse`"), "|---|" + ":-:|" * 5]
    clean = []
    for name in names:
        stored = real_crowds.load(name)
        r = stored.responses
        groups = cs.MajorityVote().fit(r).copies_
        if not groups:
            clean.append(f"`{name}` ({r.n_workers})")
            continue
        fused = cs.fuse(r)
        scores = [_number(score_gold(fit, r, stored.gold)) for fit in (renew(fused).fit(r), fused)]
        lines.append(_row(f"`{name}`", r.n_workers, len(groups), sum(map(len, groups)), *scores))
    named = "\n".join(lines) + "\n\n" if len(lines) > 2 else ""
    return f"{named}Nobody is named in {', '.join(clean)}." if clean else named.strip()


def score_gold(model: Any, r: cs.Answers, gold: dict[Any, Any]) -> float:
    labels = zip(model.labels_.tolist(), r.items.tolist(), strict=True)
    return float(np.mean([label == gold[item] for label, item in labels if item in gold]))


def draw_functions(seed: int, n_items: int = 3000) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return votes [item, function] and the truth: twelve one-sided functions, the last three near-copies of one."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_items) < 0.15).astype(int)
    votes = np.full((n_items, 12), -1)
    for m in range(9):
        side, precision, coverage = int(m % 3 > 0), rng.uniform(0.7, 0.9), rng.uniform(0.05, 0.4)
        share = np.mean(truth == side)
        rates = min(coverage * precision / share, 0.95), min(coverage * (1 - precision) / (1 - share), 0.95)
        votes[rng.random(n_items) < np.where(truth == side, *rates), m] = side
    for m in range(9, 12):
        own = np.where(rng.random(n_items) < 0.1, 1, -1)
        votes[:, m] = np.where(rng.random(n_items) < 0.92, votes[:, 1], own)
    return votes, truth


def tabulate_functions(n_draws: int) -> str:
    """Return the F1 of the rare class by labelling functions with near-copies among them."""
    lines = [_row("", "F1 of the rare class"), "|---|:-:|"]
    methods: dict[str, Callable[[cs.Answers], Any]] = {
        "majority vote": lambda r: cs.MajorityVote().fit(r),
        "`DawidSkene`": lambda r: cs.DawidSkene().fit(r),
        "`fuse`": cs.fuse,
    }
    crowds = [draw_functions(seed) for seed in range(n_draws)]
    for name, method in methods.items():
        scores = [
            cs.metrics.class_f1(
                truth,
                method(cs.Answers.from_matrix(votes, labels=[0, 1], abstain="answer", background=0)).labels_,
            )[1].f1
            for votes, truth in crowds
        ]
        lines.append(_row(name, _number(float(np.mean(scores)))))
    return "\n".join(lines)


def tabulate_cost() -> str:
    """Return how long it takes to look for copies, as a share of a fit without."""
    lines = [_row("answers", "workers", "copies", "time, as a share of the fit"), "|--:|:-:|:-:|:-:|"]
    for n_items, n_workers, per_item, n_copies in ((500, 20, 5, 0), (1000, 10, None, 2), (50_000, 1000, 20, 0)):
        r = cs.simulate.independent(
            n_items, n_workers, 4, answers_per_item=per_item, copycats=n_copies, accuracy=(0.5, 0.95), seed=1
        ).responses
        model = cs.DawidSkene()

        def fit(copies: list[list[int]] | None, r: cs.Answers, model: cs.DawidSkene = model) -> object:
            return fit_model(model, make_observations(model, r), None, Threads(), copies=copies)

        # In turn without and with the search, so that a busy machine slows down both. The median of their ratios.
        rounds = np.array([[_time(partial(fit, copies), r) for copies in ([], None)] for _ in range(N_ROUNDS)])
        share = float(np.median(rounds[:, 1] / rounds[:, 0])) - 1
        lines.append(_row(f"{r.n_responses:,}", n_workers, n_copies, f"{share:.0%}"))
    return "\n".join(lines)


def _time(work: Callable[[cs.Answers], object], r: cs.Answers) -> float:
    started = time.perf_counter()
    work(r)
    return time.perf_counter() - started


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _number(value: float) -> str:
    return f"{value:.3f}"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few crowds; prints, writes nothing")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", cs.errors.ConsilienceWarning)  # that there are copies is known here
    real = [name for name in REAL if real_crowds.is_present(name)]
    parts = {
        "Four of ten workers copy a fifth:": tabulate_copies((300,) if quick else (300, 1000), (1.0, 0.8), 1)
        if quick
        else tabulate_copies((300, 1000), (1.0, 0.8), N_DRAWS),
        "Crowds without copies:": tabulate_clean(CLEAN[:2], SIZES[:2], 1)
        if quick
        else tabulate_clean(CLEAN, SIZES, N_DRAWS),
        "Teams of ten workers, of which three teams have three copies:": tabulate_teams((100,), 1)
        if quick
        else tabulate_teams((100, 1000, 3000), N_DRAWS),
        "Real crowds, with their numbers of workers:": tabulate_real(real[:1] if quick else real),
        "Labelling functions:": tabulate_functions(1 if quick else N_DRAWS),
        "Cost:": "" if quick else tabulate_cost(),
    }
    text = "\n\n".join(f"{title}\n\n{table}" for title, table in parts.items())
    print(text)
    if not quick:
        TABLES.write_text(text + "\n")


if __name__ == "__main__":
    main()
