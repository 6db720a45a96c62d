"""Confusion workers: worker m answers l when the truth is k with probability Gamma_m[k, l], whatever else goes on."""

from __future__ import annotations

from typing import ClassVar

from .base import WorkerModel


class ConfusionWorkers(WorkerModel):
    """One confusion matrix per worker, of all classes and labels."""

    name: ClassVar[str] = "confusion"
    hears_silence: ClassVar[bool] = True
