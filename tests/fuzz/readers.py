"""Damaged files of every kind that is read: answers, known labels, items, edges and features, in every format.

Each case writes good files, one of them damaged in one way, and reads them: as answers, by `fuse` or on the command
line. Other damage of JSON lines is in `fuzz.json_lines`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from click.testing import CliRunner

import consilience as cs
from consilience.cli.main import program
from fuzz.harness import Nonsense, Refused
from fuzz.text_files import (
    Columns,
    Rng,
    name_oddly,
    save,
    to_text,
    write_damaged_text,
    write_odd_text,
    write_packed_text,
    write_several,
)
from fuzz.typed_files import write_damaged_types, write_features, write_odd_types, write_typed


def prepare() -> None:
    """Compile and import: the first cases would take seconds."""
    table = {"item": [0, 0, 1, 1] * 2, "worker": [0, 1] * 4, "label": list("abbaabba")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cs.fuse(table, duplicates="first")
        cs.fuse(table, duplicates="first", graph={"source": [0], "target": [1]})
        places = {"sequence": table["item"], "position": range(8), "worker": table["worker"], "label": table["label"]}
        cs.fuse(places)


def run(rng: Rng, folder: Path) -> str:
    """Write files of which one is damaged, and read them."""
    tables = draw_tables(rng)
    damaged = ("answers", "answers", "answers", "gold", "items", "graph", "features")[rng.integers(7)]
    chosen = {"answers", damaged} | set(rng.choice(["gold", "items", "graph"], rng.integers(3)))
    if damaged == "features":
        chosen -= {"graph", "items"}
    if not tables["graph"]["source"]:
        chosen -= {"graph"}
    paths, words = {}, ""
    for name in sorted(chosen):
        way = WAYS[rng.integers(len(WAYS))] if name == damaged else keep
        if name == "features":
            paths[name], words = write_features(rng, folder)
            continue
        paths[name] = way(rng, dict(tables[name]), folder / name)
        words = way.__name__ if name == damaged else words
    use(rng, paths, folder)
    return f"{damaged}: {words}"


# ---------------------------------------------------------------------------------------------------------------- using


def use(rng: Rng, paths: dict[str, str], folder: Path) -> None:
    """Read the files in one of three ways."""
    weight = "weight" if rng.random() < 0.2 else None
    if "features" in paths or rng.random() < 0.25:
        run_command(rng, paths, folder, weight)
        return
    others = {name: paths[name] for name in ("gold", "graph") if name in paths}
    keywords = {
        "weight": weight,
        "items": paths.get("items"),
        "duplicates": str(rng.choice(["error", "first", "mean"])),
    }
    if not others and rng.random() < 0.6:
        responses = cs.read_answers(paths["answers"], **keywords)
        repr(responses)
        model = cs.MajorityVote().fit(responses)
    else:
        model = cs.fuse(paths["answers"], **others, **keywords, **({} if "graph" in others else {"max_iter": 5}))
        str(model.comparison_)
    posterior = model.posterior_
    if not (np.isfinite(posterior).all() and np.allclose(posterior.sum(axis=1), 1, atol=1e-6)):
        raise Nonsense(f"probabilities {posterior[:3].tolist()}")
    model.to_frame()
    model.worker_report()


def run_command(rng: Rng, paths: dict[str, str], folder: Path, weight: str | None) -> None:
    """Run the program in this process; raise `Refused` for bad input, and an error of no kind for a failure."""
    suffix = (".csv", ".tsv", ".jsonl", ".parquet", ".arrow")[rng.integers(5)]
    if rng.random() < 0.15 and "gold" in paths:
        arguments = ["evaluate", paths["answers"], paths["gold"]]
    else:
        options = {"--gold": "gold", "--items": "items", "--graph": "graph", "--knn": "features"}
        arguments = ["fuse", paths["answers"], "-o", str(folder / f"out{suffix}"), "--max-iter", "5"]
        arguments += [part for option, name in options.items() if name in paths for part in (option, paths[name])]
        arguments += [] if weight is None else ["--weight", weight]
        arguments += ["--k", "1"] if "features" in paths else []
    result = CliRunner().invoke(program, [*arguments, *(["--json"] if rng.random() < 0.3 else [])])
    lines = result.stderr.splitlines()
    if result.exit_code == 2 and lines:
        raise Refused(max(lines, key=len).removeprefix("Error: ").removeprefix("Warning: "))
    if result.exit_code != 0:
        raise RuntimeError(f"exit code {result.exit_code}: {result.stderr[-1500:]}") from result.exception


# --------------------------------------------------------------------------------------------------------------- tables


def draw_tables(rng: Rng) -> dict[str, Columns]:
    """Return tables of answers, known labels, items and edges that go together; positions have no edges."""
    n_rows = int(rng.choice([1, 2, 4, 10, 40]))
    labels = [("cat", "dog", "owl"), ("O", "B-X", "I-X"), ("1", "2", "3"), ("a,b", 'c"d', "e\nf")][rng.integers(4)]
    said = [labels[k] for k in rng.integers(len(labels), size=n_rows)]
    item = [i // 2 for i in range(n_rows)]
    paired = rng.random() < 0.25
    keys: Columns = {"sequence": [i // 4 for i in item], "position": item} if paired else {"item": item}
    answers = keys | {"worker": [f"w{i % 2}" for i in range(n_rows)], "label": said, "weight": [0.5] * n_rows}
    some = {name: values[::2] for name, values in keys.items()}
    ends = some.get("item", [])
    return {
        "answers": answers,
        "gold": some | {"label": said[::2]},
        "items": some,
        "graph": {"source": ends[:-1], "target": ends[1:], "weight": [1.5] * len(ends[1:])},
    }


def keep(rng: Rng, columns: Columns, path: Path) -> str:
    """Write a good file, in any format."""
    if rng.random() < 0.3 and all(columns.values()):
        return write_typed(rng, pa.table(columns), path)
    return save(path, ".csv", to_text(columns, ","))


def write_misnamed(rng: Rng, columns: Columns, path: Path) -> str:
    """Write a table under a suffix of another format."""
    suffixes = [".csv", ".tsv", ".jsonl", ".parquet", ".arrow", ".feather", ".ndjson", ".txt", "", ".npz", ".JSONL"]
    suffix = suffixes[rng.integers(len(suffixes))]
    if rng.random() < 0.6:
        return save(path, suffix, to_text(columns, (",", "\t", ";", "|")[rng.integers(4)]))
    written = Path(write_typed(rng, pa.table(columns), path))
    return str(written.rename(path.with_name(path.name + suffix)))


WAYS: list[Callable[[Rng, Columns, Path], str]] = [
    keep,
    *[write_odd_text] * 4,
    *[write_damaged_text] * 5,
    *[write_packed_text] * 2,
    write_misnamed,
    write_several,
    name_oddly,
    *[write_odd_types] * 4,
    *[write_damaged_types] * 3,
]
