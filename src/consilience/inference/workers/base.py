r"""What a worker model is: everything that the loop and the models ask of one, in one place.

A worker model says how a worker answers. It owns the layout of the rows (an answer is a row; see
`consilience.inference.workers.rows`), the prior of what it learns, its own columns of the worker report, and what is
saved beside the confusion matrices. Layout and prior are two objects: applying known matrices to new answers takes no
prior.

Inside, arrays are (R, L, K): for each r and class k a distribution over the labels l, so that the row of an answer is
contiguous. R is the number of workers M, or more where a worker has several matrices. Outside, confusion matrices are
(M, K, L).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...answers.answers import Answers
from ...answers.blocks import NO_VOTES
from ...answers.columns import Column, Values
from ...answers.soft_votes import Probabilities
from ...errors import InputError, ParameterError, Python, Sentence, plural
from ...kernels import Floats, Integers, freeze
from ...limits import NUMBER, allocate
from .. import Distributions, fit_distributions
from .priors import START, Prior, improve_pair, make_pair, smoothing_array
from .rows import AnyFactors, Counted, CountedRows, CountedSilence, Factors, make_factors

# For each label, and for each class, of an earlier fit its index.
Axes: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class WorkerModel:
    """How the workers of one crowd answer: here, by a confusion matrix each. Answer (m, l) is row m * L + l.

    Other worker models are classes derived from this one, and say what is different.

    Where silence is itself an answer (`silent`), matrices have one more answer, L. It needs no rows: every item starts
    from the silence of all workers, and an answer replaces its worker's silence,

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
    #: By what the power that hidden answers call for is multiplied.
    caution: ClassVar[float] = 1.0
    #: What the logarithms that the E-step uses, and the arrays of `further_arrays`, must look like in a file.
    shapes: ClassVar[Mapping[str, str | Mapping[str, str]]] = {"log_weights": "M A K: log weights", "further": {}}

    @classmethod
    def of(
        cls,
        responses: Answers,
        class_of_label: NDArray[np.int64],
        n_classes: int,
        silent: bool | None = None,
        said: Floats | None = None,
    ) -> Self:
        """Return the model for the workers of these answers.

        Where the matrices of a fit are applied to other answers, `silent` and `said` are those of the fit.
        """
        if said is None:
            cls.check_answers(responses)
            silent, said = responses.silence_counts, responses.label_shares()
        return cls(responses.n_workers, class_of_label, n_classes, bool(silent), responses.silence_weight, said)

    @classmethod
    def check_answers(cls, responses: Answers) -> None:
        """Raise an error for answers that such workers cannot give."""
        if responses.silence_counts and not cls.hears_silence:
            raise ParameterError(
                f"Workers of the kind {cls.name!r} cannot take silence for an answer.",
                Sentence("Use {workers}.", workers="confusion"),
                Sentence("Or read the answers with {abstain}.", abstain="ignore"),
                keyword="workers",
            )
        if cls.needs_votes and responses.soft is None:
            raise ParameterError(
                f"Workers of the kind {cls.name!r} give probabilities, and these answers are labels.",
                Sentence("Use {workers}.", workers="confusion"),
                Sentence("Or read probabilities with {read}.", read=Python("Answers.from_probabilities")),
                keyword="workers",
            )

    @property
    def n_labels(self) -> int:
        """Number of labels that workers use."""
        return len(self.class_of_label)

    @property
    def label_shares(self) -> Floats:
        """The share of each label in the answers of the crowd, (L,); equal ones where they are not known."""
        return np.full(self.n_labels, 1.0 / max(self.n_labels, 1)) if self.said is None else self.said

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.n_workers * self.n_labels

    @property
    def n_bytes(self) -> int:
        """Size of one table with an entry for each row and class."""
        return NUMBER * self.n_rows * self.n_classes

    def describe_size(self) -> str:
        """Return in words what makes a table large, such as "300 workers x 20 labels x 20 classes"."""
        sizes = (self.n_workers, "worker"), (self.n_labels, "label")
        return " x ".join(plural(*size) for size in sizes) + f" x {self.n_classes:,} classes"

    def limit_power(self, counts: Floats) -> Floats:
        """The largest power by expected counts of rows: equally likely limits, of which the one in the middle holds."""
        return np.ones(1)

    def encode(self, responses: Answers) -> Integers:
        """Return the row of each answer."""
        rows = allocate((responses.n_responses,), np.int32 if self.n_rows < 2**31 else np.int64)
        np.multiply(responses.worker, rows.dtype.type(self.n_labels), out=rows)
        rows += responses.label
        return rows

    def read_votes(self, responses: Answers) -> Probabilities:
        """Return what blocks hold of the probabilities of soft votes, (n_answers, K); nothing if labels will do."""
        return NO_VOTES

    def votes(self) -> NDArray[np.int64]:
        """Return which class each row votes for, (n_rows,); -1 for none. Nothing if the probabilities are the votes."""
        return np.tile(self.class_of_label, self.n_rows // self.n_labels)

    def prior(self, smoothing: Floats, estimation: str, unvoted: Floats) -> Prior:
        """Return the prior that pseudo-counts (1 or M, L, K) of confusion matrices stand for.

        `unvoted` (K,) are the class probabilities of an item that nobody answered: silence, if it is an answer, is the
        right one where nothing is to be said. Where `smoothing` is a pair, off the diagonal and on it, and the latter
        is the larger one, pseudo-counts must be linear in the pair (with a constant part, if need be), whatever their
        shape: a pair that is learned is put together from its parts.
        """
        if not self.silent:
            return Prior(smoothing, estimation)
        right, wrong = smoothing.max(axis=1, keepdims=True), smoothing.min(axis=1, keepdims=True)
        silence = np.where(unvoted > 0, right, wrong)
        return Prior(freeze(np.concatenate([smoothing, silence], axis=1)), estimation)

    def pseudo_counts(self, prior: Prior) -> Floats:
        """Return how many pseudo-counts a worker has for each class, on average, (K,); (1,) if all classes share them.

        This is for a prior whose pseudo-counts are (1 or M, L, K). A model whose prior has another shape overrides it.
        """
        return np.asarray(prior.smoothing.sum(axis=1).mean(axis=0))

    def begin_learning(self, prior: Prior, r: Answers) -> Prior:
        """Return the prior with a pair of pseudo-counts that is learned; see `consilience.inference.workers.priors`.

        Classes that no answer can mean keep the pseudo-counts of EM. Those of a learned prior may be many, and such a
        class would then be as good an explanation of any answer as the other classes.
        """
        unvoted = r.vote_shares()
        meant = (r.label_of_class >= 0) | (unvoted > 0)

        def at(off: float, diagonal: float) -> Floats:
            smoothing = smoothing_array((off, diagonal), r.class_of_label, r.n_classes, r.n_workers)
            return self.prior(np.where(meant, smoothing, START[0]), "variational", unvoted).smoothing

        # `prior` is linear in the pair as long as the diagonal is the larger one.
        low, high, both = at(1.0, 2.0), at(1.0, 3.0), at(2.0, 3.0)
        off, diagonal = both - high, high - low
        return make_pair(prior, (freeze(off), freeze(diagonal), freeze(low - off - 2.0 * diagonal)))

    def learn_prior(self, counts: Floats, mass: Floats, prior: Prior, before: Distributions | None = None) -> Prior:
        """Return a prior under which expected counts are likelier; `before` is what the E-step has used."""
        return improve_pair(prior, self._all_counts(counts, mass))

    def update(self, counts: Floats, mass: Floats, prior: Prior, before: Distributions | None = None) -> Distributions:
        """Return what expected counts of rows, (n_rows, K), and of classes, (K,), call for: the M-step.

        Where that is sought step by step, the search goes on from `before`.
        """
        return fit_distributions(self._all_counts(counts, mass), prior.smoothing, prior.estimation)

    def factors(self, found: Distributions, weighted: bool) -> AnyFactors:
        """Return what each row contributes to the evidence."""
        if not self.silent:
            return make_factors(found, weighted, self.label_shares, self.n_rows // self.n_workers)
        from ...kernels.answers import LOG_IMPOSSIBLE

        # A silence that never was stays finite: where the worker spoke it is added and taken away again.
        spoken, silence = found.log_weights[:, :-1], np.maximum(found.log_weights[:, -1:], LOG_IMPOSSIBLE)
        logs = freeze(np.ascontiguousarray((spoken - silence).reshape(-1, self.n_classes)))
        weighted_silence = silence if self.silence_weight is None else silence * self.silence_weight[:, None, None]
        return Factors(logs, freeze(weighted_silence.sum(axis=(0, 1))), True, self.label_shares, self.n_labels)

    def given(self, confusion: Floats) -> Distributions:
        """Return known matrices (M, K, L) as (R, L, K), like the result of `update`."""
        return Distributions.known(np.ascontiguousarray(confusion.transpose(0, 2, 1), dtype=np.float64))

    def adopt(self, known: Floats, crowd: Floats, worker: NDArray[np.int64], label: NDArray[np.int64]) -> Floats:
        """Return what a fit learned, for other answers.

        Parameters
        ----------
        known, crowd : array (R', L', K) and (1, L', K)
            What the fit learned of its workers, and of all together.
        worker, label : array
            For each worker and label of these answers its index at the fit; -1 is a worker who was not there.
        """
        answers = np.append(label, known.shape[1] - 1) if self.silent else label
        # Index -1 picks the last matrix, where the crowd's stands.
        return np.ascontiguousarray(np.concatenate([known, crowd])[worker][:, answers])

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
        embedded = np.zeros((self.n_workers, self.n_labels, self.n_classes))
        embedded[np.ix_(worker, *axes)] = counts
        return embedded.reshape(-1, self.n_classes)

    def counted(self, counts: Floats, mass: Floats, prior: Prior) -> Counted:
        """Return the counts behind the matrices, for evidence that leaves items out."""
        total = self._all_counts(counts, mass) + prior.smoothing
        if not self.silent:
            return count_groups(total)
        rows = np.ascontiguousarray(total[:, :-1]).reshape(-1, self.n_classes)
        return CountedSilence(rows, total[:, -1], total.sum(axis=1), self.silence_weight)

    def plain_counts(self, counts: Floats) -> Floats:
        """Return expected counts of answers as (M, L, K)."""
        return counts.reshape(self.n_workers, self.n_labels, self.n_classes)

    def plain_mean(self, found: Distributions, counts: Floats, prior: Prior) -> Floats:
        """Return the confusion matrices to report, as (M, L, K)."""
        return found.mean

    def crowd(self, counts: Floats, mass: Floats, prior: Prior) -> Floats:
        """Return how the workers answer on the whole, (1, L, K): for one who was not there at the fit."""
        total = self._all_counts(counts, mass).sum(axis=0, keepdims=True)
        return fit_distributions(total, prior.smoothing.mean(axis=0, keepdims=True), "em").mean

    def _all_counts(self, counts: Floats, mass: Floats) -> Floats:
        """Return expected counts (M, L, K) of answers, with those of silence in the end where that is one."""
        spoken = self.plain_counts(counts)
        if not self.silent:
            return spoken
        items = mass if self.silence_weight is None else mass * self.silence_weight[:, None, None]
        silence = np.maximum(items - spoken.sum(axis=1, keepdims=True), 0.0)
        return np.concatenate([spoken, silence], axis=1)

    def weigh_rows(self, log_weights: Floats) -> Floats:
        """Return the log evidence of each row for each class, (n_rows, K)."""
        # Silence is no row: it would be the last answer of each.
        return np.asarray(log_weights[:, : self.n_labels].reshape(-1, self.n_classes))

    def weigh_items(self, log_weights: Floats) -> Floats:
        """Return the log evidence that every item with answers has, whatever they are, (K,)."""
        return np.zeros(self.n_classes)

    # What only some models have: further arrays, and further columns of the report.

    @classmethod
    def check_saved(cls, log_weights: Floats, further: Mapping[str, Floats], n_columns: int | None) -> None:
        """Raise an error unless arrays of a file go together; `n_columns` are those of a structure that has some."""

    @classmethod
    def read_as_before(cls, responses: Answers) -> Answers:
        """Return other answers as those of a fit were read."""
        if not cls.needs_votes or responses.soft is not None:
            return responses
        if responses.n_responses:
            raise InputError(
                "The answers of the fit are probabilities, and the new ones are labels.",
                "Read the new answers as the others were read.",
            )
        return replace(responses, soft=np.empty((0, responses.n_labels), np.float32))

    def further_arrays(self, found: Distributions, counts: Floats) -> dict[str, Floats]:
        """Return arrays that a fitted model keeps beside its confusion matrices, by the names of its attributes."""
        return {}

    @classmethod
    def reported(cls, confusion: Floats, further: Mapping[str, Floats]) -> Floats:
        """Return what is reported as (R, L, K), like the result of `update`, from attributes of a fitted model."""
        return np.ascontiguousarray(confusion.transpose(0, 2, 1))

    @classmethod
    def further_columns(
        cls,
        further: Mapping[str, Floats],
        labels: Values,
        classes: Values,
    ) -> dict[str, Column]:
        """Return columns of the worker report that come after those of every model."""
        return {}


def count_groups(total: Floats) -> CountedRows:
    """Return counts (R, L, K) as rows and the sums that they are a share of."""
    return CountedRows(total.reshape(-1, total.shape[2]), total.sum(axis=1), total.shape[1])
