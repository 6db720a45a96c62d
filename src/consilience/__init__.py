"""Fuse the labels of many fallible workers into one, with probabilities and no ground truth.

import consilience as cs

fused = cs.fuse("answers.csv")        # item, worker, label
fused.to_frame()                      # label, confidence and class probabilities of each item
fused.worker_report()                 # how reliable each worker is
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .models import MODELS
from .version import __version__

# Where each public name lives. Modules are imported when a name is first used: `import consilience` is instant.
_HOMES = {
    "Answers": "answers.answers",
    "Graph": "answers.graph",
    "BradleyTerry": "rankings.bradley_terry",
    "Comparisons": "rankings.comparisons",
    "Spans": "kinds.spans",
    "Masks": "kinds.masks",
    "Tags": "kinds.tags",
    "read_answers": "formats.sources",
    "scan_answers": "formats.scanning",
    "read_spans": "formats.sources",
    "read_tags": "formats.sources",
    "write_spans": "formats.sources",
    "write_labels": "formats.sources",
    "read_masks": "formats.masks",
    "write_masks": "formats.masks",
    **{name: module for module, _, name in (entry.rpartition(".") for entry in MODELS.values())},
    "fuse": "api",
    "rank": "api",
    "estimate": "api",
    "check": "evaluation.checking",
    "held_out_score": "api",
    "evaluate": "evaluation.labels",
    "load": "api",
    "report": "api",
    "chart": "api",
}
_MODULES = ("engines", "errors", "metrics", "simulate")

__all__ = [*_HOMES, *_MODULES, "__version__"]

if TYPE_CHECKING:
    from . import engines as engines
    from . import errors as errors
    from . import metrics as metrics
    from . import simulate as simulate
    from .answers.answers import Answers as Answers
    from .answers.graph import Graph as Graph
    from .api import chart as chart
    from .api import estimate as estimate
    from .api import fuse as fuse
    from .api import held_out_score as held_out_score
    from .api import load as load
    from .api import rank as rank
    from .api import report as report
    from .evaluation.checking import check as check
    from .evaluation.labels import evaluate as evaluate
    from .formats.masks import read_masks as read_masks
    from .formats.masks import write_masks as write_masks
    from .formats.scanning import scan_answers as scan_answers
    from .formats.sources import read_answers as read_answers
    from .formats.sources import read_spans as read_spans
    from .formats.sources import read_tags as read_tags
    from .formats.sources import write_labels as write_labels
    from .formats.sources import write_spans as write_spans
    from .kinds.masks import Masks as Masks
    from .kinds.spans import Spans as Spans
    from .kinds.tags import Tags as Tags
    from .models.hidden_markov import HiddenMarkov as HiddenMarkov
    from .models.independent import DawidSkene as DawidSkene
    from .models.independent import MajorityVote as MajorityVote
    from .models.independent import MomentMatching as MomentMatching
    from .models.markov_field import MarkovField as MarkovField
    from .models.tag_sets import TagSets as TagSets
    from .numbers.measurement import Measurement as Measurement
    from .rankings.bradley_terry import BradleyTerry as BradleyTerry
    from .rankings.comparisons import Comparisons as Comparisons


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'consilience' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
