"""What a report is about: a fitted model, its answers, and what items, workers and labels are called and look like.

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
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import Column, Values, distinct_names, find_missing, spell_surrogates, to_column, to_values
from ..answers.gold import Gold
from ..answers.graph import Graph
from ..answers.item_tables import key_names, open_item_table
from ..answers.tables import Table, open_series
from ..errors import InputError, Sentence, listing, quietly
from ..formats.arrays import shrink_picture
from ..formats.reading import open_path
from ..inference import Cells
from ..inference.recipes.independent import find_tied
from ..kernels import Floats
from ..kinds.base import AnyKind
from ..models.base import Model
from ..models.majority_vote import MajorityVote
from ..planning.next_items import find_entropy
from ..results.findings import Finding
from ..results.result import Result
from ..results.worker_report import count_answers
from .alone import find_obstacle, fit_alone

# The most characters of a label or an id that are shown.
LONGEST_NAME = 60
# The same of a word that is named beside its place in a sequence.
LONGEST_WORD = 30
# The most characters of a text that are shown, and the longer side of a picture.
LONGEST_TEXT, SIDE = 700, 240
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
# What may be a link.
_ADDRESS = re.compile(r"https?://[^\s\\<>\"'`{}|^]{1,2000}", re.IGNORECASE)
# Characters that XML does not allow, nor charts: vl-convert aborts the process at one. And marks of direction,
# which would turn round what stands beside a name.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


class Content(NamedTuple):
    """What an item looks like."""

    text: str = ""
    picture: str = ""  # a data: URL
    address: str = ""  # of a picture that is not in the page, or of anything in the web


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
        return " ".join(shlex.quote(spell(part)) for part in ("consilience", *self.before, *gold, *more, *self.after))


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted model and what it was fitted to. Everything is read from its result.

    Attributes
    ----------
    model : Model
        The fitted model. One that was fitted to answers on disk is looked at through a random sample of them.
    responses : Answers
        Its answers, with the classes of the model.
    findings : sequence of Finding
        What checks found.
    n_labels : int
        How many items the model was fitted to, of which the report may show a sample.
    content : callable or None
        What an item looks like, by its index.
    command : Command or None
        The command that fused the answers.
    """

    model: Model
    responses: Answers
    findings: Sequence[Finding]
    n_labels: int
    content: Callable[[int], Content | None] | None = None
    command: Command | None = None

    @property
    def fusion(self) -> Result:
        """What the fit found."""
        return self.model.result_

    @property
    def gold(self) -> Gold | None:
        """Known labels, by item."""
        return self.fusion.given.gold

    @property
    def graph(self) -> Graph | None:
        """The neighbours of each item."""
        return self.fusion.given.graph

    @property
    def is_sample(self) -> bool:
        """Whether the items are a sample of those that the model was fitted to."""
        return self.n_labels > self.n_items

    @property
    def task(self) -> AnyKind:
        """What the items are."""
        return self.fusion.task

    @property
    def called(self) -> str:
        """What the labels are called, if the results are something else."""
        if self.task.results == "labels" or self.task.judged != "label":
            return f"{self.task.judged}s"
        return f"labels of {self.task.item}s"

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.responses.n_items

    @cached_property
    def classes(self) -> list[str]:
        """Names of the classes, short enough to be shown, and distinct."""
        return name_all(self.fusion.names.classes)

    @cached_property
    def labels(self) -> list[str]:
        """Names of what workers say, short enough to be shown, and distinct; silence is the last if it is an answer."""
        return name_all(self.responses.labels)

    @cached_property
    def workers(self) -> list[str]:
        """Names of the workers."""
        return [to_name(worker) for worker in self.responses.workers.tolist()]

    @property
    def codes(self) -> NDArray[np.int64]:
        """The fused label of each item, as an index into the classes."""
        return self.fusion.labels.codes

    @property
    def posterior(self) -> Floats:
        """The probabilities of the classes of each item."""
        return self.fusion.labels.posterior

    @cached_property
    def confidence(self) -> Floats:
        """The probability of the fused label of each item."""
        return self.fusion.labels.confidence

    @property
    def told_confidence(self) -> Floats | None:
        """The same where it may be told; None if nothing checks the answers, or a check has failed."""
        return None if self.fusion.told_confidence is None else self.confidence

    @cached_property
    def alone(self) -> Result | str:
        """What the crowd alone says, without known labels, or why that cannot be compared."""
        return find_obstacle(self.model, self.responses, self.graph, self.known_labels) or fit_alone(self.model)

    @cached_property
    def entropy(self) -> Floats:
        """The entropy of the calibrated posterior of each item, in nats."""
        return find_entropy(self.posterior)

    @cached_property
    def counts(self) -> Floats | Cells:
        """How often each worker gave each label to items of each class, as the fit expects it, (M, L, K)."""
        return count_answers(self.fusion)

    @cached_property
    def n_answers(self) -> NDArray[np.int64]:
        """The number of workers who answered each item."""
        return np.bincount(self.responses.votes()[0], minlength=self.n_items)

    @cached_property
    def is_known(self) -> NDArray[np.bool_]:
        """Whether the label of each item is known."""
        return np.zeros(self.n_items, bool) if self.gold is None else np.asarray(self.gold.codes >= 0)

    @cached_property
    def known_labels(self) -> dict[object, object] | None:
        """Known labels by id of the item; None if there are none."""
        if self.gold is None:
            return None
        rows = np.flatnonzero(self.is_known)
        labels = self.fusion.names.classes[self.gold.codes[rows]].tolist()
        return dict(zip(self.responses.items[rows].tolist(), labels, strict=True))

    @cached_property
    def vote(self) -> Floats:
        """The vote shares of each item."""
        if self.fusion.vote is not None:
            return self.fusion.vote
        with quietly():
            return np.asarray(MajorityVote().fit(self.responses).posterior_)

    @cached_property
    def is_voted(self) -> NDArray[np.bool_]:
        """Whether each item has votes for classes: not if all of its answers are labels that are no classes."""
        r = self.responses
        votes = np.bincount(r.item_of_answer()[r.class_of_label[r.label] >= 0], minlength=r.n_items)
        return np.asarray((votes > 0) | r.silence_counts)

    @cached_property
    def differs(self) -> NDArray[np.bool_]:
        """Whether another class than the fused label has more votes. A tie is no difference, nor is a known label."""
        tied = find_tied(self.vote)[np.arange(self.n_items), self.codes]
        return np.asarray(~tied & self.is_voted & ~self.is_known)

    @cached_property
    def is_answered(self) -> NDArray[np.bool_]:
        """Whether there are answers about each item, of which silence may be one."""
        return np.asarray((self.n_answers > 0) | self.responses.silence_counts)

    def sequence_of(self, item: int) -> int:
        """Return the number of the sequence that an item is in."""
        assert self.responses.sequences is not None
        return int(np.searchsorted(self.responses.sequences.offsets, item, side="right")) - 1

    def bounds_of(self, sequence: int) -> tuple[int, int]:
        """Return the first item of a sequence, and the one after its last."""
        assert self.responses.sequences is not None
        start, stop = self.responses.sequences.offsets[sequence : sequence + 2].tolist()
        return start, stop

    def key_of(self, item: int) -> tuple[str, ...]:
        """Return what identifies an item as text: its id, or its sequence and position."""
        sequences = self.responses.sequences
        if sequences is None:
            return (spell(self.responses.keys[[item]].tolist()[0]),)  # type: ignore[index]
        sequence = sequences.ids[[self.sequence_of(item)]].tolist()[0]
        return spell(sequence), spell(self.task.name_position(sequences.position[[item]].tolist()[0]))

    def name_of(self, item: int) -> str:
        """Return what an item is called, short enough to be shown."""
        parts = [to_name(part) for part in self.key_of(item)]
        if len(parts) == 1:
            return f"Item {parts[0]}"
        shown = self.show(item)
        word = f": “{to_name(shown.text, LONGEST_WORD)}”" if shown is not None and shown.text else ""
        owner, place = self.task.places
        return f"{owner.capitalize()} {parts[0]}, {place} {parts[1]}{word}"

    def show(self, item: int) -> Content | None:
        """Return what an item looks like, if that is known."""
        return None if self.content is None else self.content(item)


def spell(value: object) -> str:
    r"""Return a value as text that can be written to a file.

    >>> spell(7), spell(None), spell("a\ud800")
    ('7', 'None', 'a\\ud800')
    """
    return spell_surrogates(str(value))


def to_name(value: object, width: int = LONGEST_NAME) -> str:
    r"""Return a value as a short text in one line; one that is empty is named so.

    >>> to_name("a" * 100, 10), to_name("  "), to_name("a\x01b")
    ('aaaaaaaaa…', '(empty)', 'a�b')
    """
    text = " ".join(spell(value).split()) or "(empty)"
    text = _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
    return text if len(text) <= width else text[: width - 1] + "…"


def name_all(values: Values) -> list[str]:
    """Return distinct names: two long labels may have the same beginning.

    >>> name_all(np.array(["1", 1], dtype=object))
    ['1', '1 (2)']
    """
    return distinct_names([to_name(value) for value in values.tolist()])


def show_by_task(task: AnyKind) -> Callable[[int], Content | None] | None:
    """Return a function that tells what an item looks like by what it is, such as a word; None if nothing is known."""

    def show(index: int) -> Content | None:
        shown = task.show(np.array([index]))
        return None if shown is None else Content(shown[0])

    return None if show(0) is None else show


def find_content(
    content: object, r: Answers, folder: str | os.PathLike[str] | None = None
) -> Callable[[int], Content | None]:
    """Return a function that tells what an item looks like, by its index.

    Parameters
    ----------
    content : dict, Series, table or path
        {item: text}, or a table with the items and one other column (or one called content, text or image). Of several
        rows about one item the first counts.
    r : Answers
        Whose items they are.
    folder : path, optional
        Where relative paths of pictures start.
    """
    keys, values = open_columns(content, r)
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
        if row < 0:
            return None
        return open_content(spell_surrogates(str(to_values(values.take([row])).tolist()[0])), folder)

    return show


def open_columns(content: object, r: Answers) -> tuple[list[Column], Column]:
    """Return the keys of items, and what is said of each."""
    series = open_series(content)
    if series is not None:
        return split_keys(series[0], r), to_column(series[1])
    if isinstance(content, Mapping) and all(value is None or isinstance(value, str) for value in content.values()):
        return split_keys(to_column(list(content)), r), to_column(list(content.values()))
    table = open_item_table(open_path(content), "content").prefer(r.columns)
    keys = table.need_keys(r.sequences is not None)
    return [table.read(name) for name in keys], table.read(find_column(table, key_names(table, r)))


def split_keys(keys: Column, r: Answers) -> list[Column]:
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


def find_column(table: Table, keys: list[str]) -> str:
    """Return the column of content: the only one beside the items, or the one with a usual name."""
    others = [name for name in table.names if name not in keys]
    if len(others) == 1:
        return others[0]
    for name in others:
        plain = name.strip().lower().removeprefix("input.").removeprefix("input:")  # as in files of MTurk and Toloka
        if plain in ("content", "text", "image", "word", "token"):
            return name
    raise InputError(
        f"{table.name} has the columns {listing(table.names)}: which of them is the content is not clear.",
        Sentence("Keep the items and one other column, or call it content."),
        keyword="content",
    )


def open_content(text: str, folder: str | os.PathLike[str] | None = None) -> Content:
    """Return content as it is shown: the beginning of a text, or a small picture."""
    if len(text) < 1000 and text.lower().endswith(PICTURES):
        path = os.path.join(folder or ".", text)
        if os.path.isfile(path):
            try:
                kind, data = shrink_picture(path, SIDE)
            except InputError:
                return Content(f"{text} (cannot be read)")
            return Content(os.path.basename(text), f"data:image/{kind};base64,{base64.b64encode(data).decode()}")
        return Content(text, address=find_address(text) or find_relative(text))
    return Content(text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…", address=find_address(text))


def find_address(text: str) -> str:
    """Return a text that is an address in the web, and nothing else; otherwise nothing.

    >>> find_address("https://example.org/1.jpg"), find_address("javascript:alert(1)"), find_address("see http://a.b")
    ('https://example.org/1.jpg', '', '')
    """
    return text if _ADDRESS.fullmatch(text) else ""


def find_relative(path: str) -> str:
    """Return a relative path as an address; nothing for what may name a scheme or a server.

    >>> find_relative("cats/my cat.png"), find_relative("javascript:alert(1).png"), find_relative("//a.example/1.png")
    ('cats/my%20cat.png', '', '')
    """
    return "" if ":" in path or path.startswith(("/", "\\")) else quote(path, safe="/")
