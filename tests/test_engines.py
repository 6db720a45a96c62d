"""Engines: the same bits wherever the work is done."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import consilience as cs
import dask_kills
import oracles
from consilience.answers import answers as blocks
from consilience.engines import ENGINES, Engine, Threads
from consilience.engines.dask import Dask
from consilience.errors import ParameterError
from consilience.inference.hidden_answers import raise_to
from consilience.models import model_class

distributed = pytest.importorskip("distributed")


@pytest.fixture
def small_blocks(monkeypatch):
    """Make every crowd large: many blocks."""
    monkeypatch.setattr(blocks, "BLOCK_SIZE", 100)


@pytest.fixture(scope="module")
def client():
    with dask_kills.cluster_of(2) as connected:
        yield connected


def crowd(weighted=False, sequences=False):
    answers, truth, *_ = oracles.simulate(1, n_items=500, n_workers=20, n_classes=3, share=0.3, skill=(0.4, 0.8))
    gold = {i: int(truth[i]) for i in range(0, 500, 50)}
    if weighted:
        item, worker = np.nonzero(answers >= 0)
        weight = np.random.default_rng(2).uniform(0.1, 1, len(item))
        frame = {"item": item, "worker": worker, "label": answers[item, worker], "weight": weight}
        return cs.Answers.from_frame(frame, weight="weight"), gold
    if sequences:
        return cs.Answers.from_matrix(answers, lengths=[7] * 70 + [10]), {(i // 7, i % 7): g for i, g in gold.items()}
    return cs.Answers.from_matrix(answers), gold


def assert_same_bits(a, b):
    assert np.array_equal(a.posterior_, b.posterior_)
    assert np.array_equal(a.confusion_, b.confusion_)
    assert np.array_equal(a.prior_, b.prior_)
    assert np.array_equal(a.trace_, b.trace_)
    assert np.array_equal(a.labels_, b.labels_)


MODELS = {
    "variational": lambda: cs.DawidSkene(n_init=2, tol=0, max_iter=8),
    "em": lambda: cs.DawidSkene(estimation="em", smoothing=0, tol=0, max_iter=8),
    "vote": lambda: cs.MajorityVote(),
}


def n_blocks(r):
    return len(blocks.cut_blocks(r, r.worker * np.int32(r.n_labels) + r.label, r.n_workers * r.n_labels))


# ------------------------------------------------------------------------------------------------------------- blocks


@pytest.mark.parametrize("size", [1, 10, 100, 10_000])
@pytest.mark.parametrize("sequences", [False, True])
def test_blocks_hold_every_answer_once(size, sequences, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_SIZE", size)
    r, _ = crowd(sequences=sequences)
    codes = r.worker * np.int32(r.n_labels) + r.label
    gold = np.arange(r.n_items, dtype=np.int32) % 4 - 1
    cut = blocks.cut_blocks(r, codes, r.n_workers * r.n_labels, gold)
    assert np.array_equal(np.concatenate([block.rows[block.codes] for block in cut]), codes)
    assert np.array_equal(np.concatenate([block.gold for block in cut]), gold)
    first = 0
    for block in cut:
        assert block.first_item == first
        assert block.n_items > 0
        answers = slice(r.offsets[first], r.offsets[first + block.n_items])
        assert np.array_equal(block.offsets, r.offsets[first : first + block.n_items + 1] - answers.start)
        assert (np.diff(block.rows) > 0).all()
        assert set(block.codes.tolist()) == set(range(len(block.rows)))
        if sequences:
            assert block.sequences[0] == 0
            assert block.sequences[-1] == block.n_items
        for name in ("codes", "offsets", "rows", "amount", "gold", "sequences"):
            assert not getattr(block, name).flags.writeable
        first += block.n_items
    assert first == r.n_items
    if sequences:
        starts = np.concatenate([block.sequences[:-1] + block.first_item for block in cut])
        assert np.array_equal(starts, r.sequences.offsets[:-1])


# ------------------------------------------------------------------------------------------------------------ threads


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["plain", "weighted", "sequences"])
def test_same_bits_for_any_number_of_threads(name, kind, small_blocks):
    r, gold = crowd(weighted=kind == "weighted", sequences=kind == "sequences")
    assert n_blocks(r) > 10
    one = MODELS[name]().fit(r, gold=gold, engine=Threads(1))
    assert_same_bits(MODELS[name]().fit(r, gold=gold, engine=Threads(3)), one)
    fitted = one.posterior_ if name == "vote" else raise_to(one.uncalibrated_posterior_, one.power_)
    if name != "vote" and one.teaching_ is not None:
        fitted = one.teaching_.apply(r, fitted, one.result_.given.gold.codes < 0, np.arange(r.n_workers))
    assert np.array_equal(one.predict_proba(r, gold=gold), fitted)


def test_environment_variable(small_blocks, monkeypatch):
    r, gold = crowd()
    monkeypatch.delenv("CONSILIENCE_THREADS", raising=False)
    assert Threads().n_threads >= 1
    plain = cs.DawidSkene().fit(r, gold=gold)
    for text, n_threads in (("1", 1), (" 3 ", 3)):
        monkeypatch.setenv("CONSILIENCE_THREADS", text)
        assert Threads().n_threads == n_threads
        assert repr(Threads()) == f"Threads(n_threads={n_threads})"
        assert_same_bits(cs.DawidSkene().fit(r, gold=gold), plain)
        assert Threads(2).n_threads == 2
    for text in ("0", "-1", "many", "1.5"):
        monkeypatch.setenv("CONSILIENCE_THREADS", text)
        with pytest.raises(ParameterError, match=r"\$CONSILIENCE_THREADS must be a whole number >= 1. Got"):
            cs.DawidSkene().fit(r)


def test_map_keeps_order_and_works_in_threads():
    def slow_square(x, offset):
        time.sleep(0.02 * (x % 3 == 0))
        return x * x + offset, threading.get_ident()

    results = list(Threads(4).map(slow_square, list(range(30)), 1))
    assert [value for value, _ in results] == [x * x + 1 for x in range(30)]
    assert len({thread for _, thread in results}) > 1
    alone = list(Threads(1).map(slow_square, list(range(5)), 1))
    assert {thread for _, thread in alone} == {threading.get_ident()}


def test_map_does_not_run_far_ahead():
    """What has been computed and not yet taken is bounded: results of all blocks need not fit in memory."""
    begun = []
    results = Threads(2).map(begun.append, list(range(100)))
    next(results)
    time.sleep(0.05)
    assert len(begun) <= 5
    assert sum(1 for _ in results) == 99
    assert sorted(begun) == list(range(100))


class Counting(Threads):
    """Threads that count how often they are used, and whether they were closed."""

    def __init__(self):
        super().__init__(1)
        self.n_maps, self.closed = 0, False

    def map(self, function, placed, *shared):
        self.n_maps += 1
        return super().map(function, placed, *shared)

    def close(self):
        self.closed = True


def test_a_named_engine_is_closed_and_a_given_one_is_not(monkeypatch):
    """Also after an error; and one engine serves all that a fit does."""
    made = []
    monkeypatch.setitem(ENGINES, "counting", lambda: made.append(Counting()) or made[-1])
    crowd = cs.simulate.sequences(20, length=10, n_workers=4, seed=1)
    cs.HiddenMarkov().fit(crowd.responses, engine="counting")
    assert [engine.closed for engine in made] == [True]
    with pytest.raises(ZeroDivisionError):
        cs.DawidSkene(callback=lambda _: 1 / 0).fit(crowd.responses, engine="counting")
    assert [engine.closed for engine in made] == [True, True]
    given = Counting()
    cs.DawidSkene().fit(crowd.responses, engine=given)
    assert given.n_maps > 0
    assert not given.closed


@pytest.mark.parametrize("name", ["majority", "dawid-skene", "moments", "hidden-markov", "markov-field"])
def test_the_engine_reaches_all_that_is_done_with_data(name):
    network = cs.simulate.network(60, n_workers=5, n_classes=2, seed=2)
    sequences = cs.simulate.sequences(12, length=6, n_workers=4, n_classes=2, seed=2)
    r = sequences.responses if name == "hidden-markov" else network.responses
    graph = network.graph if name == "markov-field" else None
    model = model_class(name)().fit(r, graph=graph)
    for job in (
        lambda engine: model.predict(r, graph=graph, engine=engine),
        lambda engine: model.predict_proba(r, graph=graph, engine=engine),
        lambda engine: model.score(r, graph=graph, engine=engine),
        lambda engine: cs.held_out_score(model, r, graph=graph, engine=engine),
    ):
        engine = Counting()
        assert repr(job(engine)) == repr(job(None))
        assert engine.n_maps > 0


def test_an_engine_of_ones_own(small_blocks):
    """An engine knows nothing of models: anything that maps will do."""

    class Backwards(Engine):
        def place(self, blocks):
            return blocks

        def map(self, function, placed, *shared):
            yield from reversed([function(block, *shared) for block in reversed(placed)])

    r, gold = crowd()
    assert_same_bits(cs.DawidSkene().fit(r, gold=gold, engine=Backwards()), cs.DawidSkene().fit(r, gold=gold))


# --------------------------------------------------------------------------------------------------------------- Dask


@pytest.mark.robust
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["plain", "weighted"])
def test_same_bits_on_a_cluster(name, kind, client, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_SIZE", 500)
    r, gold = crowd(weighted=kind == "weighted")
    assert n_blocks(r) > 5
    here = MODELS[name]().fit(r, gold=gold, engine=Threads(2))
    assert_same_bits(MODELS[name]().fit(r, gold=gold, engine=Dask(client)), here)


@pytest.mark.robust
def test_blocks_are_spread_over_the_cluster(small_blocks, client):
    r, _ = crowd()
    engine = Dask(client)
    placed = engine.place(blocks.cut_blocks(r, r.worker, r.n_workers))
    futures = [future for _, future in placed]
    distributed.wait(futures)
    holders = {worker for places in client.who_has(futures).values() for worker in places}
    assert len(holders) == 2
    sizes = list(engine.map(len_of_block, placed, 1))
    assert sum(sizes) == r.n_items + len(placed)


def len_of_block(block, extra):
    return block.n_items + extra
