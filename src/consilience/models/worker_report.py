"""What a fit says about each worker."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..data.vocabulary import Column, Values, lookup, to_column
from ..kernels.types import Floats

FEW_ANSWERS = 10
UNINFORMATIVE = 0.05
CONTRARY = 0.05
ONE_LABEL = 0.95


def describe_workers(
    counts: Floats, confusion: Floats, prior: Floats, n_answers: NDArray[np.int64], labels: Values, classes: Values
) -> dict[str, Column]:
    """Return the columns of `worker_report`.

    Parameters
    ----------
    counts : array (M, L, K)
        Expected number of times worker m said l when the truth was k.
    confusion : array (M, K, L)
        Confusion matrices.
    prior : array (K,)
        Class prior.
    n_answers : array (M,)
        Number of answers.
    labels, classes : ndarray
        Their names.
    """
    said = lookup(classes, to_column(labels))
    right = np.zeros(len(counts))
    for label, k in enumerate(said):
        if k >= 0:
            right += counts[:, label, k]
    total = counts.sum(axis=(1, 2))
    accuracy = np.divide(right, total, out=np.full(len(counts), np.nan), where=total > 0)
    information = informativeness(confusion, prior)
    # What the same mix of answers would get right if it had nothing to do with the truth.
    mix = counts.sum(axis=2) / np.maximum(total, 1e-300)[:, None]
    truth = counts.sum(axis=1) / np.maximum(total, 1e-300)[:, None]
    chance = sum(mix[:, label] * truth[:, k] for label, k in enumerate(said) if k >= 0)
    error = np.sqrt(np.maximum(chance * (1 - chance), 0.0) / np.maximum(total, 1.0))
    remarks = []
    for m in range(len(counts)):
        found = []
        if n_answers[m] < FEW_ANSWERS:
            found.append("few answers")
        elif mix[m].max() > ONE_LABEL and prior.max() < ONE_LABEL:
            found.append("one label")
        elif accuracy[m] + CONTRARY + 2 * error[m] < chance[m]:
            found.append("contrary")
        elif information[m] < UNINFORMATIVE and prior.max() < 1:  # with one class there is no information to give
            found.append("uninformative")
        remarks.append(", ".join(found))
    return {
        "answers": to_column(n_answers.astype(np.int64)),
        "accuracy": to_column(accuracy),
        "informativeness": to_column(information),
        "worst_confusion": to_column(worst_confusions(counts, said, labels, classes)),
        "remarks": to_column(remarks),
    }


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


def worst_confusions(counts: Floats, said: NDArray[np.int64], labels: Values, classes: Values) -> list[str]:
    """Return each worker's most frequent mistake in words: "cat -> dog (31%)", the share of that truth's answers."""
    wrong = counts.copy()
    for label, k in enumerate(said):
        if k >= 0:
            wrong[:, label, k] = 0.0
    met = counts.sum(axis=1)
    words = []
    for m, cell in enumerate(wrong.reshape(len(counts), -1).argmax(axis=1)):
        label, k = divmod(int(cell), counts.shape[2])
        if wrong[m, label, k] < 0.5:
            words.append("")
        else:
            words.append(f"{classes[k]} -> {labels[label]} ({wrong[m, label, k] / met[m, k]:.0%})")
    return words
