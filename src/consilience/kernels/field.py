"""Potts fields on graphs: mean field, iterated conditional modes, belief propagation, and learning the coupling.

Node i has unaries u[i, k] (log evidence plus log prior) and, over edge e to node j with weight w, gains beta w if its
label is that of j. Node i's edges are offsets[i]:offsets[i + 1]; every edge is there in both directions. Sweeps go
through the nodes in order, in place: each update uses the latest values, which is why objectives never fall. Nodes that
are not neighbours can be updated at once, and the result is the same to the bit.
"""

from __future__ import annotations

import numpy as np

from .compile import kernel
from .types import Floats, Integers, Width, read_only

# Products of messages below FAINT go into logarithms. No edge couples by more than FIRM: messages stay positive, and
# FAINT exp(-FIRM) is still a number.
FAINT, FIRM = 1e-100, 450.0
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
                if belief[k] < FAINT:  # each class on its own: later messages may turn the tide
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
    found = np.zeros(2)
    add_pseudo_likelihood(offsets, sums, external, coupling, posterior, np.empty(posterior.shape[1]), found)
    return float(found[0]), float(found[1])


@kernel
def add_pseudo_likelihood(
    offsets: Integers,
    sums: Floats,
    external: Floats,
    coupling: float,
    posterior: Floats,
    p: Floats,
    found: Floats,
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
            found[0] += (posterior[i, k] - p[k]) * sums[i, k]
        found[1] += square - mean * mean
