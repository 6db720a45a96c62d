"""Results in files, and back: one zip file with a JSON header, NumPy arrays and Arrow columns. No pickle.

The header has the fields of the records of a result. In place of an array or a column stands the word, and the member
has the path of its field as its name, such as ``arrays/estimates/structure/mean.npy``. What may stand there follows
from the type of the field, and from the table in `consilience.results.shapes`.
"""

from __future__ import annotations

import json
import os
import re
import types
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

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
    lookup,
    to_column,
    to_values,
)
from ..answers.graph import Graph
from ..answers.items import Sequences
from ..errors import StoreError, first_line, listing, shorten
from ..formats.writing import replace_file
from ..inference.classifiers import Judge, LinearJudge
from ..inference.em import Learned
from ..inference.estimator import Estimator, LabelEstimator, LatentEstimator
from ..inference.starts import in_order_of_classes
from ..inference.structures import StructureParameters, Summary
from ..inference.workers import WORKERS
from ..kernels import freeze
from ..kinds import name_saved
from ..kinds.base import Kind
from .calibration import count_spans
from .result import Given, Result
from .shapes import COLUMNS, SHAPES, VALUES, Shape, check_shape

Part = TypeVar("Part")

FORMAT, VERSION, HEADER = "consilience-model", 1, "model.json"
# What the header holds beside format and version, and of which type.
_ENTRIES = {"model": str, "parameters": dict, "fusion": dict}
# What stands in the header for what is beside it.
_ARRAY, _COLUMN = "array", "column"
# Parameters whose rows are classes, which a table may name in any order.
_BY_CLASS = ("prior", "transitions")
_SCALARS: dict[Any, Callable[[Any], bool]] = {
    int: lambda value: type(value) is int and 0 <= value < 2**63,
    Any: lambda value: value is None or _SCALARS[int](value),  # a background: the index of a class
    float: lambda value: type(value) is float or (type(value) is int and abs(value) < 2**63),
    bool: lambda value: type(value) is bool,
    str: lambda value: type(value) is str,
}
_REMEDY = "Save the model again, or fit again."


def join(path: str, name: str) -> str:
    """The path of a field."""
    return f"{path}/{name}" if path else name


def is_record(kind: Any) -> bool:
    """Whether a type is a dataclass or a NamedTuple."""
    return isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields"))


def find_shapes(part: Any, worker_model: str | None = None) -> Mapping[str, Shape]:
    """The shapes of the fields of a record; those of what was learned depend on the worker model."""
    shapes = getattr(part, "shapes", None) or SHAPES.get(part.__name__, {})
    return shapes if worker_model is None else {**shapes, **WORKERS[worker_model].shapes}


@cache
def list_fields(part: Any) -> dict[str, Any]:
    """The types of the fields of a record that are saved."""
    hints, shapes = get_type_hints(part), find_shapes(part)
    names = [field.name for field in fields(part) if field.init] if is_dataclass(part) else part._fields
    return {name: hints[name] for name in names if shapes.get(name, "") is not None}


def compare_names(what: str, expected: Iterable[str], found: object) -> None:
    """Raise a `ValueError` unless these are entries with the names that there must be."""
    if not isinstance(found, dict):
        raise misfit(what, found)
    missing, unknown = sorted(set(expected) - found.keys()), sorted(found.keys() - set(expected))
    if missing:
        raise ValueError(f"the {what} {listing(missing)} is missing")
    if unknown:
        raise ValueError(f"there is no {what} {listing(unknown)} in such a model")


def misfit(path: str, entry: object) -> ValueError:
    """What is wrong with an entry of the header."""
    return ValueError(f"{path} cannot be {shorten(entry)}")


# ------------------------------------------------------------------------------------------------------------ writing


def save_result(
    fusion: Result, parameters: Mapping[str, object], path: str | os.PathLike[str], *, answers: bool, texts: bool
) -> Path:
    """Write a result and the parameters of its model to one file; see `Model.save`."""
    guidance = fusion.guidance
    if guidance is not None and guidance.guide is not None and not isinstance(guidance.guide.judge, LinearJudge):
        guidance = guidance._replace(guide=None)
    given = fusion.given._replace(answers=None, graph=None)
    r, graph = fusion.given.answers, fusion.given.graph
    if answers and r is not None:
        place = np.flatnonzero(r.vote_shares())[0].item() if r.silence_counts else None
        given = given._replace(answers=replace(r, offsets=np.diff(r.offsets), background=place))
        if graph is not None:
            given = given._replace(
                graph=replace(graph, offsets=graph.degrees, neighbours=graph.neighbours - find_ends(graph))
            )
    kept = replace(fusion, task=fusion.task.to_saved(texts), guidance=guidance, estimates=fusion.learned, given=given)
    plain = {name: _to_json(fusion, name, value) for name, value in parameters.items()}
    return write_parts(path, fusion.model, plain, kept)


def find_ends(graph: Graph) -> NDArray[np.int32]:
    """The node that each edge begins at."""
    return np.repeat(np.arange(graph.n_items, dtype=np.int32), graph.degrees)


def write_parts(
    path: str | os.PathLike[str],
    model: str,
    parameters: Mapping[str, object],
    fusion: object,
) -> Path:
    """Write what a model found to one file. The same content gives the same bytes."""
    arrays: dict[str, NDArray[Any]] = {}
    columns: dict[str, Column] = {}

    def pack(value: Any, path: str, shape: Shape = "") -> object:
        """What stands for a value in the header."""
        if value is None or isinstance(value, (str, bool, int, float)):
            return value
        if isinstance(shape, str) and shape.rpartition(": ")[2] in COLUMNS and not isinstance(value, Mapping):
            columns[path] = to_column(value)
            return _COLUMN
        if isinstance(value, np.ndarray):
            arrays[path] = narrow(value) if value.dtype.kind in "iu" else value
            return _ARRAY
        if is_record(type(value)):
            shapes = find_shapes(type(value))
            packed = {
                name: pack(getattr(value, name), join(path, name), shapes.get(name, ""))
                for name in list_fields(cast(Any, type(value)))
            }
            return {"name": value.name, **packed} if isinstance(value, Kind) else packed
        if isinstance(value, Mapping):
            return {name: pack(each, join(path, name), shape) for name, each in value.items()}
        return [pack(each, path) for each in value] if isinstance(value, (list, tuple)) else value.item()

    found = pack(fusion, "")
    for name, column in columns.items():
        if isinstance(column, np.ndarray):
            raise _unsavable(name, column)
    header = {"format": FORMAT, "version": VERSION, "model": model, "parameters": parameters, "fusion": found}
    text, target = json.dumps(header, indent=1).encode(), Path(path)
    with replace_file(target) as beside, zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        # Opened by its name, a member has the same date whenever it is written.
        with archive.open(HEADER, "w") as member:
            member.write(text)
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


def _unsavable(name: str, column: NDArray[np.object_]) -> StoreError:
    odd = next((entry for entry in column if isinstance(to_column([entry]), np.ndarray)), column[0])
    if isinstance(odd, str):
        problem, remedy = "has half a character (a lone surrogate), which no encoding knows.", "Use other ids."
    else:
        problem = f"is a {type(odd).__name__}, and only text, numbers, booleans and times can be written."
        remedy = "Use their text as ids."
    return StoreError(f"Cannot save the {name.rpartition('/')[2]}: {shorten(odd)} {problem}", remedy)


# ------------------------------------------------------------------------------------------------------------ reading


@dataclass(frozen=True)
class SavedModel:
    """A file with a result, which is being read part by part, each after those that it depends on.

    Attributes
    ----------
    model : str
        The name of the model's class.
    parameters : dict
        What its constructor takes.
    """

    model: str
    parameters: dict[str, object]
    header: dict[str, Any]
    parts: dict[str, Any]  # arrays and columns that were not looked at yet, by their members
    sizes: dict[str, int]  # see `consilience.results.shapes`
    kinds: dict[Any, type]  # what parts of these types are in this model
    known: dict[str, Any]  # fields that are not saved, since they are known otherwise

    def read_result(self, model: LabelEstimator) -> Result:
        """The result of a model with these parameters, if all of it can be so."""
        self.known.update(model=self.model, log_normaliser=0.0, keys=None, items=None)
        self.kinds.update(
            {StructureParameters: model._structure_type, Summary: model._summary_type, Judge: LinearJudge}
        )
        found = self.read_part(Result, self.header["fusion"], "")
        self.check_all_was_read()
        found = replace(found, given=restore_given(found))
        check_whole(found, model, self.sizes)
        return found

    def check_all_was_read(self) -> None:
        """Raise a `ValueError` for arrays and columns that nobody asked for."""
        for name in sorted(self.parts):
            what, _, path = name.partition("s/")
            raise ValueError(f"there is no {what} {path.rpartition('.')[0]!r} in such a model")

    def read_part(self, part: type[Part], entries: object, path: str) -> Part:
        """A record, by its entries in the header; fields that are not saved are known, or have their defaults."""
        hints, shapes = list_fields(cast(Any, part)), find_shapes(part)
        compare_names(f"entry of {path or 'the result'}", hints, entries)
        found = {name: self.known[name] for name, shape in shapes.items() if shape is None and name in self.known}
        for name, hint in hints.items():  # in this order: some depend on those before
            found[name] = self.read(hint, cast(dict[str, Any], entries)[name], join(path, name), shapes.get(name, ""))
            if name == "names" and part is Result:  # which labels have too
                self.known.update(found[name]._asdict())
            if name == "kind" and part is Learned:
                if found[name] not in WORKERS:
                    raise misfit(join(path, name), found[name])
                shapes = find_shapes(part, str(found[name]))
        return part(**found)

    def read(self, hint: Any, entry: Any, path: str, shape: Shape = "") -> Any:
        """A value of a type, which has a shape."""
        if entry is None and types.NoneType in get_args(hint):
            return None
        if isinstance(shape, Mapping):  # arrays by name
            compare_names(f"array of {path}", shape, entry)
            return {name: self.take(each, join(path, name), shape[name]) for name, each in entry.items()}
        axes, _, values = shape.rpartition(": ") if isinstance(shape, str) else ("", "", "")
        if axes and isinstance(entry, dict):
            return {name: self.take(each, join(path, name), f"{axes}: {values}") for name, each in entry.items()}
        if axes:
            return self.take(entry, path, f"{axes}: {values}")

        if get_origin(hint) in (Union, types.UnionType):
            hint = next(each for each in get_args(hint) if each is not types.NoneType)
        kind, inner = get_origin(hint) or hint, [each for each in get_args(hint) if each is not ...]
        if kind is Kind:
            made = name_saved().get(str(entry.get("name"))) if isinstance(entry, dict) else None
            if made is None:
                raise misfit(path, entry)
            return self.read_part(made, {name: each for name, each in entry.items() if name != "name"}, path)
        if kind in self.kinds or is_record(kind):
            return self.read_part(self.kinds.get(kind, kind), entry, path)
        if kind in _SCALARS:
            is_right = _SCALARS[kind](entry) and (not isinstance(shape, tuple) or entry in shape)
            if not is_right or (values and not VALUES[values].hold(np.asarray(entry, np.float64), self.sizes)):
                raise misfit(path, entry)
            return entry
        if issubclass(kind, Mapping) and isinstance(entry, dict):
            return {name: self.read(inner[1], each, join(path, name), shape) for name, each in entry.items()}
        is_row = kind is tuple and ... not in get_args(hint)  # with an entry for each type
        if issubclass(kind, Mapping) or not isinstance(entry, list) or (is_row and len(entry) != len(inner)):
            raise misfit(path, entry)
        entries = [self.read(inner[n if is_row else 0], each, path, shape) for n, each in enumerate(entry)]
        return tuple(entries) if kind is tuple else entries

    def take(self, entry: object, path: str, shape: str) -> Any:
        """An array of this shape, or a column of ids; either may define how many there are of something."""
        length, values = shape.split(": ")
        what, suffix = (_COLUMN, "arrow") if values in COLUMNS else (_ARRAY, "npy")
        if entry != what:
            raise misfit(path, entry)
        member = f"{what}s/{path}.{suffix}"
        if member not in self.parts:
            raise ValueError(f"the {what} {path!r} is missing")
        part = self.parts.pop(member)
        if what == _ARRAY:
            check_shape(member, part, shape, self.sizes)
            return freeze(np.asarray(part, VALUES[values].type or part.dtype, order="C"))
        if length != "*" and self.sizes.setdefault(length, len(part)) != len(part):
            raise ValueError(f"{path} has {len(part):,} entries, and not {self.sizes[length]:,}")
        if length == "L":
            self.sizes["P"] = len(part) + 1  # previous answers: the labels, and none
        if values == "column":
            return part
        column = decode_categories(part)
        if values == "names" and len(pc.unique(column)) < len(column):
            raise ValueError(f"the {path} are not distinct")
        if values != "texts":
            return to_values(column)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise ValueError(f"{path} must be text")
        return column.to_pylist()


@contextmanager
def open_saved(path: str | os.PathLike[str]) -> Iterator[SavedModel]:
    """Give what a file holds; whatever is wrong with it, also in the block, is a `StoreError`."""
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(path) as file:
            header, parts = _read_header(file), dict[str, Any]()
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
            compare_names("entry of the header", ("format", "version", *_ENTRIES), header)
            for part, kind in _ENTRIES.items():
                if not isinstance(header[part], kind):
                    raise ValueError(f"the {part} in the header cannot be {shorten(header[part])}")
            parameters = {name: _from_json(value) for name, value in header["parameters"].items()}
            yield SavedModel(header["model"], parameters, header, parts, {}, {Judge: LinearJudge}, {})
    except FileNotFoundError as error:
        raise StoreError(f"There is no file {name}.", "Check the name.") from error
    except (zipfile.BadZipFile, IsADirectoryError) as error:
        problem = f"{name} is not a model saved by consilience, or is damaged: {first_line(error)}."
        raise StoreError(problem, _REMEDY) from error
    except PermissionError as error:
        raise StoreError(f"{name} cannot be read: {first_line(error)}.", "Allow to read it.") from error
    except StoreError:
        raise
    except (
        pa.ArrowException,
        OSError,
        EOFError,
        zlib.error,
        ValueError,
        OverflowError,
        RuntimeError,
        MemoryError,
    ) as error:
        raise StoreError(f"{name} is damaged: {first_line(error)[:500]}.", _REMEDY) from error


def _read_header(file: zipfile.ZipFile) -> dict[str, Any]:
    if HEADER not in file.namelist():
        raise zipfile.BadZipFile(f"it has no {HEADER}")
    try:
        header = json.loads(file.read(HEADER))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{HEADER} is not JSON ({first_line(error)})") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise zipfile.BadZipFile(f"its {HEADER} does not say so")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise ValueError(f"{HEADER} names no version, but {shorten(version)}")
    if version > VERSION:
        raise StoreError(
            f"{file.filename} was saved by a newer release of consilience (version {version} of the format; "
            f"this release reads up to {VERSION}).",
            "Upgrade consilience, or fit again.",
        )
    return header


def restore_given(found: Result) -> Given:
    """What a model was fitted to, with all that is saved elsewhere in the file."""
    (r, gold, graph, *_), names, keys = found.given, found.names, found.labels.keys
    if r is None:
        return found.given
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
    if r.background is not None and r.background >= len(names.classes):
        raise ValueError("the background must be a class")
    if r.format not in ("", *(dialect.name for dialect in DIALECTS)):
        raise misfit("given/answers/format", r.format)
    r = replace(
        r,
        offsets=np.concatenate([[0], np.cumsum(r.offsets)]),
        keys=items,
        backend=found.backend,
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
    return Given(r, gold, graph, has_priors=found.given.has_priors)


def check_whole(found: Result, model: LabelEstimator, sizes: Mapping[str, int]) -> None:
    """Raise a `ValueError` unless the parts of a result are those of one fit of this model."""
    names, labels, estimates, is_latent = found.names, found.labels, found.estimates, isinstance(model, LatentEstimator)
    keys, scale = list(labels.keys), names.positions
    if keys[:1] != ["item"] and keys[:2] != ["sequence", "position"]:
        raise misfit("labels/keys", dict.fromkeys(keys, _COLUMN))
    if labels.n_items < 1:
        raise ValueError("there are no items")
    # Only now is it known that there are as many items as keys, which might have been a few bits each.
    if pa.table(labels.keys).group_by(keys).aggregate([]).num_rows < labels.n_items:
        raise ValueError("several items have the same key")
    if scale is not None and (len(scale) != sizes["K"] or not (np.diff(scale) > 0).all()):
        raise ValueError("the positions of the classes do not increase from each to the next")
    if (lookup(names.labels, to_column(names.classes)) < 0).all():
        raise ValueError("no class is among the labels")
    members = [member for group in found.copies for member in group]
    if len(set(members)) < len(members) or any(len(group) < 2 for group in found.copies):
        raise misfit("copies", found.copies)
    if max(members, default=0) >= sizes["M"]:
        raise ValueError("a group of copies names a worker who is not there")
    if (found.given.graph is not None) != (model._takes_graph and found.given.answers is not None):
        raise ValueError("there must be a graph beside the answers if the model is one of a graph, and only then")

    # What was learned.
    if estimates is None:
        raise ValueError("what was learned is missing")
    if sizes["A"] - sizes["L"] not in (0, int(estimates.worker_model.hears_silence)):
        raise ValueError(f"workers of the kind {estimates.kind!r} cannot give {sizes['A']} answers")
    context = estimates.worker_model.context
    n_contexts = estimates.further[f"_{context}_counts"].shape[1] if context else 1
    if len(estimates.log_weights) != sizes["M"] * n_contexts:
        raise ValueError(f"log_weights are not those of {n_contexts:,} matrices of each worker")
    parts = [found.calibrated, labels.uncalibrated, *([found.intervals.workers] if is_latent else [])]
    if {part is not None for part in parts} != {is_latent}:
        raise ValueError(f"calibration and intervals are not those of {found.model}")
    if (found.coupling is not None) != ("coupling" in list_fields(model._structure_type)):
        raise ValueError(f"the coupling is not that of {found.model}")
    model._check_learned(estimates.structure)
    if found.span_confidence is not None:
        if "sequence" not in labels.keys:
            raise ValueError("it has spans, but no sequences")
        if count_spans(labels.codes, names.classes, labels.keys["sequence"]) != len(found.span_confidence):
            raise ValueError("there is not one confidence for each span")
    found.task.check_items(labels.keys)


# ---------------------------------------------------------------------------------------------------------- parameters


def _to_json(fusion: Result, name: str, value: object) -> object:
    """The value of a parameter in terms of JSON."""
    if name in ("callback", "classifier"):
        return None
    if name in _BY_CLASS:
        owner = types.SimpleNamespace(model=fusion.model, **{name: value})
        value = in_order_of_classes(owner, name, fusion.names.classes, fusion.names.normalised)
    if isinstance(value, Estimator):
        return "majority"
    if isinstance(value, np.generic):
        return cast(object, value.item())
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    array = np.asarray(value)  # of an array, a list or a table of any kind: `fit` has accepted it
    kept = array.tolist() if array.dtype == bool else array.astype(np.float64).tolist()
    return {"array": kept, "tuple": isinstance(value, tuple)}


def _from_json(value: object) -> object:
    """The value of a parameter, if it is one that `_to_json` gives."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if not isinstance(value, dict) or value.keys() != {"array", "tuple"} or not isinstance(value["array"], list):
        raise ValueError(f"a parameter cannot be {shorten(value)}")
    array = np.array(value["array"])
    if array.dtype.kind not in "bif":
        raise ValueError(f"a parameter cannot hold {shorten(value['array'])}")
    return tuple(value["array"]) if value["tuple"] else array
