"""Sets of tags: read from tables and tools, fused, and written back."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import gammaln

import consilience as cs
from command_line import run
from consilience.errors import DataWarning, InputError, ParameterError, quietly
from consilience.inference.workers.tags import TagWorkers
from consilience.inference.workers.types import respond_by_parts

SETS = {(1, "ann"): ["spam", "urgent"], (1, "bob"): ["urgent"], (2, "ann"): [], (2, "bob"): ["spam"]}
ROWS = {
    "item": [item for item, _ in SETS],
    "worker": [worker for _, worker in SETS],
    "tags": [";".join(tags) for tags in SETS.values()],
}


def sets_of(tags):
    table = tags.to_frame()
    table = table if isinstance(table, pa.Table) else pa.table(table.to_dict("list"))
    rows = table.select(["item", "worker", "labels"]).to_pylist()
    return {(row["item"], row["worker"]): row["labels"] for row in rows}


@pytest.fixture(scope="module")
def project():
    return cs.simulate.tags(150, n_workers=8, n_tags=4, seed=3)


@pytest.fixture(scope="module")
def fused(project):
    return cs.fuse(project.tags)


# ------------------------------------------------------------------------------------------------------------- reading


def test_cells_lists_rows_and_columns_are_the_same_sets():
    lists = {**ROWS, "tags": list(SETS.values())}
    exploded = [(i, w, tag) for (i, w), tags in SETS.items() for tag in tags or [None]]
    rows = dict(zip(("item", "worker", "label"), map(list, zip(*exploded, strict=True)), strict=True))
    hot = {
        "item": ROWS["item"],
        "worker": ROWS["worker"],
        **{tag: [int(tag in tags) for tags in SETS.values()] for tag in ("spam", "urgent")},
    }
    read = [
        cs.Tags.from_frame(ROWS, separator=";"),
        cs.Tags.from_frame({**ROWS, "tags": ["urgent ; spam", "urgent", None, " spam;"]}, separator=";"),
        cs.Tags.from_frame(lists),
        cs.Tags.from_frame(pl.DataFrame(lists).to_arrow()),
        cs.Tags.from_frame(pa.table(lists)),
        cs.Tags.from_frame(rows),
        cs.Tags.from_frame(hot),
        cs.Tags.from_frame(hot, label=["spam", "urgent"]),
    ]
    assert all(sets_of(tags) == SETS for tags in read)
    assert [tags.form for tags in read] == ["cells"] * 2 + ["lists"] * 3 + ["rows"] + ["one-hot"] * 2
    for library in (pd.DataFrame, pl.DataFrame):
        assert type(cs.Tags.from_frame(library(lists)).to_frame()) is library


def test_answers_about_each_tag_are_those_of_the_sets(project):
    tags = project.tags
    r = tags.to_responses()
    assert (r.n_items, r.n_responses) == (150 * 4, 150 * 4 * 4)
    said = {(tags.items[i], tags.workers[w]): row for i, w, row in zip(tags.item, tags.worker, tags.said, strict=True)}
    for answer, item in enumerate(r.item_of_answer()):
        thing, tag = divmod(int(item), 4)
        expected = said[tags.items[thing], r.workers[r.worker[answer]]][tag]
        assert r.labels[r.label[answer]] == ("yes" if expected else "no")


def test_known_sets_are_read_beside_the_answers():
    tags = cs.Tags.from_frame({**ROWS, "gold": ["spam", "spam", None, None]}, separator=";")
    assert tags.gold_items.tolist() == [0]
    assert tags.gold.tolist() == [[True, False]]
    assert (
        cs.Tags.from_frame({**ROWS, "gold": ["spam"] * 2 + [None] * 2}, separator=";", gold=False).gold_items.size == 0
    )
    frame = pd.DataFrame({"item": [2], "labels": ["spam;urgent"]})
    for known, codes in (({1: ["urgent"], 2: ""}, [0, 1, 0, 0]), (frame, [-1, -1, 1, 1])):
        assert cs.TagSets().fit(tags, gold=known).result_.given.gold.codes.tolist() == codes
    with pytest.raises(InputError, match="more than one known set"):
        cs.Tags.from_frame({**ROWS, "gold": ["spam", "urgent", None, None]}, separator=";")
    with pytest.raises(InputError, match="tags that nobody gave: 'ham'"):
        cs.TagSets().fit(tags, gold={1: ["ham"]})
    with pytest.raises(InputError, match="None of the"):
        cs.TagSets().fit(tags, gold={9: ["spam"]})


@pytest.mark.parametrize(
    ("change", "keywords", "error"),
    [
        ({}, {"separator": "|"}, "never occurs: no cell in column 'tags'.*use separator=';'"),
        ({"tags": ["a;b", "b;c", "a", ""]}, {}, "No cell in column 'tags' .*2 of 3 hold ';'"),
        ({"item": [1, 1, 2, 1], "worker": ["ann", "bob", "ann", "ann"]}, {"separator": ";"}, "answers an item again"),
        ({}, {"separator": ";", "classes": ["spam"]}, "not among the classes: 'urgent'"),
    ],
)
def test_slips_of_tables_are_errors(change, keywords, error):
    with pytest.raises((InputError, ParameterError), match=error):
        cs.Tags.from_frame({**ROWS, **change}, **keywords)


def test_choices_of_reading():
    again = {key: [*values, values[0]] for key, values in ROWS.items()}
    again["tags"][-1] = "spam"
    assert sets_of(cs.Tags.from_frame(again, separator=";", duplicates="last"))[1, "ann"] == ["spam"]
    assert sets_of(cs.Tags.from_frame(again, separator=";", duplicates="first"))[1, "ann"] == ["spam", "urgent"]
    named = cs.Tags.from_frame(ROWS, separator=";", classes=["urgent", "spam", "ham"], items=[3, 1])
    assert (named.tags.tolist(), named.items.tolist()) == (["urgent", "spam", "ham"], [3, 1, 2])
    with pytest.warns(DataWarning, match="without a tag were left out: 1 of 4"):
        assert cs.Tags.from_frame(ROWS, separator=";", drop_missing=True).n_sets == 3
    with pytest.warns(DataWarning, match="';' never occurs"):
        cs.Tags.from_frame({**ROWS, "tags": ["a", "b", "c", ""]}, separator=";")


# --------------------------------------------------------------------------------------------------------------- model


def test_types_are_shared_as_by_enumeration():
    rng = np.random.default_rng(1)
    workers = TagWorkers(2, np.array([0, 1]), 2, n_contexts=3)
    prior = workers.prior(np.ones((1, 2, 2)), "variational", np.ones(2) / 2)
    counts = rng.gamma(2.0, 2.0, (2, 3, 2, 2))
    types, apart = prior.types.pseudo_counts, prior.types.own
    shares = np.exp(prior.types.log_shares).ravel()
    evidence = np.zeros((2, 3, len(types)))
    for m, t, p in np.ndindex(evidence.shape):
        a, c = types[p], counts[m, t]
        single = gammaln(c + a) - gammaln(a)
        sums = gammaln(a.sum(axis=0)) - gammaln((c + a).sum(axis=0))
        evidence[m, t, p] = np.exp(single.sum() + sums.sum())
    alone = evidence @ shares
    mixed = (1 - apart) * evidence + apart * alone[:, :, None]
    heard, more = workers._condition_on_tags(counts.reshape(-1, 2), prior)
    parts = list(respond_by_parts(workers.by_matrix(counts.reshape(-1, 2)), heard.types))
    responsibility, log_evidence = np.concatenate([each for _, each, _ in parts]), more + sum(e for _, _, e in parts)
    by_worker = shares * mixed.prod(axis=1)
    assert log_evidence == pytest.approx(np.log(by_worker.sum(axis=1)).sum())
    by_worker /= by_worker.sum(axis=1, keepdims=True)
    follows = by_worker[:, None] * (1 - apart) * evidence / mixed
    own = (1 - follows.sum(axis=2, keepdims=True)) * evidence * shares / alone[:, :, None]
    np.testing.assert_allclose(responsibility, (follows + own).reshape(6, -1), atol=1e-12)
    learned = workers.learn_prior(counts.reshape(-1, 2), prior).types.own
    assert learned == pytest.approx((6 - follows.sum() + 1.0) / (6 + 1.5))


def test_sets_are_better_than_those_of_votes(project, fused):
    tags, truth = project.tags, project.truth
    votes = np.zeros(truth.shape)
    np.add.at(votes, tags.item, tags.said)

    def f1(found):
        return 2 * (found & truth).sum() / (found.sum() + truth.sum())

    assert f1(fused.tag_posterior_ > 0.5) > f1(votes >= 2) + 0.005
    assert abs(fused.tag_posterior_.mean() - truth.mean()) < 0.03


def test_tables_tell_sets_tags_and_workers(project, fused):
    table = fused.to_frame()
    assert table.column_names == ["item", "labels", "confidence", "p(a)", "p(b)", "p(c)", "p(d)"]
    likely = fused.tag_posterior_ > 0.5
    assert table["labels"].to_pylist() == [[t for t, on in zip("abcd", row, strict=True) if on] for row in likely]
    certain = np.where(likely, fused.tag_posterior_, 1 - fused.tag_posterior_).prod(axis=1)
    np.testing.assert_allclose(table["confidence"].to_numpy(), certain)
    left = fused.to_frame(undecided=0.8)["labels"]
    assert left.null_count == int((certain < 0.8).sum()) > 0
    report = fused.worker_report()
    misses = 1 - project.sensitivity.mean(axis=1)
    assert np.corrcoef(report["misses"].to_numpy(), misses)[0, 1] > 0.8
    assert fused.tag_report().column_names == ["tag", "share", "given", "misses", "false_alarms"]
    by_tag = fused.worker_tag_report()
    assert by_tag.num_rows == 8 * 4
    assert sum(by_tag["answers"].to_pylist()) == project.tags.n_sets * 4


def test_known_sets_stay_and_empty_sets_count(project):
    known = {0: ["a", "d"], 1: []}
    table = cs.fuse(project.tags, gold=known).to_frame()
    assert table["labels"].to_pylist()[:2] == [["a", "d"], []]
    assert table["confidence"].to_pylist()[:2] == [1.0, 1.0]
    nobody = cs.Tags.from_frame({"item": [1, 1, 2, 2], "worker": list("abab"), "tags": [["x"], ["x"], [], []]})
    assert cs.TagSets().fit(nobody).to_frame()["labels"].to_pylist() == [["x"], []]


def test_models_are_saved_loaded_and_updated(project, fused, tmp_path):
    loaded = cs.load(fused.save(tmp_path / "tags.model"))
    assert loaded.to_frame().equals(fused.to_frame())
    assert loaded.tags_.tolist() == list("abcd")
    assert (loaded.predict_proba(project.tags) == fused.predict_proba(project.tags)).all()
    more = cs.Tags.from_frame({"item": [0, 900], "worker": ["new"] * 2, "tags": [["b"], []]})
    loaded.update(more)
    assert loaded.to_frame()["item"].to_pylist()[-1] == 900
    assert loaded.result_.answers.n_responses == fused.result_.answers.n_responses + 2 * 4
    with pytest.raises(InputError, match="not there at the fit: 'z'"):
        loaded.update(cs.Tags.from_frame({"item": [0], "worker": ["w"], "tags": [["z"]]}))


def test_fuse_takes_separators_and_lists():
    tags = cs.simulate.tags(60, n_workers=5, n_tags=2, sensitivity=0.9, false_alarms=0.02, seed=0).tags
    rows, sets = {"item": tags.item, "worker": tags.workers[tags.worker]}, tags.to_frame()["labels"].to_pylist()
    by_lists = cs.fuse({**rows, "labels": sets})
    by_cells = cs.fuse({**rows, "labels": [" ; ".join(reversed(each)) for each in sets]}, separator=";")
    assert isinstance(by_lists, cs.TagSets)
    assert by_lists.to_frame().equals(by_cells.to_frame())
    with pytest.raises(ParameterError, match="does not go with sets of tags"):
        cs.fuse({**rows, "labels": sets}, weight="w")
    with pytest.raises(InputError, match="Sets of tags are read by"):
        cs.Answers.from_frame({**rows, "label": sets})
    with pytest.raises(ParameterError, match="are for sets of tags"):
        cs.DawidSkene(workers="tags").fit({"item": [1], "worker": ["a"], "label": ["x"]})


# --------------------------------------------------------------------------------------------------- files and commands


def write_tools(folder, tags):
    """Write the same sets as four tools do, and return where."""
    sets = {(int(i), tags.workers[w]): row for i, w, row in zip(tags.item, tags.worker, to_lists(tags), strict=True)}
    choices = {"from_name": "topics", "to_name": "text", "type": "choices"}
    tasks = [
        {
            "id": n,
            "data": {"text": f"t{n}"},
            "annotations": [
                {"completed_by": {"email": w}, "result": [{**choices, "value": {"choices": s}}] if s else []}
                for (i, w), s in sets.items()
                if i == n
            ],
        }
        for n in range(tags.n_items)
    ]
    (folder / "ls.json").write_text(json.dumps(tasks))
    records = [
        {
            "id": str(n),
            "fields": {"text": f"t{n}"},
            "responses": {"topics": [{"value": s, "user_id": w} for (i, w), s in sets.items() if i == n]},
        }
        for n in range(tags.n_items)
    ]
    (folder / "ar.json").write_text(json.dumps(records))
    options = [{"id": tag, "text": tag} for tag in tags.tags]
    lines = [
        {"text": f"t{i}", "_input_hash": i, "_task_hash": k, "options": options, "accept": s, "answer": "accept"}
        | {"_annotator_id": w}
        for k, ((i, w), s) in enumerate(sets.items())
    ]
    (folder / "pr.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "doccano").mkdir()
    for worker in tags.workers:
        own = [{"id": i, "text": f"t{i}", "label": s} for (i, w), s in sets.items() if w == worker]
        (folder / "doccano" / f"{worker}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in own))
    return {"ls.json": "ls2.json", "ar.json": "ar2.json", "pr.jsonl": "pr2.jsonl", "doccano": "doccano2"}


def to_lists(tags):
    return tags.to_frame()["labels"].to_pylist()


@pytest.fixture(scope="module")
def small():
    return cs.simulate.tags(40, n_workers=5, n_tags=3, sensitivity=0.9, false_alarms=0.03, seed=2).tags


@pytest.mark.filterwarnings("ignore:There is no clear difference")
def test_sets_go_back_to_the_tools_that_they_come_from(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = dict(enumerate(cs.fuse(small).to_frame()["labels"].to_pylist()))
    for source, target in write_tools(tmp_path, small).items():
        tags = cs.read_tags(source)
        assert (tags.n_items, tags.n_workers, tags.n_sets) == (40, 5, 160)
        assert int((~tags.said.any(axis=1)).sum()) == int((~small.said.any(axis=1)).sum()) > 0
        assert run("fuse", source, "-o", target, "-q").exit_code == 0
        again = cs.read_tags(target)
        who = "fused" if source == "doccano" and "consilience" not in again.workers else "consilience"
        fused = {int(i): s for i, w, s in zip(*map(list, frame_columns(again)), strict=True) if w == who}
        assert fused == expected
        assert target != "doccano2" or again.n_workers == 1
        assert target == "doccano2" or again.n_workers == 6
    # Argilla has a score of each tag.
    rows = cs.fuse("ar.json").to_frame().to_pylist()
    given = [each["suggestions"]["topics"] for each in json.loads((tmp_path / "ar2.json").read_text())]
    assert any(len(set(each["score"])) > 1 for each in given)
    for row, each in zip(rows, given, strict=True):
        np.testing.assert_allclose(each["score"], [row[f"p({tag})"] for tag in each["value"]])


def frame_columns(tags):
    table = tags.to_frame()
    return (table[name].to_pylist() for name in ("item", "worker", "labels"))


def test_sets_are_judged_by_known_ones(tmp_path):
    table = {"item": [1, 2, 3], "labels": [["a", "b"], [], ["b"]], "confidence": [0.9, 0.8, 0.7]}
    chances = {"p(a)": [0.9, 0.1, 0.2], "p(b)": [1.0, 0.0, 0.6]}
    found = cs.evaluate({**table, **chances}, {1: ["a"], 2: [], 9: ["b"]})
    assert (found.n_items, found.n_unanswered, found.exact) == (2, 1, 0.5)
    assert found.micro == (0.5, 1.0, pytest.approx(2 / 3), 1)
    assert found.table["b"].support == 0
    # bins of 0.9 to 1 (0.9 right, 1.0 wrong) and of 0.0 to 0.2 (0.1 and 0.0, both no)
    assert found.calibration_error == pytest.approx((0.9 + 0.1 + 0.0) / 4)
    assert found.mean_confidence == pytest.approx(0.85)
    (tmp_path / "labels.csv").write_text("item,labels\n1,a|b\n2,\n")
    (tmp_path / "gold.csv").write_text("item,tags\n1,b | a\n2,\n")
    shown = run("evaluate", tmp_path / "labels.csv", tmp_path / "gold.csv", "--separator", "|")
    assert "Sets that are right  1.000" in shown.output
    with pytest.raises(InputError, match="No item with a known set"):
        cs.evaluate(table, {7: ["a"]})


def test_sets_of_positions_are_refused():
    table = {"sequence": [1, 1], "position": [0, 1], "worker": [1, 1], "label": [["a"], ["b"]]}
    with pytest.raises(InputError, match=r"sets of tags of positions in sequences, which are not fused.*item="):
        cs.fuse(pa.table(table))


def test_evaluate_says_how_good_sets_are_that_were_not_known():
    rows = [(f"i{n}", who, "x" if (n + k) % 3 else "x;y") for n in range(30) for k, who in enumerate("abc")]
    table = dict(zip(("item", "worker", "labels"), map(list, zip(*rows, strict=True)), strict=True))
    truth = {"item": [f"i{n}" for n in range(30)], "labels": ["y" if n % 2 else "x" for n in range(30)]}
    some = {name: values[:10] for name, values in truth.items()}
    with quietly():
        fused = cs.fuse(table, separator=";", gold=some)
    said = cs.evaluate(fused, truth, separator=";")
    assert (said.n_items, said.n_unknown) == (30, 20)
    assert said.exact * 30 == pytest.approx(10 + said.exact_unknown * 20)
