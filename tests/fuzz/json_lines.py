"""Damaged JSON lines: each case is a file made of a few good lines, damaged in one way."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np

import consilience as cs
from fuzz.harness import Nonsense

PIECES = [b"[", b"{", b"]", b"}", b'"', b"\\", b",", b":", b"\n", b"\r\n", b"null", b"1e999", b"-", b'{"a":', b"\xff"]
PIECES += [b"\xef\xbb\xbf", b"\0", b'"\\ud800"', b"NaN", b"[[", b"}}", b'{"item":1}', b"\n\n", b" "]


def prepare() -> None:
    """Nothing is needed."""


def run(rng: np.random.Generator, folder: Path) -> str:
    """Write damaged lines and read them."""
    n_rows = int(rng.integers(1, 30))
    rows = [
        {"item": i // 2, "worker": f"w{i % 2}", "label": ("cat", "[dog", 'o"}wl')[rng.integers(3)]}
        for i in range(n_rows)
    ]
    text = "\n".join(map(json.dumps, rows)).encode()
    damage = DAMAGES[rng.integers(len(DAMAGES))]
    text = damage(rng, text)
    packed = rng.random() < 0.2
    path = folder / ("damaged.jsonl.gz" if packed else "damaged.jsonl")
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    responses = cs.read_answers(path)
    posterior = cs.MajorityVote().fit(responses).posterior_
    if not np.allclose(posterior.sum(axis=1), 1):
        raise Nonsense(f"vote shares {posterior[:3].tolist()}")
    return damage.__name__


def keep(_rng: np.random.Generator, text: bytes) -> bytes:
    return text


def insert_pieces(rng: np.random.Generator, text: bytes) -> bytes:
    for place in rng.integers(len(text) + 1, size=rng.integers(1, 6)):
        times = 1 if rng.random() < 0.7 else int(rng.integers(1, 300))
        text = text[:place] + PIECES[rng.integers(len(PIECES))] * times + text[place:]
    return text


def nest_deep(rng: np.random.Generator, text: bytes) -> bytes:
    depth = int(10 ** rng.uniform(0, 5))
    opening = (b"[", b'{"a":', b"[\n", b'[{"b":[')[rng.integers(4)] * depth
    closing = (b"]" * depth, b"}" * depth, b"")[rng.integers(3)]
    lines = text.split(b"\n")
    at = rng.integers(len(lines))
    lines[at] = lines[at][:-1] + b', "more": ' + opening + closing + b"}"
    return b"\n".join(lines)


def flip_bytes(rng: np.random.Generator, text: bytes) -> bytes:
    data = bytearray(text)
    for place in rng.integers(len(data), size=rng.integers(1, 10)):
        data[place] = rng.integers(256)
    return bytes(data)


def cut(rng: np.random.Generator, text: bytes) -> bytes:
    return text[: rng.integers(len(text))]


DAMAGES = [keep, *[insert_pieces] * 4, *[nest_deep] * 3, *[flip_bytes] * 2, cut]
