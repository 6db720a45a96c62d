"""Chains against hmmlearn: forward-backward with counts, growth with the number of tokens, and EM on real abstracts."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import reduce
from importlib.util import find_spec
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hmmlearn import _hmmc
from hmmlearn.base import BaseHMM
from numpy.typing import NDArray

import consilience as cs
import real_crowds
from alone import half_of_memory, measure_alone
from consilience.answers.tagging import free_transitions
from consilience.engines import Threads
from consilience.inference.structures.chain import Chain, ChainParameters, ChainSummary
from consilience.kernels import LARGE, width_of
from peers import CHAIN_PEERS

N_CLASSES, LENGTH = 9, 40
TOKENS_PER_PIECE = 100_000
N_TOKENS, QUICK_TOKENS = 1_000_000, 20_000


class Piece(NamedTuple):
    """Some sequences and the evidence about their positions, which a pass overwrites."""

    sequences: NDArray[np.int64]
    evidence: NDArray[np.float64]

    def width(self, n_classes: int) -> Any:
        """Return the `width` argument of kernels, as a block of many answers does."""
        return width_of(n_classes, LARGE)


def make_chain() -> ChainParameters:
    """Return a chain with random start and transitions."""
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(N_CLASSES), size=N_CLASSES + 1)
    structure = Chain(N_CLASSES, None, 0.1, "em", 1.0, free_transitions(N_CLASSES))
    return structure.given(np.full(N_CLASSES, 1 / N_CLASSES), rows[0], rows[1:])


def make_evidence(n_tokens: int) -> NDArray[np.float64]:
    return np.random.default_rng(1).uniform(0.05, 1.0, (n_tokens, N_CLASSES))


def cut(evidence: NDArray[np.float64]) -> list[Piece]:
    """Return copies of consecutive pieces of whole sequences."""
    pieces = []
    for part in np.split(evidence, range(TOKENS_PER_PIECE, len(evidence), TOKENS_PER_PIECE)):
        bounds = np.append(np.arange(0, len(part), LENGTH), len(part))
        bounds.flags.writeable = False
        pieces.append(Piece(bounds, part.copy()))
    return pieces


def infer_piece(piece: Piece, chain: ChainParameters) -> ChainSummary:
    block: Any = piece  # a chain asks a block for nothing but its sequences and the width of kernels
    return chain.infer_block(block, piece.evidence)


def pass_over(pieces: list[Piece], chain: ChainParameters, n_threads: int) -> ChainSummary:
    """Turn evidence into posteriors and expected counts, as each iteration of a fit does."""
    return reduce(add, Threads(n_threads).map(infer_piece, pieces, chain))


def best_of(repeats: int, prepare: Callable[[], Any], action: Callable[[Any], Any]) -> tuple[float, Any]:
    """Return the shortest time of `action` alone, and its last result."""
    times = []
    for _ in range(repeats):
        given = prepare()
        start = time.perf_counter()
        result = action(given)
        times.append(time.perf_counter() - start)
        del given
    return min(times), result


class GivenEvidence(BaseHMM):
    """hmmlearn's model with evidence in place of observations."""

    def _compute_likelihood(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return X


def hmmlearn_step(chain: ChainParameters, evidence: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Return log likelihood and transition counts from hmmlearn's E-step."""
    model = GivenEvidence(N_CLASSES, params="st", implementation="scaling")
    model.startprob_, model.transmat_, model.n_features = chain.initial, chain.transition, N_CLASSES
    counts, value = model._do_estep(evidence, np.full(len(evidence) // LENGTH, LENGTH))
    return value, counts["trans"]


def hmmlearn_functions(chain: ChainParameters, evidence: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Return the same from hmmlearn's compiled functions, called one after the other for each sequence."""
    value, counts = 0.0, np.zeros((N_CLASSES, N_CLASSES))
    start, transition = np.array(chain.initial), np.array(chain.transition)
    for first in range(0, len(evidence), LENGTH):
        part = evidence[first : first + LENGTH]
        log_probability, forward, scale = _hmmc.forward_scaling(start, transition, part)
        backward = _hmmc.backward_scaling(start, transition, part, scale)
        posterior = forward * backward
        posterior /= posterior.sum(axis=1, keepdims=True)
        counts += _hmmc.compute_scaling_xi_sum(forward, transition, backward, part)
        value += log_probability
    return value, counts


def compare_passes(n_tokens: int, repeats: int) -> str:
    """Return the table of forward-backward with counts; all must find the same."""
    chain, evidence = make_chain(), make_evidence(n_tokens)
    pass_over(cut(evidence[:LENGTH]), chain, 1)  # compiles
    rival, (value, counts) = best_of(repeats, lambda: evidence, lambda given: hmmlearn_step(chain, given))
    bare, _ = best_of(repeats, lambda: evidence, lambda given: hmmlearn_functions(chain, given))
    lines = [
        "| | per pass | ratio |",
        "|---|---|---|",
        f"| hmmlearn, E-step, `scaling` | {rival * 1e3:,.0f} ms | 1 |",
        f"| hmmlearn, its compiled functions alone | {bare * 1e3:,.0f} ms | {rival / bare:.1f}x |",
    ]
    for n_threads in (1, 2):
        ours, found = best_of(2 * repeats, lambda: cut(evidence), lambda p, n=n_threads: pass_over(p, chain, n))
        np.testing.assert_allclose(found.log_normaliser, value, rtol=1e-9)
        np.testing.assert_allclose(found.pairs, counts, rtol=1e-6)
        name = f"consilience, {n_threads} thread{'s' * (n_threads > 1)}"
        lines.append(f"| {name} | {ours * 1e3:,.1f} ms | {rival / ours:.0f}x |")
    lines += [pass_of_peer(name, n_tokens, rival, value, counts) for name in CHAIN_PEERS]
    return "\n".join(lines)


def pass_of_peer(name: str, n_tokens: int, rival: float, value: float, counts: NDArray[np.float64]) -> str:
    """Return the line of a package that runs in a process of its own, if it is installed."""
    if find_spec(name) is None:
        return f"| {name} | not installed | |"
    script = Path(__file__).with_name("chain_peers.py")
    found, reason = measure_alone(script, name, n_tokens, seconds=600, memory=half_of_memory())
    if not found:
        return f"| {name} | {reason} | |"
    np.testing.assert_allclose(found[0]["value"], value, rtol=1e-9)
    np.testing.assert_allclose(found[0]["counts"], counts, rtol=1e-6)
    seconds = found[0]["seconds"]
    return f"| {name} | {seconds * 1e3:,.0f} ms | {rival / seconds:.1f}x |"


def time_iterations(responses: cs.Answers) -> str:
    """Return the table of full EM iterations: evidence, chain, counts and new parameters."""
    lines = ["| | per iteration | answers per second |", "|---|---|---|"]
    for estimation in ("em", "variational"):
        for n_threads in (1, 2):
            engine = Threads(n_threads)

            def fit(max_iter: int, estimation: str = estimation, engine: Threads = engine) -> object:
                model = cs.HiddenMarkov(
                    coupling=1.0, transitions="bio", decode="marginal", estimation=estimation, max_iter=max_iter, tol=0
                )
                return model.fit(responses, engine=engine)

            fit(1)
            long, _ = best_of(3, lambda: 12, fit)
            short, _ = best_of(3, lambda: 2, fit)
            step = (long - short) / 10
            name = f"{estimation}, {n_threads} thread{'s' * (n_threads > 1)}"
            lines.append(f"| {name} | {step * 1e3:,.0f} ms | {responses.n_responses / step / 1e6:.0f} M |")
    return "\n".join(lines)


def find_crowd(quick: bool) -> tuple[str, cs.Answers] | None:
    """Return the crowd that tagged medical abstracts, or a small one made up in its place; None if it is not here."""
    if quick:
        return "made-up tags", make_tags()
    r = real_crowds.load("pico").responses if real_crowds.is_present("pico") else None
    return None if r is None else ("abstracts of PICO", r)


def make_tags() -> cs.Answers:
    transition = [[0.95, 0.05, 0.0], [0.1, 0.0, 0.9], [0.1, 0.0, 0.9]]
    r = cs.simulate.sequences(20, 100, 6, 3, transition=transition, accuracy=0.8).responses
    item = r.item_of_answer()
    assert r.sequences is not None
    return cs.Answers.from_frame(
        {
            "sequence": r.sequences.of_items()[item],
            "position": r.sequences.position[item],
            "worker": r.worker,
            "label": np.array(["O", "B", "I"])[r.label],
        }
    )


def report(quick: bool = False) -> str:
    """Return all tables as Markdown."""
    n_tokens = QUICK_TOKENS if quick else N_TOKENS
    parts = [
        "## Sequences: chains",
        f"Forward-backward with expected counts of transitions, evidence given: {n_tokens:,} tokens, K={N_CLASSES}, "
        f"sequences of {LENGTH}, float64. hmmlearn's first line is the E-step of its `BaseHMM`; its second calls "
        "only its compiled functions. All find the same likelihood and counts.",
        compare_passes(n_tokens, 1 if quick else 3),
    ]
    found = find_crowd(quick)
    if found is None:
        parts.append("One EM iteration on the abstracts of PICO: not run, as the data are not here.")
    else:
        name, crowd = found
        parts += [
            f'One EM iteration of `HiddenMarkov(coupling=1.0, transitions="bio")`, evidence and counts included, on '
            f"the {name}: {crowd.n_responses:,} answers by {crowd.n_workers:,} workers about {crowd.n_items:,} tokens.",
            time_iterations(crowd),
        ]
    return "\n\n".join(parts) + "\n"
