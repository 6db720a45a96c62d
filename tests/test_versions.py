"""Versions: what pyproject.toml declares can be tested, and CONTRIBUTING.md says the same."""

from __future__ import annotations

import re
from pathlib import Path

from oldest import PYPROJECT, oldest, oldest_of_all

PROJECT = PYPROJECT["project"]
NAMES = ("big", "dask", "features", "images", "report")
EXTRAS = [each for extra in NAMES for each in PROJECT["optional-dependencies"][extra]]
CONTRIBUTING = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_every_requirement_is_a_lower_bound_that_can_be_pinned():
    requirements = [*PROJECT["dependencies"], *EXTRAS]
    requirements += [each for each in PYPROJECT["dependency-groups"]["test"] if isinstance(each, str)]
    assert [each for each in requirements if not re.fullmatch(r"[\w-]+>=\d+(\.\d+)*", each)] == []
    assert [f"{name}>={version}" for name, version in oldest_of_all().items()] == requirements


def test_the_page_lists_the_lower_bounds():
    listed = dict(re.findall(r"^\| `([\w-]+)` \| ([\d.]+) \|", CONTRIBUTING, re.MULTILINE))
    assert listed == {name: version for name, version in oldest_of_all().items() if name in listed}
    assert set(oldest([*PROJECT["dependencies"], *EXTRAS])) < set(listed)


def test_the_page_lists_the_interpreters():
    tested = re.findall(r"^\| (3\.\d+)\.\d+ \|", CONTRIBUTING, re.MULTILINE)
    prefix = "Programming Language :: Python :: 3."
    assert [f"3.{each.removeprefix(prefix)}" for each in PROJECT["classifiers"] if each.startswith(prefix)] == tested
    assert PROJECT["requires-python"] == f">={tested[0]}"
