"""The models, by name. A new one is a file beside this one and a line here.

Nothing is imported before a model is asked for: the command line shows these names in an instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .fitted import FittedModel


class Entry(NamedTuple):
    """Where a model lives: a module of this package, and a class in it."""

    module: str
    class_name: str


MODELS = {
    "majority": Entry("majority_vote", "MajorityVote"),
    "dawid-skene": Entry("dawid_skene", "DawidSkene"),
    "moments": Entry("moment_matching", "MomentMatching"),
    "hidden-markov": Entry("hidden_markov", "HiddenMarkov"),
    "markov-field": Entry("markov_field", "MarkovField"),
    "tags": Entry("tag_sets", "TagSets"),
}


def model_class(name: str) -> type[FittedModel]:
    """Return the class of a model by its name in the register.

    >>> model_class("dawid-skene").__name__
    'DawidSkene'
    """
    module, class_name = MODELS[name]
    found: type[FittedModel] = getattr(import_module(f".{module}", __package__), class_name)
    return found
