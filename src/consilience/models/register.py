"""The estimators, by name. A new one is a file, and a line here.

Nothing is imported before a model is asked for: the command line shows these names in an instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """Where an estimator lives: a module, and a class in it."""

    module: str
    class_name: str


# What `fuse` can use.
MODELS = {
    "majority": Entry("models.majority_vote", "MajorityVote"),
    "dawid-skene": Entry("models.dawid_skene", "DawidSkene"),
    "moments": Entry("models.moment_matching", "MomentMatching"),
    "hidden-markov": Entry("models.hidden_markov", "HiddenMarkov"),
    "markov-field": Entry("models.markov_field", "MarkovField"),
    "tags": Entry("models.tag_sets", "TagSets"),
}
# What else files may hold.
OTHERS = {"bradley-terry": Entry("rankings.bradley_terry", "BradleyTerry")}


def model_class(name: str) -> type[Any]:
    """The class of an estimator by its name in the register.

    >>> model_class("dawid-skene").__name__
    'DawidSkene'
    """
    module, class_name = (MODELS | OTHERS)[name]
    found: type[Any] = getattr(import_module(f"..{module}", __package__), class_name)
    return found
