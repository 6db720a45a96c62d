"""Simulated networks of average degree five."""

from __future__ import annotations

from .experiment import SAME, Record, falls, values_of
from .markdown import make_list, number, verdict
from .methods import ALG_4, MM, MV_3, ORACLE, OURS
from .network_curves import make_experiment, read_curves


def tell_findings(records: list[Record]) -> str:
    """Say what the curves show."""
    sizes, curve = values_of(records, "items"), read_curves(records)
    few, many = sizes[0], sizes[-1]
    error = curve(ALG_4, "confusion_error")
    first, last = ({method: curve(method)[end] for method in (MM, ALG_4, MV_3, OURS, ORACLE)} for end in (0, -1))
    alike = abs(last[MV_3] - last[ALG_4]) <= SAME
    return make_list(
        [
            f"""{verdict(last[ALG_4] > last[MM])} the graph helps. At N = {many:,} Alg. 4 has {number(last[ALG_4])},
            moments alone {number(last[MM])}.""",
            f"""{verdict(falls(error))} the error of Alg. 4's confusion matrices falls as N grows, from
            {number(error[0])} to {number(error[-1])}. MV + Alg. 3
            {"ends where Alg. 4 does" if alike else "ends elsewhere"}: {number(last[MV_3])}.""",
            f"""The learned coupling ({curve(OURS, "coupling")[-1]:.2f} nats per neighbour) has {number(last[OURS])} at
            N = {many:,}, the oracle {number(last[ORACLE])}. At N = {few:,} it has {number(first[OURS])}, Alg. 4
            {number(first[ALG_4])}.""",
        ]
    )


EXPERIMENT = make_experiment("network-dense", 5.0, tell_findings)
