"""Settings that models share, checked and put in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.responses import Responses
from ..errors import listing, parameter_error
from ..kernels.types import Floats, freeze
from ..workers.confusion import smoothing_array


def checked_smoothing(owner: Any, r: Responses) -> Floats:
    """Return the setting `smoothing` as an array (1 or M, L, K)."""
    name = type(owner).__name__
    expected = "a number >= 0, a pair (off diagonal, diagonal) or an array (classes, labels)"
    try:
        smoothing = smoothing_array(owner.smoothing, r.class_of_label, r.n_classes, r.n_workers)
    except (TypeError, ValueError) as error:
        hint = str(error) if str(error).startswith("an array of shape") else expected
        raise parameter_error("smoothing", name, hint, owner.smoothing) from error
    if not np.isfinite(smoothing).all() or (smoothing < 0).any():
        raise parameter_error("smoothing", name, expected, owner.smoothing)
    if owner.estimation == "variational" and (smoothing <= 0).any():
        expected = "greater than 0 with estimation='variational' (for no smoothing at all use estimation='em')"
        raise parameter_error("smoothing", name, expected, owner.smoothing)
    return with_silence(smoothing, r) if r.silence_counts else smoothing


def with_silence(smoothing: Floats, r: Responses) -> Floats:
    """Return pseudo-counts with those of silence in the end: the right answer where nothing is to be said."""
    silence = np.repeat(smoothing.min(axis=1, keepdims=True), 1, axis=1)
    nothing = r.vote_shares() > 0
    silence[:, :, nothing] = smoothing.max(axis=1, keepdims=True)[:, :, nothing]
    return freeze(np.concatenate([smoothing, silence], axis=1))


def fixed_prior(owner: Any, r: Responses) -> Floats | None:
    """Return the setting `prior` as probabilities, or None if the prior is to be learned."""
    name = type(owner).__name__
    if isinstance(owner.prior, str) and owner.prior == "learn":
        return None
    if isinstance(owner.prior, str) and owner.prior == "uniform":
        return np.full(r.n_classes, 1 / r.n_classes)
    names = listing(r.classes.tolist())
    expected = f"'learn', 'uniform' or {r.n_classes} probabilities that sum to 1 (classes: {names})"
    try:
        prior = np.asarray(owner.prior, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise parameter_error("prior", name, expected, owner.prior) from error
    if prior.shape != (r.n_classes,) or not (prior >= 0).all() or abs(prior.sum() - 1) > 1e-6:
        raise parameter_error("prior", name, expected, owner.prior)
    return np.asarray(prior / prior.sum())
