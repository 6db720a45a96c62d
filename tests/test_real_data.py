"""Real crowds, default settings. Gold is for scoring only: no fit sees it."""

from __future__ import annotations

import pytest

import consilience as cs
from real_data import FOLDER, gold_of, needs_data

pytestmark = needs_data

LEAST_ACCURACY = {"rte": 0.925, "bluebird": 0.88, "dog": 0.835, "product": 0.935, "web": 0.76, "llm_judges": 0.81}


@pytest.mark.parametrize("name", LEAST_ACCURACY)
def test_dawid_skene_is_as_accurate_as_it_should_be(name):
    r = cs.read_responses(FOLDER / name / "responses.parquet")
    gold = gold_of(name)
    fused = dict(zip(r.items.tolist(), cs.DawidSkene().fit(r).labels_.tolist(), strict=True))
    vote = dict(zip(r.items.tolist(), cs.MajorityVote().fit(r).labels_.tolist(), strict=True))
    known = [item for item in fused if item in gold]
    truth = [gold[item] for item in known]
    accuracy = cs.metrics.accuracy(truth, [fused[item] for item in known])
    assert accuracy >= LEAST_ACCURACY[name]
    assert accuracy > cs.metrics.accuracy(truth, [vote[item] for item in known])


def test_the_same_bits_for_any_number_of_threads():
    r = cs.read_responses(FOLDER / "product" / "responses.parquet")
    one, three = (cs.DawidSkene().fit(r, engine=cs.engines.Threads(n)).posterior_ for n in (1, 3))
    assert (one == three).all()
