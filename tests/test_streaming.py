"""Streams: fits that go on from the statistics of earlier batches."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

import consilience as cs
from consilience.errors import InputError, NotFittedError, ParameterError


def crowd_of(n_items=400, seed=3, **further):
    options = {"n_workers": 8, "n_classes": 3, "answers_per_item": 4, "accuracy": (0.5, 0.95)} | further
    return cs.simulate.independent(n_items, seed=seed, **options)


def cut(r, n_batches):
    return [r.about(part) for part in np.array_split(np.arange(r.n_items), n_batches)]


def stream(model, batches):
    """Return the posteriors and traces of all batches."""
    posteriors, traces = [], []
    for batch in batches:
        model.partial_fit(batch)
        posteriors.append(model.uncalibrated_posterior_)
        traces.append(model.trace_)
    return posteriors, traces


def table(r, **changed):
    item = r.items[r.item_of_answer()]
    return {"item": item, "worker": r.workers[r.worker], "label": r.labels[r.label]} | changed


def spoken(n_items, first=0, seed=1):
    """Return answers in which silence says "O"."""
    crowd = cs.simulate.independent(n_items, n_workers=5, n_classes=3, accuracy=0.8, seed=seed)
    rows = table(crowd.responses)
    said = rows["label"] > 0
    named = np.array(["O", "A", "B"], object)[rows["label"][said]]
    rows = {"item": rows["item"][said] + first, "worker": rows["worker"][said], "label": named}
    items = first + np.arange(n_items)
    return cs.Answers.from_frame(rows, items=items, classes=["A", "B", "O"], abstain="answer", background="O")


def sequences_of(n_batches, **further):
    options = {"length": 10, "n_workers": 5, "n_classes": 3, "answers_per_item": 3} | further
    return [cs.simulate.sequences(15, seed=seed, **options).responses for seed in range(n_batches)]


# ------------------------------------------------------------------------------------------------------ what is learned


def test_counts_add_up_at_the_posteriors_of_each_batch():
    r = crowd_of(120).responses
    model, expected, chances = cs.DawidSkene(smoothing=(0.1, 1.1)), np.zeros((8, 3, 3)), np.zeros((3, 8))
    for batch in cut(r, 3):
        model.partial_fit(batch)
        for worker, label, q in zip(
            batch.worker, batch.label, model.uncalibrated_posterior_[batch.item_of_answer()], strict=True
        ):
            expected[worker, label] += q
            chances[:, worker] += 1, q[label], q[label] ** 2
    np.testing.assert_allclose(model.result_.estimates.counts, expected, rtol=1e-7)
    np.testing.assert_allclose(model.result_.past.chances, chances, rtol=1e-7)
    smoothed = expected.transpose(0, 2, 1) + 0.1 + np.eye(3)
    # The last E-step comes after the last M-step.
    np.testing.assert_allclose(model.confusion_, smoothed / smoothed.sum(axis=2, keepdims=True), atol=1e-3)


def test_objective_counts_what_was_learned_before():
    """Slow: the log likelihood of the batch, and that of earlier expected answers, with the pseudo-counts of EM."""
    first, second = cut(crowd_of(60).responses, 2)
    model = cs.DawidSkene(estimation="em", smoothing=0.3, calibration="none", max_iter=5, tol=0).partial_fit(first)
    counts, mass = model.result_.estimates.counts.copy(), model.result_.past.summary.mass
    model.partial_fit(second)
    value = np.sum((counts + 0.3) * np.log(model.confusion_.transpose(0, 2, 1)))
    value += np.sum((mass + 0.3) * np.log(model.prior_))
    for i in range(second.n_items):
        joint = model.prior_.copy()
        for a in range(second.offsets[i], second.offsets[i + 1]):
            joint *= model.confusion_[second.worker[a], :, second.label[a]]
        value += np.log(joint.sum())
    assert model.trace_[-1] == pytest.approx(value)


def weighted(r, seed=0):
    return replace(r, weight=np.random.default_rng(seed).uniform(0.2, 1, r.n_responses))


@pytest.mark.parametrize("estimation", ["variational", "em"])
@pytest.mark.parametrize("kind", ["plain", "weights", "silence", "one-coin", "chain", "tags"])
def test_objective_of_no_batch_falls(kind, estimation):
    model = cs.DawidSkene(estimation=estimation)
    batches = cut(crowd_of(120).responses, 4)
    if kind == "weights":
        batches = [batches[0], *map(weighted, batches[1:3]), batches[3]]
    elif kind == "silence":
        batches = [spoken(40, 40 * i, seed=i) for i in range(3)]
    elif kind == "one-coin":
        model.set_params(workers="one-coin")
    elif kind == "chain":
        model, batches = cs.HiddenMarkov(coupling=1.0, estimation=estimation), sequences_of(3)
    elif kind == "tags":
        tags = np.array(["B", "I", "O"], object)
        model = cs.HiddenMarkov(coupling=1.0, transitions="bio", estimation=estimation)
        batches = [replace(each, labels=tags, classes=tags) for each in sequences_of(3)]
    for trace in stream(model, batches)[1]:
        assert len(trace) > 1
        assert (np.diff(trace) > -1e-9 * np.abs(trace[:-1])).all()


@pytest.mark.parametrize("size", [200, 1])
def test_batches_come_close_to_the_full_fit(size):
    """Batches of one item, too, each with four answers."""
    crowd = crowd_of(2000 if size > 1 else 120, accuracy=(0.6, 0.95))
    r, truth = crowd.responses, np.asarray(crowd.truth)
    full, model = cs.DawidSkene().fit(r), cs.DawidSkene(calibration="none" if size == 1 else "hidden answers")
    labels = []
    for batch in cut(r, r.n_items // size):
        labels.append(model.partial_fit(batch).labels_)
    assert (np.concatenate(labels) == truth).mean() > (full.labels_ == truth).mean() - 0.02
    assert cs.metrics.confusion_error(full.confusion_, model.confusion_) < (0.03 if size > 1 else 0.12)
    if size > 1:
        assert (
            model.result_.calibrated.calibration.n_hidden > 0.49 * r.n_responses
        )  # half are hidden once, as for the full fit
        assert model.power_ == pytest.approx(full.power_, abs=0.15)


# ------------------------------------------------------------------------------------------ workers, labels and classes


def test_vocabularies_grow():
    r = crowd_of(300, n_workers=6).responses
    names, tags = np.array(["b", "d", "f", "h", "j", "l"], object), np.array(["x", "z", "y"], object)
    batches = [
        table(each, worker=names[each.worker], label=np.where((each.label == 2) & (i < 2), "x", tags[each.label]))
        for i, each in enumerate(cut(r, 4))
    ]
    batches[3]["worker"] = np.where(batches[3]["worker"] == "b", "c", batches[3]["worker"])
    model = cs.DawidSkene()
    for batch in batches[:2]:
        model.partial_fit(batch)
    assert model.classes_.tolist() == ["x", "z"]
    before = dict(zip(model.result_.names.workers, model.worker_report()["answers"].to_pylist(), strict=True))
    model.partial_fit(batches[2])
    assert model.classes_.tolist() == model.result_.names.labels.tolist() == ["x", "y", "z"]
    assert set(model.result_.course.starts) == {"earlier", "majority"}
    assert "y" in model.labels_.tolist()
    model.partial_fit(batches[3])
    assert model.result_.names.workers.tolist() == ["b", "c", "d", "f", "h", "j", "l"]
    answers = dict(zip(model.result_.names.workers, model.worker_report()["answers"].to_pylist(), strict=True))
    assert sum(answers.values()) == r.n_responses
    assert before["b"] <= answers["b"] < answers["d"]
    ends = np.array(model.worker_report()["accuracy_low"].to_pylist(), float)
    assert np.isfinite(ends).all()


def test_weights_gold_and_batches_without_answers():
    crowd = crowd_of(200)
    truth, (first, second, third, fourth) = np.asarray(crowd.truth), cut(crowd.responses, 4)
    gold = {int(item): int(truth[item]) for item in second.items[:25]}
    model = cs.DawidSkene().partial_fit(weighted(first)).partial_fit(second, gold=gold)
    assert (model.labels_[:25] == truth[second.items[:25]]).all()
    assert model.partial_fit(third).result_.calibrated.calibration.n_gold == 25
    before = model.worker_report()["answers"].to_pylist()
    model.partial_fit(fourth.keep(np.zeros(fourth.n_responses, bool)))
    assert model.worker_report()["answers"].to_pylist() == before
    np.testing.assert_allclose(model.posterior_, np.tile(model.prior_, (50, 1)), atol=1e-3)


# -------------------------------------------------------------------------------------------- intervals and calibration


# ----------------------------------------------------------------------------------------------- what is kept and saved


@pytest.mark.parametrize("make", [cs.DawidSkene, lambda: cs.HiddenMarkov(workers="sequential")])
def test_a_loaded_model_goes_on(make, tmp_path):
    batches = sequences_of(3)
    model = make()
    stream(model, batches[:2])
    loaded = cs.load(model.save(tmp_path / "a.model"))
    for each in (model, loaded):
        each.partial_fit(batches[2])
    assert np.array_equal(model.posterior_, loaded.posterior_)
    assert model.result_.calibrated.calibration == loaded.result_.calibrated.calibration
    assert np.array_equal(model.result_.intervals.workers, loaded.result_.intervals.workers)
    assert (repr(model), model.result_.given.n_batches) == (repr(loaded), 3)


def arrays_in(found):
    """Yield all arrays that a result holds."""
    if isinstance(found, np.ndarray):
        yield found
    elif isinstance(found, (list, tuple, dict)):
        for each in found.values() if isinstance(found, dict) else found:
            yield from arrays_in(each)
    elif is_dataclass(found):
        for field in fields(found):
            yield from arrays_in(getattr(found, field.name))


def test_no_array_grows_with_the_stream():
    model = cs.DawidSkene()
    stream(model, cut(crowd_of(1000).responses, 20))
    held = list(arrays_in(model.result_))
    assert any(array is model.confusion_ for array in held)
    assert any(array is model.result_.past.chances for array in held)
    assert max(array.size for array in held) <= 33 * 33  # of powers
    with pytest.raises(NotFittedError, match="fitted in batches, whose answers it does not keep"):
        _ = model.result_.answers


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("model", [cs.MarkovField(), cs.MomentMatching(), cs.MajorityVote()])
def test_other_models_have_no_batches(model):
    assert not hasattr(model, "partial_fit")


def test_what_does_not_fit_is_explained():
    crowd = crowd_of(60)
    r = crowd.responses
    model = cs.DawidSkene().fit(r)
    with pytest.raises(InputError, match="must take silence as the fit did"):
        model.partial_fit(spoken(20))
    with pytest.raises(ParameterError, match="fitted with workers='confusion'"):
        model.set_params(workers="one-coin").partial_fit(r)
    with pytest.raises(ParameterError, match="fitted with features"):
        cs.DawidSkene().fit(r, features=np.eye(3)[np.asarray(crowd.truth)]).partial_fit(r)
    with pytest.raises(InputError, match="needs sequences"):
        cs.HiddenMarkov().partial_fit(sequences_of(1)[0]).partial_fit(r)


def test_a_model_that_fails_stays_as_it_was():
    first, second = cut(crowd_of(80).responses, 2)
    model = cs.DawidSkene().partial_fit(first)
    before = model.posterior_.copy(), model.worker_report()["answers"].to_pylist(), repr(model)
    with pytest.raises(InputError):
        model.partial_fit(second, gold={int(second.items[0]): "no class"})
    assert np.array_equal(model.posterior_, before[0])
    assert (model.worker_report()["answers"].to_pylist(), repr(model)) == before[1:]
