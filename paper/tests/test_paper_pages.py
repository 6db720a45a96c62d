"""The committed results: each page says what its table says, and the results are close to those of the paper."""

from __future__ import annotations

import re

import numpy as np
import pytest

from committed import mean, records_of
from paper import EXPERIMENTS, find
from paper.__main__ import DOCS
from paper.experiment import falls, rises
from paper.output import make_page
from paper.overview import ROWS, sum_up
from paper.printed import DEGREES, TABLE_1, TABLE_2
from paper.reasons import REASONS


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_page_is_made_from_the_table(name):
    assert (DOCS / f"{name}.md").read_text("utf-8") == make_page(find(name), records_of(name))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_results_are_complete(name):
    experiment, records = find(name), records_of(name)
    keys = {tuple(record[key] for key in experiment.keys) for record in records}
    assert len(keys) == len(records), "keys are not unique"
    assert f"{{include}} reproduction/{name}.md" in DOCS.with_suffix(".md").read_text("utf-8")
    assert (DOCS / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    page = make_page(experiment, records)
    assert "None" not in page
    assert "nan" not in page


def test_the_overview_has_the_records_of_both_tables():
    columns = [*find("overview").keys, *find("overview").scores]
    both = [*records_of("table-1"), *records_of("table-2")]
    assert records_of("overview") == [{name: record.get(name) for name in columns} for record in both]


def test_every_row_of_the_paper_is_told():
    assert [row.data for row in ROWS] == [*TABLE_1, *TABLE_2] == list(REASONS)
    assert list(DEGREES) == list(TABLE_2)
    assert [line.row for line in sum_up(records_of("overview"))] == list(ROWS)


# Findings follow the numbers


def at_random(name, seed):
    """Return the records of an experiment with random scores in place of the true ones."""
    rng, scores = np.random.default_rng(seed), find(name).scores
    return [
        {
            key: rng.uniform(0.01, 0.99) if key in scores and value is not None else value
            for key, value in record.items()
        }
        for record in records_of(name)
    ]


def fractions_in(text):
    return set(re.findall(r"(?<![\w.,])[-+]?\d*\.\d+", text))


# Numbers that are not measured: settings in code, the limit of consistent estimates, and what others printed.
FIXED = {"0.1", "1.0", "-0.5", "0.5", "2.0"}
PRINTED = {
    f"{value:.{digits}f}"
    for value in [
        *(f for scores in TABLE_1.values() for values in scores.values() for f in values.values()),
        *(f for values in TABLE_2.values() for f in values.values()),
        *DEGREES.values(),
    ]
    for digits in (1, 2, 3, 4)
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_all_numbers_in_findings_are_computed(name):
    """With other records a page shows other numbers, and it can be made from any."""
    findings = find(name).tell_findings
    kept = fractions_in(findings(records_of(name)))
    for seed in range(3):
        kept &= fractions_in(findings(at_random(name, seed)))
    kept -= FIXED
    if name == "overview":
        # Differences between printed numbers, and what printed P and R say about F.
        kept -= PRINTED | {"0.01", "+0.020", "0.81", "0.38"}
    assert not kept


def test_a_verdict_follows_the_numbers():
    findings = find("network-sparse").tell_findings
    assert "**Holds:** even half a neighbour per item helps." in findings(records_of("network-sparse"))
    worse = [
        {**record, "f": 0.5 if record["method"] == "Alg. 4" else record["f"]} for record in records_of("network-sparse")
    ]
    assert "**Does not hold here:** even half a neighbour per item helps." in findings(worse)


# What the paper found


def test_sequences_as_in_the_paper():
    sizes = sorted({record["items"] for record in records_of("sequence-items")})
    for method in ("MM", "Alg. 2 + Alg. 1", "MV + Alg. 1", "consilience"):
        assert falls([mean("sequence-items", "confusion_error", items=n, method=method) for n in sizes])
    assert falls([mean("sequence-items", "transition_error", items=n, method="Alg. 2 + Alg. 1") for n in sizes])
    oracle, both = (
        [mean("sequence-items", "f", items=n, method=method) for n in sizes] for method in ("oracle", "Alg. 2 + Alg. 1")
    )
    assert oracle[-1] - both[-1] < 0.001 < oracle[0] - both[0]
    for method in ("MV", "MM", "Alg. 2 + Alg. 1", "MV + Alg. 1", "consilience"):
        assert rises([mean("sequence-workers", "f", workers=m, method=method) for m in (3, 5, 10, 15, 20, 30)])
    few, many = (mean("sequence-workers", "transition_error", workers=m, method="Alg. 2 + Alg. 1") for m in (3, 30))
    assert many < 0.5 * few


def test_networks_as_in_the_paper():
    gain = {}
    for name in ("network-sparse", "network-dense"):
        sizes = sorted({record["items"] for record in records_of(name)})
        assert falls([mean(name, "confusion_error", items=size, method="Alg. 4") for size in sizes])
        methods = ("MM", "Alg. 4", "consilience", "oracle")
        last = {method: mean(name, "f", items=sizes[-1], method=method) for method in methods}
        gain[name] = last["Alg. 4"] - last["MM"]
        assert last["MM"] < last["Alg. 4"] < last["consilience"]
        assert last["consilience"] == pytest.approx(last["oracle"], abs=0.001)
    assert gain["network-dense"] > 4 * gain["network-sparse"] > 0


@pytest.mark.parametrize(
    ("where", "printed", "within"),
    [
        ({"data": "NER", "protocol": "spans", "method": "DS"}, 0.71, 0.02),
        ({"data": "NER", "protocol": "spans", "method": "MV + DS"}, 0.71, 0.02),
        ({"data": "NER", "protocol": "spans", "method": "MV + Alg. 1"}, 0.70, 0.02),
        (
            {
                "data": "Biomedical IE",
                "answers": "312 workers",
                "protocol": "parts of spans",
                "method": "MV, ties to O",
            },
            0.6,
            0.005,
        ),
        ({"data": "Music genre", "graph": "3 nearest", "method": "MV, ties to the first"}, 0.7046, 0.005),
        ({"data": "Music genre", "graph": "none", "method": "MV"}, 0.7046, 0.005),
        ({"data": "Music genre", "graph": "3 nearest", "method": "MV + Alg. 3"}, 0.8029, 0.02),
        ({"data": "Sentence polarity", "graph": "1 nearest", "method": "MV, ties to the first"}, 0.8895, 0.0005),
        ({"data": "Sentence polarity", "graph": "none", "method": "MV"}, 0.8895, 0.005),
        ({"data": "Sentence polarity", "graph": "1 nearest", "method": "Alg. 4"}, 0.9153, 0.005),
    ],
)
def test_tables_as_in_the_paper(where, printed, within):
    assert mean("overview", "f", **where) == pytest.approx(printed, abs=within)


def test_our_defaults_reach_what_was_printed():
    for line in sum_up(records_of("overview")):
        assert line.ours >= line.printed, line.row.data


def test_the_chain_is_believed_only_as_far_as_it_helps():
    for data in ("pos", "ner", "ner_aligned", "pico", "sleep"):
        alone, full, learned = (
            mean("chain-coupling", "f", data=data, model=model) for model in ("DawidSkene()", "1", "learned")
        )
        assert full < alone
        assert learned >= alone - 0.002
