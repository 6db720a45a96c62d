"""Results in files, and back: one zip file with a JSON header, NumPy arrays and Arrow columns. No pickle.

What is saved is declared by the fields of frozen dataclasses and NamedTuples; see `consilience.specs`. In the header, a
part is a dict of its fields. In place of an array or a column stands the word, and the array has the path of its field
as its name, such as ``estimates/structure/mean``.
"""

from __future__ import annotations

import json
import os
import re
import types
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..answers.columns import Column, decode_categories, find_missing, to_column, to_values
from ..errors import StoreError, first_line, listing, shorten
from ..formats.writing import replace_file
from ..inference.classifiers import LinearJudge
from ..inference.preconditions import in_order_of_classes
from ..inference.recipes import LatentRecipe, Recipe
from ..inference.starts import Fitted
from ..inference.structures import StructureParameters, Summary
from ..specs import NOT_SAVED, ArraySpec, ByName, Check, ColumnSpec, Fault, Same, is_finite, is_truth, is_whole
from .calibration import check_confidence
from .kept_answers import Kept
from .result import Result

Part = TypeVar("Part")

FORMAT, VERSION, HEADER = "consilience-model", 1, "model.json"
# What the header holds beside format and version, and of which type.
_ENTRIES = {"model": str, "parameters": dict, "fusion": dict, "given": dict}
# What stands in the header for what is beside it.
_ARRAY, _COLUMN = "array", "column"
# Parameters whose rows are classes, which a table may name in any order.
_BY_CLASS = ("prior", "transitions")
_LISTS, _DICTS = (list, tuple, Sequence), (dict, Mapping)
_SCALARS: dict[type, Callable[[object], bool]] = {
    int: is_whole,
    float: is_finite,
    bool: is_truth,
    str: lambda value: isinstance(value, str),
}


# ------------------------------------------------------------------------------------------------------- declarations


def read_hint(hint: object) -> tuple[Any, Any, bool]:
    """What a type hint declares: the type, what `Annotated` says beside it, and whether the value may be None."""
    mark, optional = None, False
    while True:
        if get_origin(hint) is Annotated:
            hint, mark = get_args(hint)[:2]
            continue
        kinds = [each for each in get_args(hint) if each is not types.NoneType]
        if get_origin(hint) not in (Union, types.UnionType) or len(kinds) > 1:
            return hint, mark, optional
        hint, optional = kinds[0], True


@cache
def list_fields(part: Any) -> dict[str, Any]:
    """The type hints of the fields of a part that are saved."""
    hints = get_type_hints(part, include_extras=True)
    names = [field.name for field in fields(part)] if is_dataclass(part) else part._fields
    return {name: hints[name] for name in names if read_hint(hints[name])[1] is not NOT_SAVED}


def join(path: str, name: str) -> str:
    """The path of a field."""
    return f"{path}/{name}" if path else name


def compare_names(what: str, expected: Iterable[str], found: Iterable[str]) -> None:
    """Raise a `Fault` unless the names are those that there must be."""
    wanted, there = set(expected), set(found)
    if there != wanted:
        missing, unknown = sorted(wanted - there), sorted(there - wanted)
        words = [f"the {what} {listing(missing)} is missing"] if missing else []
        words += [f"there is no {what} {listing(unknown)} in such a model"] if unknown else []
        raise Fault(", and ".join(words))


# ------------------------------------------------------------------------------------------------------------ writing


def save_result(
    fusion: Result, parameters: Mapping[str, object], path: str | os.PathLike[str], *, answers: bool, texts: bool
) -> Path:
    """Write a result and the parameters of its model to one file; see `Model.save`."""
    guidance = fusion.guidance
    if guidance is not None and guidance.guide is not None and not isinstance(guidance.guide.judge, LinearJudge):
        guidance = guidance._replace(guide=None)
    kept = replace(fusion, task=fusion.task.to_saved(texts), guidance=guidance, estimates=fusion.learned)
    plain = {name: _to_json(fusion, name, value) for name, value in parameters.items()}
    return write_parts(path, fusion.model, plain, kept, Kept.of(fusion.given, answers))


def write_parts(
    path: str | os.PathLike[str], model: str, parameters: Mapping[str, object], fusion: object, given: object = None
) -> Path:
    """Write what a model found, and what it was given, to one file. The same content gives the same bytes."""
    arrays: dict[str, NDArray[Any]] = {}
    columns: dict[str, Column] = {}

    def pack(value: Any, path: str, hint: object = None) -> object:
        """What stands for a value in the header."""
        kind, mark, _ = read_hint(hint)
        if value is None or isinstance(value, (str, bool, int, float)):
            return value
        if isinstance(mark, ColumnSpec):
            columns[path] = to_column(value)
            return _COLUMN
        if isinstance(value, np.ndarray):
            arrays[path] = value
            return _ARRAY
        if isinstance(value, (StructureParameters, Summary)):
            return {name: pack(np.asarray(getattr(value, name)), join(path, name)) for name in type(value).specs()}
        if is_dataclass(value) or (hasattr(value, "_fields") and get_origin(kind) is not tuple):
            hints = list_fields(cast(Any, type(value)))
            own = {name: each for name, each in hints.items() if not isinstance(read_hint(each)[1], Same)}
            packed = {name: pack(getattr(value, name), join(path, name), each) for name, each in own.items()}
            return {"name": value.name, **packed} if isinstance(mark, ByName) else packed
        if isinstance(value, Mapping):
            inner = get_args(kind)[-1]
            return {name: pack(entry, join(path, name), inner) for name, entry in value.items()}
        return [pack(entry, path) for entry in value] if isinstance(value, (list, tuple)) else value.item()

    found = {"fusion": pack(fusion, ""), "given": {} if given is None else pack(given, "given")}
    for name, column in columns.items():
        if isinstance(column, np.ndarray):
            raise _unsavable(name, column)
    header = {"format": FORMAT, "version": VERSION, "model": model, "parameters": parameters, **found}
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
    file: zipfile.ZipFile
    header: dict[str, Any]
    members: dict[str, dict[str, str]]  # names of arrays and columns that were not read yet, with their members
    sizes: dict[str, int]
    known: dict[str, object]  # what was read, by path
    kinds: dict[type, Any]  # what parts of these types are in this model

    def read_result(self, recipe: Recipe) -> Result:
        """The result of a model with this recipe, if all of it can be so."""
        self.known["model"] = self.model
        self.kinds.update({StructureParameters: recipe.structure_type, Summary: recipe.summary_type})
        fusion = self.read_part(Result, self.header["fusion"], "")
        kept = self.read_part(Kept, self.header["given"], "given")
        self.check_all_was_read()
        check_whole(fusion, recipe)
        return replace(fusion, given=kept.unpack(fusion, recipe.takes_graph))

    def check_all_was_read(self) -> None:
        """Raise a `Fault` for arrays and columns that nobody asked for."""
        for what, left in self.members.items():
            if left:
                raise Fault(f"there is no {what[:-1]} {listing(sorted(left))} in such a model")

    def read_part(self, part: type[Part], entries: object, path: str) -> Part:
        """A part, by its entries in the header."""
        if not isinstance(entries, dict):
            raise refuse(path, entries)
        hints = list_fields(cast(Any, part))
        marks = {name: read_hint(hint)[1] for name, hint in hints.items()}
        own = [name for name, mark in marks.items() if not isinstance(mark, Same)]
        compare_names(f"entry of {path or 'the result'}", own, entries)
        found: dict[str, Any] = {}
        for name, hint in hints.items():
            mark = marks[name]
            same = isinstance(mark, Same)
            found[name] = self.known[mark.path] if same else self.read(hint, entries[name], join(path, name), found)
        self.known.update({join(path, name): value for name, value in found.items()})
        made = part(**found)
        if hasattr(made, "check_saved"):
            made.check_saved(self.sizes)
        return made

    def read(self, hint: object, entry: Any, path: str, before: Mapping[str, object] | None = None) -> object:
        """What is declared; `before` are the fields of the same part that were read before."""
        kind, mark, optional = read_hint(hint)
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
        if kind in self.kinds:
            made, others = self.kinds[kind], {"log_normaliser": 0.0} if kind is Summary else {}
            return made.from_state(self.read_arrays(entry, path, made.specs()), **others)
        if isinstance(mark, ByName):
            part = mark.list_parts().get(str(entry.get("name"))) if isinstance(entry, dict) else None
            if part is None:
                raise refuse(path, entry)
            return self.read_part(part, {name: entry[name] for name in entry if name != "name"}, path)
        origin = get_origin(kind) or kind
        if origin not in (*_LISTS, *_DICTS, *_SCALARS):
            return self.read_part(mark if isinstance(mark, type) else kind, entry, path)

        # A number, a truth value or a text, or a list, tuple or dict.
        inner = [each for each in get_args(kind) if each is not ...]
        is_record = origin is tuple and ... not in get_args(kind)  # of an entry for each type
        if origin in _SCALARS:
            is_right = isinstance(mark, Check) or _SCALARS[origin](entry)
        else:
            is_right = isinstance(entry, dict if origin in _DICTS else list)
            is_right &= not is_record or len(entry) == len(inner)
        if not is_right or (isinstance(mark, Check) and not mark.holds(entry)):
            raise refuse(path, entry)
        if origin in _SCALARS:
            return entry
        if origin in _DICTS:
            return {name: self.read(inner[1], each, join(path, name)) for name, each in entry.items()}
        kinds = inner if is_record else inner * len(entry)
        read = [self.read(each, value, path) for each, value in zip(kinds, entry, strict=True)]
        return tuple(read) if origin is tuple else read

    def take(self, what: str, entry: object, path: str) -> str:
        """The member that holds an array or a column, which is crossed off."""
        if entry != what:
            raise refuse(path, entry)
        if path not in self.members[f"{what}s"]:
            raise Fault(f"the {what} {path!r} is missing")
        return self.members[f"{what}s"].pop(path)

    def read_array(self, entry: object, path: str, spec: ArraySpec) -> NDArray[Any]:
        """An array that is what the spec says. It defines the length of an axis whose size is not known."""
        member = self.take(_ARRAY, entry, path)
        with self.file.open(member) as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
        spec.check_layout(member, array.shape, array.dtype.str, self.sizes)
        for axis, length in zip(spec.shape.split(), array.shape, strict=True):
            if axis.isalpha() and len(axis) == 1:
                self.sizes.setdefault(axis, length)
        spec.check(member, array, self.sizes)
        return np.asarray(array, order="C")

    def read_arrays(self, entries: object, path: str, specs: Mapping[str, ArraySpec]) -> dict[str, NDArray[Any]]:
        """Arrays by name."""
        if not isinstance(entries, dict):
            raise refuse(path, entries)
        compare_names(f"array of {path}", specs, entries)
        return {name: self.read_array(entries[name], join(path, name), spec) for name, spec in specs.items()}

    def read_column(self, entry: object, path: str, spec: ColumnSpec) -> Any:
        """A column of ids, none of them missing, which may define how many there are of something."""
        member = self.take(_COLUMN, entry, path)
        with pa.ipc.open_file(pa.BufferReader(self.file.read(member))) as reader:
            table = reader.read_all()
        table.validate(full=True)
        column = table.unify_dictionaries().column(0).combine_chunks()
        if pa.types.is_nested(column.type) or len(find_missing(column)):
            raise Fault(f"{member} has missing entries, or is not a column of plain values")
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


@contextmanager
def open_saved(path: str | os.PathLike[str]) -> Iterator[SavedModel]:
    """Give what a file holds; whatever is wrong with it, also in the block, is a `StoreError`."""
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(path) as file:
            members: dict[str, dict[str, str]] = {"arrays": {}, "columns": {}}
            for member in file.namelist():
                found = re.fullmatch(r"(arrays|columns)/(.+)\.(npy|arrow)", member)
                if found is not None:
                    members[found[1]][found[2]] = member
                elif member != HEADER:
                    raise Fault(f"it holds {shorten(member)}, which is no part of a model")
            header = _read_header(file)
            compare_names("entry of the header", ("format", "version", *_ENTRIES), header)
            for part, kind in _ENTRIES.items():
                if not isinstance(header[part], kind):
                    raise Fault(f"the {part} in the header cannot be {shorten(header[part])}")
            parameters = {name: _from_json(value) for name, value in header["parameters"].items()}
            yield SavedModel(header["model"], parameters, file, header, members, {}, {}, {})
    except FileNotFoundError as error:
        raise StoreError(f"There is no file {name}.", "Check the name.") from error
    except (zipfile.BadZipFile, IsADirectoryError) as error:
        raise StoreError(
            f"{name} is not a model saved by consilience, or is damaged: {first_line(error)}.",
            "Save the model again, or fit again.",
        ) from error
    except PermissionError as error:
        raise StoreError(f"{name} cannot be read: {first_line(error)}.", "Allow to read it.") from error
    except StoreError:
        raise
    except (pa.ArrowException, OSError, EOFError, zlib.error, ValueError, OverflowError, RuntimeError) as error:
        raise StoreError(
            f"{name} is damaged: {first_line(error)[:500]}.", "Save the model again, or fit again."
        ) from error


def _read_header(file: zipfile.ZipFile) -> dict[str, Any]:
    if HEADER not in file.namelist():
        raise zipfile.BadZipFile(f"it has no {HEADER}")
    try:
        header = json.loads(file.read(HEADER))
    except (ValueError, RecursionError) as error:
        raise Fault(f"{HEADER} is not JSON ({first_line(error)})") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise zipfile.BadZipFile(f"its {HEADER} does not say so")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise Fault(f"{HEADER} names no version, but {shorten(version)}")
    if version > VERSION:
        raise StoreError(
            f"{file.filename} was saved by a newer release of consilience (version {version} of the format; "
            f"this release reads up to {VERSION}).",
            "Upgrade consilience, or fit again.",
        )
    return header


def refuse(path: str, entry: object) -> Fault:
    """What is wrong with an entry of the header."""
    return Fault(f"{path} cannot be {shorten(entry)}")


def check_whole(fusion: Result, recipe: Recipe) -> None:
    """Raise a `Fault` unless the parts of a result are those of one fit with this recipe."""
    labels, is_latent = fusion.labels, isinstance(recipe, LatentRecipe)
    if fusion.estimates is None:
        raise Fault("what was learned is missing")
    if any(member >= len(fusion.names.workers) for group in fusion.copies for member in group):
        raise Fault("a group of copies names a worker who is not there")
    parts = [fusion.calibrated, labels.uncalibrated, *([fusion.intervals.workers] if is_latent else [])]
    if {part is not None for part in parts} != {is_latent}:
        raise Fault(f"calibration and intervals are not those of {recipe.model}")
    if (fusion.coupling is not None) != ("coupling" in recipe.structure_type.specs()):
        raise Fault(f"the coupling is not that of {recipe.model}")
    recipe.check_learned(fusion.estimates.structure)
    if fusion.span_confidence is not None:
        if "sequence" not in labels.keys:
            raise Fault("it has spans, but no sequences")
        check_confidence(fusion.span_confidence, labels.codes, labels.classes, labels.keys["sequence"])
    fusion.task.check_items(labels.keys)


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
