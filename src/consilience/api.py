"""One call from answers to labels."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from .answers.arrays import Crowd
from .answers.graph import Graph
from .answers.hidden_answers import count_units
from .answers.responses import Responses
from .answers.tagging import looks_iob2
from .arguments import is_among
from .checks.comparison import (
    KEPT,
    STANDARD_ERRORS,
    Comparison,
    are_checked,
    compare_with_vote,
    keep_shares,
    share_kept,
)
from .checks.graph_check import CHECK_IDS, GraphCheck
from .checks.stored_comparison import compare_stored
from .engines import open_engine
from .engines.base import Engine
from .errors import (
    ConsilienceWarning,
    DataWarning,
    ParameterError,
    Python,
    Sentence,
    listing,
    parameter_error,
    plural,
    quietly,
    shorten,
    warn,
)
from .formats.sources import COLUMNS, check_keywords
from .inference.em import Progress
from .models.base import Model
from .models.dawid_skene import DawidSkene
from .models.latent import LatentModel
from .models.majority_vote import MajorityVote
from .models.markov_field import MarkovField, find_answered
from .models.predicting import PredictingModel, refuse_content
from .models.register import MODELS, model_class
from .preparing import Prepared, prepare
from .results.stored import Sample, StoredFit
from .storage.answers import StoredResponses
from .tasks.masks import Masks, cut_tiles, is_small

# With fewer answers, single answers of workers and one label for all of them are no surprise.
FEW = 20
# Where to find the items for which a classifier calls for another label.
DOUBTED = Python("disagreements()", "FILE")
VOTE = Python("model='majority'", "majority")
OTHER_WAYS_WITH_SOFT_VOTES = (
    Sentence("These are soft votes. Use {model}, which takes their mean.", model=VOTE),
    "Or fuse the most probable label of each vote.",
)
log = logging.getLogger("consilience")


def fuse(
    source: Any,
    graph: Any = None,
    gold: Any = None,
    *,
    model: str | Model = "auto",
    engine: Any = None,
    callback: Callable[[Progress], object] | None = None,
    features: Any = None,
    item_prior: Any = None,
    **keywords: Any,
) -> Any:
    """Fuse answers into labels with a model chosen by what is given, and compare the result with majority vote.

    Parameters
    ----------
    source : table, path, Responses, Spans or Masks
        The answers: a pandas, polars or pyarrow table, a dict of columns, or a file, glob or folder. A path may be that
        of anything that `read_responses`, `read_spans` or `read_masks` can read. If a file holds spans and answers
        about whole texts, the spans are fused, unless a column is named. Of `Spans` the known ones (`Spans.gold`) are
        used, unless `gold` is given; `Spans.without_gold` leaves them out. The pixels of `Masks` are linked to their
        neighbours by a graph. Of more than 30,000 pixels, a part shows whether to use it, and how strongly.
    graph : Graph, table, path, list of pairs, networkx graph or sparse matrix, optional
        How items hang together: a `Graph`, or edges from which one is made (a table or file with columns source and
        target, and perhaps weight, or a list of pairs of items).
    gold : dict, Series, table or path, or a list of these, optional
        Known labels. Of spans also `Spans` or a file of an annotation tool: its known spans, or those of its only
        worker; or a table of spans, with columns document, start, end and label. Of masks also `Masks` of one reader,
        or where they are. Default: those that the answers come with (`Responses.gold`), if some items have one and
        others do not; a warning tells. False: none.
    model : {"auto", "majority", "dawid-skene", "moments", "hidden-markov", "markov-field"} or Model
        "auto" is `MarkovField` with a graph, `HiddenMarkov` for sequences, and `DawidSkene` for other items. A
        `HiddenMarkov` chosen by name or "auto" has ``transitions="bio"`` where the classes are IOB2 tags (O, and B-X
        with each I-X).
    engine : optional
        Where to work; see `consilience.engines`.
    callback : callable, optional
        Called after each iteration with a `Progress`.
    features, item_prior : array, table or path, optional
        What is known of the items beside their answers: numbers that describe them, or class probabilities; see
        `DawidSkene.fit`.
    **keywords
        Names of columns and the other keywords of `Responses.from_frame`; and parameters of the model, such as
        ``estimation="em"`` or ``coupling=1.0``.

    Returns
    -------
    Model
        The fitted model, with `comparison_` against majority vote: a `Comparison`, or None where there is nothing to
        compare (the model is the vote, or there are too few answers to hide any). Workers who copy each other are in
        `copies_`, and each group of them counts as one worker. With a graph also `graph_check_`, a `GraphCheck`: what
        the same fit on a shuffled graph tells, and whether workers' errors run along the edges. If they do, and no
        coupling is given, only items that nobody answered hear their neighbours (``listeners="unanswered"``).

    Warns
    -----
    ConsilienceWarning
        When the fit does not predict hidden answers better than the vote does: then the vote may be as good.
    DataWarning
        When workers seem to copy each other, each item has one answer, or a class that nobody said seems to be
        misspelt; when a graph tells nothing, or workers' errors run along its edges. Reading gives others, see
        `Responses.from_frame`.

    Examples
    --------
    >>> import consilience as cs, numpy as np
    >>> truth = np.random.default_rng(0).integers(0, 2, 300)
    >>> good, better, flipped = truth.copy(), truth.copy(), 1 - truth
    >>> good[:60] = 1 - good[:60]
    >>> fused = cs.fuse(cs.Responses.from_matrix(np.stack([good, better, flipped], axis=1)))
    >>> fused.comparison_.n_differ, fused.comparison_.verdict
    (60, 'better')
    """
    parameters = {name for known in MODELS for name in model_class(known)._defaults()} - {"callback"}
    check_keywords(fuse, keywords, parameters)
    columns = {name: value for name, value in keywords.items() if name in COLUMNS}
    given = {name: value for name, value in keywords.items() if name in parameters}
    prepared = prepare(source, graph, gold, columns)
    return fuse_prepared(prepared, model, engine, callback, features, item_prior, given)


def fuse_prepared(
    prepared: Prepared,
    model: str | Model,
    engine: Any,
    callback: Callable[[Progress], object] | None,
    features: Any,
    item_prior: Any,
    parameters: dict[str, Any],
) -> Any:
    """Fuse what was opened; see `fuse`."""
    source, answers, graph, gold = prepared
    if isinstance(answers, StoredResponses):
        refuse_content(features=features, item_prior=item_prior)
        return fuse_stored(answers, gold, model, engine, callback, parameters)
    settled = None
    if graph is None and isinstance(source, Masks) and is_among(model, ("auto", "markov-field")):
        settled = settle_masks(source, parameters, engine)
        model, graph, parameters = settled.model, settled.graph, settled.parameters
    chosen = choose_model(model, answers, graph, parameters)
    if callback is not None and "callback" in chosen.get_params():
        chosen = chosen.set_params(callback=callback)
    responses = chosen._add_content(answers, features, item_prior)
    with open_engine(engine) as opened:
        chosen._fit(responses, graph, gold, opened, count_copies_once=True)
        return judge(chosen, responses, graph, gold, opened, settled)


def judge(
    fitted: PredictingModel, responses: Responses, graph: Any, gold: Any, engine: Engine, settled: Settled | None = None
) -> PredictingModel:
    """Compare a fitted model with majority vote, and its graph with a shuffled one; warn of what is to be doubted.

    The result is the same model, or one that uses its graph in another way; see `settle_graph`.
    """
    doubt = None
    if settled is not None and settled.check is not None:
        fitted.graph_check_, doubt = settled.check, settled.doubt
    elif isinstance(fitted, MarkovField):
        log.info("Comparing with a shuffled graph")
        fitted, doubt = settle_graph(fitted, responses, graph, gold, engine)
    fitted.comparison_ = None
    if not isinstance(fitted, MajorityVote) and count_units(responses) > 1:
        log.info("Comparing with majority vote")
        fitted.comparison_ = compare_with_vote(fitted, responses, graph, gold, engine)
    if fitted.copies_:
        warn(tell_copies(fitted))
    for warning in find_doubts(fitted, responses, graph, gold):
        warn(warning)
    if doubt is not None:
        warn(doubt)
    return fitted


def fuse_stored(
    answers: StoredResponses,
    gold: Any,
    model: str | Model,
    engine: Any,
    callback: Callable[[Progress], object] | None,
    parameters: dict[str, Any],
) -> Any:
    """Fuse answers on disk; see `fuse`."""
    chosen = choose_model(model, answers, None, parameters)
    if callback is not None and "callback" in chosen.get_params():
        chosen = chosen.set_params(callback=callback)
    with open_engine(engine) as opened:
        chosen._fit(answers, None, gold, opened, count_copies_once=True)
        chosen.comparison_ = None
        if not isinstance(chosen, MajorityVote):
            log.info("Comparing with majority vote")
        if chosen._stored is None:  # there are few answers, which were read into memory
            responses = chosen.responses_
            if not isinstance(chosen, MajorityVote) and count_units(responses) > 1:
                chosen.comparison_ = compare_with_vote(chosen, responses, None, gold, opened)
        else:
            responses = cast(Sample, chosen._stored.sample).responses
            if isinstance(chosen, LatentModel):
                chosen.comparison_ = compare_stored(chosen, opened)
    if chosen.copies_:
        warn(tell_copies(chosen))
    for warning in find_doubts(chosen, responses, None, gold):
        warn(warning)
    return chosen


class Settled(NamedTuple):
    """How masks are to be fused: name and parameters of the model, its graph, and what is known of that already."""

    model: str
    parameters: dict[str, Any]
    graph: Graph | None
    check: GraphCheck | None = None
    doubt: DataWarning | None = None


def settle_masks(masks: Masks, given: dict[str, Any], engine: Any) -> Settled:
    """Return how to fuse masks, large ones as a part of them shows; see `mask_sample`."""
    if is_small(masks):
        return Settled("markov-field", given, masks.graph())
    check_parameters(MarkovField, given)
    alone = {name: value for name, value in given.items() if name in DawidSkene._defaults()}
    sample = cut_tiles(masks)
    if sample is None:
        return Settled("dawid-skene", alone, None)
    log.info("Trying the graph on a part of the pixels")
    responses, graph, field = sample.to_responses(), sample.graph(), MarkovField(**given)
    with open_engine(engine) as opened, quietly():
        field._fit(responses, graph, None, opened, count_copies_once=True)
        field, doubt = settle_graph(field, responses, graph, None, opened)
    check = field.graph_check_
    if "coupling" in given:
        return Settled("markov-field", given, masks.graph(), check, doubt)
    if check.silent or (field.listeners == "unanswered" and masks.are_complete()):
        return Settled("dawid-skene", alone, None, check, doubt)
    found = {"coupling": field.coupling_, "listeners": field.listeners}
    return Settled("markov-field", {**given, **found}, masks.graph(), check, doubt)


def settle_graph(
    field: MarkovField, responses: Responses, graph: Any, gold: Any, engine: Engine
) -> tuple[MarkovField, DataWarning | None]:
    """Return a fitted field with its `graph_check_`, and what the user should know about the graph.

    Where a worker's errors run along the edges, neighbours repeat them. Then the field is fitted again, so that only
    items that nobody answered hear their neighbours; unless the user gave a coupling.
    """
    # What the classifier said of the items need not be learned again.
    known = replace(responses, features=None, log_prior=field._log_prior)
    check = field.check_graph(field._weigh_copies(known, np.arange(responses.n_workers)), graph, gold, engine)
    doubt = None
    if check.sound and check.repeats_errors and field._learns_coupling():
        doubt = DataWarning(
            "Workers tend to make the same error on neighbouring items of the graph (correlation "
            f"{check.error_correlation:.2f}), so the graph may spread errors. "
            + (
                "It is not used: all labels come from the answers alone."
                if find_answered(responses).all()
                else "It is used only for items that nobody answered; all other labels come from the answers alone."
            ),
            Sentence(
                "To use it for all items, give {coupling}, and compare both results on known labels.",
                coupling=float(f"{field.coupling_:.3g}"),
            ),
        )
        scores, copies = field.coupling_scores_, field._copies
        field = field.fresh(coupling=field.coupling_, listeners="unanswered")
        field._fit(responses, graph, gold, engine, copies, count_copies_once=True)
        field.coupling_scores_ = scores  # which tell where the coupling comes from
    elif not check.silent and not check.sound and check.changed > 0:
        doubt = DataWarning(
            f"The graph may not be informative about these labels: {check.describe_doubt()}. With a learned coupling "
            f"it changes {check.changed:.1%} of them; a shuffled graph changes {check.shuffled_changed:.1%}.",
            *([] if check.agrees or not check.measured else [CHECK_IDS]),
            "Fuse without it, unless known labels show that it helps.",
        )
    field.graph_check_ = check
    return field, doubt


def choose_model(
    model: str | Model, responses: Crowd, graph: Graph | None = None, parameters: Mapping[str, Any] | None = None
) -> PredictingModel:
    """Return an unfitted model with these parameters: the one named, or a copy of the one given."""
    given = dict(parameters or {})
    if isinstance(model, PredictingModel):
        check_parameters(type(model), given)
        return model.fresh(**given)
    if isinstance(model, str) and model == "auto":
        alone = "dawid-skene" if responses.sequences is None else "hidden-markov"
        model = alone if graph is None else "markov-field"
    if not isinstance(model, str) or model not in MODELS:
        known = ", ".join(repr(name) for name in ("auto", *MODELS))
        raise parameter_error("model", "fuse", f"one of {known}, or a model", model)
    kind = model_class(model)
    check_parameters(kind, given)
    if model == "hidden-markov" and looks_iob2(responses.classes):
        given = {"transitions": "bio", **given}
    return kind(**given)


def check_parameters(kind: type[Model], given: Mapping[str, Any]) -> None:
    """Raise an error for a parameter that this model does not have, with a model that has it."""
    for name in given:
        if name not in kind._defaults():
            other = next(model for model in MODELS if name in model_class(model)._defaults())
            raise ParameterError(
                Sentence(f"{kind.__name__} has no {{{name}}}.", **{name: Python(f"parameter {name!r}")}),
                "Leave it out.",
                Sentence("Or choose a model that has it, such as {model}.", model=other),
                keyword=name,
            )


def find_doubts(model: Model, responses: Responses, graph: Any, gold: Any) -> list[ConsilienceWarning]:
    """Return what the user should know before believing the labels."""
    found = (doubt_classes(responses), doubt_columns(responses))
    doubts: list[ConsilienceWarning] = [doubt for doubt in found if doubt]
    comparison: Comparison | None = model.comparison_
    if responses.n_items > 1 and not are_checked(responses, graph, gold):
        doubts.append(doubt_checks(model, responses))
    elif comparison is not None and comparison.by_chance:
        doubts.append(doubt_agreement(comparison))
    elif comparison is not None and comparison.collapsed:
        doubts.append(doubt_collapse(model, comparison, responses, gold))
    elif comparison is not None and comparison.n_differ and not comparison.better and not responses.silence_counts:
        doubts.append(doubt_gain(comparison, type(model).__name__, gold is not None, is_spread(responses)))
    return doubts


def doubt_checks(model: Model, responses: Responses) -> DataWarning:
    """Return the warning that no item has two answers."""
    found = "Each item has only one answer" if responses.n_workers > 1 else "All answers come from one worker"
    findings = getattr(model, "feature_findings_", None)
    if findings is not None and findings.used:
        look = Sentence("Look at those that the classifier doubts: {disagreements}.", disagreements=DOUBTED)
        checks, looks = "no other answer checks them", [look]
    else:
        checks, looks = "nothing checks them", []
    return DataWarning(
        f"{found}: {checks}. The labels are little more than these answers, and their probabilities rest on what the "
        "model assumes.",
        *looks,
        "Have at least some of the items answered by several workers.",
        Sentence("Or give known labels with {gold}."),
    )


def doubt_collapse(model: Model, comparison: Comparison, responses: Responses, gold: Any) -> ConsilienceWarning:
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
        f"{describe_collapse(model, comparison, responses, gold)} This can be correct, but it is typical of a fit that "
        "has collapsed. Check some of these items by hand before you use the labels.",
        *remedies,
    )


def describe_collapse(model: Model, comparison: Comparison, responses: Responses, gold: Any) -> str:
    """Return in words which class takes the items of others."""
    if comparison.kept_share < KEPT:
        r = responses.with_classes(model.classes_)
        if isinstance(model._stored, StoredFit):
            kept = share_kept(model._stored.tally.unanimous, model._stored.tally.kept)
        else:
            kept = keep_shares(r, MajorityVote().fit(r, gold=gold), model._label_codes)
        lost = shorten(model.classes_[[np.nanargmin(kept)]].tolist()[0])
        return (
            f"Where all workers who answered an item agree on {lost}, {type(model).__name__} gives another label to "
            f"{1 - np.nanmin(kept):.0%} of the items."
        )
    stored = model._stored
    counts = stored.tally.labels if isinstance(stored, StoredFit) else np.bincount(model._label_codes)
    top = shorten(model.classes_[[counts.argmax()]].tolist()[0])
    return (
        f"{type(model).__name__} gives {top} to {comparison.top_share:.1%} of the items, and majority vote to "
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


def tell_copies(model: Model) -> DataWarning:
    """Return the warning that workers seem to copy each other, and what was done about it."""
    groups = [f"({listing(group)})" for group in model.copies_]
    most = 3
    more = f" and {plural(len(groups) - most, 'more group')}" if len(groups) > most else ""
    n_workers = sum(map(len, model.copies_))
    each = "They count as one worker" if len(groups) == 1 else "Each group counts as one worker"
    return DataWarning(
        f"{plural(n_workers, 'worker')} seem to copy each other, or a common source: {', '.join(groups[:most])}{more}. "
        f"They agree more often than independent workers of their accuracy would. {each} on items that several of them "
        "answered.",
        Sentence("See the column group of {workers_report}.", workers_report=Python("worker_report()")),
        f"If you know that they worked independently, use {type(model).__name__}().fit in Python, which counts each "
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
