"""Simulated networks of average degree one half."""

from __future__ import annotations

import math

from .experiment import SAME, Record, falls, values_of
from .markdown import make_list, number, verdict
from .methods import ALG_4, MM, MV, MV_3, MV_3_SHORT, ORACLE, OURS
from .network_curves import HOMOPHILY, WORKERS, make_experiment, read_curves


def tell_findings(records: list[Record]) -> str:
    """Say what the curves show."""
    sizes, curve = values_of(records, "items"), read_curves(records)
    few, many = sizes[0], sizes[-1]
    f, error = curve(ALG_4), curve(ALG_4, "confusion_error")
    last = {method: curve(method)[-1] for method in (MV, MM, ALG_4, MV_3, OURS, ORACLE)}
    short = curve(MV_3_SHORT, "confusion_error")[-1]
    apart, coupling = last[ALG_4] - last[MV_3], curve(OURS, "coupling")[-1]
    why_level = f"""
        All workers are better than random, so the vote is a fair start ({number(last[MV])}), and EM forgets it. Stopped
        after two iterations (the dotted line) its matrices stay {number(short)} off, not {number(error[-1])}."""
    return make_list(
        [
            f"""{verdict(f[-1] > f[0] and falls(error))} with more items the F of Alg. 4 grows, from {number(f[0])} at
            N = {few:,} to {number(f[-1])} at N = {many:,}, and the error of its confusion matrices falls, from
            {number(error[0])} to {number(error[-1])}.""",
            f"""{verdict(last[ALG_4] > last[MM])} even half a neighbour per item helps. At N = {many:,} Alg. 4 has
            {number(last[ALG_4])}, moments alone {number(last[MM])}.""",
            f"""{verdict(apart > SAME)} MV + Alg. 3 levels off early, below Alg. 4. At N = {many:,} they have
            {number(last[MV_3])} and {number(last[ALG_4])}.
            {why_level if abs(apart) <= SAME and short > 1.5 * error[-1] else ""}""",
            f"""With the paper's coupling (delta = M) one neighbour multiplies the odds of a class by
            {math.exp(WORKERS / 2):.0f}. That is much for edges of which {1 - HOMOPHILY:.0%} join different classes. The
            learned coupling ends at {coupling:.2f} nats per neighbour, a factor of {math.exp(coupling):.0f}. Its F is
            {number(last[OURS])}, that of the oracle {number(last[ORACLE])}.""",
            """The oracle knows the matrices and the coupling, and infers labels by belief propagation, which is
            exact on trees.""",
        ]
    )


EXPERIMENT = make_experiment("network-sparse", 0.5, tell_findings)
