"""The methods that the paper compares, as settings of our models, and our own defaults.

What the paper leaves open is settled alike everywhere: EM adds a tenth of an answer to each count, so that no
probability is exactly zero; for independent items it learns the class prior, which the paper takes to be equal; fields
have none, as in the paper, and sweeps of ICM are made in place.
"""

from __future__ import annotations

from typing import Any

from ..models.dawid_skene import DawidSkene
from ..models.hidden_markov import HiddenMarkov
from ..models.majority_vote import MajorityVote
from ..models.markov_field import MarkovField
from ..models.moment_matching import MomentMatching

SINGLE_BEST, MV, MM, DS, ORACLE = "single best", "MV", "MM", "DS", "oracle"
# What else the words could mean: ties of the vote, and where Dawid and Skene's EM starts.
MV_FIRST, MV_OUTSIDE, MV_INSIDE = "MV, ties to the first", "MV, ties to O", "MV, ties not to O"
MV_DS = "MV + DS"
ALG_2, ALG_2_1, MV_1 = "Alg. 2", "Alg. 2 + Alg. 1", "MV + Alg. 1"
ALG_4, MV_3 = "Alg. 4", "MV + Alg. 3"
# Ours: what `fuse` chooses; the same without the structure; and with workers who look at their own previous answer.
OURS, OURS_ALONE, OURS_SEQUENTIAL = "consilience", "consilience, no structure", "consilience, sequential workers"
# EM stopped after two iterations, to see what a start is worth.
MV_1_SHORT, MV_3_SHORT = "MV + Alg. 1, 2 steps", "MV + Alg. 3, 2 steps"

_EM: dict[str, Any] = {"estimation": "em", "smoothing": 0.1, "max_iter": 500}
_CHAIN: dict[str, Any] = {"coupling": 1.0, **_EM}
_FIELD: dict[str, Any] = {"coupling": "paper", "inference": "icm", "prior": "uniform", **_EM}

# Algorithm 1 is EM for chains, 2 moments for chains, 3 EM for fields, 4 the same from moments.
METHODS: dict[str, Any] = {
    MV: lambda: MajorityVote(),
    MM: lambda: MomentMatching(),
    MV_FIRST: lambda: MajorityVote(ties="first"),
    DS: lambda: DawidSkene(start="moments", **_EM),
    MV_DS: lambda: DawidSkene(**_EM),
    ALG_2: lambda: HiddenMarkov(start="moments", **{**_CHAIN, "max_iter": 0}),
    ALG_2_1: lambda: HiddenMarkov(start="moments", **_CHAIN),
    MV_1: lambda: HiddenMarkov(**_CHAIN),
    MV_1_SHORT: lambda: HiddenMarkov(**{**_CHAIN, "max_iter": 2, "tol": 0}),
    ALG_4: lambda: MarkovField(start="moments", **_FIELD),
    MV_3: lambda: MarkovField(**_FIELD),
    MV_3_SHORT: lambda: MarkovField(**{**_FIELD, "max_iter": 2, "tol": 0}),
}
