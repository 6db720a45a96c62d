"""How much the answers of workers speak for each of several types; see `consilience.inference.workers.types`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import Floats, read_only
from .answers import digamma_and_log_gamma
from .compile import kernel


def respond(
    counts: Floats, pseudo_counts: Floats, log_shares: Floats, likely: NDArray[np.bool_], responsibility: Floats
) -> float:
    """Write the responsibility of each type, (M, T); return the sum over workers of log sum_t w_t e_t.

    counts is (M, L, K), pseudo_counts (T, L, K), log_shares (1 or M, T): those of all workers, or of each. Only
    types that are `likely` (M, T) are looked at.
    """
    n_types, n_labels, n_classes = pseudo_counts.shape
    own, totals = np.empty((n_types, n_labels, n_classes)), np.empty((n_types, n_classes))
    prior = read_only(pseudo_counts)
    list_log_gammas(prior, own, totals)
    tables = read_only(own), read_only(totals), read_only(prior.sum(axis=1))
    given = read_only(log_shares), read_only(likely)
    return float(weigh_types(read_only(counts), prior, *tables, *given, responsibility))


@kernel
def list_log_gammas(pseudo_counts: Floats, own: Floats, totals: Floats) -> None:
    """Write the log Gamma of pseudo-counts, (T, L, K), and of their sums, (T, K)."""
    n_types, n_labels, n_classes = pseudo_counts.shape
    for t in range(n_types):
        for k in range(n_classes):
            total = 0.0
            for label in range(n_labels):
                own[t, label, k] = digamma_and_log_gamma(pseudo_counts[t, label, k])[1]
                total += pseudo_counts[t, label, k]
            totals[t, k] = digamma_and_log_gamma(total)[1]


@kernel
def weigh_types(
    counts: Floats,
    pseudo_counts: Floats,
    own: Floats,
    totals: Floats,
    strength: Floats,
    log_shares: Floats,
    likely: NDArray[np.bool_],
    responsibility: Floats,
) -> float:
    """Do what `respond` says; `own`, `totals` are those of `list_log_gammas`, `strength` sums of pseudo-counts."""
    n_workers, n_labels, n_classes = counts.shape
    n_types = log_shares.shape[1]
    of_each = len(log_shares) > 1
    evidence = 0.0
    for m in range(n_workers):
        top = -np.inf
        for t in range(n_types):
            if not likely[m, t]:
                responsibility[m, t] = -np.inf
                continue
            value = log_shares[m if of_each else 0, t]
            for k in range(n_classes):
                mass = 0.0
                for label in range(n_labels):
                    count = counts[m, label, k]
                    if count > 0.0:
                        mass += count
                        value += digamma_and_log_gamma(count + pseudo_counts[t, label, k])[1] - own[t, label, k]
                if mass > 0.0:
                    value -= digamma_and_log_gamma(mass + strength[t, k])[1] - totals[t, k]
            responsibility[m, t] = value
            top = max(top, value)
        total = 0.0
        for t in range(n_types):
            responsibility[m, t] = np.exp(responsibility[m, t] - top)
            total += responsibility[m, t]
        for t in range(n_types):
            responsibility[m, t] /= total
        evidence += top + np.log(total)
    return evidence


def mix(counts: Floats, pseudo_counts: Floats, responsibility: Floats, log_weights: Floats, mean: Floats) -> None:
    """Write mean logarithms and means, (M, L, K), of the mixture of Dir(counts + pseudo_counts) over types.

    Types of no responsibility are passed over.
    """
    prior = read_only(pseudo_counts)
    own = np.empty(prior.shape)
    list_digammas(prior, own)
    add_types(read_only(counts), prior, read_only(own), read_only(responsibility), log_weights, mean)


@kernel
def list_digammas(pseudo_counts: Floats, own: Floats) -> None:
    """Write the digamma function of pseudo-counts, (T, L, K)."""
    n_types, n_labels, n_classes = pseudo_counts.shape
    for t in range(n_types):
        for label in range(n_labels):
            for k in range(n_classes):
                own[t, label, k] = digamma_and_log_gamma(pseudo_counts[t, label, k])[0]


@kernel
def add_types(
    counts: Floats, pseudo_counts: Floats, own: Floats, responsibility: Floats, log_weights: Floats, mean: Floats
) -> None:
    """Do what `mix` says; `own` is that of `list_digammas`, for answers that were not given."""
    n_workers, n_labels, n_classes = counts.shape
    n_types = responsibility.shape[1]
    for m in range(n_workers):
        for k in range(n_classes):
            for label in range(n_labels):
                log_weights[m, label, k] = 0.0
                mean[m, label, k] = 0.0
        for t in range(n_types):
            share = responsibility[m, t]
            if share == 0.0:
                continue
            for k in range(n_classes):
                total = 0.0
                for label in range(n_labels):
                    total += counts[m, label, k] + pseudo_counts[t, label, k]
                psi_total = digamma_and_log_gamma(total)[0]
                for label in range(n_labels):
                    count = counts[m, label, k]
                    a = count + pseudo_counts[t, label, k]
                    psi = digamma_and_log_gamma(a)[0] if count > 0.0 else own[t, label, k]
                    log_weights[m, label, k] += share * (psi - psi_total)
                    mean[m, label, k] += share * a / total
