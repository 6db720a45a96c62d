"""Judging a model without any truth: hide some answers, fit on the rest, see how well the hidden ones are predicted."""

from __future__ import annotations

from ..answers.hidden_answers import hide_answers
from ..arguments import check_seed, is_number
from ..checks.comparison import settle
from ..engines import EngineLike, open_engine
from ..errors import parameter_error
from ..inference.hidden_fits import HeldOutScore, score_hidden
from ..models.base import Model
from ..models.inputs import as_responses
from ..results.fitting import Asked, fit_source, open_source
from ..results.tables import count_answers


def held_out_score(
    model: Model,
    responses: object,
    graph: object = None,
    gold: object = None,
    fraction: float = 0.1,
    seed: int = 0,
    engine: EngineLike = None,
    features: object = None,
    item_prior: object = None,
) -> HeldOutScore:
    r"""Hide a fraction of the answers, fit a fresh copy of `model` on the rest, and score the hidden answers.

    The score is the mean of :math:`\log \sum_k q_{nk} \Gamma_m[k, f]` over hidden answers f of worker m about item n,
    with the calibrated posterior q, and with matrices counted from the answers that are left and their uncalibrated
    posterior, shrunk towards the whole crowd's: it is the posterior that is judged, and every model's in the same way.
    Needs no gold.

    Parameters
    ----------
    model : Model
        Whose parameters to use; the model itself is not touched. Of one that is fitted the power of its calibration is
        taken as found; one that is not is calibrated by answers hidden among those that are left, which takes longer.
    responses : Responses or table
        The answers.
    graph, gold
        As for `fit`.
    fraction : float
        Share of answers to hide: single answers of independent items, all answers of a worker in a sequence together
        for sequences (a worker's neighbouring answers are alike, and would give each other away).
    seed : int
        Which answers are hidden: they depend on the seed and on the ids of items and workers, not on the order of rows.
        The same seed hides the same answers for every model.
    engine, features, item_prior : optional
        As for `fit`.

    Returns
    -------
    HeldOutScore
        Higher is better. `a.minus(b)` compares two models.

    Examples
    --------
    >>> import consilience as cs, numpy as np
    >>> truth = np.tile([0, 1], 50)
    >>> votes = np.stack([truth, truth, 1 - truth], axis=1)
    >>> r = cs.Responses.from_matrix(votes)
    >>> fit, vote = (cs.held_out_score(m, r) for m in (cs.DawidSkene(), cs.MajorityVote()))
    >>> fit.score > vote.score
    True
    """
    if not isinstance(model, Model):
        raise parameter_error("model", "held_out_score", "a model such as DawidSkene()", model)
    check_seed(seed, "held_out_score")
    if not (is_number(fraction) and 0 < fraction < 1):
        raise parameter_error("fraction", "held_out_score", "a number > 0 and < 1", fraction)
    recipe = model.recipe()
    if model.is_fitted:
        recipe = settle(recipe, model.fusion_, coupling=False)
    source = open_source(recipe, as_responses(responses), gold, features, item_prior).sample()
    r = source.responses
    aligned = recipe.align(r, graph)
    hidden, unit = next(hide_answers(r, fraction, seed))
    with open_engine(engine) as opened:
        found = fit_source(recipe, source.keep(~hidden), aligned, opened, Asked(copies=[]))
    return score_hidden(r, hidden, unit, found.labels.posterior, count_answers(found))
