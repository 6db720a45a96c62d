"""How much the answers of a worker tell about the truth."""

from __future__ import annotations

import numpy as np

from ..kernels.types import Floats


def informativeness(confusion: Floats, prior: Floats) -> Floats:
    """Return I(answer; truth) / H(truth) for each worker, between 0 and 1."""
    joint = prior[None, :, None] * confusion
    answer = joint.sum(axis=1, keepdims=True)
    independent = prior[None, :, None] * answer
    positive = joint > 0
    ratio = np.divide(joint, independent, out=np.ones_like(joint), where=positive & (independent > 0))
    information = np.sum(joint * np.log(ratio), axis=(1, 2))
    entropy = -float(np.sum(prior[prior > 0] * np.log(prior[prior > 0])))
    if entropy <= 0:
        return np.zeros(len(confusion))
    return np.asarray(np.clip(information / entropy, 0.0, 1.0))
