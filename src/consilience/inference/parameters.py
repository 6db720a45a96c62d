"""Checks of parameters that models share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from ..answers.arrays import Crowd
from ..answers.classes import normalise_column, spell_as
from ..answers.columns import Column, Values, to_column, to_values
from ..answers.frames import read_column
from ..answers.vocabulary import lookup
from ..arguments import is_number, to_floats
from ..errors import listing, parameter_error
from ..kernels.types import Floats, freeze
from .workers.confusion import smoothing_array

# The pseudo-counts of EM, off the diagonal and on it, unless others are given.
PAIR = (0.1, 1.1)
# Ways of calibrating probabilities; a number will do, too.
CALIBRATIONS = ("hidden answers", "gold", "none")
# As many bits as NumPy draws for a seed of its own.
LIMIT_OF_SEEDS = 2**128
# Pseudo-counts beyond these mean the same, and their sums and inverses are still numbers.
SMOOTHING_RANGE = (1e-300, 1e100)


class Owner(Protocol):
    """What has settings, and the name of a model's class."""

    @property
    def model(self) -> str:
        """The name of the class."""


def check_choice(owner: Owner, name: str, choices: tuple[str, ...]) -> str:
    """Return the parameter `name` if it is one of `choices`."""
    value = getattr(owner, name)
    if not isinstance(value, str) or value not in choices:
        raise parameter_error(name, owner.model, f"one of {', '.join(map(repr, choices))}", value)
    return value


def check_number(owner: Owner, name: str, least: float, *, whole: bool = False) -> None:
    """Raise an error unless the parameter `name` is a (whole) number and at least `least`."""
    value = getattr(owner, name)
    if whole and isinstance(value, int) and value >= LIMIT_OF_SEEDS:
        raise parameter_error(name, owner.model, f"a whole number between {least} and 2**128 - 1", value)
    whole_enough = not whole or isinstance(value, (int, np.integer))
    if not is_number(value) or not whole_enough or not (least <= value < np.inf):
        kind = "a whole number" if whole else "a number"
        raise parameter_error(name, owner.model, f"{kind} >= {least}", value)


def check_callback(owner: Any) -> None:
    """Raise an error unless the parameter `callback` can be called, or is None."""
    if owner.callback is not None and not callable(owner.callback):
        raise parameter_error("callback", owner.model, "a function or None", owner.callback)


def check_calibration(owner: Any) -> None:
    """Raise an error unless the parameter `calibration` has a value that it can have."""
    value = owner.calibration
    if not (value in CALIBRATIONS if isinstance(value, str) else is_number(value) and 0 < float(value) < np.inf):
        expected = f"one of {', '.join(map(repr, CALIBRATIONS))}, or a number > 0"
        raise parameter_error("calibration", owner.model, expected, value)


def checked_smoothing(owner: Any, r: Crowd) -> Floats:
    """Return the parameter `smoothing` as an array (1 or M, L, K); `PAIR` where it is to be learned."""
    name = owner.model
    expected = "a number >= 0, a pair (off diagonal, diagonal), an array (classes, labels) or 'learn'"
    given = PAIR if isinstance(owner.smoothing, str) and owner.smoothing == "learn" else owner.smoothing
    try:
        smoothing = smoothing_array(given, r.class_of_label, r.n_classes, r.n_workers)
    except (TypeError, ValueError, OverflowError) as error:
        hint = str(error) if str(error).startswith("an array of shape") else expected
        raise parameter_error("smoothing", name, hint, owner.smoothing) from error
    if not np.isfinite(smoothing).all() or (smoothing < 0).any():
        raise parameter_error("smoothing", name, expected, owner.smoothing)
    if owner.estimation == "variational" and (smoothing <= 0).any():
        expected = "greater than 0 with estimation='variational' (for no smoothing at all use estimation='em')"
        raise parameter_error("smoothing", name, expected, owner.smoothing)
    return freeze(np.where(smoothing > 0, np.clip(smoothing, *SMOOTHING_RANGE), 0.0))


def given_pair(smoothing: Any) -> tuple[float, float] | None:
    """Return the pair (off diagonal, diagonal) that a parameter stands for; None for an array."""
    if isinstance(smoothing, str):
        return PAIR
    array = np.asarray(smoothing, dtype=np.float64)
    if array.ndim > 1:
        return None
    off, diagonal = np.broadcast_to(array, 2).tolist()
    return off, diagonal


def in_order_of_classes(owner: Any, name: str, classes: Values, normalised: bool) -> Any:
    """Return a parameter whose rows (and columns) are classes, in their order.

    A dict, or a pandas Series or DataFrame, may name the classes in another order; one that names something else is an
    error. Whatever has no names is taken to be in order. Normalised classes may be written in any way.
    """
    value = getattr(owner, name)
    if isinstance(value, Mapping):
        return _read_by_class(owner, name, value, classes, normalised)
    if not (hasattr(value, "reindex") and hasattr(value, "axes")):
        return value
    for axis in range(np.ndim(value)):
        named = _spell(read_column(value.axes[axis], name), classes, normalised)
        place = lookup(to_values(named), to_column(classes))
        if (place >= 0).all() and len(named) == len(classes):
            value = value.take(place, axis=axis)
        elif to_values(named).tolist() != list(range(len(named))):
            expected = f"named by the classes {listing(classes.tolist())}, or without names and in their order"
            raise parameter_error(name, owner.model, expected, to_values(named).tolist())
    return value


def _spell(names: Column, classes: Values, normalised: bool) -> Column:
    """Return names of classes written as these are, if they are normalised."""
    return normalise_column(names, spell_as(classes)) if normalised else names


def _read_by_class(owner: Any, name: str, value: Mapping[Any, Any], classes: Values, normalised: bool) -> list[Any]:
    """Return the entries of a dict in the order of the classes, which must be its keys."""
    place = np.full(len(classes), -1)
    if value:
        named = _spell(to_column(list(value), name), classes, normalised)
        place = lookup(to_values(named), to_column(classes))
    if len(value) != len(classes) or (place < 0).any():
        expected = f"a number for each of the classes {listing(classes.tolist())}"
        raise parameter_error(name, owner.model, expected, value)
    return [list(value.values())[each] for each in place.tolist()]


def fixed_prior(owner: Any, r: Crowd) -> Floats | None:
    """Return the parameter `prior` as probabilities, or None if the prior is to be learned."""
    name = owner.model
    if isinstance(owner.prior, str) and owner.prior == "learn":
        return None
    if isinstance(owner.prior, str) and owner.prior == "uniform":
        return np.full(r.n_classes, 1 / r.n_classes)
    names = listing(r.classes.tolist())
    expected = f"'learn', 'uniform' or {r.n_classes} probabilities that sum to 1 (classes: {names})"
    ordered = in_order_of_classes(owner, "prior", r.classes, r.normalised)
    try:
        prior = to_floats(ordered)
    except (TypeError, ValueError) as error:
        raise parameter_error("prior", name, expected, owner.prior) from error
    if prior.shape != (r.n_classes,) or not (prior >= 0).all() or abs(prior.sum() - 1) > 1e-6:
        raise parameter_error("prior", name, expected, owner.prior)
    return np.asarray(prior / prior.sum())
