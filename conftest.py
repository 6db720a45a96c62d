"""Tests find real data in $CONSILIENCE_DATA. If it is not set, it becomes ../shared/data, if there is such a folder."""

from __future__ import annotations

import os
from pathlib import Path

BESIDE = Path(__file__).resolve().parents[1] / "shared" / "data"

if "CONSILIENCE_DATA" not in os.environ and BESIDE.is_dir():
    os.environ["CONSILIENCE_DATA"] = str(BESIDE)
