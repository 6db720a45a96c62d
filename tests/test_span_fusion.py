"""Spans from fit to file and back: confidences beside brute force, evaluation, saving, and a simulated project."""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
from consilience.answers.columns import objects
from consilience.answers.tagging import (
    find_continuations,
    find_run_probabilities,
    find_runs,
    find_spans,
    split_tags,
    tag_transitions,
)
from consilience.errors import DataWarning, InputError, NotFittedError
from consilience.kernels import freeze
from consilience.kernels.chain import follow_paths
from consilience.kinds.spans import Marks
from consilience.metrics.labels import score_spans
from effort import examples
from marked_texts import mark

CLASSES = objects(["O", "B-X", "I-X", "B-Y", "I-Y"])


def enumerate_spans(evidence, start, pair, end, classes):
    """Return the probability of each possible span, summed over all labellings of one sequence."""
    length, n_classes = evidence.shape
    prefix, kind = split_tags(classes.tolist())
    first = np.zeros(length, bool)
    first[0] = True
    total, found = 0.0, Counter()
    for path in product(range(n_classes), repeat=length):
        weight = start[path[0]] * end[path[-1]]
        for t, k in enumerate(path):
            weight *= evidence[t, k] * (pair[path[t - 1], k] if t else 1.0)
        total += weight
        codes = np.array(path)
        # A span is known by its tags too: only in some schemes is there more than one way to write it.
        for a, b in zip(*find_spans(prefix[codes], kind[codes], first), strict=True):
            found[a, b, path[a:b]] += weight
    return {span: weight / total for span, weight in found.items()}


@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_confidences_are_those_of_enumeration(seed, relaxed):
    rng = np.random.default_rng(seed)
    allowed = tag_transitions(CLASSES, "bio")
    lengths = [1, 4, 2, 3]
    bounds = freeze(np.concatenate([[0], np.cumsum(lengths)]))
    evidence = rng.random((sum(lengths), 5)) ** 3
    start = freeze(np.where(allowed.start, rng.random(5), 0.0))
    pair = freeze(np.where(allowed.steps, rng.random((5, 5)), 0.05 if relaxed else 0.0))
    end = freeze(np.ones(5))
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    continues = find_continuations(*split_tags(CLASSES.tolist())).astype(float)
    parts_of = [slice(a, b) for a, b in pairwise(bounds.tolist())]
    truths = [enumerate_spans(evidence[part], start, pair, end, CLASSES) for part in parts_of]
    for _ in range(20):
        codes = rng.integers(0, 5, sum(lengths))
        width = freeze(np.zeros(5, np.int8))
        parts = follow_paths(bounds, evidence.copy(), start, pair, end, codes, continues, width)
        runs = find_runs(codes, CLASSES, sequence)
        judged = find_run_probabilities(parts, runs)
        for number, a, b, base, p in zip(*runs, judged, strict=True):
            assert p == pytest.approx(truths[number].get((a - base, b - base, tuple(codes[a:b])), 0.0), rel=0, abs=1e-9)


def exact_majority(spans):
    marks = spans.marks
    votes = Counter(
        zip(*(column.tolist() for column in (marks.document, marks.start, marks.end, marks.label)), strict=True)
    )
    readers = np.bincount(spans.readings[:, 0], minlength=len(spans.documents))
    kept = {(name, "vote"): [] for name in spans.documents.tolist()}
    for (document, start, end, label), count in votes.items():
        if 2 * count > readers[document]:
            kept[document, "vote"].append((start, end, spans.labels[label]))
    return mark(dict(zip(spans.documents.tolist(), spans.texts, strict=True)), kept)


def test_fused_spans_are_far_better_than_exact_majority():
    project = cs.simulate.spans(seed=0)
    fused = cs.fuse(project.spans)
    assert type(fused) is cs.HiddenMarkov
    assert fused.transitions == "bio"
    found, vote = cs.evaluate(fused, project.truth), cs.evaluate(exact_majority(project.spans), project.truth)
    assert found.strict.f1 > vote.strict.f1 + 0.15
    assert found.strict.f1 > 0.85
    assert found.calibration_error < 0.05
    assert found.strict.f1 < found.relaxed.f1 < found.type_only.f1
    assert found.n_documents == 200
    assert found.n_unanswered == 0
    assert 0.2 < cs.metrics.span_agreement(project.spans) < 0.8
    assert found.to_dict()["types"][0]["type"] == "LOC"


@pytest.fixture(scope="module")
def project():
    return cs.simulate.spans(40, seed=2, readers=3)


def rewrite(path, target, **changed):
    """Copy a saved model, with other arrays or without them."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            short = name.removeprefix("arrays/kind/").removeprefix("columns/kind/").partition(".")[0]
            data = old.read(name)
            if short in changed and changed[short] is None:
                continue
            if short in changed:
                array = changed[short](np.load(io.BytesIO(data)))
                buffer = io.BytesIO()
                np.save(buffer, array)
                data = buffer.getvalue()
            new.writestr(name, data)
    return target


def set_last(value):
    def change(array):
        array = array.astype(type(value))
        array[-1] = value
        return array

    return change


@pytest.mark.parametrize(
    "changed",
    [
        {"offsets": set_last(3)},
        {"offsets": lambda array: array[:-1]},
        {"offsets": lambda array: array[::-1].copy()},
        {"fused": set_last(99)},
        {"fused": lambda array: array[:-1]},
        {"fused": lambda array: array[::-1].copy()},
        {"end": set_last(10**6)},
        {"end": set_last(0)},
        {"start": set_last(-1)},
        {"start": lambda array: array[:-1]},
        {"start": None},
        {"documents": None},
        {"offsets": None, "start": None, "end": None, "fused": None},
        {"arrays/span_confidence": set_last(2.0)},
    ],
)
def test_damaged_texts_are_refused(project, changed, tmp_path):
    fused = cs.HiddenMarkov(transitions="bio", calibration="none", coupling=0.0).fit(project.spans)
    path = fused.save(tmp_path / "model")
    assert cs.load(rewrite(path, tmp_path / "same")).to_spans().equals(fused.to_spans())
    with pytest.raises(cs.errors.StoreError, match="is damaged"):
        cs.load(rewrite(path, tmp_path / "damaged", **changed))


def test_tags_of_tables_are_spans_of_tokens():
    pd = pytest.importorskip("pandas")
    tags = {"a": ["B-X", "I-X", "O", "B-X"], "b": ["O", "B-X", "I-X"]}
    rows = [(s, p, w, tag) for s, own in tags.items() for p, tag in enumerate(own) for w in "uvw"]
    frame = pd.DataFrame(rows, columns=["sequence", "position", "worker", "label"])
    table = cs.HiddenMarkov(transitions="bio").fit(frame).to_spans()
    assert isinstance(table, pd.DataFrame)
    assert table[["document", "start", "end", "label"]].to_numpy().tolist() == [
        ["a", 0, 2, "X"], ["a", 3, 4, "X"], ["b", 1, 3, "X"]
    ]  # fmt: skip
    assert table["text"].isna().all()
    with pytest.raises(NotFittedError, match="fitted to tags"):
        cs.MajorityVote().fit(frame).to_span_set()
    with pytest.raises(InputError, match="Only tags"):
        cs.MajorityVote().fit(frame.replace({"B-X": "x", "I-X": "y"})).to_spans()
    with pytest.raises(InputError, match="not in any"):
        cs.MajorityVote().fit({"item": [1], "worker": [1], "label": ["O"]}).to_spans()


@pytest.mark.filterwarnings("ignore:There is no clear difference")
def test_known_spans_are_certain_and_used_by_fuse(project):
    from dataclasses import replace

    everything = replace(project.spans, gold=project.truth.gold, gold_documents=np.arange(40))
    with pytest.warns(DataWarning, match="The spans of every document are known. They are not used"):
        unknown = cs.fuse(everything)
    assert unknown.to_spans().equals(cs.fuse(project.spans).to_spans())
    some = project.truth.gold.document < 20
    kept = Marks(*(column[some] for column in project.truth.gold[:5]))
    known = replace(project.spans, gold=kept, gold_documents=np.arange(20))
    with pytest.warns(DataWarning, match="The spans of 20 of 40 documents are known. They are used as gold"):
        fused = cs.fuse(known)
    table = fused.to_spans().to_pandas()
    names = set(project.spans.documents[:20].tolist())
    certain = table[table["document"].isin(names)]
    assert len(certain) == some.sum()
    assert certain["confidence"].min() == pytest.approx(1.0)
    model = cs.HiddenMarkov(transitions="bio")
    table = model.fit(project.spans).to_spans()
    assert model.fit(known.without_gold()).to_spans().equals(table)
    assert not model.fit(known, gold=known.known_tags()).to_spans().equals(table)


# Metrics.

SPAN = st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(1, 5), st.integers(0, 1))


def slow_scores(gold, found):
    def shares(ones, others):
        result = []
        for d, a, b, k in ones:
            covered = {c for e, x, y, m in others if (e, m) == (d, k) for c in range(x, y)}
            result.append(len(covered & set(range(a, b))) / (b - a))
        return result

    right = len(gold & found)
    precise, recalled = shares(found, gold), shares(gold, found)
    sums = [(right, right), (sum(precise), sum(recalled)), (sum(p > 0 for p in precise), sum(p > 0 for p in recalled))]
    return [(a / len(found) if found else 0.0, b / len(gold) if gold else 0.0) for a, b in sums]


@examples(200)
@given(st.sets(SPAN, max_size=6), st.sets(SPAN, max_size=6))
def test_scores_of_spans_are_those_of_the_slow_twin(gold, found):
    sides = [{(d, a, a + n, k) for d, a, n, k in side} for side in (gold, found)]
    rows = [np.array(sorted(side), np.int64).reshape(-1, 4)[:, [3, 0, 1, 2]] for side in sides]
    scores = score_spans(*rows).values()
    for score, expected in zip(scores, slow_scores(*sides), strict=True):
        np.testing.assert_allclose(score[:2], expected, atol=1e-12)
