r"""Classifiers that tell the class of an item from its features.

The default is logistic regression on scaled features: with scaled features z of item n and posteriors q_nk as soft
labels,

    minimise over W and b:   - sum_n sum_k q_nk log softmax_k(W z_n + b)  +  |W|^2 / (2 C)

Dense features have mean 0 and standard deviation 1. Sparse ones are divided by their largest absolute value, so that
zeros stay zeros, and a word that occurs once is not the most important one.

scikit-learn, which fits it, takes one label for each row. So an item is repeated for its likeliest classes, as many as
have .99 of its posterior and at most three, weighted by their posterior. Any other classifier of scikit-learn's kind is
trained in the same way. Its random state is the seed of the model, unless it has one.

All are trained and asked with one thread. So numbers do not depend on how many there are, and a busy machine does not
slow down the many small fits.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import softmax

from ..answers.columns import Values, lookup, to_column
from ..engines import one_thread
from ..errors import InputError, MissingDependencyError, first_line
from ..kernels import Floats

# Classes for which an item is repeated: those that have this much of its posterior, and no more than so many.
COVERED, MOST_CLASSES = 0.99, 3
MAX_ITER, TOL = 200, 1e-4


@dataclass(frozen=True, eq=False)
class LinearJudge:
    """Logistic regression after training, as plain arrays."""

    centre: Floats  # (D,)
    scale: Floats  # (D,)
    weights: Floats  # (J, D)
    offsets: Floats  # (J,)
    codes: NDArray[np.int64]  # (J,): the classes it knows, ascending
    n_classes: int

    def judge(self, rows: Any) -> Floats:
        """Return class probabilities (n, K) from features (n, D)."""
        # Scaling the weights instead of the rows needs no copy of these.
        weights = self.weights / self.scale
        with one_thread():
            scores = rows @ weights.T + (self.offsets - weights @ self.centre)
        found = np.zeros((rows.shape[0], self.n_classes))
        found[:, self.codes] = softmax(np.asarray(scores, np.float64), axis=1)
        return found


class LinearTrainer:
    """The default: logistic regression of scaled features."""

    def __init__(self, rows: Any, n_classes: int, strength: float) -> None:
        require_sklearn()
        self.rows, self.n_classes, self.strength = rows, n_classes, strength
        if issparse(rows):
            self.centre = np.zeros(rows.shape[1])
            scale = np.asarray(abs(rows).max(axis=0).todense()).ravel()
        else:
            self.centre, scale = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
        self.scale = np.where(scale > 1e-12 * np.abs(self.centre), scale, 1.0)
        if issparse(rows):
            # Columns that are empty, as those of hashed words may be by the million, would take part in every step.
            self.used = np.unique(np.append(rows.tocsr().indices, 0))  # one at least
            self.scaled = rows.multiply(1 / self.scale.astype(rows.dtype)).tocsr()[:, self.used]
        else:
            self.used = np.arange(rows.shape[1])
            self.scaled = (rows - self.centre.astype(rows.dtype)) / self.scale.astype(rows.dtype)

    def of_strength(self, strength: float) -> LinearTrainer:
        """Return the same with another C."""
        other = copy.copy(self)
        other.strength = strength
        return other

    def train(self, at: NDArray[np.int64], posterior: Floats) -> LinearJudge:
        """Return a classifier that has learned from the rows `at`, with their posteriors as soft labels."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        row, code, weight = spread_labels(posterior)
        model = LogisticRegression(C=self.strength, max_iter=MAX_ITER, tol=TOL)
        with warnings.catch_warnings(), one_thread():
            warnings.simplefilter("ignore", ConvergenceWarning)  # nearly settled is good enough
            model.fit(self.scaled[at[row]], code, sample_weight=weight)
        weights, offsets = np.zeros((len(model.coef_), len(self.scale))), np.asarray(model.intercept_, np.float64)
        weights[:, self.used] = model.coef_
        if len(weights) == 1:  # of two classes, the second one's odds
            weights, offsets = np.vstack([0 * weights, weights]), np.append(0 * offsets, offsets)
        codes = np.asarray(model.classes_, np.int64)
        return LinearJudge(self.centre, self.scale, weights, offsets, codes, self.n_classes)


@dataclass(frozen=True, eq=False)
class EstimatorJudge:
    """A classifier of scikit-learn's kind after training."""

    estimator: Any
    names: NDArray[Any]  # (K,): what it calls the classes

    def judge(self, rows: Any) -> Floats:
        """Return class probabilities (n, K) from features (n, D)."""
        found = np.zeros((rows.shape[0], len(self.names)))
        known = getattr(self.estimator, "classes_", None)
        code = np.full(1, -1) if known is None else lookup(self.names, to_column(np.asarray(known)))
        with one_thread(), blame(self.estimator, "judge items", "Its predict_proba must take features."):
            given = np.asarray(self.estimator.predict_proba(rows), np.float64)
        if given.shape != (rows.shape[0], len(code)) or (code < 0).any() or not (given >= 0).all():
            raise InputError(
                f"{type(self.estimator).__name__} must have classes_ after training, and its predict_proba must give a "
                "probability for each of them.",
                keyword="classifier",
            )
        found[:, code] = given
        return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300))


@dataclass(frozen=True, eq=False)
class EstimatorTrainer:
    """A classifier of scikit-learn's kind, of which copies are trained."""

    estimator: Any
    rows: Any
    names: NDArray[Any]  # (K,): what it calls the classes
    seed: int

    def train(self, at: NDArray[np.int64], posterior: Floats) -> EstimatorJudge:
        """Return a classifier that has learned from the rows `at`, with their posteriors as soft labels."""
        row, code, weight = spread_labels(posterior)
        fresh = clone(self.estimator)
        settle_randomness(fresh, self.seed)
        # A pipeline hands weights to the step that is named.
        prefix = f"{fresh.steps[-1][0]}__" if hasattr(fresh, "steps") else ""
        with one_thread(), blame(fresh, "be trained", "Its fit must take features, labels and sample_weight."):
            fresh.fit(self.rows[at[row]], self.names[code], **{f"{prefix}sample_weight": weight})
        return EstimatorJudge(fresh, self.names)


# A classifier after training, and before it, with the features it is trained by.
Judge: TypeAlias = LinearJudge | EstimatorJudge
Trainer: TypeAlias = LinearTrainer | EstimatorTrainer


def spread_labels(posterior: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return rows, classes and weights that stand for posteriors; the weights of a row sum to 1.

    >>> row, code, weight = spread_labels(np.array([[0.7, 0.3, 0.0], [0.002, 0.998, 0.0]]))
    >>> row.tolist(), code.tolist(), weight.round(3).tolist()
    ([0, 0, 1], [0, 1, 1], [0.7, 0.3, 1.0])
    """
    order = np.argsort(-posterior, axis=1, kind="stable")[:, :MOST_CLASSES]
    share = np.take_along_axis(posterior, order, axis=1)
    before = np.cumsum(share, axis=1) - share
    kept = (before < COVERED) & (share > 0)
    kept[:, 0] = True
    weight = np.where(kept, share, 0.0)
    weight /= weight.sum(axis=1, keepdims=True)
    return np.nonzero(kept)[0], order[kept], weight[kept]


def name_classes(classes: Values) -> NDArray[Any]:
    """Return what a classifier calls the classes: their names if these are text or whole numbers, else 0, 1, 2, ...

    scikit-learn takes fractions for quantities, and no names of different types.
    """
    names = classes.tolist()
    plain = any(all(type(name) is kind for name in names) for kind in (str, int, bool))
    return np.array(names) if plain else np.arange(len(names))


@contextmanager
def blame(estimator: Any, what: str, remedy: str) -> Iterator[None]:
    """Raise an `InputError` for whatever goes wrong in a classifier of the user."""
    try:
        yield
    except Exception as error:
        raise InputError(
            f"{type(estimator).__name__} cannot {what}: {first_line(error)}.", remedy, keyword="classifier"
        ) from error


def settle_randomness(estimator: Any, seed: int) -> None:
    """Set each random state of a classifier, and of its parts, that is not set."""
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    open_states = [name for name, value in parameters.items() if name.endswith("random_state") and value is None]
    if open_states:
        estimator.set_params(**dict.fromkeys(open_states, seed % 2**32))


def clone(estimator: Any) -> Any:
    """Return an untrained copy."""
    try:
        from sklearn.base import clone as copy_untrained
    except ImportError:
        return copy.deepcopy(estimator)
    return copy_untrained(estimator, safe=False)


def require_sklearn() -> None:
    """Raise an error if scikit-learn is not installed."""
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "Features need scikit-learn, which is not installed.",
            "Install it with: pip install 'consilience[features]'",
        ) from error


def as_pipeline(judge: LinearJudge, classes: Values, strength: float, features: list[str] | None) -> Any:
    """Return the default classifier as a fitted pipeline of scikit-learn, which predicts labels."""
    require_sklearn()
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaler, model = StandardScaler(with_mean=bool(judge.centre.any())), LogisticRegression(C=strength)
    scaler.mean_, scaler.scale_, scaler.var_ = judge.centre, judge.scale, judge.scale**2
    scaler.n_samples_seen_ = 1
    two = len(judge.codes) == 2
    model.coef_ = judge.weights[1:] - judge.weights[:1] if two else judge.weights
    model.intercept_ = judge.offsets[1:] - judge.offsets[:1] if two else judge.offsets
    model.classes_ = name_classes(classes)[judge.codes]
    if features is not None:
        scaler.feature_names_in_ = np.array(features, dtype=object)
    scaler.n_features_in_ = model.n_features_in_ = len(judge.scale)
    model.n_iter_ = np.zeros(1, np.int32)
    return make_pipeline(scaler, model)
