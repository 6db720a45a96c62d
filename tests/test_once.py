"""What a result says is computed once, at the end of the fit, and kept."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time

import pytest

import consilience as cs
from command_line import run
from consilience.checks import register
from consilience.inference import em
from consilience.results import fitting, worker_report

PACKAGE = os.path.dirname(cs.__file__)
CROWD = cs.simulate.independent(300, n_workers=8, n_classes=3, seed=1)
# Attributes that belong to other models, or say why there is nothing.
ABSENT = (AttributeError, cs.errors.ConsilienceError)


def count_calls(monkeypatch, *functions):
    """Count how often functions are called, wherever they were imported to."""
    calls = dict.fromkeys((function.__name__ for function in functions), 0)
    for function in functions:

        def counted(*arguments, function=function, **keywords):
            calls[function.__name__] += 1
            return function(*arguments, **keywords)

        for name, module in list(sys.modules.items()):
            if name.startswith("consilience") and getattr(module, function.__name__, None) is function:
                monkeypatch.setattr(module, function.__name__, functools.wraps(function)(counted))
    return calls


def count_checks(monkeypatch):
    """Count how often each check runs."""
    calls = dict.fromkeys(register.CHECKS, 0)
    for kind, check in list(register.CHECKS.items()):

        def counted(found, model, kind=kind, find=check.find):
            calls[kind] += 1
            return find(found, model)

        monkeypatch.setitem(register.CHECKS, kind, check._replace(find=functools.wraps(check.find)(counted)))
    return calls


def test_a_report_computes_nothing_twice(tmp_path, monkeypatch):
    pytest.importorskip("jinja2", reason="the report needs jinja2: pip install 'consilience[report]'")
    pytest.importorskip("vl_convert", reason="the report needs vl-convert: pip install 'consilience[report]'")
    r = CROWD.responses
    rows = zip(r.item_of_answer().tolist(), r.worker.tolist(), r.labels[r.label].tolist(), strict=True)
    file = tmp_path / "answers.csv"
    file.write_text("item,worker,label,time\n" + "".join(f"{i},{w},{k},{n}\n" for n, (i, w, k) in enumerate(rows)))
    arguments = ("--order", "time", "-o", tmp_path / "labels.csv", "--report", tmp_path / "report.html")
    assert run("fuse", file, *arguments).exit_code == 0  # imports everything
    functions = (worker_report.tabulate_workers, worker_report.tabulate_drift, fitting.take_vote, em.run_em)
    calls, checks = count_calls(monkeypatch, *functions), count_checks(monkeypatch)
    assert run("fuse", file, *arguments).exit_code == 0
    assert calls == {"tabulate_workers": 1, "tabulate_drift": 1, "take_vote": 1, "run_em": 1}
    assert max(checks.values()) == 1


def test_what_is_read_is_not_computed(monkeypatch):
    fused = cs.fuse(CROWD.responses)
    assert fused.findings_
    calls = count_calls(monkeypatch, worker_report.tabulate_workers, fitting.take_vote, em.run_em)
    checks = count_checks(monkeypatch)
    slow = []
    for name in dir(fused):
        if name.startswith("__"):
            continue
        try:
            getattr(fused, name)  # some are made when they are first read
            start = time.perf_counter()
            getattr(fused, name)
        except ABSENT:
            continue
        if time.perf_counter() - start > 0.001 and min(_time(fused, name) for _ in range(5)) > 0.001:
            slow.append(name)
    assert slow == []
    fused.worker_report()
    assert fused.findings_ == fused.findings_
    assert not any(calls.values())
    assert not any(checks.values())


def _time(fused, name):
    start = time.perf_counter()
    getattr(fused, name)
    return time.perf_counter() - start


def test_the_loop_is_near_the_surface(monkeypatch):
    """From `fit` to the E-step of a block there are few functions: one can point at EM."""
    frames = []

    def expect_block(*arguments, found=em.expect_block):
        frame = sys._getframe(1)
        names = []
        while frame is not None:
            names += [frame.f_code.co_name] if frame.f_code.co_filename.startswith(PACKAGE) else []
            frame = frame.f_back
        frames.append(names)
        return found(*arguments)

    monkeypatch.setattr(em, "expect_block", expect_block)
    cs.DawidSkene(calibration="none").fit(CROWD.responses, engine=cs.engines.Threads(1))
    assert frames[0][-1] == "fit"
    assert "run_em" in frames[0]
    assert len(frames[0]) < 8


def walk(job):
    """Functions of the package that run in a job, and the modules that they are in."""
    seen = set()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            seen.add((code.co_filename, code.co_name, code.co_firstlineno))

    job()  # imports and compiles everything
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        job()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len(seen), len({file for file, *_ in seen})


def test_the_walk_is_short(tmp_path):
    """What a reader has to follow, from a table to labels and from a file to a report."""
    pd = pytest.importorskip("pandas")
    r = cs.simulate.independent(30, n_workers=8, n_classes=3, seed=1).responses
    said = {"item": r.item_of_answer(), "worker": r.workers[r.worker], "label": r.labels[r.label]}
    frame = pd.DataFrame({name: [f"{name}-{value}" for value in values] for name, values in said.items()})
    functions, modules = walk(lambda: cs.DawidSkene().fit(frame).labels_)
    assert functions <= 240
    assert modules <= 40
    pytest.importorskip("jinja2", reason="the report needs jinja2: pip install 'consilience[report]'")
    pytest.importorskip("vl_convert", reason="the report needs vl-convert: pip install 'consilience[report]'")
    frame.to_csv(tmp_path / "answers.csv", index=False)
    files = tmp_path / "answers.csv", "-o", tmp_path / "labels.csv", "--report", tmp_path / "r.html"
    functions, modules = walk(lambda: run("fuse", *files))
    assert functions <= 540
    assert modules <= 85


def test_names_that_do_not_apply_are_not_shown():
    fitted, fused = cs.DawidSkene().fit(CROWD.responses), cs.fuse(CROWD.responses)
    for name in ("classifier_", "to_masks", "to_spans", "update_", "changes", "sequential_confusion_"):
        assert name not in dir(fitted)
        assert hasattr(type(fitted), name)
    assert "comparison_" not in dir(fitted)
    assert "comparison_" in dir(fused)
    assert len([name for name in dir(fitted) if not name.startswith("_")]) <= 45
    tags = cs.TagSets().fit(cs.simulate.tags(30, seed=1).tags)
    assert "n_init" not in dir(tags)  # a setting that is no parameter of it


class CountingThreads(cs.engines.Threads):
    """Threads that note what was done with how many answers."""

    def __init__(self):
        super().__init__(2)
        self.passes = []

    def map(self, function, placed, *shared):
        self.passes.append((function.__name__, sum(len(block.codes) for block in placed)))
        return super().map(function, placed, *shared)


@pytest.mark.parametrize("gold", [None, {7: 1}])
def test_one_pass_over_all_answers_follows_the_loop(gold):
    engine = CountingThreads()
    cs.DawidSkene().fit(CROWD.responses, engine=engine, gold=gold)
    everywhere = [name for name, n_answers in engine.passes if n_answers == CROWD.responses.n_responses]
    last = len(everywhere) - everywhere[::-1].index("expect_block")
    # Known labels that were drawn at random are judged as if they were not known.
    assert everywhere[last:] == ["conclude_block"] + ["infer_block"] * (gold is not None)
