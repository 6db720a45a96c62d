"""The methods that the paper compares, as settings of our models, and our own defaults.

What the paper leaves open is settled in the same way everywhere. EM adds a tenth of an answer to each count, so that no
probability is exactly zero. For independent items it learns the class prior, which the paper takes to be uniform;
fields have no prior, as in the paper. Sweeps of ICM update labels in place.
"""

from __future__ import annotations

from typing import Any

from consilience import DawidSkene, HiddenMarkov, MajorityVote, MarkovField, MomentMatching

SINGLE_BEST, MV, MM, DS, ORACLE = "single best", "MV", "MM", "DS", "oracle"
# Other readings of MV and DS: how ties of the vote are broken, and where Dawid and Skene's EM starts.
MV_FIRST, MV_OUTSIDE, MV_INSIDE = "MV, ties to the first", "MV, ties to O", "MV, ties not to O"
MV_DS = "MV + DS"
ALG_2, ALG_2_1, MV_1 = "Alg. 2", "Alg. 2 + Alg. 1", "MV + Alg. 1"
ALG_4, MV_3 = "Alg. 4", "MV + Alg. 3"
# Ours: the model that `fuse` chooses, the same without the structure, and the same with sequential workers.
OURS, OURS_ALONE, OURS_SEQUENTIAL = "consilience", "consilience, no structure", "consilience, sequential workers"
# Ours with other settings: the best class of each position, and any transition between tags.
OURS_MARGINAL, OURS_FREE, OURS_FREE_FULL = (f"consilience, {what}" for what in ("marginal", "free", "free, coupling 1"))
# EM stopped after two iterations, which shows how much depends on the start.
MV_1_SHORT, MV_3_SHORT = "MV + Alg. 1, 2 steps", "MV + Alg. 3, 2 steps"

# The paper has no calibration: labels are compared as the fit finds them. Calibration changes few.
LABELS: dict[str, Any] = {"calibration": "none"}

_EM: dict[str, Any] = {"estimation": "em", "smoothing": 0.1, **LABELS, "max_iter": 500}
_CHAIN: dict[str, Any] = {"coupling": 1.0, **_EM}
_FIELD: dict[str, Any] = {"coupling": "paper", "inference": "icm", "prior": "uniform", **_EM}

# Algorithm 1 is EM for chains, 2 moments for chains, 3 EM for fields, 4 the same EM started from moments.
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
