"""The result of a fit: computed once, frozen, and read by everything that comes after.

A `Fusion` holds what was found (estimates, labels and probabilities, calibration, intervals), what it was found from
(answers, known labels, graph) and what checks say of it. Fitted models hold one, and their attributes that end in an
underscore read from it. An update or a further batch makes another one. What is costly and seldom wanted is a `Later`:
it is computed when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Column, Values, spell_surrogates, to_column
from ..answers.contents import Passages, Pictures
from ..answers.gold import Gold
from ..answers.graph import Graph
from ..answers.responses import Responses
from ..errors import NotFittedError, Python, Sentence
from ..inference.coupling import CouplingScore
from ..inference.guidance import ComparedOpinions, FeatureFindings, Guide
from ..inference.hidden_fits import Judged
from ..inference.learned import Learned, Names
from ..inference.powers import Calibration, Evidence
from ..inference.sources import Source
from ..inference.structures.field import FieldParameters
from ..kernels.types import Floats
from .batches import Past
from .intervals import Intervals

Value = TypeVar("Value")


class Later(Generic[Value]):
    """A value that is computed when it is first asked for.

    Examples
    --------
    >>> later = Later(int, "7")
    >>> later.value
    7
    """

    def __init__(self, compute: Callable[..., Value], *arguments: object) -> None:
        self.compute = compute
        self.arguments = arguments

    @classmethod
    def known(cls, value: Value) -> Later[Value]:
        """Return a value that is known already."""
        later = cls(_return, value)
        _ = later.value
        return later

    @cached_property
    def value(self) -> Value:
        """The value."""
        return self.compute(*self.arguments)

    @property
    def is_known(self) -> bool:
        """Whether it has been computed."""
        return "value" in self.__dict__


def _return(value: Value) -> Value:
    return value


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of some items, with their probabilities.

    Attributes
    ----------
    keys : dict
        What identifies the items: columns item, or sequence and position.
    classes : ndarray
        What a label can be.
    codes : int64 array (N,)
        The label of each item, as an index into the classes.
    posterior : array (N, K)
        The probabilities that are reported.
    uncalibrated : array (N, K) or None
        Those of the fit itself; None where they are the same.
    """

    keys: Mapping[str, Column]
    classes: Values
    codes: NDArray[np.int64]
    posterior: Floats
    uncalibrated: Floats | None = None

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.codes)

    @property
    def values(self) -> Values:
        """The labels themselves."""
        return np.asarray(self.classes[self.codes])

    @property
    def confidence(self) -> Floats:
        """The probability of each label."""
        return np.asarray(self.posterior[np.arange(len(self.codes)), self.codes])

    @property
    def fitted(self) -> Floats:
        """The probabilities of the fit itself."""
        return self.posterior if self.uncalibrated is None else self.uncalibrated

    @property
    def mean_confidence(self) -> float:
        """The mean probability of the labels: their expected accuracy."""
        return float(self.confidence.mean())

    def numbers(self) -> list[int]:
        """Return the numbers of the parts: there is one."""
        return [0]

    def part(self, number: int) -> Labels:  # noqa: ARG002
        """Return the labels of one part: all of them."""
        return self

    def parts(self) -> Iterator[Labels]:
        """Yield the labels part by part: here, all of them."""
        yield self

    def lean(self) -> Labels:
        """Return what is needed to write the labels."""
        return self

    def list_columns(self) -> dict[str, Column]:
        """Return the columns of a table of labels: keys, label, confidence, and the probability of each class."""
        columns: dict[str, Column] = dict(self.keys)
        columns["label"] = to_column(self.values)
        columns["confidence"] = to_column(self.confidence)
        for k, name in enumerate(name_probabilities(self.classes, columns)):
            columns[name] = to_column(np.ascontiguousarray(self.posterior[:, k]))
        return columns

    def take(self, rows: NDArray[np.int64]) -> dict[str, Column]:
        """Return what identifies some of the items."""
        return {name: column.take(rows) for name, column in self.keys.items()}


class Labelled(Protocol):
    """Labels of all items, in memory or not. What is counted over items is a sum over parts."""

    @property
    def n_items(self) -> int:
        """Number of items."""

    @property
    def mean_confidence(self) -> float:
        """The mean probability of the labels."""

    def parts(self) -> Iterator[Labels]:
        """Yield the labels part by part."""


@dataclass(frozen=True)
class NoLabels:
    """Labels that are gone: those of a fit to answers on disk, which its file does not hold."""

    n_items: int
    mean_confidence: float

    def parts(self) -> Iterator[Labels]:
        """Say how to get them."""
        raise NotFittedError(
            "This model was fitted to answers on disk. Its file holds what it learned, but no answers and no labels.",
            "Fuse the answers again, and write all that you need then.",
            Sentence("Or give answers that fit in memory to {predict}.", predict=Python("predict")),
        )


class Course(NamedTuple):
    """How a fit went."""

    trace: Floats
    n_iter: int
    converged: bool
    starts: Mapping[str, Floats] = {}
    smoothing: tuple[float, float] | None = None


class Calibrated(NamedTuple):
    """How probabilities were calibrated."""

    found: Calibration
    powers: list[float]  # equally likely ones, of which `found.power` is chosen
    evidence: Evidence | None = None  # what speaks for each power; a file holds it as what a further batch needs
    hidden: Sequence[Judged] = ()  # the hidden answers of the fit; they are not saved


class Guidance(NamedTuple):
    """What features of the items were found to say."""

    findings: FeatureFindings
    names: list[str] | None  # None if they came without names
    guide: Guide | None  # None if it was not saved, or has no say
    opinions: ComparedOpinions | None  # of classifier and crowd


class Given(NamedTuple):
    """What a model was fitted to: None where there is nothing, or where a file does not hold it."""

    answers: Responses | None = None  # before near-copies count once
    gold: Gold | None = None
    graph: Graph | None = None  # as it was given
    log_prior: Floats | None = None  # what was known of the items beside their answers; it is not saved
    has_priors: bool = False


class Judgement(NamedTuple):
    """What is known of how well everything was found."""

    intervals: Intervals
    past: Past | None  # what a further batch of answers needs


@dataclass(frozen=True, eq=False)
class Fusion:
    """What a fit found. Nothing in it changes; `dataclasses.replace` makes another one."""

    model: str  # the name of the model's class
    names: Names
    n_answers: NDArray[np.int64]  # (M,): of each worker
    backend: str  # the frame library in which results are reported
    prior: Floats  # (K,)
    labelled: Labelled
    learning: Later[Learned]
    course: Course
    judging: Later[Judgement]
    copying: Later[list[list[int]]]  # groups of near-copies, by index
    copies_count_once: bool
    given: Given
    seed: int = 0
    calibrated: Calibrated | None = None  # None for models without calibration
    coupling: float | None = None
    coupling_scores: list[CouplingScore] = field(default_factory=list)
    span_confidence: Floats | None = None  # of the spans among the labels of a chain, if these are tags
    guidance: Guidance | None = None
    n_batches: int = 0  # how many `partial_fit` has learned from
    n_changes: int = 0  # answers that came or changed since the last fit that did not go on from another
    source: Source | None = None  # of answers on disk; it is not saved
    voting: Source | None = None  # of a vote: the answers as they were counted; it is not saved
    passages: Passages | None = None  # of tokens: the texts that they are in
    pictures: Pictures | None = None  # where items are pixels: the images that they are in
    checked: bool = False  # whether `fuse` has compared it with majority vote
    comparison: Any = None
    graph_check: Any = None
    update: Any = None  # what the last update changed; it is not saved

    @property
    def labels(self) -> Labels:
        """The labels, if they are in memory."""
        if isinstance(self.labelled, Labels):
            return self.labelled
        if self.source is None:
            next(self.labelled.parts())
        raise NotFittedError(
            "The labels of answers on disk are not held in memory.",
            Sentence("Write them to files with {write}.", write=Python("write(path)")),
        )

    @property
    def in_memory(self) -> bool:
        """Whether the labels are in memory."""
        return isinstance(self.labelled, Labels)

    @property
    def is_network(self) -> bool:
        """Whether items are linked by a graph."""
        return isinstance(self.learned.structure, FieldParameters)

    @property
    def learned(self) -> Learned:
        """What was learned of the workers."""
        return self.learning.value

    @property
    def intervals(self) -> Intervals:
        """Ends of intervals."""
        return self.judging.value.intervals

    @property
    def copies(self) -> list[list[int]]:
        """Groups of workers who seem to copy each other, by index."""
        return self.copying.value

    @property
    def takes_silence(self) -> bool:
        """Whether silence was an answer at the fit."""
        return bool(self.learned.confusion.shape[2] > len(self.names.labels))

    @property
    def answers(self) -> Responses:
        """The answers that the model was fitted to."""
        if self.given.answers is not None:
            return self.given.answers
        if self.source is not None:
            raise NotFittedError(
                "The answers that this model was fitted to are on disk, and not held in memory.",
                Sentence("Read them with {read}.", read=Python("read_responses")),
            )
        if not self.in_memory:
            raise NotFittedError(
                "This model was fitted to answers on disk, and its file does not hold them.",
                "Fuse the answers again, and write all that you need then.",
            )
        if self.n_batches:
            raise NotFittedError(
                "This model was fitted in batches, whose answers it does not keep.",
                "Give further answers to partial_fit, or fit all answers at once.",
            )
        raise NotFittedError(
            "The file of this model holds no answers: it was saved with answers=False.", "Fit the model again."
        )

    @property
    def n_calibrating(self) -> int | None:
        """How many known labels probabilities were calibrated by; None if they are not calibrated."""
        return None if self.calibrated is None or self.calibrated.found.given else self.calibrated.found.n_gold

    @property
    def expected_accuracy(self) -> tuple[float, float, float]:
        """Share of the labels that are right, by their probabilities, and the ends of its 95 % interval."""
        value, (low, high) = self.labelled.mean_confidence, self.intervals.expected.tolist()
        return value, min(low, value), max(high, value)


def name_probabilities(classes: Values, taken: Mapping[str, object]) -> list[str]:
    """Return the names of the columns of probabilities, none of which is taken."""
    return distinct_names([f"p({spell_surrogates(str(name))})" for name in classes.tolist()], list(taken))


def distinct_names(names: list[str], taken: Sequence[str]) -> list[str]:
    """Make column names distinct: the classes 1 and "1" have the same text."""
    seen = set(taken)
    result = []
    for name in names:
        unique, n = name, 2
        while unique in seen:
            unique, n = f"{name} ({n})", n + 1
        seen.add(unique)
        result.append(unique)
    return result
