"""Labels compared with known ones, item by item; and `evaluate`, which compares whatever was fused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..answers.classes import choose_spelling, find_by_value, normalise_column, normalise_label, to_number, to_numbers
from ..answers.columns import (
    Column,
    Indices,
    Values,
    encode_in_order_of_appearance,
    find_missing,
    lookup,
    name_composite,
    objects,
    plain_labels,
    to_column,
    to_values,
    tuples_to_ids,
)
from ..answers.gold import KEY_REMEDY, find_classes, find_label, find_nearest, open_gold
from ..answers.items import read_positions
from ..answers.tables import Table, is_table, key_roles, open_frame
from ..answers.tagging import looks_iob2
from ..arguments import check_truth, is_among
from ..errors import InputError, Sentence, about, listing, plural, shorten, warn_of
from ..formats.reading import open_path
from ..kernels import Floats, Integers
from ..kinds.base import FUSED
from ..kinds.spans import Spans, find_span_columns
from ..metrics import log_loss
from ..metrics.labels import class_f1, count_invalid_transitions, quadratic_kappa, relaxed_span_score, span_score
from ..metrics.probabilities import brier, calibration_error, rank_correlation
from ..models.base import Model
from ..rankings.bradley_terry import BradleyTerry
from .evaluation import Evaluation, QuestionsEvaluation
from .questions import pair_questions, split_labels
from .rankings import evaluate_ranking, find_ranking
from .spans import evaluate_spans, open_both
from .tags import are_sets, evaluate_sets

_PROBABILITY = re.compile(r"p\((.*)\)", re.DOTALL)


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
        Of several questions (`Questions`, or a table of their labels if no `label` is named), a `QuestionsEvaluation`:
        a dict from each to its evaluation. `gold` is then as for `fuse`, and `ordered`, `classes` and `separator` may
        be mappings from questions.

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
    if not isinstance(labels, BradleyTerry):
        labels, gold = open_both(labels, gold)
        if isinstance(gold, Spans):
            return evaluate_spans(labels, gold)
        labels = open_path(labels)
    questions = split_labels(labels, label)
    if questions is not None:
        settings = {"ordered": ordered, "classes": classes, "separator": separator}
        every = QuestionsEvaluation()
        for name, (own, truth, rest) in pair_questions(questions, gold, settings).items():
            with about(name):
                every[name] = evaluate(own, truth, item, None, sequence, position, normalise, **rest)
        return every
    ranked = find_ranking(labels)
    if ranked is not None:
        return evaluate_ranking(ranked, gold)
    if isinstance(labels, Model):
        gold = _join_parts(labels, gold)
        names = labels.result_.names
        if names.positions is not None and ordered is not False:
            ordered, classes = True, names.classes.tolist() if classes is None else classes
    if are_sets(labels, separator):
        return evaluate_sets(labels, gold, separator)
    columns = {"item": item, "label": label, "known label": label, "sequence": sequence, "position": position}
    return compare_labels(labels, gold, columns, normalise, bool(ordered), classes)


def _join_parts(model: Model, gold: object) -> object:
    """Known labels with the ids of items that several columns identify in the answers of a model."""
    answers = model.result_.given.answers
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


@dataclass(frozen=True)
class _Side:
    """The rows of a table that have a label: their keys, their labels, and where they are in the table."""

    table: Table
    keys: list[Column]
    label: Column
    rows: Indices

    def locate(self, row: int) -> str:
        """A row with its key, for messages."""
        key = " at position ".join(shorten(to_values(each)[[row]].tolist()[0]) for each in self.keys)
        return f"{key} at {self.table.locate(int(self.rows[row]))}"


def compare_labels(
    labels: object,
    gold: object,
    names: Mapping[str, str | None],
    normalise: bool,
    ordered: bool,
    levels: Sequence[object] | None,
) -> Evaluation:
    """Compare the labels of items with known ones; `names` are the columns that are given, by role."""
    given, known = _read_both(labels, gold, names)
    if normalise:
        spell = choose_spelling(encode_in_order_of_appearance(given.label)[1])
        given, known = (replace(each, label=normalise_column(each.label, spell)) for each in (given, known))

    row, gold_row = _match(given, known)
    both = row >= 0
    shown, posterior = _read_probabilities(given.table, given.rows[row[both]])
    if normalise and posterior is not None:
        spelled = [str(spell(name)) for name in shown]
        shown = list(dict.fromkeys(spelled))
        posterior = posterior @ np.array([[name == other for other in shown] for name in spelled], float)

    ranks: Values = objects([])
    if ordered:
        ranks = _find_levels(given.label, known.label, shown, levels)
        near = find_nearest(
            known.label, find_classes(known.label, ranks), ranks, np.isin(np.arange(len(known.rows)), gold_row[both])
        )
        texts = [str(each) for each in to_values(known.label).tolist()]
        placed = [str(ranks[at]) if at >= 0 else text for at, text in zip(near.tolist(), texts, strict=True)]
        known = replace(known, label=to_column(placed))

    # Classes: those with probabilities, other labels, then known labels that no item has.
    codes, said = encode_in_order_of_appearance(given.label)
    place = find_classes(to_column(shown), said)
    others = [each for at, each in enumerate(said.tolist()) if at not in place]
    own = said.tolist()
    classes = [own[at] if at >= 0 else name for name, at in zip(shown, place.tolist(), strict=True)] + others
    guess = lookup(objects(classes), to_column(said))[codes]
    n_possible, truth = len(classes), find_classes(known.label, objects(classes))
    new, values = encode_in_order_of_appearance(known.label.take(np.flatnonzero(truth < 0)))
    truth[truth < 0] = len(classes) + new
    classes += (
        [str(each) for each in values.tolist()] if all(type(each) is str for each in classes) else values.tolist()
    )
    truth = truth[gold_row]
    strange = [classes[code] for code in dict.fromkeys(truth[both & (truth >= n_possible)].tolist())]
    _doubt_names(strange, own, shown, bool((truth[both] < n_possible).any()))

    figures: dict[str, float | None] = {
        "n_matched": int(both.sum()),
        "n_gold_only": int((~both).sum()),
        "n_labels_only": len(given.rows) - int(both.sum()),
    }
    known_codes, guessed = truth[both], guess[row[both]]
    table = class_f1(known_codes, guessed)
    figures["accuracy"] = float(np.mean(known_codes == guessed))
    figures["macro_f1"] = sum(score.f1 for score in table.values()) / len(table)
    figures |= dict.fromkeys(("log_loss", "brier", "calibration_error"))
    if posterior is not None:  # other classes have probability 0
        padded = np.pad(posterior, ((0, 0), (0, len(classes) - posterior.shape[1])))
        for name, judge in (("log_loss", log_loss), ("brier", brier), ("calibration_error", calibration_error)):
            figures[name] = judge(known_codes, padded, np.arange(len(classes)))
    if ordered:
        spellings = objects([str(each) for each in classes])
        rank = find_by_value(ranks, spellings).astype(np.float64)
        if (rank < 0).any():
            raise InputError(
                f"Labels are not among the classes {listing(ranks.tolist())}: {listing(spellings[rank < 0].tolist())}.",
                Sentence("Name all levels from low to high with {classes}."),
                keyword="classes",
            )
        away = np.abs(rank[known_codes] - rank[guessed])
        figures["within_one"], figures["absolute_error"] = float(np.mean(away <= 1)), float(away.mean())
        figures["quadratic_kappa"] = quadratic_kappa(rank[known_codes], rank[guessed])
        figures["rank_correlation"] = rank_correlation(rank[known_codes], rank[guessed])
    scores = {}
    if len(given.keys) == 2 and looks_iob2(objects(classes)):
        tags = objects(classes)
        owner, order = _sort_rows(known, gold_row)
        found = np.where(row >= 0, tags[guess[row]], "O")  # where an item has no label, there is no span
        sides = tags[truth][order], found[order], np.bincount(owner)
        scores = {"strict": span_score(*sides), "relaxed": relaxed_span_score(*sides)}
        owner, order = _sort_rows(given, np.arange(len(given.rows)))
        figures["n_invalid_transitions"] = count_invalid_transitions(tags[guess][order], np.bincount(owner))
    by_class = {name: table[code] for code, name in enumerate(classes) if code in table}
    return Evaluation("item", figures, scores, "class", by_class)


# ------------------------------------------------------------------------------------------------------ reading tables


def _read_both(labels: object, gold: object, names: Mapping[str, str | None]) -> tuple[_Side, _Side]:
    """Labels and known labels, from tables in any form."""
    frame = labels.to_frame() if isinstance(labels, Model) else open_path(labels)
    table = open_frame(frame, "the table of labels").prefer(names)
    paired = names["sequence"] is not None or names["position"] is not None or table.has_sequences()
    known = open_gold(gold, paired).prefer(names)
    for role in ("item", "label", "sequence", "position"):
        name = table.preferred.get(role, names[role])
        if name is not None and not any(is_among(name, each.names) for each in (table, known)):
            found = " and ".join(f"{each.name} has {listing(map(str, each.names))}" for each in (table, known))
            raise InputError(
                f"There is no column {shorten(name)}: {found}.",
                Sentence(f"Name one of them with {{{role}}}."),
                keyword=role,
            )
    if paired and find_span_columns(known) is not None:
        raise InputError(
            f"{known.name} holds spans (it has {listing(known.names)}), and {table.name} labels of tokens.",
            "Give the fused spans: the file that fuse wrote, or the model that was fitted to spans.",
        )
    chances = [str(name) for name in known.names if _PROBABILITY.fullmatch(str(name))]
    if chances and not any(_PROBABILITY.fullmatch(str(name)) for name in table.names):
        warn_of(
            f"{known.name} has probabilities ({listing(chances, 2)}) and {table.name} has none: are they in the right "
            "order? Labels come first, gold second."
        )
    return _read_side(table, paired, False), _read_side(known, paired, True)


def _read_side(table: Table, paired: bool, is_known: bool) -> _Side:
    """The rows with a label; of a file that has fused labels beside the answers of workers, the former."""
    names = [table.need(role, parameter=role) for role in key_roles(paired)]
    label_name = find_label(table, "label") if is_known else table.need("label", parameter="label")
    if table.n_rows == 0:
        raise InputError(f"{table.name} has columns but no rows.", "Give a table with labels.")
    keys, label, worker = (
        [table.values(name, KEY_REMEDY) for name in names],
        table.read(label_name),
        table.find_usual("worker"),
    )
    rows = np.arange(table.n_rows)
    if worker is not None:
        fused = np.flatnonzero(lookup(objects([FUSED]), table.read(worker)) >= 0)
        rows = fused if len(fused) else rows
    rows = np.setdiff1d(rows, find_missing(label))
    if not len(rows):
        raise InputError(f"Column {label_name!r} of {table.name} is empty throughout.", "Give at least one label.")
    return _Side(table, [key.take(rows) for key in keys], plain_labels(label.take(rows)), rows)


def _read_probabilities(table: Table, rows: Indices) -> tuple[list[str], Floats | None]:
    """The names of the classes that have a column of probabilities, and these columns."""
    found = {str(name): match[1] for name in table.names if (match := _PROBABILITY.fullmatch(str(name)))}
    if not found or all(len(find_missing(table.read(name))) == table.n_rows for name in found):
        return [], None
    columns = [table.values(name, "Every label needs its probabilities.") for name in found]
    try:
        posterior = np.column_stack([np.asarray(to_values(column)[rows], np.float64) for column in columns])
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"Columns {listing(found)} of {table.name} must hold numbers: {error}.") from error
    return list(found.values()), posterior


# ------------------------------------------------------------------------------------------------------------ matching


def _match(given: _Side, known: _Side) -> tuple[Indices, Indices]:
    """For each item of gold its row among the labels, -1 if it has none, and its row in gold."""
    n_given = len(given.rows)
    codes = np.zeros(n_given + len(known.rows), np.int64)
    for own, other in zip(given.keys, known.keys, strict=True):
        values = encode_in_order_of_appearance(own)[1]
        place = lookup(values, other)
        rest, more = encode_in_order_of_appearance(other.take(np.flatnonzero(place < 0)))
        place[place < 0] = len(values) + rest
        codes = codes * (len(values) + len(more)) + np.append(lookup(values, own), place)
    distinct, first = np.unique(codes[:n_given], return_index=True)
    if len(distinct) < n_given:
        again = int(np.setdiff1d(np.arange(n_given), first)[0])
        raise InputError(
            f"{given.table.name} has {plural(n_given - len(distinct), 'row')} about an item that has one already, such "
            f"as {given.locate(again)}.",
            "Keep one label per item.",
        )
    wanted, gold_first, item = np.unique(codes[n_given:], return_index=True, return_inverse=True)
    label = encode_in_order_of_appearance(known.label)[0]
    clash = np.flatnonzero(label != label[gold_first][item])
    if len(clash):
        raise InputError(
            f"{known.table.name} gives more than one label to {plural(len(np.unique(item[clash])), 'item')}, such as "
            f"{known.locate(int(clash[0]))}.",
            "Keep one label per item.",
        )
    gold_row = np.sort(gold_first)
    at = np.minimum(np.searchsorted(distinct, codes[n_given + gold_row]), len(distinct) - 1)
    row = np.where(distinct[at] == codes[n_given + gold_row], first[at], -1)
    if (row < 0).all():
        here, there = (listing(to_values(side.keys[0])[:3].tolist()) for side in (known, given))
        raise InputError(
            f"None of the {plural(len(wanted), 'item')} in {known.table.name} occurs in {given.table.name}: the former "
            f"has {here}, the latter {there}.",
            "Check that both use the same ids.",
        )
    return row, gold_row


def _sort_rows(side: _Side, rows: Indices) -> tuple[Integers, Integers]:
    """The sequence of each of some rows, and their order by sequence and position."""
    owner = encode_in_order_of_appearance(side.keys[0])[0][rows]
    position = np.unique(read_positions(side.keys[1], side.table.name), return_inverse=True)[1][rows]
    return owner, np.lexsort((position, owner))


def _find_levels(given: Column, known: Column, shown: list[str], named: Sequence[object] | None) -> Values:
    """The levels from low to high: those named, numbers by their value, or the columns of probabilities.

    They are written as the labels are. Where none are named, and labels are whole numbers, known ones are levels too.
    """
    written = objects(list(dict.fromkeys([*map(str, to_values(given).tolist()), *shown])))
    if named is not None:
        levels = objects([str(each) for each in named])
        place = find_by_value(written, levels)
        levels[place >= 0] = written[place[place >= 0]]
        return levels
    values = to_numbers(written)
    if values is not None:
        if (values == np.round(values)).all():
            gold = list(dict.fromkeys(map(str, to_values(known).tolist())))
            whole = objects([each for each in gold if (value := to_number(each)) is not None and value % 1 == 0])
            written = objects([*written.tolist(), *whole[find_by_value(written, whole) < 0].tolist()])
        return written[np.argsort(np.array([to_number(each) for each in written.tolist()], float), kind="stable")]
    if shown and len(written) == len(shown):
        return objects(shown)
    raise InputError(
        f"It is not known which level is higher: {listing(written.tolist())}.",
        Sentence("Name the levels from low to high with {classes}."),
        keyword="classes",
    )


def _doubt_names(strange: list[object], labels: list[object], shown: list[str], some: bool) -> None:
    """Warn if known labels seem to be written in another way than the labels.

    `strange` are known labels that no item has, nor can have, and `some` is whether there are others.
    """
    forms = {normalise_label(each) for each in [*labels, *shown]}
    alike = [each for each in strange if normalise_label(each) in forms]
    if alike:
        warn_of(
            f"Known labels ({listing(alike)}) are written in another way than the labels ({listing(labels)}): they "
            "differ in case, spaces or Unicode form. So items with these count as wrong.",
            Sentence("To take them as the same, use {normalise}.", normalise=True),
        )
    elif not some:
        warn_of(
            f"No known label ({listing(strange)}) is among the labels ({listing(labels)}), so all of these count as "
            "wrong.",
            "Check that both name the classes alike.",
        )
