r"""Why an item has its label: what every answer weighed, and all else that had a say, as parts of one sum.

Let a be the label of the item, b the most probable other class, and q the probabilities of the fit before calibration.
Answer i, of worker :math:`m_i` who said :math:`l_i`, has the factors :math:`f_i[k] = w_i \tilde\Gamma_{m_i}[k, l_i] +
(1 - w_i) \rho_{l_i}`: those of the worker's matrix, unless there are weights (`consilience.inference.workers.rows`).
Its share :math:`s_i` is 1 unless near-copies count once. With the matrices :math:`\tilde\Gamma` and the class prior
:math:`\tilde\pi` that the E-step uses,

.. math:: \log \frac{q_a}{q_b} = \log \frac{\tilde\pi_a}{\tilde\pi_b}
    + \sum_i s_i \log \frac{f_i[a]}{f_i[b]}
    + s_{ab} + u_{ab} + r_{ab}

- s is the silence of all others, and the votes that keep classes to their meaning, where silence is an answer;
- u is what else is known of the item: its classifier, or its prior;
- r is what is left: 0 if items are independent; in a chain, what the rest of the sequence says; in a network, what the
  neighbours say. There it is the marginal without the item's own evidence and prior, and no closer look is taken.

The probabilities p that are printed are raised to a power t, after the item was left out of what judges its workers
(see `consilience.inference.workers.rows`). With q' the probabilities in between,

.. math:: \log \frac{p_a}{p_b} = \log \frac{q_a}{q_b}
    + \Big( \log \frac{q'_a}{q'_b} - \log \frac{q_a}{q_b} \Big) + (t - 1) \log \frac{q'_a}{q'_b}

and :math:`\log (q'_a / q'_b)` is :math:`\log (p_a / p_b) / t`. Where known labels teach, all of that is one part,
"teaching": what is printed less what the fit says. So all parts together are the log odds of the printed
probabilities. All logarithms are natural: 0.7 doubles the odds, 2.3 makes them ten times as large.

The parts of a majority vote are shares: an answer adds its share of the votes to that of its class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import Any, NamedTuple

import numpy as np

from ..answers.answers import Answers
from ..answers.columns import name_composite, to_column, tuples_to_ids
from ..answers.keys import key_of
from ..answers.previews import frame_html, html_table, paragraph, text_table, to_word
from ..answers.tables import build_frame
from ..errors import InputError, listing, plural, shorten
from ..inference.estimator import LabelEstimator, LatentEstimator
from ..inference.labels import find_tied
from ..inference.observations import Observations, assign_groups, count_once
from ..inference.structures.chain import ChainParameters
from ..inference.structures.field import FieldParameters, find_linked
from ..inference.structures.sets import SetsParameters
from ..kernels import LOG_IMPOSSIBLE, NEARLY_ZERO, Floats
from .calibration import find_raised
from .findings import NOUNS
from .result import Result

# So many workers are listed; the answers of others are one part.
MOST_WORKERS_EXPLAINED = 20
# Parts that are smaller are due to rounding.
LOG_ODDS_ROUNDING = 1e-6
# Odds from which on a part speaks clearly, and strongly: 2 to 1 and 10 to 1. Below the first it hardly counts.
HARDLY, CLEARLY, STRONGLY = 0.1, math.log(2), math.log(10)
# A label that is less probable than so many times the other class is nearly tied with it.
NEARLY_TIED = 1.5
# Why a label can be less probable than another class, by the rule.
DECIDES = {"sequence": "the sequence as a whole decides", "median": "the median decides"}
# Parts that are not of the fit itself.
CALIBRATION = ("left out", "power", "teaching")
# Which columns of the table of parts are numbers.
ALIGNMENT = (False, False, True, False)


class Part(NamedTuple):
    """One part of the sum.

    Attributes
    ----------
    kind : str
        "prior", "answer", "other answers", "silence", "votes", "classifier", "item prior", "sequence", "neighbours",
        "known label", "set aside", "left out", "power", "teaching" or "tie".
    weight : float
        Log odds of the label against the other class; of a vote, a share.
    name : str
        The same in words.
    worker, answer : object
        Who said what; None if the part is no answer.
    """

    kind: str
    weight: float
    name: str
    worker: object = None
    answer: object = None


@dataclass(frozen=True)
class Explanation:
    """Why an item has its label. It prints as a table.

    Attributes
    ----------
    item : object
        The item: its id, or a pair of sequence and position.
    text : str or None
        What it looks like, if that is known.
    label, against : object
        The label, and the most probable other class.
    confidence, confidence_against : float
        Their printed probabilities; of a vote, their shares. nan if nothing checks the answers: then no odds are given.
    parts : tuple of Part
        What had a say. The sum of the weights is `log_odds`; of a vote, those with the label add up to `confidence`.
    uncalibrated : float
        The sum without the parts of calibration, "left out", "power" and "teaching"; nan for a vote.
    answered : str
        How many of those who answered say the label, in words.
    backend : str
        The frame library of `to_frame`.
    rule : str
        What can make the label another one than the most probable class: "sequence", "median", or "".
    places : tuple of str
        What the two parts of the name of an item are called, where it has two.
    """

    item: object
    text: str | None
    label: object
    against: object
    confidence: float
    confidence_against: float
    parts: tuple[Part, ...]
    uncalibrated: float
    answered: str
    backend: str
    rule: str = ""
    places: tuple[str, str] = ("sequence", "position")

    @property
    def checked(self) -> bool:
        """Whether anything checks the answers, so that odds mean something."""
        return not math.isnan(self.confidence)

    @property
    def is_vote(self) -> bool:
        """Whether parts are shares of votes, and not log odds."""
        return self.checked and math.isnan(self.uncalibrated)

    @property
    def log_odds(self) -> float:
        """The logarithm of `confidence` / `confidence_against`, as the sum of all parts; nan for a vote."""
        return math.nan if self.is_vote else math.fsum(part.weight for part in self.parts)

    def describe(self) -> str:
        """The label and its rival in words."""
        name = f"Item {to_word(self.item)}"
        if isinstance(self.item, tuple):
            first, second = map(to_word, self.item)
            name = f"{self.places[0].capitalize()} {first}, {self.places[1]} {second}"
        name += f' "{to_word(self.text)}"' if self.text else ""
        label, against = to_word(self.label), to_word(self.against)
        if not self.checked:
            return f"{name}: {label}"
        said = f"{name}: {label} ({self.confidence:.3f}), against {against} ({self.confidence_against:.3f})"
        is_ruled = self.rule and self.confidence < self.confidence_against
        return f"{said}; {DECIDES[self.rule]}" if is_ruled else said

    def summarise(self) -> str:
        """In a plain sentence, what those who answered say, and whether the label is clear."""
        if not self.checked:
            return f"{self.answered}. Nothing checks that, so no odds are given."
        close = self.confidence < NEARLY_TIED * self.confidence_against and not self.is_vote
        return f"{self.answered}; {to_word(self.against)} is nearly as probable." if close else f"{self.answered}."

    def rate(self, part: Part) -> str:
        """In a word, how much a part counts."""
        if not self.checked:
            return ""
        if self.is_vote:
            return "" if part.answer is None else "for" if part.answer == self.label else "against"
        size, side = abs(part.weight), "for" if part.weight > 0 else "against"
        if size < HARDLY:
            return "hardly counts"
        return f"{side}, strongly" if size >= STRONGLY else side if size >= CLEARLY else f"{side}, weakly"

    @property
    def heads(self) -> tuple[str, str, str, str]:
        """Heads of the columns of `list_rows`."""
        return "", "answer", ("share" if self.is_vote else "log odds") if self.checked else "", ""

    def list_rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield what is shown of each part, and of the sum: who, what, how much, in a word."""
        is_calibrated = False
        for part in self.parts:
            if part.kind in CALIBRATION and not is_calibrated:
                is_calibrated = True
                yield "sum before calibration", "", f"{self.uncalibrated:z.2f}", describe_odds(self.uncalibrated)
            answer = "" if part.answer is None else to_word(part.answer)
            yield part.name, answer, f"{part.weight:z.2f}" if self.checked else "", self.rate(part)
        if self.is_vote:
            yield f"share of {to_word(self.label)}", "", f"{self.confidence:z.2f}", ""
        elif self.checked:
            yield "sum", "", f"{self.log_odds:z.2f}", describe_odds(self.log_odds)

    def __repr__(self) -> str:
        return f"<Explanation: {self.describe()}>"

    def __str__(self) -> str:
        lines = text_table(self.heads, list(self.list_rows()), ALIGNMENT)
        return "\n".join([self.describe(), self.summarise(), *(f"  {line}" for line in lines)])

    def _repr_html_(self) -> str:
        cells = [[escape(cell) for cell in row] for row in self.list_rows()]
        words = paragraph(self.describe()), paragraph(self.summarise())
        return frame_html(*words, html_table(self.heads, cells, ALIGNMENT))

    def to_frame(self) -> Any:
        """A table with one row per part: part, worker, answer, log_odds (of a vote: share) and words.

        It is of the library that the answers came in.
        """
        kinds, weights, _, workers, answers = zip(*self.parts, strict=True) if self.parts else ((),) * 5
        columns = {
            "part": to_column(list(kinds)),
            "worker": to_column(list(workers)),
            "answer": to_column(list(answers)),
            "share" if self.is_vote else "log_odds": to_column(np.array(weights)),
            "words": to_column([self.rate(part) for part in self.parts]),
        }
        return build_frame(columns, self.backend)

    def to_record(self) -> dict[str, Any]:
        """The record that `--json` shows."""
        weight = "share" if self.is_vote else "log_odds"
        sums = {} if self.is_vote else {"uncalibrated_log_odds": self.uncalibrated, "log_odds": self.log_odds}
        return {
            **(dict(zip(self.places, self.item, strict=True)) if isinstance(self.item, tuple) else {"item": self.item}),
            "text": self.text,
            "label": self.label,
            "words": self.summarise(),
            "confidence": self.confidence,
            "against": self.against,
            "confidence_against": self.confidence_against,
            "parts": [
                {"part": kind, "name": name, "worker": worker, "answer": answer, weight: size}
                for kind, size, name, worker, answer in self.parts
            ],
            **sums,
        }


def describe_odds(log_odds: float) -> str:
    """Odds in words.

    >>> describe_odds(math.log(3)), describe_odds(-math.log(20)), describe_odds(30.0)
    ('3 to 1 for the label', '20 to 1 against it', 'more than a million to 1 for the label')
    """
    odds = math.exp(min(abs(log_odds), 700.0))
    side = "for the label" if log_odds >= 0 else "against it"
    if odds > 1e6:
        return f"more than a million to 1 {side}"
    return f"{odds:,.2g} to 1 {side}" if odds < 10 else f"{odds:,.0f} to 1 {side}"


class Explanations(dict[str, Explanation]):
    """Why an item has its labels, by question or tag; it prints as all of them."""

    def __str__(self) -> str:
        return "\n\n".join(f"{name}\n{each}" for name, each in self.items())

    __repr__ = __str__


def explain_row(model: LabelEstimator, result: Result, row: int) -> Explanation:
    """Why the item with this index has its label."""
    labels, gold, r = result.labels, result.given.gold, result.answers.with_classes(result.names.classes)
    if len(labels.classes) < 2:
        raise InputError("There is only one class, so that nothing speaks against a label.")
    label, reported = int(labels.codes[row]), labels.posterior[row]
    is_known = gold is not None and bool(gold.codes[row] >= 0)

    # The answers to the item, among those to all of its sequence.
    first, last = row, row + 1
    if r.sequences is not None:
        owner = int(np.searchsorted(r.sequences.offsets, row, side="right")) - 1
        first, last = r.sequences.offsets[owner : owner + 2].tolist()
    near = r.about(np.arange(first, last))
    if result.given.copies_count_once:
        near = count_once(near, assign_groups(result.given.copies, near.n_workers))
    here = slice(*near.offsets[row - first : row - first + 2].tolist())
    worker, said, strength = near.worker[here], near.label[here], near.weights(here)
    if result.is_vote:
        is_drawn = str(model.get_params()["ties"]) == "random"
        weights, before, after, against = weigh_votes(near, here, reported, label, is_known, is_drawn)
    else:
        weights, before, after, against = weigh_evidence(model, result, near, here, row, row - first, label, is_known)

    # Who says what; of an answer that is spread over several labels the strongest, of a soft vote the largest part.
    parts, n_for = [], 0
    for m in dict.fromkeys(worker.tolist()):
        rows = np.flatnonzero(worker == m)
        top = int(said[rows[strength[rows].argmax()]])
        n_for += int(near.class_of_label[top]) == label
        who, what = near.workers[[m]].tolist()[0], near.labels[[top]].tolist()[0]
        parts.append(Part("answer", float(weights[rows].sum()), to_word(who), who, what))
    n_answered = len(parts)
    words = f"The only answer is {to_word(parts[0].answer)}" if parts else "Nobody answered"
    if n_answered > 1:
        of, verb = plural(n_answered, NOUNS[result.given.source_kind]), "says" if n_for < 2 else "say"
        words = f"{n_for or 'None'} of {of} {verb} {to_word(labels.classes[[label]].tolist()[0])}"
    parts.sort(key=lambda part: -abs(part.weight))
    rest = parts[MOST_WORKERS_EXPLAINED:]
    if len(rest) > 1:
        total = math.fsum(part.weight for part in rest)
        parts[MOST_WORKERS_EXPLAINED:] = [Part("other answers", total, plural(len(rest), "other worker"))]

    confidence, rival = reported[[label, against]].tolist()
    if result.checked:
        parts, uncalibrated = [*before, *parts, *after], math.nan
        if not result.is_vote:
            uncalibrated = math.fsum(part.weight for part in parts if part.kind not in CALIBRATION)
    else:  # a worker who is alone with all items is always right by the model
        parts = [part._replace(weight=math.nan) for part in parts if part.kind == "answer"]
        confidence = rival = uncalibrated = math.nan
    texts = result.kind.show(np.array([row])) if len(labels.codes) == r.n_items else None
    key, (shown, other) = key_of(r.keys, row), labels.classes[[label, against]].tolist()
    return Explanation(
        (key[0], result.kind.name_position(key[1])) if isinstance(key, tuple) else key,
        texts[0] if texts else None,
        shown,
        other,
        confidence,
        rival,
        tuple(parts),
        uncalibrated,
        words,
        result.backend,
        labels.rule,
        result.kind.places,
    )


def weigh_votes(
    near: Answers, here: slice, shares: Floats, label: int, is_known: bool, is_drawn: bool
) -> tuple[Floats, list[Part], list[Part], int]:
    """The share of each answer in the votes, the parts before and after the answers, and the other class."""
    klass, weight = near.class_of_label[near.label[here]], near.weights(here)
    total, after = float(weight[klass >= 0].sum()), []
    if is_known:
        after = [Part("known label", 1.0, "known label, which decides")]
    elif total == 0:
        after = [Part("prior", float(shares[label]), "no votes: shares of all items")]
    elif find_tied(shares[None])[0].sum() > 1:
        how = "drawn at random" if is_drawn else "the first one is taken"
        after = [Part("tie", 0.0, f"several classes have most votes: {how}")]
    others = np.where(np.arange(len(shares)) == label, -1.0, shares)
    return np.where(klass >= 0, weight / max(total, NEARLY_ZERO), 0.0), [], after, int(others.argmax())


def weigh_evidence(
    model: LabelEstimator, result: Result, near: Answers, here: slice, row: int, place: int, label: int, is_known: bool
) -> tuple[Floats, list[Part], list[Part], int]:
    """The log odds of each answer, the parts before and after the answers, and the other class.

    `place` is that of the item among those of `near`.
    """
    estimates, takes_silence, graph = result.estimates, result.takes_silence, result.given.graph
    near = replace(near, weight_scale=estimates.weight_scale)
    workers = estimates.worker_model.of(near, near.class_of_label, len(result.names.classes), takes_silence)
    structure, impossible = estimates.structure, np.maximum(estimates.log_weights, LOG_IMPOSSIBLE)

    # What each answer says of each class, (n_answers, K). Where silence is an answer, it is in the place of silence.
    by_answer = workers.log_answers(Observations(near).lay_out(workers, anchored=False)[0], impossible)[here]

    # What else speaks for the classes: kind, name, and log evidence (K,).
    links = None
    if isinstance(structure, FieldParameters) and graph is not None:
        links = model._weigh_links(result.answers, graph)
    prior = structure.log_prior(links is not None and bool(find_linked(links)[row]))
    if here.stop > here.start:
        prior = prior + workers.weigh_items(estimates.log_weights)
    others = [("prior", "class prior", np.maximum(prior, LOG_IMPOSSIBLE))]
    if takes_silence:
        weight = np.ones(near.n_workers) if near.silence_weight is None else near.silence_weight
        n_silent = near.n_workers - len(np.unique(near.worker[here]))
        silence = weight @ impossible[:, -1] - near.weights(here) @ impossible[near.worker[here], -1]
        others.append(("silence", f"silence of {plural(n_silent, 'worker')}", silence))
        others.append(("votes", "share of the votes", Observations(near).lay_out(workers)[0].anchor[place]))
    used = result.feature_result is not None and result.feature_result.findings.used
    content = ("classifier", "classifier of the features") if used else ("item prior", "prior of the item")
    if result.given.log_prior is not None:
        others.append((*content, np.maximum(result.given.log_prior[row], LOG_IMPOSSIBLE)))

    reported, fitted = result.labels.posterior[row], result.labels.fitted[row]
    rivals = reported.copy()
    if is_known:  # no other class has a probability: the one that answers and prior speak for
        rivals = np.maximum(sum((logs for *_, logs in others), by_answer.sum(axis=0)), 2 * LOG_IMPOSSIBLE)
    rivals[label] = -np.inf
    against = int(rivals.argmax())

    weights = by_answer[:, label] - by_answer[:, against]
    before, *after = (Part(kind, float(logs[label] - logs[against]), name) for kind, name, logs in others)
    if is_known:
        return weights, [before], [*after, Part("known label", math.inf, "known label, which decides")], against
    total = math.fsum([*weights.tolist(), *(part.weight for part in (before, *after))])
    fit, told = fitted[[label, against]], reported[[label, against]]
    if fit.min() > NEARLY_ZERO:
        left = float(np.log(fit[0]) - np.log(fit[1])) - total
        kind, name = "set aside", "answers that were set aside, since no class allows all of them"
        if isinstance(structure, ChainParameters):
            kind, name = "sequence", "the rest of the sequence"
        elif isinstance(structure, FieldParameters) and graph is not None:
            nodes = graph.neighbours[graph.offsets[row] : graph.offsets[row + 1]]
            n_same = int((result.labels.codes[nodes] == label).sum())
            same = f", {n_same:,} with the same label" if len(nodes) else ""
            kind, name = "neighbours", f"{plural(len(nodes), 'neighbour')}{same}"
        elif isinstance(structure, SetsParameters):
            kind, name = "tags", "share of the tag"
        elif result.given.has_priors and result.given.log_prior is None:  # of a model that was loaded
            kind, name = content
        if kind != "set aside" or abs(left) > LOG_ODDS_ROUNDING:
            after.append(Part(kind, left, name))
            total += left

    if result.calibrated is not None and isinstance(model, LatentEstimator):
        is_raised = bool(find_raised(structure, near)[place])
        power = result.calibrated.calibration.power if is_raised else 1.0
        printed = float(np.log(told[0]) - np.log(told[1])) if told.min() > NEARLY_ZERO else power * total
        honest = printed / power
        if result.teaching is not None and is_raised:
            name = "workers judged without this item, calibration, and what known labels teach"
            after.append(Part("teaching", printed - total, name))
            power, honest = 1.0, total
        elif abs(honest - total) > LOG_ODDS_ROUNDING or model.calibration != "none":
            after.append(Part("left out", honest - total, "workers judged without this item"))
        if power != 1:
            after.append(Part("power", printed - honest, f"calibration, to the power {power:.2g}"))
    return weights, [before], after, against


def find_item(r: Answers, item: object) -> int:
    """The index of an item, by its id or by sequence and position."""
    is_pair = r.sequences is not None
    if not is_pair and name_composite(r.columns):
        item = tuples_to_ids([item])[0]
    key = item if is_pair else (item,)
    if not isinstance(key, (tuple, list)) or len(key) != 1 + is_pair:
        raise InputError(
            f"An item of these answers is named by sequence and position; {shorten(item)} is no such pair."
        )
    row = int(r.find_items([to_column([part]) for part in key])[0])
    if row < 0:
        raise InputError(f"There is no item {shorten(item)}.", f"There are {listing(r.items.tolist())}.")
    return row
