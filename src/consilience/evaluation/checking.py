"""`check`: what a file or table holds, what can be computed from it, and what to do next. Nothing is fitted."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..answers.answers import Answers
from ..answers.classes import to_numbers
from ..answers.columns import encode_in_order_of_appearance, find_missing, find_present, name_composite, number_groups
from ..answers.previews import to_word
from ..answers.tables import Table, open_frame
from ..documents.document import Column, Document, Fact, Facts, to_name
from ..documents.document import Table as Rows
from ..documents.html import to_cells
from ..documents.terminal import to_lines, to_record
from ..errors import InputError, ManyQuestionsError, Message, ParameterError, Python, Sentence, spell_in_python
from ..estimation.population import PROBABILITY, find_given
from ..formats.sources import open_table
from ..kinds import find_kind, need_kind
from ..models.opening import open_answers
from ..options import find_option

# A column with at most so many different values may name groups; so many examples of values are shown.
FEW_VALUES, N_EXAMPLES = 20, 3
# So many items without a second answer are told of, as a share; fewer answers than these tell little.
MOST_ALONE, LEAST_ANSWERS = 0.5, 100
# What may be needed to read answers that cannot be read as they are, in the order in which it is tried.
MISSING, REPEATED, ROUNDED = {"drop_missing": True}, {"duplicates": "first"}, {"rescale": True}
WAYS: tuple[dict[str, Any], ...] = ({}, MISSING, REPEATED, MISSING | REPEATED, ROUNDED, MISSING | ROUNDED)
# What may stand between tags, and in how many of the labels it must.
SIGNS, OFTEN = ";|,", 0.2


@dataclass(frozen=True)
class Check:
    """What a source holds.

    Attributes
    ----------
    name : str
        What was looked at.
    kind : str
        What it holds, in words.
    counts : dict
        How many items, workers and answers there are, and of answers per item the least, the median and the most.
    columns : list of dict
        For each column its name, its `role` or "", how many `values` it has, how many are `missing`, and `examples`.
    possible, missing : list of str
        What can be computed, and what is missing for more.
    commands : list of str
        What to do next: commands of a shell for files, code for tables.
    """

    name: str
    kind: str
    counts: Mapping[str, Any] = field(default_factory=dict)
    columns: Sequence[Mapping[str, Any]] = ()
    possible: Sequence[str] = ()
    missing: Sequence[str] = ()
    commands: Sequence[str] = ()

    def describe(self) -> Document:
        """The same as a document."""
        names = {"items": "Items", "workers": "Workers", "answers": "Answers", "labels": "Labels"}
        facts = [Fact("kind", "Holds", self.kind)]
        facts += [Fact(key, names.get(key, ""), value, format="count") for key, value in self.counts.items()]
        if "most" in self.counts:
            least, middle, most = (self.counts[key] for key in ("least", "median", "most"))
            text = f"{least:,}" if least == most else f"{least:,} to {most:,}, median {middle:,}"
            facts.append(Fact("", "Answers per item", None, text))
        heads = [Column("name", "column"), Column("role", "seems to be"), Column("values", "values", "count")]
        heads += [Column("missing", "missing", "count"), Column("examples", "such as")]
        rows = [{**row, "name": to_name(row["name"])} for row in self.columns]
        parts: list[Any] = [Facts(facts), Rows("columns", "", heads, rows, data=self.columns)]
        lists = {"possible": self.possible, "missing_for_more": self.missing, "next": self.commands}
        parts.append(Facts([Fact(key, "", list(lines)) for key, lines in lists.items()]))
        titles = ("Can be computed", "Missing for more", "To type next")
        for title, lines in zip(titles, lists.values(), strict=True):
            if lines:
                parts.append(Facts([Fact("", " " if n else title, line) for n, line in enumerate(lines)]))
        return Document(self.name, "", parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain numbers, lists and dicts."""
        return to_record(self.describe().parts)

    def __repr__(self) -> str:
        return to_lines(self.describe(), 100).replace("\x1b[1m", "").replace("\x1b[0m", "")

    def _repr_html_(self) -> str:
        return to_cells(self.describe())


def check(source: Any) -> Check:
    """Say what a file or a table holds, what can be computed from it, and what to do next. Nothing is fitted.

    Parameters
    ----------
    source : table, path or what `consilience.fuse` takes
        What to look at.

    Returns
    -------
    Check
        It prints as text.

    Examples
    --------
    >>> import consilience as cs
    >>> found = cs.check({"task": [1, 1, 2], "rater": ["ann", "bo", "ann"], "verdict": ["ok", "bad", "ok"]})
    >>> found.kind, found.counts["items"]
    ('answers about whole items', 2)
    """
    path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
    name = "The table" if path is None else path
    table = None
    if find_kind(source) is None:
        try:
            table = open_frame(source) if path is None else open_table(path)[0]
        except InputError:
            if path is None:
                raise
    roles = (
        {} if table is None else {role: found for role in ("left", "right", "winner") if (found := table.find(role))}
    )
    if table is not None and len(roles) == 3:
        columns = list_columns(table, {found: role for role, found in roles.items()})
        command = name_command("rank", path, "-o ranking.csv")
        possible = ["A ranking of the candidates with intervals, and how far each judge can be trusted."]
        return Check(name, "comparisons of two candidates", {"answers": table.n_rows}, columns, possible, [], [command])

    said, refused, way = list[str](), None, dict[str, Any]()
    opened: Any = None
    for way in WAYS:
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                opened = open_answers(source, **way)
                need_kind(opened).to_answers(opened)
            said = [say(each.message, path) for each in caught]
            break
        except ManyQuestionsError as error:
            columns = [] if table is None else list_columns(table, dict.fromkeys(error.questions, "question"))
            possible = ["For each question one label for each item, and how reliable each worker is over all of them."]
            command = name_command("fuse", path, "-o labels.csv --save crowd.model")
            counts = {} if table is None else {"rows": table.n_rows}
            return Check(name, "answers to several questions", counts, columns, possible, [], [command])
        except (InputError, ParameterError) as error:
            refused = error if refused is None else refused
    if opened is None:
        assert refused is not None
        if table is None:
            raise refused
        return check_labels(name, path, table, refused)
    return check_answers(name, path, table, opened, way, [*([say(refused, path)] if way else []), *said])


def check_answers(
    name: str, path: str | None, table: Table | None, opened: Any, way: Mapping[str, Any], said: list[str]
) -> Check:
    """What is said of answers that can be fused, if they are read in this way."""
    kind, answers = need_kind(opened).to_answers(opened)
    is_table = isinstance(opened, Answers)
    n_items, n_answers = kind.size(answers)
    each = np.diff(answers.offsets)
    counts: dict[str, Any] = {"items": n_items, "workers": answers.n_workers, "answers": n_answers}
    counts |= {"labels": answers.n_labels} if is_table else {}
    if len(each):
        least, median, most = (int(np.quantile(each, share, method="nearest")) for share in (0, 0.5, 1))
        counts |= {"least": least, "median": median, "most": most}
    roles = {column: "known labels" if role == "gold" else role for role, column in answers.columns.items()}
    for role in ("item", "sequence"):  # several columns may name an item together
        roles |= {
            part: role for part in answers.columns.get(role, "").split("|") if "|" in answers.columns.get(role, "")
        }
    columns = [] if table is None else list_columns(table, roles)

    alone = float(np.mean(each < 2)) if len(each) else 1.0
    possible, missing = list[str](), list(said)
    if answers.n_workers > 1 and alone < 1:
        possible.append(f"One {kind.judged} for each {kind.item}, with a probability, and how reliable each worker is.")
    if alone > MOST_ALONE:
        missing.append(
            f"{alone:.0%} of the {kind.item}s have fewer than two answers, so little checks them: collect more."
        )
    if n_answers < LEAST_ANSWERS:
        missing.append(f"More answers: with {n_answers:,} probabilities are uncertain.")
    if answers.is_ordered:
        possible.append("Medians and means of levels, and who is harsh or lenient.")
    elif is_table and (numbers := to_numbers(answers.labels)) is not None and len(numbers) > 2:
        levels = Sentence(
            "Labels are numbers: if they are levels from low to high, say so with {ordered}.", ordered=True
        )
        missing.append(say(levels, path))
    if answers.gold or "gold" in answers.columns:
        possible.append("Shares of classes with intervals that hold, by the known labels beside the answers.")
    else:
        missing.append(
            "Known labels of about 100 items drawn at random: with them shares, accuracies and intervals hold."
        )
    others = [row for row in columns if not row["role"]]
    groups = [row["name"] for row in others if 1 < row["values"] <= FEW_VALUES]
    is_plain = is_table and not answers.format and path is not None
    if table is not None and is_plain and "item" in answers.columns:
        item = number_groups([table.read(each) for each in list_parts(answers)])
        n_items = len(np.unique(item))  # where a group belongs to the item, naming both splits none
        groups = [each for each in groups if len(np.unique(number_groups([item, table.read(each)]))) == n_items]
    if groups and is_plain and "item" in answers.columns:
        joined = shlex.quote(",".join([*list_parts(answers), groups[0]]))
        possible.append(f"Shares by group, if it is named with the item: --item {joined}.")
    if is_table:
        texts = [str(each) for each in answers.labels.tolist()]
        signs = [sign for sign in SIGNS if np.mean([sign in text for text in texts]) > OFTEN]
        if signs:
            text = "Labels may be sets of tags: say what stands between these, with {separator}."
            missing.append(say(Sentence(text, separator=signs[0]), path))

    flags = [f"--{key.replace('_', '-')}" + ("" if value is True else f" {value}") for key, value in way.items()]
    if path is None:
        given = "".join(f", {key}={value!r}" for key, value in way.items())
        return Check(name, kind.title, counts, columns, possible, missing, [f"fused = consilience.fuse(table{given})"])
    quoted = shlex.quote(path)
    target = "fused.csv" if os.path.basename(path) == "labels.csv" else "labels.csv"
    commands = [" ".join(["consilience fuse", quoted, *flags, f"-o {target} --save crowd.model"])]
    if answers.sequences is None or kind.list_parts() is not None:
        commands.append("consilience next crowd.model --known 100 -o known.csv")
    return Check(name, kind.title, counts, columns, possible, missing, commands)


def check_labels(name: str, path: str | None, table: Table, refused: Message) -> Check:
    """What is said of a table that holds no answers of workers: labels, known ones, or something else."""
    key, label = table.find("item") or table.find("sequence"), table.find("label")
    has_probabilities = any(PROBABILITY.fullmatch(str(each)) for each in table.names)
    roles = {key: "item"} if key is not None else {}
    roles |= {label: "label"} if label is not None else {}
    roles |= {each: "probability" for each in table.names if PROBABILITY.fullmatch(str(each))}
    columns = list_columns(table, roles)
    if table.find_usual("worker") is None and key is not None and (label is not None or has_probabilities):
        kind = "labels of items, with probabilities" if has_probabilities else "one label for each item"
        possible = ["Shares of classes with intervals, with some known labels.", "A comparison with known labels."]
        quoted = "labels" if path is None else shlex.quote(path)
        commands = [f"consilience estimate {quoted} known.csv", f"consilience evaluate {quoted} known.csv"]
        if path is None:
            commands = ["consilience.estimate(table, known)", "consilience.evaluate(table, known)"]
        missing = ["A column of workers: to fuse answers, each row must say whose it is."]
        given = find_given(table)
        if given is not None and given.any():
            model = "MODEL" if path is not None else "model"
            commands[0] = "consilience estimate MODEL known.csv" if path is not None else "model.estimate(known)"
            missing.append(
                f"{model}: the labels were fused with known ones, so only their model tells how many there are."
            )
        if path is not None:
            missing.append("known.csv: a table with the items and their known labels, for both commands.")
        return Check(name, kind, {"items": table.n_rows}, columns, possible, missing, commands)
    return Check(name, "a table that is not recognised", {"rows": table.n_rows}, columns, [], [say(refused, path)])


def list_parts(answers: Answers) -> list[str]:
    """The columns that say which item an answer is about."""
    return name_composite(answers.columns) or [answers.columns["item"]]


def name_command(command: str, path: str | None, more: str) -> str:
    """What to type next: at a shell, or in Python."""
    return f"consilience.{command}(table)" if path is None else f"consilience {command} {shlex.quote(path)} {more}"


def say(message: object, path: str | None) -> str:
    """A message with parameters as they are typed: of a file at a shell, of a table in Python."""

    def spell(name: str, value: object) -> str:
        option = find_option(name)
        value = value.value if isinstance(value, Python) else value
        flag = (
            option.flags[-1].partition("/")[0] if option is not None and option.flags else f"--{name.replace('_', '-')}"
        )
        return flag if value is None or value is True else f"{flag} {shlex.quote(str(value))}"

    is_spelled = isinstance(message, (Message, Sentence))
    return str(message.say(spell_in_python if path is None else spell) if is_spelled else message)  # type: ignore[attr-defined]


def list_columns(table: Table, roles: Mapping[str, str]) -> list[dict[str, Any]]:
    """What each column seems to be."""
    rows = []
    for name in table.names:
        nothing = {"values": None, "missing": None, "examples": ""}
        if table.lists(name) is not None:
            rows.append({"name": name, "role": roles.get(name, "lists"), **nothing})
            continue
        try:
            column = table.read(name)
        except InputError:  # objects in it: a column without a role, which no answer needs
            rows.append({"name": name, "role": "not read", **nothing})
            continue
        values = encode_in_order_of_appearance(column.take(find_present(column)))[1]
        shown = [to_word(each) for each in values[:N_EXAMPLES].tolist()]
        row: dict[str, Any] = {"name": name, "role": roles.get(name, ""), "values": len(values)}
        rows.append(row | {"missing": len(find_missing(column)), "examples": ", ".join(shown)})
    return rows
