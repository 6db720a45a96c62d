"""Damaged files of every kind that is read: answers, known labels, items, edges and features, in every format.

Each case writes good files, one of them damaged in one way, and reads them: as answers, by `fuse` or on the command
line. Other damage of JSON lines is in `fuzz.json_lines`.
"""

from __future__ import annotations

import gzip
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
from click.testing import CliRunner
from scipy import sparse

import consilience as cs
from consilience.cli.main import program
from fuzz.harness import Nonsense, Refused

Rng = np.random.Generator
Columns = dict[str, list[Any]]

ODD_TEXTS = [
    *("", " ", "\0", "\x01\x1b[31m", "\u202eabc", "\ufeff", "\u0301", "a\nb", "a\r\nb", "a\rb", '"', '""', '"x', "'"),
    *("a,b", "a\tb", "a;b", "NA", "null", "NaN", "nan", "None", "true", "TRUE", "-0", "+1", "1.0", "1e999", "-inf"),
    *("9" * 400, "1" + "0" * 30, "0x10", "007", "1_000", "١٢", "½", "2020-13-45", "0000-00-00", "99999-01-01", "12:61"),
    *("2020-01-01T00:00:00Z", "2020-01-01 00:00:00.123456789", "=1+1", "@SUM(A1)", "x" * 5000, "🦉" * 50, "\ud800"),
    *("<script>", "{label}", "%s", "../../etc", "O", "B-X", "I-Y", "item", "\x85", "\u2028", "\x0b", "\x1c", "\ufffe"),
]


def prepare() -> None:
    """Compile and import: the first cases would take seconds."""
    table = {"item": [0, 0, 1, 1] * 2, "worker": [0, 1] * 4, "label": list("abbaabba")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cs.fuse(table, duplicates="first")
        cs.fuse(table, duplicates="first", graph={"source": [0], "target": [1]})
        places = {"sequence": table["item"], "position": table["label"]} | {name: table[name] for name in table}
        del places["item"]
        with suppress(cs.errors.ConsilienceError):
            cs.fuse(places, duplicates="first")


def run(rng: Rng, folder: Path) -> str:
    """Write files of which one is damaged, and read them."""
    for old in folder.iterdir():
        if old.is_file():
            old.unlink()
    tables = draw_tables(rng)
    damaged = ("answers", "answers", "answers", "gold", "items", "graph", "features")[rng.integers(7)]
    chosen = {"answers", damaged} | set(rng.choice(["gold", "items", "graph"], rng.integers(3)))
    if damaged == "features":
        chosen -= {"graph", "items"}
    if not tables["graph"]["source"]:
        chosen -= {"graph"}
    paths, words = {}, ""
    for name in sorted(chosen):
        way = WAYS[rng.integers(len(WAYS))] if name == damaged else keep
        if name == "features":
            paths[name], words = write_features(rng, folder)
            continue
        paths[name] = way(rng, dict(tables[name]), folder / name)
        words = way.__name__ if name == damaged else words
    use(rng, paths, folder)
    return f"{damaged}: {words}"


# ---------------------------------------------------------------------------------------------------------------- using


def use(rng: Rng, paths: dict[str, str], folder: Path) -> None:
    """Read the files in one of three ways."""
    weight = "weight" if rng.random() < 0.2 else None
    if "features" in paths or rng.random() < 0.25:
        run_command(rng, paths, folder, weight)
        return
    others = {name: paths[name] for name in ("gold", "graph") if name in paths}
    keywords = {
        "weight": weight,
        "items": paths.get("items"),
        "duplicates": str(rng.choice(["error", "first", "mean"])),
    }
    if not others and rng.random() < 0.6:
        responses = cs.read_responses(paths["answers"], **keywords)
        repr(responses)
        model = cs.MajorityVote().fit(responses)
    else:
        model = cs.fuse(paths["answers"], **others, **keywords, **({} if "graph" in others else {"max_iter": 5}))
        str(model.comparison_)
    posterior = model.posterior_
    if not (np.isfinite(posterior).all() and np.allclose(posterior.sum(axis=1), 1, atol=1e-6)):
        raise Nonsense(f"probabilities {posterior[:3].tolist()}")
    model.to_frame()
    model.worker_report()


def run_command(rng: Rng, paths: dict[str, str], folder: Path, weight: str | None) -> None:
    """Run the program in this process; raise `Refused` for bad input, and an error of no kind for a failure."""
    suffix = (".csv", ".tsv", ".jsonl", ".parquet", ".arrow")[rng.integers(5)]
    if rng.random() < 0.15 and "gold" in paths:
        arguments = ["evaluate", paths["answers"], paths["gold"]]
    else:
        options = {"--gold": "gold", "--items": "items", "--graph": "graph", "--knn": "features"}
        arguments = ["fuse", paths["answers"], "-o", str(folder / f"out{suffix}"), "--max-iter", "5"]
        arguments += [part for option, name in options.items() if name in paths for part in (option, paths[name])]
        arguments += [] if weight is None else ["--weight", weight]
        arguments += ["--k", "1"] if "features" in paths else []
    result = CliRunner().invoke(program, [*arguments, *(["--json"] if rng.random() < 0.3 else [])])
    lines = result.stderr.splitlines()
    if result.exit_code == 2 and lines:
        raise Refused(max(lines, key=len).removeprefix("Error: ").removeprefix("Warning: "))
    if result.exit_code != 0:
        raise RuntimeError(f"exit code {result.exit_code}: {result.stderr[-1500:]}") from result.exception


# --------------------------------------------------------------------------------------------------------------- tables


def draw_tables(rng: Rng) -> dict[str, Columns]:
    """Return tables of answers, known labels, items and edges that go together; positions have no edges."""
    n_rows = int(rng.choice([1, 2, 4, 10, 40]))
    labels = [("cat", "dog", "owl"), ("O", "B-X", "I-X"), ("1", "2", "3"), ("a,b", 'c"d', "e\nf")][rng.integers(4)]
    said = [labels[k] for k in rng.integers(len(labels), size=n_rows)]
    item = [i // 2 for i in range(n_rows)]
    paired = rng.random() < 0.25
    keys: Columns = {"sequence": [i // 4 for i in item], "position": item} if paired else {"item": item}
    answers = keys | {"worker": [f"w{i % 2}" for i in range(n_rows)], "label": said, "weight": [0.5] * n_rows}
    some = {name: values[::2] for name, values in keys.items()}
    ends = some.get("item", [])
    return {
        "answers": answers,
        "gold": some | {"label": said[::2]},
        "items": some,
        "graph": {"source": ends[:-1], "target": ends[1:], "weight": [1.5] * len(ends[1:])},
    }


def change_columns(rng: Rng, columns: Columns) -> Columns:
    """Give a table other cells, names or columns."""
    name = list(columns)[rng.integers(len(columns))]
    values = [*columns[name]]
    way = rng.integers(9)
    if way == 0:
        del columns[name]
    elif way == 1:
        columns[ODD_TEXTS[rng.integers(len(ODD_TEXTS))]] = columns.pop(name)
    elif way == 2:
        columns[name] = [None] * len(values)
    elif way == 3:
        columns = dict(reversed(columns.items()))
    elif way == 4:
        columns = {key: [] for key in columns}
    elif way == 5:
        columns |= {f"more {i}": values for i in range(int(rng.choice([1, 300])))}
    elif way == 6:
        columns[name] = [ODD_TEXTS[i] for i in rng.integers(len(ODD_TEXTS), size=len(values))]
    else:
        for at in rng.integers(max(len(values), 1), size=rng.integers(1, 4)) if values else ():
            values[at] = ODD_TEXTS[rng.integers(len(ODD_TEXTS))]
        columns[name] = values
    return columns


# ------------------------------------------------------------------------------------------------------------ text files


def keep(rng: Rng, columns: Columns, path: Path) -> str:
    """Write a good file, in any format."""
    if rng.random() < 0.3 and all(columns.values()):
        return write_typed(rng, pa.table(columns), path)
    return save(path, ".csv", to_text(columns, ","))


def to_text(columns: Columns, delimiter: str, careful: bool = True, line_end: str = "\n") -> bytes:
    """Return a table as delimited text; without care nothing is quoted."""
    rows = [list(columns), *map(list, zip(*columns.values(), strict=False))]
    lines = [delimiter.join(quote(value, delimiter) if careful else str(value) for value in row) for row in rows]
    return (line_end.join(lines) + line_end).encode(errors="surrogatepass")


def quote(value: Any, delimiter: str) -> str:
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in (delimiter, '"', "\n", "\r")) else text


def save(path: Path, suffix: str, data: bytes) -> str:
    path = path.with_name(path.name + suffix)
    path.write_bytes(data)
    return str(path)


def write_odd_text(rng: Rng, columns: Columns, path: Path) -> str:
    """Write a table with odd cells, names or columns as text."""
    for _ in range(rng.integers(1, 4)):
        columns = change_columns(rng, columns) if columns else columns
    tabs = rng.random() < 0.3
    text = to_text(columns, "\t" if tabs else ",", rng.random() < 0.7, ("\n", "\r\n", "\r")[rng.integers(3)])
    return save(path, ".tsv" if tabs else ".csv", text)


def write_damaged_text(rng: Rng, columns: Columns, path: Path) -> str:
    """Write a table as text, with its bytes damaged."""
    tabs = rng.random() < 0.3
    text = to_text(columns, "\t" if tabs else ",")
    damage = TEXT_DAMAGES[rng.integers(len(TEXT_DAMAGES))]
    return save(path, ".tsv" if tabs else ".csv", damage(rng, text))


def write_packed_text(rng: Rng, columns: Columns, path: Path) -> str:
    """Write a table as compressed text, with damage inside or outside."""
    data = to_text(columns, ",")
    if rng.random() < 0.3:
        data = TEXT_DAMAGES[rng.integers(len(TEXT_DAMAGES))](rng, data)
    packed = gzip.compress(data, int(rng.integers(10)))
    way = rng.integers(8)
    if way == 0:
        packed = cut(rng, packed)
    elif way == 1:
        packed = flip_bytes(rng, packed)
    elif way == 2:
        packed += gzip.compress(data)
    elif way == 3:
        packed += rng.bytes(20)
    elif way == 4:
        filler = (b"\0", b"a", b"\n", b",", b'"', b"1,2,3\n")[rng.integers(6)]
        packed = gzip.compress(data + filler * int(2 ** rng.uniform(10, 23) / len(filler)), 1)
    elif way == 5:
        packed = gzip.compress(packed)
    elif way == 6:
        packed = data  # which only the suffix calls compressed
    return save(path, (".csv.gz", ".csv", ".gz", ".tsv.gz")[rng.choice(4, p=[0.7, 0.1, 0.1, 0.1])], packed)


def write_misnamed(rng: Rng, columns: Columns, path: Path) -> str:
    """Write a table under a suffix of another format."""
    suffixes = [".csv", ".tsv", ".jsonl", ".parquet", ".arrow", ".feather", ".ndjson", ".txt", "", ".npz", ".JSONL"]
    suffix = suffixes[rng.integers(len(suffixes))]
    if rng.random() < 0.6:
        return save(path, suffix, to_text(columns, (",", "\t", ";", "|")[rng.integers(4)]))
    written = Path(write_typed(rng, pa.table(columns), path))
    return str(written.rename(path.with_name(path.name + suffix)))


def write_several(rng: Rng, columns: Columns, path: Path) -> str:
    """Write several files that may not go together; return a folder or a pattern."""
    folder = path.with_name(f"{path.name}-{rng.integers(1 << 30)}")
    folder.mkdir()
    for i in range(rng.integers(3)):
        part = change_columns(rng, dict(columns)) if rng.random() < 0.5 else columns
        suffix = (".csv", ".csv", ".tsv", ".csv.gz", ".txt", "")[rng.integers(6)]
        save(folder / f"part {i}", suffix, to_text(part, ","))
    if rng.random() < 0.3:
        (folder / "deeper.csv").mkdir()
    return str(folder) if rng.random() < 0.5 else str(folder / ("*", "*.csv", "part [0-9]*", "[")[rng.integers(4)])


def name_oddly(rng: Rng, columns: Columns, path: Path) -> str:
    """Return a name that is no file, or an odd one."""
    names = ["", ".", "..", "/", "no such file.csv", "\0.csv", "a\0b", "~", "~nobody/x.csv", "x" * 5000, "\ud800.csv"]
    names += ["/dev/null", "[", "**", "*.csv", "\udcff.csv", "http://localhost/x.csv", "/proc/self/mem"]
    if rng.random() < 0.5:
        return names[rng.integers(len(names))]
    odd = ["\udcff.csv", "[a].csv", "a\nb.csv", "\u202eb.csv", "-o.csv", "{label}.csv", "%s.csv", "é.csv", "x .CSV"]
    target = path.with_name(odd[rng.integers(len(odd))])
    target.write_bytes(to_text(columns, ","))
    return str(target)


def encode(rng: Rng, text: bytes) -> bytes:
    names = ["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7", "cp500", "utf-16-be"]
    return text.decode().encode(names[rng.integers(len(names))])


PIECES = [
    b'"',
    b'""',
    b",",
    b"\n",
    b"\r",
    b"\r\n",
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x1a",
    b"\t",
]
PIECES += [
    "\u202e".encode(),
    b"\x1b]0;x\x07",
    b"\x85",
    b"\\",
    b"\xed\xa0\x80",
    b"1e999",
    b"\x1f\x8b",
    b"PAR1",
    b"ARROW1",
]


def insert_pieces(rng: Rng, text: bytes) -> bytes:
    for place in rng.integers(len(text) + 1, size=rng.integers(1, 6)):
        times = 1 if rng.random() < 0.7 else int(rng.integers(1, 3000))
        text = text[:place] + PIECES[rng.integers(len(PIECES))] * times + text[place:]
    return text


def make_ragged(rng: Rng, text: bytes) -> bytes:
    lines = text.split(b"\n")
    for at in rng.integers(len(lines), size=rng.integers(1, 4)):
        more = (b",x", b",", b'"', b",,,,", b"", b'"a"b')[rng.integers(6)]
        lines[at] = lines[at] + more if rng.random() < 0.6 else lines[at].rpartition(b",")[0]
    return b"\n".join(lines)


def change_header(rng: Rng, text: bytes) -> bytes:
    header, _, rest = text.partition(b"\n")
    names = header.split(b",")
    ways = [
        lambda: rest,  # no header
        lambda: header + b"\n",  # nothing else
        lambda: header,
        lambda: header + b"\n" + text,  # twice
        lambda: b",".join([names[0]] * len(names)) + b"\n" + rest,
        lambda: b",".join([b""] * len(names)) + b"\n" + rest,
        lambda: b" " + b" , ".join(names) + b" \n" + rest,
        lambda: b"\n\n" + text,
        lambda: b"# a comment\n" + text,
        lambda: header.upper() + b"\n" + rest,
        lambda: b'"' + header + b'"\n' + rest,
        lambda: b"x" * 100_000 + b"," + text,
        lambda: b"," * 3000 + text,
    ]
    return ways[rng.integers(len(ways))]()


def make_long(rng: Rng, text: bytes) -> bytes:
    place = int(rng.integers(len(text) + 1))
    piece = (b"x", b"9", b" ", b"a,", b"\n", b'"', b"\xc3\xa9", b"1\n")[rng.integers(8)]
    return text[:place] + piece * int(10 ** rng.uniform(3, 6)) + text[place:]


def flip_bytes(rng: Rng, text: bytes) -> bytes:
    data = bytearray(text)
    for place in rng.integers(len(data), size=rng.integers(1, 10)):
        data[place] = rng.integers(256)
    return bytes(data)


def cut(rng: Rng, text: bytes) -> bytes:
    return text[: rng.integers(len(text))]


def replace_all(rng: Rng, _text: bytes) -> bytes:
    whole = [
        b"",
        b"\n",
        b"\0",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b" ",
        b",",
        b'"',
        b"\r",
        b"\n\n\n",
        b",,\n,,\n",
        b"\0" * 5000,
    ]
    whole += [b"PAR1PAR1", b"ARROW1", b"\x1f\x8b", b"PK\x03\x04", b"{", b"[]", b"\xff\xff\xff\xff", rng.bytes(300)]
    return whole[rng.integers(len(whole))]


TEXT_DAMAGES: list[Callable[[Rng, bytes], bytes]] = [
    encode,
    *[insert_pieces] * 3,
    *[make_ragged] * 2,
    *[change_header] * 2,
    make_long,
    *[flip_bytes] * 2,
    cut,
    replace_all,
]


# ------------------------------------------------------------------------------------------------------ Parquet and Arrow


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


WAYS: list[Callable[[Rng, Columns, Path], str]] = [
    keep,
    *[write_odd_text] * 4,
    *[write_damaged_text] * 5,
    *[write_packed_text] * 2,
    write_misnamed,
    write_several,
    name_oddly,
    *[write_odd_types] * 4,
    *[write_damaged_types] * 3,
]
