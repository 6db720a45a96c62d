"""Simulators: that what is drawn follows the parameters it is said to follow, and the oracle is the best there is."""

from __future__ import annotations

import itertools
import json
import os

import numpy as np
import pytest
from scipy import stats

import consilience as cs
from command_line import run
from consilience.cli.main import simulate as simulators
from consilience.errors import ParameterError
from consilience.formats import writable_formats
from consilience.formats.reading import read_table
from consilience.options import ACTIVITIES
from consilience.simulate import crowds
from consilience.simulate.crowds import draw_subset, stationary_distribution

SIMULATORS = (cs.simulate.independent, cs.simulate.sequences, cs.simulate.network)


def answers_of(crowd):
    """Return truth, worker and label of every answer."""
    r = crowd.responses
    return crowd.truth[r.item_of_answer()], r.worker, r.label


def counts_of(crowd):
    """Return counts[worker, truth, answer]."""
    counts = np.zeros(crowd.parameters.confusion.shape, int)
    np.add.at(counts, tuple(answers_of(crowd)[i] for i in (1, 0, 2)), 1)
    return counts


def assert_drawn_from(counts, probabilities):
    """Chi-square test of counts against probabilities; impossible outcomes do not occur."""
    counts, probabilities = np.asarray(counts), np.asarray(probabilities)
    assert counts[probabilities == 0].sum() == 0
    expected = probabilities * counts.sum()
    large = expected > 5
    statistic = ((counts - expected)[large] ** 2 / expected[large]).sum()
    assert stats.chi2.sf(statistic, max(large.sum() - 1, 1)) > 1e-6


def same(one, other):
    return (
        np.array_equal(one.truth, other.truth)
        and np.array_equal(one.responses.worker, other.responses.worker)
        and np.array_equal(one.responses.label, other.responses.label)
        and np.array_equal(one.parameters.confusion, other.parameters.confusion)
    )


# What every simulator does


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_same_seed_same_crowd(simulator):
    options = {"answers_per_item": 3, "spammers": 1, "adversaries": 1, "copycats": 2, "activity": "unequal"}
    assert same(simulator(seed=3, **options), simulator(seed=3, **options))
    assert not same(simulator(seed=3, **options), simulator(seed=4, **options))


def test_a_crowd_is_what_it_was():
    crowd = cs.simulate.independent(6, 4, 3, answers_per_item=2, seed=5)
    assert crowd.truth.tolist() == [1, 2, 0, 0, 0, 1]
    assert crowd.responses.worker.tolist() == [0, 2, 2, 3, 2, 0, 2, 3, 3, 2, 1, 2]
    assert crowd.responses.label.tolist() == [1, 1, 0, 1, 0, 2, 0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_results_fit_together(simulator):
    crowd = simulator(answers_per_item=4, copycats=2, seed=1)
    r, true = crowd.responses, crowd.parameters
    assert len(crowd.truth) == r.n_items == len(r.items)
    assert r.workers.tolist() == list(range(10))
    assert r.classes.tolist() == [0, 1, 2, 3]
    assert true.confusion.shape == (10, 4, 4)
    assert np.allclose(true.confusion.sum(axis=2), 1)
    assert np.isclose(true.prior.sum(), 1)
    assert true.kinds.tolist() == ["honest"] * 8 + ["copycat"] * 2
    assert (crowd.graph is not None) == (simulator is cs.simulate.network)
    assert (true.transition is not None) == (simulator is cs.simulate.sequences)
    assert "Simulation(Answers(" in repr(crowd)
    cs.DawidSkene(max_iter=3, tol=0).fit(r)


def test_workers_do_not_depend_on_the_number_of_items():
    one = cs.simulate.independent(100, 20, answers_per_item=3, seed=7)
    other = cs.simulate.independent(200, 20, answers_per_item=5, seed=7)
    assert np.array_equal(one.parameters.confusion, other.parameters.confusion)
    again = cs.simulate.independent(100, 20, answers_per_item=9, seed=7)
    assert np.array_equal(one.truth, again.truth)


# Workers


def test_answers_follow_the_confusion_matrices():
    crowd = cs.simulate.independent(40_000, 6, 3, seed=1)
    for counts, confusion in zip(counts_of(crowd), crowd.parameters.confusion, strict=True):
        for row, probabilities in zip(counts, confusion, strict=True):
            assert_drawn_from(row, probabilities)


@pytest.mark.parametrize("n_classes", [1, 2, 3, 5, 8, 11])
def test_labels_of_any_number_of_classes(n_classes):
    rng = np.random.default_rng(0)
    confusion = rng.dirichlet(np.full(n_classes, 0.5), size=(2, n_classes))
    truth = rng.integers(0, n_classes, 20_000)
    worker = rng.integers(0, 2, (20_000, 2))
    label = crowds.draw_labels(np.random.default_rng(1), confusion, worker, truth)
    for m, k in itertools.product(range(2), range(n_classes)):
        said = label[(worker == m) & (truth[:, None] == k)]
        assert_drawn_from(np.bincount(said, minlength=n_classes), confusion[m, k])


def test_draws_at_the_edges_never_give_the_impossible():
    class Edge:
        def __init__(self, value):
            self.value = value

        def random(self, shape):
            return np.full(shape, self.value)

    confusion = np.array([[[0.0, 0.1, 0.2, 0.7, 0.0]] * 5])
    worker, truth = np.zeros((3, 1), int), np.zeros(3, int)
    for value, expected in ((0.0, 1), (np.nextafter(1.0, 0.0), 3), (0.1, 2)):
        assert crowds.draw_labels(Edge(value), confusion, worker, truth).ravel().tolist() == [expected] * 3


@pytest.mark.parametrize(("n_workers", "good", "expected"), [(10, "most", 6), (7, "most", 4), (7, "all", 7), (7, 2, 2)])
def test_the_papers_better_than_random(n_workers, good, expected):
    for seed in range(5):
        confusion = cs.simulate.independent(5, n_workers, 4, good=good, seed=seed).parameters.confusion
        best = confusion.argmax(axis=2) == np.arange(4)
        assert best[:expected].all()
        # The others are as drawn: by chance a row is right once in four.
        assert not best[expected:].all(axis=1).any()


def test_defaults_are_the_papers():
    better = [
        (simulator(seed=2).parameters.confusion.argmax(axis=2) == np.arange(4)).all(axis=1).sum()
        for simulator in SIMULATORS
    ]
    assert better == [6, 6, 10]


def test_random_matrices_are_uniform_on_the_simplex():
    confusion = cs.simulate.independent(1, 4000, 3, answers_per_item=1, good=0, seed=1).parameters.confusion
    # Each entry of a uniform point is Beta(1, K - 1).
    for entry in confusion.reshape(-1, 3)[::3].T:
        assert stats.kstest(entry, stats.beta(1, 2).cdf).pvalue > 1e-6


def test_accuracy():
    even = cs.simulate.independent(5, 3, 4, accuracy=0.7).parameters.confusion
    assert np.allclose(even[0], np.where(np.eye(4, dtype=bool), 0.7, 0.1))
    each = cs.simulate.independent(5, 4, 2, accuracy=[0.5, 0.6, 0.9], spammers=1).parameters.confusion
    assert np.allclose(each[:3, 0, 0], [0.5, 0.6, 0.9])
    drawn = cs.simulate.independent(5, 500, 2, accuracy=(0.6, 0.8)).parameters.confusion[:, 0, 0]
    assert ((drawn >= 0.6) & (drawn <= 0.8)).all()
    assert np.ptp(drawn) > 0.19
    two = cs.simulate.independent(5, 2, 2, accuracy=(0.6, 0.8)).parameters.confusion[:, 0, 0]
    assert two.tolist() != [0.6, 0.8]  # a tuple is a range, for two workers too
    assert cs.simulate.independent(5, 3, 1, accuracy=0.2).parameters.confusion.tolist() == [[[1.0]]] * 3


def test_spammers_do_not_look():
    crowd = cs.simulate.independent(30_000, 5, 3, spammers=2, seed=1)
    for m in (3, 4):
        assert (np.ptp(crowd.parameters.confusion[m], axis=0) == 0).all()
        assert stats.chi2_contingency(counts_of(crowd)[m]).pvalue > 1e-6
    assert not np.array_equal(*crowd.parameters.confusion[3:])


def test_adversaries_avoid_the_right_answer():
    confusion = cs.simulate.independent(5, 30, 4, adversaries=25).parameters.confusion
    assert (confusion[5:].argmin(axis=2) == np.arange(4)).all()


def test_copycats_copy_exactly():
    crowd = cs.simulate.independent(300, 9, 4, answers_per_item=2, copycats=5, spammers=1, seed=1)
    assert crowd.parameters.copies.tolist() == [-1, -1, -1, -1, 0, 1, 2, 3, 0]
    r = crowd.responses
    by_worker = [
        dict(zip(r.item_of_answer()[of], r.label[of], strict=True)) for m in range(9) for of in [r.worker == m]
    ]
    for copycat, leader in enumerate(crowd.parameters.copies):
        if leader >= 0:
            assert by_worker[copycat] == by_worker[leader] != {}
            assert np.array_equal(*crowd.parameters.confusion[[copycat, leader]])
    assert sum(len(by_worker[m]) for m in range(4)) == 600
    assert r.n_responses == sum(map(len, by_worker))


def test_everyone_may_be_a_spammer_but_not_a_copycat():
    assert set(cs.simulate.independent(5, 3, spammers=3).parameters.kinds) == {"spammer"}
    assert cs.simulate.independent(5, 3, spammers=1, copycats=2).responses.n_responses == 15
    with pytest.raises(ParameterError, match="at least one of whom must not be a copycat"):
        cs.simulate.independent(5, 3, copycats=3)


# Who answers


@pytest.mark.parametrize("per_item", [1, 2, 3, 4, 6, 7, 8])
@pytest.mark.parametrize("activity", ACTIVITIES)
def test_nobody_answers_twice(activity, per_item):
    crowd = cs.simulate.independent(400, 8, answers_per_item=per_item, activity=activity, seed=2)
    by_item = np.sort(crowd.responses.worker.reshape(400, per_item), axis=1)
    assert (np.diff(by_item, axis=1) > 0).all()


@pytest.mark.parametrize("many", [0, 100])  # whoever was drawn is drawn again; lots for everyone
@pytest.mark.parametrize("per_item", [2, 3])
def test_draws_without_replacement(per_item, many, monkeypatch):
    monkeypatch.setattr(crowds, "MANY", many)
    rates = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    drawn = np.sort(crowds.draw_distinct(np.random.default_rng(0), 60_000, per_item, rates), axis=1)
    sets = list(itertools.combinations(range(5), per_item))
    expected = [
        sum(np.prod([rates[w] / (1 - rates[list(order[:i])].sum()) for i, w in enumerate(order)]) for order in orders)
        for each in sets
        for orders in [list(itertools.permutations(each))]
    ]
    assert_drawn_from([(drawn == each).all(axis=1).sum() for each in sets], expected)


def test_activity():
    equal = cs.simulate.independent(20_000, 10, answers_per_item=2, seed=1).responses
    assert_drawn_from(np.bincount(equal.worker), np.full(10, 0.1))
    crowd = cs.simulate.independent(20_000, 10, answers_per_item=1, activity="unequal", seed=1)
    often = np.bincount(crowd.responses.worker)
    rates = 1 / np.arange(1, 11)
    assert_drawn_from(np.sort(often)[::-1], rates / rates.sum())
    assert often.argmax() != 0 or often.argmin() != 9  # the good, who come first, are not the busy


# Truth


def test_class_shares():
    crowd = cs.simulate.independent(20_000, 1, 3, prior=[0.7, 0.3, 0.0], seed=1)
    assert_drawn_from(np.bincount(crowd.truth, minlength=3), [0.7, 0.3, 0.0])
    assert crowd.parameters.prior.tolist() == [0.7, 0.3, 0.0]
    assert_drawn_from(np.bincount(cs.simulate.network(20_000, 1, seed=1).truth), np.full(4, 0.25))


def test_chains_follow_the_transition_matrix():
    crowd = cs.simulate.sequences(4000, length=(1, 20), n_workers=1, n_classes=3, seed=1)
    keys, true = crowd.responses.sequences, crowd.parameters
    lengths = np.diff(keys.offsets)
    assert_drawn_from(np.bincount(lengths, minlength=21)[1:], np.full(20, 1 / 20))
    assert_drawn_from(np.bincount(crowd.truth[keys.offsets[:-1]], minlength=3), true.initial)
    assert np.allclose(true.initial @ true.transition, true.initial)
    assert np.array_equal(true.prior, true.initial)
    inner = np.delete(np.arange(len(crowd.truth)), keys.offsets[1:] - 1)
    moves = np.zeros((3, 3), int)
    np.add.at(moves, (crowd.truth[inner], crowd.truth[inner + 1]), 1)
    for counts, probabilities in zip(moves, true.transition, strict=True):
        assert_drawn_from(counts, probabilities)
    assert keys.position[: lengths[0]].tolist() == list(range(lengths[0]))
    assert crowd.responses.items[0] == (0, 0)


def test_transitions_given():
    turn = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    truth = cs.simulate.sequences(3, 50, n_classes=3, transition=turn).truth.reshape(3, 50)
    assert (np.diff(truth, axis=1) % 3 == 1).all()
    sticky = cs.simulate.sequences(3, 50, n_classes=3, transition=turn, stickiness=0.75).parameters.transition
    assert np.allclose(sticky, 0.75 * np.eye(3) + 0.25 * np.array(turn))


def test_sequences_of_one():
    crowd = cs.simulate.sequences(50, length=1, n_workers=3, n_classes=2)
    assert crowd.responses.n_items == 50
    assert len(crowd.responses.sequences) == 50


@pytest.mark.parametrize(
    ("transition", "expected"),
    [
        (np.array([[0.5, 0.5], [0.0, 1.0]]), [0, 1]),
        (np.array([[0.0, 1.0], [1.0, 0.0]]), [0.5, 0.5]),
        (np.ones((1, 1)), [1]),
    ],
)
def test_stationary_distribution(transition, expected):
    assert np.allclose(stationary_distribution(transition), expected)
    assert (stationary_distribution(transition) >= 0).all()


@pytest.mark.parametrize("prior", [None, [0.6, 0.3, 0.1]])
@pytest.mark.parametrize("homophily", [0.0, 0.3, 0.9, 1.0])
def test_networks(prior, homophily):
    crowd = cs.simulate.network(4000, 2, 3, degree=6, homophily=homophily, prior=prior, seed=1)
    assert crowd.graph.n_edges == 12_000
    assert crowd.graph.n_self_loops == 0
    assert np.array_equal(crowd.graph.items, crowd.responses.items)
    matrix = crowd.graph.to_scipy().tocoo()
    within = (crowd.truth[matrix.row] == crowd.truth[matrix.col]).mean()
    assert abs(within - homophily) < 0.02
    # Within classes, and between them, every pair is as likely as any other.
    sizes = np.bincount(crowd.truth, minlength=3)
    edges = np.zeros((3, 3))
    np.add.at(edges, (crowd.truth[matrix.row], crowd.truth[matrix.col]), 0.5)
    pairs = np.outer(sizes, sizes) / 1.0
    np.fill_diagonal(pairs, sizes * (sizes - 1) / 2)
    for part in (np.eye(3, dtype=bool), np.triu(np.ones((3, 3), bool), 1)):
        found = (edges + edges.T)[part] if part[0, 1] else edges[part]
        assert_drawn_from(found.round().astype(int), pairs[part] / pairs[part].sum())


def test_full_networks():
    assert cs.simulate.network(6, n_classes=1, degree=5).graph.n_edges == 15
    assert cs.simulate.network(1, degree=0).graph.n_edges == 0
    with pytest.raises(
        ParameterError, match=r"edges within classes would be needed.*Lower degree=, or lower homophily="
    ):
        cs.simulate.network(20, n_classes=4, degree=15, homophily=1.0)
    with pytest.raises(
        ParameterError, match=r"edges between classes would be needed.*Lower degree=, or raise homophily="
    ):
        cs.simulate.network(20, n_classes=2, degree=15, homophily=0.0)


@pytest.mark.parametrize(("size", "total"), [(0, 0), (0, 5), (5, 5), (2, 5), (4, 5), (1000, 1001), (1000, 10**12)])
def test_subsets(size, total):
    found = draw_subset(np.random.default_rng(0), size, total)
    assert len(set(found.tolist())) == size
    assert (np.diff(found) > 0).all()
    assert ((found >= 0) & (found < total)).all()


# Errors


@pytest.mark.parametrize(
    ("simulator", "options", "message"),
    [
        (0, {"n_items": 0}, "'n_items' parameter of simulate must be a whole number >= 1. Got 0"),
        (0, {"n_classes": True}, "'n_classes'"),
        (0, {"answers_per_item": 11}, "'answers_per_item' .* between 1 and 10. Got 11"),
        (0, {"answers_per_item": 9, "copycats": 2}, "between 1 and 8 .all workers but the copycats"),
        (0, {"good": "some"}, "'good' .* 'most', 'all' or a number of workers between 0 and 10. Got 'some'"),
        (0, {"good": 8, "spammers": 3}, "'good' .* between 0 and 7"),
        (0, {"spammers": -1}, "'spammers'"),
        (0, {"spammers": 6, "adversaries": 5}, "6 spammers, 5 adversaries and 0 copycats are too many for 10"),
        (0, {"accuracy": 1.5}, "'accuracy'"),
        (0, {"accuracy": "high"}, "'accuracy'"),
        (0, {"accuracy": [0.9, 0.6]}, "'accuracy' .* each of the 10 workers who are honest"),
        (0, {"activity": "lazy"}, "'activity' .* 'equal' or 'unequal'. Got 'lazy'"),
        (0, {"prior": [0.5, 0.5]}, "'prior' .* 4 probabilities that sum to 1"),
        (0, {"prior": [0.5, 0.5, 0.5, -0.5]}, "'prior'"),
        (0, {"seed": None}, "'seed'"),
        (1, {"n_sequences": 0}, "'n_sequences'"),
        (1, {"length": 0}, "'length'"),
        (1, {"length": (5, 3)}, "'length' .* pair .least, most."),
        (1, {"stickiness": 1.0}, "'stickiness' .* less than 1"),
        (1, {"transition": np.eye(3)}, "'transition' .* 4 x 4 probabilities that sum to 1 in each row"),
        (2, {"degree": 1000}, "'degree' .* between 0 and 999"),
        (2, {"homophily": 1.1}, "'homophily' .* between 0 and 1. Got 1.1"),
    ],
)
def test_errors(simulator, options, message):
    with pytest.raises(ParameterError, match=message):
        SIMULATORS[simulator](**options)


def test_one_class():
    for simulator in SIMULATORS:
        crowd = simulator(n_classes=1, spammers=1, adversaries=1, copycats=1)
        assert set(crowd.truth) == {0}
        assert set(crowd.responses.label) == {0}


# The oracle


def brute_force_posterior(crowd):
    r, true = crowd.responses, crowd.parameters
    posterior = np.tile(true.prior, (r.n_items, 1))
    for item, worker, label in zip(r.item_of_answer(), r.worker, r.label, strict=True):
        if true.copies[worker] < 0:
            posterior[item] *= true.confusion[worker, :, label]
    return posterior / posterior.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"answers_per_item": 3, "prior": [0.6, 0.2, 0.1, 0.1], "activity": "unequal"},
        {"copycats": 5, "adversaries": 2, "spammers": 1},
        {"accuracy": 1.0, "answers_per_item": 2},
        {"n_classes": 1},
        {"n_classes": 20, "n_workers": 40, "answers_per_item": 4},
    ],
)
def test_oracle_against_brute_force(options):
    crowd = cs.simulate.independent(150, **options, seed=1)
    oracle = crowd.oracle()
    expected = brute_force_posterior(crowd)
    assert np.allclose(oracle.posterior, expected, atol=1e-12)
    assert np.array_equal(oracle.labels, crowd.responses.classes[oracle.posterior.argmax(axis=1)])


def test_oracle_is_calibrated_and_on_top():
    crowd = cs.simulate.independent(20_000, answers_per_item=5, accuracy=(0.3, 0.9), copycats=3, seed=2)
    oracle = crowd.oracle()
    best = cs.metrics.accuracy(crowd.truth, oracle.labels)
    assert abs(best - oracle.posterior.max(axis=1).mean()) < 0.01
    for model in (cs.MajorityVote(), cs.DawidSkene()):
        assert cs.metrics.accuracy(crowd.truth, model.fit(crowd.responses).labels_) < best


@pytest.mark.parametrize("options", [{}, {"copycats": 2}, {"transition": [[0, 0.5, 0.5], [1, 0, 0], [0.2, 0, 0.8]]}])
def test_oracle_of_sequences_against_enumeration(options):
    crowd = cs.simulate.sequences(12, (1, 5), 4, 3, answers_per_item=2, seed=1, **options)
    r, true, oracle = crowd.responses, crowd.parameters, crowd.oracle()
    evidence = np.ones((r.n_items, 3))
    for item, worker, label in zip(r.item_of_answer(), r.worker, r.label, strict=True):
        if true.copies[worker] < 0:
            evidence[item] *= true.confusion[worker, :, label]
    for first, end in itertools.pairwise(r.sequences.offsets.tolist()):
        paths = list(itertools.product(range(3), repeat=end - first))
        chances = np.array(
            [
                true.initial[path[0]]
                * np.prod([true.transition[step] for step in itertools.pairwise(path)])
                * np.prod(evidence[np.arange(first, end), path])
                for path in paths
            ]
        )
        chances /= chances.sum()
        marginals = sum(chance * np.eye(3)[list(path)] for chance, path in zip(chances, paths, strict=True))
        assert np.allclose(oracle.posterior[first:end], marginals)
        assert oracle.labels[first:end].tolist() == list(paths[chances.argmax()])


@pytest.mark.robust
def test_oracle_of_a_network_is_a_ceiling():
    crowd = cs.simulate.network(4000, degree=4, good="most", answers_per_item=4, seed=2)
    best = cs.metrics.accuracy(crowd.truth, crowd.oracle().labels)
    fused = cs.metrics.accuracy(crowd.truth, cs.MarkovField().fit(crowd.responses, graph=crowd.graph).labels_)
    alone = cs.metrics.accuracy(crowd.truth, cs.DawidSkene().fit(crowd.responses).labels_)
    assert alone < fused <= best + 0.005
    assert best - fused < 0.02


# The command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder, so that messages hold short names."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("kind", ["independent", "sequences", "network"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_simulate_fuse_evaluate(folder, kind, suffix):
    options = ("--accuracy", "0.6,0.9", "--answers-per-item", 5, "--workers", 12, "--seed", 4)
    made = run("simulate", kind, "-o", "crowd", "--format", suffix, *options)
    assert made.exit_code == 0, made.output
    assert made.stderr == ""
    edges = [f"edges.{suffix}"] if kind == "network" else []
    assert names_in(folder / "crowd") == [f"answers.{suffix}", *edges, "parameters.json", f"truth.{suffix}"]
    steps = [line.split()[1:] for line in made.stdout.splitlines() if line.startswith("  consilience ")]
    assert [step[0] for step in steps] == ["fuse", "evaluate"]
    for step in steps:  # what it says to run next runs
        result = run(*step, "--json")
        assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["n_matched"] == 1000
    assert found["n_gold_only"] == found["n_labels_only"] == 0
    assert found["accuracy"] > 0.85


@pytest.mark.parametrize("kind", ["independent", "sequences", "network"])
@pytest.mark.parametrize("suffix", [each.name for each in writable_formats()])
def test_files_hold_what_the_library_draws(folder, kind, suffix):
    made = run(
        "simulate", kind, "-o", ".", "--format", suffix, "--spammers", 1, "--copycats", 1, "--answers-per-item", 4
    )
    assert made.exit_code == 0, made.output
    crowd = getattr(cs.simulate, kind)(spammers=1, copycats=1, answers_per_item=4)
    r = cs.read_answers(f"answers.{suffix}")
    assert r.items.tolist() == crowd.responses.items.tolist()
    assert r.workers.tolist() == list(range(10))
    for name in ("offsets", "worker", "label"):
        assert np.array_equal(getattr(r, name), getattr(crowd.responses, name))
    truth = read_table(f"truth.{suffix}").table
    keys = ["sequence", "position"] if kind == "sequences" else ["item"]
    assert truth.column_names == [*keys, "label"]
    assert truth["label"].to_pylist() == crowd.truth.tolist()
    if kind == "network":
        edges = read_table(f"edges.{suffix}").table
        assert edges.column_names == ["source", "target"]
        graph = cs.Graph.from_frame(edges, items=r.items)
        assert np.array_equal(graph.neighbours, crowd.graph.neighbours)
    true = json.loads((folder / "parameters.json").read_text())
    assert np.array_equal(true["confusion"], crowd.parameters.confusion)
    assert np.array_equal(true["prior"], crowd.parameters.prior)
    assert true["kinds"] == ["honest"] * 8 + ["spammer", "copycat"]
    assert true["copies"] == [None] * 9 + [0]
    assert ("transition" in true) == ("initial" in true) == (kind == "sequences")
    assert true["options"]["simulator"] == kind
    assert true["options"]["seed"] == 0


def test_options_reach_the_library(folder):
    options = (
        "--items 50 --classes 2 --prior .8,.2 --good 3 --activity unequal --adversaries 2 --degree 2 --homophily .7"
    )
    assert run("simulate", "network", "-o", "n", *options.split()).exit_code == 0
    expected = cs.simulate.network(
        50, n_classes=2, prior=[0.8, 0.2], good=3, activity="unequal", adversaries=2, degree=2, homophily=0.7
    )
    true = json.loads((folder / "n" / "parameters.json").read_text())
    assert np.array_equal(true["confusion"], expected.parameters.confusion)
    assert read_table("n/truth.csv").table["label"].to_pylist() == expected.truth.tolist()
    assert read_table("n/edges.csv").table.num_rows == 50
    options = ("--sequences", 7, "--length", "2,5", "--stickiness", 0.5)
    assert run("simulate", "sequences", "-o", "s", *options).exit_code == 0
    true = json.loads((folder / "s" / "parameters.json").read_text())
    assert np.array_equal(true["transition"], cs.simulate.sequences(7, (2, 5), stickiness=0.5).parameters.transition)
    assert run("simulate", "independent", "-o", "i", "--workers", 3, "--accuracy", ".5,.6,.7").exit_code == 0
    true = json.loads((folder / "i" / "parameters.json").read_text())
    assert np.allclose(np.array(true["confusion"])[:, 0, 0], [0.5, 0.6, 0.7])


def test_nothing_is_overwritten_without_force(folder):
    assert run("simulate", "independent", "-o", "crowd").exit_code == 0
    before = {path.name: path.read_bytes() for path in (folder / "crowd").iterdir()}
    refused = run("simulate", "independent", "-o", "crowd", "--seed", 1)
    assert refused.exit_code == 2
    assert "There are files already: 'crowd/answers.csv'" in refused.stderr.replace(os.sep, "/")
    assert "--force" in refused.stderr
    assert before == {path.name: path.read_bytes() for path in (folder / "crowd").iterdir()}
    assert run("simulate", "independent", "-o", "crowd", "--seed", 1, "--force").exit_code == 0
    after = {path.name: path.read_bytes() for path in (folder / "crowd").iterdir()}
    assert after.keys() == before.keys()
    assert all(after[name] != before[name] for name in after)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["independent"], "Missing option '-o'"),
        (["independent", "-o", "x", "--items", "0"], "must be a whole number >= 1. Got '0'"),
        (["independent", "-o", "x", "--answers-per-item", "11"], "Error: --answers-per-item must be a whole number"),
        (["independent", "-o", "x", "--prior", "a"], "'a' is no list of numbers"),
        (["independent", "-o", "x", "--good", "few"], "'few' is neither 'most' nor 'all'"),
        (["sequences", "-o", "x", "--length", "1,2,3"], "'1,2,3' is no length"),
        (["independent", "-o", "taken"], "'taken' is a file"),
        (["independent", "-o", "taken/x"], "The folder 'taken/x' cannot be made"),
        (["circles", "-o", "x"], "No such command 'circles'"),
    ],
)
def test_refusals(folder, arguments, message):
    (folder / "taken").write_text("mine")
    result = run("simulate", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert names_in(folder) == ["taken"]


def test_choices_are_the_librarys():
    for kind in ("independent", "sequences", "network"):
        defaults = getattr(cs.simulate, kind).__kwdefaults__
        given = {option.name: option.default for option in simulators.commands[kind].params}
        for name in ("good", "spammers", "adversaries", "copycats", "activity", "seed", "degree", "homophily"):
            assert given.get(name) == defaults.get(name)


def test_ratings_are_drawn_as_raters_see_them():
    bias, spread, careless = [-1.2, 0.0, 0.4], [0.3, 0.8, 0.5], [0.0, 0.3, 0.0]
    crowd = cs.simulate.ratings(30_000, 3, 4, None, bias=bias, spread=spread, careless=careless, seed=1)
    rng = np.random.default_rng(5)
    r, n = crowd.responses, 400_000
    for m, k in np.ndindex(3, 4):
        seen = np.clip(np.round(k + bias[m] + spread[m] * rng.standard_normal(n)), 0, 3).astype(int)
        seen = np.where(rng.random(n) < careless[m], rng.integers(4, size=n), seen)
        expected = np.bincount(seen, minlength=4) / n
        assert crowd.parameters.confusion[m, k] == pytest.approx(expected, abs=0.004)
        said = r.label[(r.worker == m) & (crowd.truth[r.item_of_answer()] == k)]
        assert np.bincount(said, minlength=4) / len(said) == pytest.approx(expected, abs=0.025)
    assert r.positions == (0.0, 1.0, 2.0, 3.0)
    assert crowd.parameters.bias.tolist() == bias


def test_raters_depend_on_the_seed_alone():
    one, other = (cs.simulate.ratings(n, 2000, per_item=2, careless=(0, 0.1), seed=4).parameters for n in (10, 20))
    for name in ("bias", "spread", "careless"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    assert one.bias.std() == pytest.approx(0.7, abs=0.05)
    assert 0.4 <= one.spread.min() < 0.41 < 1.19 < one.spread.max() <= 1.2
    assert one.careless.max() <= 0.1
    exact = cs.simulate.ratings(50, 4, bias=0, spread=0)
    assert exact.responses.label.tolist() == np.repeat(exact.truth, 3).tolist()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"bias": -1}, "'bias' parameter .* must be a standard deviation >= 0, or 4 numbers"),
        ({"bias": [0, 1, 2, np.nan]}, "'bias' parameter"),
        ({"spread": (2, 1)}, "'spread' parameter .* finite numbers >= 0"),
        ({"careless": 1.5}, r"'careless' parameter .* numbers in \[0, 1\]"),
        ({"per_item": 5}, "'per_item' parameter .* between 1 and 4"),
        ({"levels": 0}, "'levels' parameter"),
    ],
)
def test_bad_parameters_of_ratings_are_named(parameters, words):
    with pytest.raises(cs.errors.ParameterError, match=words):
        cs.simulate.ratings(10, 4, **parameters)


def test_ratings_are_written_with_their_biases(tmp_path):
    printed = run("simulate", "ratings", "-o", str(tmp_path), "--raters", "3", "--bias=-1,0,1", "--items", "20").stdout
    assert "answers.csv --ordered -o" in printed.replace("\n", " ").replace("  ", " ")
    assert json.loads((tmp_path / "parameters.json").read_text())["bias"] == [-1.0, 0.0, 1.0]
