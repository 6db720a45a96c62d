"""Kinds: what users bring, how it becomes answers about items, and how results become what the user had.

A table of answers, spans that workers marked in texts and masks that readers drew are all fused as answers of workers
about items. A kind knows what the items are. `to_answers` turns what was brought into answers, `from_labels` turns
results into what the user had, and both have their known labels and words for people. Nothing else asks what the items
are.

The simplest kind is here too, that of tables: every item has an id and stands for itself. A new kind is a subclass of
`Kind` in a file of its own, and a line in `KINDS` of `consilience.kinds`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from ..answers.answers import Answers
from ..answers.classes import are_measured
from ..answers.columns import Column, Indices, Values, to_column
from ..answers.gold import LEAVE_OUT, find_strange
from ..answers.graph import Graph
from ..answers.layouts import LAYOUTS
from ..errors import Sentence, listing, plural, shorten, warn_of

Brought = TypeVar("Brought")
# Who is said to have given fused spans.
FUSED = "consilience"


# What a kind needs of a fit: a `consilience.results.result.Result`, and its labels. Both are of a layer above.
Fused: TypeAlias = Any
FusedLabels: TypeAlias = Any


def list_given(given: object) -> list[object]:
    """What a user gives as one thing or several."""
    return list(given) if type(given) in (list, tuple) else [given]  # type: ignore[call-overload]


class Kind(ABC, Generic[Brought]):
    """What the items of a fit are. It is part of the result; a kind is a frozen dataclass, whose fields are saved.

    Attributes
    ----------
    name : str
        What files of models call it.
    brought : type
        What users bring.
    title : str
        What that is, in a few words.
    layouts : dict
        The tables that it can be written as, by name.
    is_saved : bool
        Whether files of models hold it. If not, what is loaded is about a table.
    item : str
        What an item is called.
    places : tuple of str
        What a sequence and a position in it are called, where items are in sequences.
    argument : str
        What the answers are called in code.
    model : str
        The model by which they are fused unless another is named; "" if that follows from the answers.
    results : str
        What results are called.
    judged : str
        What a label of an item is called, of which accuracy and confidence are told.
    whole_items : bool
        Whether an answer is one label of an item that stands for itself. Then numbers may turn out to be a scale,
        silence and soft votes tell who gives the answers, and records of real crowds hold.
    in_order : bool
        Whether positions of a sequence follow each other.
    linked : bool
        Whether items hang together by what they are, such as the pixels of images. A person cannot judge them singly.
    empty_is_answer : bool
        Whether an empty cell of a table may be an answer.
    methods : tuple of str
        Methods of models that apply to this kind alone.
    no_update : tuple of str or None
        Why nothing can be added to a fit: the problem and a remedy.
    origin : tuple of str or None
        Path and format of the file that the answers came from.
    question : str or None
        The column of the answers in it.
    """

    name: ClassVar[str]
    brought: ClassVar[type]
    title: ClassVar[str]
    layouts: ClassVar[Mapping[str, Callable[[Any], object]]] = {}
    is_saved: ClassVar[bool] = True
    item: ClassVar[str] = "item"
    places: ClassVar[tuple[str, str]] = ("sequence", "position")
    argument: ClassVar[str] = "answers"
    model: ClassVar[str] = ""
    results: ClassVar[str] = "labels"
    judged: ClassVar[str] = "label"
    whole_items: ClassVar[bool] = False
    in_order: ClassVar[bool] = True
    linked: ClassVar[bool] = False
    empty_is_answer: ClassVar[bool] = False
    methods: ClassVar[tuple[str, ...]] = ()
    no_update: ClassVar[tuple[str, str] | None] = None
    origin: tuple[str, str] | None = None
    question: str | None = None

    # Reading: from what was brought to answers. `models/opening.py` calls these.

    @classmethod
    @abstractmethod
    def to_answers(cls, brought: Brought) -> tuple[Kind[Brought], Answers]:
        """What was brought as answers, and the kind that these belong to."""

    @classmethod
    @abstractmethod
    def describe(cls, brought: Brought) -> str:
        """In words what was brought."""

    def reading(self) -> dict[str, object]:
        """How further answers of this kind are read from a table, by parameters of `fuse`; {} if as others."""
        return {}

    def adapt(self, brought: Brought) -> Brought:
        """What else was brought in terms of the kind of a fit, which it is added to or judged by."""
        return brought

    @classmethod
    def make_graph(cls, brought: Brought) -> Graph:
        """The graph of items that are linked by what they are."""
        raise NotImplementedError(cls.name)

    # Known labels: from the form that users know to that of items.

    @classmethod
    def take_known(
        cls,
        brought: Brought,
        gold: object,
        open_known: Callable[[object, object], object],  # noqa: ARG003
    ) -> tuple[Brought, object]:
        """What is to be fused when known labels are given in the user's form, and these as models take them.

        `open_known` opens what is at a path, as something that is like what was brought.
        """
        return brought, gold

    def choose_known(self, brought: Brought, answers: Answers) -> object:  # noqa: ARG002
        """The known labels that the answers come with, if they are of use. A warning tells of them.

        They are not used if some are no classes, or if the label of every item is known: there would be nothing to
        fuse.
        """
        gold = answers.gold
        if not gold:
            return None
        name, results = shorten(answers.columns.get("gold", "gold")), self.results
        strange = self.find_strange(answers, list(gold.values()))
        if strange:
            warn_of(
                f"Column {name} is not used as known {results}: it holds {listing(strange)}, and the classes are "
                f"{listing(answers.classes.tolist())}.",
                Sentence("If it holds known labels, name all classes with {classes}."),
                LEAVE_OUT,
            )
            return None
        if len(gold) == answers.n_items:
            warn_of(
                f"Column {name} holds the known {results} of all items. They are not used: there would be nothing to "
                "fuse.",
                f"Compare the {results} with them by evaluate.",
                LEAVE_OUT,
            )
            return None
        n_items = self.size(answers)[0]
        known = f"{len(gold) * n_items // answers.n_items:,} of {plural(n_items, 'item')}"
        warn_of(f"Column {name} holds known {results} of {known}. They are used as gold.", LEAVE_OUT)
        return gold

    @classmethod
    def find_strange(cls, answers: Answers, known: list[object]) -> list[object]:
        """The known labels that cannot be so."""
        return find_strange(answers, to_column(known))

    def spread_known(self, gold: object, names: Mapping[str, str]) -> object:  # noqa: ARG002
        """Known labels in the user's form as models take them, where only the kind of a fit is there.

        `names` are the columns of the answers by role. Whatever is at a path is opened already.
        """
        return gold

    # Conversion of files, without a fit.

    @classmethod
    def list_losses(cls, brought: Brought, source: str, form: str, carried: Container[str]) -> list[str]:  # noqa: ARG003
        """What is lost from one format to another, or to a layout, in words; `carried` is what that can hold."""
        return []

    # What a fit and its file need to know of the items.

    def to_saved(self, texts: bool) -> Kind[Any]:  # noqa: ARG002 (where there are texts)
        """What a file holds of the kind, and whether it holds `texts`."""
        return self

    def check_items(self, keys: Mapping[str, Column] | None) -> None:
        """Raise an error unless items with these keys can belong to the kind; None: there are none in a file."""

    def find_copies(self, r: Answers) -> list[list[int]] | None:  # noqa: ARG002
        """Groups of workers who copy each other; None where they are found as those of any answers are."""
        return None

    def list_parts(self) -> Values | None:
        """What each thing has an item for, all of which are known together, such as tags; None where it is one item."""
        return None

    # Items and results as documents show them.

    def show(self, items: Indices) -> list[str] | None:  # noqa: ARG002
        """What some items look like, as text; None if nothing is known of it."""
        return None

    def read(self, sequence: int) -> tuple[str, Indices, Indices] | None:  # noqa: ARG002
        """The text whose words are the items of a sequence, and where they start and end; None without one."""
        return None

    def summarise(self, answers: Answers, fused: Fused, is_sure: bool) -> tuple[dict[str, Any], str] | None:  # noqa: ARG002
        """The figures of results that are not the labels, and these in words; None where there are no others.

        Figures are a record under the name of the results in JSON. Words say how confident the results are only if
        `is_sure`: if probabilities are to be relied on.
        """
        return None

    def tabulate(self, fused: Fused) -> dict[str, Column] | None:  # noqa: ARG002
        """The columns of the table of results, where that is not the table of labels; None where it is."""
        return None

    def name_labels(self) -> str:
        """What the labels of items are called, beside results that may be called labels too."""
        are_results = self.results == "labels" or self.judged != "label"
        return f"{self.judged}s" if are_results else f"labels of {self.item}s"

    def size(self, answers: Answers) -> tuple[int, int]:
        """How many items and answers users see."""
        return answers.n_items, answers.n_responses

    # Tables and files of results.

    def arrange(self, labels: FusedLabels, shown: bool, undecided: float | None) -> dict[str, Column] | None:  # noqa: ARG002
        """The columns of the table of labels, where a row is about more than one item; None where it is not.

        Probabilities are missing unless `shown`, and labels whose confidence is below `undecided`.
        """
        return None

    def mark(self, labels: pa.Table) -> pa.Table:
        """The table of labels with what writers of files need to know of its columns."""
        return labels

    def to_text(self, labels: pa.Table) -> pa.Table:
        """The table of labels, of which several are joined in one text in the column label."""
        return labels

    def name_keys(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        """The columns of a table about single items, with keys that users know."""
        return dict(columns)

    def name_position(self, position: Any) -> object:
        """What a position in a sequence is called."""
        return position

    def find_key(self, item: object) -> object:
        """The key of an item that a user names."""
        return item

    def from_labels(self, fused: Fused, labels: object) -> object:  # noqa: ARG002
        """The results as what was brought, to be written as that; `labels` is the table of labels."""
        return labels


AnyKind: TypeAlias = Kind[Any]


@dataclass(frozen=True, eq=False)
class TableKind(Kind[Answers]):
    """Items of a table; its fields are those that every kind has."""

    origin: tuple[str, str] | None = None
    question: str | None = None

    name = "table"
    brought = Answers
    title = "answers about whole items"
    layouts = LAYOUTS
    whole_items = True

    @classmethod
    def to_answers(cls, brought: Answers) -> tuple[TableKind, Answers]:
        """The answers themselves."""
        if are_measured(brought):
            name = shorten(brought.columns.get("label", "label"))
            warn_of(
                f"The labels in {name} are {brought.n_labels:,} different numbers. Each is treated as a class of its "
                "own; their order is not used.",
                Sentence("If another column holds the labels, name it with {label}."),
                Sentence("If they are numbers, such as marks, fuse them with {kind}.", kind="numbers"),
            )
        return cls(brought.origin, brought.columns.get("label")), brought

    @classmethod
    def describe(cls, brought: Answers) -> str:
        """How many answers there are, by whom and about what."""
        return (
            f"{plural(brought.n_responses, 'answer')} by {plural(brought.n_workers, 'worker')} about "
            f"{plural(brought.n_items, 'item')}"
        )

    @classmethod
    def list_losses(cls, brought: Answers, source: str, form: str, carried: Container[str]) -> list[str]:  # noqa: ARG003
        """What a layout cannot hold."""
        n_silent = int(np.count_nonzero(np.diff(brought.offsets) == 0))
        lost = [f"{plural(n_silent, 'item')} without an answer"] if form == "long" and n_silent else []
        lost += ["the weights of answers"] * (form == "wide" and brought.weight is not None)
        return lost + ["the probabilities of answers"] * (form == "wide" and brought.soft is not None)


# Of answers that nothing else is known of.
TABLE = TableKind()
