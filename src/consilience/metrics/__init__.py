"""How good are labels, probabilities and parameters, and how far do workers agree before any model.

Labels are compared by position and by Python equality: `1`, `1.0` and `True` are the same label, `"1"` is another.
"""

from __future__ import annotations

from .agreement import AlphaInterval as AlphaInterval
from .agreement import krippendorff_alpha as krippendorff_alpha
from .agreement import krippendorff_interval as krippendorff_interval
from .agreement import pairwise_agreement as pairwise_agreement
from .agreement import span_agreement as span_agreement
from .labels import ClassScore as ClassScore
from .labels import SpanScore as SpanScore
from .labels import accuracy as accuracy
from .labels import class_f1 as class_f1
from .labels import count_invalid_transitions as count_invalid_transitions
from .labels import macro_f1 as macro_f1
from .labels import mean_absolute_error as mean_absolute_error
from .labels import quadratic_kappa as quadratic_kappa
from .labels import relaxed_span_score as relaxed_span_score
from .labels import span_f1 as span_f1
from .labels import span_score as span_score
from .probabilities import ReliabilityCurve as ReliabilityCurve
from .probabilities import brier as brier
from .probabilities import calibration_error as calibration_error
from .probabilities import confusion_error as confusion_error
from .probabilities import log_loss as log_loss
from .probabilities import rank_correlation as rank_correlation
from .probabilities import reliability_curve as reliability_curve
from .probabilities import transition_error as transition_error
