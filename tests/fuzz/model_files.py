"""Damaged model files: each case takes a saved model, damages it in one way, loads it, and uses what was loaded."""

from __future__ import annotations

import io
import json
import struct
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import consilience as cs
from consilience.models.question_files import HEADER
from fuzz.harness import Nonsense
from fuzz.kinds import demand_sound

Members = dict[str, bytes]
Damage = Callable[[np.random.Generator, Members], "Members | bytes"]


class Saved(NamedTuple):
    """A model as it was saved, and what it can be applied to."""

    members: Members
    answers: Any
    graph: Any


@cache
def saved_models() -> list[Saved]:
    """Fit and save a small model of each kind: every structure, every worker model, with and without silence."""
    flat = cs.simulate.independent(12, n_workers=3, n_classes=3, seed=1).responses
    network = cs.simulate.network(15, n_workers=3, n_classes=2, degree=3, seed=1)
    sequences = cs.simulate.sequences(3, length=5, n_workers=3, n_classes=2, seed=1).responses
    table = {"sequence": [0, 0, 1, 1, 1] * 2, "position": [0, 1, 0, 1, 2] * 2, "worker": list("aaaaabbbbb")}
    tags = cs.Answers.from_frame({**table, "label": ["B-X", "I-X", "O", "B-X", "O", "O", "B-X", "O", "B-X", "I-X"]})
    partial = {"item": [0, 1, 2, 0, 1, 3], "worker": list("aaabbb"), "label": list("xyxxxy")}
    silent = cs.Answers.from_frame(partial, abstain="answer", background="x")
    crowds = [
        (cs.MajorityVote(), flat, None),
        (cs.MomentMatching(max_iter=50, tol=0), flat, None),
        (cs.DawidSkene(), flat, None),
        (cs.DawidSkene(workers="one-coin", n_init=2, estimation="em", prior=[0.2, 0.3, 0.5]), flat, None),
        (cs.DawidSkene(smoothing=np.full((2, 2), 0.5)), silent, None),
        (cs.HiddenMarkov(), sequences, None),
        (cs.HiddenMarkov(workers="sequential", transitions="bio", coupling=1.0), tags, None),
        (cs.MarkovField(), network.responses, network.graph),
        (cs.MarkovField(inference="icm", coupling="paper", prior="uniform"), network.responses, network.graph),
        (cs.MarkovField(inference="belief_propagation", coupling=0.7), network.responses, network.graph),
    ]
    found: list[Saved] = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.ConsilienceWarning)
        for model, answers, graph in crowds:
            path = model.fit(answers, graph=graph).save(Path(folder, "model"))
            found.append(Saved(unpack(path.read_bytes()), answers, graph))
            use(cs.load(path), answers, graph)
        weighted = cs.Answers.from_probabilities(np.random.default_rng(1).dirichlet([1, 1], size=(6, 3)))
        gold = {"item": [0, 3], "label": [1, 0], "random": [True, False]}
        known = cs.DawidSkene().fit(weighted, gold=gold).save(Path(folder, "model"))
        found.append(Saved(unpack(known.read_bytes()), weighted, None))
        compared = cs.fuse(flat).save(Path(folder, "model"))
        found.append(Saved(unpack(compared.read_bytes()), flat, None))
        for model, answers in fit_kinds():
            found.append(Saved(unpack(model.save(Path(folder, "model")).read_bytes()), answers, None))
    return found


def fit_kinds() -> list[tuple[Any, Any]]:
    """Return models of ratings, tags, soft votes, several questions and comparisons, with answers if they take some."""
    ratings = cs.simulate.ratings(12, n_raters=3, seed=1).responses
    tags = cs.simulate.tags(10, n_workers=3, n_tags=3, per_item=2, seed=1).tags
    soft = cs.Answers.from_probabilities(np.random.default_rng(2).dirichlet([1, 1, 1], size=(8, 3)))
    table = {"item": [0, 0, 1, 1, 2, 2], "worker": list("ababab"), "tone": list("xyxxyy"), "stars": [1, 2, 3, 3, 2, 1]}
    verdicts = cs.simulate.comparisons(40, n_candidates=4, n_judges=3, seed=1).comparisons
    return [
        (cs.DawidSkene(workers="ordinal").fit(ratings), ratings),
        (cs.TagSets(topics=2, max_iter=10).fit(tags), tags),
        *((cs.DawidSkene(workers=way, max_iter=10).fit(soft), soft) for way in ("temperatures", "halves", "mean")),
        (cs.fuse(table, label=["tone", "stars"], max_iter=10), None),
        (cs.rank(verdicts, n_draws=50), None),
    ]


def prepare() -> None:
    """Fit the models."""
    saved_models()


def run(rng: np.random.Generator, folder: Path) -> str:
    """Damage a model, load it and use it."""
    models = saved_models()
    saved = models[rng.integers(len(models))]
    damage = DAMAGES[rng.integers(len(DAMAGES))]
    path = folder / "damaged.model"
    if HEADER in saved.members:
        path.write_bytes(damage_questions(rng, damage, dict(saved.members)))
    else:
        path.write_bytes(to_file(damage(rng, dict(saved.members))))
    use(cs.load(path), saved.answers, saved.graph)
    return damage.__name__


def to_file(damaged: Members | bytes) -> bytes:
    return damaged if isinstance(damaged, bytes) else pack(damaged)


def damage_questions(rng: np.random.Generator, damage: Damage, members: Members) -> bytes:
    """Return a file of several questions of which the model of one, the header or the members are damaged."""
    way = rng.integers(6)
    if way == 0:
        header = json.loads(members[HEADER])
        change_entry(rng, header)
        members[HEADER] = json.dumps(header).encode()
    elif way == 1:
        members[HEADER] = [b"", b"[" * 90_000, b"null", b"[]", b"\xff", b'{"questions": 3}'][rng.integers(6)]
    elif way == 2:
        others = [each.members for each in saved_models()]
        members[pick(rng, members, "models/")] = pack(others[rng.integers(len(others))], zipfile.ZIP_STORED)
    elif way == 3:
        data = bytearray(pack(members, zipfile.ZIP_STORED))
        for place in rng.integers(len(data), size=rng.integers(1, 10)):
            data[place] = rng.integers(256)
        return bytes(data)
    else:
        name = pick(rng, members, "models/")
        members[name] = to_file(damage(rng, unpack(members[name])))
    return pack(members, zipfile.ZIP_STORED)


def use(model: Any, answers: Any, graph: Any) -> None:
    """Ask a model for all that it can give; raise `Nonsense` for probabilities that are none."""
    if answers is None:
        demand_sound(model)
        return
    for probabilities in (model.posterior_, model.predict_proba(answers, graph=graph)):
        if not (np.isfinite(probabilities).all() and np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)):
            raise Nonsense(f"probabilities {probabilities[:3].tolist()}")
    model.predict(answers, graph=graph)
    if np.isnan(model.score(answers, graph=graph)):
        raise Nonsense("a score that is no number")
    sets = isinstance(model, cs.TagSets)
    assert sets or len(model.to_frame()) == len(model.labels_)
    assert len(model.worker_report()) == len(model.workers_)
    r = None if sets else model.result_.given.answers
    if r is not None:
        assert r.n_items == len(model.labels_)
        links = model.result_.given.graph if isinstance(model, cs.MarkovField) else None
        cs.MajorityVote().fit(r)
        model.predict_proba(r, graph=links)
    repr(model)
    str(model.result_.comparison)


# --------------------------------------------------------------------------------------------------------- containers


def unpack(data: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def pack(members: Members, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return data.getvalue()


def pick(rng: np.random.Generator, members: Members, prefix: str = "") -> str:
    names = [name for name in members if name.startswith(prefix)]
    return names[rng.integers(len(names))]


def drop_member(rng: np.random.Generator, members: Members) -> Members:
    del members[pick(rng, members)]
    return members


def add_member(rng: np.random.Generator, members: Members) -> Members:
    names = [
        "notes.txt",
        "arrays/",
        "columns/",
        "arrays/more.npy",
        "arrays/course/starts/votes.npy",
        "columns/labelled/keys/x.arrow",
    ]
    names += [
        "../model.json",
        "/etc/passwd",
        "arrays/learning/further/more.npy",
        "arrays/learning/structure/more.npy",
        "x" * 60_000,
    ]
    members[names[rng.integers(len(names))]] = members[pick(rng, members)]
    return members


def repeat_member(rng: np.random.Generator, members: Members) -> bytes:
    data = io.BytesIO(pack(members))
    with warnings.catch_warnings(), zipfile.ZipFile(data, "a") as file:
        warnings.simplefilter("ignore", UserWarning)
        name = pick(rng, members)
        file.writestr(name, members[name])
    return data.getvalue()


def swap_members(rng: np.random.Generator, members: Members) -> Members:
    kind = ("arrays/", "columns/")[rng.integers(2)]
    one, other = pick(rng, members, kind), pick(rng, members, kind)
    members[one], members[other] = members[other], members[one]
    return members


def graft_member(rng: np.random.Generator, members: Members) -> Members:
    """Put a member of another model in the place of one of this."""
    others = [each.members for each in saved_models() if HEADER not in each.members]
    other = others[rng.integers(len(others))]
    name = pick(rng, other)
    members[name] = other[name]
    return members


def cut_file(rng: np.random.Generator, members: Members) -> bytes:
    data = pack(members)
    return data[: rng.integers(len(data))]


def flip_bytes(rng: np.random.Generator, members: Members) -> bytes:
    data = bytearray(pack(members, (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED)[rng.integers(2)]))
    for place in rng.integers(len(data), size=rng.integers(1, 20)):
        data[place] = rng.integers(256)
    return bytes(data)


def change_directory(rng: np.random.Generator, members: Members) -> bytes:
    """Change a number in the entry of one member: flags, method, sizes, offset."""
    data = bytearray(pack(members))
    entries = [i for i in range(len(data)) if data[i : i + 4] == b"PK\x01\x02"]
    entry = entries[rng.integers(len(entries))]
    offset, code = [(8, "<H"), (10, "<H"), (16, "<I"), (20, "<I"), (24, "<I"), (42, "<I")][rng.integers(6)]
    values = [0, 1, 9, 12, 14, 99, 0x40, 0x20, 2**16 - 1, 2**31, 2**32 - 1, int(rng.integers(2**16))]
    struct.pack_into(code, data, entry + offset, values[rng.integers(len(values))] % 2 ** (8 * struct.calcsize(code)))
    return bytes(data)


def make_bomb(rng: np.random.Generator, members: Members) -> Members:
    name = pick(rng, members)
    filler = (b"\0", b" ", b"[],", b"1,")[rng.integers(4)]
    members[name] += filler * int(rng.integers(1 << 20, 1 << 27) / len(filler))
    return members


# -------------------------------------------------------------------------------------------------------------- arrays


def read_array(data: bytes) -> Any:
    return np.load(io.BytesIO(data))


def to_bytes(array: Any) -> bytes:
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


def change_values(rng: np.random.Generator, members: Members) -> Members:
    name = pick(rng, members, "arrays/")
    array = read_array(members[name])
    if array.dtype.kind == "U":
        array = np.array(["other", "", "icm", "mean_field", "belief_propagation"][rng.integers(5)])
    elif array.dtype.kind == "b":
        array = ~array
    else:
        values = [np.nan, np.inf, -np.inf, -1.0, -1e-9, -1e-300, 1e308, 1e-308, 2.0, 1.0, 0.0, 5e-324, 1e9, -1e308]
        whole = [-1, -(2**63), 2**63 - 1, 2**31, 1, 2, 3, 100, 0]
        value = values[rng.integers(len(values))] if array.dtype.kind == "f" else whole[rng.integers(len(whole))]
        chosen = rng.random(array.shape) < rng.choice([0.05, 0.5, 1.0])
        value = np.array(value) if array.dtype.kind == "f" else np.array(value).astype(array.dtype)  # which may wrap
        with np.errstate(over="ignore"):
            array = np.where(chosen, value, array).astype(array.dtype)
    members[name] = to_bytes(array)
    return members


def shuffle_values(rng: np.random.Generator, members: Members) -> Members:
    """Other values of the same kind: rows in another order, or other distributions."""
    name = pick(rng, members, "arrays/")
    array = read_array(members[name])
    if array.dtype.kind == "f" and array.ndim:
        with np.errstate(all="ignore"):
            way = rng.integers(4)
            if way == 0:
                array = rng.permuted(array, axis=-1)
            elif way == 1:
                array = rng.random(array.shape)
            elif way == 2:
                array = np.moveaxis(rng.dirichlet(np.full(array.shape[-1], 0.3), size=array.shape[:-1]), 0, 0)
            else:
                array = np.exp(array) if (array <= 0).all() else np.log(np.abs(array))
    members[name] = to_bytes(array)
    return members


def change_shape(rng: np.random.Generator, members: Members) -> Members:
    name = pick(rng, members, "arrays/")
    array = read_array(members[name])
    ways = [
        lambda: array.reshape(-1),
        lambda: array.T,
        lambda: array[..., None],
        lambda: array[None],
        lambda: np.concatenate([np.atleast_1d(array)] * 2),
        lambda: np.atleast_1d(array)[:-1],
        lambda: np.atleast_1d(array)[:0],
        lambda: np.repeat(np.atleast_1d(array), 3, axis=-1),
        lambda: np.asfortranarray(np.stack([array, array])),
        lambda: np.empty((0, 2**40)),
    ]
    members[name] = to_bytes(ways[rng.integers(len(ways))]())
    return members


def change_type(rng: np.random.Generator, members: Members) -> Members:
    name = pick(rng, members, "arrays/")
    array = read_array(members[name])
    kinds = ["f4", ">f8", "i8", "u8", "i4", "?", "c16", "S8", "U8", "f2", "M8[s]", "V8"]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            members[name] = to_bytes(array.astype(kinds[rng.integers(len(kinds))]))
        except (ValueError, TypeError):
            members[name] = to_bytes(array.astype("S4"))
    return members


def lie_in_array_header(rng: np.random.Generator, members: Members) -> Members:
    name = pick(rng, members, "arrays/")
    data = members[name]
    length = struct.unpack_from("<H", data, 8)[0]
    texts = [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
        "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (, ,), }",
        "{'descr': '<f8', 'shape': (2,), }",
        "(" * 5000,
        "__import__('os').abort()",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",), }",
    ]
    text = texts[rng.integers(len(texts))].encode() + b"\n"
    version = [b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x09"][rng.choice(4, p=[0.7, 0.1, 0.1, 0.1])]
    size = struct.pack("<H" if version[0] == 1 else "<I", len(text))
    members[name] = b"\x93NUMPY" + version + size + text + data[10 + length :]
    return members


def damage_member(rng: np.random.Generator, members: Members) -> Members:
    """Flip, cut or prolong the bytes of a member, which the zip file then takes for sound."""
    name = pick(rng, members, ("arrays/", "columns/", "columns/", "model.json")[rng.integers(4)])
    data = bytearray(members[name])
    way = rng.integers(4)
    if way == 0:
        data = data[: rng.integers(len(data))]
    elif way == 1:
        data += rng.bytes(rng.integers(1, 100))
    else:
        for place in rng.integers(len(data), size=rng.integers(1, 10)):
            data[place] = rng.integers(256) if way == 2 else rng.choice([0, 1, 127, 255])
    members[name] = bytes(data)
    return members


# ------------------------------------------------------------------------------------------------------------- columns


def write_column(table: pa.Table, compression: str | None = None) -> bytes:
    data = io.BytesIO()
    with pa.ipc.new_file(data, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return data.getvalue()


def change_column(rng: np.random.Generator, members: Members) -> Members:
    name = pick(rng, members, "columns/")
    column = pa.ipc.open_file(members[name]).read_all()["values"].combine_chunks()
    n = len(column)
    ways = [
        lambda: pa.array([None] * n, column.type),
        lambda: pa.nulls(n),
        lambda: pa.nulls(10**9),
        lambda: pa.array(["same"] * n),
        lambda: pa.array([[1]] * n),
        lambda: pa.array([{"a": 1}] * n),
        lambda: pa.array([b""] * n, pa.binary(0)),
        lambda: pa.array([float("nan")] * n),
        lambda: pa.array(range(n)),
        lambda: pa.array([f"{i}" for i in range(n)]),
        lambda: pa.array([f"{i}" for i in range(n)]).dictionary_encode(),
        lambda: pa.array([i % 2 == 0 for i in range(n)]),
        lambda: pa.array([2**62 + i for i in range(n)], pa.timestamp("us", "Nowhere/There")),
        lambda: pa.array([2**62 + i for i in range(n)], pa.timestamp("s")),
        lambda: pa.array([2**30 + i for i in range(n)], pa.date32()),
        lambda: pa.array(list(range(n)), pa.duration("us")),
        lambda: pa.array(["x"] * n, pa.large_string()),
        lambda: column[:-1],
        lambda: pa.concat_arrays([column, column]),
        lambda: column[:0],
        lambda: pa.RunEndEncodedArray.from_arrays(pa.array([n], pa.int32()), column[:1]),
        lambda: pa.array([f"{i}" * 10 for i in range(n)], pa.string_view()),
    ]
    members[name] = write_column(pa.table({"values": ways[rng.integers(len(ways))]()}))
    return members


def change_table(rng: np.random.Generator, members: Members) -> Members:
    """Other columns beside the ids, several pieces, metadata, or buffers that are compressed."""
    name = pick(rng, members, "columns/")
    column = pa.ipc.open_file(members[name]).read_all()["values"]
    way = rng.integers(6)
    if way == 0:
        members[name] = write_column(pa.table({"values": column, "more": column}))
    elif way == 1:
        members[name] = write_column(pa.table({"other": column}))
    elif way == 2:
        members[name] = write_column(pa.table({"values": column}), ("zstd", "lz4")[rng.integers(2)])
    elif way == 3:
        zeros = pa.array(np.zeros(1 << 27, np.int8))
        members[name] = write_column(pa.table({"values": zeros}), "zstd")
    elif way == 4:
        field = pa.field("values", column.type, metadata={"ARROW:extension:name": "arrow.py_extension_type"})
        members[name] = write_column(pa.table([column], schema=pa.schema([field])))
    else:
        table = pa.table({"values": pa.chunked_array([column.combine_chunks()[:1], column.combine_chunks()[1:]])})
        members[name] = write_column(table)
    return members


# -------------------------------------------------------------------------------------------------------------- header

ODD = [None, True, False, 0, 1, -1, 2, 3.5, 1e308, float("nan"), float("inf"), 10**400, "", "x", "learn", "polars"]
ODD += [[], {}, [[]], ["item"], {"a": 1}, {"array": [1.0], "tuple": True}, {"array": [[1], [1, 2]], "tuple": False}]
ODD += [{"array": "x", "tuple": False}, {"array": [None], "tuple": 1}, "x" * 5000, [1, 2, 3], "\ud800", "\0"]


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, entry in below for found in paths_of(entry, (*path, key)))]


def change_header(rng: np.random.Generator, members: Members) -> Members:
    header = json.loads(members["model.json"])
    change_entry(rng, header)
    members["model.json"] = json.dumps(header).encode()
    return members


def change_entry(rng: np.random.Generator, header: Any) -> None:
    """Remove, add or change one entry of a header, at any depth."""
    paths = paths_of(header)[1:]
    *above, key = paths[rng.integers(len(paths))]
    part = header
    for step in above:
        part = part[step]
    way = rng.integers(5)
    if way == 0:
        del part[key]
    elif way == 1 and isinstance(part, dict):
        part[("more", "callback", "__class__", "comparison")[rng.integers(4)]] = ODD[rng.integers(len(ODD))]
    else:
        part[key] = ODD[rng.integers(len(ODD))]


def nest_header(rng: np.random.Generator, members: Members) -> Members:
    depth = int(rng.integers(50, 100_000))
    text = (b"[" * depth + b"]" * depth, b'{"a":' * depth, b"[" * depth, b'{"fusion":' + b"[" * depth)[rng.integers(4)]
    members["model.json"] = members["model.json"].replace(b'"backend":', b'"deep": ' + text + b', "backend":')
    return members


def change_version(rng: np.random.Generator, members: Members) -> Members:
    header = json.loads(members["model.json"])
    header["version"] = [0, 1, 2, 4, 10**30, -1, "1", 1.0, None, True, [1]][rng.integers(11)]
    members["model.json"] = json.dumps(header).encode()
    return members


DAMAGES: list[Damage] = [
    drop_member,
    add_member,
    repeat_member,
    swap_members,
    graft_member,
    cut_file,
    flip_bytes,
    change_directory,
    make_bomb,
    *[change_values] * 4,
    *[shuffle_values] * 2,
    *[change_shape] * 2,
    change_type,
    lie_in_array_header,
    *[damage_member] * 3,
    *[change_column] * 2,
    change_table,
    *[change_header] * 4,
    nest_header,
    change_version,
]
