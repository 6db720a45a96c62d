"""Workers who are blocked: their answers are left out wherever answers come from."""

import json

import numpy as np
import pandas as pd
import pytest

import consilience as cs
from command_line import run
from consilience.errors import DataWarning, InputError


@pytest.fixture
def frame():
    crowd = cs.simulate.independent(200, n_workers=8, n_classes=3, answers_per_item=4, seed=1)
    r = crowd.responses
    workers = np.array([f"w{m}" for m in range(8)])
    return pd.DataFrame({"item": r.item_of_answer(), "worker": workers[r.worker], "label": r.label})


def without(frame, *workers):
    return frame[~frame.worker.isin(workers)]


@pytest.mark.parametrize("form", ["list", "array", "series", "frame", "dict", "file"])
def test_the_fit_is_that_of_the_other_answers(frame, form, tmp_path):
    names = ["w1", "w5"]
    forms = {
        "list": names,
        "array": np.array(names),
        "series": pd.Series(names),
        "frame": pd.DataFrame({"worker": names, "chance": [0.9, 0.95]}),
        "dict": {"annotator": names},
        "file": tmp_path / "blocked.csv",
    }
    pd.DataFrame({"worker": names}).to_csv(tmp_path / "blocked.csv", index=False)
    fused, plain = cs.fuse(frame, block=forms[form]), cs.fuse(without(frame, *names))
    assert np.allclose(fused.posterior_, plain.posterior_)
    assert fused.worker_report().worker.tolist() == plain.worker_report().worker.tolist()


def test_ids_that_are_no_workers_are_told_with_those_meant(frame):
    with pytest.warns(DataWarning, match="There are no answers of 1 worker to block: 'W1'.*The workers are .*'w1'"):
        cs.fuse(frame, block=["w5", "W1"])
    with pytest.raises(InputError, match="no answers of 2 workers to block"):
        cs.fuse(frame, block=["x", "y"])
    with pytest.raises(InputError, match="All workers are blocked"):
        cs.fuse(frame, block=[f"w{m}" for m in range(8)])
    with pytest.raises(InputError, match="w1"):  # a path
        cs.fuse(frame, block="w1")


def test_updates_and_saved_models_leave_them_out_too(frame, tmp_path):
    fused = cs.fuse(frame, block=["w1"])
    fused.save(tmp_path / "model")
    more = pd.DataFrame({"item": [300, 300, 300], "worker": ["w1", "w2", "w3"], "label": [0, 1, 1]})
    for model in (fused, cs.load(tmp_path / "model")):
        model.update(more)
        assert "w1" not in model.worker_report().worker.tolist()
        assert model.update_.n_answers == 2


def test_matrices_spans_and_masks():
    truth = np.random.default_rng(0).integers(3, size=150)
    matrix = np.stack([truth, truth, truth, 2 - truth], axis=1)
    fused = cs.fuse(cs.Answers.from_matrix(matrix, workers=["a", "b", "c", "d"]), block=["d"])
    assert fused.result_.names.workers.tolist() == ["a", "b", "c"]
    project = cs.simulate.spans(40, seed=1)
    everybody = cs.fuse(project.spans).result_.names.workers.tolist()
    assert cs.fuse(project.spans, block=everybody[:1]).result_.names.workers.tolist() == everybody[1:]
    image = np.zeros((12, 12), int)
    image[3:9, 3:9] = 1
    masks = cs.Masks.from_arrays(
        {"x": {"a": image, "b": np.roll(image, 1, 0), "c": np.roll(image, 1, 1), "d": 1 - image}}
    )
    assert cs.fuse(masks, block=["d"]).result_.names.workers.tolist() == ["a", "b", "c"]


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
def test_scanned_answers(frame, tmp_path):
    path = tmp_path / "answers.csv"
    frame.to_csv(path, index=False)
    stored = cs.scan_answers(path, store=tmp_path / "stores", block=["w1", "w5"])
    assert stored.workers.tolist() == ["w0", "w2", "w3", "w4", "w6", "w7"]
    assert stored.n_responses == len(without(frame, "w1", "w5"))
    assert cs.scan_answers(path, store=tmp_path / "stores").n_workers == 8
    assert cs.fuse(stored, block=["w2"]).result_.given.blocked.tolist() == ["w2"]


@pytest.mark.parametrize("size", [[], ["--memory", "2GB"]])
def test_on_the_command_line(frame, tmp_path, size):
    frame.to_csv(tmp_path / "answers.csv", index=False)
    pd.DataFrame({"worker": ["w1"]}).to_csv(tmp_path / "blocked.csv", index=False)
    store = ["--store", str(tmp_path / "stores")] if size else []
    files = [str(tmp_path / "answers.csv"), "--block", str(tmp_path / "blocked.csv")]
    done = run("fuse", *files, "--workers-report", str(tmp_path / "workers.csv"), "--json", *size, *store)
    told = json.loads(done.stdout)
    assert told["workers"] == 7
    if not size:
        n_left_out = int((frame.worker == "w1").sum())
        assert told["left_out"] == {"workers": 1, "answers": n_left_out}
        shown = run("fuse", *files, "--save", str(tmp_path / "crowd.model"), "--report", str(tmp_path / "report.html"))
        assert f"Left out   1 worker, {n_left_out} answers" in shown.stdout
        assert f"<dt>Left out</dt><dd>1 worker, {n_left_out} answers</dd>" in (tmp_path / "report.html").read_text()
        assert run("report", str(tmp_path / "crowd.model"), "-o", str(tmp_path / "saved.html")).exit_code == 0
        assert "<dt>Left out</dt><dd>1 worker</dd>" in (tmp_path / "saved.html").read_text()
    assert "w1" not in pd.read_csv(tmp_path / "workers.csv").worker.tolist()
