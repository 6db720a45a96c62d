"""The label is the most probable class of the probabilities that are reported, except where a named rule decides."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import consilience as cs
from consilience.models.latent import LatentModel

# One of these is drawn for each crowd of independent items, and one for each crowd of sequences.
MODELS = [
    *(
        cs.DawidSkene,
        lambda: cs.DawidSkene(workers="one-coin", calibration="none"),
        lambda: cs.DawidSkene(calibration=0.3),
    ),
    *(lambda: cs.DawidSkene(estimation="em", calibration="none"), lambda: cs.DawidSkene(calibration="none")),
    *(cs.MajorityVote, cs.MomentMatching),
]
CHAINS = [
    cs.HiddenMarkov,
    lambda: cs.HiddenMarkov(decode="marginal", calibration="none"),
    lambda: cs.HiddenMarkov(workers="sequential", calibration="none"),
]


def draw_table(rng, n_items=None):
    """Return the answers of a small crowd, of workers of mixed skill, as columns, and the truth."""
    n_items = int(rng.integers(10, 40)) if n_items is None else n_items
    n_workers, n_classes = int(rng.integers(2, 9)), int(rng.integers(2, 7))
    truth = rng.integers(0, n_classes, n_items)
    right = rng.random((n_items, n_workers)) < rng.uniform(0.2, 0.95, n_workers)
    said = np.where(right, truth[:, None], rng.integers(0, n_classes, (n_items, n_workers)))
    item, worker = np.nonzero(rng.random(said.shape) < rng.choice([0.3, 0.6, 1.0]))
    table = {"item": item, "worker": worker, "label": np.array([f"c{k}" for k in range(n_classes)])[said[item, worker]]}
    if rng.random() < 0.3:
        table["weight"] = rng.uniform(0.2, 1.0, len(item))
    return table, dict(enumerate(f"c{k}" for k in truth.tolist()))


def in_sequences(table):
    """Return the same answers with items in sequences of five."""
    sequence, position = np.divmod(table["item"], 5)
    return {"sequence": sequence, "position": position, **{name: table[name] for name in ("worker", "label")}}


def count_exceptions(frame, by_vote=False):
    """Return how many labels that no rule decided are not the most probable class; a vote draws lots among these."""
    frame = frame.to_pandas()
    shown = [name for name in frame if name.startswith("p(")]
    posterior = frame[shown].to_numpy()
    rules = frame["decided_by"].to_numpy() if "decided_by" in frame else np.full(len(frame), "")
    np.testing.assert_allclose(
        frame["confidence"], posterior[np.arange(len(frame)), [shown.index(f"p({label})") for label in frame["label"]]]
    )
    first = np.array([name[2:-1] for name in shown])[posterior.argmax(axis=1)] == frame["label"]
    most = first if not by_vote else frame["confidence"] > posterior.max(axis=1) - 1e-9
    return int((~most.to_numpy() & (rules == "")).sum())


def pick_gold(rng, table, truth):
    """Return some known labels of answered items, with classes that were answered; None for half of the crowds."""
    items = [item for item in np.unique(table["item"]).tolist() if truth[item] in set(table["label"].tolist())]
    some = rng.choice(items, min(5, len(items)), replace=False).tolist() if items and rng.random() < 0.5 else []
    return {item: truth[item] for item in some} or None


def in_arrow(table, **columns):
    return cs.Answers.from_frame(pa.table(table), **columns, **({"weight": "weight"} if "weight" in table else {}))


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
@pytest.mark.parametrize("part", range(5))
def test_labels_of_60_random_crowds(part):
    n_exceptions = 0
    for seed in range(12 * part, 12 * part + 12):
        rng = np.random.default_rng(seed)
        table, truth = draw_table(rng)
        gold, chain = pick_gold(rng, table, truth), seed % 4 == 3
        model = (CHAINS if chain else MODELS)[seed % (len(CHAINS) if chain else len(MODELS))]()
        if chain:
            table = in_sequences(table)
            gold = None if gold is None else {divmod(item, 5): label for item, label in gold.items()}
        answers, by_vote = in_arrow(table), isinstance(model, cs.MajorityVote)
        model.fit(answers, gold=gold)
        frames = [model.to_frame(), model.predict(answers, gold=gold, as_frame=True)]
        if isinstance(model, LatentModel):
            more, _ = draw_table(rng, n_items=10)
            more["label"] = rng.choice(np.unique(table["label"]), len(more["label"]))
            more["item"] += 1000
            new = in_arrow(in_sequences(more) if chain else {name: more[name] for name in ("item", "worker", "label")})
            frames.append(model.update(new).to_frame())
        for frame in frames:
            n_exceptions += count_exceptions(frame, by_vote)
            can_rule = gold is not None or getattr(model, "decode", "") == "viterbi"
            assert ("decided_by" in frame.column_names) == can_rule
            if can_rule:
                assert frame.column_names[-1] == "decided_by"
                assert frame["decided_by"].to_pylist().count("known label") == (0 if gold is None else len(gold))
    assert n_exceptions == 0


def draw_single(n_items=300, n_workers=10, seed=1):
    """Return a crowd in which each item has one answer."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_items)
    said = np.where(rng.random(n_items) < 0.79, truth, rng.integers(0, 3, n_items))
    return {"item": np.arange(n_items), "worker": np.arange(n_items) % n_workers, "label": np.array(list("abc"))[said]}


def is_empty(frame):
    """Tell whether a table of labels has no confidences and probabilities, but all labels."""
    names = [name for name in frame.column_names if name == "confidence" or name.startswith("p(")]
    assert frame["label"].null_count == 0
    empty = {frame[name].null_count == len(frame) for name in names}
    assert len(empty) == 1
    return empty.pop()


@pytest.mark.filterwarnings("ignore:Moments do not determine")
@pytest.mark.parametrize("model", [cs.DawidSkene, cs.MajorityVote, cs.MomentMatching])
def test_one_answer_per_item_has_no_confidences(model, tmp_path):
    answers = pa.table(draw_single())
    found = model().fit(answers)
    assert is_empty(found.to_frame())
    assert is_empty(found.predict(answers, as_frame=True))
    assert np.isfinite(found.posterior_).all()
    found.write(tmp_path / "labels.csv")
    assert ",,,," in (tmp_path / "labels.csv").read_text().splitlines()[1]
    report = found.worker_report()
    for name in report.column_names:
        if name.startswith(("accuracy", "informativeness")):
            assert report[name].null_count == len(report), name
    assert set(report["worst_confusion"].to_pylist()) | set(report["remarks"].to_pylist()) == {""}
    assert len(found.stop_items()) == 0
    assert found.result_.undecided(0.9).n_kept == 0
    assert found.next_items(5)["confidence"].null_count == 5
    assert "nothing checks the answers" in repr(found)
    found.save(tmp_path / "model")
    assert is_empty(cs.load(tmp_path / "model").to_frame())
    result = cs.evaluate(found, dict.fromkeys(range(20), "a"))
    assert result.n_matched == 20
    assert result.log_loss is None


def answer_again(table, n_items):
    """Return answers with those to the first items given by another worker as well."""
    twice = {name: np.append(column, column[:n_items]) for name, column in table.items()}
    twice["worker"][300:] = 99
    return twice


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
@pytest.mark.parametrize("n_twice", [1, 29])
def test_a_few_items_with_two_answers_do_not_check_the_others(n_twice):
    table = answer_again(draw_single(), n_twice)
    for found in (cs.DawidSkene().fit(pa.table(table)), cs.fuse(pa.table(table))):
        assert is_empty(found.to_frame())
        assert found.worker_report()["accuracy"].null_count == len(found.worker_report())
    assert is_empty(cs.DawidSkene().fit(pa.table(draw_single()), gold={0: "a"}).to_frame())
    (finding,) = [each for each in found.findings_ if each.kind == "unchecked"]
    assert finding.problem.startswith("Nearly every item has only one answer: nothing checks them.")
    assert "nothing checks them" in found.comparison_.withheld


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
def test_what_else_checks_single_answers_keeps_confidences():
    table = draw_single()
    twice = answer_again(table, 30)
    rng = np.random.default_rng(0)
    features = np.eye(3)[[ord(label) - ord("a") for label in table["label"]]] + rng.normal(0, 0.3, (300, 3))
    found = cs.DawidSkene()
    assert not is_empty(found.fit(pa.table(table), gold=dict.fromkeys(range(10), "a")).to_frame())
    assert not is_empty(found.fit(pa.table(twice)).to_frame())
    assert not is_empty(found.fit(pa.table(table), item_prior=np.full((300, 3), 1 / 3)).to_frame())
    feature_fit = found.fit(pa.table(table), features=features)
    assert is_empty(feature_fit.to_frame()) == (not feature_fit.result_.feature_result.findings.used)
    assert not is_empty(cs.HiddenMarkov().fit(pa.table(in_sequences(table))).to_frame())
    found = cs.DawidSkene().partial_fit(pa.table(twice)).partial_fit(pa.table(table | {"item": table["item"] + 1000}))
    assert not is_empty(found.to_frame())
    more = pa.table({"item": np.arange(30), "worker": [77] * 30, "label": ["a", "b", "c"] * 10})
    assert not is_empty(cs.DawidSkene().fit(pa.table(table)).update(more).to_frame())
