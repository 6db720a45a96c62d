r"""The sums over answers and items that intervals are made of, and what all items together say.

Class shares :math:`\pi`, and the accuracy of all workers for each class, may move together. With q the posteriors and
:math:`\Gamma` the matrices of workers, the scores for item i of the log odds of right answers to class k, shared by all
workers, and of the class shares are

.. math:: u_{ik} = q_{ik} \sum_{a \in i} ([l_a = k] - \Gamma_{m_a, kk}), \quad v_{ik} = q_{ik} - \pi_k

Their covariance :math:`S = (\sum_i s_i s_i^T + P)^{-1}`, :math:`s_i = (u_i, v_i)`, is that of the estimates. P is the
information of the workers' prior: it holds classes together and leaves the common direction free. (Where answers vary
less than the matrices expect, because nobody errs, the difference is added to P.) For sequences
:math:`S (\sum_s s_s s_s^T + P) S` is taken, with scores summed over each sequence.

Nothing is known about the log odds of a class that nobody said, so S leaves its :math:`v_k` out, and the other
:math:`v_k` are about shares among the classes that were said.

Sums over items are taken over runs of items, so that no more memory is needed than the posteriors take.

**Streams.** If answers come in batches (see `consilience.results.new_answers`), the sums are those over all batches.
Those of a batch are taken at its own posteriors and matrices.

What is kept of the batches are statistics that add up, and nothing that grows with the number of answers. With C the
statistics of all batches so far (expected counts of answers, of classes and of transitions), the next batch is fitted
as if C were counted with it, and C becomes C plus the statistics of that batch. So a worker's matrix moves by the share
of new answers among all of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import MANY, count_codes
from ..inference import sum_by
from ..inference.structures import Summary
from ..kernels import Floats, freeze, read_only
from .answer_worth import (
    Careful,
    few_units,
    given_weights,
    sum_chances,
    sum_judged,
    sum_votes,
)

# So many entries of matrices are worked on at a time.
MOST_ENTRIES = 1 << 16
# The least share of the classes that somebody said: a prior may rule all of them out.
LEAST_SHARE = 1e-100
# So many items are worked on at a time, however many classes there are.
FEWEST_ITEMS = 1 << 10
# With more classes than this, shares are judged one by one: the matrix of scores would be large.
MOST_CLASSES = 50


class Estimates(NamedTuple):
    """What was learned."""

    confusion: Floats  # (M, K, A)
    counts: Floats  # (M, L, K): expected counts of answers
    prior: Floats  # (K,)
    pseudo_counts: Floats  # (K,) or (1,): of a worker's answers about each class; see `WorkerModel`
    prior_is_known: bool
    judged: NDArray[np.bool_]  # (N,): whether answers to an item are judged by others
    careful: Careful | None = None  # of answers with weights


class Sums(NamedTuple):
    """The sums over answers and items that intervals are made of. Those of the batches of a stream add up."""

    # As `sum_chances` returns.
    chances: Floats
    # Number of the answers that something else judges, and of all.
    judged: Floats
    # What the design effect is made of; see `sum_votes`.
    votes: Floats
    # (2, 2 K, 2 K): products of scores of items, and of sequences; empty with too many classes.
    scores: Floats
    # By how much answers vary less than the matrices expect.
    lack: Floats
    # Posteriors, and their squares.
    moments: Floats
    # 1 if some answer means the class.
    meant: Floats
    # Items, and sequences.
    sizes: Floats

    def plus(self, other: Sums) -> Sums:
        """Return the sums over both; `other` are those of a later batch."""
        return Sums(
            self.chances + other.chances,
            self.judged + other.judged,
            self.votes + other.votes,
            self.scores + other.scores if self.scores.shape == other.scores.shape else np.empty((2, 0, 0)),
            self.lack + other.lack,
            self.moments + other.moments,
            np.maximum(self.meant, other.meant),
            self.sizes + other.sizes,
        )


def sum_up(r: Answers, posterior: Floats, right: Floats, found: Estimates, earlier: Sums | None = None) -> Sums:
    """Return the sums over these answers, and over those of earlier batches."""
    # With weights, what is nearly a square may be negative.
    chances = np.maximum(sum_chances(r, posterior, found.careful, found.counts), 0.0)
    total = chances if earlier is None else chances + earlier.chances
    said = count_codes(r.label, r.n_labels) > 0
    meant = find_meant(r, said) if earlier is None else find_meant(r, said) | (earlier.meant > 0)
    judged = sum_judged(r, found.judged, found.careful)
    scores, lack = sum_scores(r, posterior, right, found, meant)
    sequences = 0 if r.sequences is None else np.count_nonzero(np.diff(r.sequences.offsets))
    own = Sums(
        chances,
        judged,
        sum_votes(r, posterior, total, found.careful),
        scores,
        lack,
        np.stack([posterior.sum(axis=0), np.einsum("nk,nk->k", posterior, posterior)]),
        meant.astype(np.float64),
        np.array([len(posterior), sequences], np.float64),
    )
    return own if earlier is None else earlier.plus(own)


def right_matrix(confusion: Floats, r: Answers) -> Floats:
    """Return the probability that an answer of each worker is right, by class, (M, K)."""
    spoken = confusion[:, :, : r.n_labels].sum(axis=2)
    named = np.flatnonzero(r.label_of_class >= 0)
    right = np.zeros(confusion.shape[:2])
    right[:, named] = confusion[:, named, r.label_of_class[named]]
    return np.asarray(np.divide(right, spoken, out=np.zeros_like(right), where=spoken > 0))


def find_meant(r: Answers, said: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell which classes some answer means: a label that was given or, where it is an answer, silence."""
    meant = r.vote_shares() > 0 if r.silence_counts else np.zeros(r.n_classes, bool)
    named = np.flatnonzero(r.label_of_class >= 0)
    meant[named] |= said[r.label_of_class[named]]
    return meant


def sum_scores(
    r: Answers, posterior: Floats, right: Floats, found: Estimates, meant: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Return the products of the scores of items and of sequences, (2, 2 K, 2 K), and the lack of variance, (K,).

    Where class shares are known, scores of these are 0. With too many classes there are no products.
    """
    n_classes = len(found.prior)
    lack, expected = np.zeros(n_classes), right * (1 - right)
    if n_classes > MOST_CLASSES:
        return np.empty((2, 0, 0)), lack
    size = n_classes if found.prior_is_known else 2 * n_classes
    information, clustered = np.zeros((2, size, size))
    shares = found.prior / max(found.prior[meant].sum(), LEAST_SHARE)
    for run in cut_runs(r):
        q, votes = posterior[run], count_surprise(r, right, run)
        away = np.where(meant, q - q[:, meant].sum(axis=1, keepdims=True) * shares, 0.0)
        scores = np.concatenate([q * votes, away], axis=1)[:, :size]
        information += scores.T @ scores
        lack += np.sum(q**2 * (sum_answers(r, expected, run, power=2) - votes**2), axis=0)
        if r.sequences is not None:
            sums = sum_sequences(scores, r.sequences.offsets, run)
            clustered += sums.T @ sums
    return np.pad(np.stack([information, clustered]), ((0, 0), *[(0, 2 * n_classes - size)] * 2)), lack


def invert_scores(r: Answers, sums: Sums, right: Floats, found: Estimates) -> Floats | None:
    """Return the covariance of what all items share: log odds of right answers by class, and of class shares.

    None if there are no scores, or numbers too large.
    """
    n_classes = len(found.prior)
    if not sums.scores.size:
        return None
    size = n_classes if found.prior_is_known else 2 * n_classes
    information, clustered = sums.scores[:, :size, :size]
    answered = sums.judged[1] > 0
    held = found.pseudo_counts * (right * (1 - right))[answered].sum(axis=0)
    prior = np.zeros((size, size))
    if held.sum() > 0:
        prior[:n_classes, :n_classes] = np.diag(held) - np.outer(held, held) / held.sum()
    # Where nobody errs, scores vary less than they could: then what the matrices expect counts.
    prior[range(n_classes), range(n_classes)] += np.maximum(sums.lack, 0.0)
    information = information + prior
    if not np.isfinite(information).all():
        return None
    covariance = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
    if r.sequences is not None:
        covariance = covariance @ (clustered + prior) @ covariance * few_units(int(sums.sizes[1]))
    return np.pad(covariance, (0, 2 * n_classes - size))


def cut_runs(r: Answers) -> Iterator[slice]:
    """Yield runs of items, with about `MOST_ENTRIES` probabilities each; sequences are not cut."""
    ends = np.append(np.arange(0, r.n_items, max(FEWEST_ITEMS, MOST_ENTRIES // r.n_classes)), r.n_items)
    if r.sequences is not None:
        ends = np.unique(r.sequences.offsets[np.searchsorted(r.sequences.offsets, ends)])
    for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        yield slice(first, last)


def sum_sequences(values: Floats, offsets: NDArray[np.int64], run: slice = slice(None)) -> Floats:
    """Return the sums of the rows of each sequence that has items in a run; `values` are those of the run."""
    first = offsets[:-1][np.diff(offsets) > 0]
    begin, end, _ = run.indices(int(offsets[-1]))
    return np.asarray(np.add.reduceat(values, first[(first >= begin) & (first < end)] - begin, axis=0))


def count_surprise(r: Answers, right: Floats, run: slice = slice(None)) -> Floats:
    """Return for each item of a run the sum over its answers of [l = k] - Gamma_kk, (n, K)."""
    offsets, answers = locate_answers(r, run)
    n_items = len(offsets) - 1
    if r.n_responses >= MANY:
        from ..kernels.answers import add_votes

        votes = -sum_answers(r, right, run)
        add_votes(r.label[answers], offsets, given_weights(r, answers), read_only(r.class_of_label), votes)
        return votes
    klass = r.class_of_label[r.label[answers]]
    named = np.flatnonzero(klass >= 0)
    place = np.repeat(np.arange(n_items), np.diff(offsets))[named] * r.n_classes + klass[named]
    votes = sum_by(place, r.weights(answers)[named], n_items * r.n_classes).reshape(n_items, r.n_classes)
    return np.asarray(votes - sum_answers(r, right, run))


def sum_answers(r: Answers, values: Floats, run: slice = slice(None), power: int = 1) -> Floats:
    """Return for each item of a run the sum over its answers of `values` of their workers, times weight ** power."""
    offsets, answers = locate_answers(r, run)
    if r.n_responses >= MANY:
        from ..kernels.answers import sum_rows

        table = np.ascontiguousarray(values).reshape(len(values), -1)
        sums = np.zeros((len(offsets) - 1, table.shape[1]))
        sum_rows(r.worker[answers], offsets, given_weights(r, answers), power, read_only(table), sums)
        return sums.reshape(-1, *values.shape[1:])
    from scipy.sparse import csr_array

    shape = (len(offsets) - 1, r.n_workers)
    weight = r.weights(answers) ** power
    return np.asarray(csr_array((weight, r.worker[answers], offsets), shape=shape) @ values)


def locate_answers(r: Answers, run: slice) -> tuple[NDArray[np.int64], slice]:
    """Return where the answers to each item of a run begin and end, from 0, and which answers these are."""
    first, last, _ = run.indices(r.n_items)
    offsets = r.offsets[first : last + 1]
    return freeze(offsets - offsets[0]), slice(int(offsets[0]), int(offsets[-1]))


class Past(NamedTuple):
    """What is kept of all batches so far, beside counts of answers by worker, label and class."""

    summary: Summary  # of the structure
    sums: Sums

    def embed(self, worker: NDArray[np.int64], n_workers: int, klass: NDArray[np.int64], n_classes: int) -> Past:
        """The same for more workers and classes, whose indices among these are given."""

        def embed(array: Floats, n_before: int, place: NDArray[np.int64], size: int) -> Floats:
            """An array whose axes, but for the first `n_before`, are workers or classes."""
            before, n_axes = array.shape[:n_before], array.ndim - n_before
            embedded = np.zeros((*before, *(size,) * n_axes))
            embedded[np.ix_(*map(np.arange, before), *(place,) * n_axes)] = array
            return embedded

        classes, sums = (klass, n_classes), self.sums
        summary: dict[str, Any] = {
            name: embed(array, 0, *classes) for name, array in vars(self.summary).items() if name != "log_normaliser"
        }
        both = np.append(klass, n_classes + klass), 2 * n_classes
        return Past(
            replace(self.summary, log_normaliser=0.0, **summary),
            sums._replace(
                chances=embed(sums.chances, 1, worker, n_workers),
                judged=embed(sums.judged, 1, worker, n_workers),
                scores=embed(sums.scores, 1, *both) if sums.scores.size else sums.scores,
                lack=embed(sums.lack, 0, *classes),
                moments=embed(sums.moments, 1, *classes),
                meant=embed(sums.meant, 0, *classes),
            ),
        )
