"""What is compiled, when, and how long that takes; and that results do not depend on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
from consilience.answers.answers import BLOCK_SIZE, cut_blocks
from consilience.kernels import LARGE, freeze, width_of
from consilience.kernels.answers import add_log_rows, count_rows, multiply_rows, normalise_items
from consilience.kernels.chain import forward_backward, viterbi
from consilience.kernels.graph import sweep_mean_field, sweep_messages, sweep_modes
from effort import examples

# ------------------------------------------------------------------------------------------------------------- widths


def test_all_blocks_of_a_data_set_have_the_same_width():
    """Also the last one, however small: what was compiled for the others serves it too."""
    rng = np.random.default_rng(0)
    r = cs.Answers.from_matrix(rng.integers(0, 3, (BLOCK_SIZE, 2)))
    blocks = cut_blocks(r, r.label, 3)
    assert len(blocks) > 1
    assert {width_of(3, block.total_size) for block in blocks} == {(0, 0, 0)}
    few = cs.Answers.from_matrix(rng.integers(0, 3, (100, 2)))
    (block,) = cut_blocks(few, few.label, 3)
    assert isinstance(width_of(3, block.total_size), np.ndarray)


def run_on_answers(rng, n_classes, width):
    """Return all that the kernels on answers give for answers drawn with `rng`."""
    sizes = rng.integers(0, 30, 12)
    offsets = freeze(np.append(0, np.cumsum(sizes)).astype(np.int64))
    codes = freeze(rng.integers(0, 9, offsets[-1]).astype(np.int32))
    probability = rng.dirichlet(np.full(n_classes, 0.1), size=9).clip(1e-30)
    probability[rng.random(probability.shape) < 0.1] = 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(probability)
    gold = freeze(rng.integers(-1, n_classes, 12).astype(np.int32) if rng.random() < 0.5 else np.empty(0, np.int32))
    weight = freeze(rng.random(len(codes)) if rng.random() < 0.5 else np.empty(0))
    answers = (codes, offsets, gold)
    product, power = (np.empty((12, n_classes)) for _ in range(2))
    counts, mass = np.zeros((9, n_classes)), np.zeros(n_classes)
    base, log_base, prior = (freeze(array) for array in (np.ones(n_classes), np.zeros(n_classes), probability[0] + 0.1))
    scales = [multiply_rows(*answers, freeze(probability), base, product, np.zeros(n_classes, np.int64), width)]
    scales += [add_log_rows(*answers, weight, freeze(logs), log_base, power, width)]
    posterior = product.copy()
    scales += [normalise_items(posterior, prior, freeze(np.empty(0, np.bool_)), mass, width)]
    count_rows(codes, offsets, weight, posterior, counts, width)
    return product, power, posterior, counts, mass, np.array(scales)


def run_on_chains(rng, n_classes, width):
    """Return all that the kernels on chains give."""
    sequences = freeze(np.append(0, np.cumsum(rng.integers(1, 15, 6))))
    evidence = rng.dirichlet(np.full(n_classes, 0.1), size=sequences[-1]) * 10.0 ** -rng.integers(0, 20)
    start, end = rng.dirichlet(np.ones(n_classes)), (rng.random(n_classes) < 0.8).astype(float)
    pair = rng.dirichlet(np.ones(n_classes), size=n_classes)
    pair[rng.random(pair.shape) < 0.3] = 0.0
    factors = tuple(freeze(factor) for factor in (start, pair, end))
    posterior, path = evidence.copy(), np.empty(len(evidence), np.int64)
    starts, pairs, mass = np.zeros(n_classes), np.zeros((n_classes, n_classes)), np.zeros(n_classes)
    value = forward_backward(sequences, posterior, *factors, starts, pairs, mass, width)
    viterbi(sequences, evidence, freeze(np.empty(0, np.int32)), *factors, path, width)
    return posterior, starts, pairs, mass, path, np.array(value)


def run_on_fields(rng, n_classes, width):
    """Return all that the kernels on graphs give."""
    source, target = rng.integers(0, 20, (2, 40))
    graph = cs.Graph.from_edges(source, target, rng.uniform(0.1, 2, 40), items=np.arange(20))
    unary = rng.normal(0, 3, (20, n_classes))
    edges = (graph.offsets, graph.neighbours, graph.weights)
    posterior, labels = rng.dirichlet(np.ones(n_classes), size=20), unary.argmax(axis=1)
    messages, beliefs = np.ones((len(graph.neighbours), n_classes)), np.empty_like(unary)
    links = (np.arange(20), graph.offsets, graph.weights, graph.reverse_edges)
    changes = [
        (
            sweep_mean_field(graph.independent_runs, *edges, unary, 0.7, posterior, width),
            sweep_modes(*edges, unary, 0.7, labels, width),
            sweep_messages(*links, unary, 0.7, 0.2, messages, beliefs, width),
        )
        for _ in range(3)
    ]
    return posterior, labels, messages, beliefs, np.array(changes)


@pytest.mark.robust
@examples(40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.sampled_from([2, 3]),
    run=st.sampled_from([run_on_answers, run_on_chains, run_on_fields]),
)
def test_both_widths_give_the_same_bits(seed, n_classes, run):
    plain, unrolled = (run(np.random.default_rng(seed), n_classes, width_of(n_classes, size)) for size in (0, LARGE))
    for one, other in zip(plain, unrolled, strict=True):
        assert np.array_equal(one, other)


# ------------------------------------------------------------------------------------------------- what gets compiled

FITS = """
import importlib, json, warnings
import numba, numpy as np, consilience as cs

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
rows = rng.integers(0, 4, (60, 9))  # with more answers per item than are multiplied without a look
gaps = np.where(rng.random(rows.shape) < 0.5, rows, -1)
crowds = [cs.Answers.from_matrix(each) for each in (rows, gaps, rng.integers(0, 6, (60, 9)))]
crowds.append(cs.Answers.from_probabilities(rng.dirichlet(np.ones(3), size=(60, 5))))
item, worker = np.divmod(rng.permutation(60 * 9), 9)
for dtype in (np.int32, np.int64):
    table = {"item": item.astype(dtype), "worker": worker.astype(dtype), "label": rows[item, worker]}
    crowds.append(cs.Answers.from_frame(table))
    crowds.append(cs.Answers.from_frame(table | {"weight": np.full(len(item), 0.5)}, weight="weight"))
sequences = [cs.Answers.from_matrix(each, lengths=[20] * 3) for each in (rows, gaps)]
graphs = [cs.Graph.grid((6, 10)), cs.Graph.from_edges(np.arange(59), np.arange(1, 60), items=np.arange(60))]
gold = {0: 1, 1: 2}
for r in crowds:
    cs.MajorityVote().fit(r)
    cs.MomentMatching().fit(r)
    for estimation in ("em", "variational"):
        model = cs.DawidSkene(estimation=estimation).fit(r)
        model.predict_proba(r)
        cs.DawidSkene(estimation=estimation, start="moments", prior="uniform").fit(r, gold=gold)
    if r.n_items == 60 and r.weight is None:
        for graph in graphs:
            for inference in ("mean_field", "icm", "belief_propagation"):
                cs.MarkovField(inference=inference).fit(r, graph=graph).predict_proba(r, graph=graph)
for r in sequences:
    for workers in ("confusion", "sequential"):
        for coupling in ("learn", 1.0):
            model = cs.HiddenMarkov(workers=workers, coupling=coupling).fit(r)
    cs.HiddenMarkov(coupling=1.0, start=model, estimation="em").fit(r, gold={(0, 3): 1}).predict(r)
found = {}
for name in ("answers", "chain", "columns", "graph", "moments"):
    module = importlib.import_module(f"consilience.kernels.{name}")
    for kernel in vars(module).values():
        if isinstance(kernel, numba.core.dispatcher.Dispatcher):
            found[kernel.py_func.__name__] = [str(signature) for signature in kernel.signatures]
print(json.dumps(found))
"""


def run_python(code, *arguments, **more):
    """Return what the code prints, in a process of its own; nothing may be written to stderr."""
    command = [sys.executable, "-c", code, *arguments]
    out = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **more}, check=True)
    assert out.stderr == ""
    return out.stdout


@pytest.mark.robust
def test_each_kernel_is_compiled_once_for_small_data():
    """Whatever the number of classes, the dtypes of the table, and the order in which models are fitted."""
    compiled = json.loads(run_python(FITS))
    assert {name: found for name, found in compiled.items() if len(found) > 1} == {}
    assert {"multiply_rows", "pass_both_ways", "update_nodes", "solve_in_turn"} <= {
        name for name, found in compiled.items() if found
    }


# ------------------------------------------------------------------------------------------------------------ first use


@pytest.mark.robust
def test_compiling_is_announced_once_and_only_where_it_happens(tmp_path):
    code = """
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(name)s %(levelname)s %(message)s", level=logging.INFO)
import consilience as cs
for labels in (["a", "b", "a"], ["a", "b", "c"]):
    cs.MajorityVote().fit({"item": [1, 1, 2], "worker": [1, 2, 1], "label": labels})
"""
    told = [run_python(code, NUMBA_CACHE_DIR=str(tmp_path)).splitlines() for _ in range(2)]
    assert told == [["consilience INFO Compiling for the first use: a few seconds."], []]


FIRST_FIT = f"import runpy; runpy.run_path({str(Path(__file__).parents[1] / 'benchmarks' / 'first_fit.py')!r})"
# Prints the name of each function that is compiled, and "numba" for those of numba itself.
WATCH = """
from numba.core import event

class Watcher(event.Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        print(function.__name__ if function.__module__.startswith("consilience.") else "numba")

    def on_end(self, event):
        pass

event.register("numba:compile", Watcher())
"""
SHARED = {"add_votes", "multiply_rows", "count_rows", "count_without", "sum_rows", "sum_chances"}
LEARNED = {"add_expectations", "digamma_and_log_gamma", "list_gammas", "add_polya", "add_left_out"}
NEEDED = {
    "DawidSkene": SHARED | LEARNED | {"normalise_items"},
    "HiddenMarkov": SHARED | LEARNED | {"pass_both_ways", "pass_forward", "pass_backward", "find_best_paths"},
    "MarkovField": SHARED
    | LEARNED
    | {"normalise_items", "update_nodes", "neighbour_sums", "field_objective", "add_pseudo_likelihood"},
    "MomentMatching": SHARED
    | {
        "normalise_items",
        "fill_products",
        "solve_in_turn",
        "follow_change",
        "add_worker_terms",
        "iterate_admm",
        "simplex_threshold",
    },
}


@pytest.mark.robust
@pytest.mark.parametrize("name", NEEDED)
def test_a_first_fit_compiles_what_it_needs_and_nothing_else(name, tmp_path):
    """Each function once. A NumPy function in a kernel would be compiled with it, often for longer than the kernel."""
    printed = run_python(WATCH + FIRST_FIT, name, NUMBA_CACHE_DIR=str(tmp_path))
    compiled = [line for line in printed.splitlines() if line[:1].isalpha()]
    own = [function for function in compiled if function != "numba"]
    assert sorted(own) == sorted(NEEDED[name])
    assert compiled.count("numba") <= 3


# Prints the processor's seconds of what nobody who compiles can avoid.
LEAST = """
import time
import numpy as np
start = time.process_time()
import numba
numba.njit(lambda a: np.log(a[0]) + a[1])(np.ones(2))
print(time.process_time() - start)
"""
# The same on the machine on which the bars were set.
USUAL_LEAST = 0.7


@pytest.mark.robust
@pytest.mark.parametrize(
    ("name", "bar"), [("DawidSkene", 4), ("HiddenMarkov", 4), ("MarkovField", 4), ("MomentMatching", 6)]
)
def test_first_use_is_quick(name, bar, tmp_path):
    """In seconds of a quiet machine; a slow one has as much more time, and a busy one twice as much again."""
    times = run_python(FIRST_FIT, name, NUMBA_CACHE_DIR=str(tmp_path)).splitlines()
    first, another = (float(line.split()[0]) for line in times)
    allowance = 2 * max(1.0, float(run_python(LEAST)) / USUAL_LEAST)
    assert first < bar * allowance
    assert another < 0.3 * allowance
