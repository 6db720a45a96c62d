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
from consilience.errors import ParameterError
from consilience.formats import writable_formats
from consilience.formats.reading import read_table
from consilience.options import ACTIVITIES
from consilience.simulate import crowds

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


@pytest.mark.parametrize(("n_workers", "good", "expected"), [(10, "most", 6), (7, "most", 4), (7, "all", 7), (7, 2, 2)])
def test_the_papers_better_than_random(n_workers, good, expected):
    for seed in range(5):
        confusion = cs.simulate.independent(5, n_workers, 4, good=good, seed=seed).parameters.confusion
        best = confusion.argmax(axis=2) == np.arange(4)
        assert best[:expected].all()
        # The others are as drawn: by chance a row is right once in four.
        assert not best[expected:].all(axis=1).any()


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
    monkeypatch.setattr(crowds, "MANY_EDGES", many)
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


# Errors


@pytest.mark.parametrize(
    ("simulator", "options", "message"),
    [
        (0, {"answers_per_item": 11}, "'answers_per_item' .* between 1 and 10. Got 11"),
        (0, {"good": "some"}, "'good' .* 'most', 'all' or a number of workers between 0 and 10. Got 'some'"),
        (0, {"spammers": 6, "adversaries": 5}, "6 spammers, 5 adversaries and 0 copycats are too many for 10"),
        (0, {"accuracy": [0.9, 0.6]}, "'accuracy' .* each of the 10 workers who are honest"),
        (0, {"activity": "lazy"}, "'activity' .* one of 'equal', 'unequal'. Got 'lazy'"),
        (1, {"n_sequences": 0}, "'n_sequences'"),
        (1, {"length": (5, 3)}, "'length' .* pair .least, most."),
        (1, {"transition": np.eye(3)}, "'transition' .* 4 x 4 probabilities that sum to 1 in each row"),
        (2, {"degree": 1000}, "'degree' .* between 0 and 999"),
        (2, {"homophily": 1.1}, "'homophily' .* between 0 and 1. Got 1.1"),
    ],
)
def test_errors(simulator, options, message):
    with pytest.raises(ParameterError, match=message):
        SIMULATORS[simulator](**options)


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
    ],
)
def test_oracle_against_brute_force(options):
    crowd = cs.simulate.independent(150, **options, seed=1)
    oracle = crowd.oracle()
    expected = brute_force_posterior(crowd)
    assert np.allclose(oracle.posterior, expected, atol=1e-12)
    assert np.array_equal(oracle.labels, crowd.responses.classes[oracle.posterior.argmax(axis=1)])


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


# The command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder, so that messages hold short names."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


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
        (["independent", "-o", "x", "--answers-per-item", "11"], "Error: --answers-per-item must be a whole number"),
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


def test_ratings_are_written_with_their_biases(tmp_path):
    printed = run("simulate", "ratings", "-o", str(tmp_path), "--raters", "3", "--bias=-1,0,1", "--items", "20").stdout
    assert "answers.csv --ordered -o" in printed.replace("\n", " ").replace("  ", " ")
    assert json.loads((tmp_path / "parameters.json").read_text())["bias"] == [-1.0, 0.0, 1.0]
