"""Real crowds and networks, read from the folder `$CONSILIENCE_DATA`. The data are not part of this repository.

`real_crowds.toml` is the catalogue: what each set is, how large, under which licence, whose work, and from where.
`load` reads one set into answers, known labels, graph and features. `python benchmarks/real_crowds.py` lists the sets,
and which of them are there.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.sparse import csr_array, load_npz

import consilience as cs
from consilience.errors import InputError, ParameterError

VARIABLE = "CONSILIENCE_DATA"
ANSWERS, GOLD, ITEMS = "responses.parquet", "gold.parquet", "items.parquet"
# Known labels of sleep are the consensus of its human workers, so only the answers of models can be judged by them.
MODELS_ONLY = "sleep"
# In this set a missing row is an answer too, about every position that has a known label.
SILENCE_COUNTS = "bc5cdr"


class Entry(NamedTuple):
    """One set of the catalogue."""

    name: str
    description: str
    kind: str  # "sequences", "network" or "independent"
    n_items: int
    n_workers: int
    n_classes: int
    n_answers: int
    licence: str
    citation: str
    source: str
    files: tuple[str, ...]


CATALOGUE = tuple(
    Entry(name, **{**entry, "files": tuple(entry["files"])})
    for name, entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A set in memory."""

    name: str
    responses: cs.Answers | None  # None for sets without answers
    gold: dict[Any, Any]  # {item: label}, or {(sequence, position): label}
    graph: cs.Graph | None  # whose nodes are in the order of `items`
    features: Any  # an array, or a sparse matrix: one row for each of `items`
    items: Any  # an array of ids
    splits: dict[Any, Any] | None  # the part ("train", "test", ...) of each key of `gold`, where the data say so
    folder: Path


def load(name: str, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Read a set from a folder that holds one folder for each, by default that of the environment."""
    entry, path = find_entry(name), find_folder(name, folder)
    gold, splits = read_gold(entry, path)
    items = read_items(entry, path, gold)
    edges = [file for file in entry.files if file.startswith("edges")]
    return Dataset(
        name=name,
        responses=read_crowd(entry, path, items, gold) if ANSWERS in entry.files else None,
        gold=gold,
        graph=cs.Graph.from_frame(pq.read_table(path / edges[0]), items=items) if edges else None,
        features=read_features(entry, path, items),
        items=items,
        splits=splits,
        folder=path,
    )


def data_folder() -> Path | None:
    """Return the folder that the environment names, None if it names none. The folder may not exist."""
    named = os.environ.get(VARIABLE)
    return Path(os.path.expanduser(named)) if named else None


def find_folder(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of one set. If it or one of its files is missing, the error says what to do."""
    entry = find_entry(name)
    place = data_folder() if folder is None else Path(folder)
    if place is None:
        raise missing(entry, f"${VARIABLE} is not set.")
    absent = [file for file in entry.files if not os.path.isfile(place / name / file)]
    if absent:
        raise missing(entry, f"{str(place / name)!r} has no {', '.join(absent)}.")
    return place / name


def is_present(name: str, folder: str | os.PathLike[str] | None = None) -> bool:
    """Tell whether all files of a set are there."""
    try:
        find_folder(name, folder)
    except InputError:
        return False
    return True


def missing(entry: Entry, problem: str) -> InputError:
    """Return the error that a set is not there."""
    return InputError(
        f"The dataset {entry.name!r} was not found: {problem}",
        f"Set ${VARIABLE} to a folder that holds {entry.name}/{{{','.join(entry.files)}}}. It was prepared from "
        f"{entry.source}; benchmarks/README.md describes the files.",
    )


def find_entry(name: str) -> Entry:
    """Return the entry of a set."""
    for entry in CATALOGUE:
        if entry.name == name:
            return entry
    raise ParameterError(f"There is no dataset {name!r}. There are {', '.join(entry.name for entry in CATALOGUE)}.")


def read_gold(entry: Entry, path: Path) -> tuple[dict[Any, Any], dict[Any, Any] | None]:
    """Return the known label of each item, and the split of each if the file has a column for it."""
    table = pq.read_table(path / GOLD)
    names = ("sequence", "position") if entry.kind == "sequences" else ("item",)
    columns = [table[name].to_pylist() for name in names]
    keys = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    gold = dict(zip(keys, table["label"].to_pylist(), strict=True))
    if len(gold) < table.num_rows:
        raise InputError(f"{str(path / GOLD)!r} has {table.num_rows:,} rows about {len(gold):,} items.")
    return gold, dict(zip(keys, table["split"].to_pylist(), strict=True)) if "split" in table.column_names else None


def read_items(entry: Entry, path: Path, gold: dict[Any, Any]) -> Any:
    """Return the ids of the nodes of a network: those listed, else those of known labels in their order."""
    if entry.kind != "network":
        return None
    return pq.read_table(path / ITEMS)["item"].to_numpy() if ITEMS in entry.files else np.array(list(gold))


def read_crowd(entry: Entry, path: Path, items: Any, gold: dict[Any, Any]) -> cs.Answers:
    """Return the answers of a set."""
    if entry.name == SILENCE_COUNTS:
        return cs.read_answers(path / ANSWERS, items=list(gold), abstain="answer", background="O")
    if entry.name == MODELS_ONLY:
        table = pq.read_table(path / ANSWERS)
        return cs.Answers.from_frame(table.filter(pc.equal(table["kind"].cast("string"), "model")))
    return cs.read_answers(path / ANSWERS, items=items)


def read_features(entry: Entry, path: Path, items: Any) -> Any:
    """Return one row of features for each item of a network, if there are any."""
    files = [file for file in entry.files if file.startswith("features")]
    if items is None or not files:
        return None
    file = path / files[0]
    features = csr_array(load_npz(file)) if file.suffix == ".npz" else np.load(file)
    if features.shape[0] != len(items):
        raise InputError(
            f"{str(file)!r} must have one row for each of {len(items):,} items. It has the shape {features.shape}."
        )
    return features


def describe() -> str:
    """Return the list of all sets."""
    lines = [f"{'name':<18} {'kind':<12} {'items':>9} {'workers':>8} {'classes':>8} {'answers':>10}"]
    lines += [
        f"{e.name:<18} {e.kind:<12} {e.n_items:>9,} {e.n_workers:>8,} {e.n_classes:>8} {e.n_answers:>10,}  "
        f"{'here' if is_present(e.name) else 'absent'}"
        for e in CATALOGUE
    ]
    return "\n".join([*lines, f"Looked in {data_folder() or f'no folder: ${VARIABLE} is not set'}."])


if __name__ == "__main__":
    print(describe())
