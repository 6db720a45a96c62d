"""`Evaluation`: how good labels, sets of tags, spans or a ranking are, by what is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..documents.document import Column, Document, Fact, Facts, Part, Section, Table
from ..documents.html import to_cells
from ..errors import plural
from ..kernels import Floats
from ..metrics.labels import ClassScore, SpanScore

# All figures of evaluations, counts first: what they are called, and what they mean.
EVALUATED = {
    "n_documents": ("Documents compared", ""),
    "n_items": ("Items compared", ""),
    "n_matched": ("Items compared", ""),
    "n_unanswered": ("Gold without label", ""),
    "n_unknown": ("Not known to the fit", "of the items compared"),
    "n_gold_only": ("Gold without label", ""),
    "n_labels_only": ("Labels without gold", ""),
    "n_candidates": ("Candidates", ""),
    "n_verdicts": ("Known verdicts", ""),
    "n_parts": ("Parts", "only pairs within a part count"),
    "n_invalid_transitions": ("Invalid transitions", "in labels"),
    "kendall": ("Kendall's tau", "1 is best, 0 is chance"),
    "spearman": ("Spearman's rho", "1 is best, 0 is chance"),
    "exact": ("Sets that are right", ""),
    "exact_unknown": ("Sets right, not known", "of items whose set the fit did not know"),
    "accuracy": ("Accuracy", ""),
    "accuracy_unknown": ("Accuracy, not known", "of items whose label the fit did not know"),
    "macro_f1": ("Macro F1", ""),
    "mean_confidence": ("Mean confidence", "should be the share that is right"),
    "log_loss": ("Log loss", "nats; 0 is best"),
    "brier": ("Brier score", "0 is best, 2 worst"),
    "calibration_error": ("Calibration error", "0 is best"),
    "within_one": ("Within one level", ""),
    "absolute_error": ("Absolute error", "0 is best"),
    "rmse": ("Root mean squared error", "0 is best"),
    "correlation": ("Correlation", "Pearson's; 1 is best"),
    "coverage": ("Intervals that hold", "should be 0.9"),
    "quadratic_kappa": ("Quadratic kappa", "1 is best, 0 is chance"),
    "rank_correlation": ("Rank correlation", "Spearman's; 1 is best"),
}
# Scores of all tags, or of all spans.
OVERALL = {
    "micro": "all tags",
    "strict": "whole spans (strict)",
    "relaxed": "parts of spans (relaxed)",
    "type_only": "type only",
}
# What the table has a row for, and its key in JSON.
ROWS = {"class": "classes", "tag": "tags", "type": "types"}
N_BINS = 10


@dataclass(frozen=True)
class Evaluation:
    """How good results are. Each figure and each score is an attribute, too, and None if it does not apply.

    Attributes
    ----------
    unit : str
        What is compared: item, document or candidate.
    figures : dict
        Counts, which begin with ``n_``, and scores by name. Of labels: `n_matched` items with both a label and a known
        one, `n_gold_only`, `n_labels_only`; `accuracy`, `macro_f1`, and where there are probabilities `log_loss`,
        `brier` and `calibration_error`. Of a model that was fitted with known labels also `n_unknown`, how many of the
        items were not among these, and `accuracy_unknown`, the accuracy on them. Of ordered classes also `within_one`,
        the share of labels that are right, or next to the right level; `absolute_error`, by how many levels labels are
        off; `quadratic_kappa`, and `rank_correlation`. Of tags of tokens also `n_invalid_transitions`: steps of the
        labels that IOB2 forbids.

        Of values: `absolute_error` and `rmse`, by how much they are off; `correlation` with the known ones; `coverage`,
        the share of 90 % intervals that hold.

        Of sets of tags: `n_items` with a fused and a known set, and `n_unanswered` without the former; `exact`, the
        share of sets that are right as a whole; `exact_unknown`, that of items whose set the fit did not know;
        `mean_confidence` of the sets; `calibration_error` of single tags.

        Of spans: `n_documents` with known spans, of which `n_unanswered` were not fused, so that all their spans are
        missed; `mean_confidence` of the spans, and their `calibration_error`.

        Of a ranking: `n_candidates` whose place, or a verdict on which, is known; `n_parts` that were never compared
        with each other, of which only pairs within one count; `kendall` and `spearman`, rank correlations with the
        known order. Or, by `n_verdicts` that are known, `accuracy` of those that are no tie, and their `log_loss`, ties
        included, for an average judge.
    scores : dict
        Precision, recall and F1 over all: `micro` of tags; of spans `strict` (a span counts if start, end and type are
        all right), `relaxed` (the share of its characters counts that is in spans of its type on the other side) and
        `type_only` (it counts if it overlaps a span of its type at all). All known spans count, also where nobody
        answered.
    by : str
        What `table` has a row for: class, tag or type; "" if there is none.
    table : dict
        Precision, recall, F1 and the known number of each class, tag, or type of spans.
    """

    unit: str
    figures: Mapping[str, float | None]
    scores: Mapping[str, ClassScore | SpanScore] = field(default_factory=dict)
    by: str = ""
    table: Mapping[Any, ClassScore | SpanScore] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        if name in EVALUATED:
            return self.figures.get(name)
        if name in OVERALL:
            return self.scores.get(name)
        raise AttributeError(f"An Evaluation has no attribute {name!r}.")

    def __repr__(self) -> str:
        n_compared, *_ = self.figures.values()
        texts = [f"{name} F1 {score.f1:.3f}" for name, score in self.scores.items()]
        texts += [
            f"{name} {value:.3f}"
            for name, value in self.figures.items()
            if value is not None and not name.startswith("n_")
        ]
        return f"Evaluation({plural(int(n_compared or 0), self.unit)}: {', '.join(texts)})"

    def _repr_html_(self) -> str:
        return to_cells(Document("", "", [self.describe(type(self).__name__)]))

    def to_dict(self) -> dict[str, object]:
        """Return the same as plain numbers, lists and dicts; each class, tag or type as one dict."""
        scores = {name: score._asdict() for name, score in self.scores.items()}
        rows = [{self.by: name, **score._asdict()} for name, score in self.table.items()]
        return {**self.figures, **scores, **({ROWS[self.by]: rows} if self.by else {})}

    def describe(self, title: str) -> Section:
        """The same as a section of a document."""
        facts = [
            Fact(
                "",
                EVALUATED[name][0],
                value,
                format="count" if name.startswith("n_") else "figure",
                detail=EVALUATED[name][1],
            )
            for name, value in self.figures.items()
            if not (name == "n_parts" and value == 1)
        ]
        parts: list[Part] = [Facts(facts)]
        overall = {OVERALL[name]: score for name, score in self.scores.items()}
        titles = {"": "All together", **{each: every.capitalize() for each, every in ROWS.items()}}
        for name, scores in (("", overall), (self.by, self.table)):
            if scores:
                heads = [Column("", name), *(Column("", each, "figure") for each in ("precision", "recall", "F1"))]
                rows = [(each, *score[:4]) for each, score in scores.items()]
                parts.append(Table("", titles[name], [*heads, Column("", "known", "count")], rows))
        return Section(title, parts)


class QuestionsEvaluation(dict[str, Evaluation]):
    """How good the labels of several questions are: an `Evaluation` of each that is known."""

    def __repr__(self) -> str:
        lines = [f"    {name!r}: {scores!r}" for name, scores in self.items()]
        return "\n".join([f"QuestionsEvaluation({len(self)}):", *lines])

    def to_dict(self) -> dict[str, object]:
        """Return the same as plain numbers, lists and dicts, by question."""
        return {"questions": {name: scores.to_dict() for name, scores in self.items()}}


def mean_gap(chance: Floats, is_right: Any) -> float:
    """The expected calibration error of chances of being right, in ten equal bins."""
    bins = np.minimum((chance * N_BINS).astype(np.int64), N_BINS - 1)
    return float(np.abs(np.bincount(bins, chance - is_right, minlength=N_BINS)).sum() / len(chance))
