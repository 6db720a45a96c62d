"""What known labels changed: the same fit without them, beside the one with them.

The crowd alone is what the model says with the same parameters and answers, and without known labels. For this it is
fitted again, once, from the same start. The coupling of neighbours and groups of near-copies are taken as found. What
was known of the items beside their answers is not kept with a model: where the probabilities show that there was
something, nothing is compared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from ..answers.columns import to_values
from ..errors import plural, quietly
from ..inference.sources import InMemory
from ..kernels.types import Floats
from ..models.base import Model
from ..models.latent import LatentModel
from ..results.fitting import Asked, fit
from ..results.fusion import Fusion
from ..results.predicting import Applied
from ..results.tables import describe_answers
from ..results.worker_report import FEW_ANSWERS
from .answers import LEAST_KNOWN
from .subject import Subject, to_name

# With more answers and edges a second fit would take too long: so many take about ten seconds on two cores.
MOST_ANSWERS = 10_000_000
# Workers and items that are listed, and the least change of an accuracy that is.
MOST_WORKERS, MOST_ITEMS, LEAST_CHANGE = 5, 10, 0.01
# Posteriors of the fit and of its own parameters differ by less, unless something else was known of the items. In
# networks they are found step by step, and only nearly the same.
SAME, NEARLY_SAME = 1e-6, 0.05
# Labels of at least this confidence are called sure, and so many are named that known labels contradict.
SURE, MOST_NAMED = 0.95, 5


class Moved(NamedTuple):
    """A worker whose accuracy is judged in another way."""

    name: str
    before: float
    after: float


class Relabelled(NamedTuple):
    """An item of unknown label that has another label because of the known ones."""

    name: str
    before: str
    after: str
    confidence: float


class Changes(NamedTuple):
    """What known labels changed."""

    words: list[str]
    cautions: list[str]  # what to check, and what not to rely on
    workers: list[Moved]
    items: list[Relabelled]
    more: int  # items that are not listed


def find_changes(subject: Subject) -> Changes | None:
    """Return what known labels changed; None if none are known, or if not all items are here."""
    n_known = int(subject.is_known.sum())
    if not n_known or subject.is_sample:
        return None
    known = f"{plural(n_known, 'label')} {'is' if n_known == 1 else 'are'} known."
    obstacle = find_obstacle(subject)
    if obstacle:
        return Changes(
            [f"{known} What {'it' if n_known == 1 else 'they'} changed is not shown: {obstacle}."], [], [], [], 0
        )
    alone, found = fit_alone(subject.model), subject.fusion
    before, after = alone.labels.codes, subject.codes
    changed = np.flatnonzero((before != after) & ~subject.is_known)
    words = [known, *describe_labels(subject, before, len(changed)), *describe_power(found, alone)]
    words += [*describe_accuracy(subject, before), *describe_expected(found, alone)]
    cautions = [*describe_contradictions(subject, alone), *describe_caution(found, alone)]
    listed = changed[np.argsort(-subject.confidence[changed], kind="stable")[:MOST_ITEMS]]
    items = [
        Relabelled(
            subject.name_of(i), subject.classes[before[i]], subject.classes[after[i]], float(subject.confidence[i])
        )
        for i in listed.tolist()
    ]
    return Changes(words, cautions, list_moved(subject, alone), items, len(changed) - len(items))


def find_obstacle(subject: Subject) -> str:
    """Return why the fit without known labels cannot be compared; nothing if it can."""
    model, r = subject.model, subject.responses
    n_edges = 0 if subject.graph is None else subject.graph.n_edges
    if r.n_responses + n_edges > MOST_ANSWERS:
        return "there are so many answers that a second fit would take too long"
    if isinstance(model, LatentModel):
        with quietly():
            applied = Applied(model.recipe(), model.fusion_, InMemory(r), subject.graph, subject.known_labels)
            posterior = applied.infer()
        limit = SAME if subject.graph is None else NEARLY_SAME
        if np.abs(posterior - model.fusion_.labels.fitted).max() > limit:
            return "the fit knew more of the items than their answers, and this is not kept with the model"
    return ""


def fit_alone(model: Model) -> Fusion:
    """Return what the same model finds without known labels."""
    parameters: dict[str, object] = {"callback": None} if "callback" in model.get_params() else {}
    if model.get_params().get("coupling") == "learn":
        parameters["coupling"] = model.fusion_.coupling
    found = model.fusion_
    asked = Asked(found.copies, found.copies_count_once)
    with quietly():
        return fit(model.fresh(**parameters).recipe(), found.answers, found.given.graph, asked=asked)


def describe_labels(subject: Subject, before: NDArray[np.int64], n_changed: int) -> list[str]:
    """Return in words which labels the known ones changed."""
    assert subject.gold is not None
    known = np.flatnonzero(subject.is_known)
    n_known, n_differ = len(known), int((before[known] != subject.gold.codes[known]).sum())
    alone = "what the crowd alone says: the labels of the same fit without known labels"
    if not n_differ:
        words = [f"{'It agrees' if n_known == 1 else 'All of them agree'} with {alone}."]
    else:
        count = "It" if n_known == 1 else f"{n_differ:,} of them"
        words = [f"{count} {'differs' if n_differ == 1 else 'differ'} from {alone}."]
    n_others = subject.n_items - n_known
    if not n_others:
        return words
    changed = "No other label" if not n_changed else f"{n_changed:,} of the {plural(n_others, 'other label')}"
    return [*words, f"{changed} changed because of {'it' if n_known == 1 else 'them'}."]


def describe_power(found: Fusion, alone: Fusion) -> list[str]:
    """Return in words how calibration moved."""
    if found.calibrated is None or alone.calibrated is None or found.calibrated.found.given:
        return []
    before, after = f"{alone.calibrated.found.power:.2g}", f"{found.calibrated.found.power:.2g}"
    if before == after:
        return [f"Probabilities are raised to the power {after}, as without known labels."]
    return [
        f"Probabilities are raised to the power {after}; without known labels it would be {before}. A lower power "
        "makes them less extreme."
    ]


def describe_accuracy(subject: Subject, before: NDArray[np.int64]) -> list[str]:
    """Return in words how often the crowd alone is right, by known labels that were drawn at random."""
    assert subject.gold is not None
    drawn = np.flatnonzero(subject.gold.judging & subject.is_answered)
    if len(drawn) < LEAST_KNOWN:
        return []
    n_right = int((before[drawn] == subject.gold.codes[drawn]).sum())
    low, high = find_interval(n_right, len(drawn))
    share = f"{n_right / len(drawn):.1%}"
    if int(subject.is_known.sum()) == int(subject.gold.judging.sum()):
        return [
            f"The crowd alone is right about {n_right:,} of {plural(len(drawn), 'known item')} ({share}). If these "
            f"were drawn at random, it is right about {low:.1%} to {high:.1%} of all items (95% interval)."
        ]
    return [
        f"{plural(len(drawn), 'known item')} were drawn at random. The crowd alone is right about {n_right:,} of them: "
        f"{share}. So it is right about {low:.1%} to {high:.1%} of all items (95% interval)."
    ]


def describe_expected(found: Fusion, alone: Fusion) -> list[str]:
    """Return in words how expected accuracy moved."""
    if found.calibrated is None:
        return []
    before, after = f"{alone.labels.mean_confidence:.1%}", f"{found.labels.mean_confidence:.1%}"
    if before == after:
        return [f"The expected accuracy of all labels is {after}, as without known labels."]
    return [f"The expected accuracy of all labels changed from {before} to {after}."]


def describe_contradictions(subject: Subject, alone: Fusion) -> list[str]:
    """Return in words which known labels contradict labels of which the crowd alone was sure."""
    assert subject.gold is not None
    before, known, confidence = alone.labels.codes, subject.gold.codes, alone.labels.confidence
    rows = np.flatnonzero(subject.is_known & (before != known) & (confidence >= SURE))
    if not len(rows):
        return []
    rows = rows[np.argsort(-confidence[rows], kind="stable")]
    named = [
        f"{subject.name_of(i)} (known {subject.classes[known[i]]}, crowd {subject.classes[before[i]]} "
        f"{confidence[i]:.1%})"
        for i in rows[:MOST_NAMED].tolist()
    ]
    more = f" and {len(rows) - MOST_NAMED:,} more" if len(rows) > MOST_NAMED else ""
    one = len(rows) == 1
    what = "The known label of 1 item contradicts a label" if one else f"Known labels of {len(rows):,} items contradict"
    labels = "" if one else " labels"
    check = "Check it." if one else "Check these."
    return [f"{what}{labels} of which the crowd was at least {SURE:.0%} sure: {', '.join(named)}{more}. {check}"]


def describe_caution(found: Fusion, alone: Fusion) -> list[str]:
    """Return in words that few known labels say little about the probabilities, where these were lowered by them."""
    if found.calibrated is None or alone.calibrated is None:
        return []
    n_drawn = found.calibrated.found.n_gold
    if not 0 < n_drawn < LEAST_KNOWN or found.calibrated.found.power >= alone.calibrated.found.power:
        return []
    known = "1 known label counts" if n_drawn == 1 else f"{n_drawn} known labels count"
    return [
        f"Only {known} as drawn at random. So few say little about the other items, and "
        "probabilities are lowered as a precaution, whatever the few labels say."
    ]


def find_interval(n_right: int, n: int) -> tuple[float, float]:
    """Return the exact (Clopper-Pearson) 95 % interval of a share.

    >>> tuple(round(end, 3) for end in find_interval(0, 20)), tuple(round(end, 3) for end in find_interval(16, 20))
    ((0.0, 0.168), (0.563, 0.943))
    """
    low = float(betaincinv(n_right, n - n_right + 1, 0.025)) if n_right else 0.0
    high = float(betaincinv(n_right + 1, n - n_right, 0.975)) if n_right < n else 1.0
    return low, high


def list_moved(subject: Subject, alone: Fusion) -> list[Moved]:
    """Return the workers with some answers whose accuracy moved most, as far as it moved by a percentage point."""
    before, after = find_accuracy(alone), find_accuracy(subject.fusion)
    moved = np.where(subject.fusion.n_answers >= FEW_ANSWERS, np.nan_to_num(np.abs(after - before)), 0.0)
    order = np.argsort(-moved, kind="stable")[:MOST_WORKERS]
    return [
        Moved(to_name(subject.workers[m]), float(before[m]), float(after[m])) for m in order if moved[m] >= LEAST_CHANGE
    ]


def find_accuracy(found: Fusion) -> Floats:
    """Return the accuracy of each worker, as `worker_report` has it."""
    return np.asarray(to_values(describe_answers(found)["accuracy"]), np.float64)
