"""Numbers and comparisons that the README and the docs quote from the experiments, against the committed tables.

Pages in docs/reproduction need no such test: they are computed from the tables. After a run that changes results, the
sentences that fail here are those to be rewritten.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from committed import mean, records_of
from paper.chain_coupling import ALONE, COUPLINGS, LEARNED, SETS, VOTE
from paper.methods import (
    ALG_4,
    DS,
    METHODS,
    MM,
    MV,
    MV_1,
    MV_3,
    MV_DS,
    OURS,
    OURS_ALONE,
    OURS_MARGINAL,
    OURS_SEQUENTIAL,
)
from paper.overview import compare_same_data
from paper.printed import TABLE_1, TABLE_2
from paper.scoring import LEAST_SHARE
from paper.sequence_items import ITEMS
from paper.silence import IGNORED
from paper.silence import LEARNED as SILENT_LEARNED
from paper.table_2 import METRIC, N_TRAIN, NEIGHBOURS, PUBMED_ACCURACY

ROOT = Path(__file__).parents[2]
FULL = "1"
NAMES = ("ner", "ner_aligned")
SEQUENCES = (*NAMES, "pico", "sleep")
NUMBER = r"(-?\d*\.\d+|-?\d+)"


@cache
def read(file):
    """Return a page as one line of plain text."""
    text = (ROOT / file).read_text("utf-8").replace("**", "").replace("\N{MINUS SIGN}", "-")
    return re.sub(r"\s+", " ", text)


def chain(data, model, score="f"):
    return mean("chain-coupling", score, data=data, model=model)


def choice(data, name, score="f"):
    return mean("sequence-choices", score, data=data, choice=name)


def network(data, method, score="f"):
    return mean("table-2", score, data=data, graph="citations", method=method)


def by_neighbours(data, method, score="f"):
    return [mean("table-2", score, data=data, graph=f"{k} nearest", method=method) for k in NEIGHBOURS]


def gain_of_graph(name):
    return mean(name, "f", items=100_000, method=ALG_4) - mean(name, "f", items=100_000, method=MM)


def ends(values):
    return [max(values), min(values)]


# A page, the words around numbers, and where these come from. `#` stands for a number.
NUMBERS = [
    # The README's summary; that of real crowds is checked by tests/test_real_data.py
    (
        "README.md",
        r"Span F1 of names in news rises from # by vote to # with",
        lambda: [chain("ner", VOTE), chain("ner", LEARNED)],
    ),
    (
        "README.md",
        r"papers in a citation network from # to # with",
        lambda: [network("Cora", method) for method in (MV, OURS)],
    ),
    # Reproduction, in short
    (
        "docs/reproduction.md",
        r"\(two methods each: NER # and #, songs # and #, sentences # and #\)",
        lambda: [
            TABLE_1["NER"]["f"][MV_1],
            TABLE_1["NER"]["f"][DS],
            TABLE_2["Music genre"][MV],
            TABLE_2["Music genre"][MV_3],
            TABLE_2["Sentence polarity"][MV],
            TABLE_2["Sentence polarity"][ALG_4],
        ],
    ),
    ("docs/reproduction.md", r"\(Cora # and #\)", lambda: [network("Cora", method) for method in (MV_3, OURS)]),
    # Reproduction, the rest
    (
        "docs/reproduction.md",
        r"Alg\. 4 is # above moments alone here, and # with half a neighbour",
        lambda: [gain_of_graph("network-dense"), gain_of_graph("network-sparse")],
    ),
    ("docs/reproduction.md", r"its own # or # random papers", lambda: list(N_TRAIN.values())),
    ("docs/reproduction.md", r"right between a third and # of the time", lambda: [PUBMED_ACCURACY[1]]),
    # Sequences
    (
        "docs/sequences.md",
        r"span F1 of names in news is # with `DawidSkene\(\)`, # with coupling 1, and # with a learned one",
        lambda: [chain("ner", model) for model in (ALONE, FULL, LEARNED)],
    ),
    (
        "docs/sequences.md",
        r"on BC5CDR span F1 is # then, and # with silence",
        lambda: [mean("silence", "f", model=model) for model in (IGNORED, SILENT_LEARNED)],
    ),
    (
        "docs/sequences.md",
        r"For spans take the first \(# against # on named entities\)",
        lambda: [choice("ner", OURS), choice("ner", OURS_MARGINAL)],
    ),
    # Networks
    (
        "docs/networks.md",
        "On the citation network Cora macro-F1 rises from # to #",
        lambda: [network("Cora", method) for method in (OURS_ALONE, OURS)],
    ),
    (
        "docs/networks.md",
        "which say less, it is # to # and # to #, and # and # without",
        lambda: [
            *(end for data in METRIC for end in reversed(ends(by_neighbours(data, OURS)))),
            *(by_neighbours(data, OURS_ALONE)[0] for data in METRIC),
        ],
    ),
]


@pytest.mark.parametrize(("file", "pattern", "expected"), NUMBERS, ids=[pattern[:60] for _, pattern, _ in NUMBERS])
def test_numbers(file, pattern, expected):
    found = re.search(pattern.replace("#", NUMBER), read(file))
    assert found, f"{file} has no such words"
    for text, value in zip(found.groups(), expected(), strict=True):
        digits = len(text.partition(".")[2])
        # Half a unit of the last digit, and what the table may be off by.
        assert float(text) == pytest.approx(value, abs=0.5 * 10**-digits + 1e-5), f"{file}: {found.group()}"


def count_others(data):
    """Return how many methods have an F that is not within .01 of the printed one, in any reading."""
    compared = [each for each in compare_same_data(records_of("overview")) if each.data == data]
    near = {each.name for each in compared if abs(each.measured - each.printed) < 0.01}
    return len({each.name for each in compared} - near)


def loses_to_ignoring_the_order(sets):
    return all(chain(data, FULL) < chain(data, ALONE) for data in sets)


def chain_scores(data):
    return [chain(data, model) for model in (ALONE, *(f"{coupling:g}" for coupling in COUPLINGS))]


def spread(values):
    return max(values) - min(values)


EM = METHODS[MV_DS]().get_params()
# A page, its words, and whether they are true.
STATEMENTS = [
    (
        "docs/reproduction.md",
        "we find its numbers again to within 0.01",
        lambda: count_others("Sentence polarity") == 0,
    ),
    (
        "docs/reproduction.md",
        "except for three methods on NER and two on songs",
        lambda: (count_others("NER"), count_others("Music genre")) == (3, 2),
    ),
    (
        "docs/reproduction.md",
        "Our learned coupling is as good as its fixed one on its citation networks",
        lambda: all(abs(network(data, MV_3) - network(data, OURS)) < 0.005 for data in N_TRAIN),
    ),
    (
        "docs/reproduction.md",
        "loses to ignoring the order on all five real sets of sequences",
        lambda: len(SETS) == 5 and loses_to_ignoring_the_order(SETS),
    ),
    (
        "docs/reproduction.md",
        "a denser graph is worth more",
        lambda: gain_of_graph("network-dense") > gain_of_graph("network-sparse"),
    ),
    (
        "docs/reproduction.md",
        "On simulated data the hidden Markov model is the true model, and it wins.",
        lambda: all(
            mean("sequence-items", "f", items=items, method=MV_1) > mean("sequence-items", "f", items=items, method=MM)
            for items in ITEMS
        ),
    ),
    (
        "docs/reproduction.md",
        "On real sequences, with the full coupling of the paper, it loses to ignoring the order.",
        lambda: loses_to_ignoring_the_order(SETS),
    ),
    ("docs/reproduction.md", "a tenth of an answer is added to each", lambda: EM["smoothing"] == 0.1),
    ("docs/reproduction.md", "after at most 500 iterations", lambda: EM["max_iter"] == 500),
    ("docs/reproduction.md", "who answered at least one item in twenty", lambda: LEAST_SHARE == 1 / 20),
    (
        "docs/sequences.md",
        "loses to ignoring the order on every real set",
        lambda: loses_to_ignoring_the_order(SEQUENCES),
    ),
    (
        "docs/sequences.md",
        "the couplings 0, 0.1, 0.25, 0.5 and 1",
        lambda: COUPLINGS == (0, 0.1, 0.25, 0.5, 1),
    ),
    (
        "docs/sequences.md",
        "on names, which are short, they are about as good as the best model here or better, on the long spans of the "
        "abstracts the worst",
        lambda: (
            all(choice(data, OURS_SEQUENTIAL) > max(choice(data, OURS), *chain_scores(data)) - 0.002 for data in NAMES)
            and choice("pico", OURS_SEQUENTIAL) < min(choice("pico", OURS), *chain_scores("pico"))
        ),
    ),
    (
        "docs/networks.md",
        "the result then depends strongly on the graph's degree",
        lambda: all(spread(by_neighbours(data, MV_3)) > 10 * spread(by_neighbours(data, OURS)) for data in METRIC),
    ),
]


@pytest.mark.parametrize(("file", "words", "holds"), STATEMENTS, ids=[words for _, words, _ in STATEMENTS])
def test_statements(file, words, holds):
    assert words in read(file), f"{file} no longer says this"
    assert holds()
