"""A ranking compared with what is known: the order of the candidates, their scores, or verdicts on pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..answers.columns import Column, Values, lookup, split_repeated, to_column, to_values
from ..answers.tables import Table, is_table, open_frame
from ..errors import InputError, listing, plural
from ..formats.reading import open_path
from ..kernels import Floats, Integers
from ..rankings.bradley_terry import BradleyTerry
from ..rankings.comparisons import LEFT, RIGHT, TIE, open_verdicts, read_amounts
from ..rankings.likelihood import find_odds
from .evaluation import Evaluation


class Ranked(NamedTuple):
    """Candidates and their scores, as a model or a table has them. A table does not tell the weight of ties."""

    candidates: Values
    score: Floats
    part: Integers
    log_tie: float | None


def find_ranking(labels: object) -> Ranked | None:
    """The ranking of a model, or in a table with columns candidate and score or rank; None for anything else."""
    if isinstance(labels, BradleyTerry):
        found = labels.result_
        return Ranked(found.candidates, found.score, found.part, found.log_tie)
    if not is_table(labels):
        return None
    ranking = open_frame(labels, "the ranking")
    if any(ranking.find_usual(role) is not None for role in ("item", "label", "sequence")):
        return None
    if ranking.find("candidate") is None or (ranking.find("score") is None and ranking.find("rank") is None):
        return None
    candidates, score = read_order(ranking)
    values, repeated = split_repeated(candidates)
    if repeated:
        raise InputError(
            f"{ranking.name} has several rows for {listing(repeated)}.", "Give a ranking with one row per candidate."
        )
    part = read_amounts(ranking, "part") if "part" in ranking.names else np.zeros(len(score))
    return Ranked(values, score, part.astype(np.int64), None)


def evaluate_ranking(found: Ranked, known: object) -> Evaluation:
    """Compare a ranking with the known order of candidates, or with known verdicts; see `consilience.evaluate`."""
    if isinstance(known, (list, tuple)):
        return compare_orders(found, to_column(list(known)), -np.arange(len(known), dtype=np.float64))
    if isinstance(known, Mapping) and known and all(type(pair) is tuple for pair in known):
        return compare_verdicts(found, known)
    if isinstance(known, Mapping) and not any(hasattr(value, "__len__") for value in known.values()):
        return compare_orders(found, to_column(list(known)), np.array(list(known.values()), np.float64))
    table = open_frame(open_path(known), "the known ranking")
    if table.find("left") is not None and table.find("right") is not None:
        return compare_verdicts(found, table)
    return compare_orders(found, *read_order(table))


def read_order(table: Table) -> tuple[Column, Floats]:
    """Candidates, and how good they are, from a table with a score or a rank of each."""
    candidate = table.need("candidate")
    score, rank = table.find("score"), table.find("rank")
    if score is None and rank is None:
        raise table.no_columns(["score", "rank"])
    good = read_amounts(table, str(score)) if score is not None else -read_amounts(table, str(rank))
    return table.values(candidate), good


def compare_orders(found: Ranked, candidates: Column, good: Floats) -> Evaluation:
    """Compare scores with known figures, of which higher ones are better."""
    from scipy.stats import kendalltau, spearmanr  # which take long to import

    place = lookup(found.candidates, candidates)
    both = place >= 0
    if both.sum() < 2 or len(np.unique(place[both])) < both.sum():
        raise InputError(
            f"The known order has {plural(int(both.sum()), 'candidate')} of the ranking, and at least two are needed, "
            f"each of them once. The ranking has {listing(found.candidates.tolist())}, and the known order "
            f"{listing(to_values(candidates).tolist())}."
        )
    score, truth, part = found.score[place[both]], good[both], found.part[place[both]]
    if len(np.unique(truth)) == 1:
        raise InputError("All candidates of the known order are equally good: there is no order to compare with.")
    figures: dict[str, float | None] = {
        "n_candidates": int(both.sum()),
        "n_parts": len(np.unique(part)),
        "kendall": None,
        "spearman": None,
    }
    if len(np.unique(score)) > 1 and figures["n_parts"] == 1:
        figures |= {"kendall": float(kendalltau(score, truth)[0]), "spearman": float(spearmanr(score, truth)[0])}
    elif len(np.unique(score)) > 1:
        first, second = np.triu_indices(len(score), 1)
        same = (part[first] == part[second]) & (truth[first] != truth[second])
        agree = np.sign(score[first] - score[second]) * np.sign(truth[first] - truth[second])
        figures["kendall"] = float(agree[same].mean()) if same.any() else None
    return Evaluation("candidate", figures)


def compare_verdicts(found: Ranked, known: object) -> Evaluation:
    """Compare a ranking with known verdicts on its candidates."""
    data = open_verdicts(known, found.candidates)
    same = found.part[data.left] == found.part[data.right]
    ahead, verdict = (found.score[data.left] - found.score[data.right])[same], data.verdict[same]
    if not len(verdict):
        raise InputError("All known verdicts are on candidates that were never compared, not even through others.")
    weight, loss = data.weights[same], None
    if found.log_tie is not None:
        tie, lead, _ = find_odds(ahead, found.log_tie)
        chances = np.column_stack([(1 - tie + lead) / 2, (1 - tie - lead) / 2, tie])
        chance = np.maximum(chances[np.arange(len(verdict)), verdict], 1e-12)
        loss = float(np.average(-np.log(chance), weights=weight))
    decided = verdict != TIE
    right = np.where(verdict == LEFT, ahead > 0, (verdict == RIGHT) & (ahead < 0))
    judged = np.unique(np.append(data.left, data.right))
    figures: dict[str, float | None] = {"n_candidates": len(judged), "n_verdicts": len(verdict)}
    figures |= {"n_parts": len(np.unique(found.part[judged])), "accuracy": None, "log_loss": loss}
    if decided.any():
        figures["accuracy"] = float(np.average(right[decided], weights=weight[decided]))
    return Evaluation("candidate", figures)
