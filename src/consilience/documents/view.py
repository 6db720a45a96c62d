"""A `View`: a result with what several sections of a page need of it, and with what its items look like.

What items look like is given for each as text. A text that ends like the name of a picture, and is the path of a file,
is taken for that picture, which is made small and put into the page. Pictures are opened only for items that are shown.
"""

from __future__ import annotations

import base64
import logging
import os
import re
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any
from urllib.parse import quote

import numpy as np

from ..answers.columns import spell_surrogates, to_values
from ..answers.keys import key_of
from ..answers.matching import match_column
from ..engines import open_engine
from ..errors import InputError, quietly
from ..estimation.population import Population, survey_result
from ..formats.masks import shrink_picture
from ..formats.reading import open_path
from ..inference.cells import Cells
from ..inference.labels import collect_votes
from ..inference.observations import Observations
from ..kernels import ROUNDING, Floats
from ..results.result import Result
from ..results.worker_report import expect_counts
from .document import name_all, to_name

log = logging.getLogger("consilience")

# The most characters of a word that is named beside its place in a sequence, and of a text; the longer side of a
# picture.
LONGEST_WORD, LONGEST_TEXT, SIDE = 30, 700, 240
CONTENT = ("content", "text", "image", "word", "token")
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
# What may be a link.
_ADDRESS = re.compile(r"https?://[^\s\\<>\"'`{}|^]{1,2000}", re.IGNORECASE)


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
        self.confidence = None if result.reported_confidence is None else result.labels.confidence
        gold, codes = result.given.gold, result.labels.codes
        self.n_answers = np.bincount(r.votes()[0], minlength=r.n_items)
        self.is_known = np.zeros(r.n_items, bool) if gold is None else np.asarray(gold.codes >= 0)
        self.is_answered = np.asarray((self.n_answers > 0) | r.silence_counts)
        counts = expect_counts(result)
        self.counts = counts if isinstance(counts, Cells) else Cells.of_table(counts)
        self.said, self.met = self.counts.sum_out(2), self.counts.sum_out(1)
        if result.fusion_checks is not None and result.fusion_checks.vote is not None:
            self.vote = result.fusion_checks.vote
        else:
            with open_engine(None) as engine:
                unvoted = r.vote_shares() if r.silence_counts else np.full(r.n_classes, 1 / r.n_classes)
                self.vote = collect_votes(engine, Observations(r), unvoted)[0]
        votes = np.bincount(r.item_of_answer()[r.class_of_label[r.label] >= 0], minlength=r.n_items)
        self.is_voted = np.asarray((votes > 0) | r.silence_counts)
        fewer = self.vote[np.arange(r.n_items), codes] < self.vote.max(axis=1) - ROUNDING
        self.differs = np.asarray(fewer & self.is_voted & ~self.is_known)
        self.blind: Floats | None = None
        if result.model == "MajorityVote":
            self.blind = self.vote[self.is_known]
        elif result.cross_fitted is not None and len(result.cross_fitted) == self.is_known.sum():
            self.blind = result.cross_fitted
        self._content = None if content is None else match_column(open_path(content), r, "content", CONTENT)
        self._folder, self._open = folder, cache(open_content)  # a picture is made small once

    @cached_property
    def population(self) -> Population | None:
        """The items, with known labels as a sample of them; None, with the reason in the log, where these are none."""
        if self.result.given.gold is None:
            return None
        try:
            with quietly():
                return survey_result(self.result)
        except InputError as error:
            log.info("Known labels say nothing of all items: %s", error)
            return None

    def key_of(self, item: int) -> tuple[str, ...]:
        """What identifies an item as text: its id, or its sequence and position."""
        key: Any = key_of(self.answers.keys, item)
        parts = (key,) if self.answers.sequences is None else (key[0], self.result.kind.name_position(key[1]))
        return tuple(spell_surrogates(str(part)) for part in parts)

    def name_of(self, item: int) -> str:
        """What an item is called, short enough to be shown."""
        parts = [to_name(part) for part in self.key_of(item)]
        if len(parts) == 1:
            return f"Item {parts[0]}"
        text = self.show(item)[0]
        word = f": “{to_name(text, LONGEST_WORD)}”" if text else ""
        owner, place = self.result.kind.places
        return f"{owner.capitalize()} {parts[0]}, {place} {parts[1]}{word}"

    def show(self, item: int) -> Content:
        """What an item looks like; empty texts if that is not known."""
        if self._content is None:
            words = self.result.kind.show(np.array([item]))
            return ("", "", "") if words is None else (words[0], "", "")
        row_of_item, values = self._content
        row = int(row_of_item[item])
        if row < 0:
            return "", "", ""
        return self._open(spell_surrogates(str(to_values(values.take([row])).tolist()[0])), self._folder)


# What an item looks like: a text, or the name of a picture; a picture as a data URL; an address in the web.
Content = tuple[str, str, str]


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
