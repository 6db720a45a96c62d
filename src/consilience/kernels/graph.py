"""Levels and colours of the nodes of graphs, and Potts fields on them.

Fields have mean field, iterated conditional modes, belief propagation, and learning the coupling. Node i has unaries
u[i, k] (log evidence plus log prior) and, over edge e to node j with weight w, gains beta w if its label is that of j.
Node i's edges are offsets[i]:offsets[i + 1]; every edge is there in both directions. Sweeps go through the nodes in
order, in place: each update uses the latest values, which is why objectives never fall. Nodes that are not neighbours
can be updated at once, and the result is the same to the bit.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from . import LARGE, Floats, Integers, Width, read_only
from .compile import kernel

# Products of messages below FAINT go into logarithms. No edge couples by more than FIRM: messages stay positive, and
# FAINT exp(-FIRM) is still a number.
FAINTEST_PRODUCT, FIRM = 1e-100, 450.0
# Nodes whose neighbours are added up before the first of them is updated, if none of them are neighbours.
AT_A_TIME = 256


def sweep_mean_field(
    bounds: Integers,
    offsets: Integers,
    neighbours: Integers,
    weights: Floats,
    unary: Floats,
    coupling: float,
    posterior: Floats,
    width: Width,
) -> float:
    """Update q[i, k] prop. to exp(u[i, k] + beta sum_e w_e q[j_e, k]) for nodes in turn; return the largest change.

    The nodes are bounds[0]:bounds[-1], and no two in bounds[s]:bounds[s + 1] are neighbours. Their order does therefore
    not matter: their sums may be taken before any of them is updated, and threads may share them. No weights stand for
    weights of 1.
    """
    sums = np.empty((AT_A_TIME, len(width)))
    return float(update_nodes(read_only(bounds), offsets, neighbours, weights, unary, coupling, posterior, sums, width))


@kernel
def update_nodes(
    bounds: Integers,
    offsets: Integers,
    neighbours: Integers,
    weights: Floats,
    unary: Floats,
    coupling: float,
    posterior: Floats,
    sums: Floats,
    width: Width,
) -> float:
    """Do what `sweep_mean_field` says. Scratch: sums (AT_A_TIME, K).

    Sums come first, then powers: while one waits for the memory, the next can be asked for.
    """
    n_classes = len(width)
    largest = 0.0
    for s in range(bounds.size - 1):
        for begin in range(bounds[s], bounds[s + 1], AT_A_TIME):
            end = min(begin + AT_A_TIME, bounds[s + 1])
            for i in range(begin, end):
                for k in range(n_classes):
                    sums[i - begin, k] = 0.0
                if weights.size:
                    for e in range(offsets[i], offsets[i + 1]):
                        j = neighbours[e]
                        w = weights[e]
                        for k in range(n_classes):
                            sums[i - begin, k] += w * posterior[j, k]
                else:
                    for e in range(offsets[i], offsets[i + 1]):
                        j = neighbours[e]
                        for k in range(n_classes):
                            sums[i - begin, k] += posterior[j, k]
            for i in range(begin, end):
                row = i - begin
                top = -np.inf
                for k in range(n_classes):
                    sums[row, k] = unary[i, k] + coupling * sums[row, k]
                    top = max(top, sums[row, k])
                total = 0.0
                for k in range(n_classes):
                    sums[row, k] = np.exp(sums[row, k] - top)
                    total += sums[row, k]
                for k in range(n_classes):
                    q = sums[row, k] / total
                    largest = max(largest, abs(q - posterior[i, k]))
                    posterior[i, k] = q
    return largest


@kernel
def sweep_modes(
    offsets: Integers,
    neighbours: Integers,
    weights: Floats,
    unary: Floats,
    coupling: float,
    labels: Integers,
    width: Width,
) -> int:
    """Give each node in turn the label of largest u[i, k] + beta sum_e w_e [y_j = k]; return how many changed.

    Of equals the current label stays, so that the energy falls with every change and the sweeps come to an end.
    """
    n_classes = len(width)
    score = np.empty(n_classes)
    changed = 0
    for i in range(offsets.size - 1):
        for k in range(n_classes):
            score[k] = unary[i, k]
        for e in range(offsets[i], offsets[i + 1]):
            score[labels[neighbours[e]]] += coupling * weights[e]
        best = labels[i]
        for k in range(n_classes):
            if score[k] > score[best]:
                best = k
        if best != labels[i]:
            labels[i] = best
            changed += 1
    return changed


@kernel
def sweep_messages(
    order: Integers,
    offsets: Integers,
    weights: Floats,
    reverse: Integers,
    unary: Floats,
    coupling: float,
    damping: float,
    messages: Floats,
    beliefs: Floats,
    width: Width,
) -> float:
    """Send sum-product messages from each node in `order`, and write its belief; return a message's largest change.

    messages[e] goes along edge e, from the node that owns it; reverse[e] is the same edge seen from the other end. With
    c the sender's belief without what the receiver told it, normalised, a Potts message is 1 + (exp(beta w) - 1) c_k,
    here divided by exp(beta w), so that no entry exceeds 1; FIRM keeps it above 0.
    """
    n_classes = len(width)
    log_belief = np.empty(n_classes)
    belief = np.empty(n_classes)
    cavity = np.empty(n_classes)
    largest = 0.0
    for i in order:
        for k in range(n_classes):
            log_belief[k] = unary[i, k]
            belief[k] = 1.0
        for e in range(offsets[i], offsets[i + 1]):
            for k in range(n_classes):
                belief[k] *= messages[reverse[e], k]
                if belief[k] < FAINTEST_PRODUCT:  # each class on its own: later messages may turn the tide
                    log_belief[k] += np.log(belief[k])
                    belief[k] = 1.0
        top = -np.inf
        for k in range(n_classes):
            log_belief[k] += np.log(belief[k])
            top = max(top, log_belief[k])
        total = 0.0
        for k in range(n_classes):
            belief[k] = np.exp(log_belief[k] - top)
            total += belief[k]
        for k in range(n_classes):
            belief[k] /= total
            beliefs[i, k] = belief[k]
        for e in range(offsets[i], offsets[i + 1]):
            total = 0.0
            for k in range(n_classes):
                cavity[k] = belief[k] / messages[reverse[e], k]
                total += cavity[k]
            agree = np.exp(-min(coupling * weights[e], FIRM))
            for k in range(n_classes):
                sent = agree + (1.0 - agree) * cavity[k] / total
                sent = damping * messages[e, k] + (1.0 - damping) * sent
                largest = max(largest, abs(sent - messages[e, k]))
                messages[e, k] = sent
    return largest


@kernel
def neighbour_sums(
    begin: int, end: int, offsets: Integers, neighbours: Integers, weights: Floats, values: Floats, out: Floats
) -> None:
    """Write out[i, k] = sum_e w_e values[j_e, k] for nodes begin:end."""
    n_classes = values.shape[1]
    for i in range(begin, end):
        for k in range(n_classes):
            out[i, k] = 0.0
        for e in range(offsets[i], offsets[i + 1]):
            for k in range(n_classes):
                out[i, k] += weights[e] * values[neighbours[e], k]


@kernel
def field_objective(unary: Floats, sums: Floats, coupling: float, posterior: Floats) -> float:
    """Return sum_ik q (u + beta s / 2 - log q): each edge is met from both ends."""
    total = 0.0
    for i in range(posterior.shape[0]):
        for k in range(posterior.shape[1]):
            q = posterior[i, k]
            if q > 0.0:
                total += q * (unary[i, k] + 0.5 * coupling * sums[i, k] - np.log(q))
    return total


def pseudo_likelihood_slope(
    offsets: Integers, sums: Floats, external: Floats, coupling: float, posterior: Floats
) -> tuple[float, float]:
    """Return slope and curvature in beta of sum_ik q_ik log softmax_k(h_k + beta s_ik).

    The sum is over nodes with edges. With p the softmax and m = sum_k p_k s_k, a node adds

        sum_k (q_k - p_k) s_k   and   sum_k p_k s_k^2 - m^2
    """
    slopes = np.zeros(2)
    add_pseudo_likelihood(offsets, sums, external, coupling, posterior, np.empty(posterior.shape[1]), slopes)
    return float(slopes[0]), float(slopes[1])


@kernel
def add_pseudo_likelihood(
    offsets: Integers,
    sums: Floats,
    external: Floats,
    coupling: float,
    posterior: Floats,
    p: Floats,
    slopes: Floats,
) -> None:
    """Do what `pseudo_likelihood_slope` says. Scratch: p (K,)."""
    n_classes = p.size
    for i in range(posterior.shape[0]):
        if offsets[i] == offsets[i + 1]:
            continue
        top = -np.inf
        for k in range(n_classes):
            p[k] = external[k] + coupling * sums[i, k]
            top = max(top, p[k])
        total = 0.0
        for k in range(n_classes):
            p[k] = np.exp(p[k] - top)
            total += p[k]
        mean = 0.0
        square = 0.0
        for k in range(n_classes):
            p[k] /= total
            mean += p[k] * sums[i, k]
            square += p[k] * sums[i, k] * sums[i, k]
            slopes[0] += (posterior[i, k] - p[k]) * sums[i, k]
        slopes[1] += square - mean * mean


def find_levels(offsets: Integers, neighbours: Integers, starts: Integers) -> tuple[Integers, int]:
    """Search a graph breadth first; return the level of each node, and the number of components.

    Node i has the neighbours neighbours[offsets[i]:offsets[i + 1]]. Components begin at the node that comes first in
    `starts`, which is one level above all of the components before, and its neighbours are one level above it.
    """
    levels, queue = np.full(offsets.size - 1, -1), np.zeros(offsets.size - 1, np.int64)
    # Python does it where there are few edges.
    search = number_levels if neighbours.size >= LARGE else cast(Any, number_levels).py_func
    return levels, int(search(read_only(offsets), read_only(neighbours), read_only(starts), levels, queue))


@kernel
def number_levels(offsets: Integers, neighbours: Integers, starts: Integers, levels: Integers, queue: Integers) -> int:
    """Write what `find_levels` says, and return the number of components; levels are -1 at first. Scratch: queue."""
    n_components, n_levels, end = 0, 0, 0
    for start in starts:
        if levels[start] >= 0:
            continue
        n_components += 1
        levels[start] = n_levels
        head = end
        queue[end] = start
        end += 1
        while head < end:
            i = queue[head]
            head += 1
            for e in range(offsets[i], offsets[i + 1]):
                j = neighbours[e]
                if levels[j] < 0:
                    levels[j] = levels[i] + 1
                    queue[end] = j
                    end += 1
        n_levels = levels[queue[end - 1]] + 1
    return n_components


@kernel
def pick_colours(
    offsets: Integers,
    neighbours: Integers,
    order: Integers,
    rank: Integers,
    together: int,
    colours: Integers,
    taken: Integers,
) -> None:
    """Write the colour of each node along `order`: the first that no earlier neighbour of the same run has.

    Runs are `together` nodes long, and rank[order[p]] = p. Scratch: taken, longer than the largest degree, and -1.
    """
    for p in range(order.size):
        i = order[p]
        begin = p // together * together
        for e in range(offsets[i], offsets[i + 1]):
            r = rank[neighbours[e]]
            if begin <= r < p:
                taken[colours[r]] = p
        colour = 0
        while taken[colour] == p:
            colour += 1
        colours[p] = colour


@kernel
def split_at_neighbours(offsets: Integers, neighbours: Integers, bounds: Integers) -> int:
    """Write where runs of nodes begin that have no neighbours among them, each as long as can be; return their number.

    The neighbours of each node must be sorted. bounds must have room for each node and one more.
    """
    n_runs, begin = 0, 0
    bounds[0] = 0
    for i in range(offsets.size - 1):
        for e in range(offsets[i], offsets[i + 1]):
            j = neighbours[e]
            if j >= i:
                break
            if j >= begin:
                n_runs += 1
                begin = i
                bounds[n_runs] = i
                break
    bounds[n_runs + 1] = offsets.size - 1
    return n_runs + 1
