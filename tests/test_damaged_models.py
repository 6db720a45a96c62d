"""Model files may be damaged, crafted or old: what is wrong is said, and nothing is computed from it."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import consilience as cs
from consilience.inference.structures.chain import ChainParameters
from consilience.inference.structures.field import FieldParameters
from consilience.inference.structures.independent import IndependentParameters
from consilience.inference.workers import WORKERS
from consilience.results import archive
from consilience.results.kept_answers import Kept
from consilience.results.result import Result
from consilience.results.saving import list_fields
from fuzz import model_files
from fuzz.harness import run_cases

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


# ------------------------------------------------------------------------------------------------------------ fuzzers


@pytest.mark.parametrize(("surface", "n_cases"), [("models", 400), ("json", 200)])
def test_damaged_files_give_results_or_our_own_errors(surface, n_cases):
    tally = run_cases(surface, range(n_cases), seed=11)
    assert not tally.failures, "\n".join(tally.failures[:5])
    assert tally.outcomes["own error"] > n_cases / 4
    assert tally.outcomes["result"] > n_cases / 20


@pytest.mark.robust
def test_the_harness_sees_crashes_hangs_and_foreign_errors(monkeypatch, tmp_path):
    code = (
        "import os, time\n"
        "import consilience as cs\n"
        "def prepare(): pass\n"
        "def run(rng, folder):\n"
        "    from fuzz.harness import Nonsense\n"
        "    way = rng.integers(6)\n"
        "    if way == 0: os.abort()\n"
        "    if way == 1: time.sleep(60)\n"
        "    if way == 2: raise KeyError('x')\n"
        "    if way == 3: raise type('Long', (cs.errors.InputError,), {'__str__': lambda self: 'x' * 3000})()\n"
        "    if way == 4: raise Nonsense('2')\n"
        "    return 'fine'\n"
    )
    (tmp_path / "bad_surface.py").write_text(code)
    main = (
        "import fuzz.harness as harness\n"
        "if __name__ == '__main__':\n"
        "    print(harness.run_cases('bad_surface', range(24), seed=1, seconds=1))\n"
    )
    (tmp_path / "main.py").write_text(
        "import fuzz.harness\nfuzz.harness.SURFACES['bad_surface'] = 'bad_surface'\n" + main
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(__file__).parent}:{Path(cs.__file__).parents[1]}")
    done = subprocess.run([sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    counts = dict(part.rsplit(" ", 1) for part in done.stdout.strip().split("cases: ")[1].split(", "))
    assert sum(map(int, counts.values())) == 24, done.stderr
    del counts["own error"]
    assert all(int(count) > 0 for count in counts.values()), counts


# ----------------------------------------------------------------------------------------------- what each error says


def test_what_is_wrong_is_said(path):
    original = path.read_bytes()
    array = model_files.to_bytes
    cases = [
        ({"arrays/prior.npy": None}, r"the array 'prior' is missing"),
        ({"arrays/more.npy": array(np.ones(2))}, r"there is no array 'more' in such a model"),
        ({"readme.txt": b"hello"}, r"it holds 'readme.txt', which is no part of a model"),
        ({"arrays/": b""}, r"it holds 'arrays/', which is no part"),
        ({"arrays/prior.npy": array(np.ones(3) / 3)}, r"arrays/prior.npy has the shape \(3,\), and not \(2\)"),
        ({"arrays/prior.npy": array(np.ones(2))}, r"arrays/prior.npy does not hold probabilities that sum to 1"),
        ({"arrays/prior.npy": array(np.full(2, np.nan))}, r"does not hold probabilities"),
        ({"arrays/prior.npy": array(np.array([1, 0]))}, r"holds values of type <i8, and not <f8"),
        ({"arrays/prior.npy": b"nothing"}, r"arrays/prior.npy is not an array of plain values"),
        ({"arrays/labelled/codes.npy": array(np.array([0, 1, 2, 0]))}, r"does not hold indices of classes"),
        (
            {"arrays/learning/log_weights.npy": array(np.full((6, 2, 2), 0.1))},
            r"does not hold logarithms of probabilities",
        ),
        (
            {"arrays/learning/further/_sequential_counts.npy": array(np.full((2, 3, 2, 2), -1.0))},
            r"does not hold counts",
        ),
        (
            {"columns/names/workers.arrow": model_files.write_column(pa.table({"values": ["u", "u"]}))},
            r"are not distinct",
        ),
        (
            {"columns/names/workers.arrow": model_files.write_column(pa.table({"values": ["u", None]}))},
            r"missing entries",
        ),
        ({"columns/names/workers.arrow": model_files.write_column(pa.table({"values": pa.nulls(2)}))}, r"plain values"),
        ({"columns/names/workers.arrow": model_files.write_column(pa.table({"values": ["u", "v"]}), "zstd")}, r"twice"),
        ({"model.json": b"[" * 20_000}, r"model.json is not JSON"),
        ({"model.json": b"{"}, r"model.json is not JSON"),
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
        ({"model": 3}, "the model in the header cannot be 3"),
        ({"model": "DawidSkene"}, "in such a model"),
        ({"parameters": {}}, "the parameter 'calibration', 'callback', 'classifier', 'coupling', 'decode'"),
        ({"fusion": []}, "the fusion in the header cannot be []"),
        (
            {"fusion": {}},
            "the entry of the result 'backend', 'blocked', 'by_fuse', 'calibrated', 'chance'",
        ),
        ({"given": {"answers": None}}, "the entry of given 'gold', 'graph', 'has_priors' is missing"),
        ({"more": 1}, "there is no entry of the header 'more'"),
        ({"version": 2}, "newer release of consilience (version 2 of the format; this release reads up to 1)"),
        ({"version": "1"}, "model.json names no version, but '1'"),
        ({"format": "other"}, "is not a model saved by consilience"),
    ],
)
def test_a_damaged_header_is_explained(entries, expected, path):
    change_header(path, **entries)
    assert expected in complaint(path)


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        ("backend", "excel", "backend cannot be 'excel'"),
        ("names", None, "names cannot be None"),
        ("names/normalised", 1, "names/normalised cannot be 1"),
        ("prior", None, "prior cannot be None"),
        ("labelled/keys", {"item": "column"}, "the column 'labelled/keys/item' is missing"),
        ("labelled/keys", {"x": "column"}, "labelled/keys cannot be {'x': 'column'}"),
        ("labelled", {"n_items": 4, "mean_confidence": 0.5, "shown": True}, "there is no array 'labelled/codes'"),
        ("labelled", {"n_items": 4, "mean_confidence": 2.0, "shown": True}, "labelled/mean_confidence cannot be 2.0"),
        ("labelled", {"n_items": 0, "mean_confidence": 0.5, "shown": True}, "labelled/n_items cannot be 0"),
        ("labelled/uncalibrated", None, "there is no array 'labelled/uncalibrated' in such a model"),
        ("learning/kind", "robots", "learning/kind cannot be 'robots'"),
        ("learning/kind", "confusion", "log_weights.npy has the shape (6, 2, 2), and not (2, 2, 2)"),
        ("learning/structure", {}, "the array of learning/structure 'bound', 'coupling'"),
        ("course/n_iter", -1, "course/n_iter cannot be -1"),
        ("course/starts", {"votes": "array"}, "course/starts cannot be {'votes': 'array'}"),
        ("course/smoothing", [1.0], "course/smoothing cannot be [1.0]"),
        ("course/smoothing", [1.0, -1.0], "course/smoothing cannot be -1.0"),
        ("judging/past", None, "there is no array 'judging/past/"),
        ("judging/intervals/workers", None, "there is no array 'judging/intervals/workers'"),
        ("copying", [[0]], "copying cannot be [[0]]"),
        ("copying", [[0, 9]], "a group of copies names a worker who is not there"),
        ("calibrated", None, "there is no array 'calibrated/known_scores'"),
        ("calibrated/found/power", 0, "calibrated/found/power cannot be 0"),
        ("calibrated/powers", [1.0, "x"], "calibrated/powers cannot be 'x'"),
        ("coupling", None, "the coupling is not that of HiddenMarkov"),
        ("coupling_scores", [[1.0, 2.0, 3.0]], "coupling_scores cannot be [1.0, 2.0, 3.0]"),
        ("comparison", {"n_items": "4"}, "the entry of comparison 'absolute_"),
        ("task", {"name": "spans"}, "the entry of task 'documents', 'end'"),
        ("task", {"name": "masks"}, "task cannot be"),
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


def test_a_field_must_be_the_one_of_its_parameters(tmp_path):
    crowd = cs.simulate.network(15, n_workers=3, n_classes=2, degree=3, seed=1)
    path = cs.MarkovField(coupling=0.5).fit(crowd.responses, graph=crowd.graph).save(tmp_path / "a.model")
    change(path, **{"arrays/learning/structure/coupling.npy": model_files.to_bytes(np.array(1e308))})
    assert "the field is not the one that the parameters call for" in complaint(path)


def test_no_path_no_model(tmp_path):
    assert "There is no file" in complaint(tmp_path / "none")
    assert "is not a model saved by consilience" in complaint(tmp_path)
    (tmp_path / "text").write_text("hello")
    assert "is not a model saved by consilience" in complaint(tmp_path / "text")


# -------------------------------------------------------------------------------------------------------------- bombs


@pytest.mark.robust
@pytest.mark.skipif(sys.platform != "linux", reason="it measures memory as Linux does")
def test_small_files_take_little_memory(path, tmp_path):
    """Whatever a file claims, loading it takes a few hundred megabytes at most."""
    huge = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }\n"
    claims = b"\x93NUMPY\x01\x00" + len(huge).to_bytes(2, "little") + huge
    zeros = model_files.write_column(pa.table({"values": pa.array(np.zeros(1 << 28, np.int8))}), "zstd")
    bits = model_files.write_column(pa.table({"values": pa.array(np.zeros(1 << 27, bool))}))
    for members in [
        {"arrays/course/trace.npy": claims},
        {"arrays/course/trace.npy": model_files.to_bytes(np.zeros(1 << 24))},
        {"columns/labelled/keys/position.arrow": zeros},
        {"columns/labelled/keys/position.arrow": bits, "columns/labelled/keys/sequence.arrow": bits},
        {"columns/names/workers.arrow": model_files.write_column(pa.table({"values": pa.nulls(10**9)}))},
        {"model.json": b"[" + b"[]," * (1 << 23) + b"[]]"},
    ]:
        bomb = tmp_path / "bomb.model"
        bomb.write_bytes(path.read_bytes())
        change(bomb, **members)
        assert bomb.stat().st_size < 1 << 20
        code = (
            "import re, sys, consilience as cs\n"
            "try: cs.load(sys.argv[1])\n"
            "except cs.errors.StoreError as error: print(error)\n"
            "print(*re.findall('VmHWM: *(.*) kB', open('/proc/self/status').read().replace(chr(9), ' ')))\n"
        )
        done = subprocess.run([sys.executable, "-c", code, bomb], capture_output=True, text=True, check=True)
        words, peak = done.stdout.splitlines()
        assert "is damaged" in words
        assert int(peak) < 500_000, list(members)


def test_what_packs_too_well_is_saved_unpacked(monkeypatch, tmp_path):
    answers = {"item": range(3000), "worker": ["a"] * 3000, "label": ["x", "y"] * 1500}
    model = cs.MajorityVote().fit(answers)
    packed = model.save(tmp_path / "packed")
    monkeypatch.setattr(archive, "ROOM", 1000)
    monkeypatch.setattr(archive, "MOST_UNPACKED", 2)
    assert "would unpack to" in complaint(packed)
    plain = model.save(tmp_path / "plain")
    assert plain.stat().st_size > 3 * packed.stat().st_size
    np.testing.assert_array_equal(cs.load(plain).posterior_, model.posterior_)


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


def test_files_of_unreleased_versions_are_refused(path):
    """Their header had the same place, and another format."""
    header = {"format": "consilience", "schema": 9, "model": "hidden-markov"}
    change(path, **{"model.json": json.dumps(header).encode()})
    words = (
        "was saved by an earlier, unreleased version of consilience, and cannot be read any more. Fit the model again."
    )
    assert words in complaint(path)


@pytest.mark.parametrize("part", [IndependentParameters, ChainParameters, FieldParameters])
def test_structures_declare_all_that_they_save(part):
    assert list(part.specs()) == [field.name for field in dataclasses.fields(part)]


@pytest.mark.parametrize("workers", WORKERS)
def test_what_is_saved_is_what_is_declared(workers, tmp_path):
    """Every array and every column is named after the field that declares it."""
    answers = SEQUENCES
    if WORKERS[workers].needs_votes:
        votes = np.random.default_rng(0).dirichlet(np.ones(3), size=(12, 3))
        answers = cs.Answers.from_probabilities(votes, lengths=[6, 6])
    model = cs.HiddenMarkov(workers=workers, coupling=1.0, max_iter=2, tol=0).fit(answers)
    members = model_files.unpack(model.save(tmp_path / "m").read_bytes())
    assert {"arrays/prior.npy", "columns/names/workers.arrow", "arrays/given/answers/counts.npy"} < members.keys()
    header = json.loads(members.pop("model.json"))
    assert header["fusion"].keys() == list_fields(Result).keys() - {"model"}
    assert header["given"].keys() == list_fields(Kept).keys()
    declared = places_of(header["fusion"], ()) | places_of(header["given"], ("given",))
    assert {tuple(name.partition("/")[2].rpartition(".")[0].split("/")) for name in members} == declared


def places_of(value: object, path: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Return where the header says that there is an array or a column."""
    if isinstance(value, dict):
        return {place for name, entry in value.items() for place in places_of(entry, (*path, name))}
    return {path} if value in ("array", "column") else set()
