"""The figures that describe a fit: the same for the tables and for `--json`."""

from __future__ import annotations

import dataclasses
from dataclasses import asdict, dataclass
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..answers.answers import Answers
from ..answers.columns import count_codes, lookup, to_column
from ..formats import find_by_name
from ..inference.sources import Source
from ..models.fitted import FittedModel as Model
from ..models.hidden_markov import HiddenMarkov
from ..models.latent import LatentModel
from ..models.markov_field import MarkovField
from ..results.comparison import Comparison, describe_limit
from ..results.worker_report import FEW, rank_attention
from .command import Record, describe_findings

N_WORKERS = 3  # from either end
N_ITEMS = 5
ALL_KNOWN = "the label of every item is known, so nothing was fused"
# Of the drift report, what the worker report does not have.
_CHANGES = ("accuracy_first", "accuracy_last", "change", "change_low", "change_high")
_NOT_SHOWN = ("callback", "classifier")


@dataclass(frozen=True)
class Summary:
    """A fit in figures. The fields are the keys of `--json`; `docs/command-line.md` says what they mean."""

    source: str
    format: str | None
    columns: dict[str, str]
    model: str
    parameters: Record
    items: int
    workers: int
    answers: int
    left_out: Record | None
    source_kind: str
    classes: list[object]
    scale: Record | None
    soft: str | None  # how soft votes were fused, and why
    outside_classes: Record | None
    spans: Record | None
    tags: Record | None
    gold: int
    iterations: int
    converged: bool
    chain: Record | None
    field: Record | None
    smoothing: tuple[float, float] | None
    power: float | None
    calibration: str | None
    features: Record | None
    mean_confidence: float | None  # None if the answers cannot be checked
    undecided: Record | None
    comparison: Record | None
    findings: list[Record]
    most_reliable: list[Record]
    least_reliable: list[Record]
    classifier: Record | None
    workers_with_few_answers: int
    copies: list[list[object]]
    least_certain: list[Record]
    files: dict[str, str] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0


def summarise(model: Model, workers: pa.Table, options: SimpleNamespace) -> Summary:
    """Return the figures of a fitted model.

    Parameters
    ----------
    model : Model
        Fitted.
    workers : pyarrow.Table
        Its `tabulate_workers`.
    options : namespace
        `source`: where the answers came from; `all_workers`: whether all workers are among the most reliable, also
        those with few answers; `undecided`: the least confidence of a label that is not left open, or None.
    """
    kind, answers, told = model.result_.task, model.responses_, model.result_.told_confidence
    best, worst, n_few = _choose_workers(workers, options.all_workers)
    results = kind.summarise(answers, model.result_)
    n_items, n_answers = kind.size(answers)
    return Summary(
        source=options.source,
        format=_name_format(model),
        # Of tags, items of several columns are sequences, too.
        columns={
            role: name
            for role, name in answers.columns.items()
            if answers.columns.get("item") != name or role == "item"
        },
        model=type(model).__name__,
        parameters={name: value for name, value in model.get_params().items() if name not in _NOT_SHOWN},
        items=n_items,
        workers=answers.n_workers,
        answers=n_answers,
        left_out=_count_left_out(model),
        source_kind=model.result_.source_kind,
        classes=model.classes_.tolist(),
        scale=_describe_scale(model),
        soft=None if model.result_.soft_check is None else str(model.result_.soft_check),
        outside_classes=_count_outside(model, answers),
        spans=results if kind.results == "spans" else None,
        tags=results if kind.results == "sets" else None,
        gold=count_known(model),
        iterations=model.n_iter_,
        converged=model.converged_,
        chain=_describe_chain(model),
        field=_describe_field(model, answers),
        **_describe_calibration(model),
        features=_describe_features(model),
        mean_confidence=told,
        undecided=None if options.undecided is None else _count_undecided(model, options.undecided),
        comparison=_compare(model),
        findings=describe_findings(model.findings_),
        most_reliable=best,
        least_reliable=worst,
        classifier=_describe_classifier(model),
        workers_with_few_answers=n_few,
        copies=model.copies_,
        least_certain=[] if told is None else find_least_certain(model),
    )


def _describe_scale(model: Model) -> Record | None:
    """Return whether whole numbers were taken for a scale, and why, if that had to be found out."""
    check = model.result_.scale_check
    return None if check is None else {"ordered": check.ordered, **asdict(check), "explanation": str(check)}


def _count_left_out(model: Model) -> Record | None:
    """Return how many workers were left out, and how many answers of theirs; None for nobody."""
    found = model.result_.left_out
    return None if found is None else dict(zip(("workers", "answers"), found, strict=True))


def _count_outside(model: Model, answers: Answers) -> Record | None:
    """The number of answers whose label is no class, and these labels, most frequent first; None if there are none."""
    labels = answers.labels
    outside = np.flatnonzero(lookup(model.classes_, to_column(labels)) < 0)
    if not len(outside):
        return None
    counts = count_codes(answers.label, answers.n_labels)
    order = outside[np.argsort(-counts[outside], kind="stable")]
    return {"answers": round(counts[outside].sum()), "labels": labels[order].tolist()}


def count_known(model: Model) -> int:
    """Return how many items have a label that was known."""
    gold = model.result_.given.gold
    return 0 if gold is None else int((gold.codes >= 0).sum())


def tabulate_workers(model: Model) -> pa.Table:
    """Return the worker report, those first who call for attention.

    Where answers have an order, it tells how accuracy changes over time.
    """
    table = model.worker_report()
    if model.result_.drift is not None:
        changes = model.drift_report()
        for name in _CHANGES:
            table = table.append_column(name, changes[name])
    kind, accuracy = rank_attention(table)
    return table.take(np.lexsort((accuracy, kind)))


def _choose_workers(workers: pa.Table, all_workers: bool) -> tuple[list[Record], list[Record], int]:
    """Return the most and the least reliable workers, and how many are left out."""
    ranked, n_few = rank_workers(workers)
    if all_workers:
        ranked, n_few = np.append(ranked, np.setdiff1d(np.arange(len(workers)), ranked)), 0
    n_best = len(ranked) if all_workers else min(N_WORKERS, -(-len(ranked) // 2))
    n_worst = min(N_WORKERS, len(ranked) - n_best)
    if len(ranked) - n_best - n_worst == 1:  # to say that one is left out would take as much room
        n_worst += 1
    return workers.take(ranked[:n_best]).to_pylist(), workers.take(ranked[::-1][:n_worst]).to_pylist(), n_few


def _name_format(model: Model) -> str | None:
    """Return the format of the source, None for a table with one row per answer."""
    kind, provenance = model.result_.task, model.responses_.provenance
    origin = getattr(kind, "origin", None)
    found = find_by_name(kind.name if kind.name == "masks" else None if origin is None else origin[1])
    return found.name if found is not None and found.kind != "table" else provenance.format or None


def rank_workers(report: pa.Table) -> tuple[NDArray[np.int64], int]:
    """Return the rows of a worker report from most to least reliable, and how many workers are left out.

    They are in the order of `rank_attention`, from its end. Workers with few answers are left out, since little is
    known about them, unless there are no others.
    """
    kind, accuracy = rank_attention(report)
    known = ~np.asarray(pc.match_substring(report["remarks"], FEW))
    ranked = np.lexsort((-accuracy, -kind))
    ranked = ranked[known[ranked]] if known.any() else ranked
    return ranked, len(kind) - len(ranked)


def find_least_certain(model: Model) -> list[Record]:
    """Return the items with the lowest confidence, each with the class that came second."""
    task, labels = model.result_.task, model.result_.labels
    if task.results == "sets":
        sets: pa.Table = model.to_frame()
        rows = np.argsort(sets["confidence"].to_numpy(), kind="stable")[:N_ITEMS]
        return [_describe_set(row) for row in sets.take(rows).to_pylist()]
    confidence = labels.confidence
    n_shown = min(N_ITEMS, len(confidence))
    rows = np.flatnonzero(confidence <= np.partition(confidence, n_shown - 1)[n_shown - 1])
    rows = rows[np.argsort(confidence[rows], kind="stable")][:N_ITEMS]
    found = labels.part(rows)
    table = pa.table({**found.keys, "label": to_column(found.values), "confidence": found.confidence})
    records: list[Record] = table.to_pylist()
    words = task.show(rows)
    if words is not None:
        named = zip(words, records, strict=True)
        records = [{**{key: record[key] for key in found.keys}, "text": word, **record} for word, record in named]
    for row, record in zip(rows, records, strict=True):
        others = np.flatnonzero(model.classes_ != record["label"])
        second = others[model.posterior_[row, others].argmax()] if len(others) else None
        record["runner_up"] = None if second is None else model.classes_[[second]].tolist()[0]
        record["runner_up_probability"] = None if second is None else float(model.posterior_[row, second])
    return records


def _describe_set(row: Record) -> Record:
    """Return a set of tags with the tag that is least certain."""
    chances = {name.removeprefix("p(").removesuffix(")"): value for name, value in row.items() if name.startswith("p(")}
    doubt = min(chances, key=lambda tag: abs(chances[tag] - 0.5), default=None)
    second = {"runner_up": doubt, "runner_up_probability": None if doubt is None else chances[doubt]}
    label = ", ".join(map(str, row["labels"] or ())) or "(no tag)"
    return {"item": row["item"], "label": label, "confidence": row["confidence"], **second}


def _count_undecided(model: Model, confidence: float) -> Record:
    """Return how many labels are kept, and how many of these are expected to be wrong."""
    found = model.undecided(confidence)
    figures = {"share_kept": found.share_kept, "expected_error_rate": found.expected_error_rate}
    return {**found._asdict(), **figures, "explanation": found.describe()}


def _describe_chain(model: Model) -> Record | None:
    """Return the coupling of a chain and where it comes from, for models that have one."""
    if not isinstance(model, HiddenMarkov):
        return None
    return {"coupling": model.coupling_, "explanation": model.explain_coupling()}


def _describe_field(model: Model, answers: Answers) -> Record | None:
    """Return the coupling of a field and what a shuffled graph says of it, for models that have one."""
    if not isinstance(model, MarkovField):
        return None
    explanation = str(model.graph_check_)
    if model.listeners == "unanswered":
        all_answered = Source(answers).find_told().all()
        explanation += f" {describe_limit(bool(all_answered), 'The graph')}"
    return {
        "coupling": model.coupling_,
        "usual_weight": model.usual_weight,
        "listeners": model.listeners,
        "explanation": explanation,
    }


def _describe_calibration(model: Model) -> Record:
    """Return the pseudo-counts, the power of probabilities and how it was found, for models that have them."""
    if not isinstance(model, LatentModel):
        return {"smoothing": None, "power": None, "calibration": None}
    return {"smoothing": model.smoothing_, "power": model.power_, "calibration": model.explain_calibration()}


def _describe_features(model: Model) -> Record | None:
    """Return what features were found to say, for models that were fitted with some."""
    if not isinstance(model, LatentModel) or model.feature_findings_ is None:
        return None
    return {**model.feature_findings_._asdict(), "explanation": model.explain_features()}


def _describe_classifier(model: Model) -> Record | None:
    """Return the row of a report for the classifier of features, if it has a say."""
    if not isinstance(model, LatentModel) or model.feature_findings_ is None or not model.feature_findings_.used:
        return None
    record: Record = model.classifier_report().to_pylist()[0]
    return record


def describe_verdict(model: Model, comparison: Comparison) -> str:
    """Return the verdict in words, also where there was nothing to decide."""
    return ALL_KNOWN if knows_all(model) else comparison.describe_test()


def describe_accuracy(model: Model, comparison: Comparison) -> dict[str, str | None]:
    """Return in words how many labels are right, what would tell more, and what is expected; None for nothing."""
    judged, expected = f"{model.result_.task.judged}s", comparison.describe_expected()
    words = {
        "headline": comparison.describe_headline(judged),
        "known_labels": comparison.describe_more(),
        "expected": expected if judged == "labels" or not expected else f"of {judged}, {expected}",
    }
    return {name: None if knows_all(model) else said or None for name, said in words.items()}


def knows_all(model: Model) -> bool:
    """Tell whether the label of every item was known."""
    return count_known(model) == model.result_.labels.n_items > 0


def _compare(model: Model) -> Record | None:
    comparison = getattr(model, "comparison_", None)
    if comparison is None:
        return None
    figures = asdict(comparison)
    del figures["n_items"]
    return {
        **{name: figures[name] for name in ("accuracy", "accuracy_low", "accuracy_high")},
        "verdict": comparison.verdict,
        "better": comparison.better,
        "agreement": comparison.agreement,
        **figures,
        "words": {
            **describe_accuracy(model, comparison),
            "verdict": describe_verdict(model, comparison),
            "record": comparison.describe_record() if comparison.has_record else None,
            "alpha": comparison.describe_agreement(),
        },
    }
