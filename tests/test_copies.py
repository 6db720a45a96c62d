"""Workers who copy each other: found, named, and counted once by `fuse`."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import consilience as cs
import oracles
from benchmarks import real_crowds
from benchmarks.copies import draw_crowd, draw_teams
from consilience.answers.random_choices import find_units, hide_answers
from consilience.errors import quietly
from consilience.inference import copies
from consilience.inference.estimator import renew
from consilience.inference.moments import answers_to_match
from consilience.inference.sources import count_once
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
    assert fitted.result_.copies_count_once is False
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
    assert fused.result_.copies_count_once
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


@pytest.mark.parametrize("model", ["majority", "moments"])
def test_fuse_counts_once_by_other_models(model, copied):
    r, truth = copied
    with pytest.warns(cs.errors.ConsilienceWarning):
        fused = cs.fuse(r, model=model)
    alone = cs.DawidSkene().fit(r) if model == "majority" else cs.MomentMatching().fit(r)
    assert fused.result_.copies_count_once
    assert accuracy(fused, truth) > accuracy(alone, truth)


def test_moments_of_one_member_of_each_group(copied):
    r, truth = copied
    groups = np.array([1, 0, 0, 0, 0, 0, 1, 1, 1, 1])
    answers = answers_to_match(count_once(r, groups))
    leader = answers.leader[0]
    assert leader in (0, 6, 7, 8, 9)
    assert np.bincount(answers.worker, minlength=10).tolist() == [
        600 if m in (1, 2, 3, 4, 5, leader) else 0 for m in range(10)
    ]
    drawn = answers.label[answers.worker == leader]
    votes = r.label.reshape(600, 10)
    assert (votes[:, groups > 0] == drawn[:, None]).any(axis=1).all()
    with quietly():
        fused = cs.fuse(r, model="moments")
    honest = cs.MomentMatching().fit(r.keep(r.worker < 6))
    assert accuracy(fused, truth) > accuracy(honest, truth) - 0.01
    assert np.array_equal(fused.confusion_[0], fused.confusion_[9])


def test_a_fit_without_copies_says_nothing():
    votes, _ = crowd(n_copies=0, n_honest=8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fused = cs.fuse(cs.Answers.from_matrix(votes))
    assert not any("copy" in str(warning.message) for warning in caught)
    assert fused.copies_ == []
    assert not fused.result_.copies_count_once
    assert fused.worker_report()["group"].to_pylist() == [None] * 8


def test_groups_survive_saving(copied, tmp_path):
    with pytest.warns(cs.errors.DataWarning, match="copy each other"):
        fused = cs.fuse(copied[0])
    loaded = cs.load(fused.save(tmp_path / "a.model"))
    assert loaded.copies_ == [GROUP]
    assert loaded.result_.copies_count_once
    assert loaded.worker_report().equals(fused.worker_report())
    assert np.array_equal(loaded.predict_proba(copied[0]), fused.predict_proba(copied[0]))


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


def test_shares_of_spread_answers_sum_to_one():
    soft = np.random.default_rng(0).dirichlet([1, 1, 1], size=(40, 5))
    soft[np.random.default_rng(1).random((40, 5)) < 0.3] = np.nan
    r = oracles.spread_answers(soft)
    groups = np.array([1, 2, 0, 1, 2])
    weighted = count_once(r, groups)
    answered = ~np.isnan(soft[:, :, 0])
    for i, m, share in zip(r.item_of_answer(), r.worker, weighted.share, strict=True):
        size = (answered[i] & (groups == groups[m])).sum() if groups[m] else 1
        assert share == pytest.approx(1 / size)
    assert np.array_equal(np.argwhere(answered).T, weighted.votes())
    assert np.array_equal(answered.sum(axis=0), weighted.votes_per_worker())


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


def test_copies_of_noise_are_noise():
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 3, (500, 4))
    again = np.where(rng.random(noise.shape) < 0.03, rng.integers(0, 3, noise.shape), noise)
    with quietly():
        fused = cs.fuse(cs.Answers.from_matrix(np.column_stack([noise, again])))
    assert fused.copies_ == [[m, m + 4] for m in range(4)]
    comparison = fused.comparison_
    assert fused.power_ < 0.2
    assert comparison.verdict != "better"
    assert comparison.withheld == "the answers show no signal"
    assert comparison.alpha_low < 0


def test_alpha_without_pairs_of_one_group():
    votes, _ = crowd(60, 3, 5, 2, seed=4, answers_per_item=4)
    groups = np.array([1, 0, 0, 0, 2, 1, 2])
    once = count_once(cs.Answers.from_matrix(votes, labels=[0, 1, 2]), groups)
    item, member = once.item_of_answer(), np.where(groups > 0, 100 + groups, np.arange(7))[once.worker]
    paired = [len(set(member[item == i])) > 1 for i in range(60)]
    observed, mass, same, every = 0.0, 0.0, 0.0, 0.0
    chosen = np.flatnonzero(np.array(paired)[item])
    for i in np.flatnonzero(paired):
        agree = total = 0.0
        for a in np.flatnonzero(item == i):
            for b in np.flatnonzero(item == i):
                if member[a] != member[b]:
                    weight = once.weights()[a] * once.weights()[b]
                    total, agree = total + weight, agree + weight * (once.label[a] == once.label[b])
        n = once.weights()[item == i].sum()
        observed, mass = observed + n * (1 - agree / total), mass + n
    for a in chosen:
        for b in chosen:
            if item[a] != item[b] or member[a] != member[b]:
                weight = once.weights()[a] * once.weights()[b]
                every, same = every + weight, same + weight * (once.label[a] == once.label[b])
    alpha = 1 - observed / mass / (1 - same / every)
    assert cs.metrics.krippendorff_alpha(once) == pytest.approx(alpha)
    assert cs.metrics.krippendorff_interval(once).alpha == pytest.approx(alpha)


def test_the_order_of_rows_does_not_matter(copied):
    r, _ = copied
    item, worker, label = r.items[r.item_of_answer()], r.workers[r.worker], r.labels[r.label]
    order = np.random.default_rng(0).permutation(len(item))
    table = {"item": item[order].astype(str), "worker": worker[order], "label": label[order].astype(str)}
    assert cs.MajorityVote().fit(table).copies_ == [GROUP]


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


def test_known_labels_judge(copied):
    r, truth = copied
    gold = dict(zip(r.items[:200].tolist(), truth[:200].tolist(), strict=True))
    assert cs.DawidSkene().fit(r, gold=gold).copies_ == [GROUP]


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
    sample = copies.draw_sample(r, None)
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


def test_common_items_of_pairs_as_by_hand():
    votes, _ = crowd(60, 3, 5, 2, seed=4, answers_per_item=4)
    r = cs.Answers.from_matrix(votes, labels=[0, 1, 2])
    first, second = np.triu_indices(7, 1)
    item = r.item_of_answer()
    pair, one, other = copies.look_up(r.worker.astype(np.int64), item, 7, copies.Pairs(first, second, np.zeros(21)))
    assert np.array_equal(item[one], item[other])
    for p, (a, b) in enumerate(zip(first, second, strict=True)):
        both = np.flatnonzero((votes[:, a] >= 0) & (votes[:, b] >= 0))
        assert item[one[pair == p]].tolist() == both.tolist()


def test_copies_in_a_large_crowd():
    """Most of the common items of two workers are not in the sample."""
    r, true = draw_teams(100, 3)
    found = cs.MajorityVote().fit(r).copies_
    assert len(found) >= 2
    assert all(group in true for group in found)
    assert cs.MajorityVote().fit(draw_teams(100, 0)[0]).copies_ == []


@pytest.mark.parametrize("limits", [{"MOST_ANSWERS": 0, "MOST_APART": 1_000}, {"MOST_ANSWERS": 0, "MOST_WORK": 60_000}])
def test_copies_are_found_in_a_sample(monkeypatch, limits):
    r, true = draw_teams(10, 3)
    whole = cs.MajorityVote().fit(r).copies_
    assert whole
    for name, value in limits.items():
        monkeypatch.setattr(copies, name, value)
    found = cs.MajorityVote().fit(r).copies_
    assert len(found) >= len(whole) * ("MOST_APART" in limits)
    assert all(group in true for group in found)


def test_the_probability_of_agreement_as_by_hand():
    """The twin takes one pair and one item at a time."""
    votes, _ = crowd(80, 2, 5, 2, seed=2)
    r = cs.Answers.from_matrix(votes)
    sample = copies.draw_sample(r, None)
    rng = np.random.default_rng(0)
    prior, halves = np.array([0.6, 0.4]), rng.dirichlet([1, 1], size=(2, 7, 2)).transpose(0, 1, 3, 2)
    fits = iter([(prior, halves[0]), (prior, halves[1])])
    groups = np.array([1, 0, 0, 0, 0, 1, 1])
    pairs, _ = copies.count_agreement(sample)
    events = copies.find_events(sample, pairs, np.zeros(len(pairs.first), bool))
    said = copies.interpret_answers(sample, groups, lambda *_: next(fits))
    fits = iter([(prior, halves[0]), (prior, halves[1])])
    table = sample.label.reshape(80, 7)
    by_all = np.ascontiguousarray(halves[0].transpose(2, 0, 1))
    expected = copies.expect_agreement(sample, events, groups, lambda *_: next(fits), by_all, 0.0)

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
    power = copies.choose_exponents(sample, others.reshape(-1, 2).T, said, groups)[0]
    posterior = np.exp(power * others)
    posterior /= posterior.sum(axis=2, keepdims=True)
    matrices = copies.learn_matrices(sample, posterior.reshape(-1, 2).T, halves.mean(axis=0).transpose(2, 0, 1))
    for event in rng.choice(len(expected), 50, replace=False):
        first, second = events.first[event], events.second[event]
        i, a, b = sample.item[first], sample.worker[first], sample.worker[second]
        q = np.exp(power * log_evidence(i, own_group(a) | own_group(b)))
        q /= q.sum()
        by_hand = sum(q[k] * matrices[k, a, label] * matrices[k, b, label] for k in range(2) for label in range(2))
        assert expected[event] == pytest.approx(by_hand)


def test_what_counts_as_copied():
    n_common, n_agree, chance = np.array([40.0, 40.0, 40.0]), np.array([38.0, 30.0, 22.0]), np.array([0.5, 0.5, 0.5])
    tails = binom.sf(n_agree - 1, 40, 0.5)
    assert copies.is_copied(n_common, n_agree, chance, 1.0).tolist() == [True, True, False]  # 90 %, 50 % and 10 %
    assert copies.is_copied(n_common, n_agree, chance, float(tails[1]) * 1.01).tolist() == [True, True, False]
    assert copies.is_copied(n_common, n_agree, chance, float(tails[1]) * 0.99).tolist() == [True, False, False]


@needs_data
@pytest.mark.parametrize("name", ["bluebird", "rte", "dog", "web", "product", "sentence_polarity"])
def test_nobody_is_named_in_real_crowds(name):
    assert cs.MajorityVote().fit(real_crowds.load(name).responses).copies_ == []


def read_tables():
    """Return the rows of each table of docs/measured/copies.md."""
    parts = MEASURED.read_text().split("\n\n")
    tables = [part.splitlines()[2:] for part in parts if part.startswith("|")]
    return [[[cell.strip(" `%") for cell in line.split("|")[1:-1]] for line in table] for table in tables]


def test_what_the_page_says():
    copied, clean, teams, functions, cost = read_tables()
    # Within 0.01 of the fit without the copies, with 1,000 items.
    enough = [row for row in copied if row[1] == "1,000"]
    assert len(enough) == 6
    assert all(float(row[5]) > float(row[6]) - 0.01 for row in enough)
    assert all(float(row[5]) >= float(row[4]) for row in copied)
    # At most one false alarm for a hundred workers, and none in real crowds.
    assert all(float(row[3]) <= 1 for row in clean)
    assert "\nNobody is named in `bluebird` (39), " in MEASURED.read_text()
    # Copies are found in large crowds, too.
    assert [row[0] for row in teams] == ["100", "1,000", "3,000"]
    assert all(int(row[1]) >= 50 for row in teams)
    assert all(row[2] == "0" for row in teams)
    assert float(functions[2][1]) > float(functions[0][1])
    assert int(cost[-1][3]) <= 30


def test_spread_answers_count_once_too():
    votes, truth = crowd(400, 3, 6, 3, 1.0, seed=1)
    soft = np.where(np.eye(3)[votes] > 0, 0.8, 0.1)
    with pytest.warns(cs.errors.DataWarning, match="copy each other"):
        fused = cs.fuse(cs.Answers.from_probabilities(soft))
    assert fused.copies_ == [[0, 6, 7, 8]]
    assert accuracy(fused, truth) > 0.85
