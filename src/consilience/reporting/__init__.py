"""One HTML page about a fitted model: `consilience.report`; and its charts one by one: `consilience.chart`.

The package is not called `report`: a module of that name would take the place of the function `consilience.report`.

`page` has these two functions and fills the templates. `subject` is what a report is about. `overview` is the first
screen, and answers and probabilities in sums. The other modules work out what further sections show. `charts` draws.

A new section is a function of a `Subject` that returns what is shown, and a line in the register `SECTIONS`. If what it
returns is a `Plain`, with words, charts and tables, it needs nothing else. Otherwise there is a template of its name in
the folder `templates`, which calls what was returned `view`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..documents.charts import Chart
from . import changes, items, overview, ranking, sequences, soft_votes, tags, workers


class Section(NamedTuple):
    """A section of the page.

    Attributes
    ----------
    title : str
        Its heading.
    menu : str
        What the menu calls it.
    describe : callable
        Returns what it shows, or None if the page is to have no such section. An attribute `script` of that, a dict,
        is given to the script of the page.
    link : str
        What a link from a finding of a check to this section says.
    """

    title: str
    menu: str
    describe: Callable[[Any], object]
    link: str = ""


# By their ids, in the order of the page.
SECTIONS: dict[str, Section] = {
    "attention": Section("What needs attention", "Attention", overview.list_notes),
    "changes": Section("What the known labels changed", "Known labels", changes.find_changes),
    "tags": Section("Tags", "Tags", tags.describe_tags),
    "workers": Section("Workers", "Workers", workers.describe_workers, "See the workers"),
    "votes": Section("Probabilities of the classifiers", "Classifiers", soft_votes.describe_votes),
    "confidence": Section("Confidence", "Confidence", overview.describe_confidence),
    "vote": Section("Compared with the plain vote", "Plain vote", items.compare_labels),
    "answers": Section("Answers", "Answers", overview.describe_answers, "See the answers"),
    "sequences": Section("Sequences", "Sequences", sequences.describe_sequences),
    "network": Section("Network", "Network", sequences.describe_network, "See the network"),
    "uncertain": Section("Least certain items", "Least certain", items.list_uncertain),
    "review": Section("Review", "Review", items.prepare_review, "Review items"),
}


class Kind(NamedTuple):
    """How to draw a chart, and why there may be none."""

    draw: Callable[[Any], Chart | None]
    lack: str = ""


# The charts that can be drawn one by one.
CHARTS: dict[str, Kind] = {
    "workers": Kind(lambda subject: workers.draw_workers(workers.tabulate(subject)), "no worker has an answer"),
    "raters": Kind(lambda subject: workers.draw_raters(workers.tabulate(subject)), "the answers are no ratings"),
    "confusion": Kind(workers.draw_confusion, "there is only one class"),
    "confidence": Kind(overview.draw_confidence, "nothing checks the answers, or a check has failed"),
    "classes": Kind(overview.draw_classes),
    "votes": Kind(soft_votes.draw_votes, "the answers are no soft votes"),
    "agreement": Kind(overview.draw_agreement, "no item has two answers"),
    "answers_per_item": Kind(overview.draw_per_item, "all items have the same number of answers"),
    "answers_per_worker": Kind(overview.draw_per_worker, "all workers gave the same number of answers"),
    "reliability": Kind(
        changes.draw_by_gold,
        f"it needs {changes.LEAST_KNOWN} known labels that were drawn at random, and a fit without features",
    ),
    "tags": Kind(tags.draw_tags, "only those of TagSets have it"),
    "transitions": Kind(sequences.draw_transitions, "only those of HiddenMarkov have it"),
}

# The same of rankings: sections and charts are functions of a fitted `BradleyTerry`.
RANKING_SECTIONS: dict[str, Section] = {
    "attention": Section("What needs attention", "Attention", ranking.list_notes),
    "ranking": Section("Ranking", "Ranking", ranking.describe_scores, "See the ranking"),
    "wins": Section("Who beats whom", "Who beats whom", ranking.describe_wins, "See who beats whom"),
    "judges": Section("Judges", "Judges", ranking.describe_judges, "See the judges"),
    "next": Section("What to compare next", "Next", ranking.describe_next, "See what to compare next"),
}
RANKING_CHARTS: dict[str, Kind] = {
    "ranking": Kind(ranking.draw_ranking),
    "wins": Kind(ranking.draw_wins),
    "judges": Kind(ranking.draw_judges, "it is not known who gave which verdict"),
}
