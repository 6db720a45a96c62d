"""The probability that a worker answers by chance: its counts, its figures, and whom it names."""

import math
import re
from math import lgamma
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import consilience as cs
from command_line import run
from consilience.inference.workers import WORKERS
from real_data import FOLDER, gold_of, needs_data


def make_clickers(seed: int, n_items: int = 400, n_workers: int = 60) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return who clicks at random with favourites, and the answers of a crowd of very different diligence."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=n_items)
    eager = 1 / np.arange(1, n_workers + 1) ** 0.7
    eager = rng.permutation(eager / eager.sum())
    accuracy, clicks = rng.uniform(0.55, 0.95, n_workers), rng.random(n_workers) < 0.2
    item = np.repeat(np.arange(n_items), 4)
    worker = np.concatenate([rng.choice(n_workers, 4, replace=False, p=eager) for _ in range(n_items)])
    favourite = rng.dirichlet(np.full(4, 2.0), n_workers)
    wrong = (truth[item] + rng.integers(1, 4, len(item))) % 4
    careful = np.where(rng.random(len(item)) < accuracy[worker], truth[item], wrong)
    clicked = np.array([rng.choice(4, p=favourite[m]) for m in worker])
    label = np.where(clicks[worker], clicked, careful)
    return clicks, {"item": item, "worker": worker, "label": label}


def count_slowly(model, r, judged):
    """Return the counts (M, L, K) answer by answer: q_k divided by what the worker's own answer was multiplied by."""
    estimates, q = model.result_.estimates, model.result_.labels.fitted
    counts = np.zeros((r.n_workers, r.n_labels, r.n_classes))
    workers = WORKERS[estimates.worker_model_name].of(r, r.class_of_label, r.n_classes)
    rows, table = workers.encode(r), np.exp(estimates.log_weights).reshape(-1, r.n_classes)
    for answer, item in enumerate(r.item_of_answer()):
        if judged[item]:
            p = q[item] / table[rows[answer]]
            counts[r.worker[answer], r.label[answer]] += p / p.sum()
    return counts


def evidence(counts, pseudo_counts):
    """Return log D(c; a), written out."""
    total = lgamma(sum(pseudo_counts)) - lgamma(sum(pseudo_counts) + sum(counts))
    return total + sum(lgamma(a + c) - lgamma(a) for a, c in zip(pseudo_counts, counts, strict=True))


def judge_slowly(counts):
    """Return P(chance) of each worker by counts (M, L, K) of as many labels as classes, written out."""
    n_workers, size, _ = counts.shape
    crowd = (counts.sum(axis=0) + 1e-9).T
    crowd /= crowd.sum(axis=1, keepdims=True)
    right = np.full((size, size), 0.25 / (size - 1))
    np.fill_diagonal(right, 0.75)
    by_chance, by_skill = [], []
    for c in counts:
        by_chance.append(np.mean([np.exp(evidence(c.sum(axis=1), [a] * size)) for a in (0.5, 1, 3, 10)]))
        patterns = [t * crowd + 0.1 for t in (2, 6, 20)] + [t * right + 0.1 for t in (2, 6)]
        rows = [[evidence(c[:, k], pattern[k]) for k in range(size)] for pattern in patterns]
        by_skill.append(np.mean(np.exp(np.sum(rows, axis=1))))
    e, s, h = np.array(by_chance), np.array(by_skill), 0.1
    for _ in range(10):
        p = h * e / (h * e + (1 - h) * s)
        h = (p.sum() + 0.5) / (n_workers + 5)
    return p


def as_columns(model):
    """Return the worker report as a dict of lists."""
    return model.worker_report().to_pydict()


def test_the_column_is_what_the_formulas_say():
    _, table = make_clickers(3, n_items=60, n_workers=12)
    model = cs.DawidSkene().fit(cs.Answers.from_frame(table))
    counts = count_slowly(model, model.result_.answers, np.ones(60, bool))
    assert model.result_.chance == pytest.approx(judge_slowly(counts), rel=1e-6)


def test_of_one_coin_workers_right_answers_count():
    clicks, table = make_clickers(3, n_items=300, n_workers=12)
    model = cs.DawidSkene(workers="one-coin").fit(cs.Answers.from_frame(table))
    r, q, accuracy = model.result_.answers, model.result_.labels.fitted, np.exp(model.result_.estimates.log_weights)
    n, hits, by_chance = np.zeros((3, r.n_workers))
    for m, label, item in zip(r.worker, r.label, r.item_of_answer(), strict=True):
        factors = np.full(4, accuracy[m, 1, 0])
        factors[label] = accuracy[m, 0, 0]
        p = q[item] / factors
        n[m], hits[m] = n[m] + 1, hits[m] + p[label] / p.sum()
        by_chance[m] += q[:, label].mean()
    share, crowd = (by_chance + 0.5) / (n + 1), hits.sum() / n.sum()
    patterns = [(t, crowd) for t in (2, 6, 20)] + [(t, 0.75) for t in (2, 6)]
    e, s, h = [], [], 0.1
    for m in range(r.n_workers):
        e.append(np.exp(hits[m] * np.log(share[m]) + (n[m] - hits[m]) * np.log(1 - share[m])))
        several = [(t * a + 0.1, t * (1 - a) + 0.1) for t, a in patterns]
        s.append(np.mean([np.exp(evidence([hits[m], n[m] - hits[m]], each)) for each in several]))
    for _ in range(10):
        p = h * np.array(e) / (h * np.array(e) + (1 - h) * np.array(s))
        h = (p.sum() + 0.5) / (r.n_workers + 5)
    assert model.result_.chance == pytest.approx(p, rel=1e-6)
    assert (model.result_.chance[clicks] > 0.5).all()


@pytest.mark.parametrize("workers", ["confusion", "sequential"])
def test_chains_divide_the_marginal_by_the_factor_of_the_answer(workers):
    crowd = cs.simulate.sequences(4, n_workers=4, n_classes=3, seed=2)
    model = cs.HiddenMarkov(workers=workers).fit(crowd.responses)
    counts = count_slowly(model, model.result_.answers, np.ones(model.result_.answers.n_items, bool))
    assert model.result_.chance == pytest.approx(judge_slowly(counts), rel=1e-6)


def test_only_answers_that_something_else_judges_count():
    _, table = make_clickers(5, n_items=60, n_workers=12)
    alone = {"item": np.arange(100, 140), "worker": np.full(40, 99), "label": np.arange(40) % 4}
    joined = {name: np.concatenate([table[name], alone[name]]) for name in table}
    model = cs.DawidSkene().fit(cs.Answers.from_frame(joined))
    r = model.result_.answers
    found = model.result_.chance
    assert as_columns(model)["chance"][-1] is None
    judged = np.diff(r.offsets) > 1
    assert found[:-1] == pytest.approx(judge_slowly(count_slowly(model, r, judged)[:-1]), rel=1e-6)


def test_clickers_are_found_and_others_left_alone():
    n_found, n_clickers, n_accused, n_others = 0, 0, 0, 0
    for seed in range(15):
        clicks, table = make_clickers(seed)
        fused = cs.fuse(table)
        report = as_columns(fused)
        is_clicker = clicks[np.array(report["worker"], int)]
        enough, named = np.array(report["answers"]) >= 10, fused.result_.chance >= 0.9
        assert report["chance"] == fused.result_.chance.round(3).tolist()
        n_found += np.sum(named & is_clicker & enough)
        n_clickers += np.sum(is_clicker & enough)
        n_accused += np.sum(named & ~is_clicker & enough)
        n_others += np.sum(~is_clicker & enough)
        remarked = ["answers as if by chance" in remark for remark in report["remarks"]]
        assert remarked == (named & enough).tolist()
    assert 150 < n_clickers < 190
    assert 600 < n_others < 720
    assert n_found >= 90
    assert n_accused <= 5


@pytest.mark.parametrize("seed", range(4))
def test_where_all_is_noise_nobody_is_accused_one_by_one(seed):
    rng = np.random.default_rng(seed)
    answers = cs.Answers.from_matrix(rng.integers(4, size=(150, 8)))
    with pytest.warns(cs.errors.ConsilienceWarning, match="agree no more than by chance"):
        fused = cs.fuse(answers)
    assert not any("by chance" in remark for remark in as_columns(fused)["remarks"])
    assert not any("by chance" in remark for remark in as_columns(cs.DawidSkene().fit(answers))["remarks"])


def test_the_column_outlives_saving_and_updates_and_is_empty_for_votes_and_streams(tmp_path):
    _, table = make_clickers(4, n_items=100, n_workers=15)
    answers = cs.Answers.from_frame(table)
    fused = cs.fuse(answers)
    fused.save(tmp_path / "model", answers=False)
    assert as_columns(cs.load(tmp_path / "model")) == as_columns(fused)
    more = {name: values[:40] for name, values in make_clickers(6, n_workers=15)[1].items()}
    updated = cs.fuse(table).update({**more, "item": more["item"] + 1000})
    assert all(0 <= chance <= 1 for chance in as_columns(updated)["chance"])
    assert set(as_columns(cs.MajorityVote().fit(answers))["chance"]) == {None}
    stream = cs.DawidSkene().partial_fit(answers)
    assert set(as_columns(stream)["chance"]) == {None}
    assert set(as_columns(stream.partial_fit(answers))["chance"]) == {None}


@pytest.fixture(scope="module")
def clicked():
    clicks, table = make_clickers(3)
    names = np.array([f"w{m}" for m in range(60)])
    return {names[m] for m in np.flatnonzero(clicks)}, table | {"worker": names[table["worker"]]}


def find(fused, kind):
    return [finding for finding in fused.findings_ if finding.kind == kind]


def test_whom_to_look_at_first(clicked, tmp_path):
    clickers, table = clicked
    fused = cs.fuse(table)
    (finding,) = find(fused, "chance")
    accused = [
        name
        for name, remark in zip(*(as_columns(fused)[each] for each in ("worker", "remarks")), strict=True)
        if "by chance" in remark
    ]
    assert len(accused) >= 8
    assert set(accused) <= clickers
    assert all(repr(name) in finding.problem for name in accused)
    n_answers = sum(name in accused for name in table["worker"])
    assert f"{len(accused)} workers answer as if by chance: " in finding.problem
    assert f"They gave {n_answers} of 1,600 answers." in finding.problem
    assert finding.problem.endswith("Without them 1 item loses all answers.")
    with pytest.warns(cs.errors.DataWarning, match="Only blocked workers have answered 1 item"):
        cs.fuse(table, block=accused)
    assert str(finding.remedies[0]) == "Look at their answers, and ask how they understood the task."
    assert str(finding.remedies[1]) == "Leave them out with block=[...]."
    assert not any(finding.remedies[0] in other.remedies for other in find(fused, "workers"))
    fused.save(tmp_path / "model")
    assert [each.problem for each in find(cs.load(tmp_path / "model"), "chance")] == [finding.problem]


def test_the_report_offers_the_list_and_the_command(clicked, tmp_path):
    _, table = clicked
    pq.write_table(pa.table(table), tmp_path / "answers.parquet")
    files = [tmp_path / "answers.parquet", "--workers-report", tmp_path / "workers.csv"]
    done = run("fuse", *files, "--report", tmp_path / "report.html", "--source-kind", "people")
    assert done.exit_code == 0
    rows = (tmp_path / "workers.csv").read_text().splitlines()
    accused = [row.split(",")[0] for row in rows if "answers as if by chance" in row]
    page = (tmp_path / "report.html").read_text()
    address = re.search(r'href="data:text/csv;charset=utf-8,([^"]*)" download="blocked.csv"', page)[1]
    names = unquote(address).split()
    assert names[0] == "worker"
    assert sorted(names[1:]) == sorted(accused)
    assert '<span class="word">--block</span> <span class="word">blocked.csv</span>' in page
    assert page.count("guessing explains the answers") == 1
    # The command is the one that was given, and runs.
    command = find_command(page)
    assert "--gold" not in command
    (tmp_path / "blocked.csv").write_text(unquote(address))
    command[command.index("blocked.csv")] = str(tmp_path / "blocked.csv")
    done = run(*command[1:])
    assert done.exit_code == 0


def find_command(page):
    """Return the command that leaves workers out, in words; None if the page has none."""
    found = re.search(r"fuse without those by chance:</p>\s*<pre><code>(.*?)</code></pre>", page)
    return found and re.sub(r"<[^>]*>", "", found[1]).split()


@needs_data
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["bluebird", "rte", "dog", "llm_judges"])
def test_to_block_those_named_does_not_hurt_real_crowds(name):
    answers, gold = pd.read_parquet(FOLDER / name / "responses.parquet"), gold_of(name)

    def judge(fused):
        labels = dict(zip(fused.result_.answers.items.tolist(), fused.labels_.tolist(), strict=True))
        answered = fused.result_.answers.items[np.diff(fused.result_.answers.offsets) > 0].tolist()
        return {item: labels[item] == gold[item] for item in answered if item in gold}

    fused = cs.fuse(answers)
    report = fused.worker_report()
    accused = report.worker[report.remarks.str.contains("by chance")].tolist()
    assert len(accused) <= 0.15 * len(report)
    if accused:
        before, after = judge(fused), judge(cs.fuse(answers, block=accused))
        lost = sum(before[item] for item in after) - sum(after.values())
        assert lost <= max(1, 0.003 * len(after))


@pytest.mark.filterwarnings("ignore")
def test_workers_whom_nothing_judges_have_no_figures():
    items = range(120)
    table = {
        "item": [*items],
        "worker": [f"w{i // 20}" for i in items],
        "label": ["abc"[i % 3] for i in items],
    }
    known = {i: "abc"[i % 3] for i in range(0, 20, 2)}  # items of the first worker only
    report = as_columns(cs.fuse(table, gold=known))
    for name in ("accuracy", "accuracy_low", "accuracy_high", "informativeness", "informativeness_high", "chance"):
        told = [value is not None and not math.isnan(value) for value in report[name]]
        assert told == [True] + [False] * 5
    assert set(report["worst_confusion"][1:]) == {""}
