"""The report on several questions: one page, with what is said of all workers, and the report on each question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..answers.columns import Column, to_values
from ..errors import plural
from ..kernels import Floats
from ..models.question_tables import count_question, report_workers
from ..models.questions import Questions
from .overview import Verdict, judge
from .subject import Subject, spell

# So many workers are shown, those first who most probably answer without looking; so many are in the page at all.
N_SHOWN, N_WORKERS = 12, 500
# Of labels that were not compared with majority vote.
NOT_COMPARED = "not compared"


class Question(NamedTuple):
    """A question, and the report on it."""

    name: str
    n_classes: int
    n_items: int
    n_answers: int
    confidence: float | None
    verdict: Verdict
    page: str  # a document of its own


class Row(NamedTuple):
    """A worker over all questions."""

    name: str
    n_answers: int
    accuracy: float | None
    chance: float | None
    remarks: str
    accuracies: list[float | None]  # in each question


class Overview(NamedTuple):
    """What the page says of all questions.

    Attributes
    ----------
    headline : str
        How many questions compare how with majority vote.
    sharing : str
        Whether skills carry over.
    questions : list of Question
        The questions.
    workers : list of Row
        At most `N_WORKERS` of them, those first who most probably answer without looking.
    n_workers : int
        How many there are.
    n_shown : int
        How many are not folded away.
    """

    headline: str
    sharing: str
    questions: list[Question]
    workers: list[Row]
    n_workers: int
    n_shown: int = N_SHOWN


def describe_questions(questions: Questions, subjects: Mapping[str, Subject], pages: Mapping[str, str]) -> Overview:
    """Return what the page says of all questions; `pages` are the reports on them."""
    found = [describe_question(name, subjects[name], pages[name]) for name in questions]
    rows = list_workers(questions)
    return Overview(write_headline(found), questions.explain_sharing(), found, rows[:N_WORKERS], len(rows))


def describe_question(name: str, subject: Subject, page: str) -> Question:
    """Return what the page says of one question."""
    found = count_question(subject.fusion)
    sizes = len(found["classes"]), found["items"], found["answers"]
    return Question(spell(name), *sizes, found["mean_confidence"], judge(subject), page)


def write_headline(questions: list[Question]) -> str:
    """Return in a sentence how many questions compare how with majority vote.

    >>> better, unknown = Verdict("", badge="Better than majority vote"), Verdict("")
    >>> write_headline([Question("spam", 2, 60, 240, 0.9, better, ""), Question("tone", 3, 60, 240, 0.9, unknown, "")])
    '2 questions: in predicting hidden answers, 1 better than majority vote, 1 not compared.'
    >>> write_headline([Question("spam", 2, 60, 240, 0.9, better, "")] * 3)
    '3 questions, all better than majority vote in predicting hidden answers.'
    """
    badges = [each.verdict.badge for each in questions]
    counts = Counter(f"{badge[0].lower()}{badge[1:]}" if badge else NOT_COMPARED for badge in badges)
    if len(counts) == 1:
        (words,) = counts
        where = "" if words == NOT_COMPARED else " in predicting hidden answers"
        return f"{plural(len(questions), 'question')}, all {words.replace('no clear', 'without a clear')}{where}."
    listed = ", ".join(f"{n} {words.replace('no clear', 'without a clear')}" for words, n in counts.items())
    return f"{plural(len(questions), 'question')}: in predicting hidden answers, {listed}."


def list_workers(questions: Questions) -> list[Row]:
    """Return all workers, those first who most probably answer without looking."""
    columns = report_workers(questions)
    names, remarks = to_values(columns["worker"]).tolist(), to_values(columns["remarks"]).tolist()
    n_answers, chance = to_values(columns["answers"]).tolist(), list_figures(columns["chance"])
    accuracy = list_figures(columns["accuracy"])
    each = list(zip(*(list_figures(columns[f"accuracy({name})"]) for name in questions), strict=True))
    order = sorted(range(len(names)), key=lambda m: -(chance[m] or 0.0))
    return [Row(spell(names[m]), n_answers[m], accuracy[m], chance[m], remarks[m], list(each[m])) for m in order]


def list_figures(column: Column) -> list[float | None]:
    """Return the numbers of a column; None for one that is not known."""
    figures: Floats = np.asarray(to_values(column), np.float64)
    return [None if np.isnan(each) else each for each in figures.tolist()]
