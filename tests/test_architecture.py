"""The promise of docs/architecture.md that a new part is one file and one line of a register."""

from __future__ import annotations

import ast
import json
import re
import sys
import types
import warnings
from configparser import ConfigParser
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

import consilience as cs
from command_line import run
from consilience import formats, models
from consilience.answers.columns import to_column
from consilience.checks import register as checks
from consilience.documents import charts
from consilience.documents.document import Column, Section, Table, Text
from consilience.documents.page import SECTIONS, describe_page
from consilience.documents.view import View
from consilience.engines import ENGINES, Threads
from consilience.errors import DataWarning, Sentence
from consilience.formats.annotation_tools import Annotation, Tool
from consilience.formats.files import open_input
from consilience.formats.writing import write_table
from consilience.inference.hidden_answers import raise_to
from consilience.inference.structures import Structure, StructureParameters, Summary
from consilience.inference.workers import WORKERS
from consilience.inference.workers.base import ConfusionWorkers
from consilience.kernels import Floats
from consilience.models.latent import LatentModel
from consilience.results.findings import Finding

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "consilience"


def modules_of(package: str) -> set[str]:
    """Return the modules of a package that hold a part: all but the contract, the register and what parts share."""
    shared = {"__init__", "base", "priors", "register", "rows", "types"}
    return {path.stem for path in (PACKAGE / package).glob("*.py")} - shared


# ------------------------------------------------------------------------------------------------------- the registers


def test_files_and_registers_in_the_table_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    start = text.index("| kind of change |")
    rows = [re.findall("`([^`]+)`", row) for row in text[start : text.index("\n\n", start)].splitlines()[2:]]
    assert len(rows) > 10
    for row in rows:
        paths = [name for name in row if name.endswith(("/", ".py", ".md"))]
        for name in paths:
            assert any((folder / name).exists() for folder in (PACKAGE, ROOT / "tests", ROOT / "docs")), name
        for register in set(row) - set(paths):
            home = next(name for name in paths if name.endswith(".py")).removesuffix(".py").replace("/", ".")
            assert hasattr(import_module(f"consilience.{home.removesuffix('.__init__')}"), register), register


def test_the_rooms_are_those_of_the_layers():
    """In the same order, each in the table of rooms."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    start = text.index("| room, the top one first |")
    rows = text[start : text.index("\n\n", start)].splitlines()[2:]
    rooms = [set(re.findall(r"`(\w+)(?:/|\.py)`", row.split("|")[1])) for row in rows]
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = contracts["importlinter:contract:one-way"]["layers"].split("\n")
    listed = [set(re.findall(r"\w+", layer)) - {"__main__", "version"} for layer in layers]
    assert rooms == [layer for layer in listed if layer]


def test_every_part_is_in_its_register():
    homes = {Path(sys.modules[model.__module__].__file__).stem for model in WORKERS.values()}
    assert homes - {"base"} == modules_of("inference/workers")
    homes = {each.home.partition(":")[0] for each in formats.FORMATS}
    assert all((PACKAGE / "formats" / f"{home}.py").is_file() for home in homes)
    assert set(ENGINES) - {"threads"} == modules_of("engines")  # threads stand beside what an engine is
    for name, entry in models.MODELS.items():
        assert models.model_class(name).__name__ == entry.rpartition(".")[2]
        assert getattr(cs, entry.rpartition(".")[2]) is models.model_class(name)


def test_the_loop_asks_nothing_but_the_contract():
    for package in ("inference", "inference/structures", "inference/workers"):
        paths = set((PACKAGE / package).glob("*.py"))
        assert paths
        # One takes objects of other packages, the other checks parameters by their names.
        others = {PACKAGE / "inference" / name for name in ("starts.py", "estimator.py")}
        for path in paths - others:
            calls = {
                node.func.id
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            assert not calls & {"hasattr", "getattr", "setattr"}, path


def test_only_kinds_ask_which_kind_it_is():
    """What others need to know is a member of the contract, which a new kind may set."""
    asks = re.compile(r"isinstance\([^()]*, \(?\w*(Table|Spans|Tags|Masks)Kind|\bkind\.(name|results|item) (==|!=|in) ")
    for path in PACKAGE.rglob("*.py"):
        found = asks.findall(path.read_text(encoding="utf-8").replace("each.kind == kind.name", ""))
        assert not found or path.parent.name == "kinds", path


def test_only_worker_models_ask_which_one_it_is():
    """What others need to know is a member of the contract. Only `fuse` chooses among models, by their names."""
    asks = re.compile(
        r"\b(?:is|is not|==|!=) \w+Workers\b|(?:isinstance|issubclass)\([^()]*\b\w+Workers\b"
        r"|\bworkers(?:\"\]|\"\))? (?:==|!=) |\b(?:worker_model_name|worker_model\.name|workers\.name) (?:==|!=|in) "
    )
    for path in PACKAGE.rglob("*.py"):
        found = asks.findall(path.read_text(encoding="utf-8"))
        assert not found or path.parent.name == "workers" or path.name == "fusing.py", (path, found)
    assert asks.search("if estimates.worker_model is OneCoinWorkers:")
    assert asks.search('parameters.get("workers") == "ordinal"')


# ----------------------------------------------------------------------------------------------- a new worker model


class TwiceWorkers(ConfusionWorkers):
    """Confusion workers with an array of their own, and a column of the report."""

    name: ClassVar[str] = "twice"

    def further_arrays(self, found, counts):
        return {"twice_": 2 * self.plain_counts(counts)}

    shapes: ClassVar = {"log_weights": "M A K: log weights", "further": {"twice_": "M L K: counts"}}

    @classmethod
    def further_columns(cls, further, labels, classes):
        return {"doubled": to_column(further["twice_"].sum(axis=(1, 2)))}


@pytest.mark.parametrize("name", ["dawid-skene", "hidden-markov", "markov-field"])
def test_a_new_worker_model_is_one_line(name, tmp_path, monkeypatch):
    monkeypatch.setitem(WORKERS, "twice", TwiceWorkers)
    network = cs.simulate.network(80, n_workers=5, n_classes=3, seed=1)
    sequences = cs.simulate.sequences(10, length=8, n_workers=5, n_classes=3, seed=1)
    r = sequences.responses if name == "hidden-markov" else network.responses
    graph = network.graph if name == "markov-field" else None
    model = models.model_class(name)(workers="twice").fit(r, graph=graph)
    plain = models.model_class(name)().fit(r, graph=graph)
    np.testing.assert_array_equal(model.posterior_, plain.posterior_)
    assert (model.smoothing_, model.power_) == (plain.smoothing_, plain.power_)
    further = model.result_.estimates.further
    np.testing.assert_allclose(further["twice_"].sum(), 2 * r.n_responses)
    report = model.worker_report()
    np.testing.assert_allclose(report["doubled"].to_numpy(), 2 * r.votes_per_worker())
    assert report.drop_columns("doubled").to_pydict() == plain.worker_report().to_pydict()
    np.testing.assert_array_equal(model.result_.intervals.prior, plain.result_.intervals.prior)
    model.save(tmp_path / "model")
    again = cs.load(tmp_path / "model")
    np.testing.assert_array_equal(again.result_.estimates.further["twice_"], further["twice_"])
    np.testing.assert_array_equal(again.predict_proba(r, graph=graph), plain.predict_proba(r, graph=graph))
    assert again.worker_report().equals(model.worker_report())


@pytest.mark.parametrize("base", ["one-coin", "ordinal", "mean"])
def test_a_worker_model_under_another_name_is_reported_alike(base, monkeypatch):
    """Nothing but the name tells it from the one it derives from, in any room."""
    monkeypatch.setitem(WORKERS, "mine", type("MyWorkers", (WORKERS[base],), {"name": "mine"}))
    if base == "ordinal":
        r = cs.simulate.ratings(150, n_raters=8, bias=1, seed=1).responses
    else:
        r = cs.simulate.independent(150, n_workers=6, n_classes=3, seed=1).responses
    if base == "mean":
        votes = np.random.default_rng(1).dirichlet(np.ones(3), (150, 5))
        votes[np.arange(150), :, np.arange(150) % 3] += 1
        r = cs.Answers.from_probabilities(votes / votes.sum(axis=2, keepdims=True))
    mine, known = (cs.fuse(r, model="dawid-skene", workers=name) for name in ("mine", base))
    np.testing.assert_array_equal(mine.posterior_, known.posterior_)
    assert mine.worker_report().equals(known.worker_report())
    np.testing.assert_array_equal(mine.result_.intervals.workers, known.result_.intervals.workers)
    assert repr(vars(mine.comparison_)) == repr(vars(known.comparison_))
    assert [str(each) for each in mine.findings_] == [str(each) for each in known.findings_]
    pages = [repr(describe_page(View(each), "x")) for each in (mine, known)]
    assert pages[0].replace("mine", base) == pages[1]


# ------------------------------------------------------------------------------------- a new structure, a new model


@dataclass(frozen=True, eq=False)
class FirstParameters(StructureParameters):
    """Every item is of the first class, unless an answer rules that out."""

    shapes: ClassVar = {"mean": "K: probabilities"}
    mean: Floats
    bound: float

    def infer_block(self, block, evidence):
        evidence *= self.mean
        total = evidence.sum(axis=1, keepdims=True)
        evidence /= total
        return Summary(float(np.log(total).sum()), evidence.sum(axis=0))

    def point(self):
        return self


@dataclass(frozen=True, eq=False)
class First(Structure):
    """A structure with nothing to learn."""

    def update(self, summary):
        return self.given(summary.mass)

    def summarise(self, block, posterior):
        return Summary(0.0, posterior.sum(axis=0))

    def given(self, prior):
        return FirstParameters(np.array([0.9] + [0.1 / (self.n_classes - 1)] * (self.n_classes - 1)), 0.0)


class FirstModel(LatentModel):
    """The model of that structure."""

    _structure_type = FirstParameters
    estimation = "variational"
    tol = 1e-6

    def __init__(
        self,
        *,
        workers="confusion",
        smoothing=0.5,
        calibration="hidden answers",
        prior="learn",
        start="majority",
        max_iter=50,
        callback=None,
    ):
        self.workers, self.smoothing, self.calibration = workers, smoothing, calibration
        self.prior, self.start, self.max_iter, self.callback = prior, start, max_iter, callback

    def _make_structure(self, source, parts):
        return First(*parts)


def test_a_new_structure_works_with_everything_else(tmp_path, monkeypatch):
    module = types.ModuleType("consilience.models.first")
    module.FirstModel = FirstModel
    monkeypatch.setitem(sys.modules, "consilience.models.first", module)
    monkeypatch.setitem(models.MODELS, "first", "models.first.FirstModel")
    r = cs.simulate.independent(300, n_workers=5, n_classes=3, seed=1).responses
    kinds = [name for name, kind in WORKERS.items() if not kind.needs_votes and name != "tags"]  # which are for sets
    for workers in kinds:
        model = FirstModel(workers=workers, max_iter=500).fit(r)
        np.testing.assert_array_equal(model.prior_, [0.9, 0.05, 0.05])
        assert (np.diff(model.trace_) > -1e-9).all() or workers == "sequential"
        predicted = model.predict_proba(r, engine="threads")
        np.testing.assert_array_equal(predicted, raise_to(model.uncalibrated_posterior_, model.power_))
        model.save(tmp_path / "model")
        again = cs.load(tmp_path / "model")
        np.testing.assert_array_equal(again.posterior_, model.posterior_)
        np.testing.assert_array_equal(again.predict_proba(r), predicted)
        assert again.score(r) == model.score(r)
    fused = cs.fuse(r, model="first")
    assert isinstance(fused, FirstModel)
    assert fused.comparison_.tested


# ---------------------------------------------------------------------------------------------------- a new engine


class OneByOne(Threads):
    """An engine of one thread."""

    def __init__(self):
        super().__init__(n_threads=1)


def test_a_new_engine_is_one_line(monkeypatch):
    monkeypatch.setitem(ENGINES, "one-by-one", OneByOne)
    r = cs.simulate.independent(300, n_workers=5, n_classes=3, seed=1).responses
    expected = cs.DawidSkene().fit(r).posterior_
    for engine in ("one-by-one", OneByOne()):
        np.testing.assert_array_equal(cs.DawidSkene().fit(r, engine=engine).posterior_, expected)


# ---------------------------------------------------------------------------------------------------- a new format


def read_pipes(path, wanted):
    """Read a table whose columns are separated by pipes."""
    with open_input(path) as stream:
        head, *rows = (line.split("|") for line in stream.read().decode().split())
    columns = dict(zip(head, zip(*rows, strict=True), strict=True))
    return pa.table({name: list(values) for name, values in columns.items() if not wanted or name in wanted})


def write_pipes(tables, path):
    """Write tables as columns that are separated by pipes."""
    table = pa.concat_tables(tables)
    rows = zip(*(map(str, column.to_pylist()) for column in table.columns), strict=True)
    Path(path).write_text("".join("|".join(row) + "\n" for row in (table.column_names, *rows)), encoding="utf-8")


def register_format(monkeypatch, name, codec, *line, **more):
    """Add a file to the formats, and a line to their register."""
    module = types.ModuleType(f"consilience.formats.{name}")
    module.CODEC = codec
    monkeypatch.setitem(sys.modules, module.__name__, module)
    added = formats.Format(name, (f".{name}",), f"{name}:CODEC", *line, text=True, **more)
    monkeypatch.setattr(formats, "FORMATS", (added, *formats.FORMATS))


def list_format(name):
    """Return what the command says of a format."""
    listed = json.loads(run("formats", "--json").stdout)["formats"]
    assert name in run("formats").stdout
    return next(each for each in listed if each["name"] == name)


def test_a_new_format_is_one_line(tmp_path, monkeypatch):
    """It is read by its suffix and by its content, in memory and on disk, listed by the command, and written."""
    codec = formats.Codec(read=read_pipes, write=write_pipes, recognise=lambda head, path: head.startswith(b"item|"))
    register_format(monkeypatch, "pipes", codec, "columns separated by pipes")
    for name in ("answers.pipes", "answers.txt"):
        (tmp_path / name).write_text("item|worker|label\n1|a|x\n1|b|x\n2|a|y\n2|b|y\n", encoding="utf-8")
        stored = cs.scan_answers(tmp_path / name, store=tmp_path / "stores")
        for r in (cs.read_answers(tmp_path / name), stored):
            assert (r.n_items, r.n_workers, r.labels.tolist()) == (2, 2, ["x", "y"])
    found = list_format("pipes")
    assert found["read"] == ["table"]
    assert found["written"]
    assert found["suffixes"] == [".pipes"]
    result = run("fuse", tmp_path / "answers.pipes", "-o", tmp_path / "labels.pipes")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "labels.pipes").read_text(encoding="utf-8").startswith("item|label|confidence")


class Bubbles(Tool):
    """A tool whose records have a text, and the spans of each worker under the worker's name."""

    name, title = "bubbles", "Bubbles"

    @staticmethod
    def recognise(first, in_array):
        return "bubbles" in first

    def identify(self, entry):
        return entry.record.get("id"), entry.record["text"], entry.path

    def text(self, entry):
        return entry.record["text"]

    def annotations(self, entry):
        moods = entry.record.get("moods", {})
        for worker, spans in entry.record["bubbles"].items():
            marks = [dict(zip(("start", "end", "label"), span, strict=True)) for span in spans]
            yield Annotation(worker, marks, {"mood": moods.get(worker)})

    def make_record(self, document, like):
        return {"id": document.name, "text": document.text, "bubbles": {}}

    def add_spans(self, record, document, reading):
        record["bubbles"][reading.worker] = list(reading.spans)

    def label(self, entry, question, said, verdict):
        entry.record["moods"]["consilience"] = verdict.label
        return entry.record


def test_a_new_annotation_tool_says_how_its_records_look(tmp_path, monkeypatch):
    """Reading, fusing, converting and writing back are the same for all tools."""
    register_format(monkeypatch, "bubbles", Bubbles.codec(), "bubbles in texts", "spans", (".bubbles",))
    path, fused = tmp_path / "a.bubbles", tmp_path / "fused.bubbles"
    record = {
        "id": 1,
        "text": "Ann met Bob.",
        "bubbles": {"u": [[0, 3, "P"]], "v": [[0, 3, "P"], [8, 11, "P"]], "w": [[0, 3, "P"]]},
        "moods": {"u": "good", "v": "good", "w": "bad"},
        "note": "kept",
    }
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    assert list_format("bubbles")["read"] == ["spans", "answers", "tags"]
    result = run("fuse", path, "-o", fused)
    assert result.exit_code == 0, result.output
    written = json.loads(fused.read_text(encoding="utf-8"))
    assert written == {**record, "bubbles": {**record["bubbles"], "consilience": [[0, 3, "P"]]}}
    assert run("fuse", path, "-o", fused, "--label", "mood").exit_code == 0
    assert json.loads(fused.read_text(encoding="utf-8"))["moods"]["consilience"] == "good"
    assert run("convert", path, tmp_path / "there.jsonl", "--to", "prodigy").exit_code == 0
    cs.write_spans(cs.read_spans(tmp_path / "there.jsonl"), tmp_path / "back.bubbles", "bubbles")
    spans = json.loads((tmp_path / "back.bubbles").read_text(encoding="utf-8"))["bubbles"]
    assert spans == record["bubbles"]


# --------------------------------------------------------------------------------------------------------- a new check


@pytest.mark.parametrize("warns", [True, False])
def test_a_new_check_is_one_line(warns, tmp_path, monkeypatch):
    def find_toys(found, model):
        """The answers are toys."""
        n_answers = found.answers.n_responses
        remedies = ("Put them away.", Sentence("Or give {gold}."))
        kind = DataWarning if warns else None
        yield Finding(f"All {n_answers} answers are toys.", remedies, "bad", category=kind)

    monkeypatch.setitem(checks.CHECKS, "toys", checks.Check(find_toys, "answers"))
    crowd = cs.simulate.independent(200, n_workers=6, n_classes=2, accuracy=(0.6, 0.9), seed=1)
    r = crowd.responses
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fused = cs.fuse(r)
    said = [str(each.message) for each in caught]
    assert ("All 1200 answers are toys. Put them away. Or give gold=." in said) is warns
    assert fused.findings_[-1].kind == "toys"
    table = {"item": r.items[r.item_of_answer()], "worker": r.workers[r.worker], "label": r.labels[r.label]}
    write_table(pa.table(table), str(tmp_path / "answers.csv"))
    outputs = ("--report", tmp_path / "report.html", "--save", tmp_path / "crowd.model")
    shown = run("fuse", tmp_path / "answers.csv", *outputs)
    assert ("Warning: All 1200 answers are toys. Put them away. Or give --gold." in shown.stderr) is warns
    assert ("\n  - All 1200 answers are toys.\n" in shown.stdout) is not warns
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "All 1200 answers are toys." in page
    assert 'Put them away. Or give gold= (--gold on the command line). <a href="#answers">See the answers</a>' in page
    figures = json.loads(run("fuse", tmp_path / "answers.csv", "--json").stdout)
    assert figures["findings"][-1] == {
        "kind": "toys",
        "level": "bad",
        "problem": "All 1200 answers are toys.",
        "remedies": ["Put them away.", "Or give --gold."],
        "place": "answers",
        "warned": warns,
    }
    # A loaded model is looked at again.
    assert cs.load(tmp_path / "crowd.model").findings_[-1].kind == "toys"


# -------------------------------------------------------------------------------------------------- a new section


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_new_section_of_the_report_is_one_line(is_shown, monkeypatch, tmp_path):
    def describe_toys(view):
        """Return what a section of words, a chart and a table shows."""
        if not is_shown:
            return []
        bars = charts.draw_bars("Toys by size", "All are small.", ["small", "<large>"], [7, 0], "Size", "Toys")
        columns = [Column("what", "What"), Column("number", "How many", "count")]
        table = Table("toys", "Toys in figures", columns, [("Items", view.answers.n_items)])
        return [Text(["There are <b>toys</b>.", "Put them away."]), ([bars],), Section("In detail", [table])]

    def find_toys(found, model):
        """The answers are toys."""
        yield Finding("The answers are toys.", ("Look at them.",), "bad", category=None)

    monkeypatch.setitem(SECTIONS, "toys", ("Toys", "Toy box", "See the toys", describe_toys, lambda _: True))
    monkeypatch.setitem(checks.CHECKS, "toys", checks.Check(find_toys, "toys"))
    pytest.importorskip("jinja2", reason="the report needs jinja2: pip install 'consilience[report]'")
    pytest.importorskip("vl_convert", reason="the report needs vl-convert: pip install 'consilience[report]'")
    fused = cs.fuse(cs.simulate.independent(60, n_workers=5, n_classes=2, accuracy=0.8, seed=1).responses)
    page = cs.report(fused, tmp_path / "report.html").read_text("utf-8")
    for shown in (
        '<li><a href="#toys"><bdi>Toy box</bdi></a></li>',
        '<section id="toys" aria-labelledby="toys-h">\n<h2 id="toys-h"><bdi>Toys</bdi></h2>',
        "<p>There are &lt;b&gt;toys&lt;/b&gt;. Put them away.</p>",
        "<figcaption>Toys by size</figcaption>",
        "<caption>Toys in figures</caption>",
        '<tr><th scope="row"><bdi>Items</bdi></th><td class="n"><bdi>60</bdi></td></tr>',
        '<a href="#toys">See the toys</a>',
    ):
        assert (shown in page) is is_shown
    assert "The answers are toys." in page
