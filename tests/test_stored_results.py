"""Models that were fitted to answers on disk: votes, files of models, and what the command says."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest

import consilience as cs
from consilience.errors import InputError, NotFittedError, ParameterError, StoreError
from test_store import _small_parts, check_written, crowd, fit_both, write  # noqa: F401 (the fixture is for all tests)

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


def even_crowd(in_sequences=False):
    """Return answers with many ties, four per item."""
    return crowd(n_items=600, per_item=4, in_sequences=in_sequences)[0]


def check_votes(tmp_path, on_disk, in_memory):
    """Check that labels, shares, and what is said of workers are those of a vote in memory."""
    check_written(tmp_path, on_disk, in_memory)
    for name in ("prior_", "confusion_", "prior_low_", "prior_high_"):
        np.testing.assert_allclose(getattr(on_disk, name), getattr(in_memory, name), atol=1e-9)
    assert on_disk.result_.n_answers.tolist() == in_memory.result_.n_answers.tolist()
    for name in ("expected_accuracy_", "expected_accuracy_low_", "expected_accuracy_high_"):
        assert getattr(on_disk, name) == pytest.approx(getattr(in_memory, name), abs=1e-9)
    workers, others = (model.worker_report().to_pandas() for model in (on_disk, in_memory))
    assert workers.worst_confusion.tolist() == others.worst_confusion.tolist()
    np.testing.assert_allclose(workers.accuracy, others.accuracy)
    np.testing.assert_allclose(workers.accuracy_low, others.accuracy_low)


@pytest.mark.parametrize("in_sequences", [False, True])
@pytest.mark.parametrize("ties", ["random", "first"])
def test_votes_are_those_in_memory(tmp_path, in_sequences, ties):
    check_votes(tmp_path, *fit_both(tmp_path, even_crowd(in_sequences), lambda: cs.MajorityVote(ties=ties, seed=3)))


def test_votes_with_weights_known_labels_and_labels_that_are_no_classes(tmp_path):
    table = even_crowd()
    weight = np.random.default_rng(0).choice([0.25, 0.5, 1.0], table.num_rows)
    table = table.append_column("weight", pa.array(weight))
    gold = dict.fromkeys(range(0, 500, 7), "class 1")
    classes = ["class 0", "class 1"]  # some items have no vote
    check_votes(tmp_path, *fit_both(tmp_path, table, cs.MajorityVote, gold, weight="weight", classes=classes))


def test_votes_of_copies_count_once_as_in_memory(tmp_path):
    rows = crowd(n_items=1500, n_workers=6, per_item=4)[0].to_pandas().sort_values(["item", "worker"])
    said = dict(zip(zip(rows.item, rows.worker, strict=True), rows.label, strict=True))
    rows["label"] = [
        said.get((item, "w0"), label) if worker == "w1" else label
        for item, worker, label in zip(rows.item, rows.worker, rows.label, strict=True)
    ]
    table = pa.table(rows.reset_index(drop=True))
    on_disk, in_memory = fit_both(tmp_path, table, cs.MajorityVote, fuse=True, classes=["class 0", "class 1"])
    assert on_disk.copies_ == in_memory.copies_ == [["w0", "w1"]]
    assert on_disk.comparison_ is None
    check_votes(tmp_path, on_disk, in_memory)
    # They are also found when somebody asks.
    assert cs.MajorityVote().fit(on_disk.result_.source.answers).copies_ == [["w0", "w1"]]


MODELS = {
    "dawid-skene": cs.DawidSkene,
    "one-coin": lambda: cs.DawidSkene(workers="one-coin"),
    "hidden-markov": cs.HiddenMarkov,
    "majority": cs.MajorityVote,
}


@pytest.mark.parametrize("name", MODELS)
def test_models_are_saved_without_answers_and_labels(tmp_path, name):
    path = write(crowd(in_sequences=name == "hidden-markov")[0], tmp_path / "a.parquet")
    s, r = cs.scan_answers(path, store=tmp_path / "stores"), cs.read_answers(path)
    model = cs.fuse(s, model=MODELS[name]())
    assert not model.result_.in_memory
    loaded = cs.load(model.save(tmp_path / "crowd.model"))
    assert repr(loaded) == repr(model)
    assert repr(loaded.comparison_) == repr(model.comparison_)  # nan is not equal to nan
    assert loaded.worker_report().equals(model.worker_report())
    assert loaded.expected_accuracy_ == model.expected_accuracy_
    assert np.array_equal(loaded.predict_proba(r), model.predict_proba(r))
    assert loaded.predict(r).tolist() == model.predict(r).tolist()
    assert loaded.score(r) == model.score(r)
    if name != "majority":
        assert loaded.explain_calibration() == model.explain_calibration()
    # What it has not, it says.
    for use in (loaded.to_frame, loaded.next_items, lambda: loaded.labels_, lambda: loaded.write(tmp_path / "labels")):
        with pytest.raises(NotFittedError, match="no answers and no labels"):
            use()
    with pytest.raises(NotFittedError, match="its file does not hold them"):
        _ = loaded.responses_
    assert "not in its file" in loaded._repr_html_()
    assert not (tmp_path / "labels").exists()
    # It can be saved again, and fitted in memory.
    assert loaded.save(tmp_path / "again.model").read_bytes() == (tmp_path / "crowd.model").read_bytes()
    assert len(loaded.fit(r).labels_) == 500
    assert len(cs.load(loaded.save(tmp_path / "again.model")).labels_) == 500


def test_files_of_models_on_disk_are_checked(tmp_path):
    import zipfile

    path = write(crowd()[0], tmp_path / "a.parquet")
    model = cs.DawidSkene().fit(cs.scan_answers(path, store=tmp_path / "stores"))
    good = model.save(tmp_path / "good.model")
    for found in ({"n_items": 0, "mean_confidence": 0.5}, {"n_items": 5, "mean_confidence": 2.0}, {"n_items": 5}, None):
        with zipfile.ZipFile(good) as source, zipfile.ZipFile(tmp_path / "bad.model", "w") as target:
            for name in source.namelist():
                content = source.read(name)
                if name == "model.json":
                    header = json.loads(content)
                    header["fusion"]["labelled"] = found
                    content = json.dumps(header)
                target.writestr(name, content)
        with pytest.raises(StoreError, match="damaged"):
            cs.load(tmp_path / "bad.model")


def test_labels_on_disk_are_left_open_as_in_memory(tmp_path):
    on_disk, in_memory = fit_both(tmp_path, crowd()[0], cs.DawidSkene)
    for least in (0, 0.9, 1):
        found, expected = on_disk.undecided(least), in_memory.undecided(least)
        assert found[:3] == expected[:3]
        assert found.expected_errors == pytest.approx(expected.expected_errors, abs=1e-6)
        assert found.n_gold == expected.n_gold


CROWDS = {
    "items": (lambda: crowd()[0], cs.DawidSkene),
    "vote": (even_crowd, cs.MajorityVote),
    "sequences": (lambda: crowd(in_sequences=True)[0], lambda: cs.HiddenMarkov(coupling=1.0)),
}


def fit_crowd(tmp_path, name, known=()):
    """Fit a model to a crowd on disk and in memory, with some known labels."""
    make, model = CROWDS[name]
    gold = {(i // 10, i % 10) if name == "sequences" else i: f"class {i % 3}" for i in known}
    return fit_both(tmp_path, make(), model, gold or None)


def list_rows(table, *names):
    """Return some columns of a table, row by row."""
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


@pytest.mark.parametrize("name", CROWDS)
@pytest.mark.parametrize("known", [(), range(0, 200, 3)])
def test_items_to_label_next_are_those_in_memory(tmp_path, name, known):
    on_disk, in_memory = fit_crowd(tmp_path, name, known)
    for n in (0, 1, 25, 10_000):
        found, expected = on_disk.next_items(n), in_memory.next_items(n)
        assert found.column_names == expected.column_names
        keys = [each for each in ("item", "sequence", "position") if each in found.column_names]
        for columns in ([*keys, "random"], ["fused_label"]):
            assert list_rows(found, *columns) == list_rows(expected, *columns)
        np.testing.assert_allclose(found["entropy"], expected["entropy"], atol=1e-8)
        np.testing.assert_allclose(found["confidence"], expected["confidence"], atol=1e-8)


@pytest.mark.parametrize("name", CROWDS)
def test_items_to_stop_at_are_those_in_memory(tmp_path, name):
    on_disk, in_memory = fit_crowd(tmp_path, name)
    most = float(np.sort(in_memory.stop_items(0)["confidence"])[-3])  # so that most parts have no such item
    for least in (0.9, most):
        found, expected = on_disk.stop_items(least).to_pandas(), in_memory.stop_items(least).to_pandas()
        keys = list(found.columns[:-3])
        assert len(found)
        assert set(map(tuple, found[[*keys, "label"]].values)) == set(map(tuple, expected[[*keys, "label"]].values))
        np.testing.assert_allclose(found.expected_errors, expected.expected_errors, atol=1e-6)


@pytest.mark.parametrize("name", CROWDS)
def test_questions_to_ask_next_are_those_in_memory(tmp_path, name):
    on_disk, in_memory = fit_crowd(tmp_path, name, known=range(0, 200, 3))
    asked = in_memory.next_questions(30)
    costs = {f"w{m}": 1.0 + m % 3 for m in range(12)}
    wishes = (
        {"n": 40},
        {"n": 0},
        {"n": 40, "asked": asked, "workers": ["w1", "w2", "w7"], "per_worker": 9},
        {"budget": 25, "cost": costs, "asked": asked},
        {"n": 100_000, "workers": ["w3"]},
    )
    for wish in wishes:
        found, expected = on_disk.next_questions(**wish), in_memory.next_questions(**wish)
        names = expected.column_names
        assert found.column_names == names
        assert sorted(list_rows(found, *names[:-2])) == sorted(list_rows(expected, *names[:-2]))
        np.testing.assert_allclose(found["gain"], expected["gain"], atol=1e-7)
        assert found["cost"].to_pylist() == expected["cost"].to_pylist()


@pytest.mark.parametrize("name", CROWDS)
def test_models_on_disk_are_judged_as_in_memory(tmp_path, name):
    on_disk, in_memory = fit_crowd(tmp_path, name)
    keys = [(str(i // 10), str(i % 10)) if name == "sequences" else str(i) for i in range(0, 600, 7)]
    gold = dict(zip(keys, (f"class {i % 3}" for i in range(len(keys))), strict=True))
    for normalise in (False, True):
        found, expected = (cs.evaluate(model, gold, normalise=normalise) for model in (on_disk, in_memory))
        assert (found.classes, found.accuracy) == (expected.classes, expected.accuracy)
        counts = ("n_matched", "n_gold_only", "n_labels_only")
        assert [getattr(found, each) for each in counts] == [getattr(expected, each) for each in counts]
        assert found.log_loss == pytest.approx(expected.log_loss, abs=1e-8)
    stranger = {("x", 1) if name == "sequences" else "x": "class 1"}
    messages = []
    for model in (on_disk, in_memory):
        with pytest.raises(
            InputError, match=r"None of the 1 item in gold occurs in the table of labels.*same ids"
        ) as e:
            cs.evaluate(model, stranger)
        messages.append(str(e.value))
    assert all("the former has 'x', the latter" in message for message in messages)


def test_tags_on_disk_are_judged_as_in_memory(tmp_path):
    tags = {"class 0": "O", "class 1": "B-PER", "class 2": "I-PER"}
    table = crowd(in_sequences=True)[0]
    table = table.set_column(3, "label", pa.array([tags[label] for label in table["label"].to_pylist()]))
    on_disk, in_memory = fit_both(tmp_path, table, lambda: cs.DawidSkene())
    gold = {(i // 10, i % 10): "B-PER" if i % 4 else "O" for i in range(0, 200, 2)}
    found, expected = (cs.evaluate(model, gold).spans for model in (on_disk, in_memory))
    assert found == expected
    assert found.n_invalid_transitions > 0


@pytest.mark.parametrize("target", ["labels.parquet", "labels"])
def test_labels_are_written_without_those_that_are_not_certain(tmp_path, target):
    on_disk, in_memory = fit_both(tmp_path, crowd()[0], cs.DawidSkene)
    for model in (on_disk, in_memory):
        model.write(tmp_path / target, undecided=0.9)
        written = pa.dataset.dataset(tmp_path / target).to_table()
        expected = in_memory.to_frame(undecided=0.9)
        assert sorted(list_rows(written, "item", "label"), key=str) == sorted(
            list_rows(expected, "item", "label"), key=str
        )
        assert written["label"].null_count == model.undecided(0.9).n_open > 0
    with pytest.raises(ParameterError, match="'undecided' parameter of write must be a number from 0 to 1"):
        on_disk.write(tmp_path / target, undecided=2)


def test_the_command_leaves_labels_open(tmp_path):
    result = fuse_on_disk(tmp_path, "--undecided", "0.9", "-o", tmp_path / "labels.csv", "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)["undecided"]
    rows = (tmp_path / "labels.csv").read_text().splitlines()[1:]
    assert sum(row.split(",")[1] == "" for row in rows) == said["n_items"] - said["n_kept"] > 0


def test_errors_of_models_on_disk_say_what_to_do(tmp_path):
    path = write(crowd()[0], tmp_path / "a.parquet")
    s = cs.scan_answers(path, store=tmp_path / "stores")
    model = cs.DawidSkene().fit(s)
    with pytest.raises(NotFittedError, match=r"Write them to files with write\(path\)"):
        model.to_frame()
    with pytest.raises(ParameterError, match=r"a store does not keep when.*Read them into memory with read_answers"):
        model.drift_report()
    with pytest.raises(NotFittedError, match="are on disk"):
        _ = model.responses_
    for use in (model.predict, model.predict_proba, model.score):
        with pytest.raises(ParameterError, match="read_answers"):
            use(s)
    for content in ("features", "item_prior"):
        with pytest.raises(ParameterError, match=f"{content}.* for answers in memory"):
            cs.DawidSkene().fit(s, **{content: [[1.0]]})
    with pytest.raises(InputError, match=r"'labels\.xlsx'.*labels\.parquet"):
        model.write("labels.xlsx")
    assert "write(path)" in model._repr_html_()


# On the command line


def fuse_on_disk(tmp_path, *arguments):
    from command_line import run

    path = tmp_path / "a.parquet"
    if not path.exists():
        write(crowd()[0], path)
    store = () if "--store" in arguments else ("--store", tmp_path / "stores")
    return run("fuse", path, "--memory", "2GB", *store, *arguments)


def test_the_command_saves_models_and_takes_the_vote(tmp_path):
    result = fuse_on_disk(
        tmp_path, "--model", "majority", "--save", tmp_path / "m.model", "-o", tmp_path / "labels.parquet"
    )
    assert result.exit_code == 0, result.output
    loaded, here = cs.load(tmp_path / "m.model"), cs.MajorityVote().fit(cs.read_answers(tmp_path / "a.parquet"))
    np.testing.assert_allclose(loaded.prior_, here.prior_)
    labels = pa.dataset.dataset(tmp_path / "labels.parquet").to_table()
    found = dict(zip(labels["item"].to_pylist(), labels["label"].to_pylist(), strict=True))
    assert found == dict(zip(here.to_frame()["item"].to_pylist(), here.labels_, strict=True))


def test_the_command_says_where_the_store_and_the_labels_are(tmp_path):
    from command_line import run

    result = fuse_on_disk(tmp_path, "-o", tmp_path / "labels", "--resume")
    assert "KiB, built now: there was nothing to resume)" in result.stdout
    assert "Parquet files)" in result.stdout
    result = fuse_on_disk(tmp_path, "--json")
    store = json.loads(result.stdout)["store"]
    (folder,) = (tmp_path / "stores").iterdir()
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert store == {"folder": str(folder), "bytes": size, "built": False, "resume": False, "resumed_after": 0}
    assert "KiB, used again)" in fuse_on_disk(tmp_path).stdout
    assert json.loads(run("fuse", tmp_path / "a.parquet", "--json").stdout)["store"] is None


def test_the_command_says_from_where_it_goes_on(tmp_path, monkeypatch):
    def stop(display, progress):
        if progress.iteration == 3:
            raise RuntimeError("interrupted")

    with monkeypatch.context() as patched:
        patched.setattr("consilience.cli.terminal.Display.show_iteration", stop)
        assert fuse_on_disk(tmp_path).exit_code == 1
    result = fuse_on_disk(tmp_path, "--resume", "-o", tmp_path / "labels")
    assert "converged; resumed after iteration 3\n" in result.stdout
    assert "KiB, used again)" in result.stdout
    result = fuse_on_disk(tmp_path, "--resume")  # the steps are gone, since labels were written
    assert "resumed after" not in result.stdout
    assert "KiB, used again: there was nothing to resume)" in result.stdout
    store = json.loads(fuse_on_disk(tmp_path, "--resume", "--model", "majority", "--json").stdout)["store"]
    assert (store["resume"], store["resumed_after"]) == (True, 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "moments", "--order", "time"), "--order, --model moments. Leave them out"),
        (("--columns", "gold=label"), "--columns gold=.... Leave it out"),
        (("--format", "wide"), "do not go with --format wide"),
        (("--no-answers",), "--no-answers needs --save"),
        (("--report", "page.txt"), "does not end in .html"),
        (("-o", "labels.xlsx"), "Name a file such as labels.parquet"),
        (("--store", __file__), "choose another place with --store"),
    ],
)
def test_the_command_says_what_does_not_go(tmp_path, arguments, words):
    result = fuse_on_disk(tmp_path, *arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


def test_the_command_never_writes_into_its_input(tmp_path):
    for output in (tmp_path / "a.parquet", tmp_path):
        result = fuse_on_disk(tmp_path, "-o", output)
        assert result.exit_code == 2
        assert "would change the input" in result.stderr


def test_the_report_of_a_vote_shows_a_sample(tmp_path):
    pytest.importorskip("jinja2", reason="the report needs jinja2: pip install 'consilience[report]'")
    result = fuse_on_disk(tmp_path, "--model", "majority", "--report", tmp_path / "report.html")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "report.html").stat().st_size > 10_000
