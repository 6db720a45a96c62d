"""Simulated networks of average degree one half."""

from __future__ import annotations

from .network_curves import make_experiment

EXPERIMENT = make_experiment(
    "network-sparse",
    0.5,
    """
- **Holds:** F grows with N and the error of the confusion matrices falls: Alg. 4 from {error_few} to {error_many}.
- **Holds:** even half a neighbour per item helps: Alg. 4 {alg_4_many} against {mm_many} for moments alone.
- **Does not hold here:** the paper sees MV + Alg. 3 level off early, below Alg. 4. Here both end alike ({mv_3_many} and
  {alg_4_many}). Where all workers are better than random the vote is a fair start ({mv_many}), and EM forgets it.
  Stopped after two iterations (the dotted line) its matrices stay {short_many} off, against {error_many}.
- The paper's coupling (delta = M, an edge outweighs a likelihood ratio of 148) is too strong for edges of which one in
  ten is wrong. The learned one ends at {coupling} nats per neighbour, the most that it may be, and reaches the oracle:
  {ours_many} of {best_many}.
- The oracle knows the matrices and the coupling and infers by belief propagation, which is exact on trees.
""",
)
