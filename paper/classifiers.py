"""Ten classifiers of scikit-learn that label all nodes of a network, each trained on its own random items.

The paper trained ten classifiers of MATLAB and does not say which.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from consilience import Answers


def make_crew(seed: int) -> list[Any]:
    """Return ten untrained classifiers of different kinds."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.naive_bayes import BernoulliNB, MultinomialNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC, LinearSVC
    from sklearn.tree import DecisionTreeClassifier

    return [
        LogisticRegression(max_iter=500),
        RidgeClassifier(),
        LinearSVC(random_state=seed),
        SVC(random_state=seed),
        MultinomialNB(),
        BernoulliNB(),
        KNeighborsClassifier(5, metric="cosine"),
        DecisionTreeClassifier(random_state=seed),
        RandomForestClassifier(100, random_state=seed),
        ExtraTreesClassifier(100, random_state=seed),
    ]


def ask_classifiers(features: Any, truth: Any, items: Any, n_train: int, seed: int) -> Answers:
    """Return the answers of all classifiers about all items, each trained on `n_train` random ones.

    A classifier also answers about the items that it was trained on, as in the paper.
    """
    classes, code = np.unique(truth, return_inverse=True)
    rng, columns = np.random.default_rng(seed), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some classifiers warn that they need more items
        for classifier in make_crew(seed):
            chosen = rng.choice(len(truth), n_train, replace=False)
            columns.append(classifier.fit(features[chosen], code[chosen]).predict(features))
    return Answers.from_matrix(np.array(columns).T, labels=classes.tolist(), items=items)
