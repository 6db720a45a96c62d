"""Files that hold types, odd or damaged: tables as Parquet and Arrow, features as arrays and sparse matrices."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from fuzz.text_files import ODD_TEXTS, Columns, Rng, cut, flip_bytes, insert_pieces, replace_all, save


def odd_array(rng: Rng, values: list[Any]) -> pa.Array:
    """Return values of an odd type, as many; about one in three of these types could well be that of ids."""
    n = len(values)
    numbers = np.arange(n)
    texts = [str(value) for value in values]
    big = [2**62 + i for i in range(n)]
    zone = ("UTC", "Europe/Berlin", "+05:30", "Nowhere/There", "")[rng.integers(5)]
    unit = ("s", "ms", "us", "ns")[rng.integers(4)]
    extent = int(rng.choice([1, 10**6, 10**15]))
    make: list[Callable[[], pa.Array]] = [
        lambda: pa.array(texts, pa.large_string()),
        lambda: pa.array(texts, pa.string_view()),
        lambda: pa.array([text.encode() for text in texts], pa.binary()),
        lambda: pa.array([b"\xff\xfe"] * n, pa.large_binary()),
        lambda: pa.array([b"\xff" * 20] * n, pa.binary_view()),
        lambda: pa.array([b"ab"] * n, pa.binary(2)),
        lambda: pa.array(texts).dictionary_encode(),
        lambda: pa.DictionaryArray.from_arrays(pa.array(numbers % 2, pa.int8()), pa.array(["x", None])),
        lambda: pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.uint16()), pa.array(["x", "x"])),
        lambda: pa.DictionaryArray.from_arrays(pa.array([None] * n, pa.int32()), pa.array(["x"])),
        lambda: pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array([[1, 2]])),
        lambda: pa.array(numbers * extent, pa.timestamp(unit, zone or None)),
        lambda: pa.array(big, pa.timestamp(unit, zone or None)),
        lambda: pa.array(numbers * extent, pa.duration(unit)),
        lambda: pa.array(big, pa.duration("s")),
        lambda: pa.array(numbers.astype("i4"), pa.date32()),
        lambda: pa.array([2**30] * n, pa.date32()),
        lambda: pa.array([2**50] * n, pa.date64()),
        lambda: pa.array(numbers * 10**9 + 1, pa.time64("ns")),
        lambda: pa.array(numbers.astype("i4"), pa.time32("s")),
        lambda: pa.array([(1, 2, 3)] * n, pa.month_day_nano_interval()),
        lambda: pa.array(numbers).cast(pa.decimal128(25, 3)),
        lambda: pa.array(numbers).cast(pa.decimal256(60, 3)),
        lambda: pa.array(numbers.astype("i4")).cast(pa.decimal128(38, 28)),
        lambda: pa.array(numbers.astype("f2")),
        lambda: pa.array([np.nan, -0.0, np.inf, 1e308, 0.0][i % 5] for i in range(n)),
        lambda: pa.array(numbers.astype("f8") / 3),
        lambda: pa.array([2**64 - 1 - i for i in range(n)], pa.uint64()),
        lambda: pa.array([-(2**63) + i for i in range(n)], pa.int64()),
        lambda: pa.array((numbers % 128).astype("i1")),
        lambda: pa.array([i % 2 == 0 for i in range(n)]),
        lambda: pa.nulls(n),
        lambda: pa.nulls(n, pa.string()),
        lambda: pa.array([None if i % 3 else text for i, text in enumerate(texts)]),
        lambda: pa.array([[text] for text in texts]),
        lambda: pa.array([[1, 2]] * n, pa.list_(pa.int32(), 2)),
        lambda: pa.array([{"a": text} for text in texts]),
        lambda: pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int32())),
        lambda: pa.RunEndEncodedArray.from_arrays(pa.array([n], pa.int32()), pa.array(texts[:1])),
        lambda: pa.UnionArray.from_sparse(pa.array([0] * n, pa.int8()), [pa.array(texts)]),
        lambda: pa.array([[1]] * n, pa.list_view(pa.int32())),
        lambda: pa.ExtensionArray.from_storage(
            pa.uuid(), pa.array([bytes([i % 256]) * 16 for i in range(n)], pa.binary(16))
        ),
        lambda: pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts, pa.string())),
        lambda: pa.array(["\0" + text for text in texts]),
        lambda: pa.array([text * 2000 for text in texts]),
        lambda: pa.array([ODD_TEXTS[i % 50] for i in range(n)]),
    ]
    return make[rng.integers(len(make))]()


def write_typed(rng: Rng, table: pa.Table, path: Path) -> str:
    """Write a table as Parquet or Arrow, as a file or a stream, in one piece or several, compressed or not."""
    data = io.BytesIO()
    if rng.random() < 0.5:
        with suppress(pa.ArrowException):  # Parquet does not know all types
            codec = ("zstd", "snappy", "none", "gzip")[rng.integers(4)]
            pq.write_table(table, data, compression=codec, row_group_size=int(rng.choice([1, 3, 10**6])))
            return save(path, ".parquet", data.getvalue())
        data = io.BytesIO()
    opened = (pa.ipc.new_file, pa.ipc.new_stream)[rng.integers(2)]
    options = pa.ipc.IpcWriteOptions(
        compression=(None, "zstd", "lz4")[rng.integers(3)], unify_dictionaries=bool(rng.integers(2))
    )
    with opened(data, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=int(rng.choice([2, 10**6])))
    return save(path, (".arrow", ".feather", ".arrow")[rng.integers(3)], data.getvalue())


def write_odd_types(rng: Rng, columns: Columns, path: Path) -> str:
    """Write a table in which a column or two have another type."""
    arrays: dict[str, Any] = {name: pa.array(values) for name, values in columns.items()}
    for name in rng.choice(list(columns), size=rng.integers(1, 3)):
        arrays[str(name)] = odd_array(rng, columns[str(name)])
    names, values = list(arrays), list(arrays.values())
    if rng.random() < 0.05:
        names[-1] = names[0]
    if rng.random() < 0.05:
        names[0] = ODD_TEXTS[rng.integers(30)]
    return write_typed(rng, pa.Table.from_arrays(values, names=names), path)


def write_damaged_types(rng: Rng, columns: Columns, path: Path) -> str:
    """Write a typed file with its bytes damaged."""
    written = Path(
        write_odd_types(rng, columns, path) if rng.random() < 0.5 else write_typed(rng, pa.table(columns), path)
    )
    data = bytearray(written.read_bytes())
    way = rng.integers(5)
    if way == 0:
        data = data[: rng.integers(len(data))]
    elif way == 1:
        data = data[rng.integers(len(data)) :]
    elif way == 2:
        data += rng.bytes(rng.integers(1, 100))
    else:
        for place in rng.integers(len(data), size=rng.integers(1, 12)):
            data[place] = rng.integers(256) if way == 3 else rng.choice([0, 1, 127, 128, 255])
    written.write_bytes(data)
    return str(written)


# ------------------------------------------------------------------------------------------------------------- features


def write_features(rng: Rng, folder: Path) -> tuple[str, str]:
    """Write features of items, good or damaged."""
    n = int(rng.choice([1, 2, 5, 20, 30]))
    dense = rng.normal(size=(n, int(rng.choice([1, 2, 20]))))
    suffix, data = (".npz", to_npz(rng, dense)) if rng.random() < 0.4 else (".npy", to_npy(rng, dense))
    if rng.random() < 0.3:
        data = (cut, flip_bytes, insert_pieces, replace_all)[rng.integers(4)](rng, data)
    suffix = suffix if rng.random() < 0.9 else (".npy", ".npz", ".csv", "")[rng.integers(4)]
    return save(folder / "features", suffix, data), suffix


def to_npy(rng: Rng, dense: Any) -> bytes:
    """Return an array file, of an odd array in one of two cases."""
    odd = [
        dense.astype("f2"),
        dense.astype("c16"),
        dense.astype("S8"),
        dense.astype("U8"),
        dense > 0,
        dense[0],
        dense[None],
        dense[:, :0],
        dense[:0],
        np.array(1.0),
        np.where(dense > 1, np.nan, dense),
        np.sign(dense) * 1e308,
        np.full_like(dense, 7.0),
        dense.astype("M8[s]"),
        np.zeros(3, [("a", "f8")]),
        np.asfortranarray(dense),
        dense.astype(">f8"),
        dense.astype("i8"),
    ]
    array = dense if rng.random() < 0.4 else odd[rng.integers(len(odd))]
    data = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if rng.random() < 0.03:
            np.save(data, np.array([[None, {}]] * 3, dtype=object), allow_pickle=True)
        else:
            np.save(data, array)
    return data.getvalue()


def to_npz(rng: Rng, dense: Any) -> bytes:
    """Return a sparse matrix as a file, with parts that may not go together."""
    matrix = sparse.random(dense.shape[0], dense.shape[1], 0.5, random_state=0)
    data = io.BytesIO()
    kinds = (sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.bsr_array, sparse.dia_array)
    sparse.save_npz(data, kinds[rng.integers(5)](matrix), compressed=bool(rng.integers(2)))
    if rng.random() < 0.4:
        return data.getvalue()
    if rng.random() < 0.2:
        data = io.BytesIO()
        np.savez(data, dense)
        return data.getvalue()
    with zipfile.ZipFile(data) as file:
        members = {name: file.read(name) for name in file.namelist()}
    name = list(members)[rng.integers(len(members))]
    changed = io.BytesIO()
    values = [
        np.array([10**6, -1]),
        np.array(b"csr"),
        np.array([2**40, 2**40]),
        np.array([np.nan]),
        np.array("x"),
        np.ones(3),
    ]
    np.save(changed, values[rng.integers(len(values))])
    if rng.random() < 0.2:
        del members[name]
    else:
        members[name] = changed.getvalue()
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        for each, content in members.items():
            file.writestr(each, content)
    return data.getvalue()
