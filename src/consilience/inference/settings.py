"""What functions of this room need to know of a model: its settings, what they mean, and what it learned before."""

# ruff: noqa: D102 (the recipe says what each of them is)

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import Values
from ..answers.graph import Graph
from ..answers.responses import Responses
from ..engines.base import Engine
from ..kernels.types import Floats
from .em import Fit, Parameters, Problem, Progress
from .hidden_scores import CouplingScore
from .learned import Learned, Names
from .moments import MomentFit
from .sizes import Effort
from .sources import Source
from .structures.base import AnyStructure, Statistics, StructureParameters


class Before(NamedTuple):
    """What a fit that goes on takes from the one before; see `consilience.models.updating`.

    Attributes
    ----------
    starts_there : bool
        Whether the loop starts from what was learned.
    names, learned, smoothing
        Who was there, and what was learned of them.
    coupling, coupling_scores
        The coupling that was found, which is kept if it is one that is learned.
    """

    starts_there: bool
    names: Names
    learned: Learned
    smoothing: tuple[float, float] | None
    coupling: float | None
    coupling_scores: list[CouplingScore]


class Fitted(ABC):
    """A model that another one may start from."""

    is_fitted: bool
    workers_: Values
    answer_labels_: Values
    classes_: Values
    confusion_: Floats


class LatentSettings(Protocol):
    """The recipe of a model with a hidden truth; see `consilience.inference.recipes.base`."""

    @property
    def model(self) -> str: ...
    @property
    def start_choices(self) -> tuple[str, ...]: ...
    @property
    def calibration(self) -> Any: ...
    @property
    def classifier(self) -> Any: ...
    @property
    def start(self) -> Any: ...
    @property
    def n_init(self) -> int: ...
    @property
    def max_iter(self) -> int: ...
    @property
    def tol(self) -> float: ...
    @property
    def seed(self) -> int: ...
    @property
    def callback(self) -> Callable[[Progress], object] | None: ...
    @property
    def before(self) -> Before | None: ...

    def pose(self, source: Source, structure: AnyStructure, graph: Graph | None, engine: Engine) -> Problem: ...
    def run_from(self, problem: Problem, start: Parameters) -> Fit: ...
    def conclude(self, problem: Problem, learned: Parameters) -> tuple[Floats, NDArray[np.int64]]: ...
    def find_raised(self, r: Responses) -> NDArray[np.bool_]: ...
    def estimate_moments(self, answers: Responses) -> Effort: ...
    def start_apart(self, problem: Problem, votes: Statistics) -> Parameters: ...
    def structure_from_moments(
        self, r: Responses, structure: AnyStructure, found: MomentFit
    ) -> StructureParameters: ...
