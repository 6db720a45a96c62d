"""Model files may be damaged, crafted or old: what is wrong is said, and nothing is computed from it."""

from __future__ import annotations

import dataclasses
import gzip
import io
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
from consilience.inference.workers.register import WORKERS
from consilience.models.register import MODELS, model_class
from consilience.results import archive
from consilience.results.migrations import upgrade
from consilience.results.powers import raise_to
from fuzz import model_files
from fuzz.harness import run_cases

SAVED = Path(__file__).parent / "saved"
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
        ({"arrays/label_codes.npy": array(np.array([0, 1, 2, 0]))}, r"does not hold indices of classes"),
        ({"arrays/log_weights.npy": array(np.full((6, 2, 2), 0.1))}, r"does not hold logarithms of probabilities"),
        ({"arrays/workers _sequential_counts.npy": array(np.full((2, 3, 2, 2), -1.0))}, r"does not hold counts"),
        ({"columns/workers.arrow": model_files.write_column(pa.table({"values": ["u", "u"]}))}, r"are not distinct"),
        ({"columns/workers.arrow": model_files.write_column(pa.table({"values": ["u", None]}))}, r"missing entries"),
        ({"columns/workers.arrow": model_files.write_column(pa.table({"values": pa.nulls(2)}))}, r"plain values"),
        ({"columns/workers.arrow": model_files.write_column(pa.table({"values": ["u", "v"]}), "zstd")}, r"twice"),
        ({"model.json": b"[" * 20_000}, r"more than 100 brackets are open"),
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
        ({"model": "dawid"}, "holds a model 'dawid', which this release does not know. It knows 'majority'"),
        ({"model": 3}, "the model in the header cannot be 3"),
        (
            {"parameters": {}},
            "the parameter 'calibration', 'callback', 'classifier', 'coupling', 'decode' and 10 more",
        ),
        (
            {"scalars": {"n_iter_": 3}},
            "the scalar '_copies', '_has_priors', '_n_batches', '_n_changes', '_normalised' and 10 more is",
        ),
        ({"backend": "excel"}, "there is no library of tables 'excel'"),
        ({"keys": ["item"]}, "the column 'key item' is missing"),
        ({"keys": ["x"]}, "items cannot be identified by ['x']"),
        ({"notes": {"comparison_": {"n_items": "4"}}}, "the figure of comparison_ 'alpha', 'alpha_high'"),
        ({"notes": {"x": 1}}, "there is no note 'x'"),
        ({"more": 1}, "there is no entry of the header 'more'"),
        ({"schema": 10}, "newer release of consilience (schema 10; this release reads up to 9). Upgrade consilience"),
        ({"schema": "3"}, "model.json names no schema, but '3'"),
        ({"schema": 2}, "it holds arrays of two schemas"),
        ({"format": "other"}, "is not a model saved by consilience"),
    ],
)
def test_a_damaged_header_is_explained(entries, expected, path):
    change_header(path, **entries)
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
    change(path, **{"arrays/structure coupling.npy": model_files.to_bytes(np.array(1e308))})
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
        {"arrays/trace.npy": claims},
        {"arrays/trace.npy": model_files.to_bytes(np.zeros(1 << 24))},
        {"columns/key position.arrow": zeros},
        {"columns/key position.arrow": bits, "columns/key sequence.arrow": bits},
        {"columns/workers.arrow": model_files.write_column(pa.table({"values": pa.nulls(10**9)}))},
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


# ----------------------------------------------------------------------------------------- what is written, what is old


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


@pytest.mark.parametrize("schema", [1, 2, 3, 4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("name", MODELS)
def test_files_of_earlier_releases_are_read(schema, name, tmp_path):
    packed = (SAVED / f"schema-{schema}" / f"{name}.model.gz").read_bytes()
    assert len(packed) < 10_000
    path = tmp_path / "old.model"
    path.write_bytes(gzip.decompress(packed))
    model = cs.load(path)
    assert type(model) is model_class(name)
    answers = SEQUENCES if name == "hidden-markov" else FLAT
    graph = cs.Graph.from_edges([0, 1, 2], [1, 2, 3]) if name == "markov-field" else None
    expected = model.posterior_
    if hasattr(model, "power_"):
        expected = raise_to(model.uncalibrated_posterior_, model.power_)
        if schema < 3:
            np.testing.assert_array_equal(expected, model.posterior_)
            assert (model.calibration, model.calibration_) == ("none", (1.0, 0, 0, True, 0))
            assert model.smoothing == model.smoothing_ == (0.1, 1.1)
        else:
            assert (model.calibration, model.calibration_.n_hidden) == ("hidden answers", 8 if schema == 3 else 0)
            assert model.smoothing == "learn"
            assert 0 < model.smoothing_[0] < model.smoothing_[1]
    # The file may come from another machine, and from other versions of numpy and numba: they round differently. Fields
    # used to be visited in another order, and inference ends when nothing moves by more than a millionth.
    atol = 1e-6 if name == "markov-field" else 0
    np.testing.assert_allclose(model.predict_proba(answers, graph=graph), expected, rtol=1e-9, atol=atol)
    assert hasattr(model, "comparison_") == (name == "dawid-skene")
    assert hasattr(model, "sequential_confusion_") == (name == "hidden-markov")
    assert model.worker_report().num_rows == 2
    again = cs.load(model.save(tmp_path / "new.model"))
    np.testing.assert_array_equal(again.posterior_, model.posterior_)
    assert again.get_params() == model.get_params()
    change(path, **{"arrays/crowd.npy": model_files.to_bytes(model._crowd + 1)})
    assert "is damaged" in complaint(path)


@pytest.mark.parametrize(
    ("smoothing", "expected"),
    [
        (0.5, [0.5, 0.5]),
        ({"array": [0.2, 3.0], "tuple": True}, [0.2, 3.0]),
        ({"array": [[1.0, 0.1], [0.1, 1.0]], "tuple": False}, None),
    ],
)
def test_smoothing_that_was_given_in_schema_2(smoothing, expected):
    header = {"schema": 2, "model": "dawid-skene", "parameters": {"smoothing": smoothing}, "scalars": {}}
    new, arrays = upgrade(header, {"posterior": "arrays/posterior.npy"})
    assert new["scalars"]["smoothing_"] == expected
    assert arrays["uncalibrated_posterior"] == "arrays/posterior.npy"


@pytest.mark.parametrize("part", [IndependentParameters, ChainParameters, FieldParameters])
def test_structures_declare_all_that_they_save(part):
    assert list(part.specs) == [field.name for field in dataclasses.fields(part)]


@pytest.mark.parametrize("workers", WORKERS)
def test_what_is_saved_is_what_is_declared(workers, tmp_path):
    model = cs.HiddenMarkov(workers=workers, coupling=1.0, max_iter=2, tol=0).fit(SEQUENCES)
    state = model._state()
    assert model._specs(state).keys() == state.keys()
    with zipfile.ZipFile(io.BytesIO(model.save(tmp_path / "m").read_bytes())) as file:
        assert {f"arrays/{name}.npy" for name in state} < set(file.namelist())
