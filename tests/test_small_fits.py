"""What a fit of a few hundred answers costs: thousands of small groups are an ordinary job."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.inference.em import Problem


def small_crowd(n_classes=3, n_items=48, n_workers=12, seed=0):
    """Return 240 answers."""
    rng = np.random.default_rng(seed)
    truth, item = rng.integers(n_classes, size=n_items), np.repeat(np.arange(n_items), 5)
    worker = np.concatenate([rng.choice(n_workers, 5, replace=False) for _ in range(n_items)])
    label = np.where(rng.random(len(item)) < 0.7, truth[item], rng.integers(n_classes, size=len(item)))
    return {"item": item, "worker": worker, "label": [f"l{each}" for each in label]}


def fuse_quietly(table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cs.fuse(table)


def measure(job, times=5):
    """Return the least processor time, once everything is compiled."""
    job()
    spent = []
    for _ in range(times):
        start = time.process_time()
        job()
        spent.append(time.process_time() - start)
    return min(spent)


@pytest.mark.robust
@pytest.mark.parametrize(
    ("job", "bar"), [(lambda table: cs.DawidSkene().fit(table), 0.025), (fuse_quietly, 0.060)], ids=["fit", "fuse"]
)
@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_small_fit_takes_milliseconds(job, bar, n_classes):
    """The bars are those of an idle machine, and three times as much is allowed here."""
    table = small_crowd(n_classes)
    assert measure(lambda: job(table)) < 3 * bar


def test_fuse_takes_few_passes(monkeypatch):
    """The fit, copies in two halves, and two steps from the fit for each fold of hidden answers; nothing else."""
    passes, expect = [], Problem.expect
    monkeypatch.setattr(Problem, "expect", lambda *arguments: passes.append(1) or expect(*arguments))
    model = fuse_quietly(small_crowd())
    assert len(passes) <= model.n_iter_ + 1 + 3 * 31 + 5 * 3


@pytest.mark.robust
def test_hundreds_of_labels_take_seconds():
    rng = np.random.default_rng(0)
    truth, item = rng.integers(600, size=600), np.repeat(np.arange(600), 3)
    worker = (item * 7 + np.tile([0, 1, 2], 600) * 11) % 30
    label = np.where(rng.random(1800) < 0.7, truth[item], rng.integers(600, size=1800))
    table = {"item": item, "worker": worker, "label": [f"l{each}" for each in label]}
    assert measure(lambda: fuse_quietly(table), 2) < 3.0
