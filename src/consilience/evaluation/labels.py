"""Labels compared with known ones, item by item."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..answers.classes import choose_spelling, find_by_value, normalise_column, normalise_label, to_numbers
from ..answers.columns import (
    Column,
    Values,
    encode_in_order_of_appearance,
    find_missing,
    is_text,
    lookup,
    name_composite,
    objects,
    plain_labels,
    spell_surrogates,
    to_values,
    tuples_to_ids,
)
from ..answers.gold import KEY_REMEDY, find_classes, find_label, find_nearest, open_gold, tell_between
from ..answers.items import read_positions
from ..answers.tables import Table, is_table, open_frame
from ..answers.tagging import looks_iob2
from ..arguments import check_truth, is_among
from ..errors import DataWarning, InputError, Sentence, about, listing, plural, shorten, warn
from ..formats.reading import open_path
from ..kernels import Floats
from ..kinds.spans import FUSED, Spans, find_span_columns
from ..metrics import log_loss
from ..metrics.labels import (
    ClassScore,
    SpanScore,
    class_f1,
    count_invalid_transitions,
    relaxed_span_score,
    span_score,
)
from ..metrics.probabilities import brier, calibration_error, rank_correlation
from ..metrics.scales import is_number, quadratic_kappa
from ..models.fitted import FittedModel
from ..rankings.bradley_terry import BradleyTerry
from .questions import QuestionsEvaluation, pair_questions, split_labels
from .rankings import evaluate_ranking, find_ranking, of_model
from .spans import evaluate_spans, open_both, show_scores
from .tags import are_sets, evaluate_sets

_PROBABILITY = re.compile(r"p\((.*)\)", re.DOTALL)


@dataclass(frozen=True)
class SpanEvaluation:
    """How good tags are as spans.

    Attributes
    ----------
    strict : SpanScore
        A span counts if start, end and type are all right.
    relaxed : SpanScore
        The part of each span that is right counts.
    n_invalid_transitions : int
        Steps of the given labels, those without gold included, that IOB2 forbids: I-X after neither B-X nor I-X.
    """

    strict: SpanScore
    relaxed: SpanScore
    n_invalid_transitions: int

    def to_dict(self) -> dict[str, object]:
        """Return the same as plain numbers and dicts."""
        return {
            "strict": self.strict._asdict(),
            "relaxed": self.relaxed._asdict(),
            "n_invalid_transitions": self.n_invalid_transitions,
        }


@dataclass(frozen=True)
class ScaleEvaluation:
    """How good labels are as levels of a scale.

    Attributes
    ----------
    within_one : float
        Share of labels that are right, or the level next to the right one.
    absolute_error : float
        By how many levels labels are off, on average.
    quadratic_kappa : float
        Cohen's kappa with quadratic weights.
    rank_correlation : float
        That of Spearman.
    """

    within_one: float
    absolute_error: float
    quadratic_kappa: float
    rank_correlation: float


@dataclass(frozen=True)
class Evaluation:
    """How good labels are.

    Attributes
    ----------
    n_matched : int
        Items with both a label and a known one; all scores but those of spans are about these.
    n_gold_only : int
        Items with a known label, and no other.
    n_labels_only : int
        Items with a label, and no known one.
    accuracy, macro_f1 : float
        As in `consilience.metrics`.
    log_loss, brier, calibration_error : float or None
        Scores of the probabilities, where the labels come with any. A class without probability has probability 0.
    classes : tuple of (label, ClassScore)
        Precision, recall, F1 and support of each class that is a label or known.
    spans : SpanEvaluation or None
        Scores of spans, for sequences whose classes are IOB2 tags. All spans of gold count, also in sequences that have
        no label: these are missed.
    scale: ScaleEvaluation or None
        Scores of levels, for ordered classes.
    """

    n_matched: int
    n_gold_only: int
    n_labels_only: int
    accuracy: float
    macro_f1: float
    log_loss: float | None
    brier: float | None
    calibration_error: float | None
    classes: tuple[tuple[object, ClassScore], ...]
    spans: SpanEvaluation | None = None
    scale: ScaleEvaluation | None = None

    def __repr__(self) -> str:
        texts = [f"{name} {value:.3f}" for name, value in self._figures()]
        return f"Evaluation({plural(self.n_matched, 'item')}: {', '.join(texts)})"

    def _repr_html_(self) -> str:
        compared = f"{self.n_matched:,}; {self.n_gold_only:,} more have gold only, {self.n_labels_only:,} a label only"
        facts = [("Items", compared), *((name, f"{value:.3f}") for name, value in self._figures())]
        return show_scores(type(self).__name__, facts, "class", self.classes)

    def _figures(self) -> list[tuple[str, float]]:
        """Return the scores that there are, with their names."""
        figures = {
            "accuracy": self.accuracy,
            "macro F1": self.macro_f1,
            "strict span F1": None if self.spans is None else self.spans.strict.f1,
            "log loss": self.log_loss,
            "Brier score": self.brier,
            "calibration error": self.calibration_error,
            "within one level": None if self.scale is None else self.scale.within_one,
            "absolute error": None if self.scale is None else self.scale.absolute_error,
            "quadratic kappa": None if self.scale is None else self.scale.quadratic_kappa,
            "rank correlation": None if self.scale is None else self.scale.rank_correlation,
        }
        return [(name, value) for name, value in figures.items() if value is not None]

    def to_dict(self) -> dict[str, object]:
        """Return the same as plain numbers, lists and dicts; each class as one dict."""
        figures = {name: value for name, value in vars(self).items() if name not in ("classes", "spans", "scale")}
        return {
            **figures,
            "scale": None if self.scale is None else vars(self.scale),
            "spans": None if self.spans is None else self.spans.to_dict(),
            "classes": [{"class": name, **score._asdict()} for name, score in self.classes],
        }


class _Labels(NamedTuple):
    """A table of labels: what identifies each row, and its label."""

    table: Table
    keys: list[Column]
    label: Column
    rows: NDArray[np.int64]  # in the table

    def describe(self, row: int) -> str:
        """Return the key of a row, for a message."""
        return " at position ".join(shorten(to_values(key)[[row]].tolist()[0]) for key in self.keys)


class _Paired(NamedTuple):
    """Labels and known ones, in codes of the same classes.

    Attributes
    ----------
    classes : ndarray
        All that are a label, known, or have probabilities, in the order of appearance.
    names : list
        How to show them.
    guess : int64 array
        The class of each row of the labels.
    row, gold_row : int64 array
        The row of each item of gold among the labels, -1 if it has none, and its row in gold.
    truth : int64 array
        The known class of each of these items.
    posterior : array or None
        The probabilities of the items that have both.
    """

    classes: Values
    names: list[object]
    guess: NDArray[np.int64]
    row: NDArray[np.int64]
    gold_row: NDArray[np.int64]
    truth: NDArray[np.int64]
    posterior: Floats | None


def evaluate(
    labels: object,
    gold: object,
    item: str | None = None,
    label: str | None = None,
    sequence: str | None = None,
    position: str | None = None,
    normalise: bool = False,
    ordered: bool | None = None,
    classes: Sequence[object] | None = None,
    separator: Any = None,
) -> Any:
    """Compare labels with known ones.

    Parameters
    ----------
    labels : fitted model, table, path or Spans
        Of a ranking (`BradleyTerry`, or a table or file of its `ranking_`), `gold` is a list of candidates, the best
        first; {candidate: score}; a table with candidate and score or rank; or known verdicts, as for `rank`. Of a
        table, one row per item: item (or sequence and position), label, and if there are probabilities a column
        ``p(<class>)`` for each class. This is what `to_frame` returns and `consilience fuse -o` writes.
    gold : dict, Series, table, path or Spans
        Known labels: {item: label} or {(sequence, position): label}, or a table with the same key columns and label.
        The label may also be called gold or truth. Missing labels are not known. 7 and "7" are the same, both as an
        item and as a label. Known spans (`Spans.gold`, or those of the only worker) judge a model that was fitted to
        `Spans`, or the spans of one worker. Both may be files of annotation tools, or tables of spans with columns
        document, start, end and label. Of a file to which fused spans were written, these are judged.
    item, label, sequence, position : str, optional
        Names of columns, tried first in both tables; in a table that has no such column the usual names are looked for.
    normalise : bool, default False
        Whether labels that differ only in case, spaces or Unicode form are the same.
    ordered : bool, optional
        Whether labels are levels of a scale, so that it counts how far they are off. By default they are if the model
        took them for that.
    classes : sequence of labels, optional
        The levels from low to high. By default those of the model, or the order of the columns of probabilities;
        numbers are sorted.
    separator : str or mapping, optional
        What stands between tags, where labels are sets of these in cells of text.

    Returns
    -------
    Evaluation
        Or `SpansEvaluation`, where spans are known, `TagsEvaluation` of sets of tags, or `RankingEvaluation`. Of
        several questions (`Questions`, or a table of their labels if no `label` is named), a `QuestionsEvaluation`: a
        dict from each to its evaluation. `gold` is then as for `fuse`, and `ordered`, `classes` and `separator` may be
        mappings from questions.

    Examples
    --------
    >>> import consilience as cs
    >>> labels = {"item": [1, 2, 3], "label": ["a", "b", "b"], "p(a)": [0.9, 0.2, 0.4], "p(b)": [0.1, 0.8, 0.6]}
    >>> result = cs.evaluate(labels, {1: "a", 2: "b", 4: "a"})
    >>> result.n_matched, result.n_gold_only, result.n_labels_only, result.accuracy
    (2, 1, 1, 1.0)
    >>> round(result.log_loss, 3)
    0.164
    """
    check_truth("normalise", "evaluate", normalise)
    if isinstance(labels, BradleyTerry):
        return evaluate_ranking(of_model(labels), gold)
    labels, gold = open_both(labels, gold)
    if isinstance(gold, Spans):
        return evaluate_spans(labels, gold)
    labels = open_path(labels)
    asked = split_labels(labels, label)
    if asked is not None:
        settings = {"ordered": ordered, "classes": classes, "separator": separator}
        every = QuestionsEvaluation()
        for name, (own, truth, rest) in pair_questions(asked, gold, settings).items():
            with about(name):
                every[name] = evaluate(own, truth, item, None, sequence, position, normalise, **rest)
        return every
    ranked = find_ranking(labels)
    if ranked is not None:
        return evaluate_ranking(ranked, gold)
    gold = _join_parts(labels, gold)
    if are_sets(labels, separator):
        return evaluate_sets(labels, gold, separator)
    names = {"item": item, "label": label, "known label": label, "sequence": sequence, "position": position}
    given, known = _read_both(labels, gold, names)
    ordered, classes = _read_scale(labels, ordered, classes)
    pair = _pair(given, known, normalise, (classes or ()) if ordered else None)
    both = pair.row >= 0
    truth, guess = pair.truth[both], pair.guess[pair.row[both]]
    levels = _find_levels(pair, classes) if ordered else None
    judged = _judge(truth, pair.posterior, len(pair.classes))
    scores = class_f1(truth, guess)
    return Evaluation(
        n_matched=len(truth),
        n_gold_only=len(both) - len(truth),
        n_labels_only=len(given.rows) - len(truth),
        accuracy=float(np.mean(truth == guess)),
        macro_f1=sum(score.f1 for score in scores.values()) / len(scores),
        log_loss=judged[0],
        brier=judged[1],
        calibration_error=judged[2],
        classes=tuple((name, scores[code]) for code, name in enumerate(pair.names) if code in scores),
        spans=_judge_spans(given, known, pair) if len(given.keys) == 2 and looks_iob2(pair.classes) else None,
        scale=None if levels is None else _judge_levels(levels[truth], levels[guess]),
    )


def _join_parts(labels: object, gold: object) -> object:
    """Return known labels with ids of items that several columns identify, if those of a model are such."""
    answers = labels.result_.given.answers if isinstance(labels, FittedModel) else None
    parts = [] if answers is None else name_composite(answers.columns)
    if answers is None or not parts:
        return gold
    if isinstance(gold, Mapping) and not set(parts) <= set(gold):
        return dict(zip(tuples_to_ids(gold), gold.values(), strict=True))
    opened = open_path(gold)
    if not is_table(opened):
        return opened
    table = open_frame(opened, "gold")
    return table.prefer({"item": answers.columns["item"]}) if set(parts) <= set(table.names) else table


def _read_scale(
    labels: object, ordered: bool | None, classes: Sequence[object] | None
) -> tuple[bool, Sequence[object] | None]:
    """Return whether labels are levels, and which these are, if that is known: by default as the model has it."""
    if isinstance(labels, FittedModel) and labels.result_.names.positions is not None and ordered is not False:
        return True, labels.result_.names.classes.tolist() if classes is None else classes
    return bool(ordered), classes


def _find_levels(pair: _Paired, classes: Sequence[object] | None) -> NDArray[np.float64]:
    """Return the rank of each class of the pair on its scale; numbers are told by their value."""
    if classes is not None:
        levels = objects([str(each) for each in classes])
        place = find_by_value(levels, objects([str(each) for each in pair.names]))
        if (place < 0).any():
            unknown = [name for name, at in zip(pair.names, place.tolist(), strict=True) if at < 0]
            raise InputError(
                f"Labels are not among the classes {listing(levels.tolist())}: {listing(unknown)}.",
                Sentence("Name all levels from low to high with {classes}."),
                keyword="classes",
            )
        return place.astype(np.float64)
    if all(map(is_number, pair.names)):
        return np.unique([float(str(name)) for name in pair.names], return_inverse=True)[1].astype(np.float64)
    if pair.posterior is not None and pair.posterior.shape[1] == len(pair.classes):
        return np.arange(len(pair.classes), dtype=np.float64)  # in the order of the columns of probabilities
    raise InputError(
        f"It is not known which level is higher: {listing(pair.names)}.",
        Sentence("Name the levels from low to high with {classes}."),
        keyword="classes",
    )


def _judge_levels(truth: Floats, guess: Floats) -> ScaleEvaluation:
    """Score levels by how far they are off."""
    away = np.abs(truth - guess)
    scores = quadratic_kappa(truth, guess), rank_correlation(truth, guess)
    return ScaleEvaluation(float(np.mean(away <= 1)), float(away.mean()), *scores)


def _read_both(labels: object, gold: object, names: Mapping[str, str | None]) -> tuple[_Labels, _Labels]:
    """Return the labels and the known ones."""
    paired = names["sequence"] is not None or names["position"] is not None
    frame = labels.to_frame() if isinstance(labels, FittedModel) else open_path(labels)
    table = open_frame(frame, "the table of labels").prefer(names)
    paired |= table.has_sequences()
    known_table = open_gold(gold, paired).prefer(names)
    names = {role: table.preferred.get(role, name) for role, name in names.items()}
    _check_spans(paired, table, known_table)
    _check_names(names, table, known_table)
    _check_order(table, known_table)
    roles = ("sequence", "position") if paired else ("item",)
    return _read(table, (*roles, "label")), _read(known_table, (*roles, "known label"))


def _pair(given: _Labels, known: _Labels, normalise: bool, scale: Sequence[object] | None) -> _Paired:
    """Match labels with known ones, and put both into codes of the same classes.

    `scale` holds the levels, none if they are not known; it is None for classes without an order.
    """
    spell = choose_spelling(encode_in_order_of_appearance(given.label)[1]) if normalise else None
    if spell is not None:
        given, known = (each._replace(label=normalise_column(each.label, spell)) for each in (given, known))
    row, gold_row = _match(given, known)
    both = row >= 0
    shown, posterior = _probabilities(given.table, given.rows[row[both]])
    if spell is not None:
        shown, posterior = _merge_classes(list(map(spell, shown)), posterior)
    levels = None if scale is None else _list_levels(given, known, scale or shown, shown)
    if levels is not None:
        known = _place_between(known, levels, gold_row[both])
    written = [given.label, known.label, pa.array(shown, pa.string())]
    said, gold_said, named = compared = _to_one_type(written)
    classes = encode_in_order_of_appearance(pa.concat_arrays([named, said, gold_said]))[1]
    guess, truth = lookup(classes, said), lookup(classes, gold_said)[gold_row]
    is_named = np.isin(truth[both], np.concatenate([guess, lookup(classes, named)]))
    strange, used = (_list_distinct(each) for each in (gold_said.take(gold_row[both][~is_named]), said))
    _doubt_names(strange, used, [*used, *shown], bool(is_named.any()))
    names = _name_classes(classes, list(zip(written, compared, strict=True)))
    return _Paired(classes, names, guess, row, gold_row, truth, posterior)


def _place_between(known: _Labels, levels: Values, rows: NDArray[np.int64]) -> _Labels:
    """Return known labels as levels of a scale of numbers: the nearest, as in a fit; `rows` are those that are used."""
    everywhere = np.ones(len(known.label), bool)
    exact = find_classes(known.label, everywhere, levels, normalised=False)
    code = find_nearest(known.label, everywhere, exact, levels)
    tell_between(int((code != exact)[rows].sum()))
    texts = [str(each) for each in to_values(known.label).tolist()]
    placed = [str(levels[at]) if at >= 0 else text for at, text in zip(code.tolist(), texts, strict=True)]
    return known._replace(label=pa.array(list(map(spell_surrogates, placed)), pa.string()))


def _list_levels(given: _Labels, known: _Labels, named: Sequence[object], shown: list[str]) -> Values | None:
    """Return the levels, written as the labels are, if they are numbers: those named, else those of the labels.

    Where no levels are named, whole numbers that are known are levels beside labels that are.
    """
    written = objects(list(dict.fromkeys([*map(str, to_values(given.label).tolist()), *shown])))
    levels = objects(list(map(str, named))) if named else written
    values, place = to_numbers(levels), find_by_value(written, levels)
    if values is None:
        return None
    levels[place >= 0] = written[place[place >= 0]]
    if named or (values != np.round(values)).any():
        return levels
    gold = [(str(each), to_numbers(objects([each]))) for each in dict.fromkeys(to_values(known.label).tolist())]
    further = [text for text, value in gold if value is not None and value % 1 == 0]
    added = objects(further)[find_by_value(levels, objects(further)) < 0]
    return objects([*levels.tolist(), *added.tolist()])


def _check_names(names: Mapping[str, str | None], *tables: Table) -> None:
    """Raise where a column that was named is in no table."""
    for role in ("item", "label", "sequence", "position"):
        name = names[role]
        if name is not None and not any(is_among(name, table.names) for table in tables):
            found = " and ".join(f"{table.name} has {listing(map(str, table.names))}" for table in tables)
            raise InputError(
                f"There is no column {shorten(name)}: {found}.",
                Sentence(f"Name one of them with {{{role}}}."),
                keyword=role,
            )


def _check_spans(paired: bool, given: Table, known: Table) -> None:
    """Raise an error if known labels are spans, and the labels are those of tokens."""
    if paired and find_span_columns(known) is not None:
        raise InputError(
            f"{known.name} holds spans (it has {listing(known.names)}), and {given.name} labels of tokens.",
            "Give the fused spans: the file that fuse wrote, or the model that was fitted to spans.",
        )


def _check_order(given: Table, known: Table) -> None:
    """Warn if the tables look as if they had been given in the wrong order."""
    judged, judge = (
        [str(name) for name in table.names if _PROBABILITY.fullmatch(str(name))] for table in (given, known)
    )
    if judge and not judged:
        warn(
            DataWarning(
                f"{known.name} has probabilities ({listing(judge, 2)}) and {given.name} has none: are they in the "
                "right order? Labels come first, gold second."
            )
        )


def _list_distinct(column: pa.Array) -> list[object]:
    return list(dict.fromkeys(to_values(column).tolist()))


def _doubt_names(strange: list[object], labels: list[object], possible: list[object], some: bool) -> None:
    """Warn if known labels seem to be written in another way than the labels.

    Parameters
    ----------
    strange : list
        Known labels that no item has, nor can have.
    labels : list
        Those that items have.
    possible : list
        Those that they can have.
    some : bool
        Whether there are known labels beside the strange ones.
    """
    forms = set(map(normalise_label, possible))
    alike = [each for each in strange if normalise_label(each) in forms]
    if alike:
        warn(
            DataWarning(
                f"Known labels ({listing(alike)}) are written in another way than the labels ({listing(labels)}): they "
                "differ in case, spaces or Unicode form. So items with these count as wrong.",
                Sentence("To take them as the same, use {normalise}.", normalise=True),
            )
        )
    elif not some:
        warn(
            DataWarning(
                f"No known label ({listing(strange)}) is among the labels ({listing(labels)}), so all of these count "
                "as wrong.",
                "Check that both name the classes alike.",
            )
        )


def _judge_spans(given: _Labels, known: _Labels, pair: _Paired) -> SpanEvaluation:
    """Score tags as spans. Where an item has no label, there is no span."""
    guess = pair.classes[pair.guess]
    owner, place = (each[pair.gold_row] for each in _sort_keys(known))
    order = np.lexsort((place, owner))
    found = np.where(pair.row >= 0, guess[pair.row], "O")
    tags = pair.classes[pair.truth][order], found[order], np.bincount(owner)
    owner, place = _sort_keys(given)
    n_invalid = count_invalid_transitions(guess[np.lexsort((place, owner))], np.bincount(owner))
    return SpanEvaluation(span_score(*tags), relaxed_span_score(*tags), n_invalid)


def _sort_keys(side: _Labels) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Return the number of each row's sequence, and that of its position."""
    owner, _ = encode_in_order_of_appearance(side.keys[0])
    return owner, np.unique(read_positions(side.keys[1], side.table.name), return_inverse=True)[1]


def _name_classes(classes: Values, columns: list[tuple[Column, pa.Array]]) -> list[object]:
    """Return the names of classes as the labels spell them: text that was compared as a number stays text.

    Each of `columns` is one as it was given and as it was compared; the first that holds a class names it.
    """
    given = columns[0][0]
    if isinstance(given, np.ndarray) or not is_text(given.type) or classes.dtype == object:
        return list(classes.tolist())
    names: dict[int, str] = {}
    for column, compared in columns:
        codes, first = np.unique(lookup(classes, compared), return_index=True)
        for code, text in zip(codes.tolist(), to_values(column)[first].tolist(), strict=True):
            names.setdefault(code, str(text))
    return [names[code] for code in range(len(classes))]


def _judge(truth: NDArray[np.int64], posterior: Floats | None, n_classes: int) -> tuple[float | None, ...]:
    """Return log loss, Brier score and calibration error; classes beyond the posterior's have probability 0."""
    if posterior is None:
        return None, None, None
    padded = np.pad(posterior, ((0, 0), (0, n_classes - posterior.shape[1])))
    codes = np.arange(n_classes)
    return log_loss(truth, padded, codes), brier(truth, padded, codes), calibration_error(truth, padded, codes)


def _read(table: Table, roles: tuple[str, ...]) -> _Labels:
    """Return the rows that have a label; `roles` are those of the keys, then that of the label."""
    *names, label_name = (
        find_label(table, "label") if role == "known label" else table.need(role, parameter=role) for role in roles
    )
    if table.n_rows == 0:
        raise InputError(f"{table.name} has columns but no rows.", "Give a table with labels.")
    keys = [table.values(name, KEY_REMEDY) for name in names]
    label = table.read(label_name)
    rows = np.setdiff1d(_pick_fused(table), find_missing(label))
    if not len(rows):
        raise InputError(f"Column {label_name!r} of {table.name} is empty throughout.", "Give at least one label.")
    return _Labels(table, [key.take(rows) for key in keys], plain_labels(label.take(rows)), rows)


def _pick_fused(table: Table) -> NDArray[np.int64]:
    """Return the rows of fused labels, where a file has these beside the answers of workers; else all rows."""
    worker = table.find_usual("worker")
    if worker is None:
        return np.arange(table.n_rows)
    fused = np.flatnonzero(lookup(np.array([FUSED], dtype=object), table.read(worker)) >= 0)
    return fused if len(fused) else np.arange(table.n_rows)


def _match(given: _Labels, known: _Labels) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each item of gold its row among the labels, -1 if it has none, and its row in gold."""
    _check_unique(given)
    gold_rows = _distinct_items(known)
    row = _find_rows(given.keys, [key.take(gold_rows) for key in known.keys])
    if (row < 0).all():
        here, there = (listing(to_values(side.keys[0])[:3].tolist()) for side in (known, given))
        raise InputError(
            f"None of the {plural(len(gold_rows), 'item')} in {known.table.name} occurs in {given.table.name}: the "
            f"former has {here}, the latter {there}.",
            "Check that both use the same ids.",
        )
    return row, gold_rows


def _check_unique(given: _Labels) -> None:
    """Raise unless each item has one label."""
    distinct, first = np.unique(_number(given.keys), return_index=True)
    n_more = len(given.rows) - len(distinct)
    if n_more:
        again = int(np.setdiff1d(np.arange(len(given.rows)), first)[0])
        raise InputError(
            f"{given.table.name} has {plural(n_more, 'row')} about an item that has one already, such as "
            f"{given.describe(again)} at {given.table.locate(int(given.rows[again]))}.",
            "Keep one label per item.",
        )


def _distinct_items(known: _Labels) -> NDArray[np.int64]:
    """Return one row for each item, after a check that its other rows say the same."""
    _, first, item = np.unique(_number(known.keys), return_index=True, return_inverse=True)
    label, _ = encode_in_order_of_appearance(known.label)
    clash = np.flatnonzero(label != label[first][item])
    if len(clash):
        place = known.table.locate(int(known.rows[clash[0]]))
        raise InputError(
            f"{known.table.name} gives more than one label to {plural(len(np.unique(item[clash])), 'item')}, such as "
            f"{known.describe(int(clash[0]))} at {place}.",
            "Keep one label per item.",
        )
    return np.sort(first)


def _number(keys: list[Column]) -> NDArray[np.int64]:
    """Return one number per row, the same for the same key."""
    codes = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        part, values = encode_in_order_of_appearance(key)
        codes = codes * len(values) + part
    return codes


def _find_rows(keys: list[Column], wanted: list[Column]) -> NDArray[np.int64]:
    """Return the row of `keys`, which are distinct, that has each wanted key, or -1."""
    codes = _number(keys)
    wanted_codes = np.zeros(len(wanted[0]), np.int64)
    missing = np.zeros(len(wanted_codes), bool)
    for key, other in zip(keys, wanted, strict=True):
        _, values = encode_in_order_of_appearance(key)
        part = lookup(values, other)
        missing |= part < 0
        wanted_codes = wanted_codes * len(values) + part
    order = np.argsort(codes)
    at = order[np.minimum(np.searchsorted(codes, wanted_codes, sorter=order), len(codes) - 1)]
    return np.where(missing | (codes[at] != wanted_codes), -1, at)


def _probabilities(table: Table, rows: NDArray[np.int64]) -> tuple[list[str], Floats | None]:
    """Return the names of the classes that have a column of probabilities, and these columns."""
    found = {str(name): match[1] for name in table.names if (match := _PROBABILITY.fullmatch(str(name)))}
    if not found or all(len(find_missing(table.read(name))) == table.n_rows for name in found):
        return [], None
    columns = [table.values(name, "Every label needs its probabilities.") for name in found]
    try:
        posterior = np.column_stack([np.asarray(to_values(column)[rows], np.float64) for column in columns])
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"Columns {listing(found)} of {table.name} must hold numbers: {error}.") from error
    return list(found.values()), posterior


def _merge_classes(names: list[str], posterior: Floats | None) -> tuple[list[str], Floats | None]:
    """Return each name once, with the sum of its columns."""
    distinct = list(dict.fromkeys(names))
    if posterior is None or len(distinct) == len(names):
        return names, posterior
    return distinct, posterior @ np.array([[name == other for other in distinct] for name in names], float)


def _to_one_type(columns: list[Column]) -> list[pa.Array]:
    """Return columns in one type in which what is meant to be equal is equal: as numbers, or as the first, or as text.

    No two values of a column become one by that.
    """
    arrays = [column for column in columns if not isinstance(column, np.ndarray)]
    if len(arrays) < len(columns):
        return list(map(_to_text, columns))
    first = arrays[0].type
    number = pa.types.is_integer(first) or pa.types.is_floating(first)
    for kind in (first, pa.float64()) if number else (pa.float64(), first) if is_text(first) else (first,):
        try:
            cast = [pc.cast(array, kind) for array in arrays]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        if all(map(_same_distinction, arrays, cast)):
            return cast
    try:
        return [pc.cast(array, pa.string()) for array in arrays]
    except pa.ArrowInvalid:  # bytes that are no text
        return list(map(_to_text, columns))


def _to_text(column: Column) -> pa.Array:
    return pa.array([spell_surrogates(str(value)) for value in to_values(column).tolist()], pa.string())


def _same_distinction(old: pa.Array, new: pa.Array) -> bool:
    """Tell whether a column has as many distinct values as before, and all of them equal to themselves."""
    return len(pc.unique(old)) == len(pc.unique(new)) and not len(find_missing(new))
