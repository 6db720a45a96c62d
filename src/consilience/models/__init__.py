"""The estimators, by name. A new one is a file, and a line here.

Nothing is imported before a model is asked for: the command line shows these names in an instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# What `fuse` can use: the module of each, and its class.
MODELS = {
    "majority": "models.independent.MajorityVote",
    "dawid-skene": "models.independent.DawidSkene",
    "moments": "models.independent.MomentMatching",
    "hidden-markov": "models.hidden_markov.HiddenMarkov",
    "markov-field": "models.markov_field.MarkovField",
    "tags": "models.tag_sets.TagSets",
    "measurement": "numbers.measurement.Measurement",
}
# What else files may hold.
OTHERS = {"bradley-terry": "rankings.bradley_terry.BradleyTerry", "questions": "models.questions.Questions"}


def model_class(name: str) -> type[Any]:
    """The class of an estimator by its name in the register.

    >>> model_class("dawid-skene").__name__
    'DawidSkene'
    """
    module, class_name = (MODELS | OTHERS)[name].rsplit(".", 1)
    model: type[Any] = getattr(import_module(f"..{module}", __name__), class_name)
    return model
