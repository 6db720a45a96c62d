"""Workers who copy each other: found, named, and counted once by `fuse`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import consilience as cs
from benchmarks import real_crowds
from benchmarks.copies import draw_crowd, draw_teams
from consilience.answers.random_choices import find_units, hide_answers
from consilience.errors import quietly
from consilience.inference import copies
from consilience.inference.estimator import renew
from consilience.inference.observations import count_once
from real_data import needs_data

MEASURED = Path(__file__).parents[1] / "docs" / "measured" / "copies.md"
MODELS = [cs.MajorityVote(), cs.DawidSkene(), cs.MomentMatching()]


def crowd(n_items=600, n_classes=3, n_honest=6, n_copies=4, share=0.9, seed=0, **more):
    return draw_crowd(n_items, n_classes, (0.6, 0.85), n_honest, n_copies, share, seed, **more)


def accuracy(model, truth):
    return cs.metrics.accuracy(truth, model.labels_)


@pytest.fixture(scope="module")
def copied():
    votes, truth = crowd()
    return cs.Answers.from_matrix(votes, workers=[f"w{m}" for m in range(10)]), truth


GROUP = ["w0", "w6", "w7", "w8", "w9"]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_model_names_near_copies(model, copied):
    fitted = renew(model).fit(copied[0])
    assert fitted.copies_ == [GROUP]
    assert fitted.result_.given.copies_count_once is False
    report = fitted.worker_report().to_pydict()
    assert report["group"] == [1, None, None, None, None, None, 1, 1, 1, 1]
    assert report["remarks"][0].endswith("near-copy (group 1)")
    assert "near-copy" not in report["remarks"][1]


def test_sequences_and_fields_name_them_too():
    simulated = cs.simulate.sequences(60, 15, 8, 3, accuracy=(0.6, 0.8), copycats=2, stickiness=0.7, seed=1)
    assert cs.HiddenMarkov(coupling=0.5).fit(simulated.responses).copies_ == [[0, 6], [1, 7]]
    network = cs.simulate.network(800, 8, 3, accuracy=(0.6, 0.8), copycats=2, seed=1)
    model = cs.MarkovField(coupling=0.5).fit(network.responses, graph=network.graph)
    assert model.copies_ == [[0, 6], [1, 7]]


def test_fuse_counts_a_group_once_and_says_so(copied):
    r, truth = copied
    with pytest.warns(cs.errors.DataWarning, match="5 workers seem to copy each other") as caught:
        fused = cs.fuse(r, calibration="none")
    assert "'w0', 'w6', 'w7', 'w8', 'w9'" in str(caught[0].message)
    assert fused.result_.given.copies_count_once
    honest = cs.DawidSkene().fit(r.keep(~np.isin(r.worker, [6, 7, 8, 9])))
    assert accuracy(fused, truth) > accuracy(honest, truth) - 0.01
    assert accuracy(fused, truth) > accuracy(cs.DawidSkene().fit(r), truth) + 0.1
    # What is new is weighed in the same way.
    assert np.allclose(fused.predict_proba(r), fused.posterior_)
    # Each worker is judged by the labels of all.
    report = fused.worker_report().to_pydict()
    votes = np.full((r.n_items, r.n_workers), -1)
    votes[r.item_of_answer(), r.worker] = r.label
    shares = [fused.posterior_[np.arange(r.n_items), votes[:, m]].mean() for m in range(r.n_workers)]
    assert report["accuracy"] == pytest.approx(shares, abs=6e-4)  # rounded
    assert report["answers"] == [600] * 10


def test_silence_of_a_group_counts_once():
    rng = np.random.default_rng(3)
    truth = (rng.random(1500) < 0.3).astype(int)
    speaks = rng.random((1500, 7)) < np.where(truth[:, None] == 1, rng.uniform(0.3, 0.7, 7), 0.06)
    votes = np.where(speaks, 1, -1)
    votes = np.column_stack([votes, votes[:, 0], votes[:, 0]])
    r = cs.Answers.from_matrix(votes, labels=[0, 1], abstain="answer", background=0)
    with pytest.warns(cs.errors.DataWarning, match="copy each other"):
        fused = cs.fuse(r, calibration="none")
    assert fused.copies_ == [[0, 7, 8]]
    assert np.allclose(fused.predict_proba(r), fused.posterior_)
    # Exact copies that count once are as good as none.
    single = cs.Answers.from_matrix(votes[:, :7], labels=[0, 1], abstain="answer", background=0)
    alone = cs.DawidSkene(calibration="none", smoothing=(0.1, 1.1)).fit(single)
    once = cs.DawidSkene(calibration="none", smoothing=(0.1, 1.1)).fit(count_once(r, np.array([1, *[0] * 6, 1, 1])))
    assert cs.metrics.accuracy(alone.labels_, once.labels_) > 0.99
    assert np.allclose(once.confusion_[1:7], alone.confusion_[1:7], atol=0.03)


def test_shares_of_a_group_sum_to_one():
    votes = np.array([[0, 0, 1, 0], [1, -1, 1, 1], [-1, -1, 0, 1]])
    r = cs.Answers.from_matrix(votes)
    weighted = count_once(r, np.array([1, 1, 0, 1]))
    assert weighted.share.tolist() == pytest.approx([1 / 3, 1 / 3, 1, 1 / 3, 1 / 2, 1, 1 / 2, 1, 1])
    assert count_once(r, np.zeros(4, int)) is r
    assert count_once(weighted, np.array([0, 0, 1, 1])).share[3] == pytest.approx(1 / 6)


@pytest.mark.parametrize("lengths", [None, [20] * 15])
def test_a_group_is_hidden_together(lengths):
    votes, _ = crowd(300, answers_per_item=6)
    r = cs.Answers.from_matrix(votes, lengths=lengths)
    groups = np.array([1, 0, 0, 0, 0, 0, 1, 1, 2, 2])
    once = count_once(r, groups)
    owner = r.item_of_answer() if lengths is None else r.sequences.of_items()[r.item_of_answer()]
    member = np.where(groups > 0, 100 + groups, np.arange(10))[r.worker]
    for hidden, unit in hide_answers(once, 0.1, 0, 3):
        expected = {tuple(pair) for pair in np.column_stack([owner, member])[hidden].tolist()}
        shown = {tuple(pair) for pair in np.column_stack([owner, member])[~hidden].tolist()}
        assert len(expected) == unit.max() + 1
        assert not expected & shown
    assert len(find_units(once)[1]) == len(set(zip(owner.tolist(), member.tolist(), strict=True)))


@pytest.mark.parametrize(
    ("votes", "classes"),
    [
        (np.zeros((50, 6), int), [0]),  # one class
        (np.zeros((50, 6), int), [0, 1]),  # all agree about everything
        (np.arange(200).reshape(50, 4) % 2, [0, 1]),
        (np.array([[0, 1, 0, 1]]), [0, 1]),  # one item
        (np.array([[0], [1]] * 30), [0, 1]),  # one worker
        (np.array([[0, 0], [1, 1]] * 30), [0, 1]),  # two, who agree
    ],
)
def test_nobody_is_named_where_nothing_can_be_known(votes, classes):
    with quietly():
        r = cs.Answers.from_matrix(votes, labels=classes)
    with np.errstate(all="raise"):
        assert cs.MajorityVote().fit(r).copies_ == []


@pytest.mark.parametrize("kind", ["mixed", "skilled", "hard", "half at random", "one-sided"])
def test_few_false_alarms(kind):
    from benchmarks.copies import draw_clean

    named = [
        len(group)
        for n_workers, n_items in ((6, 150), (12, 400), (30, 400))
        for n_classes in (2, 4)
        for group in cs.MajorityVote().fit(draw_clean(kind, n_items, n_workers, n_classes, 5)).copies_
    ]
    assert sum(named) == 0


def test_agreement_is_counted_as_by_hand():
    votes, _ = crowd(60, 3, 5, 2, seed=4, answers_per_item=4)
    r = cs.Answers.from_matrix(votes, labels=[0, 1, 2])
    sample = copies.gather_answers(r, None, np.arange(r.n_items))
    order = np.lexsort((sample.worker, sample.item))
    assert np.array_equal(order, np.arange(len(order)))
    by_hand = {}
    for a in range(7):
        for b in range(a + 1, 7):
            both = (votes[:, a] >= 0) & (votes[:, b] >= 0)
            by_hand[a, b] = (both.sum(), (votes[both, a] == votes[both, b]).sum())
    pairs, few = copies.count_agreement(sample)
    for a, b, n_common, n_agree in zip(*pairs, strict=True):
        assert by_hand[a, b] == (n_common, n_agree)
    assert len(pairs.first) + len(few.first) == 21


@pytest.mark.parametrize(
    "limits", [{"MOST_ANSWERS_SAMPLED": 0, "MOST_APART": 1_000}, {"MOST_ANSWERS_SAMPLED": 0, "MOST_WORK": 60_000}]
)
def test_copies_are_found_in_a_sample(monkeypatch, limits):
    r, true = draw_teams(10, 3)
    whole = cs.MajorityVote().fit(r).copies_
    assert whole
    for name, value in limits.items():
        monkeypatch.setattr(copies, name, value)
    found = cs.MajorityVote().fit(r).copies_
    assert len(found) >= len(whole) * ("MOST_APART" in limits)
    assert all(group in true for group in found)


@pytest.mark.parametrize("share", [1.0, 0.8])
def test_copies_are_found_among_many_classes(share):
    """As among few: labels are numbered within each item, and nobody is accused without copies."""
    rng = np.random.default_rng(1)
    truth = rng.integers(500, size=400)
    answers = np.where(rng.random((400, 8)) < 0.7, truth[:, None], rng.integers(500, size=(400, 8)))
    copied = np.where(rng.random((400, 3)) < share, answers[:, :1], rng.integers(500, size=(400, 3)))
    answers[rng.random(answers.shape) < 0.3] = -1
    model = cs.DawidSkene(workers="one-coin")
    gold = {item: int(truth[item]) for item in range(0, 400, 9)}
    r = cs.Answers.from_matrix(np.concatenate([answers, copied], axis=1), labels=list(range(500)))
    assert model.fit(r, gold=gold).copies_ == [[0, 8, 9, 10]]
    assert model.fit(cs.Answers.from_matrix(answers, labels=list(range(500)))).copies_ == []


def test_numbered_labels_agree_where_labels_do():
    rng = np.random.default_rng(0)
    r = cs.Answers.from_matrix(rng.integers(-1, 40, (50, 6)), labels=list(range(40)))
    gold = rng.integers(-1, 40, 50).astype(np.int32)
    numbered, known = copies.number_labels(r, gold)
    item = r.item_of_answer()
    together = item[:, None] == item
    same = r.label[:, None] == r.label
    assert (same == (numbered.label[:, None] == numbered.label))[together].all()
    assert numbered.n_labels == numbered.n_classes == 20
    is_known = gold[item] >= 0
    assert ((r.label == gold[item]) == (numbered.label == known[item]))[is_known].all()


def test_the_probability_of_agreement_as_by_hand():
    """The twin takes one pair and one item at a time."""
    votes, _ = crowd(80, 2, 5, 2, seed=2)
    r = cs.Answers.from_matrix(votes)
    sample = copies.gather_answers(r, None, np.arange(r.n_items))
    rng = np.random.default_rng(0)
    prior, halves = np.array([0.6, 0.4]), rng.dirichlet([1, 1], size=(2, 7, 2)).transpose(0, 1, 3, 2)
    groups = np.array([1, 0, 0, 0, 0, 1, 1])
    pairs, _ = copies.count_agreement(sample)
    events = copies.find_events(sample, pairs)
    table = sample.label.reshape(80, 7)
    by_all = np.ascontiguousarray(halves[0].transpose(2, 0, 1))
    suspect = np.zeros(len(pairs.first), bool)
    fit = iter([(prior, halves[0]), (prior, halves[1])]).__next__
    judged = sample, pairs, suspect, events, groups, lambda *_: fit(), by_all, 0.0, False
    expected = copies.expect_agreement(*judged)

    def log_evidence(item, without):
        total = np.log(prior)
        for m in range(7):
            if m not in without:
                share = 1 / 3 if groups[m] else 1.0
                total = total + share * np.log(halves[sample.half[item], m, table[item, m]])
        return total

    def own_group(m):
        return {0, 5, 6} if groups[m] else {m}

    others = np.array([[log_evidence(i, own_group(m)) for m in range(7)] for i in range(80)])
    chances = halves[sample.half[sample.item], sample.worker, sample.label].T
    shares = np.where(groups > 0, 1 / 3, 1.0)[sample.worker]
    power = copies.choose_exponents(sample, others.reshape(-1, 2).T, chances, shares, groups, False)[0]
    posterior = np.exp(power * others)
    posterior /= posterior.sum(axis=2, keepdims=True)
    matrices = copies.learn_matrices(sample, posterior.reshape(-1, 2).T, halves.mean(axis=0).transpose(2, 0, 1))
    for event in rng.choice(len(expected), 50, replace=False):
        first, second = events[1][event], events[2][event]
        i, a, b = sample.item[first], sample.worker[first], sample.worker[second]
        q = np.exp(power * log_evidence(i, own_group(a) | own_group(b)))
        q /= q.sum()
        by_hand = sum(q[k] * matrices[k, a, label] * matrices[k, b, label] for k in range(2) for label in range(2))
        assert expected[event] == pytest.approx(by_hand)


@needs_data
@pytest.mark.parametrize("name", ["bluebird", "rte", "dog", "web", "product", "sentence_polarity"])
def test_nobody_is_named_in_real_crowds(name):
    assert cs.MajorityVote().fit(real_crowds.load(name).responses).copies_ == []


def read_tables():
    """Return the rows of each table of docs/measured/copies.md."""
    parts = MEASURED.read_text().split("\n\n")
    tables = [part.splitlines()[2:] for part in parts if part.startswith("|")]
    return [[[cell.strip(" `%") for cell in line.split("|")[1:-1]] for line in table] for table in tables]
