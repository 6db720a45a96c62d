"""How good are labels, probabilities and parameters, and how far do workers agree before any model.

Labels are compared by position and by Python equality: `1`, `1.0` and `True` are the same label, `"1"` is another.
"""

from __future__ import annotations

from .agreement import (
    AlphaInterval,
    agreement_matrix,
    krippendorff_alpha,
    krippendorff_interval,
    pairwise_agreement,
    span_agreement,
)
from .labels import (
    ClassScore,
    SpanScore,
    SpanScores,
    accuracy,
    class_f1,
    compare_spans,
    confusion_counts,
    count_invalid_transitions,
    macro_f1,
    mean_absolute_error,
    quadratic_kappa,
    relaxed_span_score,
    span_f1,
    span_score,
)
from .probabilities import (
    ReliabilityCurve,
    accuracy_at_coverage,
    brier,
    calibration_error,
    confusion_error,
    log_loss,
    prior_error,
    rank_correlation,
    reliability_curve,
    transition_error,
)

__all__ = [
    "AlphaInterval",
    "ClassScore",
    "ReliabilityCurve",
    "SpanScore",
    "SpanScores",
    "accuracy",
    "accuracy_at_coverage",
    "agreement_matrix",
    "brier",
    "calibration_error",
    "class_f1",
    "compare_spans",
    "confusion_counts",
    "confusion_error",
    "count_invalid_transitions",
    "krippendorff_alpha",
    "krippendorff_interval",
    "log_loss",
    "macro_f1",
    "mean_absolute_error",
    "pairwise_agreement",
    "prior_error",
    "quadratic_kappa",
    "rank_correlation",
    "relaxed_span_score",
    "reliability_curve",
    "span_agreement",
    "span_f1",
    "span_score",
    "transition_error",
]
