"""What is too large for the memory of the machine is refused before it is asked for, with what to do instead."""

from __future__ import annotations

import resource
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience import memory
from consilience.cli.main import program
from consilience.errors import DataWarning, InputError
from consilience.models.cells import Cells
from consilience.models.held_out import shrink_rows
from consilience.models.worker_report import describe_workers


@pytest.fixture
def small_machine(monkeypatch):
    """Give the machine so many bytes."""

    def limit(n_bytes):
        monkeypatch.setattr(memory, "_physical_memory", lambda: [n_bytes])

    return limit


def many_labels(n_workers=30, n_labels=200, n_items=400, seed=0):
    """Return answers in free text: many labels, each given a few times."""
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(n_items), 3)
    worker = (item * 7 + np.tile([0, 1, 2], n_items) * 11) % n_workers
    label = np.where(rng.random(len(item)) < 0.6, item % n_labels, rng.integers(0, n_labels, len(item)))
    return {"item": item, "worker": worker, "label": [f"text {i}" for i in label]}


# ------------------------------------------------------------------------------------------------- memory of a machine


def test_the_machine_tells_its_memory():
    assert 2**20 < memory.available_memory() < float("inf")


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/a/b\n", {"a/memory.max": "1000", "a/b/memory.max": "max"}, 1000),
        ("0::/a/b\n", {"a/memory.max": "1000", "a/b/memory.max": "300"}, 300),
        ("0::/\n", {"memory.max": "700"}, 700),
        ("4:memory:/host/name\n1:cpu:/\n", {"memory/memory.limit_in_bytes": "500", "memory.max": "1"}, 500),
        ("1:cpu,memory:/x\n", {"memory/x/memory.limit_in_bytes": "400"}, 400),
        ("1:cpu:/x\n", {}, None),
        ("0::/\n", {"memory.max": "max"}, None),
    ],
)
def test_limits_of_control_groups(groups, files, limit, tmp_path, monkeypatch):
    own = tmp_path / "cgroup"
    own.write_text(groups, encoding="utf-8")
    for name, content in files.items():
        file = tmp_path / "fs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content + "\n", encoding="utf-8")
    monkeypatch.setattr(memory, "_OWN_CGROUPS", own)
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path / "fs")
    monkeypatch.setattr(memory, "_physical_memory", lambda: [10**9])
    assert memory.available_memory() == (10**9 if limit is None else limit)


def test_no_limit_where_the_system_tells_none(monkeypatch):
    for name in ("_physical_memory", "_cgroup_limits", "_process_limits"):
        monkeypatch.setattr(memory, name, list)
    memory.require_memory(1e30, "Nothing is too large")


def test_limits_of_the_shell():
    code = "from consilience.memory import available_memory; print(available_memory())"
    limit = 3 << 30
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert float(done.stdout) == limit


# ------------------------------------------------------------------------------------------------------------- fits


LARGE_FITS = {
    "DawidSkene": (cs.DawidSkene(), {}),
    "one-coin": (cs.DawidSkene(workers="one-coin"), {}),
    "MomentMatching": (cs.MomentMatching(), {}),
    "MarkovField": (cs.MarkovField(), {"graph": cs.Graph.from_edges([0], [1], items=range(400))}),
}


@pytest.mark.parametrize("name", LARGE_FITS)
def test_matrices_too_large_are_refused_with_advice(name, small_machine):
    model, links = LARGE_FITS[name]
    r = cs.Responses.from_frame(many_labels())
    small_machine(50 << 20)
    with pytest.raises(InputError) as caught:
        model.fresh().fit(r, **links)
    text = str(caught.value)
    assert "30 workers x 200 labels x 200 classes" in text
    assert "at least 91.6 MiB of memory, and there are 50.0 MiB" in text
    assert "up to about 147 would fit" in text
    assert "classes=" in text
    assert "MajorityVote" in text


def test_the_advice_helps(small_machine):
    """Ten classes, or as many labels as are said to fit, do fit."""
    table = many_labels()
    small_machine(50 << 20)
    few = cs.Responses.from_frame(table, classes=[f"text {i}" for i in range(10)])
    cs.DawidSkene(max_iter=2, tol=0).fit(few)
    merged = {**table, "label": [label if int(label[5:]) < 146 else "other" for label in table["label"]]}
    cs.DawidSkene(max_iter=2, tol=0).fit(merged)


@pytest.mark.parametrize("max_iter", [0, 1, 2, 5])
@pytest.mark.parametrize("estimation", ["em", "variational"])
@pytest.mark.parametrize("workers", ["confusion", "one-coin"])
def test_what_fits_is_not_refused(max_iter, estimation, workers, small_machine):
    """The estimate is below the memory that a fit was measured to take, and not by much."""
    r = cs.Responses.from_frame(many_labels(10, 100))
    model = cs.DawidSkene(workers=workers, estimation=estimation, max_iter=max_iter, tol=0)
    tracemalloc.start()
    model.fit(r)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    small_machine(peak)
    model.fit(r)
    small_machine(peak * 0.6)
    with pytest.raises(InputError, match="memory"):
        model.fit(r)


def test_sequential_workers_and_transitions(small_machine):
    r = cs.Responses.from_matrix(np.arange(60).reshape(30, 2), lengths=[10, 10, 10])
    small_machine(20 << 20)
    with pytest.raises(InputError, match="2 workers x 61 previous answers x 60 labels x 60 classes"):
        cs.HiddenMarkov(workers="sequential", coupling=1.0).fit(r)
    small_machine(50_000)
    with pytest.raises(InputError, match="transitions for 60 x 60 classes"):
        cs.HiddenMarkov(coupling=1.0).fit(r)


def test_messages_and_posteriors(small_machine):
    n = 2000
    r = cs.Responses.from_matrix(np.arange(n)[:, None] % 20)
    source = np.repeat(np.arange(n - 20), 20)
    graph = cs.Graph.from_edges(source, source + 1 + np.arange(len(source)) % 19, items=range(n))
    small_machine(3 << 20)
    with pytest.raises(InputError, match=r"messages along .* directed edges x 20 classes.*inference='mean_field'"):
        cs.MarkovField(inference="belief_propagation", coupling=1.0).fit(r, graph=graph)
    small_machine(500_000)
    with pytest.raises(InputError, match="probabilities for 2,000 items x 20 classes"):
        cs.MajorityVote().fit(r)


def test_predictions_for_many_new_workers(small_machine):
    model = cs.DawidSkene(max_iter=1, tol=0).fit(cs.Responses.from_frame(many_labels(3, 50)))
    other = {"item": np.arange(500), "worker": np.arange(500), "label": ["text 1"] * 500}
    small_machine(100_000)
    with (
        pytest.warns(DataWarning),
        pytest.raises(InputError, match="500 workers x 1 label x 50 classes"),
    ):
        model.predict_proba(other)


def test_the_command_line_says_it_in_one_line(small_machine, tmp_path):
    file = tmp_path / "answers.csv"
    table = many_labels()
    rows = zip(*table.values(), strict=True)
    file.write_text("item,worker,label\n" + "".join(f"{i},{w},{t}\n" for i, w, t in rows), encoding="utf-8")
    small_machine(50 << 20)
    refused = CliRunner().invoke(program, ["fuse", str(file)])
    assert refused.exit_code == 2
    assert refused.stderr.count("\n") == 1
    assert "--classes" in refused.stderr
    assert "--model majority" in refused.stderr
    done = CliRunner().invoke(program, ["fuse", str(file), "--model", "majority", "-q"])
    assert done.exit_code == 0, done.stderr


# ---------------------------------------------------------------------------------------------------- majority vote


def test_majority_vote_needs_no_matrices(small_machine):
    """A report and a held-out score included; only what is a matrix itself is refused."""
    r = cs.Responses.from_frame(many_labels())
    small_machine(5 << 20)
    model = cs.MajorityVote().fit(r)
    assert model.worker_report().num_rows == 30
    assert model.predict_proba(r).shape == (400, 200)
    assert np.isfinite(cs.held_out_score(cs.MajorityVote(), r).score)
    assert cs.fuse(r, model="majority").comparison_ is None
    for use in (lambda: model.confusion_, lambda: model.score(r)):
        with pytest.raises(InputError, match="30 workers x 200 labels x 200 classes"):
            use()
    small_machine(80 << 20)
    assert model.confusion_.shape == (30, 200, 200)


def test_matrices_of_votes_are_those_of_the_last_fit():
    table = many_labels(5, 4, 30)
    model = cs.MajorityVote().fit(table)
    before = model.confusion_
    model.fit({**table, "label": table["label"][::-1]})
    assert not np.array_equal(model.confusion_, before)
    assert not hasattr(cs.MajorityVote(), "confusion_")


def sparse_crowd(seed):
    """Return votes with labels that are no class, classes that nobody said, and items of known class."""
    rng = np.random.default_rng(seed)
    n_labels = int(rng.integers(1, 6))
    answers = rng.integers(-1, n_labels, (rng.integers(1, 40), rng.integers(1, 8)))
    answers[0, 0] = 0
    labels = [f"l{i}" for i in range(n_labels)]
    classes = [label for label in labels if rng.random() < 0.8 or label == "l0"] + ["new"] * int(rng.integers(0, 2))
    r = cs.Responses.from_matrix(answers, labels=labels, classes=classes)
    return r, {0: "l0"} if rng.random() < 0.5 else None


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_sparse_counts_say_what_full_ones_do(seed):
    r, known = sparse_crowd(seed)
    model = cs.MajorityVote().fit(r, gold=known)
    cells, reported = model._answer_counts(), model._report_columns()
    assert "_counts" not in vars(model)
    full = np.zeros(cells.shape)
    full[cells.worker, cells.label, cells.klass] = cells.count
    assert np.array_equal(full, model._counts)
    assert np.array_equal(cells.count, Cells.of_table(full).count)
    np.testing.assert_allclose(shrink_rows(cells, r.worker, r.label), shrink_rows(full, r.worker, r.label), rtol=1e-12)
    expected = describe_workers(
        model._counts, model.confusion_, model.prior_, model._n_answers, model.answer_labels_, model.classes_
    )
    for name, column in expected.items():
        if name in ("accuracy", "informativeness"):
            pair = (np.array(found.to_pylist(), float) for found in (reported[name], column))
            np.testing.assert_allclose(*pair, atol=1e-12)
        else:
            assert reported[name].to_pylist() == column.to_pylist()
    again = model._report_columns()  # now from the full table, as for a model that was loaded
    assert all(again[name].equals(column) for name, column in reported.items())


def test_reports_are_made_a_few_workers_at_a_time(monkeypatch):
    from consilience.models import worker_report

    model = cs.MajorityVote().fit(many_labels(30, 20))
    whole = model.worker_report().to_pydict()
    monkeypatch.setattr(worker_report, "MOST_ENTRIES", 70)
    assert model.worker_report().to_pydict() == whole
