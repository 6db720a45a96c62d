r"""What a worker model is: everything that the loop and the models ask of one, in one place.

A worker model says how a worker answers. It owns the layout of the rows (an answer is a row; see
`consilience.inference.workers.rows`), the prior of what it learns, its own columns of the worker report, and what is
saved beside the confusion matrices. Layout and prior are two objects: applying known matrices to new answers takes no
prior.

Inside, arrays are (R, L, K): for each r and class k a distribution over the labels l, so that the row of an answer is
contiguous. R is the number of workers M, or more where a worker has several matrices. Outside, confusion matrices are
(M, K, L).

**A prior that is learned** is one pair of pseudo-counts, off the diagonal and on it, for the whole crowd.
Pseudo-counts are alpha = off * A + diagonal * B + F, with parts A, B and F that depend on labels and classes alone.
Given the expected counts C of rows r (a worker, or a worker and their previous answer), the part of the variational
bound that depends on the pair is the log likelihood of Polya's urn,

    sum_rk [ log B(alpha_k + C_rk) - log B(alpha_k) ],    log B(a) = sum_l lgamma(a_l) - lgamma(sum_l a_l)

To it comes a log-normal density around `CENTRE` with a standard deviation of 1 of the logarithms, which decides where
the counts say little. A few Newton steps in the logarithms, each taken only as far as the sum rises: so the bound never
falls.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...answers.answers import Answers
from ...answers.blocks import NO_VOTES
from ...answers.columns import Column, Values
from ...answers.soft_votes import Probabilities
from ...errors import InputError, ParameterError, Python, Sentence
from ...kernels import Floats, Integers, freeze
from ...memory import NUMBER
from ...specs import ArraySpec
from .. import Distributions
from .rows import AnyFactors, Counted

# The iterations in which a prior is learned.
LEARNING = range(5, sys.maxsize, 3)
CENTRE = (0.3, 2.0)
START = (0.1, 1.1)
LEAST, MOST = np.log((0.02, 0.02)), np.log((50.0, 200.0))
# Newton steps in one call, and the gain below which another is not worth the time. The loop calls often.
MOST_STEPS, LEAST_GAIN = 3, 1e-3
# The longest step, and how often one is halved before it is given up.
LONGEST, MOST_HALVINGS = 1.0, 6
DIFFERENCE = 1e-3
# So many steps of `consilience.inference.powers.POWERS` are about a factor of a half. Classifiers are trained on alike
# data, and err alike: hidden answers, which have the same errors, call for a power about twice as large as is right.
HALF = 5
# For each label, and for each class, of an earlier fit its index.
Axes: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


class Types(NamedTuple):
    """Types of workers; see `consilience.inference.workers.types`.

    Attributes
    ----------
    pseudo_counts : array (T, L', K)
        Those of a worker of each type, for the labels that name a class.
    log_shares : array (1 or M, T)
        The logarithm of the share of workers who are of each type; or of the probability that each worker is.
    n_gone : int
        How many further types were left out.
    likely : array (M, T), optional
        Which types each worker may be of; all of them by default.
    own : float
        Where a worker answers several questions: the probability that one calls for a type of its own.
    """

    pseudo_counts: Floats
    log_shares: Floats
    n_gone: int = 0
    likely: NDArray[np.bool_] | None = None
    own: float = 1.0

    @property
    def n_types(self) -> int:
        """Number of types."""
        return len(self.pseudo_counts)


class Prior(NamedTuple):
    """What is believed of workers before any answer: pseudo-counts in the shape that the worker model learns in.

    A prior that is learned is a pair of numbers: its pseudo-counts are the sum of three parts, the first two each times
    one of them.
    """

    smoothing: Floats
    estimation: str
    pair: tuple[float, float] | None = None
    parts: tuple[Floats, Floats, Floats] | None = None
    log_density: float = 0.0  # of the pair, or of the shares of types
    types: Types | None = None
    learns: bool = False

    def is_due(self, iteration: int) -> bool:
        """Whether it is learned in this iteration: not in the first ones, whose counts are those of votes.

        Types are looked at early, so that only those that a worker may be of are looked at again.
        """
        return self.learns and (iteration in LEARNING or (iteration == 1 and self.types is not None))

    def settle(self) -> Prior:
        """Return a prior that is not learned again, for other answers of the same workers."""
        types = None if self.types is None else self.types._replace(likely=None)
        return self._replace(parts=None, types=types, learns=False)


@dataclass(frozen=True, eq=False)
class WorkerModel(ABC):
    """A worker model for one crowd: its layout of rows.

    Parameters
    ----------
    n_workers : int
        Number of workers.
    class_of_label : array
        For each label the class it names, or -1.
    n_classes : int
        Number of classes.
    silent : bool
        Whether silence is itself an answer.
    silence_weight : array (M,), optional
        How much the silence of each worker counts; their answers must have the same share.
    said : array (L,), optional
        The share of each label in the answers of the crowd, which is how answers are given without care.
    """

    n_workers: int
    class_of_label: NDArray[np.int64]
    n_classes: int
    silent: bool = False
    silence_weight: Floats | None = None
    said: Floats | None = None

    #: The value of the `workers` parameter that stands for the model.
    name: ClassVar[str]
    #: Whether silence can be an answer.
    hears_silence: ClassVar[bool] = False
    #: Whether answers must be soft votes.
    needs_votes: ClassVar[bool] = False
    #: After so many steps a fit has settled, whatever the objective says; None: it says so.
    enough_steps: ClassVar[int | None] = None
    #: By how many steps of `POWERS` the power that hidden answers call for is lowered.
    caution: ClassVar[int] = 0
    #: What the logarithms that the E-step uses, and the arrays of `further_arrays`, must look like in a file.
    log_weights_spec: ClassVar[ArraySpec]
    further_specs: ClassVar[Mapping[str, ArraySpec]] = {}

    @classmethod
    def of(cls, responses: Answers, class_of_label: NDArray[np.int64], n_classes: int) -> Self:
        """Return the model for the workers of these answers."""
        if responses.silence_counts and not cls.hears_silence:
            raise ParameterError(
                f"Workers of the kind {cls.name!r} cannot take silence for an answer.",
                Sentence("Use {workers}.", workers="confusion"),
                Sentence("Or read the answers with {abstain}.", abstain="ignore"),
                keyword="workers",
            )
        if cls.needs_votes and not responses.is_soft:
            raise ParameterError(
                f"Workers of the kind {cls.name!r} give probabilities, and these answers are labels.",
                Sentence("Use {workers}.", workers="confusion"),
                Sentence("Or read probabilities with {read}.", read=Python("Answers.from_probabilities")),
                keyword="workers",
            )
        silence = responses.silence_counts, responses.silence_weight
        return cls(responses.n_workers, class_of_label, n_classes, *silence, responses.label_shares())

    @classmethod
    def of_others(
        cls, responses: Answers, class_of_label: NDArray[np.int64], n_classes: int, silent: bool, said: Floats
    ) -> Self:
        """Return the model for the workers of other answers than those of a fit, to which it is applied."""
        return cls(responses.n_workers, class_of_label, n_classes, silent, responses.silence_weight, said)

    @property
    def n_labels(self) -> int:
        """Number of labels that workers use."""
        return len(self.class_of_label)

    @property
    def label_shares(self) -> Floats:
        """The share of each label in the answers of the crowd, (L,); equal ones where they are not known."""
        return np.full(self.n_labels, 1.0 / max(self.n_labels, 1)) if self.said is None else self.said

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_bytes(self) -> int:
        """Size of one table with an entry for each row and class."""
        return NUMBER * self.n_rows * self.n_classes

    @abstractmethod
    def describe_size(self) -> str:
        """Return in words what makes a table large, such as "300 workers x 20 labels x 20 classes"."""

    @abstractmethod
    def encode(self, responses: Answers) -> Integers:
        """Return the row of each answer."""

    def read_votes(self, responses: Answers) -> Probabilities:  # noqa: ARG002
        """Return what blocks hold of the probabilities of soft votes, (n_answers, K); nothing if labels will do."""
        return NO_VOTES

    @abstractmethod
    def votes(self) -> NDArray[np.int64]:
        """Return which class each row votes for, (n_rows,); -1 for none. Nothing if the probabilities are the votes."""

    @abstractmethod
    def prior(self, smoothing: Floats, estimation: str, unvoted: Floats) -> Prior:
        """Return the prior that pseudo-counts (1 or M, L, K) of confusion matrices stand for.

        `unvoted` (K,) are the class probabilities of an item that nobody answered. Where `smoothing` is a pair, off the
        diagonal and on it, and the latter is the larger one, pseudo-counts must be linear in the pair (with a constant
        part, if need be), whatever their shape: a pair that is learned is put together from its parts.
        """

    def pseudo_counts(self, prior: Prior) -> Floats:
        """Return how many pseudo-counts a worker has for each class, on average, (K,); (1,) if all classes share them.

        This is for a prior whose pseudo-counts are (1 or M, L, K). A model whose prior has another shape overrides it.
        """
        return np.asarray(prior.smoothing.sum(axis=1).mean(axis=0))

    @abstractmethod
    def begin_learning(self, prior: Prior, crowd: Answers) -> Prior:
        """Return the prior as it is learned: where that begins."""

    @abstractmethod
    def learn_prior(
        self,
        counts: Floats,
        mass: Floats,
        prior: Prior,
        before: Distributions | None = None,
    ) -> Prior:
        """Return a prior under which expected counts are likelier; `before` is what the E-step has used."""

    @abstractmethod
    def update(
        self,
        counts: Floats,
        mass: Floats,
        prior: Prior,
        before: Distributions | None = None,
    ) -> Distributions:
        """Return what expected counts of rows, (n_rows, K), and of classes, (K,), call for: the M-step.

        Where that is sought step by step, the search goes on from `before`.
        """

    @abstractmethod
    def factors(self, found: Distributions, weighted: bool) -> AnyFactors:
        """Return what each row contributes to the evidence."""

    @abstractmethod
    def given(self, confusion: Floats) -> Distributions:
        """Return known matrices (M, K, L) as (R, L, K), like the result of `update`."""

    @abstractmethod
    def adopt(self, known: Floats, crowd: Floats, worker: NDArray[np.int64], label: NDArray[np.int64]) -> Floats:
        """Return what a fit learned, for other answers.

        Parameters
        ----------
        known, crowd : array (R', L', K) and (1, L', K)
            What the fit learned of its workers, and of all together.
        worker, label : array
            For each worker and label of these answers its index at the fit; -1 is a worker who was not there.
        """

    @abstractmethod
    def embed_counts(
        self, counts: Floats, further: Mapping[str, Floats], worker: NDArray[np.int64], axes: Axes
    ) -> Floats:
        """Return the expected counts of rows, (n_rows, K), that a fit to fewer workers, labels and classes has kept.

        Parameters
        ----------
        counts, further
            As `plain_counts` and `further_arrays` gave them to the fitted model.
        worker : array
            For each worker of the fit its index here.
        axes : tuple of array
            The same for each label and for each class.
        """

    @abstractmethod
    def counted(self, counts: Floats, mass: Floats, prior: Prior) -> Counted:
        """Return the counts behind the matrices, for evidence that leaves items out."""

    @abstractmethod
    def plain_counts(self, counts: Floats) -> Floats:
        """Return expected counts of answers as (M, L, K)."""

    @abstractmethod
    def plain_mean(self, found: Distributions, counts: Floats, prior: Prior) -> Floats:
        """Return the confusion matrices to report, as (M, L, K)."""

    @abstractmethod
    def crowd(self, counts: Floats, mass: Floats, prior: Prior) -> Floats:
        """Return how the workers answer on the whole, (1, L, K): for one who was not there at the fit."""

    def weigh_rows(self, log_weights: Floats) -> Floats:
        """Return the log evidence of each row for each class, (n_rows, K)."""
        # Silence is no row: it would be the last answer of each.
        return np.asarray(log_weights[:, : self.n_labels].reshape(-1, self.n_classes))

    def weigh_items(self, log_weights: Floats) -> Floats:  # noqa: ARG002
        """Return the log evidence that every item with answers has, whatever they are, (K,)."""
        return np.zeros(self.n_classes)

    # What only some models have: further arrays, and further columns of the report.

    @classmethod  # noqa: B027 (most have no further arrays)
    def check_saved(cls, log_weights: Floats, further: Mapping[str, Floats], n_columns: int | None) -> None:
        """Raise a `Fault` unless arrays of a file go together; `n_columns` are those of a structure that has some."""

    @classmethod
    def read_as_before(cls, responses: Answers) -> Answers:
        """Return other answers as those of a fit were read."""
        if not cls.needs_votes or responses.is_soft:
            return responses
        if responses.n_responses:
            raise InputError(
                "The answers of the fit are probabilities, and the new ones are labels.",
                "Read the new answers as the others were read.",
            )
        return replace(responses, soft=np.empty((0, responses.n_labels), np.float32))

    def further_arrays(self, found: Distributions, counts: Floats) -> dict[str, Floats]:  # noqa: ARG002
        """Return arrays that a fitted model keeps beside its confusion matrices, by the names of its attributes."""
        return {}

    @classmethod
    def reported(cls, confusion: Floats, further: Mapping[str, Floats]) -> Floats:  # noqa: ARG003
        """Return what is reported as (R, L, K), like the result of `update`, from attributes of a fitted model."""
        return np.ascontiguousarray(confusion.transpose(0, 2, 1))

    @classmethod
    def further_columns(
        cls,
        further: Mapping[str, Floats],  # noqa: ARG003
        labels: Values,  # noqa: ARG003
        classes: Values,  # noqa: ARG003
    ) -> dict[str, Column]:
        """Return columns of the worker report that come after those of every model."""
        return {}


def make_pair(prior: Prior, parts: tuple[Floats, Floats, Floats], pair: tuple[float, float] = START) -> Prior:
    """Return the prior with pseudo-counts off * parts[0] + diagonal * parts[1] + parts[2]."""
    off, diagonal = pair
    logs = np.log(pair) - np.log(CENTRE)
    density = float(-0.5 * logs @ logs)
    smoothing = freeze(off * parts[0] + diagonal * parts[1] + parts[2])
    return Prior(smoothing, prior.estimation, pair, parts, density, learns=True)


def improve_pair(prior: Prior, counts: Floats, fixed: Floats | None = None) -> Prior:
    """Return the prior with a pair under which the counts (R, L, K) are likelier.

    Parameters
    ----------
    prior : Prior
        With the pair to start from.
    counts : array (R, L, K)
        Expected counts.
    fixed : array (R, L, K), optional
        Further pseudo-counts.
    """
    assert prior.parts is not None
    assert prior.pair is not None
    parts = prior.parts
    fixed = parts[2] if fixed is None else parts[2] + fixed

    def judge(logs: Floats) -> tuple[float, Floats]:
        return judge_pair(logs, counts, parts[:2], fixed)

    place = np.log(prior.pair)
    value, slope = judge(place)
    for _ in range(MOST_STEPS):
        step = newton_step(judge, place, slope)
        for _ in range(MOST_HALVINGS):
            further = np.clip(place + step, LEAST, MOST)
            new_value, new_slope = judge(further)
            if new_value > value:
                break
            step = step / 2
        else:
            break
        gain, place, value, slope = new_value - value, further, new_value, new_slope
        if gain < LEAST_GAIN:
            break
    off, diagonal = np.exp(place).tolist()
    return make_pair(prior, parts, (off, diagonal))


def newton_step(judge: object, place: Floats, slope: Floats) -> Floats:
    """Return the step to where the slope would vanish if it were linear; uphill, and not too long.

    A number that would go beyond its limit goes as far as that, and the other one where it is best then.
    """
    assert callable(judge)
    curvature = np.stack([(judge(place + h)[1] - slope) / DIFFERENCE for h in DIFFERENCE * np.eye(2)])
    curvature = (curvature + curvature.T) / 2
    values, vectors = np.linalg.eigh(curvature)
    # Where the sum is not concave its slope is followed, as if it were.
    step = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), 1e-6))
    step = step / max(1.0, float(np.abs(step).max()) / LONGEST)
    beyond = (place + step < LEAST) | (place + step > MOST)
    if beyond.sum() == 1:
        stopped, other = int(beyond.argmax()), int(beyond.argmin())
        step[stopped] = np.clip((place + step)[stopped], LEAST[stopped], MOST[stopped]) - place[stopped]
        rest = slope[other] + curvature[other, stopped] * step[stopped]
        step[other] = np.clip(rest / max(abs(curvature[other, other]), 1e-6), -LONGEST, LONGEST)
    return np.asarray(step)


def judge_pair(
    logs: Floats, counts: Floats, parts: tuple[Floats, Floats], fixed: Floats
) -> tuple[float, NDArray[np.float64]]:
    """Return the sum to be maximised, and its slope in the logarithms of the pair."""
    from ...kernels.answers import polya

    pair = np.exp(logs)
    slope = np.zeros(2)
    value = polya(counts, pair[0], pair[1], *parts, fixed, slope)
    away = logs - np.log(CENTRE)
    return value - 0.5 * float(away @ away), slope * pair - away
