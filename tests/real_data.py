"""Where the real data are: $CONSILIENCE_DATA, which `conftest.py` sets if it can. They are never committed."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.real_crowds import data_folder

FOLDER = data_folder() or Path("nowhere")

needs_data = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no real data: set $CONSILIENCE_DATA (looked in {FOLDER})")


def gold_of(name: str) -> dict[object, str]:
    """Return {item: label}, or {(sequence, position): label}."""
    table = pq.read_table(FOLDER / name / "gold.parquet")
    keys = ["item"] if "item" in table.column_names else ["sequence", "position"]
    columns = [table[key].to_pylist() for key in keys]
    ids = columns[0] if len(keys) == 1 else zip(*columns, strict=True)
    return dict(zip(ids, table["label"].to_pylist(), strict=True))
