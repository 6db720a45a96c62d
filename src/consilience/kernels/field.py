"""Potts fields on graphs: mean field, iterated conditional modes, belief propagation, and learning the coupling.

Node i has unaries u[i, k] (log evidence plus log prior) and, over edge e to node j with weight w, gains beta w if its
label is that of j. Node i's edges are offsets[i]:offsets[i + 1]; every edge is there in both directions. Sweeps go
through the nodes in order, in place: each update uses the latest values, which is why objectives never fall.
"""

from __future__ import annotations

import numpy as np

from .compile import Width, count_of, kernel
from .types import Floats, Integers


@kernel
def sweep_mean_field(
    offsets: Integers,
    neighbours: Integers,
    weights: Floats,
    unary: Floats,
    coupling: float,
    posterior: Floats,
    width: Width,
) -> float:
    """Update q[i, k] prop. to exp(u[i, k] + beta sum_e w_e q[j_e, k]) for all i in turn; return the largest change."""
    n_classes = count_of(width)
    field = np.empty(n_classes)
    largest = 0.0
    for i in range(offsets.size - 1):
        for k in range(n_classes):
            field[k] = 0.0
        for e in range(offsets[i], offsets[i + 1]):
            j = neighbours[e]
            w = weights[e]
            for k in range(n_classes):
                field[k] += w * posterior[j, k]
        top = -np.inf
        for k in range(n_classes):
            field[k] = unary[i, k] + coupling * field[k]
            top = max(top, field[k])
        total = 0.0
        for k in range(n_classes):
            field[k] = np.exp(field[k] - top)
            total += field[k]
        for k in range(n_classes):
            q = field[k] / total
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
    n_classes = count_of(width)
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
    """Send sum-product messages from each node in turn, and write its belief; return the largest change of a message.

    messages[e] goes along edge e, from the node that owns it; reverse[e] is the same edge seen from the other end. With
    c the sender's belief without what the receiver told it, normalised, a Potts message is 1 + (exp(beta w) - 1) c_k,
    here divided by exp(beta w), so that no entry exceeds 1.
    """
    n_classes = count_of(width)
    belief = np.empty(n_classes)
    cavity = np.empty(n_classes)
    largest = 0.0
    for i in range(offsets.size - 1):
        top = -np.inf
        for k in range(n_classes):
            top = max(top, unary[i, k])
        for k in range(n_classes):
            belief[k] = np.exp(unary[i, k] - top)
        for e in range(offsets[i], offsets[i + 1]):
            top = 0.0
            for k in range(n_classes):
                belief[k] *= messages[reverse[e], k]
                top = max(top, belief[k])
            if top < 1e-100:
                for k in range(n_classes):
                    belief[k] /= top
        total = 0.0
        for k in range(n_classes):
            total += belief[k]
        for k in range(n_classes):
            belief[k] /= total
            beliefs[i, k] = belief[k]
        for e in range(offsets[i], offsets[i + 1]):
            total = 0.0
            for k in range(n_classes):
                cavity[k] = belief[k] / messages[reverse[e], k]
                total += cavity[k]
            agree = np.exp(-coupling * weights[e])
            for k in range(n_classes):
                sent = agree + (1.0 - agree) * cavity[k] / total
                sent = damping * messages[e, k] + (1.0 - damping) * sent
                largest = max(largest, abs(sent - messages[e, k]))
                messages[e, k] = sent
    return largest


@kernel
def neighbour_sums(offsets: Integers, neighbours: Integers, weights: Floats, values: Floats, out: Floats) -> None:
    """Write out[i, k] = sum_e w_e values[j_e, k]."""
    n_classes = values.shape[1]
    for i in range(offsets.size - 1):
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


@kernel
def pseudo_likelihood_terms(sums: Floats, log_prior: Floats, coupling: float, posterior: Floats) -> tuple[float, float]:
    """Return gradient and curvature in beta of sum_ik q_ik log softmax_k(log pi_k + beta s_ik), of nodes with edges."""
    n_classes = posterior.shape[1]
    gradient = 0.0
    curvature = 0.0
    expected = np.empty(n_classes)
    for i in range(posterior.shape[0]):
        top = -np.inf
        linked = False
        for k in range(n_classes):
            expected[k] = log_prior[k] + coupling * sums[i, k]
            top = max(top, expected[k])
            linked = linked or sums[i, k] > 0.0
        if not linked:
            continue
        total = 0.0
        for k in range(n_classes):
            expected[k] = np.exp(expected[k] - top)
            total += expected[k]
        mean = 0.0
        square = 0.0
        for k in range(n_classes):
            p = expected[k] / total
            mean += p * sums[i, k]
            square += p * sums[i, k] * sums[i, k]
            gradient += posterior[i, k] * sums[i, k]
        gradient -= mean
        curvature += square - mean * mean
    return gradient, curvature
