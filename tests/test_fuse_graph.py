"""Graphs given to `fuse` and to the command line, in all their forms."""

from __future__ import annotations

import json

import networkx
import numpy as np
import pyarrow as pa
import pytest

import consilience as cs
from command_line import run
from consilience.formats.sources import as_graph
from consilience.formats.writing import write_table


@pytest.fixture(scope="module")
def crowd():
    return cs.simulate.network(300, n_workers=6, n_classes=3, degree=6, answers_per_item=4, seed=3)


def edges_of(graph):
    source = np.repeat(np.arange(graph.n_items), graph.degrees)
    once = source < graph.neighbours
    return source[once].tolist(), graph.neighbours[once].tolist()


def test_fuse_takes_a_field_with_a_graph(crowd):
    fused = cs.fuse(crowd.responses, graph=crowd.graph)
    assert isinstance(fused, cs.MarkovField)
    assert fused.graph_check_.sound
    assert fused.graph_check_.coupling == fused.coupling_
    assert fused.comparison_.n_items == 300
    assert cs.metrics.accuracy(crowd.truth, fused.labels_) > 0.95


@pytest.mark.parametrize("form", ["dict", "networkx", "scipy", "path"])
def test_every_form_of_graph_is_the_same_graph(crowd, form, tmp_path):
    source, target = edges_of(crowd.graph)
    if form == "dict":
        given = {"source": source, "target": target}
    elif form == "networkx":
        given = networkx.Graph(list(zip(source, target, strict=True)))
    elif form == "scipy":
        given = crowd.graph.to_scipy()
    else:
        import pyarrow as pa

        given = tmp_path / "edges.parquet"
        write_table(pa.table({"source": source, "target": target}), given)
    made = as_graph(given, crowd.responses).aligned_with(crowd.responses.items)
    assert np.array_equal(made.offsets, crowd.graph.offsets)
    assert np.array_equal(made.neighbours, crowd.graph.neighbours)


@pytest.fixture
def folder(crowd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    r = crowd.responses
    write_table(pa.table({"item": r.item_of_answer(), "worker": r.worker, "label": r.label}), tmp_path / "answers.csv")
    source, target = edges_of(crowd.graph)
    write_table(pa.table({"source": source, "target": target}), tmp_path / "edges.csv")
    rng = np.random.default_rng(0)
    np.save(tmp_path / "features.npy", np.eye(3)[crowd.truth] + rng.normal(0, 0.3, (300, 3)))
    return tmp_path


def test_the_command_takes_edges(crowd, folder):
    result = run("fuse", "answers.csv", "--graph", "edges.csv", "-o", "labels.csv", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["model"] == "MarkovField"
    assert told["field"]["coupling"] > 0.5
    assert "The graph is informative" in told["field"]["explanation"]
    assert told["field"]["listeners"] == "all"
    assert (folder / "labels.csv").exists()


def test_the_command_takes_features(crowd, folder):
    result = run("fuse", "answers.csv", "--knn", "features.npy", "--k", "5")
    assert result.exit_code == 0, result.output
    assert "MarkovField" in result.stdout
    assert "Neighbours in the graph" in result.stdout


def test_items_that_nobody_answered_are_labelled_by_their_neighbours(folder):
    lines = (folder / "answers.csv").read_text().splitlines()
    kept = [line for line in lines if not line.startswith("7,")]
    (folder / "answers.csv").write_text("\n".join(kept) + "\n")
    (folder / "items.csv").write_text("item\n" + "\n".join(map(str, range(300))) + "\n")
    refused = run("fuse", "answers.csv", "--graph", "edges.csv")
    assert refused.exit_code == 2
    assert "7" in refused.stderr
    taken = run("fuse", "answers.csv", "--graph", "edges.csv", "--items", "items.csv", "-o", "labels.csv", "--quiet")
    assert taken.exit_code == 0, taken.output
    assert len((folder / "labels.csv").read_text().splitlines()) == 301


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--graph", "edges.csv", "--knn", "features.npy"), "Leave out one of them"),
        (("--graph", "missing.csv"), "does not exist"),
        (("--knn", "edges.csv"), "cannot be read"),
        (("--graph", "answers.csv"), "source"),
        (("--knn", "features.npy", "--k", "300"), "between 1 and 299"),
        (("--graph", "edges.csv", "--model", "dawid-skene"), "takes no graph"),
    ],
)
def test_bad_graphs_are_refused(folder, arguments, message):
    result = run("fuse", "answers.csv", *arguments, "-o", "labels.csv")
    assert result.exit_code == 2, result.output
    assert message in result.stderr.replace("\n", " ")
    assert not (folder / "labels.csv").exists()
