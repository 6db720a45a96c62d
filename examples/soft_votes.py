"""From `predict_proba` of an ensemble to a report: python examples/soft_votes.py [report.html]."""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consilience as cs

x, y = load_wine(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
train, new = order[:40], order[40:]
zoo = {"linear": LogisticRegression(), "bayes": GaussianNB(), "nearest": KNeighborsClassifier(7)}
columns = [slice(0, 7), slice(6, 13), slice(0, 13, 2)]  # each classifier sees half of the columns
seen = dict(zip(zoo, columns, strict=True))
fitted = {name: make_pipeline(StandardScaler(), zoo[name]).fit(x[train, c], y[train]) for name, c in seen.items()}
votes = np.stack([fitted[name].predict_proba(x[new, c]) for name, c in seen.items()], axis=1)

fused = cs.fuse(cs.Answers.from_probabilities(votes, classes=range(3), workers=list(zoo)))
cs.report(fused, sys.argv[1] if len(sys.argv) > 1 else "report.html")
print(fused.result_.given.soft_check)
print(f"right: {np.mean(fused.labels_ == y[new]):.2f}")
