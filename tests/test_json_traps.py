"""JSON that a parser might die of is refused before one sees it."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import sys
import time

import numpy as np
import pytest

import consilience as cs
from consilience.formats import files, json_lines
from consilience.formats.json_lines import find_trap


def find_slowly(text: bytes) -> int | None:
    """Return the line of the first trap, byte by byte."""
    n_open, line, in_string, escaped, blank = 0, 1, False, False, True
    for byte in text:
        if escaped and byte in b'\\"':
            escaped = False
            continue
        escaped = byte == ord("\\")
        if blank and byte == ord("n"):
            return line
        blank = byte in b"\r\n" or (blank and byte in b" \t\\")
        if byte == ord("\n"):
            in_string, line = False, line + 1
        elif byte == ord('"'):
            in_string = not in_string
        elif not in_string and byte in b"[{":
            n_open += 1
            if n_open > json_lines.MOST_OPEN:
                return line
        elif not in_string and byte in b"]}":
            n_open = max(n_open - 1, 0)
    return None


@pytest.mark.parametrize("block", [1, 3, 64, 1 << 20])
def test_traps_are_those_of_a_slow_reader(block, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", block)
    monkeypatch.setattr(json_lines, "MOST_OPEN", 3)
    rng = np.random.default_rng(block)
    found = []
    for _ in range(600):
        weights = rng.dirichlet(np.full(11, 0.7))
        text = bytes(rng.choice(list(b'"\\[{]}\na \rn'), size=rng.integers(60), p=weights).tolist())
        if re.search(rb"(^|[\r\n])[ \t]*\\", text):
            continue  # a line that begins with a backslash is no JSON of any kind
        trap = find_trap(io.BytesIO(text))
        found.append(trap and trap[0])
        assert found[-1] == find_slowly(text), text
    assert 100 < sum(line is not None for line in found) < len(found) - 100


@pytest.mark.parametrize(
    ("deep", "line"),
    [
        (b"[" * 20_000, 2),
        (b'{"a":' * 20_000, 2),
        (b"[" * 12_000 + b"]" * 12_000, 2),
        (b"[\n" * 20_000, 101),  # the object itself is the first bracket
    ],
    ids=["lists", "objects", "closed", "lines"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_deep_lines_are_refused_at_once(deep, line, packed, tmp_path):
    path = tmp_path / ("deep.jsonl.gz" if packed else "deep.jsonl")
    text = b'{"item": 1, "worker": "a", "label": "[[{{"}\n{"item": 2, "worker": "a", "label": ' + deep
    path.write_bytes(gzip.compress(text) if packed else text)
    begun = time.perf_counter()
    with pytest.raises(cs.errors.InputError, match=rf"line {line}: more than 100 brackets are open"):
        cs.read_answers(path)
    assert time.perf_counter() - begun < 5


def test_what_is_nested_a_little_is_read(tmp_path):
    path = tmp_path / "a.jsonl"
    more = "[" * 80 + "]" * 80
    path.write_text("".join(f'{{"item": {i}, "worker": "a", "label": "x]", "more": {more}}}\n' for i in range(3)))
    assert cs.read_answers(path).n_items == 3


@pytest.mark.parametrize("text", ["null", "  null\n", '\r\n\tnull{"item": 1}', '{"item": 1}\n\nnull\n', "\ufeffnull"])
def test_a_bare_null_is_refused(text, tmp_path):
    """Arrow's reader crashes on a block that begins with one."""
    path = tmp_path / "a.jsonl"
    path.write_text(text, encoding="utf-8")
    line = text.replace("\r\n", "\n").partition("null")[0].count("\n") + 1
    with pytest.raises(cs.errors.InputError, match=rf"line {line}: expected one JSON object per line, found null"):
        cs.read_answers(path)


@pytest.mark.robust
def test_the_second_reading_takes_no_more_memory_than_the_longest_line_needs(tmp_path):
    """A column of two types, or a long line, is read again; that took a gigabyte, however small the file."""
    path = tmp_path / "a.jsonl"
    rows = [{"item": 1, "worker": "a", "label": "x" * 6_000_000}, {"item": 2.5, "worker": "a", "label": "y"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    code = (
        "import sys, pyarrow as pa, consilience as cs\n"
        "assert cs.read_answers(sys.argv[1]).n_items == 2\n"
        "print(pa.default_memory_pool().max_memory())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 200_000_000
