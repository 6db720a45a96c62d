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

and :math:`\log (q'_a / q'_b)` is :math:`\log (p_a / p_b) / t`. So all parts together are the log odds of the printed
probabilities. All logarithms are natural: 0.7 doubles the odds, 2.3 makes them ten times as large.

The parts of a majority vote are shares: an answer adds its share of the votes to that of its class.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from ..answers.answers import Answers
from ..answers.columns import lookup, name_composite, to_column, tuples_to_ids
from ..answers.items import Sequences, key_of
from ..answers.previews import frame_html, html_table, paragraph, text_table, to_word
from ..answers.tables import build_frame
from ..errors import InputError, listing, plural, shorten
from ..inference.learned import as_used
from ..inference.recipes import LatentRecipe, Recipe
from ..inference.recipes.independent import VoteRecipe, find_tied
from ..inference.sources import Source, count_once, number_groups
from ..inference.structures.chain import ChainParameters
from ..inference.structures.field import FieldParameters, find_linked
from ..inference.structures.sets import SetsParameters
from ..inference.workers.base import WorkerModel
from ..kernels import Floats
from .result import Result
from .source_kinds import KINDS

# So many workers are listed; the answers of others are one part.
MOST_WORKERS = 20
# Probabilities below this are as good as 0, and their logarithms mean nothing.
SMALLEST = 1e-300
# What no class allows has this logarithm, as in `consilience.kernels.answers`.
LOG_IMPOSSIBLE = -690.0
# Parts that are smaller are due to rounding.
ROUNDING = 1e-6
# Odds from which on a part speaks clearly, and strongly: 2 to 1 and 10 to 1. Below the first it hardly counts.
HARDLY, CLEARLY, STRONGLY = 0.1, math.log(2), math.log(10)
# A label that is less probable than so many times the other class is nearly tied with it.
NEARLY_TIED = 1.5
# Ids among which one that is like a misspelt one is looked for.
MOST_COMPARED = 20_000


class Part(NamedTuple):
    """One part of the sum.

    Attributes
    ----------
    kind : str
        "prior", "answer", "other answers", "silence", "votes", "classifier", "item prior", "sequence", "neighbours",
        "known label", "set aside", "left out", "power" or "tie".
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


# Why a label can be less probable than another class, by the rule.
DECIDES = {"sequence": "the sequence as a whole decides", "median": "the median decides"}


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
        The sum without the parts of calibration, "left out" and "power"; nan for a vote.
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
        """Return the label and its rival in words."""
        name = (
            f"{self.places[0].capitalize()} {to_word(self.item[0])}, {self.places[1]} {to_word(self.item[1])}"
            if isinstance(self.item, tuple)
            else (f"Item {to_word(self.item)}")
        )
        shown = f' "{to_word(self.text)}"' if self.text else ""
        label, against = to_word(self.label), to_word(self.against)
        if not self.checked:
            return f"{name}{shown}: {label}"
        said = f"{name}{shown}: {label} ({self.confidence:.3f}), against {against} ({self.confidence_against:.3f})"
        behind = self.confidence < self.confidence_against
        return f"{said}; {DECIDES[self.rule]}" if behind and self.rule else said

    def summarise(self) -> str:
        """Return in a plain sentence what those who answered say, and whether the label is clear."""
        if not self.checked:
            return f"{self.answered}. Nothing checks that, so no odds are given."
        close = self.confidence < NEARLY_TIED * self.confidence_against and not self.is_vote
        return f"{self.answered}; {to_word(self.against)} is nearly as probable." if close else f"{self.answered}."

    def rate(self, part: Part) -> str:
        """Say in a word how much a part counts."""
        if not self.checked:
            return ""
        if self.is_vote:
            return "" if part.answer is None else "for" if part.answer == self.label else "against"
        size = abs(part.weight)
        if size < HARDLY:
            return "hardly counts"
        side = "for" if part.weight > 0 else "against"
        return f"{side}, strongly" if size >= STRONGLY else side if size >= CLEARLY else f"{side}, weakly"

    def list_rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield what is shown of each part, and of the sum: who, what, how much, in a word."""
        if not self.checked:
            yield from ((part.name, to_word(part.answer), "", "") for part in self.parts)
            return
        last = ""
        for part in self.parts:
            if part.kind in CALIBRATION and last not in CALIBRATION:
                yield "sum before calibration", "", format_weight(self.uncalibrated), describe_odds(self.uncalibrated)
            answer = "" if part.answer is None else to_word(part.answer)
            yield part.name, answer, format_weight(part.weight), self.rate(part)
            last = part.kind
        if self.is_vote:
            yield f"share of {to_word(self.label)}", "", format_weight(self.confidence), ""
        else:
            yield "sum", "", format_weight(self.log_odds), describe_odds(self.log_odds)

    def __repr__(self) -> str:
        return f"<Explanation: {self.describe()}>"

    @property
    def heads(self) -> tuple[str, str, str, str]:
        """Heads of the columns of `list_rows`."""
        return "", "answer", ("share" if self.is_vote else "log odds") if self.checked else "", ""

    def __str__(self) -> str:
        lines = text_table(self.heads, list(self.list_rows()), (False, False, True, False))
        return "\n".join([self.describe(), self.summarise(), *(f"  {line}" for line in lines)])

    def _repr_html_(self) -> str:
        from html import escape

        cells = [[escape(cell) for cell in row] for row in self.list_rows()]
        words = paragraph(self.describe()), paragraph(self.summarise())
        return frame_html(*words, html_table(self.heads, cells, (False, False, True, False)))

    def to_frame(self) -> Any:
        """Return a table with one row per part: part, worker, answer, log_odds (of a vote: share) and words.

        It is of the library that the answers came in.
        """
        columns = {
            "part": to_column([part.kind for part in self.parts]),
            "worker": to_column([part.worker for part in self.parts]),
            "answer": to_column([part.answer for part in self.parts]),
            "share" if self.is_vote else "log_odds": to_column(np.array([part.weight for part in self.parts])),
            "words": to_column([self.rate(part) for part in self.parts]),
        }
        return build_frame(columns, self.backend)

    def to_record(self) -> dict[str, Any]:
        """Return what `--json` shows."""
        weight = "share" if self.is_vote else "log_odds"
        parts = [
            {"part": part.kind, "name": part.name, "worker": part.worker, "answer": part.answer, weight: part.weight}
            for part in self.parts
        ]
        sums = {} if self.is_vote else {"uncalibrated_log_odds": self.uncalibrated, "log_odds": self.log_odds}
        key = self.places if isinstance(self.item, tuple) else ("item",)
        item = self.item if isinstance(self.item, tuple) else (self.item,)
        return {
            **dict(zip(key, item, strict=True)),
            "text": self.text,
            "label": self.label,
            "words": self.summarise(),
            "confidence": self.confidence,
            "against": self.against,
            "confidence_against": self.confidence_against,
            "parts": parts,
            **sums,
        }


CALIBRATION = ("left out", "power")


def format_weight(weight: float) -> str:
    """Return a weight with its sign and two decimals.

    >>> format_weight(1.234), format_weight(-0.001), format_weight(math.inf)
    ('1.23', '0.00', 'inf')
    """
    return f"{round(weight, 2) + 0.0:.2f}"


def describe_odds(log_odds: float) -> str:
    """Return odds in words.

    >>> describe_odds(math.log(3)), describe_odds(-math.log(20)), describe_odds(30.0)
    ('3 to 1 for the label', '20 to 1 against it', 'more than a million to 1 for the label')
    """
    odds = math.exp(min(abs(log_odds), 700.0))
    side = "for the label" if log_odds >= 0 else "against it"
    return (
        f"more than a million to 1 {side}"
        if odds > 1e6
        else f"{odds:,.2g} to 1 {side}"
        if odds < 10
        else (f"{odds:,.0f} to 1 {side}")
    )


def explain_item(recipe: Recipe, found: Result, item: object) -> Explanation:
    """Return why an item has its label; see `Model.explain`."""
    return explain_row(recipe, found, find_item(found.answers, item, found.task.places[0]))


def explain_row(recipe: Recipe, found: Result, row: int) -> Explanation:
    """Return why the item with this index has its label; its answers are in memory."""
    labels, r = found.labels, found.answers
    if len(labels.classes) < 2:
        raise InputError("There is only one class, so that nothing speaks against a label.")
    texts = found.task.show(np.array([row])) if len(labels.codes) == r.n_items else None
    case = Case.of(recipe, found, row)
    weigh = weigh_votes if isinstance(recipe, VoteRecipe) else weigh_parts
    against, parts, uncalibrated = weigh(case)
    if not found.checked:  # a worker who is alone with all items is always right by the model
        parts, uncalibrated = [part._replace(weight=math.nan) for part in parts if part.kind == "answer"], math.nan
    label, other = labels.classes[[case.label, against]].tolist()
    confidence, rest = labels.posterior[row, [case.label, against]].tolist() if found.checked else (math.nan, math.nan)
    key, text, said = key_of(r.keys, row), texts[0] if texts else None, case.describe_answers()
    if isinstance(key, tuple):
        key = key[0], found.task.name_position(key[1])
    told = confidence, rest, tuple(parts), uncalibrated, said
    return Explanation(key, text, label, other, *told, found.backend, labels.rule, found.task.places)


class Case(NamedTuple):
    """An item, and all that is known of it.

    Attributes
    ----------
    recipe, found
        The model and its result.
    row : int
        The item among all items.
    near : Answers
        The answers to the item, or to its sequence, weighed as they count.
    place : int
        The item among those of `near`.
    label : int
        Its label, as an index into the classes.
    is_known : bool
        Whether that was known.
    """

    recipe: Recipe
    found: Result
    row: int
    near: Answers
    place: int
    label: int
    is_known: bool

    @classmethod
    def of(cls, recipe: Recipe, found: Result, row: int) -> Case:
        """Return the case of the item with this index."""
        near, place = cut_out(found.answers.with_classes(found.names.classes), row)
        if found.copies_count_once:
            near = count_once(near, number_groups(found.copies, near.n_workers))
        gold = found.given.gold
        return cls(
            recipe, found, row, near, place, int(found.labels.codes[row]), gold is not None and gold.codes[row] >= 0
        )

    @property
    def answers(self) -> slice:
        """Where the answers to the item are among those of `near`."""
        return slice(*self.near.offsets[self.place : self.place + 2].tolist())

    def describe_answers(self) -> str:
        """Return in words how many of those who answered say the label; of a soft vote, its largest part counts."""
        r, workers, label = self.near, self.near.worker[self.answers], self.near.label[self.answers]
        if not len(workers):
            return "Nobody answered"
        order = np.argsort(-r.weights(self.answers), kind="stable")
        top = order[np.unique(workers[order], return_index=True)[1]]
        if len(top) == 1:
            return f"The only answer is {to_word(r.labels[label[top]].tolist()[0])}"
        n_for = int(np.sum(r.class_of_label[label[top]] == self.label))
        noun, name = KINDS[self.found.source_kind].noun, to_word(self.found.labels.classes[[self.label]].tolist()[0])
        return f"{n_for or 'None'} of {plural(len(top), noun)} {'says' if n_for < 2 else 'say'} {name}"

    def list_answers(self, weights: Floats) -> list[Part]:
        """Return a part for each worker, the weightiest first, from weights of answers; beyond some, one for all."""
        r, workers, label = self.near, self.near.worker[self.answers], self.near.label[self.answers]
        strength, parts = r.weights(self.answers), list[Part]()
        for worker in dict.fromkeys(workers.tolist()):  # an answer may be spread over several labels
            own = np.flatnonzero(workers == worker)
            said = r.labels[[label[own[strength[own].argmax()]]]].tolist()[0]
            name = r.workers[[worker]].tolist()[0]
            parts.append(Part("answer", float(weights[own].sum()), to_word(name), name, said))
        parts.sort(key=lambda part: -abs(part.weight))
        rest = parts[MOST_WORKERS:]
        if len(rest) > 1:
            total = math.fsum(part.weight for part in rest)
            parts[MOST_WORKERS:] = [Part("other answers", total, f"{plural(len(rest), 'other worker')}")]
        return parts


def cut_out(r: Answers, row: int) -> tuple[Answers, int]:
    """Return the answers to an item, or to all items of its sequence, and its place among these."""
    if r.sequences is None:
        return r.about(np.array([row])), 0
    s = r.sequences
    owner = int(np.searchsorted(s.offsets, row, side="right")) - 1
    first, last = s.offsets[owner : owner + 2].tolist()
    answers = slice(int(r.offsets[first]), int(r.offsets[last]))
    weight, share = (None if each is None else each[answers].copy() for each in (r.weight, r.share))
    cut = replace(
        r,
        offsets=r.offsets[first : last + 1] - r.offsets[first],
        worker=r.worker[answers].copy(),
        label=r.label[answers].copy(),
        weight=weight,
        share=share,
        soft=None if r.soft is None else r.soft[answers].copy(),
        order=None,
        keys=Sequences(s.ids[[owner]], np.array([0, last - first]), s.position[first:last]),
    )
    return cut, row - first


# Models with a hidden truth


def weigh_parts(case: Case) -> tuple[int, list[Part], float]:
    """Return the other class, the parts of the sum, and the sum before calibration."""
    found, label = case.found, case.label
    fitted, reported = found.labels.fitted[case.row], found.labels.posterior[case.row]
    logs = dict(list_evidence(case))
    by_answer = weigh_answers(case)
    against = reported.copy()
    if case.is_known:  # no other class has a probability: the one that answers and prior speak for
        against = sum(logs.values(), by_answer.sum(axis=0))
        against = np.maximum(against, 2 * LOG_IMPOSSIBLE)
    against[label] = -np.inf
    other = int(against.argmax())
    pair = [label, other]
    prior, *others = (Part(kind, float(each[label] - each[other]), name) for (kind, name), each in logs.items())
    weights = by_answer[:, label] - by_answer[:, other]
    parts = [prior, *case.list_answers(weights), *others]
    rest = name_rest(case)
    total = math.fsum(part.weight for part in parts)
    if case.is_known:
        return other, [*parts, Part("known label", math.inf, "known label, which decides")], math.inf
    if fitted[pair].min() > SMALLEST:
        left = log_ratio(fitted, pair) - total
        if rest[0] != "set aside" or abs(left) > ROUNDING:
            parts.append(Part(rest[0], left, rest[1]))
    uncalibrated = math.fsum(part.weight for part in parts)
    return other, [*parts, *list_calibration(case, uncalibrated, reported, pair)], uncalibrated


def log_ratio(probabilities: Floats, pair: Sequence[int]) -> float:
    """Return the log odds of two classes."""
    first, second = np.maximum(probabilities[pair], SMALLEST).tolist()
    return math.log(first) - math.log(second)


def weigh_answers(case: Case) -> Floats:
    """Return the log evidence of each answer to the item for each class, (n_answers, K)."""
    r, learned = case.near, case.found.learned
    workers = describe_workers(case)
    block = Source(r).lay_out(workers, anchored=False)[0]
    if not len(block.weight) and not len(block.soft):
        row = workers.encode(r)[case.answers]
        logs = np.maximum(workers.weigh_rows(learned.log_weights)[row], LOG_IMPOSSIBLE)
        return logs if r.share is None else np.asarray(logs * r.share[case.answers, None])
    mixed = workers.factors(as_used(np.maximum(learned.log_weights, LOG_IMPOSSIBLE)), True).log_answers(block)
    if case.found.takes_silence:
        mixed += find_replaced(case)
    return np.maximum(mixed[case.answers], LOG_IMPOSSIBLE)


def describe_workers(case: Case) -> WorkerModel:
    """Return the worker model of the fit, for the answers near the item."""
    r, found = case.near, case.found
    layout = r.class_of_label, len(found.names.classes), found.takes_silence, found.learned.said
    return found.learned.worker_model.of(r, *layout)


def find_replaced(case: Case) -> Floats:
    """Return the log evidence of the silence that each answer near the item is in the place of, (n_answers, K).

    That of an answer which is spread over labels is in the first of its rows.
    """
    r = case.near
    silence = np.maximum(case.found.learned.log_weights[:, -1], LOG_IMPOSSIBLE)
    pair = r.item_of_answer() * r.n_workers + r.worker
    first = np.append(True, pair[1:] != pair[:-1])[: len(pair)]
    power = np.where(first, 1.0 if r.share is None else r.share, 0.0)
    return np.asarray(power[:, None] * silence[r.worker])


def list_evidence(case: Case) -> Iterator[tuple[tuple[str, str], Floats]]:
    """Yield what else speaks for the classes, beside the answers: kind and name, and the log evidence (K,)."""
    found, structure = case.found, case.found.learned.structure
    prior = structure.log_prior(is_linked(case))
    if case.answers.stop > case.answers.start:
        prior = prior + describe_workers(case).weigh_items(found.learned.log_weights)
    yield ("prior", "class prior"), np.maximum(prior, LOG_IMPOSSIBLE)
    if found.takes_silence:
        yield from weigh_silence(case)
    if found.given.log_prior is not None:
        yield name_content(found), np.maximum(found.given.log_prior[case.row], LOG_IMPOSSIBLE)


def is_linked(case: Case) -> bool:
    """Tell whether an item has neighbours that count."""
    found = case.found
    if not isinstance(found.learned.structure, FieldParameters):
        return False
    graph = case.recipe.weigh_links(found.answers, found.given.graph)
    assert graph is not None
    return bool(find_linked(graph)[case.row])


def weigh_silence(case: Case) -> Iterator[tuple[tuple[str, str], Floats]]:
    """Yield what the silence of others says, and the votes that keep classes to their meaning."""
    r, learned = case.near, case.found.learned
    silence = np.maximum(learned.log_weights[:, -1], LOG_IMPOSSIBLE)
    weight = np.ones(r.n_workers) if r.silence_weight is None else r.silence_weight
    spoke = r.worker[case.answers]
    n_silent = r.n_workers - len(np.unique(spoke))
    others = weight @ silence - find_replaced(case)[case.answers].sum(axis=0)
    yield ("silence", f"silence of {plural(n_silent, 'worker')}"), others
    block = Source(r).lay_out(describe_workers(case))[0]
    yield ("votes", "share of the votes"), block.anchor[case.place]


def name_content(found: Result) -> tuple[str, str]:
    """Return the kind and the name of what is known of items beside their answers."""
    used = found.guidance is not None and found.guidance.findings.used
    return ("classifier", "classifier of the features") if used else ("item prior", "prior of the item")


def name_rest(case: Case) -> tuple[str, str]:
    """Return the kind and the name of what is left of the sum."""
    found, structure = case.found, case.found.learned.structure
    if isinstance(structure, ChainParameters):
        return "sequence", "the rest of the sequence"
    if isinstance(structure, FieldParameters):
        return "neighbours", describe_neighbours(case)
    if isinstance(structure, SetsParameters):
        return "tags", "share of the tag"
    if found.given.has_priors and found.given.log_prior is None:  # of a model that was loaded
        return name_content(found)
    return "set aside", "answers that were set aside, since no class allows all of them"


def describe_neighbours(case: Case) -> str:
    """Say how many neighbours an item has, and how many of them have its label."""
    found, graph = case.found, case.found.given.graph
    assert graph is not None
    near = graph.neighbours[graph.offsets[case.row] : graph.offsets[case.row + 1]]
    n_same = int((found.labels.codes[near] == case.label).sum())
    same = f", {n_same:,} with the same label" if len(near) else ""
    return f"{plural(len(near), 'neighbour')}{same}"


def list_calibration(case: Case, uncalibrated: float, reported: Floats, pair: Sequence[int]) -> Iterator[Part]:
    """Yield what calibration adds to the sum."""
    calibrated, recipe = case.found.calibrated, case.recipe
    if calibrated is None or not isinstance(recipe, LatentRecipe):
        return
    power = calibrated.found.power if bool(recipe.find_raised(case.near)[case.place]) else 1.0
    printed = log_ratio(reported, pair) if reported[pair].min() > SMALLEST else power * uncalibrated
    honest = printed / power
    if abs(honest - uncalibrated) > ROUNDING or recipe.calibration != "none":
        yield Part("left out", honest - uncalibrated, "workers judged without this item")
    if power != 1:
        yield Part("power", printed - honest, f"calibration, to the power {power:.2g}")


# Votes


def weigh_votes(case: Case) -> tuple[int, list[Part], float]:
    """Return the other class, and the shares of the votes."""
    found, r, label = case.found, case.near, case.label
    shares = found.labels.posterior[case.row]
    others = shares.copy()
    others[label] = -1.0
    against = int(others.argmax())
    klass, weight = r.class_of_label[r.label[case.answers]], r.weights(case.answers)
    total = float(weight[klass >= 0].sum())
    parts = case.list_answers(np.where(klass >= 0, weight / max(total, SMALLEST), 0.0))
    if case.is_known:
        parts.append(Part("known label", 1.0, "known label, which decides"))
    elif total == 0:
        parts.append(Part("prior", float(shares[label]), "no votes: shares of all items"))
    elif find_tied(shares[None])[0].sum() > 1:
        how = "drawn at random" if cast(VoteRecipe, case.recipe).ties == "random" else "the first one is taken"
        parts.append(Part("tie", 0.0, f"several classes have most votes: {how}"))
    return against, parts, math.nan


class Explanations(dict[str, Explanation]):
    """Why an item has its labels, by question or tag; it prints as all of them."""

    def __str__(self) -> str:
        return "\n\n".join(f"{name}\n{each}" for name, each in self.items())

    __repr__ = __str__


# Which item


def find_item(r: Answers, item: object, kind: str) -> int:
    """Return the index of an item, by its id or by sequence and position; say what is like it if there is none.

    `kind` is what a sequence is called.
    """
    s = r.sequences
    if s is None and name_composite(r.columns):
        item = tuples_to_ids([item])[0]
    key = (item,) if s is None else item
    if not isinstance(key, (tuple, list)) or len(key) != (1 if s is None else 2):
        raise InputError(
            f"An item of these answers is named by sequence and position; {shorten(item)} is no such pair."
        )
    row = int(r.find_items([to_column([part]) for part in key])[0])
    if row >= 0:
        return row
    if s is None:
        raise InputError(f"There is no item {shorten(item)}.", suggest(r.items.tolist(), item))
    owner = int(lookup(s.ids, to_column([key[0]]))[0])
    if owner < 0:
        raise InputError(f"There is no {kind} {shorten(key[0])}.", suggest(s.ids.tolist(), key[0]))
    places = s.position[s.offsets[owner] : s.offsets[owner + 1]].tolist()
    raise InputError(f"Sequence {shorten(key[0])} has no position {shorten(key[1])}.", f"It has {listing(places)}.")


def suggest(ids: list[object], wanted: object) -> str:
    """Return which ids are like one that is not there, or what ids look like."""
    texts = {str(each): each for each in ids[:MOST_COMPARED]}
    close = difflib.get_close_matches(str(wanted), texts, n=3)
    named = [texts[each] for each in close]
    return f"Did you mean {listing(named)}?" if named else f"There are {listing(ids)}."
