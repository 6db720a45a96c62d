"""Labels compared with known ones, item by item; and `evaluate`, which compares whatever was fused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..answers.classes import choose_spelling, find_by_value, normalise_column, normalise_label, to_number, to_numbers
from ..answers.columns import (
    Column,
    Indices,
    Values,
    are_distinct,
    encode_in_order_of_appearance,
    find_missing,
    lookup,
    name_composite,
    number_groups,
    objects,
    plain_labels,
    to_column,
    to_values,
)
from ..answers.gold import find_classes, find_label
from ..answers.keys import read_positions
from ..answers.matching import KEY_REMEDY, open_gold
from ..answers.tables import Table, is_table, key_roles, open_frame, read_figures
from ..answers.tagging import looks_iob2
from ..errors import InputError, Sentence, about, listing, plural, shorten, warn_of
from ..estimation.population import are_given, find_given
from ..formats.reading import open_path
from ..kernels import Truths
from ..kinds.base import FUSED
from ..kinds.spans import Spans
from ..kinds.tags import USUAL_SEPARATORS, split_cell
from ..metrics import log_loss
from ..metrics.labels import class_f1, count_invalid_transitions, quadratic_kappa, relaxed_span_score, span_score
from ..metrics.probabilities import brier, calibration_error, rank_correlation
from ..models.base import Model
from ..models.opening import split_gold
from ..models.questions import Questions
from ..numbers.measurement import Measurement
from ..options import check_truth, is_among, split_by_question
from ..rankings.bradley_terry import BradleyTerry
from .evaluation import Evaluation, QuestionsEvaluation
from .numbers import are_values, evaluate_values
from .rankings import evaluate_ranking
from .spans import evaluate_spans, open_both
from .tags import are_sets, evaluate_sets

# What the column of the confidence is called beside that of a question, in a table with a row per item.
CONFIDENCE = "_confidence"
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
        names, every = list(questions), QuestionsEvaluation()
        given = {"ordered": ordered, "classes": classes, "separator": separator}
        split = {role: split_by_question(role, value, names) for role, value in given.items()}
        for name, known in split_gold(gold, names).items():
            own: dict[str, Any] = {role: values.get(name) for role, values in split.items()}
            texts = _list_texts(questions[name]) | _list_texts(known)
            # A separator for all goes with the questions in some cell of which it is.
            if isinstance(separator, str) and not any(separator in text for text in texts):
                own["separator"] = None
            # Without one, labels are sets where what a usual sign joins is there alone too, or in another order.
            for sign in USUAL_SEPARATORS if separator is None and isinstance(questions[name], Table) else ():
                sets = [frozenset(split_cell(text, sign)) for text in texts if sign in text]
                several = [each for each in sets if len(each) > 1]
                if len(set(several)) < len(several) or any(each & texts for each in several):
                    raise InputError(
                        f"Labels of question {shorten(name)} hold {sign!r}, and what it joins are labels too.",
                        Sentence("Say what stands between tags with {separator}."),
                        keyword="separator",
                    )
            with about(name):
                every[name] = evaluate(questions[name], known, item, None, sequence, position, normalise, **own)
        return every
    ranked = evaluate_ranking(labels, gold)
    if ranked is not None:
        return ranked
    answered: Mapping[str, str] = {}  # the columns of answers by role, in which known labels may name items, too
    if isinstance(labels, Model):
        given_answers, vocabularies = labels.result_.given.answers, labels.result_.names
        answered = {} if given_answers is None else given_answers.columns
        if vocabularies.positions is not None and ordered is not False:
            ordered, classes = True, vocabularies.classes.tolist() if classes is None else classes
    if isinstance(labels, Measurement):
        answered = labels.result_.columns
    if are_sets(labels, separator):
        return evaluate_sets(labels, gold, separator, answered)

    # The rows of both that have a label, with their keys.
    roles = {"item": item, "label": label, "known label": label, "sequence": sequence, "position": position}
    frame = labels.to_frame() if isinstance(labels, (Model, Measurement)) else open_path(labels)
    table = open_frame(frame, "the table of labels").prefer(roles)
    paired = sequence is not None or position is not None or table.has_sequences()
    parts = [] if paired else name_composite(answered)
    opened = open_gold(open_path(gold), paired, parts)
    joined = set(parts) <= set(opened.names) and bool(parts)
    opened = opened.prefer(roles | ({"item": answered["item"]} if joined else {}))
    for role in ("item", "label", "sequence", "position"):
        wanted = table.preferred.get(role, roles[role])
        if wanted is not None and not any(is_among(wanted, each.names) for each in (table, opened)):
            raise InputError(
                f"There is no column {shorten(wanted)}: {table.name} has {listing(map(str, table.names))}, and "
                f"{opened.name} {listing(map(str, opened.names))}.",
                Sentence(f"Name one of them with {{{role}}}."),
                keyword=role,
            )
    sides = _read_side(table, paired, False), _read_side(opened, paired, True)
    if are_values(table):
        (table, keys, _), (known_table, known_keys, known_labels) = sides
        return evaluate_values(table, known_labels, _match(table, keys, known_table, known_keys, known_labels))
    fitted_with = labels.result_.given.gold if isinstance(labels, Model) else None
    shown = sides[0][0]
    was_known = find_given(shown) if fitted_with is None else fitted_with.codes >= 0
    if was_known is not None and fitted_with is not None and shown.rows is not None:
        was_known = was_known[shown.rows]
    return compare_labels(*sides, normalise, bool(ordered), classes, was_known)


def split_labels(labels: object, label: str | None) -> dict[str, Any] | None:
    """The labels of each question, of fitted ones or of a table that `Questions.to_frame` returns; else None.

    A table whose column of labels is named has one question.
    """
    if isinstance(labels, Questions):
        return dict(labels)
    if label is not None or not is_table(labels):
        return None
    table = open_frame(labels, "the table of labels")
    if {"question", "label", "confidence"} <= set(table.names):
        # With one row per item, the question is what items are called by.
        keys = [name for name in ("item", "sequence") if name in table.names]
        if not keys or are_distinct(table.read(keys[0])):
            return None
        asked = np.array([str(each) for each in to_values(table.read("question")).tolist()])
        return {name: table.keep(np.flatnonzero(asked == name)) for name in dict.fromkeys(asked.tolist())}
    wide = [str(name) for name in table.names if f"{name}{CONFIDENCE}" in table.names]
    if "label" in table.names or not wide:
        return None
    before = list(table.names)[: list(table.names).index(wide[0])]
    tables = {}
    for name in wide:
        columns = {**dict(zip(before, before, strict=True)), "label": name, "confidence": f"{name}{CONFIDENCE}"}
        tables[name] = open_frame({title: table.read(source) for title, source in columns.items()})
    return tables


def _list_texts(labels: object) -> set[str]:
    """The different labels in a table that are text; none where they are lists."""
    name = labels.preferred.get("known label") or labels.find("label") if isinstance(labels, Table) else None
    if not isinstance(labels, Table) or name is None or labels.lists(name) is not None:
        return set()
    return {each for each in to_values(labels.read(name)).tolist() if isinstance(each, str)}


# A table of the rows with a label, the columns of their keys, and their labels.
Side: TypeAlias = tuple[Table, list[Column], Column]


def _read_side(table: Table, paired: bool, is_known: bool) -> Side:
    """The rows with a label; of a file that has fused labels beside the answers of workers, the former."""
    names = [table.need(role, parameter=role) for role in key_roles(paired)]
    label_name = find_label(table, "label") if is_known else table.need("label", parameter="label")
    if table.n_rows == 0:
        raise InputError(f"{table.name} has columns but no rows.", "Give a table with labels.")
    keys, label = [table.values(name, KEY_REMEDY) for name in names], table.read(label_name)
    rows, worker = np.arange(table.n_rows), table.find_usual("worker")
    if worker is not None:
        fused = np.flatnonzero(lookup(objects([FUSED]), table.read(worker)) >= 0)
        rows = fused if len(fused) else rows
    rows = np.setdiff1d(rows, find_missing(label))
    if not len(rows):
        raise InputError(f"Column {label_name!r} of {table.name} is empty throughout.", "Give at least one label.")
    return table.keep(rows), [key.take(rows) for key in keys], plain_labels(label.take(rows))


def compare_labels(
    given: Side,
    known: Side,
    normalise: bool,
    ordered: bool,
    levels: Sequence[object] | None,
    was_known: Truths | None = None,
) -> Evaluation:
    """Compare the labels of items with known ones; `was_known` says in which rows the fit knew the label."""
    table, keys, labels = given
    known_table, known_keys, known_labels = known
    if normalise:
        spell = choose_spelling(encode_in_order_of_appearance(labels)[1])
        labels, known_labels = (normalise_column(each, spell) for each in (labels, known_labels))
    row, gold_row = _match(table, keys, known_table, known_keys, known_labels)
    both = row >= 0
    # The classes that have a column of probabilities, unless all of these are empty.
    columns = {str(name): match[1] for name in table.names if (match := _PROBABILITY.fullmatch(str(name)))}
    shown, posterior = list[str](), None
    if any(len(find_missing(table.read(name))) < table.n_rows for name in columns):
        for name in columns:
            table.values(name, "Every label needs its probabilities.")
        shown = list(columns.values())
        posterior = np.column_stack([read_figures(table, name)[row[both]] for name in columns])
    if normalise and posterior is not None:
        spelled = [str(spell(name)) for name in shown]
        shown = list(dict.fromkeys(spelled))
        posterior = posterior @ np.array([[name == other for other in shown] for name in spelled], float)

    ranks: Values = objects([])
    if ordered:
        ranks = _find_levels(labels, known_labels, shown, levels)
        used = np.isin(np.arange(len(known_labels)), gold_row[both])
        near = find_classes(known_labels, ranks, on_scale=used)
        texts = [str(each) for each in to_values(known_labels).tolist()]
        placed = [str(ranks[at]) if at >= 0 else text for at, text in zip(near.tolist(), texts, strict=True)]
        known_labels = to_column(placed)

    # Classes: those with probabilities, other labels, then known labels that no item has.
    codes, said = encode_in_order_of_appearance(labels)
    own, place = said.tolist(), find_classes(to_column(shown), said)
    classes = [own[at] if at >= 0 else name for name, at in zip(shown, place.tolist(), strict=True)]
    classes += [each for at, each in enumerate(own) if at not in place]
    guess = lookup(objects(classes), to_column(said))[codes]
    n_possible, truth = len(classes), find_classes(known_labels, objects(classes))
    new, values = encode_in_order_of_appearance(known_labels.take(np.flatnonzero(truth < 0)))
    truth[truth < 0] = n_possible + new
    are_texts = all(type(each) is str for each in classes)
    classes += list(map(str, values.tolist())) if are_texts else values.tolist()
    truth = truth[gold_row]
    strange = [classes[code] for code in dict.fromkeys(truth[both & (truth >= n_possible)].tolist())]
    forms = {normalise_label(each) for each in [*own, *shown]}
    alike = [each for each in strange if normalise_label(each) in forms]
    if alike:
        warn_of(
            f"Known labels ({listing(alike)}) are written in another way than the labels ({listing(own)}): they "
            "differ in case, spaces or Unicode form. So items with these count as wrong.",
            Sentence("To take them as the same, use {normalise}.", normalise=True),
        )
    elif (truth[both] >= n_possible).all():
        warn_of(
            f"No known label ({listing(strange)}) is among the labels ({listing(own)}), so all of these count as "
            "wrong.",
            "Check that both name the classes alike.",
        )

    figures: dict[str, float | None] = {
        "n_matched": int(both.sum()),
        "n_gold_only": int((~both).sum()),
        "n_labels_only": len(codes) - int(both.sum()),
    }
    known_codes, guessed = truth[both], guess[row[both]]
    by_code = class_f1(known_codes, guessed)
    is_right = known_codes == guessed
    figures["accuracy"] = float(np.mean(is_right))
    if was_known is not None:  # known labels are right in any case
        is_new = ~was_known[row[both]]
        figures["n_unknown"] = int(is_new.sum())
        figures["accuracy_unknown"] = float(is_right[is_new].mean()) if is_new.any() else None
    elif posterior is not None and is_right.all() and are_certain(table, columns, row[both]):
        warn_of(
            "All of these items are certain, and right, and few others are certain: their known labels were given "
            "to the fit, it seems. So this does not tell how many labels are right.",
            "Evaluate by known labels that the fit was not given.",
        )
    figures["macro_f1"] = sum(score.f1 for score in by_code.values()) / len(by_code)
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
    if len(keys) == 2 and looks_iob2(objects(classes)):
        tags = objects(classes)
        order, lengths = _sort_tokens(known_keys, gold_row, known_table.name)
        fused = np.where(row >= 0, tags[guess[row]], "O")  # where an item has no label, there is no span
        sides = tags[truth][order], fused[order], lengths
        scores = {"strict": span_score(*sides), "relaxed": relaxed_span_score(*sides)}
        order, lengths = _sort_tokens(keys, np.arange(len(guess)), table.name)
        figures["n_invalid_transitions"] = count_invalid_transitions(tags[guess][order], lengths)
    by_class = {name: by_code[code] for code, name in enumerate(classes) if code in by_code}
    return Evaluation("item", figures, scores, "class", by_class)


def are_certain(table: Table, columns: Iterable[str], sampled: Indices) -> bool:
    """Whether the items of a sample seem to have been given to the fit."""
    highest = np.max([read_figures(table, name) for name in columns], axis=0)
    return are_given(highest >= 1, sampled)


def _match(
    table: Table, keys: list[Column], known: Table, known_keys: list[Column], labels: Column
) -> tuple[Indices, Indices]:
    """For each item of gold its row among the labels, -1 if it has none, and its row in gold."""
    own, item = number_groups(keys), number_groups(known_keys)
    first, gold_row = (np.unique(each, return_index=True)[1] for each in (own, item))
    if len(first) < len(own):
        again = np.setdiff1d(np.arange(len(own)), first)
        raise InputError(
            f"{table.name} has {plural(len(again), 'row')} about an item that has one already, such as that at "
            f"{table.locate(int(again[0]))}.",
            "Keep one label per item.",
        )
    label = encode_in_order_of_appearance(labels)[0]
    clash = np.flatnonzero(label != label[gold_row][item])
    if len(clash):
        shared = [name for name in known.names if name in table.names and name != find_label(known)]
        raise InputError(
            f"{known.name} gives more than one label to {plural(len(np.unique(item[clash])), 'item')}, such as that at "
            f"{known.locate(int(clash[0]))}.",
            "Keep one label per item.",
            *(
                [Sentence("Or name all columns of an item with {item}.", item=",".join(shared))]
                if len(shared) > 1
                else []
            ),
        )
    # A key is as many numbers as there are columns, -1 where the other side has no such value.
    there = [encode_in_order_of_appearance(each)[1] for each in keys]
    places = zip(*(lookup(values, each).tolist() for values, each in zip(there, keys, strict=True)), strict=True)
    at = {place: n for n, place in enumerate(places)}
    wanted = (lookup(values, each.take(gold_row)).tolist() for values, each in zip(there, known_keys, strict=True))
    row = np.array([at.get(place, -1) for place in zip(*wanted, strict=True)], np.int64)
    if (row < 0).all():
        here, other = (listing(to_values(each[0])[:3].tolist()) for each in (known_keys, keys))
        raise InputError(
            f"None of the {plural(len(row), 'item')} in {known.name} occurs in {table.name}: the former has {here}, "
            f"the latter {other}.",
            "Check that both use the same ids.",
        )
    return row, gold_row


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


def _sort_tokens(keys: list[Column], rows: Indices, name: str) -> tuple[Indices, Indices]:
    """The order of some rows by sequence and position, and how many each sequence has."""
    owner = encode_in_order_of_appearance(keys[0])[0][rows]
    position = np.unique(read_positions(keys[1], name), return_inverse=True)[1][rows]
    return np.lexsort((position, owner)), np.bincount(owner)
