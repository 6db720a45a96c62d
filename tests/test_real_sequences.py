"""Real crowds that labelled sequences, default settings. Gold is for scoring only: no fit sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import consilience as cs
from consilience.answers.tagging import tag_transitions
from consilience.inference.estimator import renew
from real_data import FOLDER, needs_data

pytestmark = [needs_data, pytest.mark.robust]

KEYS = ["sequence", "position"]
PAPER = cs.HiddenMarkov(coupling=1.0)
DEFAULT = cs.HiddenMarkov(transitions="bio")
SEQUENTIAL = cs.HiddenMarkov(workers="sequential", coupling=1.0, transitions="bio")


def beside_gold(labels, name):
    """Return gold (as label_gold) and labels of the items that have both, in order."""
    gold = pd.read_parquet(FOLDER / name / "gold.parquet")
    both = gold.merge(labels[[*KEYS, "label"]], on=KEYS, suffixes=("_gold", "")).sort_values(KEYS)
    return both.astype({"label": str, "label_gold": str})


def fit(model, name, **options):
    r = cs.read_answers(FOLDER / name / "responses.parquet", **options)
    return renew(model).fit(r)


def score_spans(both):
    return cs.metrics.span_f1(
        both["label_gold"].tolist(), both["label"].tolist(), both.groupby("sequence").size().to_numpy()
    )


def span_f1_of(model, name):
    return score_spans(beside_gold(model.to_frame().to_pandas(), name))


def count_invalid(model):
    """Return how many labels stand where IOB2 does not allow them."""
    labels = model.to_frame().to_pandas()
    lengths = labels.groupby("sequence", sort=False).size()
    return cs.metrics.count_invalid_transitions(labels["label"].tolist(), lengths.to_numpy())


@pytest.mark.parametrize(
    ("model", "least"),
    [(DEFAULT, 0.73), (PAPER, 0.695), (SEQUENTIAL, 0.73)],
    ids=["default", "paper", "sequential"],
)
def test_named_entities(model, least):
    fitted = fit(model, "ner")
    assert span_f1_of(fitted, "ner") >= least
    if fitted.transitions == "bio":
        assert count_invalid(fitted) == 0
        assert fitted.transition_[~tag_transitions(fitted.classes_, "bio").steps].max() == 0


def test_sleep_stages():
    answers = pd.read_parquet(FOLDER / "sleep" / "responses.parquet")
    model = cs.HiddenMarkov().fit(answers[answers["kind"] == "model"].drop(columns="kind"))
    both = beside_gold(model.to_frame(), "sleep")
    assert len(both) == 24_665
    assert cs.metrics.macro_f1(both["label_gold"], both["label"]) >= 0.845


def test_labelling_functions_whose_silence_counts():
    gold = pd.read_parquet(FOLDER / "bc5cdr" / "gold.parquet", columns=KEYS)
    model = fit(DEFAULT, "bc5cdr", items=gold, abstain="answer")
    assert len(model.labels_) == len(gold)
    assert span_f1_of(model, "bc5cdr") >= 0.70
    assert count_invalid(model) == 0


# Fits the answers in argv[1] in a process of its own, writes the labels to argv[2], prints the peak memory in KiB.
FIT_AND_WATCH = """
import sys, consilience as cs
model = cs.HiddenMarkov(transitions="bio").fit(cs.read_answers(sys.argv[1]))
with open("/proc/self/status") as status:
    print(next(line for line in status if line.startswith("VmHWM")).split()[1])
import pyarrow.parquet as pq
pq.write_table(model.to_frame(), sys.argv[2])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_populations_in_abstracts_with_all_workers(tmp_path):
    target = tmp_path / "labels.parquet"
    command = [sys.executable, "-c", FIT_AND_WATCH, FOLDER / "pico" / "responses.parquet", target]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert peak * 1024 < 3e9
    both = beside_gold(pd.read_parquet(target), "pico")
    assert len(both) == 54_145
    inside, found = both["label_gold"] != "O", both["label"] != "O"
    assert cs.metrics.class_f1(inside, found)[True].f1 >= 0.75
