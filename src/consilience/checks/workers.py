"""Which workers to look at: those who copy, who tell little, and who are often wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..answers.columns import to_values
from ..errors import Python, Sentence, listing, plural
from ..results.findings import Finding, Words
from ..results.tables import describe_answers
from .subject import Subject

# Groups of copies that are listed.
MOST_GROUPS = 3
OFTEN_WRONG = "often wrong"
# What remarks on workers mean, of one and of several.
MEANINGS = {
    "uninformative": (
        "tells little: the answers hardly depend on what is right",
        "tell little: their answers hardly depend on what is right",
    ),
    "contrary": ("is right less often than by chance", "are right less often than by chance"),
    "one label": ("gives nearly always the same label", "give nearly always the same label"),
    # No remark of `worker_report`: with many classes, a worker can be so and still tell something.
    OFTEN_WRONG: ("is more often wrong than right", "are more often wrong than right"),
}


def find_copies(subject: Subject) -> Iterator[Finding]:
    """Workers seem to copy each other, or a common source."""
    found = subject.fusion
    if not found.copies:
        return
    groups = [f"({listing(found.names.workers[group].tolist())})" for group in found.copies]
    more = f" and {plural(len(groups) - MOST_GROUPS, 'more group')}" if len(groups) > MOST_GROUPS else ""
    counts = "Each of them counts fully."
    remedies: list[Words] = [
        Sentence("See the column group of {workers_report}.", workers_report=Python("worker_report()")),
        "fuse lets each group count as one worker.",
    ]
    if found.copies_count_once:
        each = "They count as one worker" if len(groups) == 1 else "Each group counts as one worker"
        counts = f"{each} on items that several of them answered."
        remedies[1] = (
            f"If you know that they worked independently, use {found.model}().fit in Python, which counts each worker "
            "fully."
        )
    yield Finding(
        f"{plural(sum(map(len, found.copies)), 'worker')} seem to copy each other, or a common source: "
        f"{', '.join(groups[:MOST_GROUPS])}{more}. They agree more often than independent workers of their accuracy "
        f"would. {counts}",
        tuple(remedies),
    )


def find_poor_workers(subject: Subject) -> Iterator[Finding]:
    """Workers tell little, say nearly always the same, or are often wrong."""
    if not subject.makes_sense:
        return
    found, columns = subject.fusion, describe_answers(subject.fusion)
    answers, high = np.asarray(to_values(columns["answers"])), to_values(columns["accuracy_high"])
    remarks = np.array(to_values(columns["remarks"]).tolist(), object)
    # With many classes, one can be mostly wrong and still tell something.
    remarks[(remarks == "") & (np.asarray(high, float) < 0.5)] = OFTEN_WRONG
    is_vote = found.model == "MajorityVote"
    weight = "Majority vote counts them fully." if is_vote else "The fit gives their answers little weight."
    for remark, meaning in MEANINGS.items():
        rows = np.flatnonzero(remarks == remark)
        # Where silence is an answer, one who says only one label may tell a lot.
        if not len(rows) or (remark == "one label" and subject.sample.responses.silence_counts):
            continue
        rows = rows[np.argsort(-answers[rows], kind="stable")]
        share = answers[rows].sum() / max(answers.sum(), 1)
        who = f"{plural(len(rows), 'worker')} {meaning[len(rows) > 1]} ({listing(found.names.workers[rows].tolist())})"
        remedies = ["Look at their answers, and ask how they understood the task."]
        told = [weight] if remark in ("uninformative", "one label") else []
        problem = f"{who}. {share:.1%} of the answers are theirs."
        yield Finding(problem, (*remedies, *told), category=None)
