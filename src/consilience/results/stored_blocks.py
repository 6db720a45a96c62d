"""Blocks of a store as a fit needs them: with the rows of its worker model, and with weights of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..answers.blocks import Block, renumber
from ..answers.items import Sequences
from ..answers.responses import Responses
from ..checks.copy_groups import share_votes
from ..engines.base import Engine, Placed
from ..inference.steps import Steps
from ..inference.workers.base import WorkerModel
from ..inference.workers.confusion import ConfusionWorkers
from ..kernels.types import Integers, freeze
from ..models.base import Model
from ..storage.answers import StoredResponses
from ..storage.layout import StoredBlock
from ..storage.opening import Opening

# Settings that say when a fit stops, and not which way it goes.
STOPPING = ("callback", "max_iter", "tol")


def place_stored(s: StoredResponses, workers: WorkerModel, engine: Engine) -> tuple[Engine, Sequence[Placed]]:
    """Return the engine that opens the blocks of a store, and its groups of blocks where it has put them."""
    opening = Opening(engine, partial(open_stored, workers=workers, groups=s.groups))
    return opening, opening.place(s.grouped_blocks())


def find_steps(s: StoredResponses, model: Model) -> Steps:
    """Return where the E-steps of a fit of a model to these answers are kept."""
    settings = {name: value for name, value in model.get_params().items() if name not in STOPPING}
    run = s.gold, s.groups, s.classes.tolist(), type(model).__name__, settings
    return Steps(s.folder / "steps", run, needed=s.resume)


def open_stored(block: StoredBlock, workers: WorkerModel, groups: Integers | None) -> Block:
    """Return a block as the fit takes it."""
    return prepare_block(block.open(), workers, groups)


def prepare_block(block: Block, workers: WorkerModel, groups: Integers | None) -> Block:
    """Return a block with the rows of another worker model, or with weights such that near-copies count once."""
    if groups is None and workers.name == ConfusionWorkers.name:
        return block
    answers = recover_answers(block, workers)
    if groups is not None:
        share = share_votes(answers, groups)
        answers = replace(answers, weight=share if answers.weight is None else share * answers.weight)
        block = replace(block, weight=freeze(answers.weights()))
    if workers.name == ConfusionWorkers.name:
        return block
    rows, codes = renumber(workers.encode(answers), workers.n_rows)
    return replace(block, codes=freeze(codes), rows=freeze(rows))


def recover_answers(block: Block, workers: WorkerModel) -> Responses:
    """Return the answers of a block of a store as `Responses`, with numbers for ids."""
    worker, label = np.divmod(block.rows[block.codes], workers.n_labels)
    numbers = np.arange(block.n_items)
    keys = (
        numbers
        if not len(block.sequences)
        else Sequences(np.arange(len(block.sequences) - 1), block.sequences, numbers)
    )
    return Responses(
        offsets=block.offsets.astype(np.int64, copy=False),
        worker=worker.astype(np.int32),
        label=label.astype(np.int32),
        weight=block.weight if len(block.weight) else None,
        workers=np.arange(workers.n_workers),
        labels=np.arange(workers.n_labels),
        classes=np.arange(workers.n_classes),
        keys=keys,
    )
