import gzip
import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience import formats
from consilience.errors import InputError
from consilience.formats import (
    FORMATS,
    Codec,
    Format,
    files,
    list_suffixes,
    readable_formats,
    span_formats,
    tables,
    writable_formats,
)
from consilience.formats.reading import read_table
from consilience.formats.writing import check_table_path, check_writable, replace_file, write_table
from effort import examples

SUFFIXES = list_suffixes(writable_formats())
TEXT_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
AWKWARD = [
    "<script>alert(1)</script>",
    "=1+1",
    "🦉 é",
    "a\nb\r\nc",
    'say "hi"',
    "x" * 10_000,
    "NA",
    "null",
    " a,b\t",
    "-",
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name, content):
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


def read(name, content):
    return read_table(write(name, content)).table


def message(call, *arguments):
    with pytest.raises(InputError) as caught:
        call(*arguments)
    return str(caught.value)


# Round trips


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_round_trip(folder, suffix):
    table = pa.table({"item": range(len(AWKWARD)), 'a, "b"\n': AWKWARD, "label": ["007", None, *"abcdefgh"]})
    write_table(table, f"table{suffix}")
    assert read_table(f"table{suffix}").table.equals(table)


@pytest.mark.parametrize("suffix", SUFFIXES)
@examples(100)
@given(data=st.data())
def test_round_trip_of_any_text(suffix, data):
    width, length = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 5))
    cell = st.none() | st.text(st.characters(codec="utf-8")) | st.text(""",;"'\n\r\t 01-\\\ufeff""")
    columns = {str(i): data.draw(st.lists(cell, min_size=length, max_size=length)) for i in range(width)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"table{suffix}")
        write_table(pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()}), path)
        back = read_table(path).table.to_pydict()
    if suffix in TEXT_SUFFIXES:
        back = {name: [None if cell is None else str(cell) for cell in cells] for name, cells in back.items()}
        columns = {name: [cell or None for cell in cells] for name, cells in columns.items()}
    assert back == columns


# The register of formats


@pytest.mark.parametrize("each", FORMATS, ids=[each.name for each in FORMATS])
def test_the_register_says_what_the_formats_can_do(each):
    codec = each.codec
    assert (codec.read is not None or each in span_formats()) == (each in readable_formats())
    assert (codec.write is not None) == (each in writable_formats())
    assert (codec.load is not None) == (codec.save is not None) == (each.kind not in ("table", "answers"))
    assert all(each.fits(f"x{suffix.upper()}") for suffix in list_suffixes([each]))


def read_backwards(path, wanted):
    names, *rows = Path(path).read_text()[::-1].splitlines()
    return pa.table({names: rows})


def recognise_backwards(head, _path):
    return head.endswith(b"!sdrawkcab")


@pytest.fixture
def backwards(monkeypatch):
    """A format that can only be read, and is recognised by its content: one file and one line of the register."""
    monkeypatch.setattr(tables, "ODD", Codec(read=read_backwards, recognise=recognise_backwards), raising=False)
    added = Format("odd", (".odd",), "tables:ODD", read_only=True)
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, added))


@pytest.mark.parametrize("name", ["table", "table.csv", "table.data", "table.jsonl"])
@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".jsonl", ".jsonl.gz"])
def test_formats_that_show_in_the_content(folder, suffix, name):
    table = pa.table({"item": [1, 2], "label": ["a", "b"]})
    write_table(table, f"other{suffix}")
    os.rename(f"other{suffix}", name)
    source = read_table(name)
    assert source.table.equals(table)
    assert source.locate(1) == f"{name}, {'line' if 'jsonl' in suffix else 'row'} 2"


# CSV and TSV


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["0", "-1", "9223372036854775807"], [0, -1, 2**63 - 1]),
        (["1", "", "2"], [1, None, 2]),
        (["1", "007"], None),
        (["1", "-0"], None),
        (["1", "NA"], None),
        (["nan", "None", "null", "#N/A"], None),
        (["1.50", "2"], None),
        (["true", "false"], None),
        (["2020-01-01", "2020-01-02"], None),
    ],
)
def test_only_canonical_integers_become_integers(folder, texts, values):
    column = read("a.csv", "x,y\n" + "".join(f"{text},.\n" for text in texts))["x"]
    assert column.to_pylist() == (texts if values is None else values)
    assert column.type == (pa.string() if values is None else pa.int64())


def test_empty_fields_are_missing(folder):
    table = read("a.csv", 'a,b,c\nx,,""\n,"",y\n')
    assert table.to_pydict() == {"a": ["x", None], "b": [None, None], "c": [None, "y"]}
    assert table.schema.types == [pa.string()] * 3


@pytest.mark.parametrize("content", ["\ufeffa,b\r\n1,x\r\n2,y", "\n\na,b\n\n1,x\n2,y\n\n", 'a,"b"\r1,x\r2,"y"\r'])
def test_line_ends_blank_lines_and_byte_order_mark(folder, content):
    assert read("a.csv", content).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}


# JSON lines


# Answers


ANSWERS = "item,who,label\n1,a,x\n2,a,y\n1,b,x\n"


# Several files


def test_folder_and_glob(folder):
    write("d/b.csv", "a,b\n3,x\n")
    write("d/a.csv", "b,a\ny,1\nz,2\n")
    write("d/.hidden.csv", "broken")
    write("d/_SUCCESS", "")
    write("d/inner/c.csv", "a,b\n9,9\n")
    for path in ("d", Path("d"), "d/*", "d/?.csv", "d/[ab].csv"):
        source = read_table(path)
        assert source.table.to_pydict() == {"b": ["y", "z", "x"], "a": [1, 2, 3]}
        assert source.files == ((os.path.join("d", "a.csv"), 2), (os.path.join("d", "b.csv"), 1))
    assert read_table("**/c.csv").table.num_rows == 1
    write("[a].csv", "a\n1\n")
    assert read_table("[a].csv").table.num_rows == 1


# Where a row stands


# Errors of reading


def test_missing_file(folder):
    for path in ("zzz.parquet", os.path.join("nowhere", "answers.csv")):
        assert message(read_table, path) == f"{path!r} does not exist. Check the path."


def test_nothing_to_read(folder):
    Path("d").mkdir()
    assert "found nothing" in message(read_table, "d")
    assert "found nothing" in message(read_table, "d/*.csv")
    write("d/readme.txt", "x")
    assert "readme.txt" in message(read_table, "d")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_empty_file(folder, suffix):
    assert f"'a{suffix}' is empty (0 bytes)" in message(read_table, write(f"a{suffix}", b""))


@pytest.mark.parametrize("block", [1 << 22, 1 << 10])
def test_ragged_rows(folder, block, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", block)
    content = "a,b\n" + "1,x\n" * 1000 + '\n1,"x\ny"\n1,x,oops\n'
    assert "a.csv, line 1005: expected 2 columns" in message(read_table, write("a.csv", content))
    assert "found 3: '1,x,oops'" in message(read_table, "a.csv")
    assert "a.tsv, line 3: expected 2" in message(read_table, write("a.tsv", "a\tb\n1\t2\n3\n"))


def test_open_quote(folder):
    content = 'a,b\n1,x\n2,"y\n3,z\n4,z\n'
    assert "a.csv, line 3: a quote is opened" in message(read_table, write("a.csv", content))
    assert read("a.csv", 'a,b\n1,"x\ny"\r\n')["b"].to_pylist() == ["x\ny"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"a,b\n1,e\n1,\xe9\n"),
        ("a.csv.gz", gzip.compress(b"a,b\n1,e\n1,\xe9\n", mtime=0)),
        ("a.jsonl", b'{"a": "e"}\n\n{"a": "\xe9"}\n'),
    ],
)
def test_wrong_encoding(folder, name, content):
    assert f"{name}, line 3: the text is not UTF-8. Save the file as UTF-8." in message(
        read_table, write(name, content)
    )


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather", ".csv.gz", ".jsonl.gz"])
def test_damaged_files(folder, suffix):
    write_table(pa.table({"a": range(1000), "b": [f"text {i**3}" for i in range(1000)]}), f"a{suffix}")
    content = Path(f"a{suffix}").read_bytes()
    for broken in (content[:1000], content[:-1], content[:3], b"hello, world\n" * 5):
        assert f"'b{suffix}' cannot be read" in message(read_table, write(f"b{suffix}", broken))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"a": }', "line 3: not valid JSON"),
        ('{"a": "x"', "line 3: not valid JSON"),
        ("[1, 2]", "line 3: expected one JSON object per line, found [1, 2]"),
        ('{"a": 1}', "line 3: column 'a' holds 1, and a value of type str before"),
        ('{"a": true}', "line 3: column 'a' holds True"),
        ('{"a": {"x": 1}}', "line 3: column 'a' holds {'x': 1}"),
        ('{"b": 340282366920938463463374607431768211456}', "Column 'b' of 'a.jsonl' cannot be read"),
    ],
)
def test_broken_json(folder, line, words):
    error = message(read_table, write("a.jsonl", '{"a": "x"}\n\n' + line + "\n"))
    assert words in error
    assert "a.jsonl" in error


# Writing


def test_check_writable(folder, monkeypatch):
    write("d/old.csv", "x")
    assert "is a folder" in message(check_writable, "d")
    assert "Use one of .csv" in message(check_table_path, "labels.xlsx")
    assert "there is no folder" in message(check_writable, "nowhere/labels.csv")
    for path in ("labels.csv", "d/old.csv", "LABELS.PARQUET", Path("d/new.csv.gz")):
        check_table_path(path)
    check_writable("report.html", suffixes=[".html"])
    check_writable("model")
    assert sorted(os.listdir()) == ["d"]
    assert os.listdir("d") == ["old.csv"]
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("old.csv"))
    check_writable("d/new.csv")
    assert "no permission to write to 'd/old.csv'" in message(check_writable, "d/old.csv")


def interrupt(path, error):
    with replace_file(path) as temporary:
        temporary.write_text("half")
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_interruption_leaves_the_old_file(folder, error):
    write("old.csv", "old")
    for path in ("old.csv", "new.csv"):
        with pytest.raises(error):
            interrupt(path, error)
    assert os.listdir() == ["old.csv"]
    assert Path("old.csv").read_text() == "old"


def test_replace_file(folder):
    write("old.npz", "old")
    os.chmod("old.npz", 0o640)
    os.symlink("old.npz", "link.npz")
    with replace_file("link.npz") as temporary:
        assert temporary.suffix == ".npz"
        assert temporary.parent == folder.resolve()
        temporary.write_text("new")
        assert Path("old.npz").read_text() == "old"
    assert sorted(os.listdir()) == ["link.npz", "old.npz"]
    assert os.path.islink("link.npz")
    assert Path("old.npz").read_text() == "new"
    assert os.stat("old.npz").st_mode & 0o777 == 0o640
