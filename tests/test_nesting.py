"""JSON that is nested too deep is refused before a parser sees it."""

from __future__ import annotations

import gzip
import io
import time

import numpy as np
import pytest

import consilience as cs
from consilience.formats import nesting
from consilience.formats.nesting import MOST_OPEN, find_deep_nesting


def find_slowly(text: bytes) -> int | None:
    """Do what `find_deep_nesting` does, byte by byte."""
    n_open, line, in_string, escaped = 0, 1, False, False
    for byte in text:
        if escaped and byte in b'\\"':
            escaped = False
            continue
        escaped = byte == ord("\\")
        if byte == ord("\n"):
            in_string, line = False, line + 1
        elif byte == ord('"'):
            in_string = not in_string
        elif not in_string and byte in b"[{":
            n_open += 1
            if n_open > MOST_OPEN:
                return line
        elif not in_string and byte in b"]}":
            n_open = max(n_open - 1, 0)
    return None


@pytest.mark.parametrize("block", [1, 3, 64, 1 << 20])
def test_nesting_agrees_with_a_slow_reader(block, monkeypatch):
    monkeypatch.setattr(nesting, "BLOCK", block)
    monkeypatch.setattr(nesting, "MOST_OPEN", 3)
    monkeypatch.setitem(globals(), "MOST_OPEN", 3)
    rng = np.random.default_rng(block)
    found = []
    for _ in range(400):
        weights = rng.dirichlet(np.full(8, 0.7))
        text = bytes(rng.choice(list(b'"\\[{]}\na'), size=rng.integers(60), p=weights).tolist())
        found.append(find_deep_nesting(io.BytesIO(text)))
        assert found[-1] == find_slowly(text), text
    assert 50 < sum(line is not None for line in found) < 350


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
        cs.read_responses(path)
    assert time.perf_counter() - begun < 5


def test_what_is_nested_a_little_is_read(tmp_path):
    path = tmp_path / "a.jsonl"
    more = "[" * 80 + "]" * 80
    path.write_text("".join(f'{{"item": {i}, "worker": "a", "label": "x]", "more": {more}}}\n' for i in range(3)))
    assert cs.read_responses(path).n_items == 3
