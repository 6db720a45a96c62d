"""E-steps that are kept on disk: what is kept, by which run, and what becomes of it."""

from __future__ import annotations

import os
import shutil
import threading
from functools import partial

import numpy as np
import pytest

import consilience as cs
from consilience.errors import DataWarning, StoreError
from consilience.inference import em, steps
from consilience.inference.structures import Statistics, Summary
from consilience.results import fitting
from consilience.storage import partitioning
from test_store import crowd, write


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    """Let small data be many partitions and blocks, and large enough to be fitted on disk."""
    monkeypatch.setattr(partitioning, "ROWS_PER_PARTITION", 700)
    monkeypatch.setattr("consilience.answers.arrays.BLOCK_SIZE", 250)
    monkeypatch.setattr(fitting, "FEW", 1000)


class Interrupted(Exception):
    """What stops a fit in a test."""


def stop(progress):
    if progress.iteration == 3:
        raise Interrupted


@pytest.fixture
def scan(tmp_path):
    """Return answers on disk, again and again."""
    path = write(crowd()[0], tmp_path / "a.parquet")
    return partial(cs.scan_answers, path, store=tmp_path / "stores")


def interrupt(answers, **settings):
    with pytest.raises(Interrupted):
        cs.DawidSkene(callback=stop, **settings).fit(answers)


def kept(answers):
    """Return the steps that are kept, of all runs."""
    return sorted((answers.folder / "steps").rglob("*.step"))


def count_passes(monkeypatch):
    """Return a list that grows with every pass over the answers."""
    passes, by_block = [], em.CountedEvidence.by_block
    monkeypatch.setattr(em.CountedEvidence, "by_block", lambda *args: (passes.append(1), by_block(*args))[1])
    return passes


def test_fits_with_other_settings_do_not_remove_steps(scan):
    interrupt(scan())
    mine = kept(scan())
    assert mine
    cs.DawidSkene(seed=1, estimation="em").fit(scan())
    cs.DawidSkene().fit(scan(), gold={1: "class 1"})
    assert set(mine) <= set(kept(scan()))


def test_a_fit_may_go_on_with_more_iterations(scan, monkeypatch):
    interrupt(scan(), max_iter=10)
    n_kept = len(kept(scan()))
    passes = count_passes(monkeypatch)
    cs.DawidSkene(max_iter=12, tol=0).fit(scan())
    n_anew = len(passes)
    interrupt(scan(), max_iter=10)
    passes.clear()
    cs.DawidSkene(max_iter=12, tol=0).fit(scan(resume=True))
    assert len(passes) == n_anew - n_kept


def test_only_steps_that_took_long_wait_for_the_disk(scan, monkeypatch):
    synced = []
    monkeypatch.setattr(steps, "sync", synced.append)
    monkeypatch.setattr(steps, "WORTH_WAITING", np.inf)
    cs.DawidSkene(max_iter=3, tol=0).fit(scan())
    assert not synced
    monkeypatch.setattr(steps, "WORTH_WAITING", 0)
    cs.DawidSkene(max_iter=3, tol=0).fit(scan())
    assert len(synced) == 2 * len(kept(scan()))


def blank(path):
    """Let zeros stand where the data of a file have not reached the disk, and let its end be as it was."""
    content = path.read_bytes()
    path.write_bytes(b"\0" * 100 + content[100:])


@pytest.mark.parametrize("damage", [*(partial(os.truncate, length=n) for n in (0, 4, 100)), blank])
def test_a_damaged_step_is_computed_again(scan, damage):
    expected = cs.DawidSkene().fit(scan())
    interrupt(scan())
    for path in kept(scan()):
        damage(path)
    assert np.array_equal(cs.DawidSkene().fit(scan(resume=True)).confusion_, expected.confusion_)


def test_steps_that_vanish_are_computed_again(scan):
    answers = scan()
    expected = cs.DawidSkene().fit(answers)
    clear = cs.DawidSkene(callback=lambda _: shutil.rmtree(answers.folder / "steps", ignore_errors=True))
    assert np.array_equal(clear.fit(answers).confusion_, expected.confusion_)


def test_fits_at_once_do_not_disturb_each_other(scan):
    expected, found = cs.DawidSkene().fit(scan()).confusion_, []

    def fit():
        found.append(cs.DawidSkene().fit(scan(), engine=cs.engines.Threads(1)).confusion_)

    threads = [threading.Thread(target=fit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.array_equal(each, expected) for each in found)


def test_a_folder_that_vanishes_while_it_is_made(tmp_path, monkeypatch):
    """Another run with the same settings may have removed it. Then the step is not kept."""

    def is_there(*_args, **_options):
        raise FileExistsError(17, "File exists")

    monkeypatch.setattr(steps.Path, "mkdir", is_there)
    found = Statistics(np.zeros((2, 2)), Summary(0.0, np.zeros(2)))
    steps.write_step(tmp_path / "runs" / "run" / "a.step", found, through=False)
    assert not any(tmp_path.iterdir())


def full(*_):
    raise OSError(28, "No space left on device")


def test_a_step_that_cannot_be_written_ends_only_a_fit_that_was_resumed(scan, monkeypatch):
    expected = cs.DawidSkene().fit(scan())
    monkeypatch.setattr(steps, "write_arrays", full)
    with pytest.warns(DataWarning, match="No space left on device") as caught:
        model = cs.DawidSkene().fit(scan())
    assert sum("cannot be resumed" in str(each.message) for each in caught) == 1
    assert np.array_equal(model.confusion_, expected.confusion_)
    with pytest.raises(StoreError, match="Free some space, and resume"):
        cs.DawidSkene().fit(scan(resume=True))


def test_steps_go_when_labels_are_written_or_another_fit_begins(scan, tmp_path):
    model = cs.DawidSkene().fit(scan())
    assert kept(scan())
    model.write(tmp_path / "labels")
    assert not kept(scan())
    cs.DawidSkene().fit(scan())
    first = kept(scan())
    cs.DawidSkene(seed=1).fit(scan())
    assert first
    assert not set(first) & set(kept(scan()))
