"""What a report is about: a fitted model, its answers, and how items, workers and labels are called."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Values, spell_surrogates
from ..answers.gold import Gold
from ..answers.responses import Responses
from ..errors import quietly
from ..inference.cells import Cells
from ..inference.recipes.independent import find_tied
from ..kernels.types import Floats
from ..models.majority_vote import MajorityVote
from ..planning.next_items import find_entropy
from ..results.findings import Finding
from ..results.fusion import Fusion
from ..results.tables import count_answers
from ..tasks.base import AnyTask
from .content import Content

# The most characters of a label or an id that are shown.
LONGEST_NAME = 60
# The same of a word that is named beside its place in a sequence.
LONGEST_WORD = 30
# Characters that XML does not allow, nor charts: vl-convert ends the whole process at one.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ufffe\uffff]")


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted model and what it was fitted to.

    Attributes
    ----------
    model : Model
        The fitted model.
    responses : Responses
        Its answers, with the classes of the model.
    findings : sequence of Finding
        What checks found.
    gold : Gold or None
        Known labels, by item.
    graph : Graph or None
        The neighbours of each item.
    content : callable or None
        What an item looks like, by its index.
    n_labels : int
        How many items the model was fitted to. The report shows a random sample of those on disk.
    """

    model: Any
    responses: Responses
    findings: Sequence[Finding]
    gold: Gold | None = None
    graph: Any = None
    content: Callable[[int], Content | None] | None = None
    n_labels: int = 0  # how many items there are, if these are a sample

    @cached_property
    def kinds(self) -> set[str]:
        """The kinds of what checks found."""
        return {finding.kind for finding in self.findings}

    @property
    def is_sample(self) -> bool:
        """Whether the items are a sample of those that the model was fitted to."""
        return self.n_labels > self.n_items

    @property
    def task(self) -> AnyTask:
        """What the items are."""
        found: Fusion = self.model.fusion_
        return found.task

    @property
    def called(self) -> str:
        """What the labels are called, if the results are something else."""
        return "labels" if self.task.results == "labels" else f"labels of {self.task.item}s"

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.responses.n_items

    @cached_property
    def classes(self) -> list[str]:
        """Names of the classes, short enough to be shown, and distinct."""
        return name_all(self.model.classes_)

    @cached_property
    def labels(self) -> list[str]:
        """Names of what workers say, short enough to be shown, and distinct; silence is the last if it is an answer."""
        return name_all(self.responses.labels)

    @cached_property
    def workers(self) -> list[str]:
        """Names of the workers."""
        return [to_name(worker) for worker in self.responses.workers.tolist()]

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The fused label of each item, as an index into the classes."""
        return np.asarray(self.model.fusion_.labels.codes)

    @cached_property
    def counts(self) -> Floats | Cells:
        """How often each worker gave each label to items of each class, as the fit expects it, (M, L, K)."""
        return count_answers(self.model.fusion_)

    @cached_property
    def confidence(self) -> Floats:
        """The probability of the fused label of each item."""
        return np.asarray(self.model.posterior_[np.arange(self.n_items), self.codes])

    @cached_property
    def entropy(self) -> Floats:
        """The entropy of the calibrated posterior of each item, in nats."""
        return find_entropy(self.model.posterior_)

    @cached_property
    def n_answers(self) -> NDArray[np.int64]:
        """The number of workers who answered each item."""
        return np.bincount(self.responses.votes()[0], minlength=self.n_items)

    @cached_property
    def is_known(self) -> NDArray[np.bool_]:
        """Whether the label of each item is known."""
        return np.zeros(self.n_items, bool) if self.gold is None else np.asarray(self.gold.codes >= 0)

    @cached_property
    def known_labels(self) -> dict[Any, Any] | None:
        """Known labels by id of the item; None if there are none."""
        if self.gold is None:
            return None
        rows = np.flatnonzero(self.is_known)
        labels = self.model.classes_[self.gold.codes[rows]].tolist()
        return dict(zip(self.responses.items[rows].tolist(), labels, strict=True))

    @cached_property
    def vote(self) -> Floats:
        """The vote shares of each item, without known labels."""
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

    def key_of(self, item: int) -> tuple[str, ...]:
        """Return what identifies an item as text: its id, or its sequence and position."""
        sequences = self.responses.sequences
        if sequences is None:
            return (spell(self.responses.keys[[item]].tolist()[0]),)  # type: ignore[index]
        number = int(np.searchsorted(sequences.offsets, item, side="right")) - 1
        return spell(sequences.ids[[number]].tolist()[0]), spell(sequences.position[[item]].tolist()[0])

    def name_of(self, item: int) -> str:
        """Return what an item is called, short enough to be shown."""
        parts = [to_name(part) for part in self.key_of(item)]
        if len(parts) == 1:
            return f"Item {parts[0]}"
        shown = self.show(item)
        word = f": “{to_name(shown.text, LONGEST_WORD)}”" if shown is not None and shown.text else ""
        return f"Sequence {parts[0]}, position {parts[1]}{word}"

    def show(self, item: int) -> Content | None:
        """Return what an item looks like, if that is known."""
        return None if self.content is None else self.content(item)


def spell(value: Any) -> str:
    r"""Return a value as text that can be written to a file.

    >>> spell(7), spell(None), spell("a\ud800")
    ('7', 'None', 'a\\ud800')
    """
    return spell_surrogates(str(value))


def to_name(value: Any, width: int = LONGEST_NAME) -> str:
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
    return distinguish(to_name(value) for value in values.tolist())


def distinguish(names: Iterable[str]) -> list[str]:
    """Return names of which no two are the same.

    >>> distinguish(["a", "a", "a (2)"])
    ['a', 'a (2)', 'a (2) (2)']
    """
    found: dict[str, None] = {}
    for name in names:
        unique, n = name, 2
        while unique in found:
            unique, n = f"{name} ({n})", n + 1
        found[unique] = None
    return list(found)
