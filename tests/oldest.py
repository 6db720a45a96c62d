"""Print the oldest versions that pyproject.toml allows, as constraints for pip (`make oldest`)."""

from __future__ import annotations

import tomllib
from pathlib import Path

PYPROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))


def oldest(requirements: list[str]) -> dict[str, str]:
    """Return the lower bound of each requirement such as "numpy>=2.0"; other requirements have none."""
    return dict(each.split(">=") for each in requirements if ">=" in each)


def oldest_of_all() -> dict[str, str]:
    """Return the lower bounds of all that is installed to run the package, with its extras, and the tests."""
    project, groups = PYPROJECT["project"], PYPROJECT["dependency-groups"]
    requirements = sum(project["optional-dependencies"].values(), project["dependencies"])
    return oldest([*requirements, *(each for each in groups["test"] if isinstance(each, str))])  # not included groups


if __name__ == "__main__":
    for name, version in oldest_of_all().items():
        print(f"{name}=={version}")
