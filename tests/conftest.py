"""Fitted models of every kind, each made once for all tests that only read what is in a result."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import consilience as cs


def make_plain() -> Any:
    r = cs.simulate.independent(300, n_workers=8, n_classes=3, answers_per_item=4, seed=1).responses
    return cs.DawidSkene().fit(r, gold=dict.fromkeys(r.items[:4].tolist(), r.classes[0]))


def make_vote() -> Any:
    return cs.MajorityVote().fit(cs.simulate.independent(100, n_workers=5, seed=2).responses)


def make_moments() -> Any:
    return cs.MomentMatching().fit(cs.simulate.independent(300, n_workers=6, seed=3).responses)


def make_ratings() -> Any:
    return cs.fuse(cs.simulate.ratings(60, n_raters=5, seed=1).responses, label_by="median")


def make_sequences() -> Any:
    return cs.fuse(cs.simulate.sequences(30, n_workers=4, n_classes=3, seed=1).responses)


def make_network() -> Any:
    crowd = cs.simulate.network(200, n_workers=5, n_classes=3, seed=1)
    return cs.fuse(crowd.responses, graph=crowd.graph)


def make_soft() -> Any:
    votes = np.random.default_rng(0).dirichlet([0.5, 0.5], (100, 4))
    return cs.fuse(cs.Answers.from_probabilities(votes))


def make_silence() -> Any:
    said = np.random.default_rng(0).random((300, 4)) < 0.6
    votes = np.where(said, (np.arange(300) % 2)[:, None], -1)
    return cs.fuse(cs.Answers.from_matrix(votes, abstain="answer", background=0))


def make_copies() -> Any:
    rng = np.random.default_rng(4)
    votes = np.where(rng.random((300, 5)) < 0.7, (np.arange(300) % 2)[:, None], rng.integers(2, size=(300, 5)))
    return cs.fuse(cs.Answers.from_matrix(np.column_stack([votes, votes[:, 0], votes[:, 0]])))


def make_tags() -> Any:
    return cs.fuse(cs.simulate.tags(60, n_workers=5, n_tags=3, seed=1).tags)


def make_questions() -> Any:
    answers = cs.simulate.independent(60, n_workers=5, n_classes=2, seed=1).responses
    rows = {"item": answers.items[answers.item_of_answer()], "worker": answers.workers[answers.worker]}
    said = answers.labels[answers.label]
    return cs.fuse(rows | {"tone": said, "mood": 1 - said}, label=["tone", "mood"])


def make_spans() -> Any:
    return cs.fuse(cs.simulate.spans(20, seed=1).spans)


def make_masks() -> Any:
    rng = np.random.default_rng(0)
    drawn = np.zeros((12, 12), bool)
    drawn[3:9, 2:8] = True
    readers = {f"r{m}": (drawn ^ (rng.random((12, 12)) < 0.08)).astype(np.uint8) for m in range(3)}
    return cs.fuse(cs.Masks.from_arrays({"scan": readers}))


def make_comparisons() -> Any:
    return cs.rank(cs.simulate.comparisons(200, n_candidates=5, n_judges=4, seed=1).comparisons)


MAKERS: dict[str, Callable[[], Any]] = {
    name.removeprefix("make_"): make for name, make in list(globals().items()) if name.startswith("make_")
}


class Fitted(dict[str, Any]):
    """Models by name, each made when it is first asked for. Who changes one makes another."""

    def __missing__(self, name: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cs.errors.ConsilienceWarning)
            self[name] = MAKERS[name]()
        return self[name]


@pytest.fixture(scope="session")
def fitted() -> Fitted:
    return Fitted()


@pytest.fixture(params=MAKERS)
def model(request: pytest.FixtureRequest, fitted: Fitted) -> Any:
    """Each of the models in turn; a file with a fixture of this name has its own."""
    return fitted[request.param]
