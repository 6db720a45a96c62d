"""Saving fitted models, and loading them."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..data.vocabulary import to_column, to_values
from ..errors import StoreError, shorten
from .archive import read_archive, write_archive
from .base import Model
from .checks import in_order_of_classes
from .comparison import Comparison
from .markov_field import GraphCheck
from .register import MODELS, model_class, name_of

# Parameters whose rows are classes, which a table may name in any order.
_BY_CLASS = ("prior", "transitions")
# Notes that only `fuse` makes, by attribute.
_NOTES = {"comparison_": Comparison, "graph_check_": GraphCheck}


def save_model(model: Model, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to one file; see `Model.save`."""
    vocabularies = {"classes": model.classes_, "workers": model.workers_, "answer labels": model.answer_labels_}
    notes = {name: getattr(model, name) for name in _NOTES if hasattr(model, name)}
    header = {
        "model": name_of(model),
        "parameters": {name: _to_json(model, name) for name in model.get_params()},
        "scalars": {name: getattr(model, name) for name in model._scalars},
        "backend": model._backend,
        "keys": list(model._keys),
        "notes": {name: None if note is None else asdict(note) for name, note in notes.items()},
    }
    columns = {name: to_column(values) for name, values in vocabularies.items()}
    columns |= {f"key {name}": column for name, column in model._keys.items()}
    return write_archive(path, header, model._state(), columns)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `Model.save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Model
        Fitted, with its results and parameters, except for a `callback` or a model given as `start`.

    Examples
    --------
    >>> import consilience as cs, tempfile, pathlib
    >>> answers = {"item": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "x", "y"]}
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "votes.model"
    >>> file = cs.MajorityVote().fit(answers).save(file)
    >>> cs.load(file).labels_
    array(['x', 'y'], dtype=object)
    """
    archive = read_archive(path)
    header = archive.header
    try:
        name = header["model"]
        if name not in MODELS:  # a file can name nothing else
            raise StoreError(f"{os.fspath(path)} holds a {shorten(name)}, which this release does not know.")
        model = model_class(name)(**{key: _from_json(value) for key, value in header["parameters"].items()})
        model.classes_ = to_values(archive.columns["classes"])
        model.workers_ = to_values(archive.columns["workers"])
        model.answer_labels_ = to_values(archive.columns["answer labels"])
        model._keys = {key: archive.columns[f"key {key}"] for key in header["keys"]}
        model._backend = header["backend"]
        for scalar in model._scalars:
            setattr(model, scalar, header["scalars"][scalar])
        model._restore(archive.arrays)
        for note, figures in header["notes"].items():
            setattr(model, note, None if figures is None else _NOTES[note](**figures))
    except (KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            f"{os.fspath(path)} is damaged: a part of the model is missing or wrong ({error!r}).",
            "Save the model again.",
        ) from error
    return model


def _to_json(model: Model, name: str) -> Any:
    """Return the value of a parameter in terms of JSON."""
    if name == "callback":
        return None
    value = in_order_of_classes(model, name, model.classes_) if name in _BY_CLASS else getattr(model, name)
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
    if isinstance(value, dict):
        return tuple(value["array"]) if value["tuple"] else np.array(value["array"])
    return value
