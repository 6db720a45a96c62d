"""The numbers printed in the paper's two tables."""

from __future__ import annotations

from .methods import ALG_2, ALG_2_1, ALG_4, DS, MV, MV_1, MV_3, SINGLE_BEST

_SEQUENCES = (SINGLE_BEST, MV, DS, ALG_2, ALG_2_1, MV_1)
_NETWORKS = (SINGLE_BEST, MV, DS, ALG_4, MV_3)

# Data: precision, recall and F of each method.
TABLE_1 = {
    data: {
        score: dict(zip(_SEQUENCES, values, strict=True))
        for score, values in zip(("precision", "recall", "f"), rows, strict=True)
    }
    for data, rows in {
        "POS": (
            (0.2316, 0.22916, 0.23406, 0.24785, 0.25856, 0.22972),
            (0.2573, 0.23518, 0.25629, 0.24396, 0.26638, 0.24497),
            (0.2356, 0.22598, 0.22264, 0.23352, 0.24735, 0.23007),
        ),
        "NER": (
            (0.90, 0.79, 0.77, 0.74, 0.77, 0.75),
            (0.24, 0.59, 0.66, 0.89, 0.69, 0.66),
            (0.89, 0.68, 0.71, 0.62, 0.72, 0.70),
        ),
        "Biomedical IE": (
            (0.94, 0.89, 0.81, 0.75, 0.69, 0.62),
            (0.76, 0.45, 0.57, 0.60, 0.68, 0.74),
            (0.84, 0.60, 0.66, 0.67, 0.68, 0.67),
        ),
    }.items()
}

# Data: F of each method.
TABLE_2 = {
    data: dict(zip(_NETWORKS, values, strict=True))
    for data, values in {
        "Cora": (0.51, 0.2785, 0.4228, 0.6412, 0.336),
        "CiteSeer": (0.45, 0.4257, 0.4449, 0.5244, 0.5224),
        "Pubmed": (0.717, 0.6968, 0.7437, 0.7667, 0.7595),
        "Music genre": (1.0, 0.7046, 0.4746, 0.7649, 0.8029),
        "Sentence polarity": (1.0, 0.8895, 0.9129, 0.9153, 0.9139),
        "BU-BIL MRI": (0.851, 0.861, 0.859, 0.86, 0.863),
    }.items()
}

# Data: average degree of the graph.
DEGREES = {
    "Cora": 3.9,
    "CiteSeer": 2.77,
    "Pubmed": 4.49,
    "Music genre": 4.8,
    "Sentence polarity": 1.8,
    "BU-BIL MRI": 7.1,
}
