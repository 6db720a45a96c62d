"""Records of jobs, kept under a hash of everything they depend on.

The hash covers the name and settings of the job's function, the files of its datasets, the versions of the numeric
packages, and code: the library, the job's own module, and the modules of this folder that it imports. Comments and
docstrings do not count, nor does what only shows results: the library's command line and reports, the modules that make
figures and Markdown, and the functions ``draw_...`` and ``tell_...`` of the experiments.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import os
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

import consilience
from benchmarks.real_crowds import find_folder

from .experiment import Job, Record

LIBRARY = Path(consilience.__file__).parent
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "nltk")
# What only shows results: parts of the library, and modules of this folder.
SHOWS = ("cli", "documents")
SHOWS_HERE = ("drawing", "markdown")


def cache_folder() -> Path:
    """Return where records are kept: below `$XDG_CACHE_HOME`, or below .cache in the home folder."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "consilience" / "paper"


class Cache:
    """Records of jobs, one JSON file each. Without a folder they are kept as long as the object lives."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._here: dict[str, list[Record]] = {}

    def get(self, job: Job) -> list[Record] | None:
        """Return what the job gave before, None if that is not known."""
        key = key_of(job)
        if self._folder is None or key in self._here:
            return self._here.get(key)
        try:
            records: list[Record] = json.loads(self._path(key).read_text("utf-8"))["records"]
        except (OSError, ValueError, KeyError, TypeError):
            return None  # never run, or the file is damaged
        return records

    def put(self, job: Job, records: list[Record]) -> None:
        """Keep what a job gave."""
        key = key_of(job)
        self._here[key] = records
        if self._folder is None:
            return
        path = self._path(key)
        with suppress(OSError):  # a full disk, or a folder we may not write to: the run goes on without the file
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps({"job": str(job), "records": records}), "utf-8")
            part.replace(path)

    def _path(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{key}.json"


def key_of(job: Job) -> str:
    """Return the hash of everything that the records of a job depend on."""
    inputs = [
        f"{job.run.__module__}.{job.run.__qualname__}",
        json.dumps(job.settings, sort_keys=True),
        *(f"{name} {digest_of_data(name)}" for name in sorted(job.data)),
        digest_of_versions(),
        digest_of_library(LIBRARY),
        *(digest_of_module(path, without_shows=True) for path in find_modules(Path(inspect.getfile(job.run)))),
    ]
    return hashlib.sha256("\n".join(inputs).encode()).hexdigest()[:32]


@cache
def digest_of_versions() -> str:
    """Return the versions of Python and of the numeric packages."""
    return " ".join([sys.version.split()[0], *(f"{name} {version(name)}" for name in PACKAGES)])


@cache
def digest_of_data(name: str) -> str:
    """Return a hash of all files of a dataset."""
    digest = hashlib.sha256()
    for path in sorted(path for path in find_folder(name).iterdir() if path.is_file()):
        digest.update(path.name.encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


@cache
def digest_of_library(package: Path) -> str:
    """Return a hash of the library's code, without what only shows results."""
    places = sorted(path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in SHOWS)
    return hashlib.sha256("\n".join(map(digest_of_module, places)).encode()).hexdigest()


@cache
def find_modules(path: Path) -> list[Path]:
    """Return a module and the modules beside it that it imports, directly or not, without those that only show.

    >>> [found.name for found in find_modules(Path(__file__).with_name("network_curves.py"))]
    ['experiment.py', 'methods.py', 'network_curves.py']
    """
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        here = waiting.pop()
        if here in found or here.stem in SHOWS_HERE:
            continue
        found.add(here)
        for node in ast.walk(ast.parse(here.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                names = [node.module] if node.module else [alias.name for alias in node.names]
                waiting += [here.with_name(f"{name}.py") for name in names]
    return sorted(found)


@cache
def digest_of_module(path: Path, without_shows: bool = False) -> str:
    """Return a hash of the code of one file."""
    code = bare_code(path.read_text("utf-8"), without_shows)
    return hashlib.sha256(f"{path.name}\n{code}".encode()).hexdigest()


def bare_code(source: str, without_shows: bool = False) -> str:
    r"""Return code without comments and docstrings, and if asked for without functions that only show results.

    >>> bare_code('"Docs."\nx = 1  # one') == bare_code("x = 1")
    True
    >>> bare_code("x = 1\ndef tell_it():\n    pass", without_shows=True) == bare_code("x = 1")
    True
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [each for each in body if not _is_left_out(each, without_shows)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_left_out(node: ast.stmt, without_shows: bool) -> bool:
    """Tell whether a statement is a docstring, or a function that only shows results."""
    if isinstance(node, ast.FunctionDef):
        return without_shows and node.name.lstrip("_").startswith(("draw_", "tell_"))
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
