"""Answers to the same item, compared with each other.

Sums over pairs of them are those of `consilience.metrics.agreement`.
"""

from __future__ import annotations

from . import Floats, Integers
from .compile import kernel


@kernel
def count_pairs(
    offsets: Integers,
    owner: Integers,
    label: Integers,
    weight: Floats,
    of_owner: Floats,
    of_label: Floats,
    paired: Integers,
    sums: Floats,
    label_mass: Floats,
) -> int:
    """Write sums of the items that at least two owners answered, and return how many there are.

    paired[n] is the item, and sums[:, n] are n_i, A_i, sum of w_a^2 and sum of m_iw^2. The weight of each label on
    these items is added to `label_mass`. An empty `weight` means that every weight is 1. Scratch, zero before and
    after: of_owner, of_label.
    """
    n = 0
    for i in range(offsets.size - 1):
        n_owners, mass, own = 0, 0.0, 0.0
        for j in range(offsets[i], offsets[i + 1]):
            w = weight[j] if weight.size > 0 else 1.0
            if of_owner[owner[j]] == 0.0:
                n_owners += 1
            of_owner[owner[j]] += w
            of_label[label[j]] += w
            mass += w
            own += w * w
        by_label, by_owner = 0.0, 0.0
        for j in range(offsets[i], offsets[i + 1]):
            by_label += of_label[label[j]] ** 2
            by_owner += of_owner[owner[j]] ** 2
            if n_owners > 1:
                label_mass[label[j]] += of_label[label[j]]
            of_label[label[j]] = 0.0
            of_owner[owner[j]] = 0.0
        if n_owners > 1:
            paired[n] = i
            sums[0, n], sums[1, n], sums[2, n], sums[3, n] = mass, by_label - own, own, by_owner
            n += 1
    return n


@kernel
def add_chance(
    offsets: Integers, label: Integers, weight: Floats, paired: Integers, label_mass: Floats, chance: Floats
) -> None:
    """Write chance[n], the sum over the answers to item paired[n] of their weight times the mass of their label."""
    for n in range(paired.size):
        total = 0.0
        for j in range(offsets[paired[n]], offsets[paired[n] + 1]):
            total += (weight[j] if weight.size > 0 else 1.0) * label_mass[label[j]]
        chance[n] = total
