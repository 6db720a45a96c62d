"""Fused sets of tags compared with known ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from ..answers.columns import lookup, to_column, to_values
from ..answers.tables import is_table, open_frame, read_figures
from ..errors import InputError, Sentence, listing
from ..kernels import Truths
from ..kinds.tag_kind import TagsKind
from ..kinds.tags import SEPARATOR, Tags, encode_sets, list_column, open_known_sets, read_set_table
from ..metrics.labels import ClassScore
from ..models.base import Model
from .evaluation import Evaluation, mean_gap


def are_sets(labels: object, separator: str | None) -> bool:
    """Whether labels are sets of tags: those of a model, or a table with lists, or with a separator."""
    if isinstance(labels, Model):
        return labels.result_.kind.brought is Tags
    if not is_table(labels):
        return False
    table = open_frame(labels)
    of_fuse = {"labels", "confidence"} <= set(table.names) and "label" not in table.names
    return separator is not None or of_fuse or ("labels" in table.names and table.lists("labels") is not None)


def evaluate_sets(labels: object, gold: object, separator: str | None, answered: Mapping[str, str]) -> Evaluation:
    """Compare sets of tags with known ones; see `consilience.evaluate`.

    `answered` are the columns of the answers by role, which a table of known sets may have.
    """
    was_known: Truths | None = None  # of which sets the fit knew each tag
    if isinstance(labels, Model) and labels.result_.kind.brought is Tags:
        separator = separator or cast("str | None", labels.result_.kind.reading()["separator"])
        if (given := labels.result_.given.gold) is not None:
            is_known = np.reshape(given.codes >= 0, (-1, len(cast(TagsKind, labels.result_.kind).tags)))
            was_known = np.asarray(is_known.all(axis=1))
        labels = labels.to_frame()
    is_given, separator = separator is not None, separator or SEPARATOR
    table = open_frame(labels, "the table of labels")
    items, said = read_set_table(table, separator)
    named = {str(name)[2:-1] for name in table.names if str(name).startswith("p(")}
    strange = sorted({str(tag) for cell in said for tag in cell} - named) if named and not is_given else []
    if strange:
        raise InputError(
            f"There is no probability of {listing(strange)}, which may be several tags.",
            Sentence("Say what stands between tags with {separator}."),
            keyword="separator",
        )
    if isinstance(gold, Tags):
        known_items, known = to_column(gold.items[gold.gold_items]), list_column(gold.gold, gold.tags).to_pylist()
    else:
        known_items, known = open_known_sets(gold, separator, answered)
    tags, sets = encode_sets([*said, *known])
    row = lookup(to_values(items), known_items)
    there = np.flatnonzero(row >= 0)
    if not len(there):
        raise InputError("No item with a known set has a fused one.", "Check that ids are written in the same way.")
    fused, truth = sets[row[there]], sets[len(said) + there]
    figures: dict[str, float | None] = {"n_items": len(there), "n_unanswered": len(row) - len(there)}
    is_right = (fused == truth).all(axis=1)
    figures["exact"] = float(is_right.mean())
    if was_known is not None:  # known sets are right in any case
        is_new = ~was_known[row[there]]
        figures["n_unknown"] = int(is_new.sum())
        figures["exact_unknown"] = float(is_right[is_new].mean()) if is_new.any() else None
    figures |= dict.fromkeys(("calibration_error", "mean_confidence"))
    if named:  # the probability of a tag without a column is 0
        nothing = np.zeros(table.n_rows)
        columns = [read_figures(table, f"p({tag})") if str(tag) in named else nothing for tag in tags.tolist()]
        chances = np.stack(columns, axis=1)[row[there]]
        if not np.isnan(chances).any():
            figures["calibration_error"] = mean_gap(chances.ravel(), truth.ravel())
    if "confidence" in table.names:
        sure = read_figures(table, "confidence")[row[there]]
        figures["mean_confidence"] = None if np.isnan(sure).any() else float(sure.mean())
    by_tag = {str(tag): score_tags(fused[:, t], truth[:, t]) for t, tag in enumerate(tags.tolist())}
    return Evaluation("item", figures, {"micro": score_tags(fused, truth)}, "tag", by_tag)


def score_tags(fused: Truths, truth: Truths) -> ClassScore:
    """Precision, recall and F1 of yes, and how often it is true."""
    right, n_found, n_true = int((fused & truth).sum()), int(fused.sum()), int(truth.sum())
    return ClassScore(right / max(n_found, 1), right / max(n_true, 1), 2 * right / max(n_found + n_true, 1), n_true)
