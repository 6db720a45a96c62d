"""What a user should know before believing the labels of a fusion."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np

from ..answers.graph import Graph
from ..answers.responses import Responses
from ..errors import ConsilienceWarning, DataWarning, Python, Sentence, listing, plural, shorten
from ..inference.sources import InMemory
from ..results.comparison import KEPT, STANDARD_ERRORS, Comparison
from ..results.fusion import Fusion
from .comparison import Differences, are_checked, share_kept

# With fewer answers, single answers of workers and one label for all of them are no surprise.
FEW = 20
# Where to find the items for which a classifier calls for another label.
DOUBTED = Python("disagreements()", "FILE")
VOTE = Python("model='majority'", "majority")
OTHER_WAYS_WITH_SOFT_VOTES = (
    Sentence("These are soft votes. Use {model}, which takes their mean.", model=VOTE),
    "Or fuse the most probable label of each vote.",
)


def find_doubts(
    found: Fusion, sample: InMemory, graph: Graph | None, differences: Differences | None
) -> list[ConsilienceWarning]:
    """Return what the user should know before believing the labels; `sample` are some of the answers, or all."""
    r, comparison = sample.responses, found.comparison
    doubts: list[ConsilienceWarning] = [doubt for doubt in (doubt_classes(r), doubt_columns(r)) if doubt]
    if r.n_items > 1 and not are_checked(sample, graph):
        doubts.append(doubt_checks(found, r))
    elif comparison is not None and comparison.by_chance:
        doubts.append(doubt_agreement(comparison))
    elif comparison is not None and comparison.collapsed:
        assert differences is not None
        doubts.append(doubt_collapse(found, comparison, differences, r))
    elif comparison is not None and comparison.n_differ and not comparison.better and not r.silence_counts:
        doubts.append(doubt_gain(comparison, found.model, sample.gold is not None, is_spread(r)))
    return doubts


def doubt_checks(found: Fusion, responses: Responses) -> DataWarning:
    """Return the warning that no item has two answers."""
    lack = "Each item has only one answer" if responses.n_workers > 1 else "All answers come from one worker"
    if found.guidance is not None and found.guidance.findings.used:
        look = Sentence("Look at those that the classifier doubts: {disagreements}.", disagreements=DOUBTED)
        checks, looks = "no other answer checks them", [look]
    else:
        checks, looks = "nothing checks them", []
    return DataWarning(
        f"{lack}: {checks}. The labels are little more than these answers, and their probabilities rest on what the "
        "model assumes.",
        *looks,
        "Have at least some of the items answered by several workers.",
        Sentence("Or give known labels with {gold}."),
    )


def doubt_collapse(
    found: Fusion, comparison: Comparison, differences: Differences, responses: Responses
) -> ConsilienceWarning:
    """Return the warning that one class takes the items of others."""
    remedies: list[str | Sentence] = [
        Sentence("Give known labels with {gold}."),
        Sentence("If you know how frequent the classes are, give {prior}."),
        Sentence("Or use the vote, with {model}.", model=VOTE),
    ]
    if is_spread(responses):
        remedies[-1:] = OTHER_WAYS_WITH_SOFT_VOTES
    elif not responses.silence_counts:
        silence = Sentence("If workers only answer where they see something, say so with {abstain}.", abstain="answer")
        remedies.insert(0, silence)
    return ConsilienceWarning(
        f"{describe_collapse(found, comparison, differences)} This can be correct, but it is typical of a fit that "
        "has collapsed. Check some of these items by hand before you use the labels.",
        *remedies,
    )


def describe_collapse(found: Fusion, comparison: Comparison, differences: Differences) -> str:
    """Return in words which class takes the items of others."""
    classes = found.names.classes
    if comparison.kept_share < KEPT:
        kept = share_kept(differences.unanimous, differences.kept)
        lost = shorten(classes[[np.nanargmin(kept)]].tolist()[0])
        return (
            f"Where all workers who answered an item agree on {lost}, {found.model} gives another label to "
            f"{1 - np.nanmin(kept):.0%} of the items."
        )
    top = shorten(classes[[differences.labels.argmax()]].tolist()[0])
    return (
        f"{found.model} gives {top} to {comparison.top_share:.1%} of the items, and majority vote to "
        f"{comparison.vote_top_share:.1%}."
    )


def doubt_agreement(comparison: Comparison) -> ConsilienceWarning:
    """Return the warning that the answers tell nothing."""
    return ConsilienceWarning(
        f"These answers show no signal: the workers agree no more than by chance (Krippendorff's alpha "
        f"{comparison.alpha:.2f}, 95% interval {comparison.alpha_low:.2f} to {comparison.alpha_high:.2f}), and hidden "
        "answers could not be predicted from the others. Do not rely on the labels.",
        "Check that item, worker and label are the right columns, and that the workers understood the task.",
    )


def tell_copies(found: Fusion) -> DataWarning:
    """Return the warning that workers seem to copy each other, and what was done about it."""
    copies = [found.names.workers[group].tolist() for group in found.copies]
    groups = [f"({listing(group)})" for group in copies]
    most = 3
    more = f" and {plural(len(groups) - most, 'more group')}" if len(groups) > most else ""
    n_workers = sum(map(len, copies))
    each = "They count as one worker" if len(groups) == 1 else "Each group counts as one worker"
    return DataWarning(
        f"{plural(n_workers, 'worker')} seem to copy each other, or a common source: {', '.join(groups[:most])}{more}. "
        f"They agree more often than independent workers of their accuracy would. {each} on items that several of them "
        "answered.",
        Sentence("See the column group of {workers_report}.", workers_report=Python("worker_report()")),
        f"If you know that they worked independently, use {found.model}().fit in Python, which counts each "
        "worker fully.",
    )


def is_spread(responses: Responses) -> bool:
    """Tell whether there are soft votes, which are spread over several labels."""
    return len(responses.votes()[0]) < responses.n_responses


def doubt_gain(comparison: Comparison, name: str, has_gold: bool, spread: bool = False) -> ConsilienceWarning:
    """Return the warning that the fit is no better than the vote, and why that is thought."""
    if not comparison.tested:
        problem = f"There are too few answers to test whether {name} is better than majority vote."
    elif comparison.verdict == "worse":
        problem = (
            f"{name} predicts hidden answers worse than majority vote does ({comparison.describe_gain()}). The vote "
            "may be better."
        )
    elif comparison.held_out_gain > STANDARD_ERRORS * comparison.held_out_error:
        problem = (
            f"{name} predicts hidden answers better than majority vote does ({comparison.describe_gain()}), but no "
            "better than class frequencies alone do. Nothing shows that its labels are better."
        )
    else:
        problem = (
            f"There is no clear difference between {name} and majority vote in predicting hidden answers "
            f"({comparison.describe_gain()}). The vote may be as good, or better."
        )
    remedies: Sequence[str | Sentence] = ["Collect more answers."]
    if comparison.verdict == "worse":
        remedies = OTHER_WAYS_WITH_SOFT_VOTES if spread else [Sentence("Use {model}.", model=VOTE)]
    if not has_gold:
        remedies = [*remedies, "To find out which is better, compare both with some known labels (evaluate)."]
    return ConsilienceWarning(problem, *remedies)


def doubt_columns(responses: Responses) -> DataWarning | None:
    """Return the warning that a column of answers or workers is probably another one, or None."""
    names = responses.columns
    if responses.n_responses < FEW or not {"label", "worker"} <= names.keys():
        return None
    if responses.n_labels == 1 and not responses.silence_counts:
        return DataWarning(
            f"All answers in column {names['label']!r} are {shorten(responses.labels[0])}: there is nothing to fuse.",
            Sentence("If another column holds the answers, name it with {label}."),
            keyword="label",
        )
    if responses.n_workers == responses.n_responses:
        return DataWarning(
            f"Each worker in column {names['worker']!r} gave one answer: nothing can be learned about single workers.",
            Sentence("If another column holds the workers, name it with {worker}."),
            keyword="worker",
        )
    return None


def doubt_classes(responses: Responses) -> DataWarning | None:
    """Return the warning that a class nobody said may be a label that is no class, or None."""
    unsaid = responses.classes[responses.label_of_class < 0].tolist()
    left_out = responses.labels[responses.class_of_label < 0].tolist()
    if not unsaid or not left_out or responses.silence_counts:
        return None
    texts = {str(label).strip().lower(): label for label in left_out}
    close = {
        name: texts[found]
        for name in unsaid
        for found in difflib.get_close_matches(str(name).strip().lower(), texts, n=1)
    }
    n_lost = int((responses.class_of_label[responses.label] < 0).sum())
    verb = "is no class" if len(left_out) == 1 else "are no classes"
    return DataWarning(
        f"Nobody said {listing(unsaid)}, which is among the classes, while {listing(left_out)} "
        f"({plural(n_lost, 'answer')}) {verb}.",
        *(f"Did you mean {label!r} by {name!r}?" for name, label in list(close.items())[:3]),
        keyword="classes",
    )
