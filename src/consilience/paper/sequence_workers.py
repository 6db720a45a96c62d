"""Simulated sequences: F-score and errors of the parameters as the number of workers grows."""

from __future__ import annotations

from .experiment import FINDINGS, Record, values_of
from .markdown import make_table, number
from .methods import ALG_2, ALG_2_1, MM, MV, MV_1, ORACLE, OURS
from .sequence_curves import make_experiment, read_means

ITEMS = 1_000
WORKERS = (3, 5, 10, 15, 20, 30)


def tell_findings(records: list[Record]) -> str:
    """Tell what the curves show."""
    sizes, at = values_of(records, "workers"), read_means(records, "workers")
    few, many = sizes[0], sizes[-1]
    rows = [
        [
            str(size),
            *(number(at(size, method)) for method in (MV, MM, ALG_2, ALG_2_1, MV_1, OURS, ORACLE)),
            *(number(at(size, ALG_2_1, f"{name}_error")) for name in ("confusion", "transition")),
        ]
        for size in sizes
    ]
    head = ["M", MV, MM, ALG_2, ALG_2_1, MV_1, OURS, ORACLE, f"Γ error, {ALG_2_1}", "T error"]
    return f"""
K = 4 classes, N = {ITEMS:,} items in 25 sequences of 40, mean over {len(values_of(records, "run"))} runs. (The captions
of the paper say K = 2 and "priors"; its text says K = 4, and the second error is that of T.)

{make_table(head, rows)}

{FINDINGS}

- **Holds:** more workers help everyone, and the errors of both matrices fall. The error of T falls from
  {number(at(few, ALG_2_1, "transition_error"))} to {number(at(many, ALG_2_1, "transition_error"))}: with many workers
  the labels are nearly known, and what is left is the noise of {ITEMS:,} steps.
- With M = {few}, of whom two are better than random, the vote is a poor start: EM from it has
  {number(at(few, MV_1))}, ours {number(at(few, OURS))}, EM from moments {number(at(few, ALG_2_1))}. This is the case
  for `start="moments"`.
- Alg. 2 without EM can fall behind MM where labels are nearly known ({number(at(many, ALG_2))} against
  {number(at(many, MM))} at M = {many}): its T, matched to so few items, all but forbids steps that occur.
"""


EXPERIMENT = make_experiment(
    "sequence-workers", "workers", [{"items": ITEMS, "workers": workers} for workers in WORKERS], 30, tell_findings
)
