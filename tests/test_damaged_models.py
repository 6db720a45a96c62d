"""Model files may be damaged, crafted or old: what is wrong is said, and nothing is computed from it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import consilience as cs
import model_files
from consilience.inference.workers import WORKERS
from consilience.results.result import Result
from consilience.results.saving import list_fields

FLAT = {"item": [i // 2 for i in range(8)], "worker": ["u", "v"] * 4, "label": list("xxyxyyxy")}
SEQUENCES = {"sequence": [0] * 4 + [1] * 4, "position": [0, 0, 1, 1] * 2, "worker": ["u", "v"] * 4}
SEQUENCES["label"] = FLAT["label"]


@pytest.fixture
def path(tmp_path):
    """A model of sequential workers: it has every kind of part."""
    model = cs.HiddenMarkov(workers="sequential", coupling=0.5, max_iter=3, tol=0)
    return model.fit(SEQUENCES).save(tmp_path / "a.model")


def change(path: Path, **members: bytes | None) -> None:
    """Give members of a file other contents; None removes one."""
    parts = model_files.unpack(path.read_bytes()) | members
    path.write_bytes(model_files.pack({name: content for name, content in parts.items() if content is not None}))


def change_header(path: Path, **entries: object) -> None:
    header = json.loads(model_files.unpack(path.read_bytes())["model.json"]) | entries
    change(path, **{"model.json": json.dumps(header).encode()})


def complaint(path: Path) -> str:
    with pytest.raises(cs.errors.StoreError) as caught:
        cs.load(path)
    return str(caught.value)


@pytest.mark.parametrize("damage", ["cut", "flipped", "overwritten"])
def test_damaged_files_are_refused(path, damage):
    whole = path.read_bytes()
    rng = np.random.default_rng(3)
    for _ in range(30):
        data = bytearray(whole)
        at = rng.integers(len(data))
        if damage == "cut":
            data = data[:at]
        elif damage == "flipped":
            data[at] ^= 1 << rng.integers(8)
        else:
            data[at : at + 100] = rng.bytes(min(100, len(data) - at))
        path.write_bytes(bytes(data))
        told = None
        try:
            cs.load(path)
        except cs.errors.StoreError as error:
            told = str(error)
        # A flipped bit may be in a field of the zip file that says nothing of the content, such as a date.
        assert damage == "flipped" if told is None else "damaged" in told


# ----------------------------------------------------------------------------------------------- what each error says


def test_what_is_wrong_is_said(path):
    original = path.read_bytes()
    array = model_files.to_bytes
    cases = [
        ({"arrays/prior.npy": None}, r"the array 'prior' is missing"),
        ({"arrays/more.npy": array(np.ones(2))}, r"there is no array 'more' in such a model"),
        ({"readme.txt": b"hello"}, r"it holds 'readme.txt', which is no part of a model"),
        ({"arrays/prior.npy": array(np.full(2, np.nan))}, r"does not hold probabilities"),
        ({"arrays/prior.npy": b"nothing"}, r"magic string"),
        ({"arrays/labels/codes.npy": array(np.array([0, 1, 2, 0]))}, r"does not hold indices of classes"),
        (
            {"arrays/fitted_estimates/log_weights.npy": array(np.full((6, 2, 2), 0.1))},
            r"does not hold logarithms of probabilities",
        ),
        ({"model.json": b"[" * 20_000}, r"model.json is not JSON"),
    ]
    for members, expected in cases:
        path.write_bytes(original)
        change(path, **members)
        with pytest.raises(
            cs.errors.StoreError, match=f"is damaged: .*{expected}.* Save the model again, or fit again"
        ):
            cs.load(path)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ({"model": "Dawid"}, "holds a model 'Dawid', which this release does not know. It knows 'MajorityVote'"),
        ({"model": "DawidSkene"}, "in such a model"),
        ({"parameters": {}}, "the parameter 'calibration', 'callback', 'coupling', 'decode', 'estimation'"),
        ({"fusion": []}, "the fusion in the header cannot be []"),
        (
            {"fusion": {}},
            "the entry of the result 'backend', 'calibrated', 'chance'",
        ),
        ({"more": 1}, "there is no entry of the header 'more'"),
    ],
)
def test_a_damaged_header_is_explained(entries, expected, path):
    change_header(path, **entries)
    assert expected in complaint(path)


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        ("backend", "excel", "backend cannot be 'excel'"),
        ("fitted_estimates/worker_model_name", "robots", "fitted_estimates/worker_model_name cannot be 'robots'"),
        ("fitted_estimates/worker_model_name", "confusion", "log_weights.npy has the shape (6, 2, 2), and not (2, 2"),
        ("fitted_estimates/structure", {}, "the entry of fitted_estimates/structure 'bound', 'coupling'"),
        ("course/n_iter", -1, "course/n_iter cannot be -1"),
        ("intervals/workers", None, "there is no array 'intervals/workers'"),
        ("course/coupling_scores", [[1.0, 2.0, 3.0]], "course/coupling_scores cannot be [1.0, 2.0, 3.0]"),
        ("kind", {"name": "spans"}, "the entry of kind 'documents', 'end'"),
        ("more", 1, "there is no entry of the result 'more'"),
    ],
)
def test_a_damaged_result_is_explained(place, value, expected, path):
    header = json.loads(model_files.unpack(path.read_bytes())["model.json"])
    *above, name = place.split("/")
    part = header["fusion"]
    for step in above:
        part = part[step]
    part[name] = value
    change_header(path, **header)
    assert expected in complaint(path)


def test_parameters_go_through_the_checks_of_the_model(path):
    header = json.loads(model_files.unpack(path.read_bytes())["model.json"])
    for name, value, expected in [
        ("tol", -1, "The 'tol' parameter of HiddenMarkov must be a number >= 0. Got -1 instead"),
        ("workers", "robots", "The 'workers' parameter of HiddenMarkov must be one of 'confusion'"),
        ("smoothing", {"array": [[1], [1, 2]], "tuple": False}, "is damaged"),
        ("smoothing", [1], "a parameter cannot be [1]"),
        ("seed", 10**400, "is damaged"),
    ]:
        change_header(path, parameters=header["parameters"] | {name: value})
        assert expected in complaint(path)


# ------------------------------------------------------------------------------------- what is written, and what is old


def test_members_are_compressed_and_the_same_content_has_the_same_bytes(path, tmp_path):
    with zipfile.ZipFile(path) as file:
        assert {info.compress_type for info in file.infolist()} == {zipfile.ZIP_DEFLATED}
        assert {info.date_time for info in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    again = cs.load(path).save(tmp_path / "again")
    assert again.read_bytes() == path.read_bytes()
    votes = cs.MajorityVote().fit(cs.simulate.independent(2000, n_workers=5, seed=1).responses)
    saved = votes.save(tmp_path / "votes")
    with zipfile.ZipFile(saved) as file:
        assert saved.stat().st_size < sum(info.file_size for info in file.infolist()) / 3


@pytest.mark.parametrize("workers", WORKERS)
def test_what_is_saved_is_what_is_declared(workers, tmp_path):
    """Every array and every column is named after the field that declares it."""
    answers = SEQUENCES
    if WORKERS[workers].needs_votes:
        votes = np.random.default_rng(0).dirichlet(np.ones(3), size=(12, 3))
        answers = cs.Answers.from_probabilities(votes, lengths=[6, 6])
    model = cs.HiddenMarkov(workers=workers, coupling=1.0, max_iter=2, tol=0).fit(answers)
    members = model_files.unpack(model.save(tmp_path / "m").read_bytes())
    assert {"arrays/prior.npy", "columns/names/workers.arrow", "arrays/given/answers/offsets.npy"} < members.keys()
    header = json.loads(members.pop("model.json"))
    assert header["fusion"].keys() == list_fields(Result).keys()
    declared = places_of(header["fusion"], ())
    assert {tuple(name.partition("/")[2].rpartition(".")[0].split("/")) for name in members} == declared


def places_of(value: object, path: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Return where the header says that there is an array or a column."""
    if isinstance(value, dict):
        return {place for name, entry in value.items() for place in places_of(entry, (*path, name))}
    return {path} if value in ("array", "column") else set()
