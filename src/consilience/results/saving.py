"""Results in files, and back. What is saved is declared by the fields of frozen dataclasses; see `consilience.specs`.

A file has a header, which holds what is written in JSON, and arrays and columns beside it. A part (a dataclass or a
NamedTuple) is a dict of its fields in the header. In place of an array or a column stands the word, and the array has
the path of its field as its name, such as ``learning/structure/mean``.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..answers.columns import Column, decode_categories, to_column, to_values
from ..errors import listing, shorten
from ..inference.classifiers import LinearJudge
from ..inference.preconditions import in_order_of_classes
from ..inference.recipes import LatentRecipe, Recipe
from ..inference.starts import Fitted
from ..inference.structures import StructureParameters, Summary
from ..specs import (
    ArraySpec,
    ByName,
    Check,
    ColumnSpec,
    Fault,
    Length,
    NotSaved,
    OneOf,
    Same,
    is_finite,
    is_truth,
    is_whole,
)
from .archive import Archive, open_archive, write_archive
from .calibration import check_confidence
from .kept_answers import Kept
from .result import Labels, Result

Parameters: TypeAlias = Mapping[str, object]
Part = TypeVar("Part")

# Parameters whose rows are classes, which a table may name in any order.
_BY_CLASS = ("prior", "transitions")
# What the header holds beside format and version, and of which type.
_HEADER = {"model": str, "parameters": dict, "fusion": dict, "given": dict}
# What stands in the header for what is beside it.
_ARRAY, _COLUMN = "array", "column"
_LISTS, _DICTS = (list, tuple, Sequence), (dict, Mapping)
_SCALARS: dict[type, Callable[[object], bool]] = {
    int: is_whole,
    float: is_finite,
    bool: is_truth,
    str: lambda value: isinstance(value, str),
}


def save_result(
    fusion: Result, parameters: Parameters, path: str | os.PathLike[str], *, answers: bool, texts: bool
) -> Path:
    """Write a result and the parameters of its model to one file; see `Model.save`."""
    guidance = fusion.guidance
    if guidance is not None and guidance.guide is not None and not isinstance(guidance.guide.judge, LinearJudge):
        guidance = guidance._replace(guide=None)
    task = fusion.task.to_saved(texts)
    kept = replace(fusion, task=task, guidance=guidance, estimates=fusion.learned)
    into = Contents({}, {})
    header = {
        "model": fusion.model,
        "parameters": {name: _to_json(fusion, name, value) for name, value in parameters.items()},
        "fusion": pack(kept, "", into),
        "given": pack(Kept.of(fusion.given, answers), "given", into),
    }
    return write_archive(path, header, into.arrays, into.columns)


@dataclass(frozen=True)
class SavedResult:
    """A file with a result, which is being read.

    Attributes
    ----------
    model : str
        The name of the model's class.
    parameters : dict
        What its constructor takes.
    """

    model: str
    parameters: dict[str, object]
    archive: Archive

    def read(self, recipe: Recipe) -> Result:
        """Return the result of a model with this recipe, if all of it can be so."""
        reader = Reader(self.archive, {}, recipe, {"model": self.model})
        fusion = reader.read_part(Result, self.archive.header["fusion"], "")
        kept = reader.read_part(Kept, self.archive.header["given"], "given")
        self.archive.check_all_was_read()
        check_whole(fusion, recipe)
        return replace(fusion, given=kept.unpack(fusion, recipe.takes_graph))


@contextmanager
def open_saved(path: str | os.PathLike[str]) -> Iterator[SavedResult]:
    """Give the result in a file; whatever is wrong with it, also in the block, is a `StoreError`."""
    with open_archive(path) as archive:
        header = archive.header
        compare_names("entry of the header", ("format", "version", *_HEADER), header)
        for part, kind in _HEADER.items():
            if not isinstance(header[part], kind):
                raise Fault(f"the {part} in the header cannot be {shorten(header[part])}")
        parameters = {name: _from_json(value) for name, value in header["parameters"].items()}
        yield SavedResult(header["model"], parameters, archive)


def compare_names(what: str, expected: Iterable[str], found: Iterable[str]) -> None:
    """Raise a `Fault` unless the names are those that there must be."""
    wanted, there = set(expected), set(found)
    if there != wanted:
        missing, unknown = sorted(wanted - there), sorted(there - wanted)
        words = [f"the {what} {listing(missing)} is missing"] if missing else []
        words += [f"there is no {what} {listing(unknown)} in such a model"] if unknown else []
        raise Fault(", and ".join(words))


# ------------------------------------------------------------------------------------------------------- declarations


class Declared(NamedTuple):
    """What a field is declared to be."""

    kind: Any  # its type
    mark: Any  # what `Annotated` says beside the type
    optional: bool  # whether it may be None


def read_hint(hint: object) -> Declared:
    """Return what a type hint declares."""
    mark, optional = None, False
    while True:
        if get_origin(hint) is Annotated:
            hint, mark = get_args(hint)[:2]
            continue
        kinds = [each for each in get_args(hint) if each is not types.NoneType]
        if get_origin(hint) not in (Union, types.UnionType) or len(kinds) > 1:
            return Declared(hint, mark, optional)
        hint, optional = kinds[0], True


@cache
def list_fields(part: Any) -> dict[str, Declared]:
    """Return what each field of a part is declared to be, without those that are not saved."""
    hints = get_type_hints(part, include_extras=True)
    names = [field.name for field in fields(part)] if is_dataclass(part) else part._fields
    declared = {name: read_hint(hints[name]) for name in names}
    return {name: each for name, each in declared.items() if not isinstance(each.mark, NotSaved)}


def join(path: str, name: str) -> str:
    """Return the path of a field."""
    return f"{path}/{name}" if path else name


# ------------------------------------------------------------------------------------------------------------ writing


class Contents(NamedTuple):
    """What is to be written beside the header."""

    arrays: dict[str, NDArray[Any]]
    columns: dict[str, Column]


def pack(value: Any, path: str, into: Contents, kind: object = None, mark: object = None) -> object:
    """Return what stands for a value in the header; `kind` and `mark` are what its field is declared to be."""
    if value is None:
        return None
    if isinstance(mark, ColumnSpec):
        into.columns[path] = to_column(value)
        return _COLUMN
    if isinstance(value, np.ndarray):
        into.arrays[path] = value
        return _ARRAY
    if isinstance(value, (StructureParameters, Summary)):
        into.arrays.update({join(path, name): np.asarray(getattr(value, name)) for name in type(value).specs()})
        return dict.fromkeys(type(value).specs(), _ARRAY)
    if isinstance(mark, ByName):
        return {"name": value.name, **_pack_part(value, path, into)}
    if is_dataclass(value) or (hasattr(value, "_fields") and get_origin(kind) is not tuple):
        return _pack_part(value, path, into)
    if isinstance(value, Mapping):
        inner = read_hint(get_args(kind)[-1])
        return {name: pack(entry, join(path, name), into, *inner[:2]) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [pack(entry, path, into) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def _pack_part(part: object, path: str, into: Contents) -> dict[str, object]:
    found = {}
    for name, (kind, mark, _) in list_fields(cast(Any, type(part))).items():
        if not isinstance(mark, Same):
            found[name] = pack(getattr(part, name), join(path, name), into, kind, mark)
    return found


# ------------------------------------------------------------------------------------------------------------ reading


@dataclass(frozen=True)
class Reader:
    """What reads the parts of a result from a file, each after those that it depends on."""

    archive: Archive
    sizes: dict[str, int]
    recipe: Recipe
    known: dict[str, object]  # what was read, by path

    def read_part(self, part: type[Part], entries: object, path: str) -> Part:
        """Return a part."""
        declared = list_fields(cast(Any, part))
        if not isinstance(entries, dict):
            raise refuse(path, entries)
        own = [name for name, each in declared.items() if not isinstance(each.mark, Same)]
        compare_names(f"entry of {path or 'the result'}", own, entries)
        found: dict[str, Any] = {}
        for name, each in declared.items():
            if isinstance(each.mark, Same):
                found[name] = self.known[each.mark.path]
            else:
                found[name] = self.read(each, entries[name], join(path, name), found)
        self.known.update({join(path, name): value for name, value in found.items()})
        made = part(**found)
        if hasattr(made, "check_saved"):
            made.check_saved(self.sizes)
        return made

    def read(self, declared: Declared, entry: Any, path: str, before: Mapping[str, object]) -> object:
        """Return what is declared; `before` are the fields of the same part that were read before."""
        kind, mark, optional = declared
        if entry is None and optional:
            return None
        if isinstance(mark, types.FunctionType):  # it depends on other fields what this one must look like
            mark = mark(before)
        if isinstance(mark, ColumnSpec):
            return self.read_column(entry, path, mark)
        if isinstance(mark, ArraySpec):
            return self.read_array(entry, path, mark)
        if isinstance(mark, Mapping):
            return self.read_arrays(entry, path, mark)
        origin = get_origin(kind) or kind
        if origin in (*_LISTS, *_DICTS, *_SCALARS):
            return self.read_plain(kind, mark, entry, path)
        if kind in (StructureParameters, Summary):
            if kind is Summary:
                summary = self.recipe.summary_type
                return summary.from_state(self.read_arrays(entry, path, summary.specs()), log_normaliser=0.0)
            found = self.recipe.structure_type
            return found.from_state(self.read_arrays(entry, path, found.specs()))
        if isinstance(mark, ByName):
            parts = mark.list_parts()
            part = parts.get(str(entry.get("name"))) if isinstance(entry, dict) else None
            if part is None:
                raise refuse(path, entry)
            return self.read_part(part, {name: entry[name] for name in entry if name != "name"}, path)
        return self.read_part(_choose(mark, entry) if isinstance(mark, OneOf) else kind, entry, path)

    def read_plain(self, kind: Any, mark: object, entry: Any, path: str) -> object:
        """Return a number, a truth value or a text, or a list, tuple or dict."""
        origin, inner = get_origin(kind) or kind, [read_hint(each) for each in get_args(kind) if each is not ...]
        is_record = origin is tuple and ... not in get_args(kind)  # of an entry for each type
        if origin in _SCALARS:
            is_right = mark.holds(entry) if isinstance(mark, Check) else _SCALARS[origin](entry)
            if not is_right or (isinstance(mark, Length) and entry < 1):
                raise refuse(path, entry)
            if isinstance(mark, Length):
                self.sizes[mark.letter] = entry
            return entry
        is_right = isinstance(entry, dict if origin in _DICTS else list)
        if not is_right or (is_record and len(entry) != len(inner)):
            raise refuse(path, entry)
        if isinstance(mark, Check) and not mark.holds(entry):
            raise refuse(path, entry)
        if origin in _DICTS:
            return {name: self.read(inner[1], each, join(path, name), {}) for name, each in entry.items()}
        kinds = inner if is_record else inner * len(entry)
        read = [self.read(declared, each, path, {}) for declared, each in zip(kinds, entry, strict=True)]
        return tuple(read) if origin is tuple else read

    def read_array(self, entry: object, path: str, spec: ArraySpec) -> NDArray[Any]:
        """Return an array."""
        if entry != _ARRAY:
            raise refuse(path, entry)
        return self.archive.read_array(path, spec, self.sizes)

    def read_arrays(self, entries: object, path: str, specs: Mapping[str, ArraySpec]) -> dict[str, NDArray[Any]]:
        """Return arrays by name."""
        if not isinstance(entries, dict):
            raise refuse(path, entries)
        compare_names(f"array of {path}", specs, entries)
        return {name: self.read_array(entries[name], join(path, name), spec) for name, spec in specs.items()}

    def read_column(self, entry: object, path: str, spec: ColumnSpec) -> Any:
        """Return a column, which may define how many there are of something."""
        if entry != _COLUMN:
            raise refuse(path, entry)
        column = self.archive.read_column(path)
        if spec.length != "*" and self.sizes.setdefault(spec.length, len(column)) != len(column):
            raise Fault(f"{path} has {len(column):,} entries, and not {self.sizes[spec.length]:,}")
        if spec.length == "L":
            self.sizes["P"] = len(column) + 1  # previous answers: the labels, and none
        if spec.kind == "column":
            return column
        column = decode_categories(column)
        if spec.kind == "names" and len(pc.unique(column)) < len(column):
            raise Fault(f"the {path} are not distinct")
        if spec.kind != "texts":
            return to_values(column)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise Fault(f"{path} must be text")
        return column.to_pylist()


def refuse(path: str, entry: object) -> Fault:
    """Return what is wrong with an entry of the header."""
    return Fault(f"{path} cannot be {shorten(entry)}")


def _choose(mark: OneOf, entries: object) -> type:
    """Return the part that has fields of these names; if none has, the first, of which something is then missing."""
    names = entries.keys() if isinstance(entries, dict) else ()
    alike = (each for each in mark.parts if list_fields(each).keys() >= set(names))
    return next(alike, mark.parts[0])


# ------------------------------------------------------------------------------------------------- what fits together


def check_whole(fusion: Result, recipe: Recipe) -> None:
    """Raise a `Fault` unless the parts of a result are those of one fit with this recipe."""
    labels = fusion.labels
    if fusion.estimates is None:
        raise Fault("what was learned is missing")
    if any(member >= len(fusion.names.workers) for group in fusion.copies for member in group):
        raise Fault("a group of copies names a worker who is not there")
    parts = [fusion.calibrated is not None]
    if isinstance(recipe, LatentRecipe):
        parts += [fusion.intervals.workers is not None]
        parts += [labels.uncalibrated is not None] if isinstance(labels, Labels) else []
    if set(parts) != {isinstance(recipe, LatentRecipe)}:
        raise Fault(f"calibration and intervals are not those of {recipe.model}")
    if (fusion.coupling is not None) != ("coupling" in recipe.structure_type.specs()):
        raise Fault(f"the coupling is not that of {recipe.model}")
    recipe.check_learned(fusion.learned.structure)
    if isinstance(labels, Labels):
        if fusion.span_confidence is not None:
            if "sequence" not in labels.keys:
                raise Fault("it has spans, but no sequences")
            check_confidence(fusion.span_confidence, labels.codes, labels.classes, labels.keys["sequence"])
    elif fusion.guidance is not None or fusion.span_confidence is not None:
        raise Fault("it has features or texts, but no items")
    fusion.task.check_items(labels.keys if isinstance(labels, Labels) else None)


# ---------------------------------------------------------------------------------------------------------- parameters


def _to_json(fusion: Result, name: str, value: object) -> object:
    """Return the value of a parameter in terms of JSON."""
    if name in ("callback", "classifier"):
        return None
    if name in _BY_CLASS:
        owner = types.SimpleNamespace(model=fusion.model, **{name: value})
        value = in_order_of_classes(owner, name, fusion.names.classes, fusion.names.normalised)
    if isinstance(value, Fitted):
        return "majority"
    if isinstance(value, np.generic):
        return cast(object, value.item())
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    array = np.asarray(value)  # of an array, a list or a table of any kind: `fit` has accepted it
    kept = array.tolist() if array.dtype == bool else array.astype(np.float64).tolist()
    return {"array": kept, "tuple": isinstance(value, tuple)}


def _from_json(value: object) -> object:
    """Return the value of a parameter, if it is one that `_to_json` gives."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if not isinstance(value, dict) or value.keys() != {"array", "tuple"} or not isinstance(value["array"], list):
        raise Fault(f"a parameter cannot be {shorten(value)}")
    array = np.array(value["array"])
    if array.dtype.kind not in "bif":
        raise Fault(f"a parameter cannot hold {shorten(value['array'])}")
    return tuple(value["array"]) if value["tuple"] else array
