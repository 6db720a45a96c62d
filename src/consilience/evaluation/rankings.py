"""A ranking compared with what is known: the order of the candidates, their scores, or verdicts on pairs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..answers.columns import Column, lookup, split_repeated, to_column, to_values
from ..answers.tables import Table, is_table, open_frame
from ..errors import InputError, listing, plural
from ..formats.reading import open_path
from ..kernels import Floats
from ..rankings.bradley_terry import BradleyTerry
from ..rankings.comparisons import LEFT, RIGHT, TIE, open_verdicts, read_amounts
from ..rankings.likelihood import find_odds
from .evaluation import Evaluation


def evaluate_ranking(labels: object, known: object) -> Evaluation | None:
    """Compare a model's ranking, or a table with candidate and score or rank, with what is known; None for others.

    What is known is the order of the candidates, how good each is, or verdicts; see `consilience.evaluate`.
    """
    log_tie = None  # the weight of ties, which a table does not tell
    if isinstance(labels, BradleyTerry):
        result = labels.result_
        candidates, score, part, log_tie = result.candidates, result.score, result.part, result.log_tie
    else:
        ranking = open_frame(labels, "the ranking") if is_table(labels) else None
        if ranking is None or any(ranking.find_usual(role) is not None for role in ("item", "label", "sequence")):
            return None
        if ranking.find("candidate") is None or (ranking.find("score") is None and ranking.find("rank") is None):
            return None
        column, score = read_order(ranking)
        candidates, repeated = split_repeated(column)
        if repeated:
            raise InputError(
                f"{ranking.name} has several rows for {listing(repeated)}.",
                "Give a ranking with one row per candidate.",
            )
        part = (read_amounts(ranking, "part") if "part" in ranking.names else np.zeros(len(score))).astype(np.int64)

    verdicts: object = None
    if isinstance(known, (list, tuple)):
        order: tuple[Column, Floats] = to_column(list(known)), -np.arange(len(known), dtype=np.float64)
    elif isinstance(known, Mapping) and known and all(type(pair) is tuple for pair in known):
        verdicts = known
    elif isinstance(known, Mapping) and not any(hasattr(value, "__len__") for value in known.values()):
        order = to_column(list(known)), np.array(list(known.values()), np.float64)
    else:
        table = open_frame(open_path(known), "the known ranking")
        if table.find("left") is not None and table.find("right") is not None:
            verdicts = table
        else:
            order = read_order(table)
    if verdicts is not None:
        data = open_verdicts(verdicts, candidates)
        same = part[data.left] == part[data.right]
        ahead, verdict = (score[data.left] - score[data.right])[same], data.verdict[same]
        if not len(verdict):
            raise InputError("All known verdicts are on candidates that were never compared, not even through others.")
        weight, loss = data.weights[same], None
        if log_tie is not None:
            tie, lead, _ = find_odds(ahead, log_tie)
            chances = np.column_stack([(1 - tie + lead) / 2, (1 - tie - lead) / 2, tie])
            chance = np.maximum(chances[np.arange(len(verdict)), verdict], 1e-12)
            loss = float(np.average(-np.log(chance), weights=weight))
        decided = verdict != TIE
        right = np.where(verdict == LEFT, ahead > 0, (verdict == RIGHT) & (ahead < 0))
        judged = np.unique(np.append(data.left, data.right))
        share = float(np.average(right[decided], weights=weight[decided])) if decided.any() else None
        counts = {"n_candidates": len(judged), "n_verdicts": len(verdict), "n_parts": len(np.unique(part[judged]))}
        return Evaluation("candidate", {**counts, "accuracy": share, "log_loss": loss})

    # A known order, of which pairs of candidates within one part count.
    place = lookup(candidates, order[0])
    both = place >= 0
    if both.sum() < 2 or len(np.unique(place[both])) < both.sum():
        raise InputError(
            f"The known order has {plural(int(both.sum()), 'candidate')} of the ranking, and at least two are needed, "
            f"each of them once. The ranking has {listing(candidates.tolist())}, and the known order "
            f"{listing(to_values(order[0]).tolist())}."
        )
    score, truth, part = score[place[both]], order[1][both], part[place[both]]
    if len(np.unique(truth)) == 1:
        raise InputError("All candidates of the known order are equally good: there is no order to compare with.")
    figures: dict[str, float | None] = {
        "n_candidates": int(both.sum()),
        "n_parts": len(np.unique(part)),
        "kendall": None,
        "spearman": None,
    }
    if len(np.unique(score)) > 1 and figures["n_parts"] == 1:
        from scipy.stats import kendalltau, spearmanr  # which take long to import

        figures |= {"kendall": float(kendalltau(score, truth)[0]), "spearman": float(spearmanr(score, truth)[0])}
    elif len(np.unique(score)) > 1:
        first, second = np.triu_indices(len(score), 1)
        same = (part[first] == part[second]) & (truth[first] != truth[second])
        agree = np.sign(score[first] - score[second]) * np.sign(truth[first] - truth[second])
        figures["kendall"] = float(agree[same].mean()) if same.any() else None
    return Evaluation("candidate", figures)


def read_order(table: Table) -> tuple[Column, Floats]:
    """Candidates, and how good they are, from a table with a score or a rank of each."""
    candidate = table.need("candidate")
    score, rank = table.find("score"), table.find("rank")
    if score is None and rank is None:
        raise table.no_column("score", None)
    good = read_amounts(table, str(score)) if score is not None else -read_amounts(table, str(rank))
    return table.values(candidate), good
