"""How probable runs of labels are in a chain: spans of texts, from their first token to their last.

Labels of neighbours depend on each other, so that the probability of a run is no product of posteriors. Given the
evidence, the labels of a sequence are a Markov chain again, whose steps are told in `consilience.kernels.chain`.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..answers.blocks import Block
from ..kernels.types import Floats
from .em import Parameters, Problem, weigh_left_out
from .structures.base import Statistics
from .structures.chain import ChainParameters
from .workers.left_out import Counted
from .workers.rows import Factors, weigh


def follow_labels(
    problem: Problem,
    learned: Parameters,
    statistics: Statistics | None,
    posterior: Floats,
    codes: NDArray[np.int64],
    goes_on: Floats,
) -> Floats:
    """Return the parts of the probabilities of runs of labels in a chain, (n_items, 3); see `kernels.chain`.

    With `statistics` evidence is from counts without each item, and the chain relaxed, as for calibrated posteriors.
    Classes that nobody said and no label is are left out: left-out evidence does not hold it against them.
    """
    structure = cast(ChainParameters, learned.structure)
    factors = problem.factors(learned.workers)
    if statistics is None:
        parts = problem.engine.map(follow_block, problem.placed, factors, structure, codes, goes_on)
    else:
        counted = problem.workers.counted(statistics.counts, statistics.summary.mass, learned.prior)
        unused = np.setdiff1d(problem.find_unsaid(), codes)
        shared = (counted, posterior, structure.for_left_out(), codes, goes_on, unused)
        parts = problem.engine.map(follow_block_left_out, problem.placed, *shared)
    return np.concatenate(list(parts))


def follow_block(
    block: Block, factors: Factors, structure: ChainParameters, codes: NDArray[np.int64], goes_on: Floats
) -> Floats:
    """Parts of the probabilities of runs of labels in one block."""
    own = codes[block.first_item : block.first_item + block.n_items]
    return structure.follow_block(block, weigh(block, factors)[0], own, goes_on)


def follow_block_left_out(
    block: Block,
    counted: Counted,
    posterior: Floats,
    structure: ChainParameters,
    codes: NDArray[np.int64],
    goes_on: Floats,
    unused: NDArray[np.int64],
) -> Floats:
    """As `follow_block`, from counts without each item."""
    evidence, _ = weigh_left_out(block, counted, posterior, use_gold=True)
    evidence[:, unused] = 0.0
    own = codes[block.first_item : block.first_item + block.n_items]
    return structure.follow_block(block, evidence, own, goes_on)
