"""Labels of answers on disk, written partition by partition, whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..data.frames import build_frame
from ..data.vocabulary import Values, to_column
from ..engines import open_engine
from ..errors import InputError, first_line
from ..formats.register import writable_formats
from ..formats.writing import check_writable, replace_file, write_table
from ..store.building import name_beside
from .base import Model, name_probabilities
from .stored import Judge, StoredFit

PART = "part-{:05d}.parquet"


def write_labels(model: Model, path: str, engine: Any) -> None:
    """Write the labels of a model to a folder of Parquet files, or to one file."""
    in_one = any(each.fits(path) for each in writable_formats())
    fit = model._stored
    if fit is not None:
        write_file(fit, path, engine) if in_one else write_folder(Path(path), partial(_write_parts, fit, engine))
        if isinstance(fit, StoredFit) and fit.problem.steps is not None:
            fit.problem.steps.clear()
        return
    table = pa.table(tabulate(model._keys, model.classes_, model._label_codes, model.posterior_))
    if in_one:
        write_table(table, path)
    else:
        write_folder(Path(path), lambda folder: parquet().write_table(table, folder / PART.format(0)))


def write_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Write files into a folder, which takes its place when all are there."""
    check_folder(folder)
    work, old = name_beside(folder, "writing"), name_beside(folder, "old")
    try:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        write(work)
        if folder.exists():
            folder.rename(old)
            work.rename(folder)
            shutil.rmtree(old)
        else:
            work.rename(folder)
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{str(folder)!r} cannot be written: {first_line(error)}.", "Free some space or write elsewhere."
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def check_folder(folder: Path) -> None:
    """Raise an error for a folder that holds something else than labels, or that cannot be made."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{str(folder)!r} is a file.", "Name a folder, or a file such as labels.parquet.")
    if folder.is_dir():
        others = sorted(path.name for path in folder.iterdir() if not path.match("part-*.parquet"))
        if others:
            raise InputError(
                f"The folder {str(folder)!r} holds other files, such as {others[0]!r}.", "Name a new folder."
            )
    else:
        check_writable(folder.with_name(f"{folder.name}.parquet"))


def write_file(fit: StoredFit, path: str, engine: Any) -> None:
    """Write one file, partition by partition."""
    if not path.lower().endswith(".parquet"):
        tables = list(_tables(fit, engine))
        write_table(pa.concat_tables(tables), path)
        return
    with replace_file(path) as temporary:
        writer = None
        for table in _tables(fit, engine):
            writer = writer or parquet().ParquetWriter(temporary, table.schema, compression="zstd")
            writer.write_table(table)
        assert writer is not None
        writer.close()


def _tables(fit: StoredFit, engine: Any) -> Any:
    with open_engine(engine) as opened:
        placed = opened.place(list(fit.answers.filled()))
        yield from opened.map(make_table, placed, fit.lean(), fit.judge)


def _write_parts(fit: StoredFit, engine: Any, folder: Path) -> None:
    with open_engine(engine) as opened:
        placed = opened.place(list(fit.answers.filled()))
        for _ in opened.map(write_part, placed, fit.lean(), fit.judge, str(folder)):
            pass


def parquet() -> Any:
    """Return Arrow's module of Parquet, which takes a while to load."""
    from pyarrow import parquet

    return parquet


def write_part(number: int, fit: StoredFit, judge: Judge, folder: str) -> int:
    """Write the labels of a partition; return how many there are."""
    table = make_table(number, fit, judge)
    parquet().write_table(table, os.path.join(folder, PART.format(number)), compression="zstd")
    return int(table.num_rows)


def make_table(number: int, fit: StoredFit, judge: Judge) -> pa.Table:
    """Return the labels of a partition, with the columns of `to_frame`."""
    labels, reported = [], []
    for block in fit.answers.blocks(number):
        _, codes, probabilities = judge.judge(fit.open(block))
        labels.append(codes)
        reported.append(probabilities)
    codes, probabilities = np.concatenate(labels), np.concatenate(reported)
    return build_frame(tabulate(fit.answers.keys(number), fit.answers.classes, codes, probabilities), "pyarrow")


def tabulate(keys: dict[str, Any], classes: Values, codes: Any, probabilities: Any) -> dict[str, Any]:
    """Return the columns of `to_frame`."""
    columns = {name: to_column(column) for name, column in keys.items()}
    columns["label"] = to_column(classes[codes])
    columns["confidence"] = to_column(probabilities[np.arange(len(codes)), codes])
    for k, name in enumerate(name_probabilities(classes, columns)):
        columns[name] = to_column(np.ascontiguousarray(probabilities[:, k]))
    return columns
