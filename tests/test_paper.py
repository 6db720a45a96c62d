"""The paper's experiments: their parts, what they leave behind, and whether the results are those of the docs."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import consilience as cs
from consilience.cli.main import program
from consilience.errors import MissingDependencyError, ParameterError
from consilience.paper import EXPERIMENTS, find
from consilience.paper import cache as caching
from consilience.paper.cache import Cache, bare_code, key_of
from consilience.paper.experiment import FINDINGS, Experiment, Job
from consilience.paper.output import find_differences, read_table, write, write_table
from consilience.paper.running import run
from consilience.paper.scoring import find_best_worker, score_inside, score_parts_of_spans, score_per_sequence
from consilience.paper.table_2 import join_pixels
from real_data import FOLDER, needs_data

PAGE = Path(__file__).parents[1] / "docs" / "reproduction.md"
EXPECTED = PAGE.with_suffix("")


# Scores


def score_slowly(truth, found, lengths, n_classes):
    """The paper's F: one sequence and class at a time."""
    scores, begin = [], 0
    for length in lengths:
        t, f = truth[begin : begin + length], found[begin : begin + length]
        begin += length
        for k in range(n_classes):
            right = sum(a == b == k for a, b in zip(t, f, strict=True))
            precision = right / list(f).count(k) if k in f else 0.0
            recall = right / list(t).count(k) if k in t else 0.0
            both = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
            scores.append((precision, recall, both))
    return np.mean(scores, axis=0)


@pytest.mark.parametrize("seed", range(5))
def test_scores_per_sequence(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, 7)
    truth, found = rng.integers(0, 4, (2, lengths.sum()))
    assert np.allclose(score_per_sequence(truth, found, lengths, 4), score_slowly(truth, found, lengths, 4), atol=1e-12)


def test_scores_of_words_and_parts_of_spans():
    truth = np.array(["B", "I", "O", "O", "B", "I"])
    found = np.array(["B", "I", "I", "O", "O", "B"])
    assert score_inside(truth, found) == pytest.approx((3 / 4, 3 / 4, 3 / 4))
    # One predicted span is two thirds right, the other all; both true spans are found, the second by half.
    assert score_parts_of_spans(truth, found, np.array([4, 2])) == pytest.approx((5 / 6, 3 / 4, 15 / 19))
    assert score_inside(np.array(["O"]), np.array(["O"])) == (0, 0, 0)


def test_best_worker():
    r = cs.Responses.from_matrix([[0, 0, 1], [1, 0, 1], [1, -1, 0], [0, -1, 0]])
    truth = np.array([0, 1, 1, -1])
    own = find_best_worker(r, truth)
    assert set(r.worker[own].tolist()) == {0}
    assert r.item_of_answer()[own].tolist() == [0, 1, 2]  # the last has no truth


def test_best_worker_has_answered_enough():
    answers = np.full((100, 2), -1)
    answers[:, 0] = np.arange(100) % 2
    answers[:4, 1] = [1, 0, 1, 0]
    truth = 1 - np.arange(100) % 2
    assert find_best_worker(cs.Responses.from_matrix(answers), truth).sum() == 100  # wrong, but the other answered four
    answers[4, 1] = 1
    assert find_best_worker(cs.Responses.from_matrix(answers), truth).sum() == 5


def test_pixels_join_the_eight_around_them():
    rng = np.random.default_rng(0)
    place = np.array([(i, y, x) for i in range(3) for y in range(4) for x in range(5 - i) if rng.random() < 0.8])
    order = rng.permutation(len(place))
    image, row, column = place[order].T
    graph = join_pixels(np.arange(len(place)), image, row, column)
    near = {
        (a, b)
        for a in range(len(place))
        for b in range(len(place))
        if a != b and image[a] == image[b] and max(abs(row[a] - row[b]), abs(column[a] - column[b])) == 1
    }
    source = np.repeat(np.arange(graph.n_items), graph.degrees)
    assert set(zip(source.tolist(), graph.neighbours.tolist(), strict=True)) == near


# Taggers and classifiers


def write_corpora(folder):
    """A corpus of a hundred sentences with an easy grammar, and one of three to be tagged."""
    sentence = "The/at {}/nn {}/vbd ./.\n"
    text = "".join(sentence.format(noun, verb) for noun in ("dog", "cat") for verb in ("ran", "sat") for _ in range(25))
    tree = "( (S (NP (DT The) (NN {}))\n  (VP (VBD {})) (. .)) )\n"
    with zipfile.ZipFile(folder / "brown.zip", "w") as archive:
        archive.writestr("brown/ca01", text)
        archive.writestr("brown/README", "not a corpus")
    with zipfile.ZipFile(folder / "treebank.zip", "w") as archive:
        archive.writestr("treebank/combined/wsj_0002.mrg", tree.format("mouse", "ran"))
        archive.writestr("treebank/combined/wsj_0001.mrg", tree.format("dog", "sat") + tree.format("cat", "ran"))
    with zipfile.ZipFile(folder / "universal_tagset.zip", "w") as archive:
        archive.writestr("universal_tagset/en-brown.map", "AT\tDET\nNN\tNOUN\nVBD\tVERB\n.\t.\n")
        archive.writestr("universal_tagset/en-ptb.map", "DT\tDET\nNN\tNOUN\nVBD\tVERB\n.\t.\n")


def test_taggers_learn(tmp_path):
    from consilience.paper.taggers import CREW, read_treebank, tag_treebank

    write_corpora(tmp_path)
    words = [[word for word, _ in sentence] for sentence in read_treebank(tmp_path)]
    assert words == [["The", "dog", "sat", "."], ["The", "cat", "ran", "."], ["The", "mouse", "ran", "."]]
    answers, truth = tag_treebank(tmp_path, seed=1)
    assert truth == [["DET", "NOUN", "VERB", "."]] * 3
    assert len(answers) == 10
    flat = [tag for sentence in truth for tag in sentence]
    share = {name: np.mean(np.array(tags) == flat) for name, tags in zip(CREW, answers, strict=True)}
    assert all(len(tags) == 12 for tags in answers)
    # Three-letter words have no affix: it can only guess.
    assert share.pop("affixes") == 0.25
    assert set(share.values()) == {1}
    assert tag_treebank(tmp_path, seed=1)[0] == answers


def test_classifiers_learn():
    from consilience.paper.classifiers import ask_classifiers

    rng = np.random.default_rng(3)
    truth = np.array(["a", "b"])[rng.integers(0, 2, 300)]
    features = np.abs(rng.normal(0, 0.3, (300, 4))) + (truth == "b")[:, None] * np.array([1, 1, 0, 0])
    items = np.arange(300) + 7
    r = ask_classifiers(features, truth, items, 40, seed=0)
    assert r.items.tolist() == items.tolist()
    assert (r.n_items, r.n_workers, r.n_responses) == (300, 10, 3000)
    assert cs.metrics.accuracy(truth, cs.MajorityVote().fit(r).labels_) > 0.95
    assert np.array_equal(r.label, ask_classifiers(features, truth, items, 40, seed=0).label)


# Jobs, their cache, and what they leave

CALLS = []


def work(size, factor=1.0):
    CALLS.append(size)
    return [{"size": size, "method": name, "f": size * factor / 10, "more": None} for name in ("one", "two")]


def tiny(**options):
    from matplotlib.figure import Figure

    settings = {
        "name": "tiny",
        "title": "Tiny",
        "keys": ("size", "method"),
        "scores": ("f", "more"),
        "jobs": [Job(work, {"size": size}, quick=size == 1) for size in (1, 2, 3)],
        "draw": lambda records: Figure(),
        "tell": lambda records: f"{len(records)} records",
        "tolerance": 0.01,
    }
    return Experiment(**{**settings, **options})


def test_results_are_remembered(tmp_path):
    CALLS.clear()
    first = run(tiny().jobs, Cache(tmp_path))
    again = run(tiny().jobs, Cache(tmp_path))
    assert CALLS == [1, 2, 3]
    assert again.records == first.records
    assert (first.n_known, again.n_known) == (0, 3)
    # A damaged file is as good as none.
    for path in tmp_path.iterdir():
        path.write_text(path.read_text()[:-9])
    assert run(tiny().jobs, Cache(tmp_path)).n_known == 0
    # Where nothing can be written it is run all the same.
    (tmp_path / "file").write_text("")
    assert run(tiny().jobs, Cache(tmp_path / "file" / "below")).records == first.records
    # Without a folder, only for a while.
    memory = Cache(None)
    assert [run(tiny().jobs, memory).n_known for _ in range(2)] == [0, 3]


def test_what_results_depend_on(tmp_path, monkeypatch):
    folder = tmp_path / "bluebird"
    folder.mkdir()
    (folder / "gold.parquet").write_bytes(b"gold")
    (folder / "responses.parquet").write_bytes(b"answers")
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path))
    caching.digest_of_data.cache_clear()
    job = Job(work, {"size": 1}, data=("bluebird",))
    keys = {key_of(job), key_of(Job(work, {"size": 2}, data=("bluebird",))), key_of(Job(work, {"size": 1}))}
    assert len(keys) == 3
    assert key_of(Job(work, {"size": 1}, data=("bluebird",), quick=True)) == key_of(job)
    (folder / "gold.parquet").write_bytes(b"silver")
    caching.digest_of_data.cache_clear()
    assert key_of(job) not in keys
    caching.digest_of_data.cache_clear()


def test_code_counts_and_its_looks_do_not():
    code = 'def draw_it(x):\n    "Docs."\n    return x + 1  # one\n'
    assert bare_code(code) == bare_code("def draw_it(x):\n    return x + 1\n")
    assert bare_code(code) != bare_code(code.replace("1", "2"))
    assert bare_code(code, without_shows=True) == bare_code(code.replace("1", "2"), without_shows=True)


def test_samplers_of_the_simulator_count(monkeypatch):
    """They draw too, but answers and not pictures."""
    package = Path(cs.__file__).parent
    caching.digest_of_library.cache_clear()
    caching.digest_of_module.cache_clear()
    before, read = caching.digest_of_library(package), Path.read_text

    def altered(path, *arguments):
        text = read(path, *arguments)
        return text.replace("rng.random(", "rng.normal(") if path.name == "answers.py" else text

    assert "rng.random(" in read(package / "simulate" / "answers.py")
    monkeypatch.setattr(Path, "read_text", altered)
    caching.digest_of_library.cache_clear()
    caching.digest_of_module.cache_clear()
    assert caching.digest_of_library(package) != before
    caching.digest_of_library.cache_clear()
    caching.digest_of_module.cache_clear()


def test_quick_is_a_part(tmp_path):
    CALLS.clear()
    steps = []
    quick = run(tiny().choose(quick=True), Cache(None), steps.append)
    assert CALLS == [1]
    assert [(step.done, step.total, str(step.job)) for step in steps] == [(0, 1, "size 1"), (1, 1, "None")]
    full = run(tiny().choose(quick=False), Cache(None))
    write(tiny(), full.records, tmp_path)
    assert find_differences(tiny(), quick.records, tmp_path, whole=False) == []
    assert find_differences(tiny(), quick.records, tmp_path, whole=True)[0] == "tiny: 2, one: missing"
    with pytest.raises(cs.errors.InputError, match="has 4 records that this part"):
        write(tiny(), quick.records, tmp_path, whole=False)
    assert find_differences(tiny(), full.records, tmp_path, whole=True) == []


def test_files(tmp_path):
    paths = write(tiny(), work(3), tmp_path / "new")
    assert [path.name for path in paths] == ["tiny.csv", "tiny.png", "tiny.md"]
    assert paths[0].read_text() == "size,method,f,more\n3,one,0.30000,\n3,two,0.30000,\n"
    assert paths[2].read_text() == "![Tiny](tiny.png)\n\n2 records\n"
    assert paths[1].read_bytes().startswith(b"\x89PNG")


def test_differences_are_found(tmp_path):
    write_table(tiny(), work(3), tmp_path / "tiny.csv")
    assert find_differences(tiny(), work(3, factor=1.02), tmp_path, whole=True) == []
    off = find_differences(tiny(), work(3, factor=1.1), tmp_path, whole=True)
    assert off == [f"tiny: 3, {name}: f is 0.3300, expected 0.3000 +- 0.01" for name in ("one", "two")]
    assert find_differences(tiny(), work(4), tmp_path, whole=False)[0] == "tiny: 4, one: not expected"
    more = [{**work(3)[0], "more": 1.0}]
    assert find_differences(tiny(), more, tmp_path, whole=False) == ["tiny: 3, one: more is 1.00000, expected none"]
    with pytest.raises(cs.errors.InputError, match="no expected results"):
        find_differences(tiny(), work(3), tmp_path / "nowhere", whole=True)
    (tmp_path / "tiny.csv").write_text("a,b\n1,2\n")
    with pytest.raises(cs.errors.InputError, match="no table of tiny"):
        find_differences(tiny(), work(3), tmp_path, whole=True)


# The command


def call(*arguments):
    return CliRunner().invoke(program, ["reproduce", *map(str, arguments)])


def test_unknown_experiment(tmp_path):
    result = call("table-3", "-o", tmp_path)
    assert result.exit_code == 2
    assert "no experiment 'table-3'" in result.output
    with pytest.raises(ParameterError, match="Choose from sequence-items"):
        find("table-3")


def test_missing_package(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "nltk", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'consilience\[paper\]'"):
        find("table-1")


def test_missing_data(tmp_path, monkeypatch):
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path))
    result = call("other-sets", "--quick", "--no-cache", "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "CONSILIENCE_DATA" in result.output
    assert not (tmp_path / "out").exists()


def test_help_names_all():
    listed = re.findall(r"^  ([a-z]+-?[a-z0-9]*)  ", call("--help").output, re.MULTILINE)
    assert [name for name in listed if name in EXPERIMENTS] == list(EXPERIMENTS)


@pytest.mark.slow
def test_quick_run_is_as_expected(tmp_path):
    """Every quick job gives what the tables of the docs say. Without data the simulated figures are still compared."""
    result = call("--quick", "--no-cache", "--json", "-o", tmp_path, "--expect", EXPECTED)
    assert result.exit_code == 0, result.output
    told = {entry["name"]: entry for entry in json.loads(result.output)["experiments"]}
    assert list(told) == list(EXPERIMENTS)
    left_out = [name for name, entry in told.items() if entry["missing"]]
    if not FOLDER.is_dir():
        assert left_out == ["table-1", "table-2", "overview", "chain-strength", "other-sets"]
        pytest.skip(f"compared simulated figures only, no real data: set $CONSILIENCE_DATA (looked in {FOLDER})")
    assert not left_out
    for name in EXPERIMENTS:
        assert {path.suffix for path in tmp_path.glob(f"{name}.*")} == {".csv", ".png", ".md"}


@needs_data
def test_some_data_missing(tmp_path, monkeypatch):
    (tmp_path / "rte").symlink_to(FOLDER / "rte")
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path))
    monkeypatch.setattr("consilience.cli.reproduce.EXPERIMENTS", {"other-sets": "other_sets"})
    result = call("--quick", "--no-cache", "-o", tmp_path / "out", "--expect", EXPECTED)
    assert result.exit_code == 0, result.output
    assert "1 job: " in result.output
    assert "; as expected; no data: " in result.output
    assert "no data: bluebird, dog" in result.output
    assert len((tmp_path / "out" / "other-sets.csv").read_text().splitlines()) == 4
    assert "*A part of the experiment" in (tmp_path / "out" / "other-sets.md").read_text()
    result = call("other-sets", "--quick", "--no-cache", "-o", tmp_path / "new")
    assert result.exit_code == 2
    assert "not there: 'bluebird', 'dog'" in result.output
    assert not (tmp_path / "new").exists()


def test_folders_are_checked_first(tmp_path):
    (tmp_path / "file").write_text("")
    result = call("network-sparse", "-o", tmp_path / "file")
    assert result.exit_code == 2
    assert "is a file, and a folder is needed" in result.output
    result = call("network-sparse", "-o", tmp_path, "--expect", tmp_path / "nowhere")
    assert result.exit_code == 2
    assert "There is no folder" in result.output


def test_findings_are_told_of_whole_runs_only(tmp_path):
    experiment = tiny(tell=lambda records: f"A table.\n\n{FINDINGS}\n\nIt holds.")
    write(experiment, work(3), tmp_path)
    assert (tmp_path / "tiny.md").read_text() == "![Tiny](tiny.png)\n\nA table.\n\nIt holds.\n"
    write(experiment, work(3), tmp_path, whole=False)
    page = (tmp_path / "tiny.md").read_text()
    assert "It holds" not in page
    assert "A part of the experiment" in page


# The results that the docs show, against what the paper found


def results(name):
    """Return the mean of each score over runs, by the other keys."""
    experiment = find(name)
    keys = [key for key in experiment.keys if key != "run"]
    found = defaultdict(list)
    with (EXPECTED / f"{name}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            for score in experiment.scores:
                if row[score]:
                    found[(*(row[key] for key in keys), score)].append(float(row[score]))
    return {key: float(np.mean(values)) for key, values in found.items()}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_docs_are_complete(name):
    experiment = find(name)
    rows = read_table(experiment, EXPECTED / f"{name}.csv")
    with (EXPECTED / f"{name}.csv").open(newline="") as file:
        assert len(rows) == sum(1 for _ in csv.DictReader(file)), "keys are not unique"
    assert f"{{include}} reproduction/{name}.md" in PAGE.read_text()
    page = (EXPECTED / f"{name}.md").read_text()
    assert page.startswith(f"![{experiment.title}]({name}.png)")
    assert (EXPECTED / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "None" not in page
    assert "nan" not in page


def test_all_rows_are_told():
    page = (EXPECTED / "overview.md").read_text()
    rows = re.findall(r"^\| \*\*(.+?)\*\*", page, re.MULTILINE)
    assert rows == [
        "POS",
        "NER",
        "Biomedical IE",
        "Cora",
        "CiteSeer",
        "Pubmed",
        "Music genre",
        "Sentence polarity",
        "BU-BIL MRI",
    ]


def test_sequences_as_in_the_paper():
    f = results("sequence-items")
    sizes = sorted({int(key[0]) for key in f})
    for method in ("MM", "Alg. 2 + Alg. 1", "MV + Alg. 1", "consilience"):
        errors = [f[str(size), "10", method, "confusion_error"] for size in sizes]
        assert errors == sorted(errors, reverse=True)
    errors = [f[str(size), "10", "Alg. 2 + Alg. 1", "transition_error"] for size in sizes]
    assert errors == sorted(errors, reverse=True)
    gaps = [f[str(n), "10", "oracle", "f"] - f[str(n), "10", "Alg. 2 + Alg. 1", "f"] for n in sizes]
    assert gaps[-1] < 0.001 < gaps[0]
    by_workers = results("sequence-workers")
    for method in ("MV", "MM", "Alg. 2 + Alg. 1", "MV + Alg. 1", "consilience"):
        scores = [by_workers["1000", str(m), method, "f"] for m in (3, 5, 10, 15, 20, 30)]
        assert scores == sorted(scores)
    assert (
        by_workers["1000", "30", "Alg. 2 + Alg. 1", "transition_error"]
        < 0.5 * (by_workers["1000", "3", "Alg. 2 + Alg. 1", "transition_error"])
    )


def test_networks_as_in_the_paper():
    sparse, dense = results("network-sparse"), results("network-dense")
    gain = {}
    for degree, f in (("0.5", sparse), ("5.0", dense)):
        sizes = sorted({int(key[0]) for key in f})
        errors = [f[str(size), degree, "Alg. 4", "confusion_error"] for size in sizes]
        assert errors == sorted(errors, reverse=True)
        last = {method: f[str(sizes[-1]), degree, method, "f"] for method in ("MM", "Alg. 4", "consilience", "oracle")}
        gain[degree] = last["Alg. 4"] - last["MM"]
        assert last["MM"] < last["Alg. 4"] < last["consilience"]
        assert last["consilience"] == pytest.approx(last["oracle"], abs=0.001)
    assert gain["5.0"] > 4 * gain["0.5"] > 0


def test_tables_as_in_the_paper():
    one, two = results("table-1"), results("table-2")
    spans = ("spans", "f")
    for method, printed in (("DS", 0.71), ("MV + DS", 0.71), ("MV + Alg. 1", 0.70)):
        assert one["NER", "stored", method, *spans] == pytest.approx(printed, abs=0.02)
    assert one["Biomedical IE", "312 workers", "MV, ties to O", "parts of spans", "f"] == pytest.approx(0.6, abs=0.005)
    assert two["Music genre", "3 nearest", "MV, ties to the first", "f"] == pytest.approx(0.705, abs=0.005)
    assert two["Music genre", "none", "MV", "f"] == pytest.approx(0.705, abs=0.005)
    assert two["Sentence polarity", "1 nearest", "MV, ties to the first", "f"] == pytest.approx(0.890, abs=0.0005)
    assert two["Sentence polarity", "none", "MV", "f"] == pytest.approx(0.886, abs=0.0005)
    assert two["Music genre", "3 nearest", "MV + Alg. 3", "f"] == pytest.approx(0.80, abs=0.02)
    assert two["Sentence polarity", "1 nearest", "Alg. 4", "f"] == pytest.approx(0.914, abs=0.005)


def test_our_defaults_reach_what_was_printed():
    from consilience.paper.overview import sum_up

    with (EXPECTED / "table-2.csv").open(newline="") as file:
        records = [
            {**row, "f": float(row["f"]), "held_out": float(row["held_out"] or "nan")} for row in csv.DictReader(file)
        ]
    for record in records:
        if np.isnan(record["held_out"]):
            record["held_out"] = None
    with (EXPECTED / "table-1.csv").open(newline="") as file:
        records += [{**row, "f": float(row["f"])} for row in csv.DictReader(file)]
    lines = sum_up(records)
    assert len(lines) == 9
    for line in lines:
        assert line.ours >= line.printed, line.row.data


def test_what_the_page_says_in_words():
    """Claims of docs/reproduction.md and of the overview that carry no number of their own."""
    one, two, other = results("table-1"), results("table-2"), results("other-sets")
    printed = {"NER": "spans", "Biomedical IE": "parts of spans", "POS": "per sentence"}
    for data, answers in (("POS", "stored"), ("NER", "stored"), ("Biomedical IE", "120 workers")):
        f = {method: one[data, answers, method, printed[data], "f"] for method in ("MV + DS", "Alg. 2 + Alg. 1")}
        assert f["MV + DS"] > f["Alg. 2 + Alg. 1"]
    f = [one["POS", "stored", m, "per sentence", "f"] for m in ("Alg. 2 + Alg. 1", "Alg. 2", "MV + Alg. 1", "MV")]
    assert f == sorted(f, reverse=True)
    polarity = [two["Sentence polarity", "1 nearest", m, "f"] for m in ("DS", "Alg. 4", "MV + Alg. 3", "consilience")]
    assert max(polarity) - min(polarity) < 0.005
    pixels = {m: two["BU-BIL MRI", "8 pixels", m, "f"] for m in ("MV", "DS", "Alg. 4", "MV + Alg. 3", "consilience")}
    assert max(pixels, key=lambda method: pixels[method]) == "MV"
    gaps = {
        data: other[data, "MV + DS", "score"] - other[data, "consilience", "score"]
        for data in ("bluebird", "rte", "dog", "product", "llm_judges", "web")
    }
    assert 0.05 < gaps.pop("web") < 0.06
    assert max(gaps.values()) < 0.005
    assert (
        other["bc5cdr", "MV", "score"] > other["bc5cdr", "consilience", "score"] > other["bc5cdr", "MV + DS", "score"]
    )


def test_the_chain_is_believed_only_as_far_as_it_helps():
    f = results("chain-strength")
    for data in ("pos", "ner", "ner_aligned", "pico", "sleep"):
        assert f[data, "1", "f"] < f[data, "DawidSkene()", "f"]
        assert f[data, "learned", "f"] >= f[data, "DawidSkene()", "f"] - 0.002
