r"""Known labels as a teacher: what they say of the workers beyond what agreement tells.

Agreement cannot tell errors that workers share from the truth. Known labels can. Let :math:`q_{nk}` be the calibrated
probabilities of an item whose label is not known, and :math:`v_{nmk}` what worker m gives to class k: 1 for the label
that was said, the probability of a soft vote. What is reported is

.. math:: p_{nk} \propto \exp\Big(a \log q_{nk} + b_k + \sum_m w_m v_{nmk}\Big)

With a = 1, b = 0 and w = 0 this is q itself. The numbers are fitted to the items of known label, with the ridge

.. math:: \tfrac{10}{2} (a - 1)^2 + \tfrac{10}{2} \sum_k b_k^2 + \tfrac{\lambda}{2} \sum_m w_m^2

for each :math:`\lambda` of `RIDGES`, where infinity leaves the weights out. Each of these candidates, and q as it is,
gets a share: proportional to exp(S), with S the cross-validated log probability of the known labels, times its share
before they were looked at, which is half for q. The numbers that are used are the means of those of the candidates,
weighted by these shares: the candidates are averaged on the scale of log odds. Where known labels are few, or say
nothing new, nearly all is left to q.

**Cross validation.** Known labels have formed the fit, so that q of their items would be too good. A fit without any
known label comes first. From there one step of EM, with the known labels of nine in ten of these items (four in five,
of many), gives the probabilities of the others; all that changes is what these items add to the counts. The candidates'
numbers without some items are one step of Newton away from those with all. Items of a sequence, and tags of a thing,
are left out together.

Labels of doubtful items teach like those that were drawn at random: what is learned is how probable classes are given
the answers, and by these the items were chosen. Each tag of a set of tags is taught by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.gold import Gold
from ..answers.random_choices import draw_numbers, draw_units, hash_ids, hash_items
from ..errors import ParameterError, Sentence, plural
from ..kernels import Floats
from ..limits import ITEMS_AT_ONCE, allocate
from .em import Fit, Parameters, Problem, infer_left_out, run_em
from .hidden_answers import raise_to
from .observations import MOST_ANSWERS, Observations

if TYPE_CHECKING:
    from .estimator import LatentEstimator

# From fewer known labels nothing is learned; of more, and of more workers, a part is enough.
LEAST_LESSONS, MOST_LESSONS, MOST_WEIGHTS = 10, 1000, 200
# So many numbers say what the known items look like: of many classes fewer items are used.
MOST_LESSON_NUMBERS = 5_000_000
# The strength of the ridge on weights, strongest first, and of that on temperature and class bias.
RIDGES, OWN_RIDGE = (np.inf, 64.0, 16.0, 4.0, 1.0), 10.0
# Folds where fewer than so many labels are known, and where there are more: then half as many do.
LESSON_FOLDS, MANY_LESSONS = 10, 100
# The share of the probabilities as they are, before known labels are looked at.
AS_THEY_ARE = 0.5
# Less probable is the same; below this gain that is expected of a step of Newton, it is the last but one; and the least
# gain per answer for which the fit without known labels goes on.
LEAST_TAUGHT, NEAR_BEST, LOOSE_TOL = 1e-6, 0.5, 1e-4
MOST_RIDGE_STEPS = 25
CHOICES = ("as they are", "temperature and class bias", "weights of workers")


@dataclass(frozen=True, eq=False)
class Teaching:
    """What known labels have taught.

    Attributes
    ----------
    scale : array (T,)
        What log probabilities are multiplied by; T is the number of tags, and 1 without tags.
    bias : array (T, K)
        What is added to those of each class.
    weights : array (T, M)
        What is added to the class that each worker says.
    shares : array (T, 3)
        How much is left to the probabilities as they are, to temperature and class bias alone, and to weights of
        workers.
    n_known : int
        How many known labels it was learned from.
    log_loss_before, log_loss, accuracy_before, accuracy : float
        By cross validation on these, without teaching and with it.
    cross_fitted : array (n, K)
        The probabilities of all items of known label, as if their own were not known.
    """

    scale: Floats
    bias: Floats
    weights: Floats
    shares: Floats
    n_known: int
    log_loss_before: float
    log_loss: float
    accuracy_before: float
    accuracy: float
    cross_fitted: Floats

    @property
    def chosen(self) -> str:
        """Which of `CHOICES` has the largest share."""
        return CHOICES[int(self.shares.mean(axis=0).argmax())]

    def __repr__(self) -> str:
        return f"<Teaching: {self.describe()}>"

    def describe(self) -> str:
        """What was chosen, and what it brought, in words."""
        taught = {
            "as they are": "little beyond what answers tell",
            "weights of workers": "how much to trust each worker",
        }
        what = taught.get(self.chosen, f"a {self.chosen}")
        return (
            f"{plural(self.n_known, 'known label')} taught {what}: on those that were left out, log loss went from "
            f"{self.log_loss_before:.3f} to {self.log_loss:.3f}, and accuracy from {self.accuracy_before:.1%} to "
            f"{self.accuracy:.1%}."
        )

    def to_record(self) -> dict[str, Any]:
        """What `--json` shows."""
        return {
            "chosen": self.chosen,
            "shares": dict(zip(CHOICES, self.shares.mean(axis=0).tolist(), strict=True)),
            "n_known": self.n_known,
            "log_loss_before": self.log_loss_before,
            "log_loss": self.log_loss,
            "accuracy_before": self.accuracy_before,
            "accuracy": self.accuracy,
            "explanation": self.describe(),
        }

    def apply(self, r: Answers, posterior: Floats, changed: NDArray[np.bool_], worker: NDArray[np.int64]) -> Floats:
        """The probabilities of all items, where those that are to be `changed` are taught.

        `worker` is the index of each worker of these answers among those of the fit, -1 for who was not there.
        """
        taught = allocate(posterior.shape)
        taught[:] = posterior
        for first in range(0, r.n_items, ITEMS_AT_ONCE):
            items = first + np.flatnonzero(changed[first : first + ITEMS_AT_ONCE])
            taught[items] = self.judge(r, posterior[items], items, worker)
        return taught

    def judge(self, r: Answers, q: Floats, items: NDArray[np.int64], worker: NDArray[np.int64]) -> Floats:
        """What probabilities q (n, K) of some items become; what is impossible stays so."""
        answers, place = r.answers_about(items)
        votes, tag = list_votes(r, answers), items % len(self.scale)
        # A worker who was not there has no weight.
        weight = np.pad(self.weights, ((0, 0), (0, 1)))[tag[place], worker[r.worker[answers]]]
        cell = place[votes.answer] * q.shape[1] + votes.klass
        said = np.bincount(cell, weight[votes.answer] * votes.size, q.size).reshape(q.shape)
        logs = self.scale[tag, None] * np.log(np.maximum(q, LEAST_TAUGHT)) + self.bias[tag] + said
        return normalise(np.where(q > 0, logs, -np.inf))


class Votes(NamedTuple):
    """What some answers give to which classes."""

    answer: NDArray[np.int64]  # the place of the answer among these
    klass: NDArray[np.int64]
    size: Floats


def list_votes(r: Answers, answers: slice | NDArray[np.int64]) -> Votes:
    """What answers give to classes; those that are no class give nothing."""
    weight = r.weights(answers)
    if r.soft is not None:
        votes = np.asarray(r.class_votes(answers), np.float64)
        answer, klass = np.nonzero(votes)
        return Votes(answer, klass, votes[answer, klass] * weight[answer])
    said = r.class_of_label[r.label[answers]].astype(np.int64)
    answer = np.flatnonzero(said >= 0)
    return Votes(answer, said[answer], weight[answer])


def normalise(logs: Floats) -> Floats:
    """Probabilities from their logarithms, up to a constant of each row."""
    p = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def compare_logs(taught: Floats, before: Floats, power: float) -> Floats:
    """What was added to log probabilities, before these were raised to a power; 0 where something is impossible."""
    possible = (taught > 0) & (before > 0)
    logs = [np.log(each, where=possible, out=np.zeros(each.shape)) for each in (taught, before)]
    return np.asarray((logs[0] - logs[1]) / power)


def list_lessons(model: LatentEstimator, observations: Observations) -> NDArray[np.int64]:
    """The items of known label to learn from, none if there are too few; if they must teach, that is an error."""
    gold, r, nothing = observations.gold, observations.responses, np.empty(0, np.int64)
    remedies: list[str | Sentence]
    if observations.teach is False or (gold is None and observations.teach is None):
        return nothing
    rows = nothing
    if gold is not None:
        rows = np.flatnonzero((gold.codes >= 0) & observations.find_answered())
    n_known, n_units = len(rows), len(np.unique(r.owners_of(rows)))
    is_large = count_most(r) < LEAST_LESSONS
    if isinstance(model.calibration, str) and model.calibration != "none" and model.max_iter > 0:
        is_one = gold is None or len(np.unique(gold.codes[rows])) == 1
        if n_units >= LEAST_LESSONS and not (is_one or is_large):
            return rows
        units = "items" if r.sequences is None else "sequences"
        remedies = [f"Give known labels of at least {LEAST_LESSONS} {units} that have answers."]
        problem = f"{plural(n_known, 'known label')} cannot teach."
        if n_units >= LEAST_LESSONS and is_large:
            problem, remedies = f"Known labels cannot teach: {r.n_classes:,} classes are too many.", []
        elif n_units >= LEAST_LESSONS:
            problem = f"All {n_known:,} known labels are the same, and cannot teach."
            remedies = ["Give known labels of other classes too."]
    else:
        problem = "Known labels cannot teach, since probabilities are not to be calibrated."
        remedies = [Sentence("Calibrate by {calibration}.", calibration="hidden answers")]
    if observations.teach:
        leave = Sentence("Or leave out {teach}." if remedies else "Leave out {teach}.")
        raise ParameterError(problem, *remedies, leave, keyword="teach")
    return nothing


def count_most(r: Answers) -> int:
    """Of how many items known labels are used."""
    return min(MOST_LESSONS, MOST_LESSON_NUMBERS // (r.n_classes * (1 + r.n_classes + min(MOST_WEIGHTS, r.n_workers))))


def learn_from_known(
    model: LatentEstimator,
    observations: Observations,
    problem: Problem,
    start: Parameters,
    fit: Fit,
    power: float,
    blind: Floats,
    rows: NDArray[np.int64],
) -> Teaching:
    """What the known labels of the items `rows` teach.

    Parameters
    ----------
    model, observations, problem, start, fit
        A fit to answers and known labels, and where it began.
    power : float
        What posteriors are raised to.
    blind : array (n, K)
        Posteriors of all items of known label, as if that were not known, by what was learned from all others.
    rows : array of int
        The items to learn from.
    """
    r, gold = observations.responses, observations.gold
    assert gold is not None
    n_tags = problem.workers.n_contexts if problem.workers.context == "tag" else 1
    # Units in random order: those of a fold are left out together.
    _, first, unit = np.unique(r.owners_of(rows), return_index=True, return_inverse=True)
    owners = r.owners_of(rows[first])
    hashes = hash_items(r.keys, owners) if r.sequences is None else hash_ids(r.sequences.ids[owners])
    place = np.argsort(np.argsort(draw_numbers(model.seed, hashes), kind="stable"), kind="stable")[unit]
    drawn = draw_units(np.arange(len(rows)), place, count_most(r) * n_tags)
    rows = rows[drawn]
    fold = place[drawn] % (LESSON_FOLDS if len(rows) < MANY_LESSONS else LESSON_FOLDS // 2)

    q = raise_to(hide_known(model, observations, problem, start, fit, rows, fold), power)
    known, n_classes = np.flatnonzero(gold.codes >= 0), q.shape[1]
    truth, crossed = gold.codes[rows], np.array(q)
    scale, bias = np.ones(n_tags), np.zeros((n_tags, n_classes))
    weights, shares = np.zeros((n_tags, r.n_workers)), np.tile([1.0, 0.0, 0.0], (n_tags, 1))
    for tag in range(n_tags):
        own = np.flatnonzero(rows % n_tags == tag)
        if len(np.unique(truth[own])) > 1:
            workers, columns = lay_out(r, rows[own], q[own])
            numbers, parts, logs = average_candidates(columns, truth[own], fold[own], bool(observations.teach))
            scale[tag], bias[tag], weights[tag, workers] = (
                numbers[0],
                numbers[1 : 1 + n_classes],
                numbers[1 + n_classes :],
            )
            shares[tag], crossed[own] = parts, normalise(logs)

    # What is known of other items is judged by what these taught.
    (loss_before, right_before), (loss, right) = (score_known(each, truth) for each in (q, crossed))
    figures = len(rows), loss_before, loss, right_before, right
    taught = Teaching(scale, bias, weights, shares, *figures, crossed)
    cross_fitted = taught.judge(r, raise_to(blind, power), known, np.arange(r.n_workers))
    cross_fitted[np.searchsorted(known, rows)] = crossed
    return replace(taught, cross_fitted=cross_fitted)


def score_known(q: Floats, truth: NDArray[np.integer[Any]]) -> tuple[float, float]:
    """The log loss of probabilities, and the accuracy of their most probable class."""
    loss = -np.log(np.maximum(q[np.arange(len(q)), truth], LEAST_TAUGHT)).mean()
    return float(loss), float(np.mean(q.argmax(axis=1) == truth))


def hide_known(
    model: LatentEstimator,
    observations: Observations,
    problem: Problem,
    start: Parameters,
    fit: Fit,
    rows: NDArray[np.int64],
    fold: NDArray[np.int64],
) -> Floats:
    """Posteriors of items of known label (n, K), as if the labels of their fold were not known."""
    r, gold = observations.responses, observations.gold
    assert gold is not None
    unknowing = problem.about(replace(observations, gold=None))
    # Of many answers, few are about items of known label: what these have taught is soon forgotten.
    start = start if r.n_responses <= MOST_ANSWERS else fit.parameters
    without = run_em(unknowing, start, model.max_iter, max(10 * model.tol, LOOSE_TOL))
    prior = without.parameters.prior.fixed()
    # The items that matter, and the statistics of all others. A network is inferred as a whole.
    part, place, others = observations, rows, problem.earlier
    if problem.graph is None:
        items = rows
        if r.sequences is not None:
            owner = r.sequences.of_items()
            items = np.flatnonzero(np.isin(owner, owner[rows]))
        part, place = observations.about(items), np.searchsorted(items, rows)
        others = unknowing.subtract(without, replace(part, gold=None))
    found = np.empty((len(rows), r.n_classes))
    for k in np.unique(fold).tolist():
        shown, hidden = place[fold != k], place[fold == k]
        codes = np.full(part.responses.n_items, -1, gold.codes.dtype)
        codes[shown] = gold.codes[rows[fold != k]]
        rest = problem.about(replace(part, gold=Gold(codes, codes >= 0)))
        rest = replace(rest, prior=prior, earlier=others)
        statistics, posterior = rest.expect(without.parameters), rest.infer(without.parameters)
        learned = rest.maximise(statistics, prior)
        found[fold == k] = infer_left_out(rest, learned, statistics, posterior, use_gold=False)[hidden]
    return found


def lay_out(r: Answers, rows: NDArray[np.int64], q: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The workers who get weights, and what each number adds to the logarithms of each item and class, (n, K, P).

    The numbers are a, b and the weights of workers. Those with most votes about these items get one.
    """
    answers, place = r.answers_about(rows)
    votes = list_votes(r, answers)
    worker = r.worker[answers][votes.answer]
    n_votes = np.bincount(worker, minlength=r.n_workers)
    workers = np.sort(np.argsort(-n_votes, kind="stable")[: min(MOST_WEIGHTS, np.count_nonzero(n_votes))])
    column = np.full(r.n_workers, -1)
    column[workers] = np.arange(len(workers))
    said, counts = np.zeros((*q.shape, len(workers))), column[worker] >= 0
    at = place[votes.answer][counts], votes.klass[counts], column[worker][counts]
    np.add.at(said, at, votes.size[counts])
    classes = np.broadcast_to(np.eye(q.shape[1]), (*q.shape, q.shape[1]))
    return workers, np.concatenate([np.log(np.maximum(q, LEAST_TAUGHT))[..., None], classes, said], axis=2)


def average_candidates(
    columns: Floats, truth: NDArray[np.integer[Any]], fold: NDArray[np.int64], must_teach: bool
) -> tuple[Floats, list[float], Floats]:
    """The numbers that known labels call for, the share of each of `CHOICES`, and cross-fitted log probabilities."""
    n_classes = columns.shape[1]
    said, directions = columns[..., 1 + n_classes :], np.eye(columns.shape[2] - 1 - n_classes)
    if len(columns) * (n_classes - 1) < len(directions):
        # Few items see few directions of many weights. The ridge is the same in all, and keeps the others at 0.
        centred = (said - said.mean(axis=1, keepdims=True)).reshape(-1, len(directions))
        left, sizes, directions = np.linalg.svd(centred, full_matrices=False)
        said, directions = (
            (left * sizes)[:, sizes > LEAST_TAUGHT].reshape(*said.shape[:2], -1),
            directions[sizes > LEAST_TAUGHT],
        )
        columns = np.concatenate([columns[..., : 1 + n_classes], said], axis=2)
    n_numbers = columns.shape[2]
    as_it_is = np.eye(n_numbers)[0]
    numbers, logs = [as_it_is], [columns[..., 0]]
    for ridge in RIDGES:
        size = n_numbers if ridge < np.inf else 1 + n_classes
        strength = np.where(np.arange(size) <= n_classes, OWN_RIDGE, ridge)
        found, left_out = fit_ridge(columns[..., :size], truth, fold, strength, numbers[-1][:size])
        numbers.append(np.pad(found, (0, n_numbers - size)))
        logs.append(left_out)
    before = np.array([AS_THEY_ARE, *[(1 - AS_THEY_ARE) / len(RIDGES)] * len(RIDGES)])
    before[: 2 if must_teach else 0] = 0.0
    prior = np.log(before, out=np.full(len(before), -np.inf), where=before > 0)
    # The shares by all items, and by those of other folds.
    scores = np.log(normalise(np.array(logs))[:, np.arange(len(truth)), truth] + LEAST_TAUGHT)
    share, crossed = normalise(prior + scores.sum(axis=1)), np.empty(columns.shape[:2])
    for k in np.unique(fold):
        own = fold == k
        by_others = normalise(prior + scores[:, ~own].sum(axis=1))
        crossed[own] = np.tensordot(by_others, np.array(logs)[:, own], 1)
    parts = [float(share[0]), float(share[1]), float(share[2:].sum())]
    mean = share @ np.array(numbers)
    weights = mean[1 + n_classes :] @ directions
    return np.append(mean[: 1 + n_classes], weights), parts, crossed


def fit_ridge(
    columns: Floats, truth: NDArray[np.integer[Any]], fold: NDArray[np.int64], strength: Floats, start: Floats
) -> tuple[Floats, Floats]:
    """The numbers t (P,) that maximise the penalised log probability of the truth, by Newton's method.

    The logarithms of the probabilities are `columns` (n, K, P) times t, up to a constant of each row. Also returned are
    these logarithms, (n, K), after a last step in which the fold of each row has no part.
    """
    n_numbers, t = columns.shape[2], start
    right, centre = np.eye(columns.shape[1])[truth], np.eye(n_numbers)[0]
    parts = [np.flatnonzero(fold == k) for k in np.unique(fold)]

    def lose(t: Floats) -> float:
        logs = columns @ t
        top = logs.max(axis=1)
        loss = np.sum(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)) - np.sum(right * logs, axis=1))
        return float(loss + 0.5 * np.sum(strength * (t - centre) ** 2))

    def bend(rows: NDArray[np.int64] | slice) -> tuple[Floats, Floats]:
        """The gradient of the loss of some rows at t, and its matrix of second derivatives."""
        own, p = columns[rows], normalise(columns[rows] @ t)
        flat, mean = own.reshape(-1, n_numbers), np.einsum("nk,nkp->np", p, own)
        return (p - right[rows]).ravel() @ flat, (flat * p.reshape(-1, 1)).T @ flat - mean.T @ mean

    is_near = False
    for _ in range(MOST_RIDGE_STEPS):
        gradient, matrix = bend(slice(None))
        slope = gradient + strength * (t - centre)
        step, size = np.linalg.solve(matrix + np.diag(strength), slope), 1.0
        is_near = bool(slope @ step < NEAR_BEST)
        while not is_near and size > LEAST_TAUGHT and lose(t - size * step) > lose(t):
            size /= 2
        t = t - size * step
        if is_near:
            break
    gradients, matrices = (np.stack(each) for each in zip(*map(bend, parts), strict=True))
    slope, matrix = gradients.sum(axis=0) + strength * (t - centre), matrices.sum(axis=0) + np.diag(strength)
    others = t - np.linalg.solve(matrix - matrices, (slope - gradients)[..., None])[..., 0]
    logs = np.empty(columns.shape[:2])
    for part, each in zip(parts, others, strict=True):
        logs[part] = columns[part] @ each
    return t - np.linalg.solve(matrix, slope), logs
