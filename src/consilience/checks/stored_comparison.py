"""The comparison with majority vote of a fit to answers on disk.

What differs is summed over all items. Hidden answers are those of the sample by which the fit was calibrated, and the
agreement of the workers (alpha) is that on the items of the sample.
"""

from __future__ import annotations

import numpy as np

from ..engines.base import Engine
from ..errors import quietly
from ..inference.em import expect_from_votes
from ..metrics.agreement import krippendorff_interval
from ..models.latent import LatentModel
from ..models.majority_vote import MajorityVote
from ..results.stored import StoredFit
from .comparison import Comparison, are_checked, count_differing, judge, share_kept, withhold_accuracy


def compare_stored(model: LatentModel, engine: Engine) -> Comparison:
    """Compare a model that was fitted to answers on disk with majority vote."""
    fit = model._stored
    assert isinstance(fit, StoredFit)
    assert fit.sample is not None
    tally, n_items, r = fit.tally, fit.answers.n_items, fit.sample.weighed(fit.answers)
    with quietly():
        vote = MajorityVote().fit(r, engine=engine)
        # Matrices are those of all answers.
        workers = fit.problem.workers
        vote._counts = workers.plain_counts(expect_from_votes(fit.problem).counts)
        gain, error, informed_gain, informed_error = judge(r, vote, model._hidden)
    top = int(tally.labels.argmax())
    comparison = Comparison(
        n_items=n_items,
        n_differ=count_differing(n_items - tally.agreeing),
        expected_accuracy=model.expected_accuracy_,
        expected_accuracy_low=model.expected_accuracy_low_,
        expected_accuracy_high=model.expected_accuracy_high_,
        expected_gain=model.expected_accuracy_ - tally.vote_confidence / n_items,
        **dict(zip(("alpha", "alpha_low", "alpha_high"), krippendorff_interval(r), strict=True)),
        held_out_gain=gain,
        held_out_error=error,
        informed_gain=informed_gain,
        informed_error=informed_error,
        top_share=float(tally.labels[top] / n_items),
        vote_top_share=float(tally.votes[top] / n_items),
        kept_share=float(np.nan_to_num(share_kept(tally.unanimous, tally.kept), nan=1.0).min()),
    )
    return withhold_accuracy(comparison, are_checked(r, None, fit.answers.gold))
