"""Dawid and Skene's model: independent items, one confusion matrix per worker."""

from __future__ import annotations

from ..inference.estimator import Parts
from ..inference.sources import Source
from ..inference.structures import Independent
from .latent import StreamingModel


class DawidSkene(StreamingModel):
    r"""Fuse independent answers by learning how each worker confuses the classes.

    The truth :math:`y_n` of item n is drawn from the class prior :math:`\pi`, and worker m answers l when it is k
    with probability :math:`\Gamma_m[k, l]`, independently of the other workers:

    .. math::  P(y_n = k \mid \text{answers}) \propto \pi_k \prod_m \Gamma_m[k, f_{mn}]^{w_{mn}}

    Prior and matrices are learned together with the labels (Dawid & Skene, 1979), by variational Bayes or EM.

    Parameters
    ----------
    workers : {"confusion", "sequential", "one-coin", "ordinal", "nominal", "temperatures", "mean"}
        How a worker answers: by a confusion matrix; by one for each previous answer of their own in the sequence, which
        falls back on the plain matrix where answers are few, for answers to sequences; by one accuracy for all
        classes, with errors spread evenly, for few answers per worker; by a matrix much like that of a rater who is
        more or less harsh, exact and careless, for ordered classes; or by one much like that of a worker who errs
        evenly. The last three are for soft votes, of which the others take the most probable label: by a matrix that
        tells sure votes from unsure ones; with a temperature for each worker, learned from the others; or by the mean.
    estimation : {"variational", "em"}
        Variational Bayes with Dirichlet priors, or EM for the mode.
    prior : {"learn", "uniform"}, dict or array
        The class prior: learned, equal, or given, in the order of the classes or as a dict {class: probability}.
    smoothing : "learn", float, pair or array
        Pseudo-counts of the confusion matrices: one number, a pair (off diagonal, diagonal), or an array of shape
        (classes, labels). EM adds them to expected counts, variational Bayes takes them as the Dirichlet parameter.
        "learn" is a pair for the whole crowd that is learned with the matrices; for EM it is (0.1, 1.1). The class
        prior is smoothed by the smallest of them, by 0.1 where they are learned.
    calibration : {"hidden answers", "gold", "none"} or float
        What the reported probabilities are calibrated by. "hidden answers" leaves each item out of what was learned
        about its workers, and raises posteriors to the power at which answers that were hidden from further fits, and
        known labels if there are any, are predicted best; "gold" finds the power by known labels alone; a number is
        the power itself. "none" reports the posteriors of the fit. Labels are the same whatever the calibration.
    label_by : {"mode", "median"}
        What the label of an item is: the most probable class; or for ordered classes the median, which has the least
        expected distance from the truth.
    classifier : classifier of scikit-learn's kind, optional
        What learns from `features`: any classifier with `fit`, which takes ``sample_weight``, and `predict_proba`.
        Copies of it are trained. Default: logistic regression of scaled features.
    start : {"majority", "moments", "best"}, fitted model or array
        Where to start: from vote shares, from matched moments (see `MomentMatching`), from both, keeping the higher
        objective, from the matrices of a fitted model, or from given confusion matrices of shape (workers, classes,
        labels). Moments that may take minutes, for matrices with more entries than there are answers, are replaced by
        vote shares, with a warning.
    n_init : int
        Number of starts; those after the first are random. The one with the highest objective is kept.
    max_iter : int
        Most iterations. With 0 nothing is fitted: the start itself gives the labels.
    tol : float
        Stop when the objective gains less than this per answer. 0 runs exactly `max_iter` iterations.
    seed : int
        Seed of all that is random: starts after the first, and answers that are hidden to calibrate or to choose a
        coupling.
    callback : callable, optional
        Called after each iteration with a `Progress` (iteration, max_iter, objective, gain).

    Attributes
    ----------
    labels_ : ndarray
        The most probable class of each item (the first of equals).
    posterior_ : ndarray of shape (n_items, n_classes)
        Class probabilities, calibrated; rows as `Answers.items`, columns as `classes_`. Items without answers have
        the class prior.
    uncalibrated_posterior_ : ndarray of shape (n_items, n_classes)
        The posteriors of the fit itself.
    classes_ : ndarray
        What can be true, as `Answers.classes`.
    power_ : float
        What posteriors were raised to. ``result_.explain_calibration()`` says how it was found.
    smoothing_ : tuple of float
        The pseudo-counts off the diagonal and on it that were used, None if an array was given.
    expected_accuracy_ : float
        Share of the labels that are right, by their probabilities; ``result_.expected_accuracy`` has its interval, too.
    result_ : Result
        All that was found, with the names of workers (``result_.names.workers``) and the answers (``result_.answers``).
    prior_ : ndarray of shape (n_classes,)
        Class prior.
    confusion_ : ndarray of shape (n_workers, n_classes, n_labels)
        ``confusion_[w, truth, answer]``; rows sum to 1. The paper's Gamma_m is the transpose.
    sequential_confusion_ : ndarray of shape (n_workers, n_labels + 1, n_classes, n_labels)
        With ``workers="sequential"``: by the worker's previous answer, the last for none.
    trace_ : ndarray
        The objective before each iteration and at the end. It never falls, except with ``workers="sequential"``, whose
        smoothing moves with the fit: there it is a guide.
    n_iter_, converged_ : int, bool
        How the fit ended.
    classifier_ : classifier or None
        With `features`: what tells classes from features, trained on all items; None if features are not used.

    Notes
    -----
    With ``estimation="em"`` and smoothing > 0, a class that nobody said is a free cluster: it can take items from the
    other classes, and its name means nothing. Variational Bayes all but empties it; with EM, leave it out of
    ``classes=``, give gold for it, or use no smoothing.

    Examples
    --------
    >>> import consilience as cs
    >>> answers = {
    ...     "item": [1, 1, 1, 2, 2, 2, 3, 3, 3],
    ...     "worker": ["ann", "bob", "eve"] * 3,
    ...     "label": ["cat", "cat", "dog", "dog", "dog", "cat", "cat", "cat", "cat"],
    ... }
    >>> model = cs.DawidSkene().fit(answers)
    >>> model.labels_
    array(['cat', 'dog', 'cat'], dtype=object)
    """

    def _make_structure(self, source: Source, parts: Parts) -> Independent:  # noqa: ARG002
        return Independent(*parts)
