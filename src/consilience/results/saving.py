"""Results in files, and back: one zip file with a JSON header, NumPy arrays and Arrow columns. No pickle.

The header has the fields of the records of a result. In place of an array or a column stands the word, and the member
has the path of its field as its name, such as ``arrays/fitted_estimates/structure/mean.npy``. What may stand there
follows from the type of the field, and for all that kernels index by from its shape in the table `SHAPES`.

A shape is a text such as ``"N K: probabilities"``: the axes, and perhaps a name of `VALUES`. An axis is a product of
letters: N items, M workers, K classes, L labels, A answers (the labels, and silence where that is one), P previous
answers (the labels, and none); or a number, or "*" for any length. A tuple holds the texts that are allowed. None says
that a field is not saved. Worker models, and results of other rooms, bring such a dict along, as `shapes`.
"""

from __future__ import annotations

import json
import math
import os
import re
import types
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..answers import DIALECTS
from ..answers.columns import (
    Column,
    Values,
    decode_categories,
    encode_in_order_of_appearance,
    find_missing,
    to_column,
    to_values,
)
from ..answers.graph import Graph
from ..answers.keys import Sequences
from ..answers.tables import BACKENDS
from ..errors import StoreError, first_line, listing, shorten
from ..formats.writing import replace_file
from ..inference.em import Estimates
from ..inference.estimator import Estimator, LabelEstimator
from ..inference.structures import StructureParameters, Summary
from ..inference.workers import WORKERS
from ..kernels import freeze
from ..kinds import name_saved
from ..kinds.base import Kind
from .result import Given, Result

Part = TypeVar("Part")
Shape: TypeAlias = str | tuple[str, ...] | Mapping[str, str] | None

FILE_FORMAT, VERSION, HEADER = "consilience-model", 3, "model.json"
# What is said of a model, and of which type.
ENTRIES = {"model": str, "parameters": dict, "fusion": dict}
REMEDY = "Save the model again, or fit again."

# ------------------------------------------------------------------------------------------------------------- shapes

LARGEST_NUMBER, SMALLEST_NUMBER = float(np.finfo(np.float64).max), float(np.nextafter(0, 1))
# The smallest and the largest, and what they are in words. A letter stands for the indices of so many things.
VALUES: dict[str, tuple[float, float | str, str]] = {
    "probabilities": (0, 1, "probabilities"),
    "log weights": (-np.inf, 0, "logarithms of probabilities"),
    "positive": (SMALLEST_NUMBER, LARGEST_NUMBER, "finite numbers > 0"),
    "finite": (-LARGEST_NUMBER, LARGEST_NUMBER, "finite numbers"),
    "counts": (0, LARGEST_NUMBER, "finite counts"),
    "workers": (0, "M", "indices of workers"),
    "labels": (0, "L", "indices of labels"),
    "classes": (0, "K", "indices of classes"),
    "known classes": (-1, "K", "indices of classes, or -1"),
}

STRUCTURE: Mapping[str, Shape] = {"mean": "K: probabilities", "weights": "K: probabilities"}
SUMMARY: Mapping[str, Shape] = {"log_normaliser": None, "mass": "K: counts"}
# By the name of a record and of its field.
SHAPES: dict[str, Mapping[str, Shape]] = {
    "Result": {
        "n_answers": "M: counts",
        "backend": tuple(BACKENDS),
        "prior": "K: probabilities",
        "chance": "M",
        "raters": "M 5",
        "span_confidence": "*: probabilities",
        **dict.fromkeys(("model", "workers", "drift", "voting", "findings", "update")),
    },
    "FusionChecks": {"vote": None},
    "Names": {"workers": "M", "labels": "L", "classes": "K"},
    "Labels": {
        "keys": "N",
        "codes": "N: classes",
        "posterior": "N K: probabilities",
        "uncalibrated": "N K: probabilities",
        "known": "N",
        "rule": ("", "sequence", "median"),
        **dict.fromkeys(("classes", "positions")),
    },
    "Intervals": {"workers": "M 4", "prior": "2 K", "expected": "2"},
    # What it was fitted to. Counts stand for offsets, and steps between the ends of edges for neighbours.
    "Given": dict.fromkeys(("log_prior", "n_blocked")),
    "Gold": {"codes": "N: known classes", "judging": "N", "inclusion": "N: probabilities"},
    "Answers": {
        "offsets": "N: counts",
        "worker": "*: workers",
        "label": "*: labels",
        "soft": "* L: probabilities",
        "format": ("", *(dialect.name for dialect in DIALECTS)),
        **dict.fromkeys(
            ("workers", "labels", "classes", "keys", "backend", "normalised", "positions", "origin", "gold")
        ),
        **dict.fromkeys(("silence_weight", "leader", "share", "declares_order", "budget")),
    },
    "Graph": {"items": None, "offsets": "N: counts", "weights": "*: positive"},
    "Estimates": {"confusion": "M K A: probabilities", "counts": "M L K: counts", "crowd": "1 A K: probabilities"},
    "Cells": {"worker": "*: workers", "label": "*: labels", "klass": "*", "count": "*: counts"},
    "Calibrated": {"predicted": None},
    "Teaching": {
        "scale": "T: finite",
        "bias": "T K: finite",
        "weights": "T M: finite",
        "shares": "T 3: probabilities",
        "cross_fitted": "* K: probabilities",
    },
    "LinearClassifier": {"centre": "D", "scale": "D", "weights": "J D", "offsets": "J", "codes": "J: classes"},
    # Structures, with their summaries.
    "IndependentParameters": STRUCTURE,
    "ChainParameters": {
        "start_factor": "K: probabilities",
        "pair_factor": "K K: probabilities",
        "end_factor": "K: probabilities",
        "initial": "K: probabilities",
        "transition": "K K: probabilities",
        **STRUCTURE,
    },
    "FieldParameters": {"pull": "K: finite", "inference": ("mean_field", "icm", "belief_propagation"), **STRUCTURE},
    "SetsParameters": {"shares": "T: probabilities", **STRUCTURE},
    "Summary": SUMMARY,
    "ChainSummary": {"start": "K: counts", "pairs": "K K: counts", **SUMMARY},
    "FieldSummary": SUMMARY,
    "SetsSummary": SUMMARY,
    # Kinds and rankings.
    "TableKind": dict.fromkeys(("origin", "question")),
    "SpansKind": dict.fromkeys(("offsets", "start", "end", "fused"), "*: counts"),
    "TagsKind": dict.fromkeys(("origin", "question")),
    "Ranking": {
        **dict.fromkeys(("candidates", "part", "rank", "rank_low", "rank_high", "score"), "C"),
        "covariance": "C C: finite",
        "tallies": "3 C",
        **dict.fromkeys(("workers", "asked", "discrimination", "discrimination_error", "bias", "bias_error"), "M"),
        **dict.fromkeys(("agreement", "tied", "first"), "M"),
        "backend": tuple(BACKENDS),
    },
}


def find_length(axis: str, sizes: Mapping[str, int]) -> int | None:
    """The length of an axis; None for one of any length, and of a size that is not known."""
    if axis.isdigit():
        return int(axis)
    factors = [sizes.get(letter) for letter in axis]
    return None if None in factors else math.prod(factor for factor in factors if factor is not None)


def check_shape(name: str, array: NDArray[Any], shape: str, sizes: dict[str, int]) -> None:
    """Raise a `ValueError` unless an array is what it must be. It defines the sizes of letters that are not known.

    >>> check_shape("prior", np.array([0.5, 0.5]), "K: probabilities", {"K": 2})
    >>> check_shape("prior", np.array([0.5, 1.6]), "K: probabilities", {"K": 2})
    Traceback (most recent call last):
    ValueError: prior does not hold probabilities
    """
    axes, _, values = shape.partition(": ")
    lengths = [find_length(axis, sizes) for axis in axes.split()]
    alike = all(length in (None, size) for length, size in zip(lengths, array.shape, strict=False))
    if not alike or len(lengths) != array.ndim:
        wanted = ", ".join("any" if length is None else str(length) for length in lengths)
        raise ValueError(f"{name} has the shape {array.shape}, and not ({wanted})")
    for axis, size in zip(axes.split(), array.shape, strict=True):
        if axis.isalpha() and len(axis) == 1:
            sizes.setdefault(axis, size)
    if not values:
        return
    least, most, words = VALUES[values]
    tolerance = 1e-4 if array.dtype.kind == "f" else 0  # of rounding
    largest = sizes[most] - 1 if isinstance(most, str) else min(most + tolerance, LARGEST_NUMBER)
    if not ((array >= least) & (array <= largest)).all():
        raise ValueError(f"{name} does not hold {words}")


# ------------------------------------------------------------------------------------------------------------- fields


def shapes_of(part: Any) -> Mapping[str, Shape]:
    """The shapes of the fields of a record, which may bring its own."""
    shapes: Mapping[str, Shape] = getattr(part, "shapes", None) or SHAPES.get(part.__name__, {})
    return shapes


def is_record(kind: Any) -> bool:
    """Whether a type is a dataclass or a NamedTuple."""
    return isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields"))


@cache
def list_fields(part: Any) -> dict[str, Any]:
    """The types of the fields of a record that are saved."""
    hints, shapes = get_type_hints(part), shapes_of(part)
    names = [field.name for field in fields(part) if field.init] if is_dataclass(part) else part._fields
    return {name: hints[name] for name in names if shapes.get(name, "") is not None}


def find_dtype(hint: Any) -> Any:
    """The type of the entries of an array of this type; None for a vocabulary, `object` for a column."""
    if types.NoneType in get_args(hint):
        hint = next(each for each in get_args(hint) if each is not types.NoneType)
    if pa.Array in get_args(hint):
        return object
    (dtype,) = get_args(get_args(hint)[1])
    if dtype is Any:
        return None
    return dtype if isinstance(dtype, type) else np.int64


def join(path: str, name: str) -> str:
    """The path of a field."""
    return f"{path}/{name}" if path else name


def compare_names(what: str, expected: Iterable[str], names: object) -> None:
    """Raise a `ValueError` unless these are entries with the names that there must be."""
    if not isinstance(names, dict):
        raise misfit(what, names)
    missing, unknown = sorted(set(expected) - names.keys()), sorted(names.keys() - set(expected))
    if missing:
        raise ValueError(f"the {what} {listing(missing)} is missing")
    if unknown:
        raise ValueError(f"there is no {what} {listing(unknown)} in such a model")


def misfit(path: str, entry: object) -> ValueError:
    """The error for an entry of the header that cannot be so."""
    return ValueError(f"{path} cannot be {shorten(entry)}")


# ------------------------------------------------------------------------------------------------------------ writing


def write_model(path: str | os.PathLike[str], model: str, parameters: Mapping[str, object], fusion: object) -> Path:
    """Write a model to one file: the name of its class, its parameters, and what it found.

    The same content gives the same bytes.
    """
    arrays: dict[str, NDArray[Any]] = {}
    columns: dict[str, Column] = {}

    def pack(value: Any, path: str, hint: Any = None) -> object:
        """The entry of a value in the header."""
        if value is None or isinstance(value, (str, bool, int, float)):
            return value
        if isinstance(value, pa.Array) or (isinstance(value, np.ndarray) and find_dtype(hint) in (None, object)):
            columns[path] = to_column(value)
            return "column"
        if isinstance(value, np.ndarray):
            arrays[path] = narrow(value) if value.dtype.kind in "iu" else value
            return "array"
        if is_record(type(value)):
            hints = list_fields(cast(Any, type(value)))
            packed = {name: pack(getattr(value, name), join(path, name), each) for name, each in hints.items()}
            return {"name": value.name, **packed} if isinstance(value, Kind) else packed
        if isinstance(value, Mapping):
            inner = get_args(hint)[1] if hint else None
            return {name: pack(each, join(path, name), inner) for name, each in value.items()}
        return [pack(each, path) for each in value] if isinstance(value, (list, tuple)) else value.item()

    entry = {"model": model, "parameters": parameters, "fusion": pack(fusion, "")}
    for name, column in columns.items():
        if isinstance(column, np.ndarray):
            odd = next((each for each in column if isinstance(to_column([each]), np.ndarray)), column[0])
            problem = f"is a {type(odd).__name__}, and only text, numbers, booleans and times can be written."
            if isinstance(odd, str):
                problem = "has half a character (a lone surrogate), which no encoding knows."
            what = f"Cannot save the {name.rpartition('/')[2]}: {shorten(odd)}"
            raise StoreError(f"{what} {problem}", "Use other ids, such as text.")
    target = Path(path)
    with replace_file(target) as beside, zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        # Opened by its name, a member has the same date whenever it is written.
        with archive.open(HEADER, "w") as member:
            member.write(json.dumps({"format": FILE_FORMAT, "version": VERSION, **entry}, indent=1).encode())
        for name, array in arrays.items():
            with archive.open(f"arrays/{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)
        for name, column in columns.items():
            table = pa.table({"values": column})
            with (
                archive.open(f"columns/{name}.arrow", "w", force_zip64=True) as member,
                pa.ipc.new_file(pa.PythonFile(member, "w"), table.schema) as writer,
            ):
                writer.write_table(table)
    return target


def narrow(values: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
    """Whole numbers in the narrowest type that holds them.

    >>> narrow(np.array([0, 300])).dtype, narrow(np.array([-1, 5])).dtype
    (dtype('uint16'), dtype('int16'))
    """
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    return values.astype(np.result_type(np.min_scalar_type(low), np.min_scalar_type(high)))


def describe_model(
    result: Result, parameters: Mapping[str, object], *, answers: bool = True, texts: bool = True
) -> dict[str, Any]:
    """The header and parts of the file of a model of labels; see `Model.save`."""
    r, graph = result.given.answers, result.given.graph
    given = result.given._replace(answers=None, graph=None)
    if answers and r is not None:
        place = np.flatnonzero(r.vote_shares())[0].item() if r.silence_counts else None
        given = given._replace(answers=replace(r, offsets=np.diff(r.offsets), background=place))
        if graph is not None:
            steps = graph.neighbours - find_ends(graph)
            given = given._replace(graph=replace(graph, offsets=graph.degrees, neighbours=steps))
    kept = replace(result, kind=result.kind.to_saved(texts), fitted_estimates=result.estimates, given=given)
    plain = {name: to_plain(name, value) for name, value in parameters.items()}
    return {"model": result.model, "parameters": plain, "fusion": kept}


def find_ends(graph: Graph) -> NDArray[np.int32]:
    """The node that each edge begins at."""
    return np.repeat(np.arange(graph.n_items, dtype=np.int32), graph.degrees)


def to_plain(name: str, value: Any) -> object:
    """The value of a parameter in terms of JSON."""
    if name == "callback":
        return None
    if isinstance(value, Estimator):
        return "majority"
    if isinstance(value, np.generic):
        return cast(object, value.item())
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping) or (name == "prior" and hasattr(value, "reindex")):  # a number for each class
        return {"names": {str(each): float(number) for each, number in value.items()}}
    array = np.asarray(value)  # of an array or a list: `fit` has accepted it
    kept = array.tolist() if array.dtype == bool else array.astype(np.float64).tolist()
    return {"array": kept, "tuple": isinstance(value, tuple)}


def from_plain(value: object) -> object:
    """The value of a parameter, if it is one that `to_plain` gives."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, dict) and value.keys() == {"names"} and isinstance(value["names"], dict):
        return {name: float(number) for name, number in value["names"].items()}
    if not isinstance(value, dict) or value.keys() != {"array", "tuple"}:
        raise ValueError(f"a parameter cannot be {shorten(value)}")
    array = np.array(value["array"])
    if array.dtype.kind not in "bif":
        raise ValueError(f"a parameter cannot hold {shorten(value['array'])}")
    return tuple(value["array"]) if value["tuple"] else array


# ------------------------------------------------------------------------------------------------------------ reading


class SavedModel:
    """The content of a file. It is read part by part, each after those that it depends on.

    Attributes
    ----------
    model : str
        The name of the model's class.
    parameters : dict
        What its constructor takes.
    fusion : dict
        The header of what was found.
    """

    def __init__(self, entry: Mapping[str, Any], parts: dict[str, Any], path: str = "") -> None:
        for name, kind in ENTRIES.items():
            if not isinstance(entry[name], kind):
                raise ValueError(f"the {join(path, name)} in the header cannot be {shorten(entry[name])}")
        self.model, self.fusion, self.path = entry["model"], entry["fusion"], path
        self.parameters = {name: from_plain(value) for name, value in entry["parameters"].items()}
        self.parts = parts  # arrays and columns that were not looked at yet, by their members
        self.sizes: dict[str, int] = {}  # how many there are of what a letter stands for
        self.kinds: dict[Any, type] = {}  # what parts of these types are in this model
        self.known: dict[str, Any] = {}  # fields that are not saved, since they are known otherwise

    def read_result(self, model: LabelEstimator) -> Result:
        """The result of a model with these parameters, if all of it can be so."""
        self.known.update(model=self.model, log_normaliser=0.0, keys=None, items=None)
        self.kinds |= {StructureParameters: model._structure_type, Summary: model._summary_type}
        result, sizes = self.read_part(Result, self.fusion, self.path), self.sizes
        keys, estimates = list(result.labels.keys), result.estimates
        if keys[:1] != ["item"] and keys[:2] != ["sequence", "position"]:
            raise misfit("labels/keys", dict.fromkeys(keys, "column"))
        if result.labels.n_items < 1:
            raise ValueError("there are no items")
        if sizes.get("A", sizes["L"]) - sizes["L"] not in (0, int(estimates.worker_model.hears_silence)):
            raise ValueError(f"workers of the kind {estimates.worker_model_name!r} cannot give {sizes['A']} answers")
        context = estimates.worker_model.context
        n_contexts = estimates.further[f"_{context}_counts"].shape[1] if context else 1
        if len(estimates.log_weights) != sizes["M"] * n_contexts:
            raise ValueError(f"log_weights are not those of {n_contexts:,} matrices of each worker")
        result.kind.check_items(result.labels.keys)
        self.check_all_was_read()
        return replace(result, given=restore_given(result))

    def check_all_was_read(self) -> None:
        """Raise a `ValueError` for arrays and columns of the model that no part has read."""
        for member in sorted(self.parts):
            what, _, path = member.partition("s/")
            if path.startswith(self.path):
                raise ValueError(f"there is no {what} {path.rpartition('.')[0]!r} in such a model")

    def read_part(self, part: type[Part], entries: Any, path: str) -> Part:
        """A record, by its entries in the header; fields that are not saved are known, or have their defaults."""
        hints, shapes = list_fields(cast(Any, part)), shapes_of(part)
        compare_names(f"entry of {path or 'the result'}", hints, entries)
        values = {name: self.known[name] for name, shape in shapes.items() if shape is None and name in self.known}
        for name, hint in hints.items():  # in this order: some depend on those before
            values[name] = self.read(hint, entries[name], join(path, name), shapes.get(name, ""))
            if name == "names" and part is Result:  # which labels have too
                self.known.update(values[name]._asdict())
                self.sizes["P"] = self.sizes["L"] + 1  # previous answers: the labels, and none
            if name == "worker_model_name" and part is Estimates:
                if values[name] not in WORKERS:
                    raise misfit(join(path, name), values[name])
                shapes = {**shapes, **WORKERS[values[name]].shapes}
        return part(**values)

    def read(self, hint: Any, entry: Any, path: str, shape: Shape = "") -> Any:
        """A value of a type, which has a shape."""
        if entry is None and types.NoneType in get_args(hint):
            return None
        if get_origin(hint) in (Union, types.UnionType) and pa.Array not in get_args(hint):
            hint = next(each for each in get_args(hint) if each is not types.NoneType)
        kind, inner = get_origin(hint) or hint, [each for each in get_args(hint) if each is not ...]
        if kind is np.ndarray or pa.Array in inner:
            return self.take(find_dtype(hint), entry, path, cast(str, shape))
        if kind is Kind:
            made = name_saved().get(str(entry.get("name"))) if isinstance(entry, dict) else None
            if made is None:
                raise misfit(path, entry)
            return self.read_part(made, {name: each for name, each in entry.items() if name != "name"}, path)
        if kind in self.kinds or is_record(kind):
            return self.read_part(self.kinds.get(kind, kind), entry, path)
        if isinstance(kind, type) and issubclass(kind, Mapping):
            shapes = shape if isinstance(shape, Mapping) else dict.fromkeys(entry, shape)
            compare_names(f"array of {path}", shapes, entry)
            return {name: self.read(inner[1], each, join(path, name), shapes[name]) for name, each in entry.items()}
        if kind in (list, tuple):
            is_row = kind is tuple and ... not in get_args(hint)  # with an entry for each type
            if not isinstance(entry, list) or (is_row and len(entry) != len(inner)):
                raise misfit(path, entry)
            return kind(self.read(inner[n if is_row else 0], each, path, shape) for n, each in enumerate(entry))
        if kind is Any:  # a background: the index of a class
            kind = type(entry) if entry is None else int
        is_right = type(entry) is kind or (kind is float and type(entry) is int)
        if not is_right or (isinstance(shape, tuple) and entry not in shape) or (kind is int and entry < 0):
            raise misfit(path, entry)
        return entry

    def take(self, dtype: Any, entry: object, path: str, shape: str) -> Any:
        """An array of this shape, or a column of ids; either may define how many there are of something."""
        what, suffix = ("column", "arrow") if dtype in (None, object) else ("array", "npy")
        if entry != what:
            raise misfit(path, entry)
        member = f"{what}s/{path}.{suffix}"
        if member not in self.parts:
            raise ValueError(f"the {what} {path!r} is missing")
        part = self.parts.pop(member)
        if what == "array":
            kinds = "iu" if np.dtype(dtype).kind == "i" else np.dtype(dtype).kind
            if part.dtype.kind not in kinds:
                raise ValueError(f"{member} holds values of type {part.dtype}")
            if shape:
                check_shape(member, part, shape, self.sizes)
            return freeze(np.asarray(part, np.int32 if shape.endswith(": labels") else dtype, order="C"))
        if shape and self.sizes.setdefault(shape, len(part)) != len(part):
            raise ValueError(f"{path} has {len(part):,} entries, and not {self.sizes[shape]:,}")
        if dtype is object:
            return part
        column = decode_categories(part)
        if shape and len(pc.unique(column)) < len(column):
            raise ValueError(f"the {path} are not distinct")
        return to_values(column)


@contextmanager
def open_saved(path: str | os.PathLike[str]) -> Iterator[SavedModel]:
    """Give what a file holds; whatever is wrong with it, also in the block, is a `StoreError`."""
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(path) as file:
            header, parts = read_header(file), dict[str, Any]()
            for member in file.namelist():
                if re.fullmatch(r"arrays/.+\.npy", member):
                    with file.open(member) as stream:
                        parts[member] = np.lib.format.read_array(stream, allow_pickle=False)
                elif re.fullmatch(r"columns/.+\.arrow", member):
                    with pa.ipc.open_file(pa.BufferReader(file.read(member))) as reader:
                        table = reader.read_all()
                    table.validate(full=True)
                    parts[member] = table.unify_dictionaries().column(0).combine_chunks()
                    if pa.types.is_nested(parts[member].type) or len(find_missing(parts[member])):
                        raise ValueError(f"{member} has missing entries, or is not a column of plain values")
                elif member != HEADER:
                    raise ValueError(f"it holds {shorten(member)}, which is no part of a model")
        compare_names("entry of the header", ("format", "version", *ENTRIES), header)
        yield SavedModel(header, parts)
    except StoreError:
        raise
    except FileNotFoundError as error:
        raise StoreError(f"There is no file {name}.", "Check the name.") from error
    except (zipfile.BadZipFile, IsADirectoryError) as error:
        problem = f"{name} is not a model saved by consilience, or is damaged: {first_line(error)}."
        raise StoreError(problem, REMEDY) from error
    except PermissionError as error:
        raise StoreError(f"{name} cannot be read: {first_line(error)}.", "Allow to read it.") from error
    except Exception as error:
        raise StoreError(f"{name} is damaged: {first_line(error)[:500]}.", REMEDY) from error


def read_header(file: zipfile.ZipFile) -> dict[str, Any]:
    """The header of a file, if this is the file of a model that this release can read."""
    if HEADER not in file.namelist():
        raise zipfile.BadZipFile(f"it has no {HEADER}")
    try:
        header = json.loads(file.read(HEADER))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{HEADER} is not JSON ({first_line(error)})") from error
    if not isinstance(header, dict) or header.get("format") != FILE_FORMAT:
        raise zipfile.BadZipFile(f"its {HEADER} does not say so")
    version = header.get("version")
    if version != VERSION:
        raise StoreError(
            f"{file.filename} was saved by another release of consilience (version {shorten(version)} of the format; "
            f"this release reads {VERSION}).",
            "Use that release, or fit again.",
        )
    return header


def restore_given(result: Result) -> Given:
    """The answers and the graph of a model, with all that is saved elsewhere in the file."""
    r, graph, names, keys = result.given.answers, result.given.graph, result.names, result.labels.keys
    if r is None:
        return result.given._replace(graph=None)
    items: Values | Sequences
    if "item" in keys:
        items = to_values(decode_categories(keys["item"]))
    else:  # positions of a sequence stand together, in their order
        owner, ids = encode_in_order_of_appearance(keys["sequence"])
        position = to_values(decode_categories(keys["position"]))
        rank = np.unique(position, return_inverse=True)[1]
        if (np.diff(owner) < 0).any() or (np.diff(rank)[np.diff(owner) == 0] <= 0).any():
            raise ValueError("the items of a sequence must stand together, in the order of their positions")
        items = Sequences(ids, np.searchsorted(owner, np.arange(len(ids) + 1)).astype(np.int64), position)
    columns = (r.worker, r.label, r.weight, r.order, r.soft)
    if {len(each) for each in columns if each is not None} != {int(r.offsets.sum())}:
        raise ValueError("there are not as many answers as the items have")
    r = replace(
        r,
        offsets=np.concatenate([[0], np.cumsum(r.offsets)]),
        keys=items,
        backend=result.backend,
        background=None if r.background is None else names.classes[[r.background]].tolist()[0],
        normalised=names.normalised,
        positions=names.positions,
    )
    if graph is not None:
        if {len(graph.neighbours), len(graph.weights)} != {int(graph.offsets.sum())}:
            raise ValueError("there are not as many edges as the items have")
        graph = replace(graph, items=r.items, offsets=np.concatenate([[0], np.cumsum(graph.offsets)]))
        neighbours = graph.neighbours + find_ends(graph)
        if (neighbours < 0).any() or (neighbours >= r.n_items).any():
            raise ValueError("an edge must join two items")
        graph = replace(graph, neighbours=freeze(neighbours.astype(np.int32)))
    return result.given._replace(answers=r, graph=graph)
