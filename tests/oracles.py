"""Slow, obviously right twins of the fast code: dense arrays, plain loops, logarithms, enumeration.

A crowd is dense here: `votes[item, worker, label]` holds weights (1 for an answer, 0 for none). Tables of workers are
`confusion[worker, truth, answer]`, as users see them. Nothing of the library is used but `Answers`, as data.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from consilience import Answers

IMPOSSIBLE = -690.0  # the price of answers that no class allows

# The parameters with which models are what these twins are: nothing is learned beside the model, and posteriors are
# those of the fit.
PLAIN = {"smoothing": (0.1, 1.1), "calibration": "none"}


# ------------------------------------------------------------------------------------------------------------- crowds


def spread_answers(votes):
    """Return `Answers` whose answers are each spread over labels by weights; NaN is no answer."""
    item, worker, label = np.nonzero(np.nan_to_num(votes) > 0)
    table = {"item": item, "worker": worker, "label": label, "weight": votes[item, worker, label]}
    n_items, n_workers, n_labels = votes.shape
    r = Answers.from_frame(table, weight="weight", items=np.arange(n_items), classes=np.arange(n_labels))
    assert r.n_workers == n_workers
    return r


def simulate(
    seed, n_items=60, n_workers=6, n_classes=3, share=0.8, skill=(0.5, 0.9), prior=None, n_labels=None, spread=5.0
):
    """Draw a crowd: (matrix of labels with -1 for none, truth, prior, confusion). Every item has an answer."""
    rng = np.random.default_rng(seed)
    n_labels = n_classes if n_labels is None else n_labels
    prior = rng.dirichlet(np.full(n_classes, 5.0)) if prior is None else np.asarray(prior, float)
    truth = rng.choice(n_classes, n_items, p=prior)
    right = rng.uniform(*skill, (n_workers, n_classes))
    confusion = np.zeros((n_workers, n_classes, n_labels))
    for m, k in np.ndindex(n_workers, n_classes):
        others = np.delete(np.arange(n_labels), k)
        confusion[m, k, k] = right[m, k] if len(others) else 1.0
        if len(others):
            confusion[m, k, others] = (1 - right[m, k]) * rng.dirichlet(np.full(len(others), spread))
    answers = np.full((n_items, n_workers), -1)
    for i, m in np.ndindex(n_items, n_workers):
        answers[i, m] = rng.choice(n_labels, p=confusion[m, truth[i]])
    silent = rng.random(answers.shape) > share
    silent[np.arange(n_items), rng.integers(n_workers, size=n_items)] = False
    answers[silent] = -1
    return answers, truth, prior, confusion


def densify(responses):
    """Return votes[item, worker, label] of `Answers`; weights sum to the effective number of answers."""
    votes = np.zeros((responses.n_items, responses.n_workers, responses.n_labels))
    for i in range(responses.n_items):
        for j in range(responses.offsets[i], responses.offsets[i + 1]):
            weight = 1.0 if responses.weight is None else responses.weight[j]
            votes[i, responses.worker[j], responses.label[j]] += weight
    if responses.weight is None or responses.silence_counts:
        return votes
    whole = votes.sum(axis=2)
    return votes * whole.sum() / (whole**2).sum()


def log_answers(votes, log_confusion):
    """Return the log likelihood of each worker's answers, [item, worker, class], each to the power of its vote."""
    logs = log_confusion.transpose(0, 2, 1)[None]  # [item, worker, label, class]
    powers = np.broadcast_to(votes[:, :, :, None], (*votes.shape, logs.shape[3]))
    return np.multiply(powers, logs, out=np.zeros(powers.shape), where=powers > 0).sum(axis=2)


# ------------------------------------------------------------------------------------------------------------ kernels


def log_evidence(codes, offsets, weight, log_table, log_base):
    """Return sum_j w_j log_table[codes[j], k] + log_base[k] for each item, summed exactly."""
    n_items, n_classes = len(offsets) - 1, log_table.shape[1]
    out = np.empty((n_items, n_classes))
    for i, k in np.ndindex(n_items, n_classes):
        terms = [log_base[k]]
        for j in range(offsets[i], offsets[i + 1]):
            terms.append((weight[j] if len(weight) else 1.0) * log_table[codes[j], k])
        out[i, k] = -math.inf if -math.inf in terms else math.fsum(terms)
    return out


def scaled_evidence(codes, offsets, gold, weight, log_table, log_base):
    """Return (evidence with the largest entry of each row 1, sum of the logs of what rows were divided by)."""
    logs = log_evidence(codes, offsets, weight, log_table, log_base)
    out, scales = np.empty_like(logs), []
    for i, row in enumerate(logs):
        if len(gold) and gold[i] >= 0:
            out[i] = np.arange(len(row)) == gold[i]
            scales.append(row[gold[i]] if row[gold[i]] > -np.inf else IMPOSSIBLE)
        elif row.max() == -np.inf:
            out[i] = 1.0
            scales.append(IMPOSSIBLE)
        else:
            out[i] = np.exp(row - row.max())
            scales.append(row.max())
    return out, math.fsum(scales)


def count_answers(codes, offsets, weight, posterior, n_rows):
    """Return expected counts of rows."""
    out = np.zeros((n_rows, posterior.shape[1]))
    for i in range(len(offsets) - 1):
        for j in range(offsets[i], offsets[i + 1]):
            out[codes[j]] += (weight[j] if len(weight) else 1.0) * posterior[i]
    return out


def dirichlet_logs(counts, smoothing):
    """Return (E[log theta] along axis 1, minus the divergence to the prior), from the definitions."""
    total = counts + smoothing
    logs = special.digamma(total) - special.digamma(total.sum(axis=1, keepdims=True))

    def log_beta(a):
        return special.gammaln(a).sum(axis=1, keepdims=True) - special.gammaln(a.sum(axis=1, keepdims=True))

    smoothing = np.broadcast_to(smoothing, total.shape)
    divergence = log_beta(smoothing) - log_beta(total) + np.sum((total - smoothing) * logs, axis=1, keepdims=True)
    return logs, -float(divergence.sum())


# ----------------------------------------------------------------------------------------------------- Dawid and Skene


class DenseFit(NamedTuple):
    posterior: np.ndarray
    prior: np.ndarray
    confusion: np.ndarray  # (M, K, L), mean
    trace: np.ndarray
    log_confusion: np.ndarray  # (M, K, L), as the E-step uses them
    log_prior: np.ndarray


def vote_shares(votes, class_of_label, n_classes, gold=None):
    """Return each item's vote shares; the overall shares where nobody voted; gold where it is known."""
    tally = np.zeros((len(votes), n_classes))
    for label, k in enumerate(class_of_label):
        if k >= 0:
            tally[:, k] += votes[:, :, label].sum(axis=1)
    overall = tally.sum(axis=0)
    overall = overall / overall.sum() if overall.sum() > 0 else np.full(n_classes, 1 / n_classes)
    shares = np.array([row / row.sum() if row.sum() > 0 else overall for row in tally])
    return fix_gold(shares, gold)


def fix_gold(posterior, gold):
    if gold is not None:
        for i, g in enumerate(gold):
            if g >= 0:
                posterior[i] = np.arange(posterior.shape[1]) == g
    return posterior


def smoothing_table(smoothing, class_of_label, n_classes, n_workers):
    """Return pseudo-counts [worker, truth, answer] from what users may give."""
    n_labels = len(class_of_label)
    table = np.zeros((n_workers, n_classes, n_labels))
    if np.ndim(smoothing) >= 2:
        return table + np.asarray(smoothing)
    off, on = smoothing if np.ndim(smoothing) == 1 else (smoothing, smoothing)
    for k, label in np.ndindex(n_classes, n_labels):
        table[:, k, label] = on if class_of_label[label] == k else off
    return table


def dense_posterior(votes, log_confusion, log_prior, gold=None):
    """Return (posterior, sum of log normalisers) by the formula, in logarithms."""
    joint = log_prior + log_answers(votes, log_confusion).sum(axis=1)
    if gold is not None:
        for i, g in enumerate(gold):
            if g >= 0:
                joint[i, np.arange(joint.shape[1]) != g] = -np.inf
    log_normaliser = special.logsumexp(joint, axis=1)
    return np.exp(joint - log_normaliser[:, None]), float(math.fsum(log_normaliser))


def fit_dense(
    votes,
    class_of_label,
    n_classes,
    *,
    n_iter,
    estimation="em",
    smoothing=(0.1, 1.1),
    prior="learn",
    gold=None,
    start=None,
):
    """Dawid and Skene by EM (for the mode) or variational Bayes, from vote shares or from posteriors `start`."""
    pseudo = smoothing_table(smoothing, class_of_label, n_classes, votes.shape[1])
    fixed = None if isinstance(prior, str) and prior == "learn" else prior
    if isinstance(fixed, str):
        fixed = np.full(n_classes, 1 / n_classes)
    posterior = vote_shares(votes, class_of_label, n_classes, gold) if start is None else start
    trace = []
    for _ in range(n_iter + 1):
        counts = np.einsum("iml,ik->mkl", votes, posterior)
        total = counts + pseudo
        mass = posterior.sum(axis=0) + pseudo.min()
        with np.errstate(divide="ignore", invalid="ignore"):
            confusion = total / total.sum(axis=2, keepdims=True)
            crowd = counts.sum(axis=0) / counts.sum(axis=(0, 2))[:, None]
        crowd = np.where(np.isnan(crowd), 1 / votes.shape[2], crowd)
        confusion = np.where(np.isnan(confusion), crowd, confusion)
        mean = mass / mass.sum() if fixed is None else np.asarray(fixed, float)
        with np.errstate(divide="ignore"):
            log_confusion, log_prior = np.log(confusion), np.log(mean)
        if estimation == "em":
            bound = np.sum(pseudo[pseudo > 0] * log_confusion[pseudo > 0])
            if fixed is None and pseudo.min() > 0:
                bound += pseudo.min() * log_prior.sum()
        else:
            logs, bound = dirichlet_logs(counts.transpose(0, 2, 1), pseudo.transpose(0, 2, 1))
            log_confusion = logs.transpose(0, 2, 1)
            if fixed is None:
                shape = (1, n_classes, 1)
                logs, more = dirichlet_logs(posterior.sum(axis=0).reshape(shape), np.full(shape, pseudo.min()))
                log_prior, bound = logs.ravel(), bound + more
        posterior, log_normaliser = dense_posterior(votes, log_confusion, log_prior, gold)
        trace.append(log_normaliser + float(bound))
    return DenseFit(posterior, mean, confusion, np.array(trace), log_confusion, log_prior)


# -------------------------------------------------------------------------------------------------------- enumeration


def labelings(n_items, n_classes, gold=None):
    """Yield every labeling of the items that agrees with the gold."""
    choices = [range(n_classes) if gold is None or gold[i] < 0 else (int(gold[i]),) for i in range(n_items)]
    return itertools.product(*choices)


def log_joint(labeling, logs, log_prior):
    """Return log p(y, answers) of one labeling, from the logs of `log_answers`."""
    return sum(log_prior[k] + logs[i, :, k].sum() for i, k in enumerate(labeling))


def enumerate_posterior(votes, confusion, prior, gold=None):
    """Return (marginals, log p(answers)) by summing p(y, answers) over all K^N labelings y."""
    with np.errstate(divide="ignore"):
        log_confusion, log_prior = np.log(confusion), np.log(prior)
    every, logs = list(labelings(len(votes), len(prior), gold)), log_answers(votes, log_confusion)
    logs = np.array([log_joint(y, logs, log_prior) for y in every])
    log_total = special.logsumexp(logs)
    marginals = np.zeros((len(votes), len(prior)))
    for y, value in zip(every, np.exp(logs - log_total), strict=True):
        marginals[np.arange(len(votes)), list(y)] += value
    return marginals, float(log_total)


def log_evidence_of_answers(votes, pseudo, prior_pseudo, gold=None):
    """Return log p(answers), confusion matrices and class prior integrated out in closed form, labelings enumerated."""

    def log_beta(a):
        return special.gammaln(a).sum(axis=-1) - special.gammaln(a.sum(axis=-1))

    logs = []
    for y in labelings(len(votes), pseudo.shape[1], gold):
        one_hot = np.eye(pseudo.shape[1])[list(y)]
        counts = np.einsum("iml,ik->mkl", votes, one_hot)
        answers = np.sum(log_beta(pseudo + counts) - log_beta(pseudo))
        classes = log_beta(prior_pseudo + one_hot.sum(axis=0)) - log_beta(prior_pseudo)
        logs.append(answers + classes)
    return float(special.logsumexp(logs))


def evidence_lower_bound(votes, posterior, pseudo, prior_pseudo, dirichlet, prior_dirichlet):
    """Return E_q[log p(answers, y, theta)] + H(q(y)) + H(q(theta)), term by term.

    q(y) is the product of the rows of `posterior`; q(theta) of the Dirichlet distributions with parameters
    `dirichlet[worker, truth]` and `prior_dirichlet`.
    """

    def expected_logs(a):
        return special.digamma(a) - special.digamma(a.sum(axis=-1, keepdims=True))

    def expected_log_density(prior, logs):
        return special.gammaln(prior.sum()) - special.gammaln(prior).sum() + np.sum((prior - 1) * logs)

    log_confusion, log_prior = expected_logs(dirichlet), expected_logs(prior_dirichlet)
    value = expected_log_density(prior_pseudo, log_prior) + stats.dirichlet(prior_dirichlet).entropy()
    for m, k in np.ndindex(dirichlet.shape[:2]):
        value += expected_log_density(pseudo[m, k], log_confusion[m, k]) + stats.dirichlet(dirichlet[m, k]).entropy()
    logs = log_answers(votes, log_confusion)
    for y in labelings(len(votes), posterior.shape[1]):
        probability = np.prod(posterior[np.arange(len(votes)), list(y)])
        if probability > 0:
            value += probability * (log_joint(y, logs, log_prior) - np.log(probability))
    return float(value)
