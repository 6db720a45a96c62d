"""How fast a large export of Label Studio is read, and how much memory that takes.

`python benchmarks/label_studio.py` takes a million spans; `--spans 1e5` fewer. The file is in a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

import consilience as cs

WORDS = [f"word{n}" for n in range(2000)]
TYPES = ("PER", "ORG", "LOC")


def write_export(path: Path, n_spans: int) -> None:
    """Write tasks of 30 words, in which five workers mark about five spans each."""
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        file.write("[")
        for task in range(-(-n_spans // 25)):
            words = [WORDS[n] for n in rng.integers(0, len(WORDS), 30)]
            ends = np.cumsum([len(word) + 1 for word in words]) - 1
            annotations = [make_annotation(rng, words, ends, worker) for worker in range(5)]
            record = {"id": task, "data": {"text": " ".join(words)}, "annotations": annotations}
            file.write(("," if task else "") + json.dumps(record))
        file.write("]")


def make_annotation(rng: np.random.Generator, words: list[str], ends: np.ndarray, worker: int) -> dict[str, object]:
    chosen = rng.choice(30, 5, replace=False).tolist()
    results = [
        {
            "id": f"{worker}-{word}",
            "from_name": "label",
            "to_name": "text",
            "type": "labels",
            "value": {
                "start": int(ends[word]) - len(words[word]),
                "end": int(ends[word]),
                "text": words[word],
                "labels": [TYPES[word % 3]],
            },
        }
        for word in chosen
    ]
    return {"id": worker, "completed_by": worker, "was_cancelled": False, "result": results}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=float, default=1e6)
    n_spans = int(parser.parse_args().spans)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "export.json")
        write_export(path, n_spans)
        start = time.perf_counter()
        spans = cs.read_spans(path)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        size = path.stat().st_size
        print(f"{len(spans.marks.start):,} spans, {size / 1e6:.0f} MB: {seconds:.1f} s, {peak / 1e9:.2f} GB in all")


if __name__ == "__main__":
    main()
