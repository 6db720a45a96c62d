"""Jobs, their cache, and the files that a run leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

import consilience as cs
from paper import cache as caching
from paper import find
from paper.cache import Cache, bare_code, key_of
from paper.experiment import Experiment, Job
from paper.output import find_differences, read_table, write, write_table
from paper.running import run

CALLS = []


def work(size, factor=1.0):
    CALLS.append(size)
    return [{"size": size, "method": name, "f": size * factor / 10, "more": None} for name in ("one", "two")]


def tiny(**options):
    from matplotlib.figure import Figure

    settings = {
        "name": "tiny",
        "title": "Tiny",
        "keys": {"size": int, "method": str},
        "scores": ("f", "more"),
        "jobs": [Job(work, {"size": size}, quick=size == 1) for size in (1, 2, 3)],
        "draw": lambda records: Figure(),
        "tell": lambda records: f"{len(records)} records",
        "tell_findings": lambda records: "",
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


@pytest.mark.parametrize(
    ("file", "old", "new", "counts"),
    [
        ("src/consilience/simulate/crowds.py", "rng.random(", "rng.normal(", True),  # it draws too, but no pictures
        ("src/consilience/cli/simulate.py", "def run_demo(", "def run_show(", False),
        ("paper/sequence_curves.py", "LENGTH, CLASSES, RUNS = 40,", "LENGTH, CLASSES, RUNS = 50,", True),
        ("paper/scoring.py", "LEAST_SHARE = 0.05", "LEAST_SHARE = 0.1", True),
        ("paper/crowds.py", 'kind="stable"', 'kind="heapsort"', True),  # imported by what the job's module imports
        ("paper/drawing.py", "#22303c", "#000000", False),
        ("paper/table_1.py", "IE_WORKERS = (120, 312)", "IE_WORKERS = (120,)", False),
    ],
)
def test_which_code_counts(file, old, new, counts, monkeypatch):
    root, read, job = Path(__file__).parents[2], Path.read_text, find("sequence-items").jobs[0]
    assert old in read(root / file)

    def altered(path, *arguments):
        text = read(path, *arguments)
        return text.replace(old, new) if path == root / file else text

    def forget():
        caching.digest_of_module.cache_clear()
        if file.startswith("src"):  # all of which is read again, so not for other files
            caching.digest_of_library.cache_clear()

    before = key_of(job)
    monkeypatch.setattr(Path, "read_text", altered)
    forget()
    assert (key_of(job) != before) == counts
    forget()


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
    with pytest.raises(cs.errors.InputError, match="has 4 records that this part of the experiment would delete"):
        write(tiny(), quick.records, tmp_path, whole=False)
    assert find_differences(tiny(), full.records, tmp_path, whole=True) == []


def test_files(tmp_path):
    paths = write(tiny(), work(3), tmp_path / "new")
    assert [path.name for path in paths] == ["tiny.csv", "tiny.png", "tiny.md"]
    assert paths[0].read_text() == "size,method,f,more\n3,one,0.300000,\n3,two,0.300000,\n"
    assert paths[2].read_text() == "![Tiny](tiny.png)\n\n2 records\n"
    assert paths[1].read_bytes().startswith(b"\x89PNG")


def test_differences_are_found(tmp_path):
    write_table(tiny(), work(3), tmp_path / "tiny.csv")
    assert find_differences(tiny(), work(3, factor=1.02), tmp_path, whole=True) == []
    off = find_differences(tiny(), work(3, factor=1.1), tmp_path, whole=True)
    assert off == [f"tiny: 3, {name}: f is 0.3300, expected 0.3000 +- 0.01" for name in ("one", "two")]
    assert find_differences(tiny(), work(4), tmp_path, whole=False)[0] == "tiny: 4, one: not expected"
    more = [{**work(3)[0], "more": 1.0}]
    assert find_differences(tiny(), more, tmp_path, whole=False) == ["tiny: 3, one: more is 1.000000, expected none"]
    with pytest.raises(cs.errors.InputError, match=r"There is no table .*ARGS=tiny"):
        find_differences(tiny(), work(3), tmp_path / "nowhere", whole=True)
    (tmp_path / "tiny.csv").write_text("a,b\n1,2\n")
    with pytest.raises(cs.errors.InputError, match="is not a table of tiny"):
        find_differences(tiny(), work(3), tmp_path, whole=True)


def test_findings_are_told_of_whole_runs_only(tmp_path):
    def tell_findings(records):
        assert len(records) == 2
        return "It holds."

    experiment = tiny(tell=lambda records: "A table.", tell_findings=tell_findings)
    write(experiment, work(3), tmp_path)
    assert (tmp_path / "tiny.md").read_text() == "![Tiny](tiny.png)\n\nA table.\n\nIt holds.\n"
    write(experiment, [*work(3), *work(4)], tmp_path, whole=False)
    page = (tmp_path / "tiny.md").read_text()
    assert "It holds" not in page
    assert "A part of the experiment" in page


def test_the_page_tells_what_the_table_says(tmp_path):
    """Numbers are rounded once, in the table, and the page can be made again from it."""
    experiment = tiny(tell=lambda records: f"{records[0]['f']!r}, {records[0]['size']!r}, {records[0]['more']!r}")
    write(experiment, [{"size": 3, "method": "one", "f": 1 / 3, "more": None}], tmp_path)
    assert "0.333333, 3, None" in (tmp_path / "tiny.md").read_text()
    assert read_table(experiment, tmp_path / "tiny.csv") == [{"size": 3, "method": "one", "f": 0.333333, "more": None}]
