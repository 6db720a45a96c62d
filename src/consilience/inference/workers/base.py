r"""What a worker model is: everything that the loop and the models ask of one, in one place.

A worker model says how a worker answers. It owns the layout of the rows (an answer is a row; see
`consilience.inference.workers.rows`), the prior of what it learns, its own columns of the worker report, and what is
saved beside the confusion matrices. Layout and prior are two objects: applying known matrices to new answers takes no
prior.

A worker may have several matrices, one for each *context* of an answer: what the worker said before, or the tag that
the answer is about. Inside, arrays are (R, A, K): for each of the R = M C matrices of M workers in C contexts, and each
class k, a distribution over the A answers, so that the row of an answer is contiguous. The answer a of worker m in
context c is row (m C + c) A + a. Outside, confusion matrices are (M, K, A).

Rows may be about more than answers, as what is counted of soft votes is: factors see which items a block holds, and
what `count_rows` returns is added up whatever it is about. So a model whose items have parameters of their own, such as
their difficulty, has rows for these, and the loop does not change.

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
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...answers.answers import Answers, Block
from ...answers.columns import Column, Values
from ...answers.soft_votes import Probabilities
from ...errors import ParameterError, Python, Sentence, plural
from ...kernels import LOG_IMPOSSIBLE, Floats, Integers, freeze, read_only
from ...limits import allocate, are_allowed, side_by_side
from ...options import to_floats
from ..cells import Cells
from ..distributions import ENTRIES_PER_THREAD, Distributions, fit_distributions
from .rows import AnyFactors, Counted, CountedRows, Factors, RowCounts, count_answers, of_answers, shrink_rows

# For each label, and for each class, of an earlier fit its index.
Axes: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


# The iterations in which a prior is learned.
LEARNING = range(5, sys.maxsize, 3)
CENTRE = (0.3, 2.0)
START = (0.1, 1.1)
LEAST_LOG_PAIR, MOST_LOG_PAIR = np.log((0.02, 0.02)), np.log((50.0, 200.0))
# Newton steps in one call, and the gain below which another is not worth the time. The loop calls often.
MOST_STEPS, LEAST_STEP_GAIN = 3, 1e-3
# The longest step, and how often one is halved before it is given up.
LONGEST_STEP, MOST_HALVINGS = 1.0, 6


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
    """The prior of workers: pseudo-counts in the shape that the worker model learns in.

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

    def fixed(self) -> Prior:
        """A prior that is not learned again, for other answers of the same workers."""
        types = None if self.types is None else self.types._replace(likely=None)
        return self._replace(parts=None, types=types, learns=False)


def make_pair(parts: tuple[Floats, Floats, Floats], pair: tuple[float, float] = START) -> Prior:
    """The prior with pseudo-counts off * parts[0] + diagonal * parts[1] + parts[2], which is learned."""
    off, diagonal = pair
    logs = np.log(pair) - np.log(CENTRE)
    density = float(-0.5 * logs @ logs)
    smoothing = freeze(off * parts[0] + diagonal * parts[1] + parts[2])
    return Prior(smoothing, "variational", pair, parts, density, learns=True)


def improve_pair(prior: Prior, counts: Floats, fixed: Floats | None = None) -> Prior:
    """The prior with a pair under which the counts (R, L, K) are likelier, by a few steps of Newton's method.

    Parameters
    ----------
    prior : Prior
        With the pair to start from.
    counts : array (R, L, K)
        Expected counts.
    fixed : array (R, L, K), optional
        Further pseudo-counts.
    """
    from ...kernels.answers import add_polya

    assert prior.parts is not None
    assert prior.pair is not None
    constant = prior.parts[2] if fixed is None else prior.parts[2] + fixed
    parts = read_only(prior.parts[0][0]), read_only(prior.parts[1][0])
    n_rows, n_labels, n_classes = counts.shape
    sums = np.empty((n_rows, 6))

    def judge(logs: Floats) -> tuple[float, Floats, Floats]:
        """The sum to be maximised, and its slope and curvature in the logarithms of the pair."""
        pair, away = np.exp(logs), logs - np.log(CENTRE)
        off, diagonal = pair.tolist()

        side_by_side(
            lambda start, stop: add_polya(
                read_only(counts[start:stop]),
                *parts,
                read_only(constant[start:stop] if len(constant) > 1 else constant),
                off,
                diagonal,
                np.empty((3, n_labels, n_classes)),
                sums[start:stop],
            ),
            n_rows,
            ENTRIES_PER_THREAD // (n_labels * n_classes),
        )
        value, *slope, by_off, by_both, by_diagonal = sums.sum(axis=0).tolist()
        bend = np.array([[by_off, by_both], [by_both, by_diagonal]])
        return (
            value - 0.5 * float(away @ away),
            slope * pair - away,
            bend * np.outer(pair, pair) + np.diag(slope * pair - 1.0),
        )

    place = np.log(prior.pair)
    value, slope, curvature = judge(place)
    for _ in range(MOST_STEPS):
        # The step leads to where the slope would vanish if it were linear; uphill, and not too far.
        values, vectors = np.linalg.eigh(curvature)
        # Where the sum is not concave its slope is followed, as if it were.
        step = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), 1e-6))
        step = step / max(1.0, float(np.abs(step).max()) / LONGEST_STEP)
        beyond = (place + step < LEAST_LOG_PAIR) | (place + step > MOST_LOG_PAIR)
        if beyond.sum() == 1:
            # A number that would go beyond its limit goes as far as that, and the other one where it is best then.
            stopped, other = int(beyond.argmax()), int(beyond.argmin())
            step[stopped] = (
                np.clip((place + step)[stopped], LEAST_LOG_PAIR[stopped], MOST_LOG_PAIR[stopped]) - place[stopped]
            )
            rest = slope[other] + curvature[other, stopped] * step[stopped]
            step[other] = np.clip(rest / max(abs(curvature[other, other]), 1e-6), -LONGEST_STEP, LONGEST_STEP)
        for _ in range(MOST_HALVINGS):
            further = np.clip(place + step, LEAST_LOG_PAIR, MOST_LOG_PAIR)
            new_value, new_slope, new_curvature = judge(further)
            if new_value > value:
                break
            step = step / 2
        else:
            break
        gain, place, value, slope, curvature = new_value - value, further, new_value, new_slope, new_curvature
        if gain < LEAST_STEP_GAIN:
            break
    off, diagonal = np.exp(place).tolist()
    return make_pair(prior.parts, (off, diagonal))


def smoothing_array(smoothing: Any, class_of_label: NDArray[np.int64], n_classes: int, n_workers: int) -> Floats:
    """Pseudo-counts as an array (1 or M, L, K) from a float, a pair (off diagonal, diagonal) or an array.

    >>> smoothing_array((0.1, 1.1), np.array([0, 1]), 2, 5)
    array([[[1.1, 0.1],
            [0.1, 1.1]]])
    """
    shape, array = (n_classes, len(class_of_label)), to_floats(smoothing)
    if array.shape == (2,):
        array = np.where(np.arange(n_classes)[:, None] == class_of_label, array[1], array[0])
    elif array.ndim == 0:
        array = np.full(shape, float(array))
    elif array.ndim not in (2, 3):
        raise ValueError("neither a number nor a pair nor a matrix")
    matrices = array.reshape(-1, *array.shape[-2:])
    if matrices.shape[1:] != shape or len(matrices) not in (1, n_workers):
        raise ValueError(f"an array of shape (classes, labels) = {shape}, or one such matrix per worker")
    return freeze(np.ascontiguousarray(matrices.transpose(0, 2, 1)))


@dataclass(frozen=True, eq=False)
class WorkerModel:
    """How the workers of one crowd answer: here, by a confusion matrix in each context.

    Where silence is itself an answer (`silent`), matrices have one more answer, L. Every item starts from the silence
    of all workers, and an answer replaces its worker's silence,

        log b_nk = sum_m log Gamma_m[k, L] + sum over answers (log Gamma_m[k, l] - log Gamma_m[k, L])

    and a worker's expected count of silence is what is left of all items.

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
    n_contexts : int
        Number of matrices of a worker; where contexts are previous answers, it follows from the labels.

    Attributes
    ----------
    n_labels : int
        Number of labels that workers use.
    n_answers : int
        Number of rows of a matrix: labels, silence where it is an answer, and what else a model counts.
    n_rows : int
        Number of rows of all matrices.
    """

    n_workers: int
    class_of_label: NDArray[np.int64]
    n_classes: int
    silent: bool = False
    silence_weight: Floats | None = None
    n_contexts: int = 1
    n_labels: int = field(init=False)
    n_answers: int = field(init=False)
    n_rows: int = field(init=False)

    #: The value of the `workers` parameter that stands for the model.
    name: ClassVar[str]
    #: Whether silence can be an answer.
    hears_silence: ClassVar[bool] = False
    #: Whether answers must be soft votes.
    needs_votes: ClassVar[bool] = False
    #: After so many steps a fit has settled, whatever the objective says; None: it says so.
    enough_steps: ClassVar[int | None] = None
    #: By what the power that hidden answers call for is multiplied.
    caution: ClassVar[float] = 1.0
    #: Where there are contexts, what they are: beside the confusion matrices over all contexts, those of each are kept.
    context: ClassVar[str] = ""
    #: Whether contexts are what a worker said before: each label, and nothing.
    follows_answers: ClassVar[bool] = False
    #: In a word or two who they are, for the report; "" where it goes without saying.
    words: ClassVar[str] = ""
    #: Whether of each worker the chances of a right, a wrong and any other answer are kept, (M, 3, 1), and no matrix.
    accuracy_alone: ClassVar[bool] = False
    #: Whether they rate: biases are reported, and how far off labels are.
    are_raters: ClassVar[bool] = False
    #: Whether it is reported how sure they are of their soft votes.
    reports_sureness: ClassVar[bool] = True
    #: Whether workers have skills that several questions share; of workers of types.
    shares_skills: ClassVar[bool] = False
    #: Where matrices of types may be too many for the answers: of how many.
    n_types: ClassVar[int] = 0
    #: Unless smoothing is a number, so many items at least are added to each class, with more classes than so many.
    added_items: ClassVar[tuple[float, int]] = (0.0, 0)
    #: What is counted of each worker beside labels and silence, in rows of their own.
    n_further_rows: ClassVar[int] = 0
    #: What the logarithms that the E-step uses, and the arrays of `further_arrays`, must look like in a file.
    shapes: ClassVar[Mapping[str, str | Mapping[str, str]]] = {"log_weights": "M A K: log weights", "further": {}}

    def __post_init__(self) -> None:
        n_labels = len(self.class_of_label)
        n_contexts = n_labels + 1 if self.follows_answers else self.n_contexts
        n_answers = n_labels + self.silent + self.n_further_rows
        computed = {"n_labels": n_labels, "n_contexts": n_contexts, "n_answers": n_answers}
        vars(self).update(computed, n_rows=self.n_workers * n_contexts * n_answers)

    @classmethod
    def of(
        cls, responses: Answers, class_of_label: NDArray[np.int64], n_classes: int, silent: bool | None = None
    ) -> Self:
        """The model for the workers of these answers; an error for answers that such workers cannot give.

        `silent` is that of a fit whose matrices are applied to the answers.
        """
        silence_counts = responses.silence_counts if silent is None else silent
        if silent is None and silence_counts and not cls.hears_silence:
            raise ParameterError(
                f"Workers of the kind {cls.name!r} cannot take silence for an answer.",
                Sentence("Use {workers}.", workers="confusion"),
                Sentence("Or read the answers with {abstain}.", abstain="ignore"),
                keyword="workers",
            )
        if cls.needs_votes and responses.soft is None and responses.n_responses:
            raise ParameterError(
                f"Workers of the kind {cls.name!r} give probabilities, and these answers are labels.",
                Sentence("Use {workers}.", workers="confusion"),
                Sentence("Or read probabilities with {read}.", read=Python("Answers.from_probabilities")),
                keyword="workers",
            )
        return cls(responses.n_workers, class_of_label, n_classes, silence_counts, responses.silence_weight)

    @classmethod
    def are_too_many(cls, crowd: Answers) -> bool:
        """Whether the matrices of all types, for each worker, are too many for so few answers."""
        n_entries = cls.n_types * crowd.n_workers * crowd.n_labels * crowd.n_classes
        return not are_allowed(0, "ordinal entries", n_entries, crowd.n_responses)

    @property
    def places(self) -> Floats:
        """Where the classes are on the scale of raters, (K,)."""
        return np.arange(self.n_classes, dtype=np.float64)

    # ------------------------------------------------------------------------------------------------------ the layout

    def describe_size(self) -> str:
        """What makes a table large, such as "300 workers x 20 labels x 20 classes"."""
        sizes = [(self.n_workers, "worker"), (self.n_labels, "label")]
        if self.context:
            sizes.insert(1, (self.n_contexts, "previous answer" if self.follows_answers else self.context))
        return " x ".join(plural(*size) for size in sizes) + f" x {self.n_classes:,} classes"

    def find_contexts(self, responses: Answers) -> Integers:
        """The context of each answer."""
        raise NotImplementedError

    def _match_contexts(self, label: NDArray[np.int64], n_labels: int) -> NDArray[np.int64]:
        """The index of each context among those of `n_labels` other labels; `label` is the same of labels."""
        return np.append(label, n_labels) if self.follows_answers else np.arange(self.n_contexts)

    def encode(self, responses: Answers) -> Integers:
        """The row of each answer."""
        rows = allocate((responses.n_responses,), np.int32 if self.n_rows < 2**31 else np.int64)
        number = rows.dtype.type
        np.multiply(responses.worker, number(self.n_contexts * self.n_answers), out=rows)
        if self.context:
            rows += (self.find_contexts(responses) * self.n_answers).astype(number)
        rows += responses.label
        return rows

    def read_votes(self, responses: Answers) -> Probabilities:
        """The probabilities of soft votes, (n_answers, K), as blocks hold them, where a model needs them."""
        raise NotImplementedError

    def votes(self) -> NDArray[np.int64]:
        """Which class each answer of a matrix votes for; -1 for none. Nothing if the probabilities are the votes."""
        choice = np.full(self.n_answers, -1)
        choice[: self.n_labels] = self.class_of_label
        return choice

    @property
    def table_shape(self) -> tuple[int, int]:
        """The shape of the table of expected counts: a row for each kind of answer, with a column for each class."""
        return self.n_rows, self.n_classes

    def count(self, block: Block, posterior: Floats) -> RowCounts:
        """The expected counts of the answers of a block."""
        return count_answers(block, posterior)

    def by_matrix(self, counts: Floats) -> Floats:
        """Expected counts of labels, and of silence, from those of rows, (n_rows, K), as (R, A, K)."""
        rows = counts.reshape(-1, self.n_answers, self.n_classes)
        return np.ascontiguousarray(rows[:, : self.n_labels + self.silent])

    def count_silence(self, counts: Floats, mass: Floats) -> None:
        """Write expected counts of silence into those of rows: what is left of the items of each class, (K,)."""
        rows = counts.reshape(-1, self.n_answers, self.n_classes)
        items = mass if self.silence_weight is None else mass * self.silence_weight[:, None]
        rows[:, -1] = np.maximum(items - rows[:, :-1].sum(axis=1), 0.0)

    # -------------------------------------------------------------------------------------------------- what is learned

    def prior(self, smoothing: Floats, estimation: str, unvoted: Floats, learn: bool = False) -> Prior:
        """What pseudo-counts (1 or M, L, K) of confusion matrices stand for; or, to `learn`, a pair to start from.

        `unvoted` (K,) are the class probabilities of an item that nobody answered. Classes that no answer can mean keep
        the pseudo-counts of EM. Those of a learned prior may be many, and such a class would then be as good an
        explanation of any answer as the other classes.
        """
        if not learn:
            return Prior(freeze(self.shape_smoothing(smoothing, unvoted)), estimation)
        right = self.class_of_label[:, None] == np.arange(self.n_classes)
        meant = right.any(axis=0) | (unvoted > 0)
        # Pseudo-counts are linear in the pair as long as the diagonal is the larger one.
        low, high, both = (
            self.shape_smoothing(np.where(meant, np.where(right, diagonal, off), START[0])[None], unvoted)
            for off, diagonal in ((1.0, 2.0), (1.0, 3.0), (2.0, 3.0))
        )
        off, diagonal = both - high, high - low
        return make_pair((freeze(off), freeze(diagonal), freeze(low - off - 2.0 * diagonal)))

    def shape_smoothing(self, smoothing: Floats, unvoted: Floats) -> Floats:
        """Pseudo-counts of confusion matrices in the shape that the model learns in, (1 or M, A, K).

        Where `smoothing` is a pair, off the diagonal and on it, and the latter is the larger one, they must be linear
        in the pair, with a constant part if need be. Silence, if it is an answer, is the right one where nothing is to
        be said: about items of the classes that `unvoted` names.
        """
        if not self.silent:
            return smoothing
        right, wrong = smoothing.max(axis=1, keepdims=True), smoothing.min(axis=1, keepdims=True)
        return np.concatenate([smoothing, np.where(unvoted > 0, right, wrong)], axis=1)

    def learn_prior(self, counts: Floats, prior: Prior) -> Prior:
        """A prior under which expected counts are likelier."""
        return improve_pair(prior, self.by_matrix(counts))

    def update(self, counts: Floats, prior: Prior) -> Distributions:
        """The M-step: distributions by expected counts of rows, (n_rows, K)."""
        return fit_distributions(self.by_matrix(counts), prior.smoothing, prior.estimation)

    def factors(self, log_weights: Floats) -> AnyFactors:
        """The contribution of each row to the evidence."""
        from ...kernels.answers import SMALLEST

        if self.silent:
            # A silence that never was stays finite: where the worker spoke it is added and taken away again.
            silence = np.maximum(log_weights[:, -1:], LOG_IMPOSSIBLE)
            logs = np.ascontiguousarray(log_weights - silence).reshape(-1, self.n_classes)
            weighted = silence if self.silence_weight is None else silence * self.silence_weight[:, None, None]
            return Factors(freeze(logs), freeze(weighted.sum(axis=(0, 1))), None)
        logs = log_weights.reshape(-1, self.n_classes)
        # Exact zeros may be multiplied; what is positive and tiny would leave the range of doubles.
        tiny = bool(np.any(np.isfinite(logs) & (logs < np.log(SMALLEST))))
        return Factors(logs, freeze(np.zeros(self.n_classes)), None if tiny else np.exp(logs))

    def counted(self, counts: Floats, prior: Prior) -> Counted:
        """The counts behind the matrices, for evidence that leaves items out."""
        total = self.by_matrix(counts) + prior.smoothing
        return CountedRows(total, total.sum(axis=1), self.silent, self.silence_weight)

    def limit_power(self, counts: Floats) -> Floats:
        """The largest power by expected counts of rows: equally likely limits, of which the one in the middle holds."""
        return np.ones(1)

    # ------------------------------------------------------------------------------------------------- what is reported

    def predict(self, mean: Floats, worker: Integers, label: Integers) -> Floats:
        """The probabilities (n, K) of answers, by the matrices that are reported."""
        return np.asarray(mean[worker, label])

    def shrink(self, counts: Floats, worker: Integers, label: Integers) -> Floats:
        """The probabilities (n, K) of answers from expected counts; those of each worker shrunk towards the crowd's."""
        return shrink_rows(self.plain_counts(counts), worker, label)

    def judge_by_others(
        self, block: Block, posterior: Floats, judged: NDArray[np.bool_], log_weights: Floats, shares: Floats
    ) -> RowCounts:
        """Where there is an accuracy alone, sums by worker; see `consilience.results.chance.count_by_others`."""
        raise NotImplementedError

    def tabulate(self, r: Answers, posterior: Floats) -> Cells | None:
        """How often each worker gave each label to items of each class, where `plain_counts` are not that."""
        return None

    @classmethod
    def matrices(cls, confusion: Floats, further: Mapping[str, Floats], n_classes: int) -> Floats:
        """The confusion matrices (M, K, A), from what a fit has kept of them."""
        return confusion

    def plain_counts(self, counts: Floats) -> Floats:
        """Expected counts of answers, whatever the context, as (M, L, K)."""
        by_context = self.by_matrix(counts).reshape(self.n_workers, self.n_contexts, -1, self.n_classes)
        return np.ascontiguousarray(by_context.sum(axis=1)[:, : self.n_labels])

    def plain_mean(self, distributions: Distributions, counts: Floats, prior: Prior) -> Floats:
        """The confusion matrices to report, as (M, A, K): those over all contexts."""
        if not self.context:
            return distributions.mean
        return fit_distributions(self.plain_counts(counts), prior.smoothing, "em").mean

    def crowd(self, counts: Floats, prior: Prior) -> Floats:
        """How the workers answer on the whole, (1, A, K): for one who was not there at the fit."""
        total = self.by_matrix(counts).sum(axis=0, keepdims=True)
        return fit_distributions(total, prior.smoothing.mean(axis=0, keepdims=True), "em").mean

    def log_answers(self, block: Block, log_weights: Floats) -> Floats:
        """The log evidence of each answer of a block for each class, (n_answers, K)."""
        return of_answers(block, log_weights.reshape(-1, self.n_classes)[block.rows][block.codes])

    def weigh_items(self, log_weights: Floats) -> Floats:
        """The log evidence that every item with answers has, whatever they are, (K,)."""
        return np.zeros(self.n_classes)

    def further_arrays(self, distributions: Distributions, counts: Floats) -> dict[str, Floats]:
        """Arrays that a fitted model keeps beside its confusion matrices, by the names of its attributes."""
        if not self.context:
            return {}
        shape = self.n_workers, self.n_contexts, self.n_answers, self.n_classes
        by_context = np.ascontiguousarray(distributions.mean.reshape(shape).transpose(0, 1, 3, 2))
        return {f"{self.context}_confusion_": by_context, f"_{self.context}_counts": counts.reshape(shape)}

    @classmethod
    def further_columns(cls, further: Mapping[str, Floats], labels: Values, classes: Values) -> dict[str, Column]:
        """Columns of the worker report that come after those of every model."""
        return {}

    # ------------------------------------------------------------------------------ what was learned, for other answers

    @classmethod
    def reported(cls, confusion: Floats, further: Mapping[str, Floats]) -> Floats:
        """What is reported as (R, A, K), like the result of `update`, from attributes of a fitted model."""
        matrices = further[f"{cls.context}_confusion_"] if cls.context else confusion
        matrices = matrices.reshape(-1, *matrices.shape[-2:])
        return np.ascontiguousarray(matrices.transpose(0, 2, 1))

    def given(self, confusion: Floats) -> Distributions:
        """Known matrices (M, K, A), the same in all contexts, as (R, A, K), like the result of `update`."""
        matrices = np.ascontiguousarray(confusion.transpose(0, 2, 1), dtype=np.float64)
        return Distributions.known(np.repeat(matrices, self.n_contexts, axis=0))

    def adopt(self, known: Floats, crowd: Floats, worker: NDArray[np.int64], label: NDArray[np.int64]) -> Floats:
        """The parameters of a fit, in the order of the workers and labels of other answers.

        Parameters
        ----------
        known, crowd : array (R', A', K) and (1, A', K)
            What the fit learned of its workers, and of all together.
        worker, label : array
            For each worker and label of these answers its index at the fit; -1 is a worker who was not there.
        """
        n_labels = known.shape[1] - self.silent
        n_contexts = n_labels + 1 if self.follows_answers else self.n_contexts
        own = known.reshape(-1, n_contexts, *known.shape[1:])
        # Index -1 picks the last worker, where the crowd stands.
        every = np.concatenate([own, np.repeat(crowd, n_contexts, axis=0)[None]])[worker]
        answers = np.append(label, n_labels) if self.silent else label
        chosen = every[:, self._match_contexts(label, n_labels)][:, :, answers]
        return np.ascontiguousarray(chosen.reshape(-1, *chosen.shape[2:]))

    def embed_counts(
        self, counts: Floats, further: Mapping[str, Floats], worker: NDArray[np.int64], axes: Axes
    ) -> Floats:
        """The expected counts of rows, (n_rows, K), that a fit to fewer workers, labels and classes has kept.

        Parameters
        ----------
        counts, further
            As `plain_counts` and `further_arrays` gave them to the fitted model.
        worker : array
            For each worker of the fit its index here.
        axes : tuple of array
            The same for each label and for each class.
        """
        embedded = np.zeros((self.n_workers, self.n_contexts, self.n_answers, self.n_classes))
        by_context = further[f"_{self.context}_counts"] if self.context else counts[:, None]
        embedded[np.ix_(worker, self._match_contexts(axes[0], self.n_labels), *axes)] = by_context
        return embedded.reshape(-1, self.n_classes)


class ConfusionWorkers(WorkerModel):
    """Worker m answers l when the truth is k with probability Gamma_m[k, l], whatever was answered before."""

    name: ClassVar[str] = "confusion"
    hears_silence: ClassVar[bool] = True
