"""Chains: kernels and structure against enumeration of all paths, against hmmlearn, and where numbers end."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

import consilience as cs
import oracles
from consilience.answers import answers as blocks
from consilience.answers.tagging import Transitions, free_transitions
from consilience.inference.chains import lagged_moments
from consilience.inference.em import Parameters, Problem, infer_posterior
from consilience.inference.structures.chain import Chain
from consilience.inference.workers.base import ConfusionWorkers, Prior
from consilience.kernels import LARGE, width_of
from consilience.kernels.chain import forward_backward, viterbi
from effort import examples, rest_robust

ESTIMATIONS = ["em", "variational"]
NO_GOLD = np.empty(0, np.int32)


def forward(bounds, evidence, start, pair, end=None):
    """Return (posterior, log normaliser, start counts, pair counts, mass) of the kernel."""
    n_classes = evidence.shape[1]
    posterior = evidence.copy()
    starts, pairs, mass = np.zeros(n_classes), np.zeros((n_classes, n_classes)), np.zeros(n_classes)
    end = np.ones(n_classes) if end is None else end
    value = forward_backward(
        np.asarray(bounds), posterior, start, pair, end, starts, pairs, mass, width_of(n_classes, LARGE)
    )
    return posterior, value, starts, pairs, mass


def decode(bounds, evidence, start, pair, end=None, gold=NO_GOLD):
    n_classes = evidence.shape[1]
    path = np.full(len(evidence), -7)
    end = np.ones(n_classes) if end is None else end
    viterbi(np.asarray(bounds), evidence.copy(), gold, start, pair, end, path, width_of(n_classes, LARGE))
    return path


def weights_of_paths(evidence, start, pair, end):
    """Return every path of one sequence and the log of its factor."""
    length, n_classes = evidence.shape
    paths = np.array(list(itertools.product(range(n_classes), repeat=length)))
    with np.errstate(divide="ignore"):
        logs = np.log(start)[paths[:, 0]] + np.log(end)[paths[:, -1]]
        logs = logs + np.log(evidence)[np.arange(length), paths].sum(axis=1)
        for t in range(1, length):
            logs = logs + np.log(pair)[paths[:, t - 1], paths[:, t]]
    return paths, logs


def enumerate_chains(bounds, evidence, start, pair, end=None):
    """The slow twin of `forward`: sums over all K^T paths of each sequence."""
    n_classes = evidence.shape[1]
    end = np.ones(n_classes) if end is None else end
    posterior = np.zeros_like(evidence)
    value, starts, pairs = 0.0, np.zeros(n_classes), np.zeros((n_classes, n_classes))
    for first, stop in itertools.pairwise(bounds):
        paths, logs = weights_of_paths(evidence[first:stop], start, pair, end)
        total = special.logsumexp(logs)
        value += total
        for path, p in zip(paths, np.exp(logs - total), strict=True):
            posterior[np.arange(first, stop), path] += p
            starts[path[0]] += p
            np.add.at(pairs, (path[:-1], path[1:]), p)
    return posterior, value, starts, pairs, posterior.sum(axis=0)


def random_chain(seed, n_classes, n_items, zeros=0.0):
    rng = np.random.default_rng(seed)
    start, end = rng.uniform(0.1, 3, n_classes), rng.uniform(0.1, 3, n_classes)
    pair, evidence = rng.uniform(0.05, 2, (n_classes, n_classes)), rng.uniform(0.01, 5, (n_items, n_classes))
    if zeros:
        pair[rng.random(pair.shape) < zeros] = 0.0
        evidence[rng.random(evidence.shape) < zeros] = 0.0
        # One path stays possible.
        pair[:, 0], evidence[:, 0] = 0.3, 0.2
    return start, pair, end, evidence


# -------------------------------------------------------------------------------------------------- forward-backward


@pytest.mark.parametrize("n_classes", rest_robust([1, 2, 3, 5], 3))
@pytest.mark.parametrize("zeros", [0.0, 0.5])
@pytest.mark.parametrize("seed", rest_robust(range(3)))
def test_forward_backward_is_enumeration(n_classes, zeros, seed):
    bounds = [0, 1, 6, 7, 11, 13]
    start, pair, end, evidence = random_chain(seed, n_classes, bounds[-1], zeros)
    for given_end in (None, end):
        found = forward(bounds, evidence, start, pair, given_end)
        for ours, twins in zip(found, enumerate_chains(bounds, evidence, start, pair, given_end), strict=True):
            np.testing.assert_allclose(ours, twins, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found[0].sum(axis=1), 1, rtol=1e-13)
    assert found[3].sum() == pytest.approx(bounds[-1] - (len(bounds) - 1))
    assert (found[3][pair == 0] == 0).all()


@pytest.mark.parametrize("n_classes", rest_robust([17, 16, 30]))
def test_more_classes_than_are_unrolled(n_classes):
    """Two-step sequences are a matrix product away from enumeration."""
    start, pair, end, evidence = random_chain(1, n_classes, 4)
    posterior, value, _, pairs, _ = forward([0, 2, 4], evidence, start, pair, end)
    expected, total = np.zeros((n_classes, n_classes)), 0.0
    for a in (0, 2):
        joint = (start * evidence[a])[:, None] * pair * (evidence[a + 1] * end)[None]
        total += np.log(joint.sum())
        expected += joint / joint.sum()
        np.testing.assert_allclose(posterior[a], joint.sum(axis=1) / joint.sum(), rtol=1e-12)
    np.testing.assert_allclose(pairs, expected, rtol=1e-11)
    assert value == pytest.approx(total, rel=1e-12)


# ------------------------------------------------------------------------------------------------------------ numbers


def test_what_cannot_be_reached_may_be_ever_so_likely():
    """Stages only rise: after the last one is known, a thousand answers for the first change nothing."""
    pair = np.array([[0.8, 0.2], [0.0, 1.0]])
    evidence = np.tile([1.0, 1e-3], (1000, 1))
    evidence[0] = [0.0, 1.0]
    posterior, value, _, pairs, _ = forward([0, 1000], evidence, np.array([0.5, 0.5]), pair)
    np.testing.assert_array_equal(posterior, np.tile([0.0, 1.0], (1000, 1)))
    assert value == pytest.approx(np.log(0.5) + 999 * np.log(1e-3))
    np.testing.assert_array_equal(pairs, [[0, 0], [0, 999]])
    # The same backwards: what leads nowhere, as long as the way is not too faint.
    evidence = evidence[:80][::-1].copy()
    posterior, *_ = forward([0, 80], evidence, np.array([0.5, 0.5]), np.array([[1.0, 0.0], [0.2, 0.8]]))
    np.testing.assert_allclose(posterior, np.tile([0.0, 1.0], (80, 1)))


@given(st.integers(0, 10**6), st.integers(2, 4), st.sampled_from([1e-3, 1e-30, 1e-100, 1e-290]))
@examples(300)
def test_extreme_evidence_stays_a_distribution(seed, n_classes, least):
    rng = np.random.default_rng(seed)
    evidence = np.where(rng.random((30, n_classes)) < 0.5, 1.0, least ** rng.random((30, n_classes)))
    pair = np.where(rng.random((n_classes, n_classes)) < 0.4, 0.0, least ** rng.random((n_classes, n_classes)))
    posterior, value, _, pairs, mass = forward([0, 13, 30], evidence, np.ones(n_classes), pair)
    assert np.isfinite(value)
    np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-9)
    assert np.isfinite(pairs).all()
    assert (pairs[pair == 0] == 0).all()
    assert mass.sum() == pytest.approx(30)


# ------------------------------------------------------------------------------------------------------- impossible


def test_a_known_label_that_nothing_leads_to_cuts_the_link():
    start, pair = np.array([0.4, 0.6]), np.array([[0.9, 0.1], [0.0, 1.0]])
    evidence = np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0], [0.3, 0.7]])
    posterior, value, starts, pairs, _ = forward([0, 4], evidence, start, pair)
    left, right = evidence[:2], evidence[2:]
    first, second = forward([0, 2], left, start, pair), forward([0, 2], right, np.ones(2), pair)
    np.testing.assert_allclose(posterior, np.concatenate([first[0], second[0]]))
    np.testing.assert_allclose(pairs, first[3] + second[3])
    np.testing.assert_allclose(starts, first[2])
    assert value == pytest.approx(first[1] + second[1] - 690)
    gold = np.array([-1, 1, 0, -1], np.int32)
    np.testing.assert_array_equal(decode([0, 4], evidence, start, pair, gold=gold), [1, 1, 0, 0])


def test_a_start_and_an_end_that_are_impossible():
    start, pair, end = np.array([1.0, 0.0]), np.full((2, 2), 0.5), np.array([1.0, 0.0])
    for bounds in ([0, 3], [0, 1, 3], [0, 1, 2, 3]):
        evidence = np.tile([0.0, 1.0], (3, 1))
        gold = np.ones(3, np.int32)
        posterior, value, *_ = forward(bounds, evidence, start, pair, end)
        np.testing.assert_array_equal(posterior, evidence)
        n = len(bounds) - 1
        assert value == pytest.approx(-690 * 2 * n + (3 - n) * np.log(0.5))
        np.testing.assert_array_equal(decode(bounds, evidence, start, pair, end, gold), [1, 1, 1])
        # Without being known, what is forbidden is not decoded.
        path = decode(bounds, evidence, start, pair, end)
        assert (path[np.array(bounds[:-1])] == 0).all()
        assert (path[np.array(bounds[1:]) - 1] == 0).all()


# ------------------------------------------------------------------------------------------------------------ Viterbi


@pytest.mark.parametrize("n_classes", [1, 2, 4])
@pytest.mark.parametrize("zeros", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_viterbi_is_enumeration(n_classes, zeros, seed):
    bounds = [0, 1, 6, 7, 11]
    start, pair, end, evidence = random_chain(seed, n_classes, bounds[-1], zeros)
    path = decode(bounds, evidence, start, pair, end)
    for first, stop in itertools.pairwise(bounds):
        paths, logs = weights_of_paths(evidence[first:stop], start, pair, end)
        np.testing.assert_array_equal(path[first:stop], paths[logs.argmax()])


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 5))
@examples(80)
def test_viterbi_takes_the_lowest_class_at_the_latest_position(seed, n_classes, length):
    """Factors are powers of two, so that equal is equal."""
    rng = np.random.default_rng(seed)
    draw = lambda *shape: 2.0 ** rng.integers(-1, 2, shape)  # noqa: E731
    start, pair, end, evidence = draw(n_classes), draw(n_classes, n_classes), draw(n_classes), draw(length, n_classes)
    path = decode([0, length], evidence, start, pair, end)
    paths, logs = weights_of_paths(evidence, start, pair, end)
    best = paths[np.isclose(logs, logs.max(), rtol=0, atol=1e-9)]
    assert path.tolist() == min(best.tolist(), key=lambda p: p[::-1])


# ---------------------------------------------------------------------------------------------------------- structure


def crowd_of_sequences(seed, lengths, n_workers=5, n_classes=3, share=0.8, stay=0.7, skill=(0.5, 0.9)):
    """Return (matrix, truth, start, transition, confusion) of a crowd about Markov chains."""
    rng = np.random.default_rng(seed)
    answers, truth, _, confusion = oracles.simulate(
        seed, n_items=sum(lengths), n_workers=n_workers, n_classes=n_classes, share=share, skill=skill
    )
    transition = stay * np.eye(n_classes) + (1 - stay) * rng.dirichlet(np.ones(n_classes), n_classes)
    start = rng.dirichlet(np.full(n_classes, 3.0))
    at = 0
    for length in lengths:
        for t in range(length):
            truth[at] = rng.choice(n_classes, p=start if t == 0 else transition[truth[at - 1]])
            at += 1
    for i, m in np.argwhere(answers >= 0):
        answers[i, m] = rng.choice(n_classes, p=confusion[m, truth[i]])
    return answers, truth, start, transition, confusion


def pose(r, workers, structure, gold=None):
    engine = cs.engines.Threads(1)
    placed = engine.place(blocks.cut_blocks(r, workers.encode(r), workers.n_rows, gold))
    prior = Prior(np.full((1, r.n_labels, r.n_classes), 0.5), "em")
    weighted = r.weight is not None
    return Problem(engine, placed, workers, prior, structure, None, r.n_responses, weighted, r.scale, r.vote_shares())


def plain_workers(r):
    return ConfusionWorkers(r.n_workers, r.class_of_label, r.n_classes)


def evidence_of(r, confusion, gold=None):
    votes = oracles.densify(r)
    with np.errstate(divide="ignore"):
        logs = oracles.log_answers(votes, np.log(confusion)).sum(axis=1)
    if gold is not None:
        logs[(gold >= 0)[:, None] & (np.arange(logs.shape[1]) != gold[:, None])] = -np.inf
    return np.exp(logs)


@pytest.mark.parametrize("coupling", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("known", [False, True])
def test_chain_is_enumeration_at_any_coupling(coupling, known):
    lengths = [1, 5, 2, 4]
    answers, _, start, transition, confusion = crowd_of_sequences(1, lengths)
    r = cs.Answers.from_matrix(answers, lengths=lengths, labels=[0, 1, 2])
    prior = np.array([0.5, 0.3, 0.2])
    structure = Chain(3, None, 0.1, "em", coupling, free_transitions(3))
    gold = np.full(r.n_items, -1, np.int32)
    if known:
        gold[[0, 3, 11]] = [2, 1, 0]
    workers = plain_workers(r)
    problem = pose(r, workers, structure, gold if known else None)
    parameters = Parameters(workers.given(confusion), structure.given(prior, start, transition), problem.prior)
    statistics = problem.expect(parameters)
    posterior, value = infer_posterior(
        problem.engine, problem.placed, workers.factors(parameters.workers.log_weights), parameters.structure
    )
    factors = (start / prior) ** coupling * prior, (transition / prior) ** coupling * prior
    expected = enumerate_chains(r.sequences.offsets, evidence_of(r, confusion, gold), *factors)
    summary = statistics.summary
    np.testing.assert_allclose(posterior, expected[0], atol=1e-12)
    assert value == pytest.approx(expected[1], rel=1e-12)
    for ours, twins in zip((summary.start, summary.pairs, summary.mass), expected[2:], strict=True):
        np.testing.assert_allclose(ours, twins, rtol=1e-10, atol=1e-12)
    counts = np.einsum("iml,ik->mlk", oracles.densify(r), expected[0])
    np.testing.assert_allclose(workers.plain_counts(statistics.counts), counts, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(parameters.structure.point().pair_factor, parameters.structure.pair_factor)


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_update_is_counts_and_pseudo_counts_where_allowed(estimation):
    from consilience.inference.structures.chain import ChainSummary

    allowed = Transitions(
        np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]], bool), np.array([1, 1, 0], bool), np.ones(3, bool)
    )
    summary = ChainSummary(
        0.0, np.array([5.0, 3, 2]), np.array([2.0, 1, 0]), np.array([[1.0, 2, 0], [0, 1, 2], [0, 0, 1]])
    )
    found = Chain(3, None, 0.5, estimation, 1.0, allowed).update(summary)
    np.testing.assert_allclose(found.mean, [5.5 / 11.5, 3.5 / 11.5, 2.5 / 11.5])
    np.testing.assert_allclose(found.initial, [2.5 / 4, 1.5 / 4, 0])
    np.testing.assert_allclose(found.transition, [[1.5 / 4, 2.5 / 4, 0], [0.5 / 4.5, 1.5 / 4.5, 2.5 / 4.5], [0, 0, 1]])
    rows = [(summary.start[:2], 2), (summary.pairs[0, :2], 2), (summary.pairs[1], 3), (summary.pairs[2, 2:], 1)]
    if estimation == "em":
        bound = sum(0.5 * np.log((row + 0.5) / (row + 0.5).sum()).sum() for row, _ in rows)
        np.testing.assert_array_equal(found.pair_factor, found.transition)
    else:
        parts = [oracles.dirichlet_logs(row.reshape(1, n, 1), np.full((1, n, 1), 0.5)) for row, n in rows]
        bound = sum(value for _, value in parts)
        np.testing.assert_allclose(found.pair_factor[1], np.exp(parts[2][0].ravel()))
        assert (found.pair_factor[~allowed.steps] == 0).all()
    assert found.bound == pytest.approx(bound, rel=1e-12)


# ------------------------------------------------------------------------------------------------ transition moments


def slow_moments(r, confusion):
    """Sum over all ordered pairs of answers at neighbouring positions, and over pairs of workers."""
    n_classes = confusion.shape[2]
    operator, linear = np.zeros((n_classes,) * 4), np.zeros((n_classes, n_classes))
    owner = r.sequences.of_items()
    for n in range(1, r.n_items):
        if owner[n] != owner[n - 1]:
            continue
        before, now = (range(r.offsets[i], r.offsets[i + 1]) for i in (n - 1, n))
        for a, b in itertools.product(before, now):
            G, H = confusion[r.worker[a]], confusion[r.worker[b]]
            linear += np.outer(G[r.label[a]], H[r.label[b]])
            operator += np.einsum("ij,kl->ikjl", G.T @ G, H.T @ H)
    return operator.reshape(n_classes**2, -1), linear


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_lagged_moments_are_sums_over_pairs_of_answers(share):
    lengths = [1, 9, 3, 12]
    answers, *_, confusion = crowd_of_sequences(3, lengths, share=share)
    answers[4] = -1
    r = cs.Answers.from_matrix(answers, lengths=lengths, labels=[0, 1, 2])
    matrices = confusion.transpose(0, 2, 1)
    for ours, twins in zip(lagged_moments(r, matrices), slow_moments(r, matrices), strict=True):
        np.testing.assert_allclose(ours, twins, rtol=1e-11, atol=1e-11)
