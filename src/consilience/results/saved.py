"""Saving fitted models, and loading them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..answers.columns import Column, Values, decode_categories, to_column, to_values
from ..answers.contents import Passages
from ..answers.frames import BACKENDS
from ..answers.vocabulary import encode_in_order_of_appearance, lookup
from ..arguments import to_path
from ..checks.comparison import Comparison
from ..checks.graph_check import GraphCheck
from ..errors import StoreError, listing, shorten
from ..inference.workers.register import WORKERS
from ..kernels.types import freeze
from ..models.base import Model, Totals
from ..models.parameters import in_order_of_classes
from ..models.predicting import PredictingModel, part_of
from ..models.register import MODELS, model_class, name_of
from ..specs import Fault, Sizes, is_finite, is_whole
from .archive import Archive, open_archive, write_archive
from .kept_answers import describe_answers, restore_answers, specs_of_answers, state_of_answers
from .migrations import upgrade

# Parameters whose rows are classes, which a table may name in any order.
_BY_CLASS = ("prior", "transitions")
# The vocabularies, and the attributes that hold them.
_VOCABULARIES = {"classes": "classes_", "workers": "workers_", "answer labels": "answer_labels_"}
# What the header holds beside format and schema, and of which type.
_HEADER: dict[str, Any] = {
    "model": str,
    "parameters": dict,
    "scalars": dict,
    "backend": str,
    "keys": list,
    "notes": dict,
    "answers": dict | None,
    "totals": dict | None,
}

# Notes that only `fuse` makes, by attribute.
_NOTES = {"comparison_": Comparison, "graph_check_": GraphCheck}


# Columns that a model has if it was fitted to texts: their ids, perhaps the texts, and path and format of their file.
_PASSAGES = ("passages documents", "passages texts", "passages origin")


def save_model(model: Model, path: str | os.PathLike[str], texts: bool = True, answers: bool = True) -> Path:
    """Write a fitted model to one file; see `Model.save`."""
    keys = {} if model._totals is not None else model._keys
    notes = {name: getattr(model, name) for name in _NOTES if hasattr(model, name)}
    header = {
        "model": name_of(model),
        "parameters": {name: _to_json(model, name) for name in model.get_params()},
        "scalars": model._scalar_values(),
        "backend": model._backend,
        "keys": list(keys),
        "notes": {name: None if note is None else asdict(note) for name, note in notes.items()},
        "answers": describe_answers(model, answers),
        "totals": None if model._totals is None else model._totals._asdict(),
    }
    columns = {name: to_column(getattr(model, attribute)) for name, attribute in _VOCABULARIES.items()}
    columns |= {f"key {name}": column for name, column in keys.items()}
    columns |= _list_passages(model._passages, texts)
    return write_archive(path, header, model._state() | state_of_answers(model, answers), columns)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `Model.save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Model
        Fitted, with its results and parameters, except for a `callback`, a model given as `start`, and a `classifier`.
        The default classifier is there, and so are the answers (`responses_`), unless they were left out.

    Examples
    --------
    >>> import consilience as cs, tempfile, pathlib
    >>> answers = {"item": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "x", "y"]}
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "votes.model"
    >>> file = cs.MajorityVote().fit(answers).save(file)
    >>> cs.load(file).labels_
    array(['x', 'y'], dtype=object)
    """
    with open_archive(to_path("path", "load", path)) as archive:
        header, members = upgrade(archive.header, archive.arrays)
        archive = archive._replace(header=header, arrays=members)
        model = _make_model(header, path)
        model._check_parameters()
        model._totals = _read_totals(header["totals"])
        if model._totals is not None and getattr(model, "feature_findings_", None) is not None:
            raise Fault("it has features, but no items")
        sizes = _restore_vocabularies(model, archive)
        specs = model._specs(archive.arrays) | specs_of_answers(archive.arrays)
        _compare("array", specs, archive.arrays)
        arrays = {name: archive.read_array(name, spec, sizes) for name, spec in specs.items()}
        model._restore(arrays)
        model._passages = _restore_passages(model, archive, part_of(arrays, "passages "))
        # Only now is it known that there are as many items as keys, which might have been a few bits each.
        if model._totals is None and pa.table(model._keys).group_by(header["keys"]).aggregate([]).num_rows < sizes["N"]:
            raise Fault("several items have the same key")
        restore_answers(model, header["answers"], arrays)
        for name, figures in header["notes"].items():
            setattr(model, name, _read_note(name, figures, sizes["N"]))
    return model


def _make_model(header: dict[str, Any], path: str | os.PathLike[str]) -> PredictingModel:
    """Return the model that the header names, with its parameters and scalars."""
    _compare("entry of the header", ("format", "schema", *_HEADER), header)
    for part, kind in _HEADER.items():
        if not isinstance(header[part], kind):
            raise Fault(f"the {part} in the header cannot be {shorten(header[part])}")
    name = header["model"]
    if name not in MODELS:  # a file can name nothing else
        raise StoreError(
            f"{os.fspath(path)} holds a model {shorten(name)}, which this release does not know.",
            f"It knows {listing(MODELS)}.",
        )
    kind = model_class(name)
    _compare("parameter", kind._defaults(), header["parameters"])
    _compare("scalar", kind._scalars, header["scalars"])
    model = kind(**{key: _from_json(value) for key, value in header["parameters"].items()})
    for scalar, is_right in model._scalars.items():
        value = header["scalars"][scalar]
        if not is_right(value):
            raise Fault(f"{scalar} cannot be {shorten(value)}")
        setattr(model, scalar, value)
    if header["backend"] not in BACKENDS:
        raise Fault(f"there is no library of tables {shorten(header['backend'])}")
    model._backend = header["backend"]
    return model


def _restore_vocabularies(model: PredictingModel, archive: Archive) -> Sizes:
    """Read the ids of items, workers, labels and classes, and return how many there are of each."""
    keys = archive.header["keys"]
    if keys not in ((["item"], ["sequence", "position"]) if model._totals is None else ([],)):
        raise Fault(f"items cannot be identified by {shorten(keys)}")
    further = [name for name in _PASSAGES if name in archive.columns and keys]
    _compare("column", [*_VOCABULARIES, *(f"key {key}" for key in keys), *further], archive.columns)
    vocabularies = {name: _read_vocabulary(archive, name) for name in _VOCABULARIES}
    lengths = {0 if model._totals is None else model._totals.n_items}
    if keys:
        model._keys = {key: archive.read_column(f"key {key}") for key in keys}
        lengths = {len(column) for column in model._keys.values()}
    if len(lengths) > 1 or 0 in lengths or not len(vocabularies["classes"]):
        raise Fault("there must be items, each with all of its keys, and classes")
    if (lookup(vocabularies["answer labels"], to_column(vocabularies["classes"])) < 0).all():
        raise Fault("no class is among the labels")
    for name, attribute in _VOCABULARIES.items():
        setattr(model, attribute, vocabularies[name])
    n_labels = len(vocabularies["answer labels"])
    silence = WORKERS[model._workers_fitted].hears_silence and "confusion" in archive.arrays
    n_answers = n_labels + (silence and archive.shape_of("confusion")[-1:] == (n_labels + 1,))
    return {
        "N": max(lengths),
        "M": len(vocabularies["workers"]),
        "K": len(vocabularies["classes"]),
        "L": n_labels,
        "A": n_answers,
        "P": n_labels + 1,
    }


def _read_totals(figures: dict[str, Any] | None) -> Totals | None:
    """Return what is known of all labels together, of a model that was fitted to answers on disk."""
    if figures is None:
        return None
    _compare("figure of all labels", Totals._fields, figures)
    found = Totals(**figures)
    if not (
        is_whole(found.n_items) and found.n_items > 0 and is_finite(found.confidence) and 0 <= found.confidence <= 1
    ):
        raise Fault(f"the figures of all labels cannot be {shorten(figures)}")
    return found


def _list_passages(passages: Passages | None, texts: bool) -> dict[str, Column]:
    """Return the columns that tell of the texts that a model was fitted to."""
    if passages is None:
        return {}
    columns = {"passages documents": to_column(passages.documents)}
    if texts and passages.texts is not None:
        column = to_column(passages.texts)
        if isinstance(column, np.ndarray):
            raise StoreError(
                "Cannot save the texts: there is half a character (a lone surrogate) in them, which no encoding knows.",
                "Save the model with texts=False.",
            )
        columns["passages texts"] = column
    if passages.origin is not None:
        columns["passages origin"] = to_column(list(passages.origin))
    return columns


def _restore_passages(model: PredictingModel, archive: Archive, arrays: dict[str, NDArray[Any]]) -> Passages | None:
    """Return the texts that a model was fitted to, if it was."""
    columns = {
        name.removeprefix("passages "): decode_categories(archive.read_column(name))
        for name in _PASSAGES
        if name in archive.columns
    }
    if not columns and not arrays:
        return None
    if model._totals is not None or "documents" not in columns or not arrays or "sequence" not in model._keys:
        raise Fault("it holds only a part of the texts")
    documents = to_values(columns["documents"])
    texts = to_values(columns["texts"]).tolist() if "texts" in columns else None
    origin = to_values(columns["origin"]).tolist() if "origin" in columns else None
    if any(not isinstance(text, str) for text in [*(texts or ()), *(origin or ())]) or len(origin or "ab") != 2:
        raise Fault("texts, and where they come from, must be text")
    kept = {name: freeze(array) for name, array in arrays.items()}
    passages = Passages(documents, texts, origin=None, **kept)
    _check_passages(passages, encode_in_order_of_appearance(model._keys["sequence"])[0])
    return passages._replace(origin=None if origin is None else (origin[0], origin[1]))


def _check_passages(passages: Passages, sequence: NDArray[Any]) -> None:
    """Raise a `Fault` unless the tokens of fused documents are the items, and all tokens are within their texts."""
    documents, texts, offsets, start, end, fused, _ = passages
    n_documents = len(documents)
    alike = len(start) == len(end) and len(offsets) == n_documents + 1 and offsets[0] == 0 and offsets[-1] == len(end)
    if not alike or (np.diff(offsets) < 0).any() or (end <= start).any():
        raise Fault("the tokens are not those of the documents")
    if (np.diff(fused) <= 0).any() or (fused >= n_documents).any() or len(fused) != int(sequence.max()) + 1:
        raise Fault("the documents are not those of the sequences")
    if not np.array_equal(np.diff(offsets)[fused], np.bincount(sequence)):
        raise Fault("the tokens are not the items")
    if texts is not None:
        lengths = np.array([len(text) for text in texts], np.int64)
        if len(lengths) != n_documents or (end > np.repeat(lengths, np.diff(offsets))).any():
            raise Fault("the tokens are not those of the texts")


def _read_vocabulary(archive: Archive, name: str) -> Values:
    """Return distinct values."""
    column = decode_categories(archive.read_column(name))
    if len(pc.unique(column)) < len(column):
        raise Fault(f"the {name} are not distinct")
    return to_values(column)


def _read_note(name: str, figures: Any, n_items: int) -> Any:
    """Return a note, whose figures are numbers, which may be infinite, and counts of items; None if there is none."""
    if name in _NOTES and figures is None:
        return None
    if name not in _NOTES or not isinstance(figures, dict):
        raise Fault(f"there is no note {shorten(name)}, or it has no figures")
    kinds = get_type_hints(_NOTES[name])
    # Figures that have a default may be newer than the file.
    figures = {field.name: field.default for field in fields(_NOTES[name]) if field.default is not MISSING} | figures
    _compare(f"figure of {name}", kinds, figures)
    for figure, value in figures.items():
        is_count = is_whole(value) and value <= n_items
        if not (is_count if kinds[figure] is int else type(value) is float or is_finite(value)):
            raise Fault(f"{figure} of {name} cannot be {shorten(value)}")
    if figures.get("n_items", n_items) != n_items:
        raise Fault(f"{name} is about other items")
    return _NOTES[name](**figures)


def _compare(what: str, expected: Iterable[str], found: Iterable[str]) -> None:
    """Raise a `Fault` unless the names are those that there must be."""
    wanted, there = set(expected), set(found)
    if there != wanted:
        missing, unknown = sorted(wanted - there), sorted(there - wanted)
        words = [f"the {what} {listing(missing)} is missing"] if missing else []
        words += [f"there is no {what} {listing(unknown)} in such a model"] if unknown else []
        raise Fault(", and ".join(words))


def _to_json(model: Model, name: str) -> Any:
    """Return the value of a parameter in terms of JSON."""
    if name in ("callback", "classifier"):
        return None
    value = getattr(model, name)
    if name in _BY_CLASS:
        value = in_order_of_classes(model, name, model.classes_, model._normalised)
    if isinstance(value, Model):
        return "majority"
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    array = np.asarray(value)  # of an array, a list or a table of any kind: `fit` has accepted it
    kept = array.tolist() if array.dtype == bool else array.astype(np.float64).tolist()
    return {"array": kept, "tuple": isinstance(value, tuple)}


def _from_json(value: Any) -> Any:
    """Return the value of a parameter, if it is one that `_to_json` gives."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if not isinstance(value, dict) or value.keys() != {"array", "tuple"} or not isinstance(value["array"], list):
        raise Fault(f"a parameter cannot be {shorten(value)}")
    array = np.array(value["array"])
    if array.dtype.kind not in "bif":
        raise Fault(f"a parameter cannot hold {shorten(value['array'])}")
    return tuple(value["array"]) if value["tuple"] else array
