"""How far the probabilities of classifiers can be trusted, one by one."""

from __future__ import annotations

import numpy as np

from ..answers.columns import distinct_names, to_values
from ..documents.charts import Chart, Plain, Table, draw_curves
from ..errors import plural
from ..inference.workers.temperatures import MeanWorkers
from ..results.sureness import find_reliability, list_sureness
from .subject import Subject, to_name

# Classifiers that are shown: those with the most votes.
MOST_SHOWN = 12


def describe_votes(subject: Subject) -> Plain | None:
    """Return how sure classifiers are, compared with how often they are right; None if answers are no soft votes."""
    chart = draw_votes(subject)
    if chart is None:
        return None
    r, found = subject.responses, subject.fusion
    columns = {name: to_values(column).tolist() for name, column in list_sureness(r, subject.posterior).items()}
    shown = choose_shown(subject)
    rows = [
        (subject.workers[m], columns["sureness"][m], f"{columns['temperature'][m]:.2g}") for m in shown if r.n_responses
    ]
    words = ["Where a curve is below the diagonal, the classifier is too sure; above, it is too cautious."]
    if found.soft_check is not None:
        said = str(found.soft_check)
        words.insert(0, f"{said[0].upper()}{said[1:]}.")
    table = Table("How sure each classifier is", rows, ("Classifier", "Sureness", "Factor of its log odds"))
    return Plain(words, [chart], [table])


def draw_votes(subject: Subject) -> Chart | None:
    """Return how often each classifier is right, by the fit, against how sure it is."""
    r = subject.responses
    unsure = subject.fusion.learned.kind == MeanWorkers.name  # the mean is not calibrated, and nothing to compare with
    if not r.is_soft or unsure or not subject.fusion.checked or r.n_classes < 2:
        return None
    shown = choose_shown(subject)
    names = distinct_names([to_name(subject.workers[m], 24) for m in shown])
    curves = {name: find_reliability(r, subject.posterior, m) for name, m in zip(names, shown, strict=True)}
    which = "" if len(shown) == r.n_workers else f" {len(shown)} of them are shown."
    alt = f"Curves of {plural(r.n_workers, 'classifier')}: share of right votes by the probability they gave.{which}"
    return draw_curves("How often votes are right, as the fit sees it, by how sure they are", alt, curves)


def choose_shown(subject: Subject) -> list[int]:
    """Return the workers with the most votes, in their order."""
    n_votes = subject.responses.votes_per_worker()
    busiest = np.argsort(-n_votes, kind="stable")[:MOST_SHOWN]
    return sorted(m for m in busiest.tolist() if n_votes[m])
