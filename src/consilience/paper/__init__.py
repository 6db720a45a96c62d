"""The paper's experiments, measured anew: every figure and both tables.

P. A. Traganitis and G. B. Giannakis, "Unsupervised Ensemble Classification with Sequential and Networked Data".

Each module named here is one experiment: what is run, how it is drawn, what is told. An `Experiment` is a list of jobs,
each a function of plain settings that returns records; its results are a table of records (CSV), a figure and a page
of Markdown. `consilience reproduce` runs them, and remembers what a job gave as long as all it depends on is the same.

It needs the extra ``paper``, and the tables need the data (see `consilience.datasets`).
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING

from ..errors import MissingDependencyError, ParameterError

if TYPE_CHECKING:
    from .experiment import Experiment

NEEDED = ("matplotlib", "nltk", "sklearn")

# Name of an experiment: the module it is in. The order is that of the paper.
EXPERIMENTS = {
    "sequence-items": "sequence_items",
    "sequence-workers": "sequence_workers",
    "network-sparse": "network_sparse",
    "network-dense": "network_dense",
    "table-1": "table_1",
    "table-2": "table_2",
    "overview": "overview",
    "chain-strength": "chain_strength",
    "other-sets": "other_sets",
}


def find(name: str) -> Experiment:
    """Return an experiment by its name.

    >>> find("table-3")
    Traceback (most recent call last):
    consilience.errors.ParameterError: There is no experiment 'table-3'. Did you mean table-2? Choose from ...
    """
    if name not in EXPERIMENTS:
        near = difflib.get_close_matches(name, EXPERIMENTS, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ParameterError(f"There is no experiment {name!r}.{hint} Choose from {', '.join(EXPERIMENTS)}.")
    for package in NEEDED:
        try:
            import_module(package)
        except ImportError as error:
            raise MissingDependencyError(
                f"The experiments need the package '{package}': pip install 'consilience[paper]'."
            ) from error
    experiment: Experiment = import_module(f".{EXPERIMENTS[name]}", __name__).EXPERIMENT
    return experiment
