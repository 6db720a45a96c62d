r"""How probable the spans are that the labels of a chain make.

The confidence of a span is the probability that exactly this span with this type is there. For IOB2 tags it is

    p = P(y_a = B-X, y_{a+1} = ... = y_b = I-X, y_{b+1} is not I-X)

In a chain p comes from the posterior of the whole sequence, by the evidence and the chain that calibrated posteriors
come from: each token is left out of what was learned about its workers, and a forbidden step is only improbable. It is
reported as

    p^t / (p^t + (1 - p)^t)

with the power t of the model. For models without a chain tokens are independent, and p is the product of calibrated
posteriors of the tags; see `consilience.tasks.span_task`.

Tags are read in any scheme; see `consilience.tasks.tag_runs`. A span that begins with I-X, in a scheme that has no B-X
there, must not go on with the span before it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Column, Values
from ..answers.vocabulary import encode_in_order_of_appearance
from ..inference.em import Fit, Problem
from ..inference.recipes.chain import follow_labels
from ..kernels.types import Floats
from ..specs import Fault
from ..tasks.tag_runs import are_tags, find_continuations, find_runs, judge_runs, split_tags


def judge_fit(
    problem: Problem,
    fit: Fit,
    posterior: Floats,
    codes: NDArray[np.int64],
    classes: Values,
    sequence: NDArray[np.int64],
    left_out: bool,
    power: float,
) -> Floats:
    """Return the confidence of each span among the labels of a chain."""
    goes_on = find_continuations(*split_tags(classes.tolist())).astype(np.float64)
    statistics = fit.statistics if left_out else None
    parts = follow_labels(problem, fit.parameters, statistics, posterior, codes, goes_on)
    return raise_odds(judge_runs(parts, find_runs(codes, classes, sequence)), power)


def raise_odds(probability: Floats, power: float) -> Floats:
    """Return p^t / (p^t + (1 - p)^t).

    >>> raise_odds(np.array([0.8, 1.0, 0.0]), 0.5).round(3).tolist()
    [0.667, 1.0, 0.0]
    """
    if power == 1.0:
        return probability
    yes, no = probability**power, (1 - probability) ** power
    return np.asarray(yes / (yes + no))


def check_confidence(confidence: Floats, codes: NDArray[np.int64], classes: Values, column: Column) -> None:
    """Raise a `Fault` unless there is a confidence for each span."""
    sequence = encode_in_order_of_appearance(column)[0].astype(np.int64)
    if not are_tags(classes) or len(find_runs(codes, classes, sequence).first) != len(confidence):
        raise Fault("there is not one confidence for each span")
