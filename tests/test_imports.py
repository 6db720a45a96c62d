"""What importing costs, and that every public name is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import consilience as cs

HEAVY = (
    "numba",
    "pandas",
    "polars",
    "narwhals",
    "scipy",
    "sklearn",
    "PIL",
    "distributed",
    "numpy",
    "pyarrow",
    "jinja2",
    "vl_convert",
)


def modules_after(code: str) -> set[str]:
    out = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in out.stdout.split()}


@pytest.mark.parametrize("code", ["import consilience", "import consilience.cli.main"])
def test_importing_is_light(code):
    assert not modules_after(code) & set(HEAVY)


def test_fitting_a_table_loads_no_frame_library_of_others():
    # pandas is not in the list: pyarrow itself looks for it when it builds an array.
    code = "import consilience as cs; cs.MajorityVote().fit({'item': [1], 'worker': [1], 'label': ['a']})"
    assert not modules_after(code) & {"polars", "sklearn", "distributed", "rich", "click"}


@pytest.mark.parametrize("name", cs.__all__)
def test_every_public_name_is_there(name):
    assert getattr(cs, name) is not None
    assert name in dir(cs)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Dawid'"):
        cs.Dawid  # noqa: B018
