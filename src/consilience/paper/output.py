"""What a run leaves: a table of records, a figure and a page of Markdown; and whether it is what was expected."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

from ..errors import InputError
from .experiment import FINDINGS, Experiment, Record

DIGITS = 5
PART = "*A part of the experiment: fewer runs and sizes, or not all of the data. Its means are not those of the whole.*"


def write(experiment: Experiment, records: list[Record], folder: Path, whole: bool = True) -> list[Path]:
    """Write NAME.csv, NAME.png and NAME.md, and return their paths; but nothing over a table with more records.

    Parameters
    ----------
    experiment, records
        What was run, and what it gave.
    folder : Path
        Where to write.
    whole : bool
        Whether these are all records of the experiment.
    """
    table, picture, page = (folder / f"{experiment.name}.{suffix}" for suffix in ("csv", "png", "md"))
    folder.mkdir(parents=True, exist_ok=True)
    if not whole and table.exists():
        lost = len(read_table(experiment, table).keys() - {_key_of(experiment, record) for record in records})
        if lost:
            raise InputError(
                f"{str(table)!r} has {lost:,} records that this part of the experiment has not. Choose another folder."
            )
    write_table(experiment, records, table)
    experiment.draw(records).savefig(picture)
    told, _, findings = experiment.tell(records).partition(FINDINGS)
    parts = [f"![{experiment.title}]({picture.name})", PART if not whole else "", told, findings if whole else ""]
    page.write_text("\n\n".join(part.strip() for part in parts if part.strip()) + "\n", "utf-8")
    return [table, picture, page]


def write_table(experiment: Experiment, records: list[Record], path: Path) -> None:
    """Write records as CSV."""
    part = path.with_suffix(f".{os.getpid()}.part")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*experiment.keys, *experiment.scores))
        for record in records:
            scores = (_to_text(record.get(name)) for name in experiment.scores)
            writer.writerow((*_key_of(experiment, record), *scores))
    part.replace(path)


def read_table(experiment: Experiment, path: Path) -> dict[tuple[str, ...], dict[str, float | None]]:
    """Return the scores in a CSV file by their keys."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return {
            tuple(row[key] for key in experiment.keys): {
                name: float(row[name]) if row[name] else None for name in experiment.scores
            }
            for row in rows
        }
    except OSError as error:
        raise InputError(f"There are no expected results {str(path)!r}. Run `consilience reproduce` first.") from error
    except (KeyError, ValueError, csv.Error) as error:
        raise InputError(f"{str(path)!r} is no table of {experiment.name}: {error}.") from error


def find_differences(experiment: Experiment, records: list[Record], folder: Path, whole: bool) -> list[str]:
    """Return what differs from the results in a folder by more than the tolerance, in words; one line each.

    Every record must be among those expected; of a `whole` run, every one expected must be there.
    """
    expected = read_table(experiment, folder / f"{experiment.name}.csv")
    lines = []
    if whole:
        keys = {_key_of(experiment, record) for record in records}
        lines = [f"{experiment.name}: {', '.join(key)}: missing" for key in expected if key not in keys]
    for record in records:
        key = _key_of(experiment, record)
        name = f"{experiment.name}: {', '.join(key)}"
        if key not in expected:
            lines.append(f"{name}: not expected")
            continue
        for score, wanted in expected[key].items():
            found = record.get(score)
            if (found is None) != (wanted is None):
                lines.append(f"{name}: {score} is {_to_text(found) or 'none'}, expected {_to_text(wanted) or 'none'}")
            elif found is not None and wanted is not None and abs(found - wanted) > experiment.tolerance:
                lines.append(f"{name}: {score} is {found:.4f}, expected {wanted:.4f} +- {experiment.tolerance:g}")
    return lines


def _key_of(experiment: Experiment, record: Record) -> tuple[str, ...]:
    values = (record.get(name) for name in experiment.keys)
    return tuple("" if value is None else str(value) for value in values)


def _to_text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.{DIGITS}f}" if isinstance(value, float) else str(value)
