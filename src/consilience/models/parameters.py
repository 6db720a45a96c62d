"""What every estimator has: parameters that are stored as given, scikit-learn's conventions without scikit-learn."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ..errors import ParameterError, listing, shorten


class Estimator:
    """Something with parameters, which are keyword arguments, stored as given, and checked when `fit` is called."""

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the parameters of the model with their defaults."""
        parameters = inspect.signature(cls.__init__).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}

    def _store(self, given: Mapping[str, Any]) -> None:
        """Keep the parameters as they are given."""
        for name in self.defaults():
            setattr(self, name, given[name])

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 (scikit-learn's signature)
        """Return the parameters."""
        return {name: getattr(self, name) for name in self.defaults()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; return the model itself."""
        known = self.defaults()
        for name, value in parameters.items():
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}; it has {listing(known, 20)}.")
            setattr(self, name, value)
        return self

    def fresh(self, **parameters: Any) -> Self:
        """Return an unfitted copy with the same parameters, except for those given."""
        return type(self)(**{**self.get_params(), **parameters})

    def __sklearn_clone__(self) -> Self:
        """Return what `sklearn.base.clone` should: the same parameters. A model to start from stays fitted."""
        return self.fresh()

    def describe_call(self) -> str:
        """Return how the model is made: its name, and the parameters that are not the default."""
        defaults = self.defaults()
        changed = [
            f"{name}={_brief(value)}" for name, value in self.get_params().items() if not _same(value, defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _brief(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"<array {'x'.join(map(str, value.shape))}>"
    return f"<{type(value).__name__}>" if isinstance(value, Estimator) else shorten(value, 200)


def _same(value: object, default: object) -> bool:
    # By their text, for a tuple may hold arrays, which have no one answer to ==.
    return value is default or (type(value) is type(default) and repr(value) == repr(default))
