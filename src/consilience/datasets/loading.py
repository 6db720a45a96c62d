"""Reading one dataset from its files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, listing, plural
from .catalogue import ANSWERS, GOLD, ITEMS, SPARSE, Entry, find_entry

if TYPE_CHECKING:
    from ..answers.columns import Values
    from ..answers.graph import Graph
    from ..answers.responses import Responses
    from ..answers.tables import Table

VARIABLE = "CONSILIENCE_DATA"

# The column and value that select the rows to read. The gold of sleep is the consensus of its human workers, so only
# the answers of models can be judged by it.
_ROWS = {"sleep": ("kind", "model")}
# Datasets in which a missing row is an answer too, and the class of an item about which all workers are silent.
_BACKGROUND = {"bc5cdr": "O"}


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A dataset in memory.

    Attributes
    ----------
    name : str
        Its name in the catalogue.
    responses : Responses or None
        The answers; None for datasets without answers (cora, citeseer, pubmed).
    gold : dict
        Known labels: {item: label}, or {(sequence, position): label}. For scoring, and for `gold=`.
    graph : Graph or None
        The neighbours of each item, with nodes in the order of `items`.
    features : scipy.sparse.csr_array, ndarray or None
        One row for each of `items`.
    items : ndarray or None
        Ids of the rows of `features` and the nodes of `graph`, where there are any.
    splits : dict or None
        The part ("train", "test", ...) that each key of `gold` belongs to, where the data say so.
    folder : pathlib.Path
        Where it was read from.
    """

    name: str
    responses: Responses | None
    gold: dict[Any, Any]
    graph: Graph | None
    features: Any
    items: Values | None
    splits: dict[Any, Any] | None
    folder: Path

    def __repr__(self) -> str:
        r, parts = self.responses, [f"gold of {plural(len(self.gold), 'item')}"]
        if r is not None:
            size = f"{plural(r.n_items, 'item')} x {plural(r.n_workers, 'worker')}"
            parts.insert(0, f"{plural(r.n_responses, 'answer')} ({size}, {r.n_classes} classes)")
        if self.graph is not None:
            parts.append(plural(self.graph.n_edges, "edge"))
        if self.features is not None:
            parts.append(plural(self.features.shape[1], "feature"))
        return f"Dataset({self.name!r}: {', '.join(parts)})"


def load(name: str, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Read a dataset from a folder that holds one folder for each.

    Parameters
    ----------
    name : str
        One of the names in `CATALOGUE`.
    folder : str or path, optional
        Where the datasets are. Default: `data_folder`.

    Returns
    -------
    Dataset

    Notes
    -----
    Of sleep only the answers of models are read, because its gold is the consensus of the people who answered. In
    bc5cdr silence is an answer (``abstain="answer"``) about every position that gold names.

    Examples
    --------
    >>> import consilience as cs, pathlib, tempfile
    >>> import pyarrow as pa, pyarrow.parquet
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "bluebird").mkdir()
    >>> gold = pa.table({"item": [1, 2], "label": ["0", "1"]})
    >>> answers = pa.table({"item": [1, 1, 2], "worker": [7, 8, 7], "label": ["0", "1", "1"]})
    >>> pa.parquet.write_table(gold, folder / "bluebird" / "gold.parquet")
    >>> pa.parquet.write_table(answers, folder / "bluebird" / "responses.parquet")
    >>> bluebird = cs.datasets.load("bluebird", folder)
    >>> bluebird.gold
    {1: '0', 2: '1'}
    >>> bluebird.responses
    Responses(3 answers: 2 items x 2 workers, 2 classes: '0', '1')
    """
    entry, path = find_entry(name), find_folder(name, folder)
    gold, splits = _read_gold(entry, path)
    items = _read_items(entry, path, gold)
    return Dataset(
        name=name,
        responses=_read_answers(entry, path, items, gold) if ANSWERS in entry.files else None,
        gold=gold,
        graph=_read_graph(entry, path, items),
        features=_read_features(entry, path, items),
        items=items,
        splits=splits,
        folder=path,
    )


def data_folder() -> Path | None:
    """Return the folder that the environment variable CONSILIENCE_DATA names, None if it is not set.

    The folder may not exist.
    """
    named = os.environ.get(VARIABLE)
    return _expand(named) if named else None


def _expand(folder: str | os.PathLike[str]) -> Path:
    """Return a folder with ~ as the home of a user. That of an unknown user stays, and will not be found."""
    from ..arguments import to_path  # which loads NumPy

    return Path(os.path.expanduser(to_path("folder", "datasets", folder)))


def find_folder(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of one dataset. If it or one of its files is missing, the error says what to do.

    Parameters
    ----------
    name, folder
        As in `load`.
    """
    entry = find_entry(name)
    place = data_folder() if folder is None else _expand(folder)
    origin = f" (${VARIABLE})" if folder is None else ""
    if place is None:
        raise _missing(entry, f"The dataset {name!r} was not found: ${VARIABLE} is not set.")
    if not os.path.isdir(place):  # which also copes with a name that is too long
        raise _missing(entry, f"There is no folder {str(place)!r}{origin}.")
    path = place / name
    if not os.path.isdir(path):
        raise _missing(entry, f"There is no folder {name!r} in {str(place)!r}{origin}.")
    absent = [file for file in entry.files if not os.path.isfile(path / file)]
    if absent:
        raise _missing(entry, f"{str(path)!r} has no {listing(absent)}.")
    return path


def is_present(name: str, folder: str | os.PathLike[str] | None = None) -> bool:
    """Tell whether all files of a dataset are there.

    Parameters
    ----------
    name, folder
        As in `load`.
    """
    try:
        find_folder(name, folder)
    except InputError:
        return False
    return True


def _missing(entry: Entry, problem: str) -> InputError:
    return InputError(
        problem,
        f"The data are not distributed with the package: set ${VARIABLE} to a folder that holds "
        f"{entry.name}/{{{','.join(entry.files)}}}. It was prepared from {entry.source}; the page 'datasets' of the "
        "documentation describes the files.",
    )


def _read_gold(entry: Entry, path: Path) -> tuple[dict[Any, Any], dict[Any, Any] | None]:
    """Return the known label of each item, and the split of each if the file has a column for it."""
    from ..formats.reading import open_file

    table = open_file(path / GOLD)
    names = [table.need(role) for role in (("sequence", "position") if entry.kind == "sequences" else ("item",))]
    columns = [_to_list(table, name) for name in names]
    keys = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    gold = dict(zip(keys, _to_list(table, table.need("known label")), strict=True))
    if len(gold) < table.n_rows:
        raise InputError(
            f"{table.name} has {plural(table.n_rows, 'row')} about {plural(len(gold), 'item')}.",
            "Keep one row for each item.",
        )
    splits = dict(zip(keys, _to_list(table, "split"), strict=True)) if "split" in table.names else None
    return gold, splits


def _to_list(table: Table, name: str) -> list[Any]:
    """Return a column in plain Python values."""
    from ..answers.columns import to_values

    values: list[Any] = to_values(table.values(name, "Fill it in or drop the row.")).tolist()
    return values


def _read_items(entry: Entry, path: Path, gold: dict[Any, Any]) -> Values | None:
    """Return the ids of the nodes: those listed, else those of gold in its order."""
    from ..answers.columns import to_column, to_values
    from ..formats.reading import open_file

    if entry.kind != "network":
        return None
    if ITEMS not in entry.files:
        return to_values(to_column(list(gold)))
    table = open_file(path / ITEMS)
    return to_values(table.values(table.need("item"), "Every item needs an id."))


def _read_answers(entry: Entry, path: Path, items: Values | None, gold: dict[Any, Any]) -> Responses:
    from ..answers.responses import Responses
    from ..formats.answers import read_responses

    if entry.name in _BACKGROUND:
        background = _BACKGROUND[entry.name]
        return read_responses(path / ANSWERS, items=list(gold), abstain="answer", background=background)
    if entry.name in _ROWS:
        return Responses.from_frame(_choose_rows(path / ANSWERS, *_ROWS[entry.name]))
    return read_responses(path / ANSWERS, items=items)


def _choose_rows(path: Path, column: str, value: str) -> Any:
    """Return the rows of a table that have a value in a column."""
    from ..answers.columns import to_column, to_values
    from ..formats.reading import read_table

    table = read_table(path).table
    if column not in table.column_names:
        raise InputError(
            f"{str(path)!r} has no column {column!r}, which says which rows to read ({value!r}). "
            f"It has {listing(table.column_names)}."
        )
    return table.filter(to_values(to_column(table[column])) == value)


def _read_graph(entry: Entry, path: Path, items: Values | None) -> Graph | None:
    from ..answers.graph import Graph
    from ..formats.reading import open_file

    files = [file for file in entry.files if file.startswith("edges")]
    return Graph.from_frame(open_file(path / files[0]), items=items) if files else None


def _read_features(entry: Entry, path: Path, items: Values | None) -> Any:
    from ..formats.features import read_features

    files = [file for file in entry.files if file.startswith("features")]
    if items is None or not files:
        return None
    file = path / files[0]
    features = read_features(file)
    if features.shape[0] != len(items):
        raise InputError(
            f"{str(file)!r} must have one row for each of {len(items):,} items. It has the shape {features.shape}."
        )
    if files[0] == SPARSE:
        from scipy.sparse import csr_array

        return csr_array(features)
    return features
