"""Fields on graphs: one sweep against scipy's sparse product on the same graph, and a million nodes end to end."""

from __future__ import annotations

import resource
import time

import numpy as np

import consilience as cs
from consilience.inference.structures.field import run_mean_field
from consilience.kernels import width_of
from consilience.kernels.graph import sweep_messages
from independent import best_time

N_CLASSES = 5
N_SWEEPS = 5


def make_graph(n_items: int, n_edges: int, reach: int | None, seed: int = 0) -> cs.Graph:
    """Return a random graph whose edges join any two items, or items at most `reach` places apart."""
    rng = np.random.default_rng(seed)
    source = rng.integers(0, n_items, n_edges)
    target = (
        rng.integers(0, n_items, n_edges) if reach is None else (source + rng.integers(1, reach, n_edges)) % n_items
    )
    return cs.Graph.from_edges(source, target, items=np.arange(n_items))


def compare_sweeps(n_items: int, n_edges: int) -> str:
    """Return the table of one sweep over the edges."""
    lines = [
        "| graph | `A @ q` (scipy) | mean field, 1 thread | ratio | 2 threads | ratio | belief propagation | ratio "
        "| order and colours, once |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, reach in (("neighbours near in memory", 1000), ("neighbours anywhere", None)):
        given = make_graph(n_items, n_edges, reach)
        started = time.perf_counter()
        _, graph = given.by_visit
        bounds = graph.independent_runs
        ordering = time.perf_counter() - started
        rng = np.random.default_rng(1)
        posterior = rng.dirichlet(np.ones(N_CLASSES), size=n_items)
        unary = np.log(posterior)
        matrix, width = given.to_scipy(), width_of(N_CLASSES, len(graph.neighbours))
        messages, beliefs = np.ones((len(graph.neighbours), N_CLASSES)), np.empty_like(posterior)
        order, reverse = np.arange(n_items), graph.reverse_edges
        actions = (
            lambda m=matrix, q=posterior: m @ q,
            lambda g=graph, u=unary, q=posterior: run_mean_field(g, u, 1.0, q, N_SWEEPS, 0.0, 1),
            lambda g=graph, u=unary, q=posterior: run_mean_field(g, u, 1.0, q, N_SWEEPS, 0.0, 2),
            lambda g=graph, o=order, r=reverse, u=unary, m=messages, b=beliefs, w=width: sweep_messages(
                o, g.offsets, g.weights, r, u, 1.0, 0.2, m, b, w
            ),
        )
        for action in actions:
            action()
        product, alone, shared, belief = (best_time(action, 3) for action in actions)
        times = (alone / N_SWEEPS, shared / N_SWEEPS, belief)
        ratios = " | ".join(f"{each * 1e3:,.0f} ms | {each / product:.1f}x" for each in times)
        lines.append(
            f"| {name}: {n_items:,} items, {len(graph.neighbours):,} directed edges, {len(bounds) - 1:,} runs without "
            f"neighbours | {product * 1e3:,.0f} ms | {ratios} | {ordering:.1f} s |"
        )
    return "\n".join(lines)


def time_end_to_end(n_items: int) -> str:
    """Return the time of a whole fit, and the memory of this process at its peak."""
    crowd = cs.simulate.network(n_items, 20, N_CLASSES, degree=5, answers_per_item=5)
    model = cs.MarkovField()
    started = time.perf_counter()
    model.fit(crowd.responses, graph=crowd.graph)
    seconds = time.perf_counter() - started
    accuracy = cs.metrics.accuracy(crowd.truth, model.labels_)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return "\n".join(
        [
            "| whole fit | time | iterations | accuracy | peak of the process |",
            "|---|---|---|---|---|",
            f"| {n_items:,} nodes, {crowd.graph.n_edges:,} edges, {crowd.responses.n_responses:,} answers "
            f"| {seconds:.0f} s | {model.n_iter_} | {accuracy:.3f} | {peak:.1f} GiB |",
        ]
    )


def report(quick: bool = False) -> str:
    """Return all tables as Markdown."""
    n_items, n_edges = (2_000, 10_000) if quick else (1_000_000, 5_000_000)
    parts = [
        "## Networks: Markov fields",
        f"One sweep over a graph with K = {N_CLASSES} classes, beside scipy's product of the adjacency matrix with the "
        "posteriors.",
        compare_sweeps(n_items, n_edges),
        time_end_to_end(n_items),
    ]
    return "\n\n".join(parts) + "\n"
