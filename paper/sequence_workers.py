"""Simulated sequences: F-score and errors of the parameters as the number of workers grows."""

from __future__ import annotations

from .experiment import Record, rises, values_of
from .markdown import join, make_list, make_paragraph, make_table, number, verdict
from .methods import ALG_2, ALG_2_1, MM, MV, MV_1, ORACLE, OURS
from .sequence_curves import CLASSES, LENGTH, count_good, make_experiment, read_means

ITEMS = 1_000
WORKERS = (3, 5, 10, 15, 20, 30)
SHOWN = (MV, MM, ALG_2, ALG_2_1, MV_1, OURS, ORACLE)


def tell_scores(records: list[Record]) -> str:
    """Show the scores and errors at each size."""
    sizes, at = values_of(records, "workers"), read_means(records, "workers")
    rows = [
        [
            str(size),
            *(number(at(size, method)) for method in SHOWN),
            *(number(at(size, ALG_2_1, f"{name}_error")) for name in ("confusion", "transition")),
        ]
        for size in sizes
    ]
    setting = f"""
        K = {CLASSES} classes, N = {ITEMS:,} items in {ITEMS // LENGTH} sequences of {LENGTH}, mean over
        {len(values_of(records, "run"))} runs. (The captions of the paper say K = 2 and "priors"; its text says K =
        4, and the second error is that of T.)"""
    return f"""
{make_paragraph(setting)}

{make_table(["M", *SHOWN, f"Γ error, {ALG_2_1}", "T error"], rows)}
"""


def tell_findings(records: list[Record]) -> str:
    """Say what the curves show."""
    sizes, at = values_of(records, "workers"), read_means(records, "workers")
    few, many = sizes[0], sizes[-1]
    confusion, transition = (
        [at(size, ALG_2_1, f"{name}_error") for size in (few, many)] for name in ("confusion", "transition")
    )
    all_gain = all(rises([at(size, method) for size in sizes]) for method in SHOWN)
    errors_fall = all(last < first for first, last in (confusion, transition))
    nearly_known = f"""
        With many workers the labels are nearly known, and what is left of these errors is the noise of {ITEMS:,}
        steps."""
    behind = [size for size in sizes if at(size, ALG_2) < at(size, MM)]
    return make_list(
        [
            f"""{verdict(all_gain and errors_fall)} with more workers every method has a higher F, and the errors of
            both matrices fall. From M = {few} to M = {many} those of Alg. 2 + Alg. 1 go from {number(confusion[0])} to
            {number(confusion[1])} for Γ and from {number(transition[0])} to {number(transition[1])} for T.
            {nearly_known if at(many, ORACLE) > 0.99 else ""}""",
            f"""With M = {few}, of whom {count_good(few)} are better than random, EM from the vote has
            {number(at(few, MV_1))}, ours {number(at(few, OURS))}, EM from moments {number(at(few, ALG_2_1))}.
            {POOR_VOTE if at(few, ALG_2_1) > max(at(few, MV_1), at(few, OURS)) else ""}""",
            f"""Alg. 2 without EM falls behind MM at M = {join(behind)}, where labels are nearly known
            ({number(at(behind[-1], ALG_2))} against {number(at(behind[-1], MM))} at M = {behind[-1]}). Its T,
            matched to so few items, all but forbids steps that do occur."""
            if behind and at(behind[0], MM) > 0.99
            else "",
        ]
    )


POOR_VOTE = 'The vote is a poor start there; this is the case for `start="moments"`.'

EXPERIMENT = make_experiment(
    "sequence-workers",
    "workers",
    [{"items": ITEMS, "workers": workers} for workers in WORKERS],
    30,
    tell_scores,
    tell_findings,
)
