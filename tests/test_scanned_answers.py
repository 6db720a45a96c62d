"""Where the bytes are makes no difference: answers that were scanned give the same bits as answers that were read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import consilience as cs

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


def draw_table(in_sequences=False, n_items=400):
    """Answers in random order by five to twelve workers of mixed skill about three ordered classes."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, n_items)
    said = rng.random((n_items, 12)) < 0.45
    item, worker = np.nonzero(said)
    right = rng.random(len(item)) < np.linspace(0.45, 0.95, 12)[worker]
    order = rng.permutation(len(item))
    item, worker = item[order], worker[order]
    label = np.where(right[order], truth[item], rng.integers(0, 3, len(item)))
    keys = {"sequence": item // 20, "position": item % 20} if in_sequences else {"item": item}
    return pa.table({**keys, "worker": worker, "label": label})


MODELS = {
    "vote": cs.MajorityVote(),
    "confusion": cs.DawidSkene(),
    "one-coin": cs.DawidSkene(workers="one-coin"),
    "ordinal": cs.DawidSkene(workers="ordinal"),
    "moments": cs.MomentMatching(),
    "chain": cs.HiddenMarkov(),
    "sequential": cs.HiddenMarkov(workers="sequential"),
    "fuse": None,
}


@pytest.mark.parametrize("name", MODELS)
def test_same_bits(name, tmp_path):
    ordered, in_sequences = name == "ordinal", name in ("chain", "sequential")
    pq.write_table(draw_table(in_sequences), tmp_path / "answers.parquet")
    gold = None if in_sequences else {0: 1, 7: 2, 9: 0}
    found = []
    for read in (cs.read_answers, cs.scan_answers):
        r = read(tmp_path / "answers.parquet", ordered=ordered)
        fitted = cs.fuse(r, gold=gold) if name == "fuse" else MODELS[name].fit(r, gold=gold)
        fitted.write(tmp_path / "labels.parquet")
        table = fitted.worker_report()
        found.append((r.items.tolist(), fitted.posterior_, fitted.confusion_, table.column_names, table.to_pydict()))
        found[-1] += (pq.read_table(tmp_path / "labels.parquet"),)
    (items, posterior, confusion, *tables), other = found
    assert items == other[0]
    np.testing.assert_array_equal(posterior, other[1])
    np.testing.assert_array_equal(confusion, other[2])
    assert repr(tables) == repr(list(other[3:]))


def test_options_of_readers(tmp_path):
    pq.write_table(draw_table(), tmp_path / "answers.parquet")
    few = cs.scan_answers(tmp_path / "answers.parquet", block=[0, 5])
    assert few.workers.tolist() == [1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert cs.scan_answers(tmp_path / "answers.parquet", positions=[0, 1, 5], ordered=True).positions == (0.0, 1.0, 5.0)
