"""How much the answers of a worker tell about the truth."""

from __future__ import annotations

import numpy as np

from ..kernels.types import Floats


def informativeness(confusion: Floats, prior: Floats) -> Floats:
    """Return I(answer; truth) / H(truth) for each worker, between 0 and 1."""
    return _share_of_entropy(_inform(prior[None, :, None] * confusion, prior).sum(axis=1), prior)


def informativeness_of_speech(confusion: Floats, prior: Floats) -> Floats:
    """Return what an answer tells about the truth on average when a worker speaks, as `informativeness` does.

    Where silence is an answer, a function that seldom speaks tells little about most items, however right it is:

        sum_l P(l) KL(P(truth | l) || P(truth)) / sum_l P(l),   over all answers l but the last one, silence
    """
    joint = prior[None, :, None] * confusion[:, :, :-1]
    speech = joint.sum(axis=(1, 2))
    total = _inform(joint, prior).sum(axis=1)
    return _share_of_entropy(np.divide(total, speech, out=np.zeros(len(joint)), where=speech > 0), prior)


def _inform(joint: Floats, prior: Floats) -> Floats:
    """Return sum_k P(k, l) log P(k, l) / (P(k) P(l)) of each worker and answer l, (M, L)."""
    answer = joint.sum(axis=1, keepdims=True)
    independent = prior[None, :, None] * answer
    ratio = np.divide(joint, independent, out=np.ones_like(joint), where=(joint > 0) & (independent > 0))
    return np.asarray(np.sum(joint * np.log(ratio), axis=1))


def _share_of_entropy(information: Floats, prior: Floats) -> Floats:
    """Return information as a share of the entropy of the truth, between 0 and 1."""
    entropy = -float(np.sum(prior[prior > 0] * np.log(prior[prior > 0])))
    return np.asarray(np.clip(information / entropy, 0.0, 1.0)) if entropy > 0 else np.zeros(len(information))
