"""Graphs given to `fuse` and to the command line, in all their forms."""

from __future__ import annotations

import json

import networkx
import numpy as np
import pyarrow as pa
import pytest

import consilience as cs
from command_line import run
from consilience.errors import InputError
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


def test_an_edge_to_an_unknown_item_is_an_error_that_names_it(crowd):
    with pytest.raises(InputError, match="999"):
        cs.fuse(crowd.responses, graph={"source": [0, 999], "target": [1, 2]})


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


def test_a_coupling_is_told_for_edges_of_the_usual_weight(crowd, folder):
    r = crowd.responses
    source, target = edges_of(crowd.graph)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(source))
    graphs = [cs.Graph.from_edges(source, target, weights * unit) for unit in (1, 100)]
    models = [cs.fuse(r, graph=graph) for graph in graphs]
    assert models[0].coupling_ == pytest.approx(100 * models[1].coupling_, rel=1e-3)
    for model in models:
        each = f"{model.coupling_ * model.usual_weight:.3g} for edges of the usual weight ({model.usual_weight:.3g})"
        assert model.explain_coupling().startswith(f"Coupling {each}: ")
        best = max(model.coupling_scores_, key=lambda entry: entry.score).coupling
        assert f"predicted best at {best * model.usual_weight:.3g} (" in model.explain_coupling()
        assert f"{model.graph_check_.coupling:.2f} for edges of the usual weight" in str(model.graph_check_)
    path = models[1].save(folder / "field.model")
    assert str(cs.load(path).graph_check_) == str(models[1].graph_check_)
    write_table(pa.table({"source": source, "target": target, "weight": weights * 100}), folder / "edges.csv")
    told = " ".join(run("fuse", "answers.csv", "--graph", "edges.csv", "--report", "report.html").stdout.split())
    usual = (
        f"{models[1].coupling_ * models[1].usual_weight:.2f} nats per agreeing neighbour for edges of the usual weight"
    )
    assert usual in told
    assert "nats per agreeing neighbour for edges of the usual weight" in (folder / "report.html").read_text()


def test_edges_without_weights_need_no_words_about_them(crowd):
    model = cs.fuse(crowd.responses, graph=crowd.graph)
    assert model.usual_weight == 1
    assert "weight" not in model.explain_coupling() + str(model.graph_check_)


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


def test_edges_may_be_a_list_of_pairs(crowd):
    source = np.repeat(np.arange(crowd.graph.n_items), crowd.graph.degrees)
    pairs = list(zip(source.tolist(), crowd.graph.neighbours.tolist(), strict=True))
    listed, given = (cs.fuse(crowd.responses, graph=graph) for graph in (pairs, crowd.graph))
    np.testing.assert_array_equal(listed.labels_, given.labels_)
