"""What the sections of a page share: a result, what its items, workers and labels are called, and what items look like.

What items look like is given for each as text. A text that ends like the name of a picture, and is the path of a file,
is taken for that picture, which is made small and put into the page. Pictures are opened only for items that are shown.
"""

from __future__ import annotations

import base64
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import Column, Values, distinct_names, find_missing, spell_surrogates, to_column, to_values
from ..answers.item_tables import key_names, open_item_table
from ..answers.tables import open_series
from ..engines import open_engine
from ..errors import InputError, Sentence, listing
from ..formats.arrays import shrink_picture
from ..formats.reading import open_path
from ..inference import Cells
from ..inference.powers import raise_to
from ..inference.sources import Source
from ..inference.votes import collect_votes, find_tied
from ..kernels import Floats
from ..results.findings import Finding
from ..results.result import Result
from ..results.worker_report import count_answers
from .document import Content, to_name

# The same of a word that is named beside its place in a sequence.
LONGEST_WORD = 30
# The most characters of a text that are shown, and the longer side of a picture.
LONGEST_TEXT, SIDE = 700, 240
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
# What may be a link.
_ADDRESS = re.compile(r"https?://[^\s\\<>\"'`{}|^]{1,2000}", re.IGNORECASE)


class Command(NamedTuple):
    """The command of `consilience` that fused the answers, as it was typed.

    Attributes
    ----------
    before, after : sequence of str
        What stands before and after the known labels.
    gold : sequence of str
        The files of known labels that were given.
    source : str
        The file of answers, which may hold known labels too; empty if a saved model holds them.
    keeps : bool
        Whether these files are needed even if another one holds their labels: known spans also say where tokens are
        cut.
    """

    before: Sequence[str]
    after: Sequence[str]
    gold: Sequence[str]
    source: str = ""
    keeps: bool = False

    def write(self, files: Sequence[str], *more: str) -> str:
        """Return the command line with these files of known labels, and with more options.

        >>> Command(["fuse", "my answers.csv"], ["--report", "r.html"], ["a.csv"]).write(["gold.csv"])
        "consilience fuse 'my answers.csv' --gold gold.csv --report r.html"
        """
        gold = [part for file in files for part in ("--gold", file)]
        typed = ("consilience", *self.before, *gold, *more, *self.after)
        return " ".join(shlex.quote(spell_surrogates(str(part))) for part in typed)


@dataclass(frozen=True, eq=False)
class View:
    """A fitted model with what several sections need of it. Nothing is fitted.

    Attributes
    ----------
    model : fitted model
        It is asked for explanations in words, and for its parameters.
    result : Result
        What it found.
    answers : Answers
        What it was fitted to, with its classes.
    findings : sequence of Finding
        What checks found.
    classes, labels, workers : list of str
        Names, short enough to be shown; those of classes and labels are distinct.
    is_known, is_answered : bool array (N,)
        Whether the label of each item is known, and whether it has answers, of which silence may be one.
    n_answers : int array (N,)
        The number of workers who answered each item.
    content : callable or None
        What an item looks like, by its index.
    command : Command or None
        The command that fused the answers.
    """

    model: Any
    result: Result
    answers: Answers
    findings: Sequence[Finding]
    classes: list[str]
    labels: list[str]
    workers: list[str]
    is_known: NDArray[np.bool_]
    is_answered: NDArray[np.bool_]
    n_answers: NDArray[np.int64]
    content: Callable[[int], Content | None] | None
    command: Command | None

    @property
    def confidence(self) -> Floats | None:
        """The probability of the label of each item; None if nothing checks the answers, or a check has failed."""
        return None if self.result.told_confidence is None else self.result.labels.confidence

    @cached_property
    def counts(self) -> Floats | Cells:
        """How often each worker gave each label to items of each class, as the fit expects it, (M, L, K)."""
        return count_answers(self.result)

    @cached_property
    def said(self) -> Floats:
        """How often each worker gave each label, (M, L)."""
        return self.counts.sum_out(2) if isinstance(self.counts, Cells) else np.asarray(self.counts.sum(axis=2))

    @cached_property
    def met(self) -> Floats:
        """How often each worker met items of each class, as the fit expects it, (M, K)."""
        return self.counts.sum_out(1) if isinstance(self.counts, Cells) else np.asarray(self.counts.sum(axis=1))

    @cached_property
    def vote(self) -> Floats:
        """The vote shares of each item."""
        if self.result.vote is not None:
            return self.result.vote
        r = self.answers
        with open_engine(None) as engine:
            unvoted = r.vote_shares() if r.silence_counts else np.full(r.n_classes, 1 / r.n_classes)
            return collect_votes(engine, Source(r), unvoted)[0]

    @cached_property
    def is_voted(self) -> NDArray[np.bool_]:
        """Whether each item has votes for classes: not if all of its answers are labels that are no classes."""
        r = self.answers
        votes = np.bincount(r.item_of_answer()[r.class_of_label[r.label] >= 0], minlength=r.n_items)
        return np.asarray((votes > 0) | r.silence_counts)

    @cached_property
    def differs(self) -> NDArray[np.bool_]:
        """Whether another class than the fused label has more votes. A tie is no difference, nor is a known label."""
        tied = find_tied(self.vote)[np.arange(self.answers.n_items), self.result.labels.codes]
        return np.asarray(~tied & self.is_voted & ~self.is_known)

    @cached_property
    def blind(self) -> Floats | None:
        """The probabilities that the answers alone give to items of known label, as if it were not known.

        Each item is left out of what judges it. None where that was not worked out at the fit.
        """
        found = self.result.calibrated
        if self.result.model == "MajorityVote":
            return self.vote[self.is_known]
        if found is None or found.blind is None or len(found.blind) != self.is_known.sum():
            return None
        return raise_to(found.blind, found.found.power_before)

    def bounds_of(self, sequence: int) -> tuple[int, int]:
        """Return the first item of a sequence, and the one after its last."""
        assert self.answers.sequences is not None
        start, stop = self.answers.sequences.offsets[sequence : sequence + 2].tolist()
        return start, stop

    def sequence_of(self, item: int) -> int:
        """Return the number of the sequence that an item is in."""
        assert self.answers.sequences is not None
        return int(np.searchsorted(self.answers.sequences.offsets, item, side="right")) - 1

    def key_of(self, item: int) -> tuple[str, ...]:
        """Return what identifies an item as text: its id, or its sequence and position."""
        r = self.answers
        if r.sequences is None:
            return (spell_surrogates(str(r.items[[item]].tolist()[0])),)
        sequence = r.sequences.ids[[self.sequence_of(item)]].tolist()[0]
        position = self.result.task.name_position(r.sequences.position[[item]].tolist()[0])
        return spell_surrogates(str(sequence)), spell_surrogates(str(position))

    def name_of(self, item: int) -> str:
        """Return what an item is called, short enough to be shown."""
        parts = [to_name(part) for part in self.key_of(item)]
        if len(parts) == 1:
            return f"Item {parts[0]}"
        shown = self.show(item)
        word = f": “{to_name(shown.text, LONGEST_WORD)}”" if shown is not None and shown.text else ""
        owner, place = self.result.task.places
        return f"{owner.capitalize()} {parts[0]}, {place} {parts[1]}{word}"

    def show(self, item: int) -> Content | None:
        """Return what an item looks like, if that is known."""
        return None if self.content is None else self.content(item)


def look_at(model: Any, content: object = None, folder: str = "", command: Command | None = None) -> View:
    """Return what the sections of a page on a fitted model share.

    Parameters
    ----------
    model, content
        As for `consilience.report`.
    folder : str
        Where relative paths of pictures start.
    command : Command, optional
        The command that fused the answers.
    """
    result: Result = model.result_
    r = result.answers.with_classes(result.names.classes)
    gold, n_answers = result.given.gold, np.bincount(r.votes()[0], minlength=r.n_items)
    if content is None:
        shown = None if result.task.show(np.array([0])) is None else _show_by_task(result)
    else:
        shown = find_content(content, r, folder)
    return View(
        model,
        result,
        r,
        model.findings_,
        classes=name_all(result.names.classes),
        labels=name_all(r.labels),
        workers=[to_name(worker) for worker in r.workers.tolist()],
        is_known=np.zeros(r.n_items, bool) if gold is None else np.asarray(gold.codes >= 0),
        is_answered=np.asarray((n_answers > 0) | r.silence_counts),
        n_answers=n_answers,
        content=shown,
        command=command,
    )


def _show_by_task(result: Result) -> Callable[[int], Content | None]:
    def show(index: int) -> Content | None:
        words = result.task.show(np.array([index]))
        return None if words is None else Content(words[0])

    return show


def name_all(values: Values) -> list[str]:
    """Return distinct names: two long labels may have the same beginning.

    >>> name_all(np.array(["1", 1], dtype=object))
    ['1', '1 (2)']
    """
    return distinct_names([to_name(value) for value in values.tolist()])


def find_content(content: object, r: Answers, folder: str = "") -> Callable[[int], Content | None]:
    """Return a function that says what an item looks like, by its index.

    Parameters
    ----------
    content : dict, Series, table or path
        {item: text}, or a table with the items and one other column (or one called content, text or image). Of several
        rows about one item the first counts.
    r : Answers
        Whose items they are.
    folder : str
        Where relative paths of pictures start.
    """
    series = open_series(content)
    if series is not None:
        keys, values = _split_keys(series[0], r), to_column(series[1])
    elif isinstance(content, Mapping) and all(value is None or isinstance(value, str) for value in content.values()):
        keys, values = _split_keys(to_column(list(content)), r), to_column(list(content.values()))
    else:
        table = open_item_table(open_path(content), "content").prefer(r.columns)
        keys = [table.read(name) for name in table.need_keys(r.sequences is not None)]
        others = [name for name in table.names if name not in key_names(table, r)]
        # As in files of MTurk and Toloka.
        plain = {name: name.strip().lower().removeprefix("input.").removeprefix("input:") for name in others}
        usual = [name for name in others if plain[name] in ("content", "text", "image", "word", "token")]
        if len(others) != 1 and not usual:
            raise InputError(
                f"{table.name} has the columns {listing(table.names)}: which of them is the content is not clear.",
                Sentence("Keep the items and one other column, or call it content."),
                keyword="content",
            )
        values = table.read((others if len(others) == 1 else usual)[0])
    known = np.ones(len(values), bool)
    known[find_missing(values)] = False
    item = r.find_items(keys)
    rows = np.flatnonzero(known & (item >= 0))[::-1]
    if not len(rows):
        ids = r.items if r.sequences is None else r.sequences.ids
        raise InputError(
            f"The content is about none of the items of the answers, such as {listing(ids[:3].tolist())}.",
            "Check that both use the same ids.",
            keyword="content",
        )
    row_of_item = np.full(r.n_items, -1)
    row_of_item[item[rows]] = rows  # from the last to the first

    @cache
    def show(index: int) -> Content | None:
        row = int(row_of_item[index])
        return (
            None if row < 0 else open_content(spell_surrogates(str(to_values(values.take([row])).tolist()[0])), folder)
        )

    return show


def _split_keys(keys: Column, r: Answers) -> list[Column]:
    """Return keys of items as columns: (sequence, position) pairs as two."""
    if r.sequences is None:
        return [keys]
    pairs = to_values(keys).tolist()
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise InputError(
            "The content of sequences must be keyed by (sequence, position), such as {('s1', 0): 'The'}.",
            keyword="content",
        )
    return [to_column([pair[part] for pair in pairs]) for part in (0, 1)]


def open_content(text: str, folder: str = "") -> Content:
    """Return content as it is shown: the beginning of a text, or a small picture."""
    if len(text) < 1000 and text.lower().endswith(PICTURES):
        path = os.path.join(folder or ".", text)
        if os.path.isfile(path):
            try:
                kind, data = shrink_picture(path, SIDE)
            except InputError:
                return Content(f"{text} (cannot be read)")
            return Content(os.path.basename(text), f"data:image/{kind};base64,{base64.b64encode(data).decode()}")
        # What may name a scheme or a server is no relative path.
        relative = "" if ":" in text or text.startswith(("/", "\\")) else quote(text, safe="/")
        return Content(text, address=find_address(text) or relative)
    return Content(text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…", address=find_address(text))


def find_address(text: str) -> str:
    """Return a text that is an address in the web, and nothing else; otherwise nothing.

    >>> find_address("https://example.org/1.jpg"), find_address("javascript:alert(1)"), find_address("see http://a.b")
    ('https://example.org/1.jpg', '', '')
    """
    return text if _ADDRESS.fullmatch(text) else ""
