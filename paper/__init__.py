"""The paper's experiments, measured again with this package: every figure and both tables.

P. A. Traganitis and G. B. Giannakis, "Unsupervised Ensemble Classification with Sequential and Networked Data".

Each module in `EXPERIMENTS` holds one experiment: what is run, how the results are drawn, and what the page says about
them. An `Experiment` is a list of jobs. A job is a function of plain settings that returns records. The records of an
experiment become a table (CSV), a figure (PNG) and a page (Markdown). ``make paper`` runs them, and takes the records
of a job from a cache as long as nothing that they depend on has changed.

This folder is not part of the installed package. It needs the dependency group ``paper``; real data must be in the
folder `$CONSILIENCE_DATA` (see `benchmarks/real_crowds.py`).
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING

from consilience.errors import MissingDependencyError, ParameterError

if TYPE_CHECKING:
    from .experiment import Experiment

NEEDED = ("matplotlib", "nltk", "sklearn")

# Name of an experiment: the module that holds it. The order is that of the paper.
EXPERIMENTS = {
    "sequence-items": "sequence_items",
    "sequence-workers": "sequence_workers",
    "network-sparse": "network_sparse",
    "network-dense": "network_dense",
    "table-1": "table_1",
    "table-2": "table_2",
    "overview": "overview",
    "chain-coupling": "chain_coupling",
    "sequence-choices": "sequence_choices",
    "silence": "silence",
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
        hint = [f"Did you mean {near[0]}?"] if near else []
        raise ParameterError(f"There is no experiment {name!r}.", *hint, f"Choose from {', '.join(EXPERIMENTS)}.")
    for package in NEEDED:
        try:
            import_module(package)
        except ImportError as error:
            raise MissingDependencyError(
                f"The experiments need the package {package!r}, which is not installed.",
                "Run `make paper`, which installs it, or `pip install --group paper`.",
            ) from error
    experiment: Experiment = import_module(f".{EXPERIMENTS[name]}", __name__).EXPERIMENT
    return experiment
