"""Whom to ask what next, which items are certain enough, and simulated campaigns."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import consilience as cs
from benchmarks.rounds import campaign
from command_line import run
from consilience.answers.random_choices import draw_numbers, hash_ids, hash_items
from consilience.planning import questions as planning

CROWD = cs.simulate.independent(40, n_workers=6, n_classes=3, answers_per_item=2, accuracy=(0.4, 0.9), seed=3)
FITTED = cs.DawidSkene().fit(CROWD.responses)
DENSE = cs.simulate.independent(60, n_workers=12, n_classes=3, accuracy=(0.4, 0.9), seed=2)


# ---------------------------------------------------------------------------------------------------- slow, but right


def entropy(p) -> float:
    return -sum(x * math.log(x) for x in p if x > 0)


def slow_gain(q, matrix, earlier=()) -> float:
    """I(y; a | answers of earlier workers): a sum over all answers that these may give."""
    total = 0.0
    for answers in itertools.product(*(range(len(each[0])) for each in earlier)):
        joint = [q[k] * math.prod(each[k][a] for each, a in zip(earlier, answers, strict=True)) for k in range(len(q))]
        if (whole := sum(joint)) > 0:
            given = [p / whole for p in joint]
            mixed = [sum(given[k] * matrix[k][a] for k in range(len(q))) for a in range(len(matrix[0]))]
            total += whole * (entropy(mixed) - sum(given[k] * entropy(matrix[k]) for k in range(len(q))))
    return round(total, 9)


def slow_list(model, n, *, cost=None, limits=None, budget=math.inf, known=(), neighbours=None, pending=()):
    """Take the pair with the largest gain per cost, again and again."""
    r = model.result_.answers
    items, workers = r.items.tolist(), r.workers.tolist()
    cost = dict.fromkeys(workers, 1.0) if cost is None else cost
    item_draws = draw_numbers(model.seed, hash_items(r.keys)).tolist()
    worker_draws = draw_numbers(model.seed, hash_ids(r.workers)).tolist()
    answered = set(zip(r.item_of_answer().tolist(), r.worker.tolist(), strict=True))
    group = {
        m: next((g for g, group in enumerate(model.result_.given.copies) if m in group), -1 - m)
        for m in range(len(workers))
    }
    barred = {(i, group[m]) for i, m in answered}
    q, confusion = model.posterior_.tolist(), model.confusion_.tolist()
    left = {m: math.inf if limits is None else limits[workers[m]] for m in range(len(workers))}
    asked: dict[int, list[int]] = {i: [] for i in range(len(items))}
    for item, worker in pending:
        i, m = items.index(item), workers.index(worker)
        asked[i].append(m)
        barred.add((i, group[m]))
        left[m] -= 1
    listed = []
    while len(listed) < n:
        options = []
        for i, m in itertools.product(range(len(items)), range(len(workers))):
            price = cost[workers[m]]
            if (i, group[m]) in barred or items[i] in known or left[m] < 1 or price > budget + 1e-9:
                continue
            gain = slow_gain(q[i], confusion[m], [confusion[other] for other in asked[i]])
            crowding = 1.0
            if neighbours is not None:
                crowding += sum(len(asked[j]) * share for j, share in neighbours[i])
            if gain > 0:
                options.append((-gain / price / crowding, item_draws[i], worker_draws[m], i, m, gain))
        if not options:
            break
        *_, i, m, gain = min(options)
        listed.append((items[i], workers[m], gain))
        asked[i].append(m)
        barred.add((i, group[m]))
        left[m] -= 1
        budget -= cost[workers[m]]
    return listed


def pairs(table, keys=("item",)):
    columns = [table[name].to_pylist() for name in keys]
    items = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    return list(zip(items, table["worker"].to_pylist(), strict=True))


def assert_agree(found, expected, keys=("item",)) -> None:
    assert pairs(found, keys) == [(item, worker) for item, worker, _ in expected]
    np.testing.assert_allclose(found["gain"].to_numpy(), [gain for *_, gain in expected], atol=2e-9)


def many(model) -> int:
    return len(model.result_.names.workers) * len(model.posterior_)


# ------------------------------------------------------------------------------------------------------------ the list


@pytest.mark.parametrize("n", [1, 10, 60, 120])
def test_questions_are_those_of_a_slow_twin(n):
    no_limit = many(FITTED)
    assert_agree(FITTED.next_questions(n, per_worker=no_limit), slow_list(FITTED, n))


def test_costs_budgets_and_limits_against_the_twin():
    workers = CROWD.responses.workers.tolist()
    cost = dict(zip(workers, [1.0, 2.0, 0.5, 3.0, 1.0, 0.1], strict=True))
    limits = dict(zip(workers, [3, 0, 8, 8, 2, 1], strict=True))
    assert_agree(FITTED.next_questions(200, per_worker=limits), slow_list(FITTED, 200, limits=limits))
    everything = FITTED.next_questions(budget=20, cost=cost, per_worker=1000)
    assert_agree(everything, slow_list(FITTED, 10**6, cost=cost, budget=20))
    spent = sum(everything["cost"].to_pylist())
    assert 20 - min(cost.values()) < spent <= 20 + 1e-9 or everything.num_rows == 160
    both = FITTED.next_questions(15, budget=4, cost=cost, per_worker=limits)
    assert_agree(both, slow_list(FITTED, 15, cost=cost, budget=4, limits=limits))
    assert FITTED.next_questions(budget=0.3, cost=0.1, per_worker=1000).num_rows == 3  # in spite of rounding
    assert FITTED.next_questions(budget=0.09, cost=cost).num_rows == 0
    # A unit of money makes no difference.
    cheap = FITTED.next_questions(20, cost={name: 1e-6 * price for name, price in cost.items()})
    assert pairs(cheap) == pairs(FITTED.next_questions(20, cost=cost))


def test_known_items_and_pairs_that_were_asked_are_left_out():
    gold = dict(zip(CROWD.responses.items[:9].tolist(), CROWD.truth[:9].tolist(), strict=True))
    model = cs.DawidSkene(seed=4).fit(CROWD.responses, gold=gold)
    assert_agree(model.next_questions(50, per_worker=1000), slow_list(model, 50, known=gold))
    assert model.next_questions(10**6).num_rows == 31 * 4
    first = FITTED.next_questions(30)
    second = FITTED.next_questions(30, asked=first)
    assert not set(pairs(first)) & set(pairs(second))
    for make in (pd.DataFrame, pl.DataFrame, dict):
        again = FITTED.next_questions(30, asked=make(first.to_pydict()))
        assert pairs(again) == pairs(second)
    strangers = {"item": [10**9, 0], "worker": [0, 10**9]}
    assert pairs(FITTED.next_questions(30, asked=strangers)) == pairs(first)
    with pytest.raises(cs.errors.InputError, match="'worker' is missing"):
        FITTED.next_questions(asked={"item": [1]})


@pytest.mark.parametrize("per_worker", [10**6, 9])
def test_answers_that_are_to_come_count(per_worker):
    """A list that is asked for in two parts is the same list."""
    whole = FITTED.next_questions(60, per_worker=per_worker)
    first = FITTED.next_questions(25, per_worker=per_worker)
    second = FITTED.next_questions(35, per_worker=per_worker, asked=first)
    assert pairs(first) + pairs(second) == pairs(whole)
    np.testing.assert_allclose(second["gain"].to_numpy(), whole["gain"].to_numpy()[25:], atol=2e-9)
    answered = {"item": CROWD.responses.item_of_answer(), "worker": CROWD.responses.worker}
    assert pairs(FITTED.next_questions(25, per_worker=per_worker, asked=answered)) == pairs(first)


def test_long_shortlists_and_cells_change_nothing(monkeypatch):
    crowd = cs.simulate.independent(400, n_workers=50, n_classes=4, answers_per_item=2, accuracy=(0.3, 0.9), seed=1)
    model = cs.DawidSkene().fit(crowd.responses)
    first = model.next_questions(60)
    monkeypatch.setattr(planning, "N_SHORT", 50)
    monkeypatch.setattr(planning, "LEAST_SHARING", 1)
    assert pairs(model.next_questions(60)) == pairs(first)
    monkeypatch.setattr(planning, "LEAST_SHARING", 10**9)  # one cell
    assert pairs(model.next_questions(60)) == pairs(first)
    # A list of one question is the best of all pairs.
    r = model.result_.answers
    gains = {
        (i, m): slow_gain(model.posterior_[i].tolist(), model.confusion_[m].tolist())
        for i in np.argsort(-planning.entr(model.posterior_).sum(axis=1))[:60]
        for m in range(50)
        if m not in r.worker[r.offsets[i] : r.offsets[i + 1]]
    }
    assert model.next_questions(1)["gain"].to_pylist()[0] == pytest.approx(max(gains.values()), abs=2e-9)


# -------------------------------------------------------------------------------------------------------------- workers


def test_of_workers_who_copy_each_other_one_is_asked():
    crowd = cs.simulate.independent(60, 8, 3, answers_per_item=3, accuracy=(0.5, 0.9), copycats=2, seed=5)
    model = cs.DawidSkene().fit(crowd.responses)
    copies = [[0, 6], [1, 7]]  # who they are, whether or not the fit can tell
    model._adopt(replace(model.result_, given=model.result_.given._replace(copies=copies)))
    listed = model.next_questions(10**6, per_worker=1000)
    r = crowd.responses
    there = set(zip(r.item_of_answer().tolist(), r.worker.tolist(), strict=True)) | set(pairs(listed))
    for one, other in model.result_.given.copies:
        met = {i for i, m in pairs(listed) if m in (one, other)}
        assert met
        assert all(((i, one) in there) != ((i, other) in there) for i in met)
    assert_agree(model.next_questions(25, per_worker=1000), slow_list(model, 25))
    # A copy who may not be asked has answered all the same.
    for i, _ in pairs(model.next_questions(10**6, workers=[6, 7], per_worker=1000)):
        assert not {(i, 0), (i, 1)} <= {(i, m) for i, m in there - set(pairs(listed))}


def test_odd_crowds():
    one = cs.DawidSkene().fit({"item": [1, 2], "worker": ["a", "a"], "label": ["x", "y"]})
    assert one.next_questions().num_rows == 0  # nobody is left to ask
    single = cs.DawidSkene().fit({"item": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x"] * 3})
    assert single.next_questions().num_rows == 0  # with one class there is nothing to learn
    vote = cs.MajorityVote().fit({"item": [1, 1, 2, 3], "worker": list("abac"), "label": list("xyyx")})
    assert {i for i, _ in pairs(vote.next_questions())} == {1}  # the others are certain, by their votes
    unsure = {"item": [1, 1, 2, 2, 3], "worker": list("abaca"), "label": ["x", "?", "y", "y", "x"]}
    model = cs.DawidSkene().fit(cs.Answers.from_frame(unsure, classes=["x", "y"], items=[1, 2, 3, 4]))
    assert_agree(model.next_questions(10, per_worker=100), slow_list(model, 10))
    assert 4 in [i for i, _ in pairs(model.next_questions(3))]  # nobody has answered it


def test_wrong_arguments():
    for name, values in {
        "n": (-1, 2.0, True, "3"),
        "budget": (-1, "x", math.nan, True),
        "cost": (0, -1, "x", math.inf, True),
        "per_worker": (-1, 1.5, "x"),
        "workers": ("abc", 3, {"a": 1}, [1, 1]),
    }.items():
        for value in values:
            with pytest.raises(cs.errors.ParameterError, match=f"'{name}' parameter of next_questions must be"):
                FITTED.next_questions(**{name: value})
    with pytest.raises(cs.errors.NotFittedError):
        cs.DawidSkene().next_questions()


# ----------------------------------------------------------------------------------------------------------- neighbours


def test_questions_about_neighbours_count_less():
    crowd = cs.simulate.sequences(4, length=9, n_workers=4, n_classes=3, answers_per_item=2, stickiness=0.6, seed=2)
    model = cs.HiddenMarkov(coupling=0.5).fit(crowd.responses)
    owner, near = crowd.responses.sequences.of_items(), {}
    for i in range(36):
        near[i] = [j for j in (i - 1, i + 1) if 0 <= j < 36 and owner[i] == owner[j]]
    shares = {i: [(j, 1 / len(near[i])) for j in near[i]] for i in near}
    expected = slow_list(model, 40, neighbours=shares)
    assert_agree(model.next_questions(40, per_worker=100), expected, ("sequence", "position"))
    free = cs.HiddenMarkov(coupling=0.0).fit(crowd.responses)
    assert_agree(free.next_questions(40, per_worker=100), slow_list(free, 40), ("sequence", "position"))


# ----------------------------------------------------------------------------------------------------- certain enough


def test_items_to_stop_paying_for():
    model = cs.DawidSkene().fit(DENSE.responses)
    done = model.stop_items(0.8).to_pydict()
    frame = model.to_frame().to_pydict()
    sure = {i: c for i, c in zip(frame["item"], frame["confidence"], strict=True) if c >= 0.8}
    assert dict(zip(done["item"], done["confidence"], strict=True)) == sure
    assert done["confidence"] == sorted(sure.values(), reverse=True)
    labels = dict(zip(frame["item"], frame["label"], strict=True))
    assert done["label"] == [labels[i] for i in done["item"]]
    found = model.result_.undecided(0.8)
    assert (len(done["item"]), done["expected_errors"][-1]) == (found.n_kept, pytest.approx(found.expected_errors))
    assert model.stop_items(0).num_rows == 60
    with pytest.raises(cs.errors.ParameterError, match="'confidence' parameter of stop_items must be a number from 0"):
        model.stop_items(1.5)
    sequences = cs.simulate.sequences(3, length=5, n_workers=3, seed=1).responses
    assert cs.HiddenMarkov().fit(sequences).stop_items(0).column_names[:2] == ["sequence", "position"]


# -------------------------------------------------------------------------------------------------------- command line


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    r = CROWD.responses
    table = {"item": r.item_of_answer(), "worker": r.worker, "label": r.label}
    model = cs.DawidSkene().fit(pa.table(table))
    model.save("crowd.model")
    return model


def test_questions_on_the_command_line(saved):
    done = run("next", "crowd.model", "--questions", "-n", "30", "-o", "questions.csv", "--json")
    listed = json.loads(done.stdout)["questions"]
    assert listed == saved.next_questions(30).to_pylist()
    table = pd.read_csv("questions.csv")
    assert list(table.columns) == ["item", "worker", "label", "gain", "cost"]
    assert table["label"].isna().all()
    again = json.loads(run("next", "crowd.model", "--questions", "--asked", "questions.csv", "--json").stdout)
    assert again["questions"] == saved.next_questions(50, asked=table).to_pylist()
    pd.DataFrame({"worker": [1, 2], "cost": [1.0, 2.0], "per_worker": [3, 2]}).to_csv("workers.csv", index=False)
    some = run("next", "crowd.model", "--questions", "--workers", "workers.csv", "--budget", "5", "--json")
    expected = saved.next_questions(workers=[1, 2], budget=5, cost={1: 1.0, 2: 2.0}, per_worker={1: 3, 2: 2})
    assert json.loads(some.stdout)["questions"] == expected.to_pylist()


# ------------------------------------------------------------------------------------------------------------ campaigns


def test_a_campaign_pays_for_what_it_asks():
    curve = campaign(DENSE, batch=90, budget=300, seed=1).to_pydict()
    assert list(curve) == ["items", "answers", "accuracy", "expected_accuracy"]
    assert curve["answers"] == [120, 210, 300]
    again = campaign(DENSE, "random", batch=90, budget=300, seed=1).to_pydict()
    assert (again["answers"], again["accuracy"][0]) == (curve["answers"], curve["accuracy"][0])
    everything = campaign(DENSE, budget=10**6, batch=400).to_pydict()
    assert everything["answers"][-1] == 60 * 12
    full = cs.DawidSkene().fit(DENSE.responses)
    assert everything["accuracy"][-1] == np.mean(full.labels_ == DENSE.truth)
    assert campaign(DENSE, batch=400)["answers"].to_pylist()[-1] == 8 * 60


def test_answers_are_revealed_when_they_are_asked_for():
    seen = []

    def policy(model, n):
        seen.append(model.result_.answers)
        return {"item": [0, 0, 1, 10**6], "worker": [3, 3, 4, 0], "n": [n] * 4}

    campaign(DENSE, policy, batch=4)
    first, last = seen[0], seen[-1]
    assert (np.diff(first.offsets) == 2).all()
    assert len(seen) == 2 or last.n_responses == first.n_responses  # then there is nothing left that it asks for
    whole = {
        (i, m): a
        for i, m, a in zip(DENSE.responses.item_of_answer(), DENSE.responses.worker, DENSE.responses.label, strict=True)
    }
    for i, m, a in zip(last.item_of_answer(), last.worker, last.label, strict=True):
        assert whole[i, m] == a
    assert {(0, 3), (1, 4)} <= set(zip(last.item_of_answer().tolist(), last.worker.tolist(), strict=True))
    with pytest.raises(ValueError, match="columns item and worker"):
        campaign(DENSE, lambda model, n: {"item": [1]})


def test_who_answers_by_chance_is_not_asked():
    crowd = cs.simulate.independent(200, n_workers=10, n_classes=4, answers_per_item=5, accuracy=0.8, seed=2)
    r, rng = crowd.responses, np.random.default_rng(0)
    said = np.where(r.worker == 3, rng.integers(4, size=r.n_responses), r.label)
    model = cs.fuse({"item": r.item_of_answer(), "worker": r.worker, "label": said})
    assert model.worker_report()["remarks"].to_pylist()[3] == "answers as if by chance"
    assert 3 not in model.next_questions(300)["worker"].to_pylist()
    assert 3 in model.next_questions(300, workers=[3, 4])["worker"].to_pylist()  # who is named may be asked


def test_functions_are_not_asked():
    votes = np.where(np.random.default_rng(0).random((120, 5)) < 0.4, -1, np.arange(120)[:, None] % 2)
    model = cs.fuse(cs.Answers.from_matrix(votes), source_kind="functions")
    with pytest.raises(cs.errors.ParameterError, match="functions answer all that they can"):
        model.next_questions()
    assert len(cs.fuse(cs.Answers.from_matrix(votes)).next_questions())
    with pytest.warns(cs.errors.DataWarning, match="were not there at the fit"):
        assert set(model.next_questions(workers=["ann"])["worker"].to_pylist()) == {"ann"}
