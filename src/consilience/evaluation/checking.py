"""`check`: what a file or table holds, what can be computed from it, and what to do next. Nothing is fitted."""

from __future__ import annotations

import contextlib
import os
import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, count
from typing import Any

import numpy as np

from ..answers.answers import Answers
from ..answers.classes import are_measured, to_numbers
from ..answers.columns import (
    encode_in_order_of_appearance,
    find_missing,
    find_present,
    name_composite,
    number_groups,
    plain_labels,
)
from ..answers.previews import to_word
from ..answers.tables import Table, open_frame
from ..documents.document import Column, Document, Fact, Facts, to_name
from ..documents.document import Table as Rows
from ..documents.html import to_cells
from ..documents.terminal import to_lines, to_record
from ..errors import (
    InputError,
    LabelWarning,
    ManyQuestionsError,
    Message,
    ParameterError,
    Python,
    Sentence,
    quietly,
    spell_in_python,
)
from ..estimation.population import PROBABILITY, find_given
from ..formats.sources import open_table
from ..kinds import find_kind, need_kind
from ..kinds.base import AnyKind
from ..models.opening import choose_kind, open_answers
from ..options import find_option

# So many columns are tried as those of the items.
MOST_TRIED = 10
# A column with at most so many different values may name groups; so many examples of values are shown.
FEW_VALUES, N_EXAMPLES = 20, 3
# So many items without a second answer are told of, as a share; fewer answers than these tell little.
MOST_ALONE, LEAST_ANSWERS = 0.5, 100
# What may be needed to read answers that cannot be read as they are, in the order in which it is tried.
MISSING, REPEATED, ROUNDED = {"drop_missing": True}, {"duplicates": "last"}, {"rescale": True}
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
        command = name_command("rank", path, f"-o {find_free('ranking.csv')}")
        possible = ["A ranking of the candidates with intervals, and how far each judge can be trusted."]
        return Check(name, "comparisons of two candidates", {"answers": table.n_rows}, columns, possible, [], [command])

    refused: Message | None = None
    for way in WAYS:
        try:
            opened, said = read(source, path, way)
            break
        except ManyQuestionsError as error:
            columns = [] if table is None else list_columns(table, dict.fromkeys(error.questions, "question"))
            possible = ["For each question one label for each item, and how reliable each worker is over all of them."]
            command = name_command("fuse", path, f"-o {find_free('labels.csv')} --save {find_free('crowd.model')}")
            counts = {} if table is None else {"rows": table.n_rows}
            return Check(name, "answers to several questions", counts, columns, possible, [], [command])
        except (InputError, ParameterError) as error:
            refused = error if refused is None else refused
    else:
        assert refused is not None
        if table is None:
            raise refused
        named = find_items(source, path, table)
        if named is None:
            return check_labels(name, path, table, refused)
        way, opened, said = named
    told = [say(refused, path)] if way and refused is not None else []
    if table is not None and isinstance(opened, Answers) and not opened.format:
        better = split_items(source, path, table, opened, way) or separate_tags(source, path, opened, way)
        if better is not None:
            told, way, opened, said = better
    return check_answers(name, path, table, opened, way, [*told, *said])


def read(source: Any, path: str | None, way: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Answers, read in some way, and the warnings that this gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        opened = open_answers(source, **way)
        choose_kind_of(opened).to_answers(opened)
    heard = [each for each in caught if not has_numbers(opened) or not issubclass(each.category, LabelWarning)]
    return opened, [say(each.message, path) for each in heard]


def has_numbers(opened: Any) -> bool:
    """Whether answers are fused as numbers, if nobody says it."""
    return isinstance(opened, Answers) and are_measured(opened)


def choose_kind_of(opened: Any) -> type[AnyKind]:
    """What answers are fused as, if nobody says it."""
    with quietly():
        return choose_kind(need_kind(opened), opened, "auto")


def find_items(source: Any, path: str | None, table: Table) -> tuple[dict[str, Any], Any, list[str]] | None:
    """How to read answers whose items are in a column without a usual name."""
    usual = {table.find(role) for role in ("worker", "label")}
    if None in usual or table.find("item") is not None:
        return None
    for column in [each for each in table.names if each not in usual][:MOST_TRIED]:
        for more in ({}, MISSING):
            way = {"item": column, **more}
            with contextlib.suppress(InputError, ParameterError):
                opened, said = read(source, path, way)
                if isinstance(opened, Answers) and opened.n_workers > 1 and share_alone(opened) <= MOST_ALONE:
                    return way, opened, said
    return None


def split_items(
    source: Any, path: str | None, table: Table, answers: Answers, way: Mapping[str, Any]
) -> tuple[list[str], dict[str, Any], Any, list[str]] | None:
    """How to read answers with the further columns that tell their items apart, if workers else answer some twice."""
    if "duplicates" not in way or not {"item", "worker"} <= answers.columns.keys():
        return None
    own = list_parts(answers)
    others = [each for each in table.names if each not in (*answers.columns.values(), *own) and "," not in each]
    others = [each for each in others if table.lists(each) is None][:MOST_TRIED]
    for n_more in (1, 2):
        for more in combinations(others, n_more):
            parts, rest = [*own, *more], {key: value for key, value in way.items() if key != "duplicates"}
            with contextlib.suppress(InputError, ParameterError):
                opened, said = read(source, path, {"item": parts, **rest})
                if share_alone(opened) <= MOST_ALONE:
                    named = say(Sentence("{item}", item=",".join(parts) if path is not None else parts), path)
                    told = f"Workers answer one {own[0]} several times, once for each {' and '.join(more)}: {named}."
                    return [told], {"item": parts, **rest}, opened, said
    return None


def separate_tags(
    source: Any, path: str | None, answers: Answers, way: Mapping[str, Any]
) -> tuple[list[str], dict[str, Any], Any, list[str]] | None:
    """How to read labels that are sets of tags, where an empty cell is an empty set."""
    sign = find_sign(answers)
    if "drop_missing" not in way or sign is None:
        return None
    way = {key: value for key, value in way.items() if key != "drop_missing"} | {"separator": sign}
    with contextlib.suppress(InputError, ParameterError):
        opened, said = read(source, path, way)
        text = (
            "Labels are read as sets of tags, of which some are empty: say what stands between tags with {separator}."
        )
        return [say(Sentence(text, separator=sign), path)], way, opened, said
    return None


def find_sign(answers: Answers) -> str | None:
    """What seems to stand between tags in labels."""
    texts = [str(each) for each in answers.labels.tolist()]
    return next((sign for sign in SIGNS if np.mean([sign in text for text in texts]) > OFTEN), None)


def share_alone(answers: Answers) -> float:
    """The share of items with fewer than two answers."""
    each = np.diff(answers.offsets)
    return float(np.mean(each < 2)) if len(each) else 1.0


def find_free(name: str) -> str:
    """A name of a file that does not exist.

    >>> find_free("no such file.csv")
    'no such file.csv'
    """
    stem, end = os.path.splitext(name)
    names = chain([name], (f"{stem}-{n}{end}" for n in count(2)))
    return next(each for each in names if not os.path.exists(each))


def check_answers(
    name: str, path: str | None, table: Table | None, opened: Any, way: Mapping[str, Any], said: list[str]
) -> Check:
    """What is said of answers that can be fused, if they are read in this way."""
    kind, answers = choose_kind_of(opened).to_answers(opened)
    is_table, measured = isinstance(opened, Answers), has_numbers(opened)
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

    alone = share_alone(answers)
    possible, missing = list[str](), list(said)
    if answers.n_workers > 1 and alone < 1 and measured:
        possible.append("One value for each item, with an interval, and how biased and precise each worker is.")
    elif answers.n_workers > 1 and alone < 1:
        possible.append(f"One {kind.judged} for each {kind.item}, with a probability, and how reliable each worker is.")
    if alone > MOST_ALONE:
        missing.append(
            f"{alone:.0%} of the {kind.item}s have fewer than two answers, so little checks them: collect more."
        )
    if n_answers < LEAST_ANSWERS:
        missing.append(f"More answers: with {n_answers:,} probabilities are uncertain.")
    if answers.is_ordered:
        possible.append("Medians and means of levels, and who is harsh or lenient.")
    elif is_table and not measured and (numbers := to_numbers(answers.labels)) is not None and len(numbers) > 2:
        levels = Sentence(
            "Labels are numbers: if they are levels from low to high, say so with {ordered}.", ordered=True
        )
        missing.append(say(levels, path))
    if measured:
        missing.append("Known values of some items: with them biases are relative to the truth.")
    elif answers.gold or "gold" in answers.columns:
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
        sign = find_sign(answers)
        if sign is not None:
            text = "Labels may be sets of tags: say what stands between these, with {separator}."
            missing.append(say(Sentence(text, separator=sign), path))

    if path is None:
        given = "".join(f", {key}={value!r}" for key, value in way.items())
        return Check(name, kind.title, counts, columns, possible, missing, [f"fused = consilience.fuse(table{given})"])
    flags = []
    for key, value in way.items():
        text = ",".join(value) if isinstance(value, list) else str(value)
        flags.append(f"--{key.replace('_', '-')}" + ("" if value is True else f" {shlex.quote(text)}"))
    target, model, known = map(find_free, ("labels.csv", "crowd.model", "known.csv"))
    commands = [" ".join(["consilience fuse", shlex.quote(path), *flags, f"-o {target} --save {model}"])]
    if measured:
        commands.append(f"consilience next {model} -o {find_free('next.csv')}")
    elif answers.sequences is None or kind.list_parts() is not None:
        commands.append(f"consilience next {model} --known 100 -o {known}")
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
    missing = [say(refused, path)]
    if path is not None:
        missing.append(f"Columns are named where answers are fused: consilience fuse {shlex.quote(path)} ...")
    return Check(name, "a table that is not recognised", {"rows": table.n_rows}, columns, [], missing)


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
        column = plain_labels(column) if roles.get(name) == "label" else column
        values = encode_in_order_of_appearance(column.take(find_present(column)))[1]
        shown = [to_word(each) for each in values[:N_EXAMPLES].tolist()]
        row: dict[str, Any] = {"name": name, "role": roles.get(name, ""), "values": len(values)}
        rows.append(row | {"missing": len(find_missing(column)), "examples": ", ".join(shown)})
    return rows
