r"""Items with features: a classifier that has learned from the fused labels is the prior of each item.

The classifier says g_nk, the probability of class k for item n by its features. It takes the place of an item's prior
(see `consilience.answers.item_priors`), and learns from the posteriors q of the fit (Raykar et al., 2010):

1. The model is fitted without features.
2. A round or several: (a) a classifier is trained on q, and judges the items; (b) EM continues with its probabilities
   as priors of the items, and gives the next q.
3. The model is fitted once more from its starts, with the priors of the last round. A coupling is chosen anew.

After the first round the classifier learns from labels that it has had a say in. Where workers err independently, these
are better labels, and there are up to five rounds. Where workers err together, the classifier learns what they have in
common, and would confirm it: there is one round. Hidden answers tell, by the power that they call for (see
`consilience.inference.hidden_answers`). In sequences, where a worker's errors come in runs, there is one round.

No item is judged by a classifier that saw its label: items are in five folds, by a hash of their ids, and each fold is
judged by a classifier trained on the others. All positions of a sequence are in one fold. In a graph, neighbours would
tell an item's label to the classifier that judges it. So the classifier of a field learns from a fit without the graph,
and only the last fit uses that. Items without answers do not train, and are judged by a classifier trained on all
others.

Features may say nothing, and a classifier that is too sure would do harm. So it must earn its say. Its out-of-fold log
loss against the posterior of the fit *without* features,

    loss_n = - sum_k q_nk log g_nk

is compared with that of the class shares. Features count only if the mean gain is above two standard errors, paired
over items (over sequences, where there are any). The strength C of the classifier is the smallest one whose
loss is within one standard error of the least. The better the labels, the more a classifier can learn from them, and
the larger C may be. So from the second round on it is chosen anew in the same manner, by classifiers that have learned
from the q of that round, out of fold. By then a classifier may be surer than the posteriors q' of the fit without
features, which the loss above holds against it even where it is right. These are still what it is judged by, since no
classifier had a say in them, but by the probability of the answers: with class shares s, up to a constant,

    loss_n = - log sum_k g_nk q'_nk / s_k

**The classifier** is logistic regression on scaled features: with scaled features z of item n and posteriors
q_nk as soft labels,

    minimise over W and b:   - sum_n sum_k q_nk log softmax_k(W z_n + b)  +  |W|^2 / (2 C)

Dense features have mean 0 and standard deviation 1. Sparse ones are divided by their largest absolute value, so that
zeros stay zeros, and a word that occurs once is not the most important one.

scikit-learn, which fits it, takes one label for each row. So an item is repeated for its likeliest classes, as many as
have .99 of its posterior and at most three, weighted by their posterior. It works with one thread, so that numbers do
not depend on how many there are.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import softmax

from ..answers.answers import Answers
from ..answers.columns import Values
from ..answers.item_priors import ItemPriors, class_shares
from ..answers.random_choices import draw_numbers, draw_units, hash_ids, hash_items
from ..engines import one_thread
from ..errors import DataWarning, MissingDependencyError, listing, plural, warn
from ..kernels import NEARLY_ZERO, Floats
from . import STANDARD_ERRORS
from .em import Fit, Problem
from .hidden_answers import Calibration, hide_from_fit, mean_and_error
from .observations import Observations

if TYPE_CHECKING:
    from .estimator import LatentEstimator

log = logging.getLogger("consilience")

N_CLASSIFIER_FOLDS, FEATURE_ROUNDS = 5, 5
# Rounds end when a smaller share of the labels than this changes.
LABELS_SETTLED = 0.001
# Workers err together if hidden answers call for a smaller power than this.
INDEPENDENT_POWER = 0.8
# Strengths C to choose from, by at most so many items.
CLASSIFIER_STRENGTHS, SAMPLE = (0.001, 0.01, 0.1, 1.0), 10_000
# Fewer items than this cannot train a classifier.
LEAST_ITEMS = 20
# The part of a classifier's probabilities that are class shares: nothing is impossible to it.
BLEND = 1e-3
# Classes for which an item is repeated: those that have this much of its posterior, and no more than so many.
COVERED, MOST_CLASSES_REPEATED = 0.99, 3
MAX_ITER, CLASSIFIER_TOL = 200, 1e-4

# Why features may have nothing to say, before anything is measured.
REASONS = {
    "few items": f"only {{items}} with answers have features, and at least {LEAST_ITEMS} are needed",
    "one class": "by the answers all items have the same label, so there is nothing to learn",
    "one sequence": "all items are in one sequence, and a classifier has to learn from other sequences",
}


class FeatureFindings(NamedTuple):
    """Whether features are used, why, and how much they improve.

    Attributes
    ----------
    used : bool
        Whether they are used.
    n_items : int
        Items with features, and with answers or a known label, from which the classifier learned.
    n_features : int
        Number of features.
    reason : str or None
        Why nothing could be measured: "few items", "one class" or "one sequence".
    gain : float or None
        By how much the classifier's mean log loss is below that of the class shares, against the labels that answers
        alone call for.
    error : float or None
        Standard error of `gain`.
    strength : float or None
        C of the classifier, in the last round if features are used.
    accuracy : float or None
        If features are used: the share of answered items to which the classifier gives their fused label, out of fold.
    n_changed : int or None
        If features are used: the number of items whose label is another one than without features.
    """

    used: bool
    n_items: int
    n_features: int
    reason: str | None = None
    gain: float | None = None
    error: float | None = None
    strength: float | None = None
    accuracy: float | None = None
    n_changed: int | None = None

    def describe(self) -> str:
        """In words, what features were found to say."""
        if self.reason is not None:
            return f"Features are not used: {REASONS[self.reason].format(items=plural(self.n_items, 'item'))}."
        what = f"{plural(self.n_features, 'feature')} of {plural(self.n_items, 'item')}"
        figures = f"{self.gain:+.4f} nats per item, standard error {self.error:.4f}"
        if not self.used:
            return (
                f"Features are not used: nothing shows that they tell anything about these labels ({what}). A "
                f"classifier does not predict the labels clearly better than the class shares do ({figures})."
            )
        strength = f" (logistic regression with C = {self.strength:g})" if self.strength is not None else ""
        agrees = "" if self.accuracy is None else f" It agrees with {self.accuracy:.1%} of the fused labels."
        return (
            f"Features are used: a classifier{strength} that learned from other items predicts the labels better than "
            f"the class shares do ({figures}; {what}).{agrees} With features {plural(self.n_changed or 0, 'label')} "
            "changed. Errors that workers share with the classifier stay invisible."
        )


class ComparedOpinions(NamedTuple):
    """Classes of items by the answers alone, and by a classifier that has not learned from them."""

    # The items with features and answers whose label is not known.
    item: NDArray[np.int64]
    # The class that answers alone call for, and its probability.
    crowd_code: NDArray[np.int64]
    crowd_share: Floats
    classifier_code: NDArray[np.int64]
    classifier_share: Floats


class FeatureClassifier(NamedTuple):
    """A classifier that has learned from all items."""

    linear: LinearClassifier
    # Class shares that are a small part of its probabilities.
    blended_shares: Floats
    # Class shares that its probabilities are divided by, as priors of items.
    shares: Floats

    def find_priors(self, rows: Any) -> Floats:
        """The probabilities of items by their features."""
        return blend(self.linear.find_probabilities(rows), self.blended_shares)


class FeatureFit(NamedTuple):
    """Answers with what features say of their items; if they are used, with what a classifier says, out of fold."""

    observations: Observations
    findings: FeatureFindings
    without_features: Floats  # (N, K): their posteriors
    names: list[str] | None  # of the features
    item: NDArray[np.int64]  # (n,): the items with features
    unit: NDArray[np.int64]  # (n,): the item or sequence of each, numbered in a random order
    probabilities: Floats  # (n, K): by classifiers that have learned from other items
    classifier: FeatureClassifier | None = None

    @property
    def code(self) -> NDArray[np.int64]:
        """The class that the classifier gives to each item."""
        return np.asarray(self.probabilities.argmax(axis=1))

    def compare_opinions(self) -> ComparedOpinions:
        """Classes by the classifier and by answers alone, of answered items whose label is not known."""
        answered = self.observations.find_answered()
        if self.observations.gold is not None:
            answered &= self.observations.gold.codes < 0
        rows = np.flatnonzero(answered[self.item])
        item, said = self.item[rows], self.code[rows]
        crowd, share = self.without_features[item], np.minimum(self.probabilities[rows, said], 1.0)
        return ComparedOpinions(item, crowd.argmax(axis=1), crowd.max(axis=1), said, share)


def blend(probabilities: Floats, base: Floats) -> Floats:
    """Probabilities of which a small part are class shares."""
    return np.asarray((1 - BLEND) * probabilities + BLEND * base)


def fit_with_features(model: LatentEstimator, observations: Observations, problem: Problem, fit: Fit) -> FeatureFit:
    """The answers with what features say of their items, from a fit without features."""
    r, features, plain = observations.responses, observations.features, replace(observations, features=None)
    assert features is not None
    known_items = observations.find_answered()
    if observations.gold is not None:
        known_items |= observations.gold.codes >= 0
    pupils = np.flatnonzero(known_items[features.item])  # rows that train
    findings = FeatureFindings(False, len(pupils), features.n_columns)
    alone = problem.infer(fit.parameters)
    known = before = alone[features.item]
    unit, fold = find_folds(r, features.item, model.seed)
    if len(pupils) < LEAST_ITEMS:
        findings = findings._replace(reason="few items")
    elif len(np.unique(known[pupils].argmax(axis=1))) < 2:
        findings = findings._replace(reason="one class")
    elif r.sequences is not None and len(np.unique(unit[pupils])) < 2:
        findings = findings._replace(reason="one sequence")
    else:
        trainer = LinearTrainer(features.rows, r.n_classes, unit, fold)
        strength, gain, error = trainer.choose_strength(known, before, pupils, log_loss)
        findings = findings._replace(used=gain > STANDARD_ERRORS * error, gain=gain, error=error, strength=strength)
    feature_fit = FeatureFit(plain, findings, alone, features.names, features.item, unit, known)
    if not findings.used:
        remedies = []
        if features.names is None and findings.reason is None:
            first = listing(r.items[:3].tolist())
            order = f"Check that the rows are in the order of the items, which begin with {first}"
            remedies = [f"{order}; a table with ids is safer."]
        warn(DataWarning(findings.describe(), *remedies, keyword="features"))
        return feature_fit
    # Workers seem to err independently of each other, and from item to item: unless this is known there is one round.
    hidden = None if r.sequences is not None else hide_from_fit(plain, problem, fit, model.seed)
    power = Calibration(1.0) if hidden is None else hidden.choose_power()[0]
    n_rounds = FEATURE_ROUNDS if power.n_hidden > 0 and power.power >= INDEPENDENT_POWER else 1
    labels = known.argmax(axis=1)
    for number in range(1, n_rounds + 1):
        log.info("Learning from features: round %d of at most %d", number, n_rounds)
        if number > 1:
            strength, _, _ = trainer.choose_strength(known, before, pupils, loss_of_answers)
        blended = known[pupils].mean(axis=0)
        judged = blend(trainer.predict_out_of_fold(strength, known, pupils), blended)
        priors = ItemPriors(features.item, judged)
        shares = class_shares(priors, alone)
        with_priors = plain.with_priors(priors, shares)
        problem = problem.about(with_priors)
        fit = model._run(problem, problem.maximise(fit.statistics, fit.parameters.prior))
        known = problem.infer(fit.parameters)[features.item]
        last, labels = labels, known.argmax(axis=1)
        if (last != labels).mean() < LABELS_SETTLED:
            break
    classifier = FeatureClassifier(trainer.train(pupils, known[pupils], strength), blended, shares)
    findings = findings._replace(strength=strength)
    return feature_fit._replace(
        observations=with_priors, findings=findings, probabilities=judged, classifier=classifier
    )


def find_folds(r: Answers, item: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The unit that each row belongs to, its item or its sequence, and the fold of each row.

    Units are numbered in a random order, which depends on their ids.
    """
    if r.sequences is None:
        owner, number = np.arange(len(item)), draw_numbers(seed, hash_items(r.keys, item))
    else:
        owner, number = r.sequences.of_items()[item], draw_numbers(seed, hash_ids(r.sequences.ids))
    rank = np.empty(len(number), np.int64)
    rank[np.argsort(number, kind="stable")] = np.arange(len(number))
    return rank[owner], rank[owner] % N_CLASSIFIER_FOLDS


def loss_of_answers(alone: Floats, judged: Floats) -> Floats:
    """Minus the log probability of the answers to each row, relative to that with class shares as the prior."""
    return np.asarray(-np.log(np.maximum(np.einsum("nk,nk->n", judged, alone / alone.mean(axis=0)), NEARLY_ZERO)))


def log_loss(known: Floats, judged: Floats) -> Floats:
    """The loss of each row: the cross entropy of two distributions."""
    return np.asarray(-np.einsum("nk,nk->n", known, np.log(np.maximum(judged, NEARLY_ZERO))))


# -------------------------------------------------------------------------------------------------- the classifiers


@dataclass(frozen=True, eq=False)
class LinearClassifier:
    """Logistic regression after training, as plain arrays."""

    centre: Floats  # (D,)
    scale: Floats  # (D,)
    weights: Floats  # (J, D)
    offsets: Floats  # (J,)
    codes: NDArray[np.int64]  # (J,): the classes it knows, ascending
    n_classes: int

    def find_probabilities(self, rows: Any) -> Floats:
        """Class probabilities (n, K) from features (n, D)."""
        # Scaling the weights instead of the rows needs no copy of these.
        weights = self.weights / self.scale
        with one_thread():
            scores = rows @ weights.T + (self.offsets - weights @ self.centre)
        probabilities = np.zeros((rows.shape[0], self.n_classes))
        probabilities[:, self.codes] = softmax(np.asarray(scores, np.float64), axis=1)
        return probabilities

    def as_pipeline(self, classes: Values, strength: float, features: list[str] | None) -> Any:
        """The same as a fitted pipeline of scikit-learn, which predicts labels."""
        require_sklearn()
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        scaler, model = StandardScaler(with_mean=bool(self.centre.any())), LogisticRegression(C=strength)
        scaler.mean_, scaler.scale_, scaler.var_ = self.centre, self.scale, self.scale**2
        scaler.n_samples_seen_ = 1
        two = len(self.codes) == 2
        model.coef_ = self.weights[1:] - self.weights[:1] if two else self.weights
        model.intercept_ = self.offsets[1:] - self.offsets[:1] if two else self.offsets
        model.classes_ = name_classes(classes)[self.codes]
        if features is not None:
            scaler.feature_names_in_ = np.array(features, dtype=object)
        scaler.n_features_in_ = model.n_features_in_ = len(self.scale)
        model.n_iter_ = np.zeros(1, np.int32)
        return make_pipeline(scaler, model)


class LinearTrainer:
    """Logistic regression of scaled features, of rows in units and folds as `find_folds` returns them."""

    def __init__(self, rows: Any, n_classes: int, unit: NDArray[np.int64], fold: NDArray[np.int64]) -> None:
        require_sklearn()
        self.rows, self.n_classes, self.unit, self.fold = rows, n_classes, unit, fold
        # Columns that are empty, as those of hashed words may be by the million, would take part in every step.
        self.used: Any = slice(None)
        if issparse(rows):
            self.centre = np.zeros(rows.shape[1])
            self.scale = scale_of(np.asarray(abs(rows).max(axis=0).todense()).ravel(), self.centre)
            self.used = np.unique(np.append(rows.tocsr().indices, 0))  # one at least
            self.scaled = rows.multiply(1 / self.scale.astype(rows.dtype)).tocsr()[:, self.used]
        else:
            self.centre = rows.mean(axis=0, dtype=np.float64)
            self.scale = scale_of(rows.std(axis=0, dtype=np.float64), self.centre)
            self.scaled = (rows - self.centre.astype(rows.dtype)) / self.scale.astype(rows.dtype)

    def train(self, at: NDArray[np.int64], posterior: Floats, strength: float) -> LinearClassifier:
        """A classifier that has learned from the rows `at`, with their posteriors as soft labels."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        row, code, weight = spread_labels(posterior)
        model = LogisticRegression(C=strength, max_iter=MAX_ITER, tol=CLASSIFIER_TOL)
        with warnings.catch_warnings(), one_thread():
            warnings.simplefilter("ignore", ConvergenceWarning)  # nearly settled is good enough
            model.fit(self.scaled[at[row]], code, sample_weight=weight)
        weights, offsets = np.zeros((len(model.coef_), len(self.scale))), np.asarray(model.intercept_, np.float64)
        weights[:, self.used] = model.coef_
        if len(weights) == 1:  # of two classes, the second one's odds
            weights, offsets = np.vstack([0 * weights, weights]), np.append(0 * offsets, offsets)
        codes = np.asarray(model.classes_, np.int64)
        return LinearClassifier(self.centre, self.scale, weights, offsets, codes, self.n_classes)

    def predict_out_of_fold(
        self, strength: float, known: Floats, pupils: NDArray[np.int64], all_rows: bool = True
    ) -> Floats:
        """The probabilities of rows (n, K), each by a classifier that has not learned from it.

        `pupils` are judged by those of them in other folds, and all other rows, if they are wanted, by all pupils.
        """
        judged, own = np.empty(known.shape), self.fold[pupils]
        groups = [(pupils[own != number], pupils[own == number]) for number in range(N_CLASSIFIER_FOLDS)]
        if all_rows:
            groups.append((pupils, np.setdiff1d(np.arange(len(known)), pupils)))
        for others, asked in groups:
            if len(others) and len(np.unique(known[others].argmax(axis=1))) > 1:
                if len(asked):
                    judged[asked] = self.train(others, known[others], strength).find_probabilities(self.rows[asked])
            else:  # nothing to learn from
                judged[asked] = known[others].mean(axis=0) if len(others) else 1 / known.shape[1]
        return judged

    def choose_strength(
        self, known: Floats, alone: Floats, pupils: NDArray[np.int64], loss: Callable[[Floats, Floats], Floats]
    ) -> tuple[float, float, float]:
        """The smallest C whose loss is within one standard error of the least, and how good a classifier it makes.

        Parameters
        ----------
        known, alone : array (n, K)
            Posteriors that it learns from, and those without features, by which it is judged.
        pupils : array
            Rows that train. Some of them judge.
        loss : callable
            The loss of each row, from `alone` and what a classifier says.

        Returns
        -------
        tuple
            C; by how much its mean loss is below that of the class shares; and the standard error of that.
        """
        sample = draw_units(pupils, self.unit, SAMPLE)
        units, judging = np.unique(self.unit[sample], return_inverse=True)[1], alone[sample]
        base = known[sample].mean(axis=0)

        def compare(one: Floats, other: Floats) -> tuple[float, float]:
            return mean_and_error(np.bincount(units, one - other).astype(np.float64), np.bincount(units))

        losses: dict[float, Floats] = {}
        for strength in CLASSIFIER_STRENGTHS:
            judged = self.predict_out_of_fold(strength, known, sample, all_rows=False)
            losses[strength] = loss(judging, blend(judged[sample], base))
        least = min(losses.values(), key=lambda each: float(each.sum()))
        leads = {strength: compare(each, least) for strength, each in losses.items()}
        best = next(strength for strength, (lead, error) in leads.items() if not lead > error)
        return best, *compare(loss(judging, np.broadcast_to(base, judging.shape)), losses[best])


def scale_of(spread: Floats, centre: Floats) -> Floats:
    """The divisors of features; features that are all alike stay as they are."""
    return np.where(spread > 1e-12 * np.abs(centre), spread, 1.0)


def spread_labels(posterior: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Rows, classes and weights that stand for posteriors; the weights of a row sum to 1.

    >>> row, code, weight = spread_labels(np.array([[0.7, 0.3, 0.0], [0.002, 0.998, 0.0]]))
    >>> row.tolist(), code.tolist(), weight.round(3).tolist()
    ([0, 0, 1], [0, 1, 1], [0.7, 0.3, 1.0])
    """
    order = np.argsort(-posterior, axis=1, kind="stable")[:, :MOST_CLASSES_REPEATED]
    share = np.take_along_axis(posterior, order, axis=1)
    before = np.cumsum(share, axis=1) - share
    kept = (before < COVERED) & (share > 0)
    kept[:, 0] = True
    weight = np.where(kept, share, 0.0)
    weight /= weight.sum(axis=1, keepdims=True)
    return np.nonzero(kept)[0], order[kept], weight[kept]


def name_classes(classes: Values) -> NDArray[Any]:
    """What a classifier calls the classes: their names if these are text or whole numbers, else 0, 1, 2, ...

    scikit-learn takes fractions for quantities, and no names of different types.
    """
    names = classes.tolist()
    plain = any(all(type(name) is kind for name in names) for kind in (str, int, bool))
    return np.array(names) if plain else np.arange(len(names))


def require_sklearn() -> None:
    """Raise an error if scikit-learn is not installed."""
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "Features need scikit-learn, which is not installed.",
            "Install it with: pip install 'consilience[features]'",
        ) from error
