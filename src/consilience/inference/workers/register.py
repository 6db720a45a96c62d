"""The worker models, by the value of the `workers` parameter. A new one is a file beside this one and a line here."""

from __future__ import annotations

from .base import WorkerModel
from .confusion import ConfusionWorkers
from .one_coin import OneCoinWorkers
from .sequential import SequentialWorkers

_KNOWN: tuple[type[WorkerModel], ...] = (
    ConfusionWorkers,
    SequentialWorkers,
    OneCoinWorkers,
)

WORKERS = {model.name: model for model in _KNOWN}
