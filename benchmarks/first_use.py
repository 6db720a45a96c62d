"""First use: how long the first fit takes where nothing has been compiled, and in later processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MODELS = ("DawidSkene", "HiddenMarkov", "MarkovField", "MomentMatching")


def time_fits(model: str, cache: str) -> NDArray[np.float64]:
    """Return the seconds [first fit, another number of classes] x [processor, clock] of a new process."""
    command = [sys.executable, str(Path(__file__).with_name("first_fit.py")), model]
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return np.array(out.stdout.split(), float).reshape(2, 2)


def report(quick: bool = False) -> str:
    """Return the table as Markdown."""
    lines = [
        "## First use",
        "",
        "The first fit of a process, of 2,400 answers, with the import of numba. Kernels are compiled when they are "
        "first needed, and kept on disk. One serves every number of classes; only from 100,000 answers and items (or "
        "edges) are they compiled for the number of classes at hand.",
        "",
        "| model | nothing compiled before | then another number of classes | later processes |",
        "|---|---|---|---|",
    ]
    for model in MODELS[: 1 if quick else None]:
        with tempfile.TemporaryDirectory() as cache:
            (first, other), *later = (time_fits(model, cache)[:, 1] for _ in range(4))
        lines.append(f"| `{model}` | {first:.1f} s | {other:.2f} s | {min(fit for fit, _ in later):.2f} s |")
    return "\n".join(lines) + "\n"
