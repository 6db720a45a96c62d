"""What a run leaves behind: a table of records, a figure and a page; and the comparison with expected results.

Figure and page are made from the table as it stands in the file, with its rounded numbers. So a page can be made again
from its table alone, and a test compares the two.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

from consilience.errors import InputError, plural

from .experiment import Experiment, Record

DIGITS = 6
PART = "*A part of the experiment: fewer runs, sizes or datasets. Its means differ from those of the whole.*"


def write(experiment: Experiment, records: list[Record], folder: Path, whole: bool = True) -> list[Path]:
    """Write NAME.csv, NAME.png and NAME.md, and return their paths. A part never replaces a table with more records.

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
        known = {_key_of(experiment, record) for record in read_table(experiment, table)}
        lost = len(known - {_key_of(experiment, record) for record in records})
        if lost:
            raise InputError(
                f"{str(table)!r} has {plural(lost, 'record')} that this part of the experiment would delete.",
                "Choose another folder with --output.",
            )
    write_table(experiment, records, table)
    stored = read_table(experiment, table)
    experiment.draw(stored).savefig(picture)
    page.write_text(make_page(experiment, stored, whole), "utf-8")
    return [table, picture, page]


def make_page(experiment: Experiment, records: list[Record], whole: bool = True) -> str:
    """Return the page of an experiment. Findings are told of whole runs only."""
    parts = [
        f"![{experiment.title}]({experiment.name}.png)",
        "" if whole else PART,
        experiment.tell(records),
        experiment.tell_findings(records) if whole else "",
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


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


def read_table(experiment: Experiment, path: Path) -> list[Record]:
    """Return the records in a CSV file."""
    types = {**experiment.keys, **dict.fromkeys(experiment.scores, float)}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [
                {name: kind(row[name]) if row[name] else None for name, kind in types.items()}
                for row in csv.DictReader(file)
            ]
    except OSError as error:
        raise InputError(
            f"There is no table {str(path)!r}.", f"`make paper ARGS={experiment.name}` writes one."
        ) from error
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise InputError(f"{str(path)!r} is not a table of {experiment.name}: {error}.") from error


def find_differences(experiment: Experiment, records: list[Record], folder: Path, whole: bool) -> list[str]:
    """Return in words what differs from the results in a folder by more than the tolerance, one line each.

    Every record must be among those expected. In a whole run, every record expected must be there.
    """
    expected = {
        _key_of(experiment, record): record for record in read_table(experiment, folder / f"{experiment.name}.csv")
    }
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
        for score in experiment.scores:
            found, wanted = record.get(score), expected[key][score]
            if (found is None) != (wanted is None):
                lines.append(f"{name}: {score} is {_to_text(found) or 'none'}, expected {_to_text(wanted) or 'none'}")
            elif found is not None and abs(found - wanted) > experiment.tolerance:
                lines.append(f"{name}: {score} is {found:.4f}, expected {wanted:.4f} +- {experiment.tolerance:g}")
    return lines


def _key_of(experiment: Experiment, record: Record) -> tuple[str, ...]:
    values = (record.get(name) for name in experiment.keys)
    return tuple("" if value is None else str(value) for value in values)


def _to_text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.{DIGITS}f}" if isinstance(value, float) else str(value)
