"""The pages of the documentation: commands run, links lead somewhere, tables are those of a run and bear out the text.

Examples in Python are run as doctests. What the pages quote of the reproduction is checked by paper/tests.
"""

from __future__ import annotations

import doctest
import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import consilience as cs
from benchmarks import advice, gold, labelling_functions, league, real_crowds, review, soft_votes
from command_line import run
from docs import style
from effort import rest_robust
from examples.make import judge
from real_data import needs_data

ROOT = Path(__file__).parents[1]
DOCS, MEASURED = ROOT / "docs", ROOT / "docs" / "measured"
README = (ROOT / "README.md").read_text("utf-8")
JOBS = [
    *("tables", "spans", "labelling-functions", "judges", "logs", "volunteers", "rankings"),
    *("questions", "ratings", "numbers", "tags", "masks", "soft-votes", "other-packages"),
]


def read_tables(name):
    """The tables of a file, each as {row: {column: number}}; cells that hold no number are left out."""
    tables = []
    for part in (MEASURED / name).read_text().split("\n\n"):
        if part.startswith("|"):
            head, _, *rows = ([cell.strip(" `*") for cell in line.split("|")[1:-1]] for line in part.splitlines())
            tables.append(
                {
                    row[0]: {
                        column: float(cell)
                        for column, cell in zip(head[1:], row[1:], strict=True)
                        if re.fullmatch(r"[-+]?[\d.]+", cell)
                    }
                    for row in rows
                }
            )
    return tables


# ------------------------------------------------------------------------------------------------- commands and links


def commands(page):
    """The commands of a page, each with the output that the page shows."""
    blocks = re.findall(r"^```console\n(.*?)^```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.M | re.S)
    return [
        re.match(r"(.*)\n((?:.|\n)*)", part).groups()
        for block in blocks
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]
    ]


@pytest.mark.parametrize(("page", "command", "shown"), [(page, *each) for page in JOBS for each in commands(page)])
def test_commands_run(page, command, shown, page_folder):
    name, *arguments = shlex.split(command, comments=True)
    assert name == "consilience"
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert (page_folder / arguments[arguments.index("-o") + 1]).exists()
    assert not shown or doctest.OutputChecker().check_output(shown, result.stdout, doctest.ELLIPSIS), result.stdout


def test_links():
    links = re.findall(r"\]\(([^)#]+)", README) + re.findall(r'(?:src|srcset|href)="([^"#]+)"', README)
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []
    assert {f"docs/{page}.md" for page in JOBS} <= set(links)
    first = (DOCS / "index.md").read_text("utf-8")
    assert [page for page in JOBS if f"]({page}.md)" not in first] == []
    pages = "".join(page.read_text("utf-8") for page in DOCS.glob("*.md"))
    shown = re.findall(r"```{include} measured/([a-z0-9-]+)\.md\n```", pages)
    assert sorted(shown) == sorted(table.stem for table in MEASURED.glob("*.md"))


def test_the_pages_can_be_read():
    """The cap of CONTRIBUTING.md: what `wc -w docs/*.md README.md` counts; tables in `docs/measured` are data."""
    pages = [*DOCS.glob("*.md"), ROOT / "README.md"]
    assert sum(len(page.read_text("utf-8").split()) for page in pages) <= 38_000


def test_formulas():
    pytest.importorskip("math_core", reason="math-core turns formulas into MathML; make docs installs it")
    pytest.importorskip("sphinx")
    from docs.formulas import to_mathml

    assert to_mathml("k'", block=False) == '<math><mrow><mi>k</mi><mo lspace="0" rspace="0">\u2032</mo></mrow></math>'


# ------------------------------------------------------------------------------------- what is said in known situations


SLOW = ["5 million answers by 3,000 workers", "a graph with smooth errors"]


def test_all_kinds_of_findings_are_listed():
    assert advice.list_kinds() == advice.KINDS.read_text()


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("name", rest_robust(sorted(advice.SITUATIONS, key=SLOW.count), len(advice.SITUATIONS) - 2))
def test_what_is_said_in_a_situation_is_true(name):
    """The page has the verdict, the findings and the range of accuracy, which must be right."""
    said = advice.listen(advice.SITUATIONS[name])
    comparison = said.fused.comparison_
    assert advice.make_row(name, said) in advice.TABLE.read_text()
    if comparison.verdict == "better":
        assert said.accuracy > said.vote - 0.01  # a known difference of less than one label in a hundred is none
    if {"noise", "collapse", "silence", "sets", "unchecked", "untested"} & {each.kind for each in said.fused.findings_}:
        assert comparison.withheld
        assert not comparison.known
    elif comparison.known:
        low, high = (float(end.strip("%")) / 100 for end in advice.describe_accuracy(said).split(" to "))
        assert low <= round(said.accuracy, 3) <= high


# --------------------------------------------------------------------------------------------- tables and what they say

OURS, GIVEN = '`DawidSkene()`, `abstain="answer"`', '`DawidSkene(prior=...)`, `abstain="answer"`, class balance given'
FUSED = '`fuse`, `abstain="answer"`'


def read_functions(name):
    """{method: numbers} of a table of labelling functions."""
    lines = [line for line in (MEASURED / name).read_text().splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return {name: list(map(float, numbers)) for name, *numbers in rows[2:]}


@pytest.mark.robust
@pytest.mark.parametrize("method", ["majority vote", "`DawidSkene()`, silence ignored", OURS, GIVEN])
def test_the_table_of_simulated_functions_agrees_with_a_run(method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.DataWarning)
        crowds = [labelling_functions.simulate(2000, 10, seed) for seed in range(5)]
        scores = [labelling_functions.score(labelling_functions.METHODS[method], crowd) for crowd in crowds]
    found = read_functions("functions-simulated.md")[method]
    assert found[:2] == pytest.approx(np.mean(scores, axis=0), abs=0.002)


@needs_data
@pytest.mark.experiment
def test_the_table_of_bc5cdr_agrees_with_a_run():
    stored = real_crowds.load("bc5cdr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.ConsilienceWarning)
        found = labelling_functions.span_f1(cs.fuse(stored.responses), stored.gold)
    assert read_functions("functions-bc5cdr.md")[FUSED] == [pytest.approx(found, abs=0.002)]


def test_labelling_functions_whose_silence_counts_are_best():
    table = read_functions("functions-simulated.md")
    ours = [table.pop(name) for name in (OURS, GIVEN)]
    for f1, log_loss in ((0, 1), (2, 3)):
        assert min(row[f1] for row in ours) > max(row[f1] for row in table.values())
        assert max(row[log_loss] for row in ours) < min(row[log_loss] for row in table.values())
    f1_of = {name: row[0] for name, row in read_functions("functions-bc5cdr.md").items()}
    assert f1_of[FUSED] == max(f1_of.values())


@pytest.mark.robust
@pytest.mark.parametrize(("n_classifiers", "kind"), [(4, "all too cautious"), (8, "calibrated")])
def test_the_table_of_soft_votes_agrees_with_a_run(n_classifiers, kind):
    draws = [soft_votes.score(*soft_votes.simulate(n_classifiers, kind, seed)) for seed in range(soft_votes.N_DRAWS)]
    assert soft_votes.write_row(n_classifiers, kind, draws) in (MEASURED / "soft-votes.md").read_text()


@pytest.mark.robust
@needs_data
@pytest.mark.parametrize("size", [0, 20])
def test_the_tables_of_known_labels_agree_with_a_run(size):
    crowd = gold.load("bluebird")
    found, vote = gold.mean(gold.measure(crowd, size)), gold.measure_vote(crowd)
    for table, ours, theirs in zip(read_tables("gold.md"), found, vote, strict=True):
        assert table["bluebird"][str(size) if size else "no labels"] == pytest.approx(ours, abs=0.002)
        assert table["bluebird"]["vote"] == pytest.approx(theirs, abs=0.002)


def test_known_labels_help():
    accuracy, loss = read_tables("gold.md")
    mean = accuracy.pop("mean of the 7 with all sizes")
    gains = {name: row["100"] - row["no labels"] for name, row in accuracy.items() if "100" in row}
    assert sorted(gains, key=gains.get)[-2:] == ["llm_judges", "web"]
    assert mean["vote"] < mean["no labels"] < mean["100"]
    mean = loss.pop("mean of the 7 with all sizes")
    steps = [mean[size] for size in ("no labels", "10", "20", "50", "100")]
    assert steps == sorted(steps, reverse=True)
    assert all(row["20"] < row["no labels"] + 0.02 for row in loss.values())
    (doubtful,) = read_tables("doubtful-gold.md")
    mean = doubtful.pop("mean")
    assert mean["marked `random=False"] < min(mean["no labels"], mean["not marked"])
    # Where they are taken for random ones, probabilities may be far off.
    assert doubtful["dog"]["not marked"] > doubtful["dog"]["no labels"] + 0.2


@pytest.mark.robust
def test_intervals_of_estimates_hold():
    """As often as docs/estimates.md says, and as narrow."""
    at_random, in_strata, simulated, groups, audits = read_tables("estimates.md")
    for crowds in (at_random, in_strata, simulated):
        assert 0.935 <= crowds["all"]["all"] <= 0.975
        assert all(0.9 <= row["all"] <= 0.995 for row in crowds.values())
    assert at_random["all"]["width / labels alone"] == pytest.approx(0.6, abs=0.01)
    assert all(0.93 <= row["30 labels"] <= 0.985 for row in list(simulated.values())[:-1])
    assert all(0.935 <= row[column] <= 0.975 for row in groups.values() for column in ("holds", "differences hold"))
    assert groups["the same, predictions at random"]["width / labels alone"] <= 1.05
    assert all(0.93 <= share <= 0.97 for row in audits.values() for share in row.values())


@needs_data
def test_the_table_of_review_agrees_with_a_run():
    (table,) = read_tables("review.md")
    crowd, expected = review.load("bluebird"), table["bluebird"]
    found = [review.review(crowd, review.choose_next, seed) for seed in range(review.N_SEEDS)]
    assert np.mean(found) - expected["no labels"] == pytest.approx(expected["next_items"], abs=0.01)


def test_review_by_entropy_finds_more_errors():
    (table,) = read_tables("review.md")
    mean = table.pop("mean")
    assert list(table) == list(review.CROWDS)
    assert mean["highest entropy"] > 1.5 * mean["random"]
    assert all(row["random"] <= row["next_items"] for row in table.values())
    for table in read_tables("undecided.md"):
        ratios = {
            name: row["wrong, no labels"] / row["expected, no labels"] for name, row in table.items() if name != "mean"
        }
        assert sum(ratio > 1.9 for ratio in ratios.values()) == 7


def test_prompts_without_a_known_verdict(page_folder):
    truth, _ = judge()
    others = {prompt: better for number, (prompt, better) in enumerate(truth.items()) if number % 4}
    answers, known = pd.read_csv("examples/judges.csv"), page_folder / "examples" / "judges_gold.csv"
    single = answers[~answers["model"].isin(["atlas-medium", "atlas-small"])]
    models = [cs.fuse(answers, gold=known), cs.MajorityVote().fit(answers), cs.fuse(single)]
    found = [cs.evaluate(models[0], truth), *(cs.evaluate(model, others) for model in models)]
    text = (DOCS / "judges.md").read_text(encoding="utf-8")
    said = re.search(r"In truth it is (\d+)%: (\d+)% of the other 90 prompts. Majority vote has (\d+)%", text).groups()
    alone = re.search(r"Of the other 90 prompts, (\d+)% are now right", text).groups()
    assert [int(percent) / 100 for percent in (*said, *alone)] == [round(each.accuracy, 2) for each in found]


# ---------------------------------------------------------------------------------------------------- the league table


def test_scores_of_the_league():
    probability = np.array([[0.95, 0.05], [0.95, 0.05], [0.35, 0.65], [0.35, 0.65]])
    fused = league.Fused(np.array(list("aaba"), dtype=object), probability, ["a", "b"])
    found = league.score(["a", "b", "b", "a"], fused)  # the last label is not the most probable class
    assert found.accuracy == 0.75
    assert found.log_loss == pytest.approx(-np.log([0.95, 0.05, 0.65, 0.35]).mean())
    assert found.ece == pytest.approx(0.5 * (0.95 - 0.5) + 0.5 * (0.65 - 0.5))


@needs_data
@pytest.mark.experiment
@pytest.mark.parametrize("name", league.QUICK)
def test_the_league_is_that_of_a_run(name):
    row = league.measure(name)
    lines = re.findall(rf"^\| {name} \|(.*)\|$", league.PAGE.read_text(), flags=re.MULTILINE)
    for kind, line in zip(league.MEASURES, lines, strict=True):
        cells = [cell.strip(" *") for cell in line.split("|")]
        shown = dict(zip(league.list_columns(kind), map(float, cells), strict=True))
        assert shown == pytest.approx(league.get_figures(row, kind), abs=0.002)


def test_data_are_described():
    assert f"\n{league.describe_data()}\n" in league.PAGE.read_text(encoding="utf-8")
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    for entry in league.CATALOGUE:
        assert f"| `{entry.name}` | {entry.licence} | {entry.citation} |" in page


def test_pages_can_be_read_in_a_day():
    pages = [ROOT / "README.md", *DOCS.glob("*.md"), *(DOCS / "reference").glob("*.md")]
    assert sum(len(page.read_text("utf-8").split()) for page in pages) <= 36_000


# --------------------------------------------------------------------------------------------------- style and ways in


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It is 0.47, or 95%; `.47`, $.47$ and `95 %` are no prose.", []),
        ("Fine.\n\nIt is .47 or 95 %.", [(3, "'.4': write 0.47, not .47"), (3, "'5 %': write 95%, without a space")]),
        ("```python\nplain vote teh .5\n```\n\nTeh `teh` teh [teh](teh.md)", [(5, "'teh': spelt the")] * 2),
        ("A Plain\nvote", []),
        ("A Plain vote of this color", [(1, "'Plain vote': banned: majority vote"), (1, "'color': spelt colour")]),
    ],
)
def test_prose_that_is_not_in_style_is_found(text, found):
    assert style.check(text, {"teh": "the", "color": "colour"}) == found


def test_pages_are_in_style():
    pages = [ROOT / "README.md", *DOCS.glob("**/*.md")]
    assert {page.name: hits for page in pages if (hits := style.check(page.read_text("utf-8"), {}))} == {}


# What a newcomer wants, the words that they look for in a link and in what stands beside it, and what they find.
WANTED = [
    ("fuse a table", "fuse table", "consilience fuse"),
    ("merge spans of names", "NER spans", "cs.read_spans("),
    ("rate workers", "rate workers", "worker_report()"),
    ("ratings", "ratings scale", "ordered=True"),
    ("soft votes", "soft votes", "from_probabilities("),
    ("tags", "tags", "cs.read_tags("),
    ("several questions", "several questions", "--labels"),
    ("rankings of models", "rankings models", "consilience rank"),
    ("judges", "judges", "examples/judges.csv"),
    ("labelling functions", "labelling functions", 'abstain="answer"'),
    ("masks", "masks", "cs.read_masks("),
    ("networks", "networks", "cs.MarkovField("),
    ("update with new answers", "update new answers", "consilience update"),
]


def follow(page, words):
    """The parts of pages to which links lead that stand in a line with all these words."""
    for line in page.splitlines():
        if all(word.lower() in line.lower() for word in words.split()):
            for target, heading in re.findall(r"\]\(([\w/-]+\.md)(?:#([\w-]+))?\)", line):
                text = (DOCS / target).read_text("utf-8")
                title = heading.replace("-", " ") if heading else ""
                yield text[max(text.lower().find(f"# {title}".rstrip()), 0) :]  # some headings are in included parts


@pytest.mark.parametrize(("words", "found"), [each[1:] for each in WANTED], ids=[each[0] for each in WANTED])
def test_a_job_is_found_in_two_clicks(words, found):
    once = list(follow((DOCS / "index.md").read_text("utf-8"), words))
    twice = [text for page in once for text in follow(page, words)]
    assert any(found in page for page in once + twice)


# ------------------------------------------------------------------------------------------------------- the reference


def test_the_reference_names_what_is_public_once():
    text = "".join(page.read_text("utf-8") for page in (DOCS / "reference").glob("*.md"))
    shown = re.findall(r"auto(?:class|function|module|exception):: ([\w.]+)", text)
    assert set(cs.__all__) - {"__version__"} <= {part for name in shown for part in name.split(".")}
    assert len(shown) == len(set(shown))
    assert all(
        f"reference/{page.stem}\n" in (DOCS / "api.md").read_text() for page in (DOCS / "reference").glob("*.md")
    )


def test_tables_of_the_readme_are_short():
    tables = re.findall(r"(?:^\|.*\n)+", README, re.MULTILINE)
    assert tables
    assert all(table.count("\n") - 2 <= 8 for table in tables)


@pytest.mark.parametrize("page", [page for page in JOBS if page != "other-packages"])
def test_a_job_begins_with_a_command_and_what_it_prints(page):
    text = (DOCS / f"{page}.md").read_text("utf-8")
    first = text[text.index("```") :]
    assert re.match(r"```console\n\$ consilience .*\n[^$`]", first)
    assert "](glossary.md)" in text


def test_the_glossary_is_short():
    assert 10 < (DOCS / "glossary.md").read_text("utf-8").count("\n: ") <= 25
