"""The reader of real crowds: made-up folders of the same form, its refusals, and the real ones where they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import consilience as cs
from benchmarks.real_crowds import CATALOGUE, load
from consilience.errors import InputError
from real_data import gold_of, needs_data

NAMES = [entry.name for entry in CATALOGUE]


def write(folder: Path, name: str, **tables: dict) -> Path:
    """Write tables as the files of one dataset; labels become categorical, as in the real ones."""
    place = folder / name
    place.mkdir(exist_ok=True)
    for file, columns in tables.items():
        coded = {
            key: pa.array(values).dictionary_encode() if key in ("label", "split", "kind") else values
            for key, values in columns.items()
        }
        pq.write_table(pa.table(coded), place / f"{file}.parquet")
    return place


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty folder of datasets that the environment knows."""
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path))
    return tmp_path


TAGS = {
    "responses": {
        "sequence": [5, 5, 5, 2],
        "position": [1, 1, 3, 0],
        "worker": ["a", "b", "a", "b"],
        "label": ["O", "B", "I", "O"],
    },
    "gold": {"sequence": [5, 2], "position": [1, 0], "label": ["B", "O"], "split": ["dev", "test"]},
}
SONGS = {
    # Rows of features follow the items, which are in another order than the answers and than gold.
    "items": {"item": [30, 10, 20]},
    "responses": {"item": [10, 10, 30], "worker": [0, 1, 1], "label": ["jazz", "rock", "rock"]},
    "gold": {"item": [10, 20, 30], "label": ["jazz", "jazz", "rock"]},
    "edges_knn10": {"source": [10], "target": [20]},
}
PAPERS = {
    "gold": {"item": [0, 1, 2], "label": ["AI", "DB", "AI"]},
    "edges": {"source": [0, 1], "target": [2, 2]},
}


def test_sequences(folder):
    write(folder, "ner", **TAGS)
    ner = load("ner")
    assert ner.responses.items.tolist() == [(5, 1), (5, 3), (2, 0)]
    assert ner.gold == {(5, 1): "B", (2, 0): "O"}
    assert ner.splits == {(5, 1): "dev", (2, 0): "test"}
    assert (ner.graph, ner.features, ner.items) == (None, None, None)
    assert ner.folder == folder / "ner"
    assert not ner.responses.silence_counts


def test_a_network_of_papers(folder):
    place = write(folder, "cora", **PAPERS)
    sparse.save_npz(place / "features.npz", sparse.csr_matrix(np.eye(3, 4)))
    cora = load("cora")
    assert cora.responses is None
    assert cora.gold == {0: "AI", 1: "DB", 2: "AI"}
    assert cora.items.tolist() == cora.graph.items.tolist() == [0, 1, 2]
    assert cora.graph.to_scipy().toarray().tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    assert isinstance(cora.features, sparse.csr_array)
    assert (cora.features.toarray() == np.eye(3, 4)).all()


def test_nearest_neighbours(folder):
    place = write(folder, "music", **SONGS)
    np.save(place / "features.npy", np.array([[3.0], [1.0], [2.0]]))
    music = load("music")
    assert music.items.tolist() == music.graph.items.tolist() == [30, 10, 20]
    assert music.graph.degrees.tolist() == [0, 1, 1]
    assert dict(zip(music.items.tolist(), music.features[:, 0], strict=True)) == {30: 3, 10: 1, 20: 2}
    # Nobody answered about item 20; it is there all the same, for its neighbour to speak.
    assert set(music.responses.items.tolist()) == {10, 20, 30}
    assert len(cs.MarkovField().fit(music.responses, graph=music.graph).labels_) == 3


def test_silence_is_an_answer_of_labelling_functions(folder):
    gold = {"sequence": [0, 0, 0, 1], "position": [0, 1, 2, 0], "label": ["B-Disease", "O", "O", "O"]}
    answers = {"sequence": [0, 0], "position": [0, 1], "worker": ["f", "g"], "label": ["B-Disease", "I-Disease"]}
    write(folder, "bc5cdr", responses=answers, gold=gold)
    r = load("bc5cdr").responses
    assert r.items.tolist() == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert r.silence_counts
    assert r.background == "O"
    assert r.classes.tolist() == ["O", "B-Disease", "I-Disease"]


# Where it is looked for.


# Refusals.


def refusal(name: str, folder: Path | str | None = None) -> str:
    with pytest.raises(InputError) as caught:
        load(name, folder)
    return str(caught.value)


# The catalogue.


def test_the_catalogue():
    assert len(set(NAMES)) == len(NAMES) == 18
    for entry in CATALOGUE:
        assert entry.kind in ("sequences", "network", "independent")
        assert (entry.n_workers > 0) == (entry.n_answers > 0) == ("responses.parquet" in entry.files)
        assert all((entry.description, entry.licence, entry.citation))
        assert entry.source.startswith("github.com/")
        assert ", commit " in entry.source


# The real ones.


@pytest.mark.robust
@needs_data
@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.name) for entry in CATALOGUE])
def test_the_numbers_are_those_of_the_data(entry):
    data = load(entry.name)
    r = data.responses
    assert data.gold == gold_of(entry.name)
    assert {type(label) for label in data.gold.values()} == {str}
    if r is None:
        assert (len(data.items), 0, len(set(data.gold.values())), 0) == entry[3:7]
        assert list(data.gold) == data.items.tolist() == list(range(entry.n_items))
    else:
        assert (r.n_items, r.n_workers, r.n_classes, r.n_responses) == entry[3:7]
        assert (r.sequences is not None) == (entry.kind == "sequences")
        assert set(data.gold) <= set(r.items.tolist())
        assert set(data.gold.values()) <= set(r.classes.tolist())
    if data.splits is not None:
        assert data.splits.keys() == data.gold.keys()
    if entry.kind == "network":
        assert data.features.shape[0] == data.graph.n_items == len(data.items)
        assert r is None or r.items.tolist() == data.items.tolist()
        homophily = np.mean([data.gold[a] == data.gold[b] for a, b in edges_of(data.graph)])
        assert homophily == pytest.approx(HOMOPHILY[entry.name], abs=5e-4)


# Share of edges between items of one class, as computed when the data were prepared.
HOMOPHILY = {
    "cora": 0.81,
    "citeseer": 0.7377,
    "pubmed": 0.8024,
    "music": 0.5044,
    "sentence_polarity": 0.5723,
    "bubil_mri": 0.9592,
}


def edges_of(graph):
    source = np.repeat(np.arange(graph.n_items), graph.degrees)
    return zip(graph.items[source].tolist(), graph.items[graph.neighbours].tolist(), strict=True)
