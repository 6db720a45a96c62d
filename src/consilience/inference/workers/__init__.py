"""Worker models: how a worker answers. They turn answers into evidence, and posteriors into expected counts.

`base` says what a worker model is, and `rows` holds what all of them share. Each of the other files holds one worker
model. A new one is a file beside them and a line here.
"""

from __future__ import annotations

from ...answers.answers import Answers
from .base import ConfusionWorkers, WorkerModel
from .one_coin import OneCoinWorkers
from .ordinal import NominalWorkers, OrdinalWorkers
from .sequential import SequentialWorkers
from .tags import TagWorkers
from .temperatures import MeanWorkers, TemperatureWorkers

_KNOWN: tuple[type[WorkerModel], ...] = (
    ConfusionWorkers,
    SequentialWorkers,
    OneCoinWorkers,
    OrdinalWorkers,
    NominalWorkers,
    TagWorkers,
    TemperatureWorkers,
    MeanWorkers,
)

# By the value of the `workers` parameter.
WORKERS = {model.name: model for model in _KNOWN}


def voters(r: Answers) -> WorkerModel:
    """The workers of models that only need the votes: silence is no vote."""
    kind: type[WorkerModel] = MeanWorkers if r.soft is not None else ConfusionWorkers
    return kind(r.n_workers, r.class_of_label, r.n_classes)
