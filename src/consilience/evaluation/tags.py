"""Fused sets of tags compared with known ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..answers.columns import lookup, to_column, to_values
from ..answers.tables import Table, is_table, open_frame
from ..errors import InputError, Sentence, listing, plural
from ..kernels import Floats, Truths
from ..kinds.tag_tables import choose_tags, encode_sets, open_known_sets, read_set_cells, to_lists
from ..kinds.tag_task import TagsKind
from ..kinds.tags import SEPARATOR, Tags
from ..metrics.labels import ClassScore
from ..models.fitted import FittedModel
from .spans import N_BINS, show_scores


@dataclass(frozen=True)
class TagsEvaluation:
    """How good sets of tags are.

    Attributes
    ----------
    n_items : int
        Items whose set is known, and that have a fused one.
    n_unanswered : int
        Items whose set is known, and that have no fused one. They are not judged.
    micro : ClassScore
        Precision, recall and F1 of all tags of all items together, and how many tags are known.
    exact : float
        Share of the sets that are right as a whole.
    tags : tuple of (tag, ClassScore)
        Scores of each tag.
    calibration_error : float or None
        Where there are probabilities of tags: their expected calibration error, in ten equal bins.
    mean_confidence : float or None
        Mean confidence of the sets, to be compared with `exact`.
    """

    n_items: int
    n_unanswered: int
    micro: ClassScore
    exact: float
    tags: tuple[tuple[str, ClassScore], ...]
    calibration_error: float | None
    mean_confidence: float | None

    def __repr__(self) -> str:
        figures = {"mean confidence": self.mean_confidence, "calibration error": self.calibration_error}
        texts = [f"micro F1 {self.micro.f1:.3f}, {self.exact:.1%} of the sets right"]
        texts += [f"{name} {value:.3f}" for name, value in figures.items() if value is not None]
        return f"TagsEvaluation({plural(self.n_items, 'item')}: {'; '.join(texts)})"

    def _repr_html_(self) -> str:
        figures = {"Mean confidence": self.mean_confidence, "Calibration error": self.calibration_error}
        facts = [
            ("Items", f"{self.n_items:,}"),
            ("Sets that are right", f"{self.exact:.1%}"),
            *((name, f"{value:.3f}") for name, value in figures.items() if value is not None),
        ]
        return show_scores(type(self).__name__, facts, "tag", [("all", self.micro), *self.tags])

    def to_dict(self) -> dict[str, object]:
        """Return the same as plain numbers, lists and dicts; each tag as one dict."""
        tags = [{"tag": name, **score._asdict()} for name, score in self.tags]
        return {**vars(self), "micro": self.micro._asdict(), "tags": tags}


def are_sets(labels: object, separator: str | None) -> bool:
    """Tell whether labels are sets of tags: those of a model, or a table with lists, or with a separator."""
    if isinstance(labels, FittedModel):
        return isinstance(labels.result_.task, TagsKind)
    if not is_table(labels):
        return False
    table = open_frame(labels)
    of_fuse = {"labels", "confidence"} <= set(table.names) and "label" not in table.names
    return separator is not None or of_fuse or ("labels" in table.names and table.lists("labels") is not None)


def evaluate_sets(labels: object, gold: object, separator: str | None) -> TagsEvaluation:
    """Compare sets of tags with known ones; see `consilience.evaluate`."""
    if isinstance(labels, FittedModel) and isinstance(labels.result_.task, TagsKind):
        separator = separator or labels.result_.task.separator
        labels = labels.to_frame()
    told, separator = separator is not None, separator or SEPARATOR
    table, said = read_set_cells(open_frame(labels, "the table of labels"), separator)
    named = {str(name)[2:-1] for name in table.names if str(name).startswith("p(")}
    strange = sorted({str(tag) for cell in said for tag in cell} - named) if named and not told else []
    if strange:
        raise not_told(f"There is no probability of {listing(strange)}, which may be several tags.")
    items = to_values(table.values(table.need("item"), "Say which item a set is of."))
    if isinstance(gold, Tags):
        known_items, known = to_column(gold.items[gold.gold_items]), to_lists(gold.gold, gold.tags)
    else:
        known_table, known = open_known_sets(gold, separator, {})
        known_items = known_table.values(known_table.need("item"), "Say which item a known set is of.")
    tags = choose_tags([*said, *known], None, ())
    row = lookup(items, known_items)
    there = np.flatnonzero(row >= 0)
    if not len(there):
        raise InputError("No item with a known set has a fused one.", "Check that ids are written in the same way.")
    found, truth = encode_sets(said, tags)[row[there]], encode_sets(known, tags)[there]
    chances = read_chances(table, tags.tolist())
    confidence = None
    if "confidence" in table.names:
        sure = np.asarray(to_values(table.read("confidence")), np.float64)[row[there]]
        confidence = None if np.isnan(sure).any() else float(sure.mean())
    return TagsEvaluation(
        n_items=len(there),
        n_unanswered=len(row) - len(there),
        micro=score_tags(found, truth),
        exact=float((found == truth).all(axis=1).mean()),
        tags=tuple((str(tag), score_tags(found[:, t], truth[:, t])) for t, tag in enumerate(tags.tolist())),
        calibration_error=None if chances is None else measure_calibration(chances[row[there]], truth),
        mean_confidence=confidence,
    )


def not_told(problem: str) -> InputError:
    """Return the error that labels seem to be sets, and it is not told what stands between tags."""
    return InputError(problem, Sentence("Say what stands between tags with {separator}."), keyword="separator")


def read_chances(table: Table, tags: list[object]) -> Floats | None:
    """Return the probability of each tag of each item, 0 where a table has none; None if it has no probabilities."""
    names = {name for name in table.names if str(name).startswith("p(")}
    if not names:
        return None
    columns = [to_values(table.read(f"p({tag})")) if f"p({tag})" in names else np.zeros(table.n_rows) for tag in tags]
    chances = np.stack([np.asarray(column, np.float64) for column in columns], axis=1)
    return None if np.isnan(chances).any() else chances


def score_tags(found: Truths, truth: Truths) -> ClassScore:
    """Return precision, recall and F1 of yes, and how often it is true."""
    right, n_found, n_true = int((found & truth).sum()), int(found.sum()), int(truth.sum())
    return ClassScore(right / max(n_found, 1), right / max(n_true, 1), 2 * right / max(n_found + n_true, 1), n_true)


def measure_calibration(chances: Floats, truth: Truths) -> float:
    """Return the expected calibration error of probabilities of yes."""
    chance, is_true = chances.ravel(), truth.ravel()
    bins = np.minimum((chance * N_BINS).astype(np.int64), N_BINS - 1)
    gaps = np.bincount(bins, weights=chance, minlength=N_BINS) - np.bincount(bins, weights=is_true, minlength=N_BINS)
    return float(np.abs(gaps).sum() / len(chance))
