"""Simulated networks of average degree five."""

from __future__ import annotations

from .network_curves import make_experiment

EXPERIMENT = make_experiment(
    "network-dense",
    5.0,
    """
- **Holds:** with more neighbours the graph is worth more: Alg. 4 has {alg_4_many} where moments alone have {mm_many}, a
  gap several times that at degree 0.5.
- **Holds:** errors of the confusion matrices fall with N ({error_few} to {error_many}); MV + Alg. 3 ends where Alg. 4
  does ({mv_3_many}).
- The learned coupling ({coupling} nats per neighbour) does still better with many items, {ours_many} of the oracle's
  {best_many}, and worse with few: {ours_few} against {alg_4_few} at N = {few}.
""",
)
