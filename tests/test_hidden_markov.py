"""Hidden Markov fusion: against enumeration and DawidSkene, its guarantees, its settings, and how good it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
import oracles
from consilience.answers import answers as blocks
from consilience.errors import ParameterError
from consilience.inference.hidden_answers import raise_to
from effort import examples, rest_robust
from test_chain import crowd_of_sequences, enumerate_chains, evidence_of

ESTIMATIONS = ["em", "variational"]
LENGTHS = [12, 1, 7, 20, 1, 9]


def small(seed=0, lengths=LENGTHS, **options):
    answers, *_ = crowd_of_sequences(seed, lengths, **options)
    return cs.Answers.from_matrix(answers, lengths=lengths, labels=list(range(options.get("n_classes", 3))))


def weighted(seed, lengths=LENGTHS):
    r = small(seed, lengths)
    owner, rng = r.sequences.of_items(), np.random.default_rng(seed)
    item = r.item_of_answer()
    frame = {
        "sequence": owner[item],
        "position": r.sequences.position[item],
        "worker": r.worker,
        "label": r.label,
        "weight": rng.uniform(0.05, 1, r.n_responses),
    }
    return cs.Answers.from_frame(frame, weight="weight", sequence="sequence", position="position")


def assert_never_falls(trace):
    assert np.isfinite(trace).all()
    assert (np.diff(trace) >= -1e-9 * (1 + np.abs(trace[1:]))).all(), np.diff(trace).min()


# --------------------------------------------------------------------------------------------------------- DawidSkene


@pytest.mark.parametrize("estimation", ESTIMATIONS)
@pytest.mark.parametrize("kind", ["plain", "weighted", "gold", "uniform", "given prior", "sequential"])
def test_coupling_zero_is_dawid_skene(estimation, kind):
    r = weighted(1) if kind == "weighted" else small(1)
    gold = {(0, 0): 2, (3, 5): 1} if kind == "gold" else None
    options = oracles.PLAIN | {"estimation": estimation, "tol": 0, "max_iter": 15}
    options |= {"uniform": {"prior": "uniform"}, "given prior": {"prior": [0.5, 0.5, 0.0]}}.get(kind, {})
    options |= {"workers": "sequential"} if kind == "sequential" else {}
    plain = cs.DawidSkene(**options).fit(r, gold=gold)
    chain = cs.HiddenMarkov(coupling=0, decode="marginal", **options).fit(r, gold=gold)
    np.testing.assert_allclose(chain.posterior_, plain.posterior_, atol=1e-12)
    np.testing.assert_allclose(chain.confusion_, plain.confusion_, atol=1e-12)
    np.testing.assert_allclose(chain.trace_, plain.trace_, rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(chain.labels_, plain.labels_)
    viterbi = cs.HiddenMarkov(coupling=0.0, **options).fit(r, gold=gold)
    np.testing.assert_array_equal(viterbi.labels_, plain.labels_)
    assert chain.score(r, gold=gold) == pytest.approx(plain.score(r, gold=gold), rel=1e-12)


# -------------------------------------------------------------------------------------------------------- enumeration


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("mask", [False, True])
def test_posterior_and_objective_are_enumerations(known, mask):
    lengths = [1, 5, 3]
    r = small(2, lengths)
    allowed = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], bool) if mask else "free"
    gold = {(1, 2): 1, (2, 0): 0} if known else None
    codes = np.full(9, -1)
    if known:
        codes[[3, 6]] = [1, 0]
    options = oracles.PLAIN | {"estimation": "em", "transitions": allowed, "tol": 0, "max_iter": 4}
    model = cs.HiddenMarkov(coupling=1.0, **options).fit(r, gold=gold)
    posterior, value, *_ = enumerate_chains(
        [0, 1, 6, 9], evidence_of(r, model.confusion_, codes), model.initial_, model.transition_
    )
    np.testing.assert_allclose(model.posterior_, posterior, atol=1e-11)
    assert model.score(r, gold=gold) == pytest.approx(value / 9, rel=1e-11)
    pseudo = oracles.smoothing_table((0.1, 1.1), r.class_of_label, 3, r.n_workers)
    moves = model.transition_[allowed] if mask else model.transition_
    penalty = np.sum(pseudo * np.log(model.confusion_)) + 0.1 * (np.log(moves).sum() + np.log(model.initial_).sum())
    assert model.trace_[-1] == pytest.approx(value + penalty, rel=1e-11)


# ---------------------------------------------------------------------------------------------------- the objective


@st.composite
def problems(draw):
    seed = draw(st.integers(0, 10**6))
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    r = (weighted if draw(st.booleans()) and sum(lengths) > 8 else small)(seed, lengths)
    gold = None
    if draw(st.booleans()):
        rng = np.random.default_rng(seed)
        chosen = rng.choice(r.n_items, max(1, r.n_items // 4), replace=False)
        gold = {r.items[i]: r.classes[rng.integers(r.n_classes)] for i in chosen}
    return r, gold, draw(st.sampled_from(ESTIMATIONS)), draw(st.sampled_from([0.01, (0.1, 1.1), 2.0]))


@given(problems(), st.sampled_from(["free 1", "free 0", "masked 1"]))
@examples(60)
def test_the_objective_never_falls(problem, kind):
    r, gold, estimation, smoothing = problem
    transitions = "free"
    if kind.startswith("masked"):
        transitions = ~np.eye(r.n_classes, k=1, dtype=bool)  # gold may contradict it
        transitions[0, 0] = True
        if not transitions.any(axis=1).all():
            return
    model = cs.HiddenMarkov(
        coupling=float(kind[-1]),
        transitions=transitions,
        estimation=estimation,
        smoothing=smoothing,
        tol=0,
        max_iter=15,
    ).fit(r, gold=gold)
    assert_never_falls(model.trace_)
    np.testing.assert_allclose(model.posterior_.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(model.transition_.sum(axis=1), 1, rtol=1e-9)
    assert model.initial_.sum() == pytest.approx(1)
    for item, label in (gold or {}).items():
        at = r.items.tolist().index(item)
        assert model.labels_[at] == label
        assert model.posterior_[at].max() == pytest.approx(1, abs=1e-12)
        assert np.count_nonzero(model.posterior_[at]) == 1


# --------------------------------------------------------------------------------------------------------- invariance


def test_sequences_never_link():
    r = small(6)
    model = cs.HiddenMarkov(coupling=1.0, calibration="none").fit(r)
    for s, (first, stop) in enumerate(zip(r.sequences.offsets[:-1], r.sequences.offsets[1:], strict=True)):
        part = cs.Answers.from_matrix(
            dense(r)[first:stop], lengths=[stop - first], labels=[0, 1, 2], items=[(s, t) for t in range(stop - first)]
        )
        np.testing.assert_allclose(model.predict_proba(part), model.posterior_[first:stop], atol=1e-12)
        np.testing.assert_array_equal(model.predict(part), model.labels_[first:stop])


def dense(r):
    matrix = np.full((r.n_items, r.n_workers), -1)
    matrix[r.item_of_answer(), r.worker] = r.label
    return matrix


def test_equivariance():
    r = small(7)
    matrix, options = dense(r), {"coupling": 0.6, "calibration": "none", "tol": 0, "max_iter": 20}
    base = cs.HiddenMarkov(**options).fit(r)
    # Other names, and so another order, of classes.
    names = np.array(["z", "a", "m"])
    order = [1, 2, 0]
    renamed = cs.Answers.from_matrix(np.where(matrix < 0, "", names[matrix]), missing="", lengths=LENGTHS)
    other = cs.HiddenMarkov(**options).fit(renamed)
    np.testing.assert_allclose(other.posterior_, base.posterior_[:, order], atol=1e-9)
    np.testing.assert_allclose(other.transition_, base.transition_[np.ix_(order, order)], atol=1e-9)
    # Workers in another order.
    workers = np.random.default_rng(0).permutation(r.n_workers)
    other = cs.HiddenMarkov(**options).fit(
        cs.Answers.from_matrix(matrix[:, workers], lengths=LENGTHS, labels=[0, 1, 2])
    )
    np.testing.assert_allclose(other.posterior_, base.posterior_, atol=1e-9)
    np.testing.assert_allclose(other.confusion_, base.confusion_[workers], atol=1e-9)
    # Sequences in another order.
    parts = np.split(np.arange(r.n_items), r.sequences.offsets[1:-1])
    places = np.concatenate([parts[s] for s in (5, 0, 3, 2, 1, 4)])
    lengths = [LENGTHS[s] for s in (5, 0, 3, 2, 1, 4)]
    other = cs.HiddenMarkov(**options).fit(cs.Answers.from_matrix(matrix[places], lengths=lengths, labels=[0, 1, 2]))
    np.testing.assert_allclose(other.posterior_, base.posterior_[places], atol=1e-9)


def test_blocks_and_threads_change_nothing(monkeypatch):
    r = cs.simulate.sequences(60, length=(1, 30), answers_per_item=4, seed=1).responses
    options = {"coupling": 1.0, "tol": 0, "max_iter": 10}
    whole = cs.HiddenMarkov(**options).fit(r)
    monkeypatch.setattr(blocks, "BLOCK_SIZE", 300)
    one, four = (cs.HiddenMarkov(**options).fit(r, engine=cs.engines.Threads(n)) for n in (1, 4))
    for name in ("posterior_", "confusion_", "transition_", "initial_", "trace_", "labels_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(four, name))
    np.testing.assert_allclose(one.posterior_, whole.posterior_, atol=1e-9)
    np.testing.assert_array_equal(one.labels_, whole.labels_)


# --------------------------------------------------------------------------------------------------- fit and predict


@pytest.mark.parametrize(
    ("decode", "workers"),
    rest_robust(
        [("viterbi", "confusion"), ("marginal", "sequential"), ("marginal", "confusion"), ("viterbi", "sequential")], 2
    ),
)
def test_predicting_the_fits_answers(decode, workers, tmp_path):
    for r, gold, coupling in ((small(8), None, 1.0), (small(8), {(0, 3): 1}, 0.5), (weighted(8), None, "learn")):
        options = {"decode": decode, "workers": workers, "coupling": coupling}
        model = cs.HiddenMarkov(**options).fit(r, gold=gold)
        fitted = model.uncalibrated_posterior_
        predicted = model.predict_proba(r, gold=gold)
        np.testing.assert_array_equal(predicted, raise_to(fitted, model.power_))
        if decode == "marginal":
            np.testing.assert_array_equal(model.labels_, model.classes_[model.posterior_.argmax(axis=1)])
            np.testing.assert_array_equal(model.predict(r, gold=gold), model.classes_[predicted.argmax(axis=1)])
        else:
            np.testing.assert_array_equal(model.predict(r, gold=gold), model.labels_)
        plain = cs.HiddenMarkov(**options, calibration="none").fit(r, gold=gold)
        np.testing.assert_array_equal(plain.predict_proba(r, gold=gold), plain.posterior_)
        np.testing.assert_array_equal(plain.posterior_, fitted)
    model.save(tmp_path / "model")
    again = cs.load(tmp_path / "model")
    assert repr(again) == repr(model)
    for name in ("posterior_", "labels_", "transition_", "initial_", "confusion_", "trace_", "coupling_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert again.result_.course.coupling_scores == model.result_.course.coupling_scores
    assert again.explain_coupling() == model.explain_coupling()
    np.testing.assert_array_equal(again.predict(r), model.predict(r))
    assert again.worker_report().equals(model.worker_report())


# ----------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"coupling": 2}, "between 0 and 1"),
        ({"coupling": "strong"}, "'learn'"),
        ({"decode": "map"}, "'viterbi'"),
        ({"workers": "crowd"}, "sequential"),
        ({"transitions": "tags"}, "'bilou'"),
        ({"transitions": None}, "boolean matrix"),
        ({"transitions": np.ones((2, 2), bool)}, r"\(3, 3\)"),
    ],
)
def test_settings_that_make_no_sense(options, words):
    with pytest.raises(ParameterError, match=words):
        cs.HiddenMarkov(**options).fit(small(1))


def test_positions_nobody_answered_are_told_by_their_neighbours():
    frame = {"sequence": [], "position": [], "worker": [], "label": []}
    rng = np.random.default_rng(0)
    for s in range(30):
        for t in range(20):
            if t % 5 == 2:
                continue
            for w in range(3):
                right = "ab"[t >= 10]
                values = (s, t, w, right if rng.random() < 0.8 else "ab"[t < 10])
                for column, value in zip(frame.values(), values, strict=True):
                    column.append(value)
    items = [(s, t) for s in range(30) for t in range(20)] + [("new", 0), ("new", 1)]
    r = cs.Answers.from_frame(frame, items=items)
    model = cs.HiddenMarkov(coupling=1.0).fit(r)
    labels = dict(zip(r.items.tolist(), model.labels_, strict=True))
    right = [labels[s, t] == "ab"[t >= 10] for s in range(30) for t in (2, 7, 12, 17)]
    assert np.mean(right) > 0.95
    first = model.posterior_[r.items.tolist().index(("new", 0))]
    np.testing.assert_allclose(first, raise_to(model.initial_[None], model.power_)[0])


def test_gold_tells_about_neighbours_and_keeps_its_label():
    r = small(10, [30, 30, 30], share=0.3)
    gold = {(0, t): t % 3 for t in range(30)}
    model = cs.HiddenMarkov(coupling=1.0).fit(r, gold=gold)
    assert model.labels_[:30].tolist() == [t % 3 for t in range(30)]
    assert model.transition_[0].argmax() == 1


def test_gold_that_contradicts_the_rules():
    """O to I-X, an I-X at the beginning, and (BILOU) a span that never ends: known labels are kept, all is finite."""
    matrix = [["O", "O"], ["B-X", "O"], ["O", "O"], ["U-X", "L-X"], ["I-X", "I-X"]] * 4
    r = cs.Answers.from_matrix(matrix, lengths=[5] * 4, classes=["O", "B-X", "I-X", "L-X", "U-X"])
    gold = {(0, 0): "I-X", (0, 1): "O", (0, 2): "I-X", (1, 4): "B-X", (2, 4): "I-X", (2, 0): "L-X"}
    for coupling, estimation in ((0.0, "em"), (0.4, "variational"), (1.0, "em"), (1.0, "variational")):
        model = cs.HiddenMarkov(coupling=coupling, transitions="bilou", estimation=estimation).fit(r, gold=gold)
        labels = dict(zip(r.items.tolist(), model.labels_, strict=True))
        assert {key: labels[key] for key in gold} == gold
        assert np.isfinite(model.posterior_).all()
        assert np.isfinite(model.trace_).all()
        np.testing.assert_allclose(model.posterior_.sum(axis=1), 1)


# ------------------------------------------------------------------------------------------------------------- starts


@pytest.mark.parametrize("estimation", ESTIMATIONS)
def test_starts(estimation):
    crowd = cs.simulate.sequences(50, length=20, n_workers=8, n_classes=3, seed=2)
    r, options = crowd.responses, {"coupling": 1.0, "estimation": estimation}
    vote = cs.HiddenMarkov(**options).fit(r)
    best = cs.HiddenMarkov(start="best", **options).fit(r)
    assert set(best.result_.course.starts) == {"majority", "moments"}
    assert best.trace_[-1] == max(trace[-1] for trace in best.result_.course.starts.values())
    np.testing.assert_array_equal(best.result_.course.starts["majority"], vote.trace_)
    moments = cs.HiddenMarkov(start="moments", **options).fit(r)
    assert moments.trace_[-1] >= moments.trace_[0]
    assert cs.metrics.accuracy(crowd.truth, moments.labels_) > 0.85
    for start in (cs.DawidSkene().fit(r), vote, crowd.parameters.confusion):
        model = cs.HiddenMarkov(start=start, **options).fit(r)
        assert_never_falls(model.trace_)
        assert cs.metrics.accuracy(crowd.truth, model.labels_) > 0.85
    several = cs.HiddenMarkov(n_init=3, **options).fit(r)
    assert list(several.result_.course.starts) == ["majority", "random 1", "random 2"]
    assert several.trace_[-1] >= vote.trace_[-1]


def test_moments_alone():
    """Algorithm 2 of the paper: matched moments, then Viterbi; no EM."""
    crowd = cs.simulate.sequences(100, length=20, n_workers=8, n_classes=3, seed=2)
    r = crowd.responses
    alone = cs.HiddenMarkov(coupling=1.0, start="moments", max_iter=0).fit(r)
    matched = cs.MomentMatching().fit(r)
    # The votes that both begin with are smoothed differently.
    np.testing.assert_allclose(alone.confusion_, matched.confusion_, atol=1e-3)
    np.testing.assert_allclose(alone.prior_, matched.prior_, atol=1e-3)
    assert cs.metrics.transition_error(crowd.parameters.transition, alone.transition_) < 0.3
    assert (alone.n_iter_, alone.converged_, len(alone.trace_)) == (0, False, 1)
    evidence = np.ones((r.n_items, 3))
    for n, m, f in zip(r.item_of_answer(), r.worker, r.label, strict=True):
        evidence[n] *= alone.confusion_[m, :, f]
    first = evidence[:5].copy()  # by brute force, the first five positions on their own
    start = cs.Answers.from_matrix(r.label.reshape(-1, 8)[:5], lengths=[5], labels=[0, 1, 2], classes=[0, 1, 2])
    paths = np.array(list(np.ndindex(3, 3, 3, 3, 3)))
    score = alone.initial_[paths[:, 0]] * first[0, paths[:, 0]]
    for n in range(1, 5):
        score = score * alone.transition_[paths[:, n - 1], paths[:, n]] * first[n, paths[:, n]]
    assert alone.predict(start).tolist() == paths[score.argmax()].tolist()


# ------------------------------------------------------------------------------------------------ forbidden transitions


@pytest.mark.parametrize("estimation", ESTIMATIONS)
@pytest.mark.parametrize("coupling", [0.0, 0.25, 1.0])
def test_forbidden_is_forbidden(estimation, coupling):
    rng = np.random.default_rng(0)
    tags = np.array(["O", "B-X", "I-X", "B-Y", "I-Y"])
    said = rng.choice(5, (200, 4))  # nobody keeps to the rules
    r = cs.Answers.from_matrix(tags[said], lengths=[20] * 10)
    smoothings = [(0.1, 1.1), 0] if estimation == "em" else [(0.1, 1.1)]
    for smoothing in smoothings:
        model = cs.HiddenMarkov(
            coupling=coupling, transitions="bio", estimation=estimation, smoothing=smoothing, tol=0, max_iter=30
        ).fit(r)
        assert_valid(model, r)
        assert r.n_responses == 800
        forbidden = [("O", "I-X"), ("B-Y", "I-X"), ("I-Y", "I-X"), ("O", "I-Y"), ("B-X", "I-Y"), ("I-X", "I-Y")]
        names = model.classes_.tolist()
        assert all(model.transition_[names.index(a), names.index(b)] == 0 for a, b in forbidden)
        assert model.initial_[names.index("I-X")] == model.initial_[names.index("I-Y")] == 0
        assert model.posterior_[::20, [names.index("I-X"), names.index("I-Y")]].max() == 0
        np.testing.assert_allclose(model.transition_.sum(axis=1), 1)
        assert_valid(model, r, model.predict(r))


def assert_valid(model, r, labels=None):
    labels = model.labels_ if labels is None else labels
    firsts = set(r.sequences.offsets[:-1].tolist())
    for i, tag in enumerate(labels):
        before = "O" if i in firsts else labels[i - 1]
        if tag.startswith("I-"):
            assert before in (tag, "B" + tag[1:])


# ----------------------------------------------------------------------------------------------------------- coupling
