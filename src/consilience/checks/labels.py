"""Whether labels can be believed: what is said before anybody uses them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..answers.responses import Responses
from ..errors import ConsilienceWarning, Python, Sentence, plural, shorten
from ..results.comparison import KEPT, STANDARD_ERRORS, Comparison
from ..results.findings import Finding, Words
from .comparison import share_kept
from .subject import Subject

# Where to find the items for which a classifier calls for another label.
DOUBTED = Python("disagreements()", "FILE")
VOTE = Python("model='majority'", "majority")
OTHER_WAYS_WITH_SOFT_VOTES: tuple[Words, ...] = (
    Sentence("These are soft votes. Use {model}, which takes their mean.", model=VOTE),
    "Or fuse the most probable label of each vote.",
)
# Labels below this confidence are called doubtful, and are worth telling from this share of all.
DOUBTFUL, WORTH_TELLING = 0.7, 0.01


def find_unchecked(subject: Subject) -> Iterator[Finding]:
    """No item has answers of two workers, and nothing else checks them."""
    if subject.is_checked:
        return
    guidance = subject.fusion.guidance
    lack = (
        "Each item has only one answer"
        if subject.sample.responses.n_workers > 1
        else "All answers come from one worker"
    )
    checks, looks = "nothing checks them", list[Words]()
    if guidance is not None and guidance.findings.used:
        look = Sentence("Look at those that the classifier doubts: {disagreements}.", disagreements=DOUBTED)
        checks, looks = "no other answer checks them", [look]
    yield Finding(
        f"{lack}: {checks}. The labels are little more than these answers, and their probabilities rest on what the "
        "model assumes.",
        (
            *looks,
            "Have at least some of the items answered by several workers.",
            Sentence("Or give known labels with {gold}."),
        ),
        "bad",
    )


def find_noise(subject: Subject) -> Iterator[Finding]:
    """Workers agree no more than by chance, and hidden answers cannot be predicted."""
    comparison = subject.comparison
    if comparison is not None and comparison.by_chance and subject.is_checked:
        yield Finding(
            "These answers show no signal: the workers agree no more than by chance (Krippendorff's alpha "
            f"{comparison.alpha:.2f}, 95% interval {comparison.alpha_low:.2f} to {comparison.alpha_high:.2f}), and "
            "hidden answers could not be predicted from the others. Do not rely on the labels.",
            ("Check that item, worker and label are the right columns, and that the workers understood the task.",),
            "bad",
            category=ConsilienceWarning,
        )


def find_collapse(subject: Subject) -> Iterator[Finding]:
    """One class takes the items of others."""
    comparison, r = subject.comparison, subject.sample.responses
    if comparison is None or not comparison.collapsed or comparison.by_chance or not subject.is_checked:
        return
    remedies: list[Words] = [
        Sentence("Give known labels with {gold}."),
        Sentence("If you know how frequent the classes are, give {prior}."),
        Sentence("Or use the vote, with {model}.", model=VOTE),
    ]
    if are_soft(r):
        remedies[-1:] = OTHER_WAYS_WITH_SOFT_VOTES
    elif not r.silence_counts:
        silence = Sentence("If workers only answer where they see something, say so with {abstain}.", abstain="answer")
        remedies.insert(0, silence)
    yield Finding(
        f"{describe_collapse(subject, comparison)} This can be correct, but it is typical of a fit that "
        "has collapsed. Check some of these items by hand before you use the labels.",
        tuple(remedies),
        "bad",
        category=ConsilienceWarning,
    )


def describe_collapse(subject: Subject, comparison: Comparison) -> str:
    """Return in words which class takes the items of others."""
    classes, model, differences = subject.fusion.names.classes, subject.fusion.model, subject.differences
    assert differences is not None
    if comparison.kept_share < KEPT:
        kept = share_kept(differences.unanimous, differences.kept)
        lost = shorten(classes[[np.nanargmin(kept)]].tolist()[0])
        return (
            f"Where all workers who answered an item agree on {lost}, {model} gives another label to "
            f"{1 - np.nanmin(kept):.0%} of the items."
        )
    top = shorten(classes[[differences.labels.argmax()]].tolist()[0])
    return (
        f"{model} gives {top} to {comparison.top_share:.1%} of the items, and majority vote to "
        f"{comparison.vote_top_share:.1%}."
    )


def find_no_gain(subject: Subject) -> Iterator[Finding]:
    """Hidden answers are not predicted better than by majority vote."""
    compared, r = subject.comparison, subject.sample.responses
    if compared is None or compared.better or not compared.n_differ:
        return
    if not subject.makes_sense or not subject.is_checked or r.silence_counts:
        return
    remedies: tuple[Words, ...] = ("Collect more answers.",)
    if compared.verdict == "worse":
        remedies = OTHER_WAYS_WITH_SOFT_VOTES if are_soft(r) else (Sentence("Use {model}.", model=VOTE),)
    if subject.sample.gold is None:
        remedies += ("To find out which is better, compare both with some known labels (evaluate).",)
    yield Finding(
        describe_no_gain(compared, subject.fusion.model),
        remedies,
        "bad" if compared.verdict == "worse" else "care",
        category=ConsilienceWarning,
    )


def describe_no_gain(comparison: Comparison, model: str) -> str:
    """Return in words why a fit is not thought to be better than the vote."""
    if not comparison.tested:
        return f"There are too few answers to test whether {model} is better than majority vote."
    if comparison.verdict == "worse":
        return (
            f"{model} predicts hidden answers worse than majority vote does ({comparison.describe_gain()}). The vote "
            "may be better."
        )
    if comparison.held_out_gain > STANDARD_ERRORS * comparison.held_out_error:
        return (
            f"{model} predicts hidden answers better than majority vote does ({comparison.describe_gain()}), but no "
            "better than class frequencies alone do. Nothing shows that its labels are better."
        )
    return (
        f"There is no clear difference between {model} and majority vote in predicting hidden answers "
        f"({comparison.describe_gain()}). The vote may be as good, or better."
    )


def are_soft(responses: Responses) -> bool:
    """Tell whether there are soft votes, which are spread over several labels."""
    return len(responses.votes()[0]) < responses.n_responses


def find_unsettled(subject: Subject) -> Iterator[Finding]:
    """The fit stopped before it settled."""
    course, source = subject.fusion.course, subject.fusion.source or subject.sample
    warning = None if course.converged else subject.recipe.explain_stop(course.trace, source.crowd.n_responses)
    if warning is not None:
        yield Finding.told(warning)


def find_doubtful(subject: Subject) -> Iterator[Finding]:
    """More than a few labels have a low confidence."""
    labels = subject.labels
    n_doubtful = int((labels.confidence < DOUBTFUL).sum())
    share = n_doubtful / labels.n_items
    if len(labels.classes) < 2 or not n_doubtful or share < WORTH_TELLING or not subject.makes_sense:
        return
    verb = "has" if n_doubtful == 1 else "have"
    problem = f"{plural(n_doubtful, 'label')} ({share:.1%}) {verb} a confidence below {DOUBTFUL:.0%}."
    if subject.is_sample:
        problem = f"{share:.1%} of the labels have a confidence below {DOUBTFUL:.0%}."
    remedy = "Collect more answers for such items, or review those that would teach most."
    yield Finding(problem, (remedy,), category=None)
