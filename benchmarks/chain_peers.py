"""One pass of forward-backward by dynamax or pomegranate, in a process of its own: `sequences.py` runs it.

python benchmarks/chain_peers.py dynamax 1000000      # prints seconds, log likelihood and counts of transitions
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alone import time_best
from sequences import LENGTH, N_CLASSES, make_chain, make_evidence

Floats = NDArray[np.float64]
# From start, transitions and evidence [sequence, position, class] to a pass: log likelihood and counts.
Passing = Callable[[], tuple[Any, Any]]


def prepare_dynamax(initial: Floats, transition: Floats, evidence: Floats) -> Passing:
    import jax
    import jax.numpy as jnp
    from dynamax.hidden_markov_model import hmm_smoother

    jax.config.update("jax_enable_x64", True)
    logs = jnp.log(jnp.asarray(evidence))

    @jax.jit
    def run(logs: Any) -> tuple[Any, Any]:
        found = jax.vmap(lambda each: hmm_smoother(initial, transition, each))(logs)
        return found.marginal_loglik.sum(), found.trans_probs.sum(axis=0)

    return lambda: jax.block_until_ready(run(logs))


def prepare_pomegranate(initial: Floats, transition: Floats, evidence: Floats) -> Passing:
    import torch
    from pomegranate.distributions import Categorical
    from pomegranate.hmm import DenseHMM

    torch.set_default_dtype(torch.float64)
    n_classes = len(initial)
    # Its emissions are given, so these serve for nothing but their number.
    unused = [Categorical([[0.5, 0.5]]) for _ in range(n_classes)]
    model = DenseHMM(unused, edges=transition, starts=initial, ends=np.full(n_classes, 1 / n_classes))
    logs = torch.log(torch.as_tensor(evidence))

    def run() -> tuple[Any, Any]:
        transitions, _, _, _, value = model.forward_backward(emissions=logs)
        # The probability of an end, the same for all classes, is not part of the other packages' models.
        return value.sum() + len(logs) * np.log(n_classes), transitions.sum(dim=0)

    return run


PEERS = {"dynamax": prepare_dynamax, "pomegranate": prepare_pomegranate}


def main(name: str, n_tokens: int) -> None:
    """Print the best time of three passes, and what they found."""
    chain, evidence = make_chain(), make_evidence(n_tokens).reshape(-1, LENGTH, N_CLASSES)
    run = PEERS[name](np.array(chain.initial), np.array(chain.transition), evidence)
    run()  # compiles
    seconds, _, (value, counts) = time_best(run, enough=30)
    print(json.dumps({"seconds": seconds, "value": float(value), "counts": np.asarray(counts).tolist()}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
