"""Simulated sequences: F-score and errors of the parameters as the number of items grows."""

from __future__ import annotations

import math

from .experiment import SAME, Record, falls, values_of
from .markdown import make_list, make_paragraph, make_table, number, verdict
from .methods import ALG_2, ALG_2_1, MM, MV, MV_1, MV_1_SHORT, ORACLE, OURS
from .sequence_curves import CLASSES, count_good, make_experiment, read_means

ITEMS = (200, 400, 1_000, 4_000, 10_000, 40_000, 100_000)
WORKERS = 10
# Whose errors are shown.
ERRORS = {"confusion_error": (MM, ALG_2_1, MV_1, OURS), "transition_error": (ALG_2, ALG_2_1, MV_1, OURS)}


def tell_scores(records: list[Record]) -> str:
    """Show the scores and errors at each size."""
    sizes, at = values_of(records, "items"), read_means(records, "items")
    rows = [
        [f"{size:,}", *(number(at(size, method)) for method in (MV, MM, ALG_2, ALG_2_1, MV_1, OURS, ORACLE))]
        for size in sizes
    ]
    setting = f"""
        K = {CLASSES} classes, M = {WORKERS} workers of whom {count_good(WORKERS)} are better than random, mean over
        {len(values_of(records, "run"))} runs."""
    errors = [
        [f"{size:,}", *(number(at(size, method, name)) for name, methods in ERRORS.items() for method in methods)]
        for size in sizes
    ]
    return f"""
{make_paragraph(setting)}

{make_table(["N", MV, MM, ALG_2, ALG_2_1, MV_1, OURS, ORACLE], rows)}

*F over all items. Errors of the parameters (induced 1-norm, as in the paper):*

{make_table(["N", f"Γ: {MM}", ALG_2_1, MV_1, OURS, f"T: {ALG_2}", ALG_2_1, MV_1, OURS], errors)}
"""


def tell_findings(records: list[Record]) -> str:
    """Say what the curves show."""
    sizes, at = values_of(records, "items"), read_means(records, "items")
    few, many = sizes[0], sizes[-1]
    curves = [[at(size, each, name) for size in sizes] for name, methods in ERRORS.items() for each in methods]
    error = {size: at(size, ALG_2_1, "confusion_error") for size in (few, many)}
    power = math.log(error[many] / error[few]) / math.log(many / few)
    gap = {size: at(size, ORACLE) - at(size, ALG_2_1) for size in (few, many)}
    apart = at(many, ALG_2_1) - at(many, MV_1)
    short, long = (at(many, method, "confusion_error") for method in (MV_1_SHORT, MV_1))
    why_level = f"""
        Both starts end in the same optimum. EM levels off if it is stopped too early: after two iterations from the
        vote (the dotted line) the error of the confusion matrices ends at {number(short)}, not {number(long)}. The
        paper does not say when it stopped."""
    coupling = {size: at(size, OURS, "coupling") for size in (few, many)}
    why_behind = f"""
        So few hidden answers cannot tell couplings apart, and the smallest that is as good as any is taken: on average
        {coupling[few]:.2f}, and {coupling[many]:.2f} at N = {many:,}."""
    return make_list(
        [
            f"""{verdict(all(map(falls, curves)))} all errors in the table fall as N grows. The error of Alg. 2 +
            Alg. 1's confusion matrices goes from {number(error[few])} at N = {few:,} to {number(error[many])} at N =
            {many:,}, as N to the power of {power:.2f}; a consistent estimate has -0.5.""",
            f"""{verdict(abs(gap[many]) < min(gap[few], SAME))} Alg. 2 + Alg. 1 approaches the oracle. At N =
            {many:,} it has {number(at(many, ALG_2_1), 4)}, the oracle {number(at(many, ORACLE), 4)}.""",
            f"""{verdict(at(few, MV_1) > at(few, ALG_2))} with few items, EM from majority vote does better than moments
            alone ({number(at(few, MV_1))} against {number(at(few, ALG_2))} at N = {few:,}).""",
            f"""{verdict(apart > SAME)} MV + Alg. 1 levels off as N grows. At N = {many:,} its F and that of
            Alg. 2 + Alg. 1 differ by {number(abs(apart), 4)}, although the vote itself has only {number(at(many, MV))}.
            {why_level if abs(apart) <= SAME and short > 2 * long else ""}""",
            f"""Ours is the default `HiddenMarkov()`: variational, with a coupling that is learned from hidden answers.
            At N = {few:,} it has {number(at(few, OURS))}, MV + Alg. 1 {number(at(few, MV_1))}.
            {why_behind if at(few, OURS) < at(few, MV_1) and coupling[few] < coupling[many] else ""}""",
        ]
    )


EXPERIMENT = make_experiment(
    "sequence-items",
    "items",
    [{"items": items, "workers": WORKERS} for items in ITEMS],
    4_000,
    tell_scores,
    tell_findings,
)
