"""Tables as delimited text, damaged in every way: odd cells and names, and bytes that are no text."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Rng = np.random.Generator
Columns = dict[str, list[Any]]

ODD_TEXTS = [
    *("", " ", "\0", "\x01\x1b[31m", "\u202eabc", "\ufeff", "\u0301", "a\nb", "a\r\nb", "a\rb", '"', '""', '"x', "'"),
    *("a,b", "a\tb", "a;b", "NA", "null", "NaN", "nan", "None", "true", "TRUE", "-0", "+1", "1.0", "1e999", "-inf"),
    *("9" * 400, "1" + "0" * 30, "0x10", "007", "1_000", "١٢", "½", "2020-13-45", "0000-00-00", "99999-01-01", "12:61"),
    *("2020-01-01T00:00:00Z", "2020-01-01 00:00:00.123456789", "=1+1", "@SUM(A1)", "x" * 5000, "🦉" * 50, "\ud800"),
    *("<script>", "{label}", "%s", "../../etc", "O", "B-X", "I-Y", "item", "\x85", "\u2028", "\x0b", "\x1c", "\ufffe"),
]


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
