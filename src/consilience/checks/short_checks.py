"""The short checks: whether labels can be believed, whether answers are what they seem, and which workers to look at.

A check takes a result and the model, and yields findings. It runs if the register says that the result has what it
looks at.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..answers.classes import find_set_labels, find_sign, to_numbers
from ..answers.columns import to_values
from ..errors import ConsilienceWarning, DataWarning, Python, Sentence, join_names, listing, plural, shorten
from ..inference.estimator import LabelEstimator, explain_stop
from ..inference.observations import Observations
from ..results.comparison import CHECK_IDS, LEAST_KEPT, Comparison, are_soft, describe_limit
from ..results.findings import ADVICE, NOUNS, Finding, Words
from ..results.result import Result
from ..results.worker_report import find_accused

# Where to find the items for which a classifier calls for another label.
DOUBTED = Python("disagreements()", "FILE")
VOTE = Python("model='majority'", "majority")
GIVE_GOLD = Sentence("Or give known labels with {gold}.")
OTHER_WAYS_WITH_SOFT_VOTES: tuple[Words, ...] = (
    Sentence("These are soft votes. Use {model}, which takes their mean.", model=VOTE),
    "Or fuse the most probable label of each vote.",
)
# Labels below this confidence are called doubtful, and are worth telling from this share of all.
DOUBTFUL_CONFIDENCE, LEAST_DOUBTFUL_SHARE = 0.7, 0.01
# With fewer answers, single answers of workers and one label for all of them are no surprise.
FEW_ANSWERS_EACH = 20
OFTEN_WRONG, OFTEN_WRONG_SHARE = "often wrong", 0.5
# What remarks on workers mean, of one and of several.
MEANINGS = {
    "uninformative": (
        "tells little, since the answers hardly depend on what is right",
        "tell little, since their answers hardly depend on what is right",
    ),
    "contrary": ("is right less often than by chance", "are right less often than by chance"),
    "one label": ("gives nearly always the same label", "give nearly always the same label"),
    # No remark of `worker_report`: with many classes, a worker can be so and still tell something.
    OFTEN_WRONG: ("is more often wrong than right", "are more often wrong than right"),
}


# ------------------------------------------------------------------------------------------- whether labels are right


def find_unchecked(result: Result, _: LabelEstimator) -> Iterator[Finding]:
    """Hardly any item has answers of two workers, and nothing else checks them."""
    r = result.answers
    lack = "All answers come from one worker"
    if r.n_workers > 1:
        lack = f"{'Nearly every' if r.have_several_workers().any() else 'Each'} item has only one answer"
    yield Finding(
        f"{lack}: nothing checks them. The labels are little more than these answers, and neither their confidence nor "
        "the accuracy of workers can be told: these are left empty.",
        ("Have at least some of the items answered by several workers.", GIVE_GOLD),
        "bad",
    )


def find_untested(result: Result, _: LabelEstimator) -> Iterator[Finding]:
    """There are too few answers to test how sure the labels are."""
    remedies: tuple[Words, ...] = ("Collect more answers.", GIVE_GOLD)
    if result.feature_result is not None and result.feature_result.findings.used:
        look = Sentence("Look at items that the classifier doubts: {disagreements}.", disagreements=DOUBTED)
        remedies = (look, *remedies)
    yield Finding(
        "There are too few answers to test how sure the labels are: their confidence is left empty.", remedies
    )


def find_noise(result: Result, _: LabelEstimator) -> Iterator[Finding]:
    """Workers agree no more than by chance, and hidden answers cannot be predicted."""
    compared = compared_of(result)
    yield Finding(
        f"These answers show no signal: the workers agree no more than by chance ({compared.alpha_name} "
        f"{compared.alpha:.2f}, 95% interval {compared.alpha_low:.2f} to {compared.alpha_high:.2f}), and "
        "hidden answers could not be predicted from the others. Do not rely on the labels.",
        ("Check that item, worker and label are the right columns, and that the workers understood the task.",),
        "bad",
        category=ConsilienceWarning,
    )


def find_collapse(result: Result, _: LabelEstimator) -> Iterator[Finding]:
    """One class takes the items of others."""
    compared, r, classes = compared_of(result), result.answers, result.names.classes
    if compared.by_chance:
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
    if compared.lost is not None and compared.kept_share < LEAST_KEPT:
        lost = shorten(classes[[compared.lost]].tolist()[0])
        problem = (
            f"Where all workers who answered an item agree on {lost}, {result.model} gives another label to "
            f"{1 - compared.kept_share:.0%} of the items."
        )
    else:
        top = shorten(classes[[np.bincount(result.labels.codes).argmax()]].tolist()[0])
        problem = (
            f"{result.model} gives {top} to {compared.top_share:.1%} of the items, and {compared.rival} to "
            f"{compared.vote_top_share:.1%}."
        )
    yield Finding(
        f"{problem} This can be correct, but it is typical of a fit that has collapsed. Check some of these items by "
        "hand before you use the labels.",
        tuple(remedies),
        "bad",
        category=ConsilienceWarning,
    )


def find_no_gain(result: Result, _: LabelEstimator) -> Iterator[Finding]:
    """Hidden answers are not predicted better than by majority vote."""
    compared, r = compared_of(result), result.answers
    if not compared.n_differ or compared.untested or r.silence_counts:
        return
    remedies: tuple[Words, ...] = ("Collect more answers.",)
    rival, gain, vote = compared.rival, compared.describe_gain(), "The mean" if compared.soft else "The vote"
    if compared.verdict == "worse":
        remedies = OTHER_WAYS_WITH_SOFT_VOTES if are_soft(r) else (Sentence("Use {model}.", model=VOTE),)
        problem = f"{result.model} predicts hidden answers worse than {rival} does ({gain}). {vote} may be better."
    elif compared.predicts:
        problem = (
            f"{result.model} predicts hidden answers better than {rival} does ({gain}), but "
            f"{compared.describe_lack()}. Nothing shows that its labels are better."
        )
    else:
        problem = (
            f"There is no clear difference between {result.model} and {rival} in predicting hidden answers ({gain}). "
            f"{vote} may be as good, or better."
        )
    if result.given.gold is None:
        remedies += ("To find out which is better, compare both with some known labels (evaluate).",)
    # Better probabilities are no reason for a warning, even if labels are no better.
    category = None if compared.predicts and compared.informed else ConsilienceWarning
    yield Finding(problem, remedies, "bad" if compared.verdict == "worse" else "care", category=category)


def find_unsettled(_: Result, model: LabelEstimator) -> Iterator[Finding]:
    """The fit stopped before it settled."""
    warning = explain_stop(model)
    if warning is not None:
        yield Finding.of_warning(warning)


def find_doubtful(result: Result, _: LabelEstimator) -> Iterator[Finding]:
    """More than a few labels have a low confidence."""
    labels = result.labels
    n_doubtful = int((labels.shown_confidence < DOUBTFUL_CONFIDENCE).sum())
    share = n_doubtful / labels.n_items
    if len(labels.classes) > 1 and share >= LEAST_DOUBTFUL_SHARE:
        who = f"{plural(n_doubtful, result.kind.judged)} ({share:.1%}) {'has' if n_doubtful == 1 else 'have'}"
        remedy = "Collect more answers for such items, or review those that would teach most."
        yield Finding(f"{who} a confidence below {DOUBTFUL_CONFIDENCE:.0%}.", (remedy,), category=None)


# ----------------------------------------------------------------------------------- whether answers are what they seem


def find_silence(result: Result, _: LabelEstimator) -> Iterator[Finding]:
    """Workers answer as labelling functions do, and their silence is ignored."""
    warning = result.answers.silence_doubt
    assert warning is not None
    yield Finding.of_warning(warning)


def find_scale(result: Result, _: LabelEstimator) -> Iterator[Finding]:
    """Classes that are numbers at equal steps were taken for a scale."""
    check, values = result.given.scale_check, to_numbers(result.answers.classes)
    assert check is not None
    is_whole = values is None or bool((values == np.round(values)).all())
    numbers = "whole numbers" if is_whole else "numbers at equal steps"
    yield Finding(
        f"The classes are {numbers}, and were taken for levels of a scale: {check.describe()}.",
        (
            Sentence("If they are only names, say so with {ordered}.", ordered=False),
            Sentence("Or, of answers that were read before, with {workers}.", workers="confusion"),
        ),
        category=None,
    )


def find_set_classes(result: Result, _: LabelEstimator) -> Iterator[Finding]:
    """Classes are sets of labels."""
    sets = find_set_labels(result.answers.classes.tolist())
    if sets:
        yield Finding(
            f"Some classes are sets of labels: {listing(sets)}. Each set is taken for a class of its own, unlike any "
            "other.",
            (Sentence("Fuse them as sets of tags, with {separator}.", separator=find_sign(sets)),),
            "bad",
            keyword="label",
        )


def find_wrong_columns(result: Result, _: LabelEstimator) -> Iterator[Finding]:
    """The column of labels or of workers is probably another one."""
    r = result.answers
    if r.n_responses < FEW_ANSWERS_EACH or not {"label", "worker"} <= r.columns.keys():
        return
    if r.n_labels == 1 and not r.silence_counts:
        yield Finding(
            f"All answers in column {r.columns['label']!r} are {shorten(r.labels[0])}: there is nothing to fuse.",
            (Sentence("If another column holds the answers, name it with {label}."),),
            keyword="label",
        )
    elif r.n_workers == r.n_responses:
        yield Finding(
            f"Each worker in column {r.columns['worker']!r} gave one answer: nothing can be learned about single "
            "workers.",
            (Sentence("If another column holds the workers, name it with {worker}."),),
            keyword="worker",
        )


def find_unanswered(result: Result, _: LabelEstimator) -> Iterator[Finding]:
    """Nobody answered some of the items."""
    r = result.answers
    n_silent = r.n_items - int(np.count_nonzero(np.diff(r.offsets)))
    has_neighbours = result.given.graph is not None or r.sequences is not None
    source = "class frequencies and neighbours" if has_neighbours else "class frequencies"
    verb, them = ("has", "it") if n_silent == 1 else ("have", "them")
    problem = f"{plural(n_silent, 'item')} {verb} no answer. What is said of {them} comes from {source} alone."
    yield Finding(problem, (f"Have {them} answered, or leave {them} out.",), category=None)


def find_poor_graph(result: Result, model: LabelEstimator) -> Iterator[Finding]:
    """A graph tells nothing about the labels, or errors run along its edges."""
    checks = result.fusion_checks
    assert checks is not None
    check, limits_graph = checks.graph_check, checks.limits_graph
    assert check is not None
    if check.sound and check.repeats_errors:
        remedy: Words = "To see whether it helps, compare both results on known labels."
        if limits_graph:
            coupling = float(f"{check.coupling / check.usual_weight:.3g}")
            words = "To use it for all items, give {coupling}, and compare both results on known labels."
            remedy = Sentence(words, coupling=coupling)
        problem = check.describe_errors()
        if limits_graph or model.get_params().get("listeners") == "unanswered":
            problem += f" {describe_limit(bool(Observations(result.answers, result.given.gold).find_answered().all()))}"
        yield Finding(problem, (remedy,), category=DataWarning if limits_graph else None)
    elif not check.silent and not check.sound and check.changed > 0:
        yield Finding(
            f"The graph may not be informative about these labels: {check.describe_doubt()}. With a learned coupling "
            f"it changes {check.changed:.1%} of them; a shuffled graph changes {check.shuffled_changed:.1%}.",
            (
                *([] if check.agrees or not check.measured else [CHECK_IDS]),
                "Fuse without it, unless known labels show that it helps.",
            ),
        )


# ----------------------------------------------------------------------------------------------- whom to look at


def find_copiers(result: Result, _: LabelEstimator) -> Iterator[Finding]:
    """Workers seem to copy each other, or a common source."""
    groups = [f"({listing(result.names.workers[group].tolist())})" for group in result.given.copies]
    counts, remedy = "Each of them counts fully.", "fuse lets each group count as one worker."
    if result.given.copies_count_once:
        each = "They count as one worker" if len(groups) == 1 else "Each group counts as one worker"
        counts = f"{each} on items that several of them answered."
        remedy = (
            f"If you know that they worked independently, use {result.model}().fit in Python, which counts each worker "
            "fully."
        )
    yield Finding(
        f"{plural(sum(map(len, result.given.copies)), 'worker')} seem to copy each other, or a common source: "
        f"{join_names(groups)}. They agree more often than independent workers of their accuracy "
        f"would. {counts}",
        (Sentence("See the column group of {workers_report}.", workers_report=Python("worker_report()")), remedy),
    )


def find_clickers(result: Result, _: LabelEstimator) -> Iterator[Finding]:
    """Workers answer as if by chance."""
    rows = np.flatnonzero(find_accused(result, result.comparison))
    if not len(rows):
        return
    rows = rows[np.argsort(-result.n_answers[rows], kind="stable")]
    n_answers, kind = int(result.n_answers[rows].sum()), result.given.source_kind
    names = listing(result.names.workers[rows].tolist(), where="the worker report has all")
    verb = "answers" if len(rows) == 1 else "answer"
    problem = (
        f"{plural(len(rows), NOUNS[kind])} {verb} as if by chance: {names}. They gave "
        f"{n_answers:,} of {plural(int(result.n_answers.sum()), 'answer')}."
    )
    r, gold = result.answers, result.given.gold
    left = np.bincount(r.item_of_answer()[~np.isin(r.worker, rows)], minlength=r.n_items) > 0
    n_lost = int(np.sum((np.diff(r.offsets) > 0) & ~left & (True if gold is None else gold.codes < 0)))
    if n_lost:
        problem += f" Without them {plural(n_lost, 'item')} {'loses' if n_lost == 1 else 'lose'} all answers."
    remedies = (ADVICE[kind], Sentence("Leave them out with {block}.", block=Python("block=[...]", "FILE")))
    yield Finding(problem, remedies, category=None)


def find_poor_workers(result: Result, _: LabelEstimator) -> Iterator[Finding]:
    """Workers tell little, say nearly always the same, or are often wrong."""
    columns, is_vote, kind = result.workers, result.model == "MajorityVote", result.given.source_kind
    answers, high = np.asarray(to_values(columns["answers"])), np.asarray(to_values(columns["accuracy_high"]), float)
    every = [each.split("; ") for each in to_values(columns["remarks"]).tolist()]
    by_others = "near-copy", "accuracy falls"  # of which other checks know
    remarks = np.array(["; ".join(each for each in row if not each.startswith(by_others)) for row in every], object)
    # With many classes, one can be mostly wrong and still tell something. On a scale, so does anyone who is near.
    if result.fitted_estimates is None or not result.fitted_estimates.worker_model.are_raters:
        remarks[(remarks == "") & (high < OFTEN_WRONG_SHARE)] = OFTEN_WRONG
    weight = "Majority vote counts them fully." if is_vote else "The fit gives their answers little weight."
    advised = bool(find_accused(result, result.comparison).any())  # by another finding: every sentence once
    for remark, meaning in MEANINGS.items():
        rows = np.flatnonzero(remarks == remark)
        # Where silence is an answer, one who says only one label may tell a lot.
        if not len(rows) or (remark == "one label" and result.answers.silence_counts):
            continue
        rows = rows[np.argsort(-answers[rows], kind="stable")]
        share = answers[rows].sum() / max(answers.sum(), 1)
        names = join_names(map(shorten, result.names.workers[rows].tolist()), "the worker report has all")
        who = f"{plural(len(rows), NOUNS[kind])} ({share:.1%} of the answers) {meaning[len(rows) > 1]}"
        remedies = [weight] if remark in ("uninformative", "one label") else []
        advice, advised = [] if advised else [ADVICE[kind]], True
        yield Finding(f"{who}: {names}.", (*advice, *remedies), category=None)


def find_falls(result: Result, _: LabelEstimator) -> Iterator[Finding]:
    """The accuracy of workers falls over time."""
    assert result.drift is not None
    change, remarks = (to_values(result.drift[name]).tolist() for name in ("change", "remarks"))
    rows = sorted((m for m, remark in enumerate(remarks) if remark), key=lambda m: change[m])
    if rows:
        names = map(shorten, result.names.workers[rows].tolist())
        falls = [remarks[m].removeprefix("accuracy falls from ") for m in rows]
        figures = [f"{name}: {fall}" for name, fall in zip(names, falls, strict=True)]
        who = join_names(figures, "the drift report has all")
        problem = f"The accuracy of {plural(len(rows), 'worker')} falls over time ({who})."
        remedy = "Look at their last answers. They may be tired, or the task may have changed."
        yield Finding(problem, (remedy,), category=None)


def compared_of(result: Result) -> Comparison:
    """The comparison of a result that has one."""
    assert result.comparison is not None
    return result.comparison
