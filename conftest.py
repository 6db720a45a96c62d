"""Settings of all tests: where real data are, and how the examples in pages run.

Tests find real data in $CONSILIENCE_DATA. If it is not set, it becomes ../shared/data, if there is such a folder.
Pages run in a folder of their own with a copy of `examples`, and print warnings, so that the page shows them.
"""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent
BESIDE = ROOT.parent / "shared" / "data"

if "CONSILIENCE_DATA" not in os.environ and BESIDE.is_dir():
    os.environ["CONSILIENCE_DATA"] = str(BESIDE)

# The same examples in every run, so that no change fails by chance. --hypothesis-profile=default draws others. Tests
# that need more or fewer than others ask for them with `examples` (tests/effort.py), as a share of these.
settings.register_profile("repeatable", derandomize=True, max_examples=25)
settings.register_profile("thorough", derandomize=True, max_examples=100)
settings.load_profile("repeatable")


def print_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Show a warning as a line of output, without the place in the code."""
    print(f"{category.__name__}: {message}")


@pytest.fixture(autouse=True)
def _page(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.DoctestItem) and request.node.path.suffix == ".md":
        request.getfixturevalue("page_folder")


@pytest.fixture
def page_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to an empty folder with a copy of `examples`, where a warning is printed instead of raised."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", print_warning)
    warnings.simplefilter("always", UserWarning)  # pytest restores the filters after each test
    return tmp_path
