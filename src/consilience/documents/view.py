"""What the sections of a page share: a result, what its items, workers and labels are called, and what items look like.

What items look like is given for each as text. A text that ends like the name of a picture, and is the path of a file,
is taken for that picture, which is made small and put into the page. Pictures are opened only for items that are shown.
"""

from __future__ import annotations

import base64
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import Column, find_missing, spell_surrogates, to_values
from ..answers.gold import open_gold
from ..answers.items import key_names, key_of, match_items, open_item_table
from ..answers.tables import open_series
from ..engines import open_engine
from ..errors import InputError, Sentence, listing
from ..formats.masks import shrink_picture
from ..formats.reading import open_path
from ..inference import Cells
from ..inference.hidden_answers import raise_to
from ..inference.labels import collect_votes
from ..inference.sources import Source
from ..kernels import Floats
from ..results.result import Result
from ..results.worker_report import expect_counts
from .document import name_all, to_name

# The most characters of a word that is named beside its place in a sequence, and of a text; the longer side of a
# picture.
LONGEST_WORD, LONGEST_TEXT, SIDE = 30, 700, 240
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
# What may be a link.
_ADDRESS = re.compile(r"https?://[^\s\\<>\"'`{}|^]{1,2000}", re.IGNORECASE)


def repeat_command(command: Sequence[str], *more: str) -> str:
    """A command line with more options.

    >>> repeat_command(["consilience", "fuse", "--", "my answers.csv"], "--gold", "gold.csv")
    "consilience fuse --gold gold.csv -- 'my answers.csv'"
    """
    place = command.index("--") if "--" in command else len(command)  # what follows is no option
    return shlex.join(spell_surrogates(str(part)) for part in (*command[:place], *more, *command[place:]))


class View:
    """A fitted model with what several sections need of it. Nothing is fitted.

    Parameters
    ----------
    model, content
        As for `consilience.report`.
    folder : str
        Where relative paths of pictures start.
    command : sequence of str, optional
        The command line that fused the answers.
    source : str
        Its file of answers, which may hold known labels too; empty if a saved model holds them.

    Attributes
    ----------
    result, answers, findings
        What the model found, what it was fitted to, with its classes, and what checks found.
    classes, labels, workers : list of str
        Names, short enough to be shown; those of classes and labels are distinct.
    confidence : array (N,) or None
        The probability of the label of each item; None if nothing checks the answers, or a check has failed.
    is_known, is_answered : bool array (N,)
        Whether the label of each item is known, and whether it has answers, of which silence may be one.
    n_answers : int array (N,)
        The number of workers who answered each item.
    counts, said, met : Cells and arrays (M, L), (M, K)
        How often each worker gave each label to items of each class, as the fit expects it, and its sums.
    vote : array (N, K)
        The vote shares of each item.
    is_voted, differs : bool array (N,)
        Whether each item has votes for classes: not if all of its answers are labels that are no classes; and whether
        another class than the fused label has more of them. A tie is no difference, nor is a known label.
    blind : array (n, K) or None
        The probabilities that the answers alone give to items of known label, as if it were not known: each item is
        left out of what judges it. None where that was not worked out at the fit.
    """

    def __init__(
        self, model: Any, content: object = None, folder: str = "", command: Sequence[str] = (), source: str = ""
    ) -> None:
        result: Result = model.result_
        r = self.answers = result.answers.with_classes(result.names.classes)
        self.model, self.result, self.findings = model, result, model.findings_
        self.command, self.source = command, source
        self.classes, self.labels = name_all(result.names.classes), name_all(r.labels)
        self.workers = [to_name(worker) for worker in r.workers.tolist()]
        self.confidence = None if result.told_confidence is None else result.labels.confidence
        gold, codes = result.given.gold, result.labels.codes
        self.n_answers = np.bincount(r.votes()[0], minlength=r.n_items)
        self.is_known = np.zeros(r.n_items, bool) if gold is None else np.asarray(gold.codes >= 0)
        self.is_answered = np.asarray((self.n_answers > 0) | r.silence_counts)
        counts = expect_counts(result)
        self.counts = counts if isinstance(counts, Cells) else Cells.of_table(counts)
        self.said, self.met = self.counts.sum_out(2), self.counts.sum_out(1)
        if result.vote is not None:
            self.vote = result.vote
        else:
            with open_engine(None) as engine:
                unvoted = r.vote_shares() if r.silence_counts else np.full(r.n_classes, 1 / r.n_classes)
                self.vote = collect_votes(engine, Source(r), unvoted)[0]
        votes = np.bincount(r.item_of_answer()[r.class_of_label[r.label] >= 0], minlength=r.n_items)
        self.is_voted = np.asarray((votes > 0) | r.silence_counts)
        fewer = self.vote[np.arange(r.n_items), codes] < self.vote.max(axis=1) - 1e-12
        self.differs = np.asarray(fewer & self.is_voted & ~self.is_known)
        self.blind: Floats | None = None
        found = result.calibrated
        if result.model == "MajorityVote":
            self.blind = self.vote[self.is_known]
        elif found is not None and found.blind is not None and len(found.blind) == self.is_known.sum():
            self.blind = raise_to(found.blind, found.found.power_before)
        self._content = None if content is None else find_content(content, r)
        self._folder, self._open = folder, cache(open_content)  # a picture is made small once

    def key_of(self, item: int) -> tuple[str, ...]:
        """What identifies an item as text: its id, or its sequence and position."""
        key: Any = key_of(self.answers.keys, item)
        parts = (key,) if self.answers.sequences is None else (key[0], self.result.task.name_position(key[1]))
        return tuple(spell_surrogates(str(part)) for part in parts)

    def name_of(self, item: int) -> str:
        """What an item is called, short enough to be shown."""
        parts = [to_name(part) for part in self.key_of(item)]
        if len(parts) == 1:
            return f"Item {parts[0]}"
        text = self.show(item)[0]
        word = f": “{to_name(text, LONGEST_WORD)}”" if text else ""
        owner, place = self.result.task.places
        return f"{owner.capitalize()} {parts[0]}, {place} {parts[1]}{word}"

    def show(self, item: int) -> Content:
        """What an item looks like; empty texts if that is not known."""
        if self._content is None:
            words = self.result.task.show(np.array([item]))
            return ("", "", "") if words is None else (words[0], "", "")
        row_of_item, values = self._content
        row = int(row_of_item[item])
        if row < 0:
            return "", "", ""
        return self._open(spell_surrogates(str(to_values(values.take([row])).tolist()[0])), self._folder)


# What an item looks like: a text, or the name of a picture; a picture as a data URL; an address in the web.
Content = tuple[str, str, str]


def find_content(content: object, r: Answers) -> tuple[NDArray[np.int64], Column]:
    """The row of each item in a column that says what items look like, -1 for none, and the column.

    Parameters
    ----------
    content : dict, Series, table or path
        {item: text}, or a table with the items and one other column (or one called content, text or image). Of several
        rows about one item the first counts.
    r : Answers
        Whose items they are.
    """
    is_map = isinstance(content, Mapping) and all(value is None or isinstance(value, str) for value in content.values())
    if is_map or open_series(content) is not None:
        table, column = open_gold(content, r.sequences is not None).prefer(r.columns), "label"
    else:
        table = open_item_table(open_path(content), "content").prefer(r.columns)
        others = [name for name in table.names if name not in key_names(table, r)]
        if len(others) != 1:  # of several, one that is called so, as in files of MTurk and Toloka
            plain = {name: name.strip().lower().removeprefix("input.").removeprefix("input:") for name in others}
            others = [name for name in others if plain[name] in ("content", "text", "image", "word", "token")]
        if not others:
            raise InputError(
                f"{table.name} has the columns {listing(table.names)}: which of them is the content is not clear.",
                Sentence("Keep the items and one other column, or call it content."),
                keyword="content",
            )
        column = others[0]
    values, item = table.read(column), match_items(replace(table, name="The content"), r)
    item[find_missing(values)] = -1
    rows, row_of_item = np.flatnonzero(item >= 0)[::-1], np.full(r.n_items, -1)
    row_of_item[item[rows]] = rows  # from the last to the first
    return row_of_item, values


def open_content(text: str, folder: str) -> Content:
    """Content as it is shown: the beginning of a text, or a small picture."""
    if len(text) >= 1000 or not text.lower().endswith(PICTURES):
        short = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
        return short, "", find_address(text)
    path = os.path.join(folder or ".", text)
    if not os.path.isfile(path):
        # What may name a scheme or a server is no relative path.
        relative = "" if ":" in text or text.startswith(("/", "\\")) else quote(text, safe="/")
        return text, "", find_address(text) or relative
    try:
        kind, data = shrink_picture(path, SIDE)
    except InputError:
        return f"{text} (cannot be read)", "", ""
    return os.path.basename(text), f"data:image/{kind};base64,{base64.b64encode(data).decode()}", ""


def find_address(text: str) -> str:
    """A text that is an address in the web, and nothing else; otherwise nothing.

    >>> find_address("https://example.org/1.jpg"), find_address("javascript:alert(1)"), find_address("see http://a.b")
    ('https://example.org/1.jpg', '', '')
    """
    return text if _ADDRESS.fullmatch(text) else ""
