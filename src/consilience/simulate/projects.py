"""Simulated projects of other kinds: spans in made-up texts, sets of tags, verdicts on pairs of candidates, numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..answers.answers import Answers
from ..answers.columns import Indices, objects
from ..errors import parameter_error
from ..kernels import Floats, Truths
from ..kinds.spans import Spans
from ..kinds.tags import Tags
from ..options import SHARE, number, whole
from ..rankings.comparisons import LEFT, RIGHT, TIE, VERDICTS, Comparisons
from ..rankings.likelihood import find_odds
from .crowds import check_numbers, to_range

# How many words an entity has, by probability.
WORDS_PER_ENTITY = (0.45, 0.35, 0.15, 0.05)
SYLLABLES = ("ba", "den", "ki", "lor", "mu", "ne", "ra", "sto", "tel", "vi")
# The error rates of workers are those given, times a factor from this range.
CARELESSNESS = (0.5, 1.5)


@dataclass(frozen=True, eq=False)
class SpanSimulation:
    """Texts with spans, and what is behind them.

    Attributes
    ----------
    spans : Spans
        The spans that workers marked.
    truth : Spans
        The same texts, with the true spans as `gold`; `consilience.evaluate` takes it.
    carelessness : ndarray
        By how much the error rates of each worker were multiplied.
    """

    spans: Spans
    truth: Spans
    carelessness: Floats


def spans(
    n_documents: int = 200,
    n_workers: int = 5,
    n_types: int = 3,
    *,
    length: int | tuple[int, int] = (8, 24),
    density: float = 0.12,
    readers: int | None = None,
    misses: float = 0.3,
    boundary_errors: float = 0.15,
    type_errors: float = 0.15,
    inventions: float = 0.05,
    seed: int = 0,
) -> SpanSimulation:
    """Draw a project in which workers mark entities in sentences.

    Each worker has a carelessness between 0.5 and 1.5, by which all error rates are multiplied.

    Parameters
    ----------
    n_documents, n_workers, n_types : int
        Sizes.
    length : int or (int, int)
        Words of a sentence, or the least and the most.
    density : float
        Probability that an entity begins at a word that is in none. Entities have one to four words.
    readers : int, optional
        How many different workers read each document; default: all.
    misses : float
        Share of entities that a worker does not see.
    boundary_errors : float
        Share of the others of which a worker moves one end by a word, inwards or outwards.
    type_errors : float
        Share of those to which a worker gives another type.
    inventions : float
        Share of documents in which a worker marks a word that is in no entity.
    seed : int
        Same seed, same project.

    Returns
    -------
    SpanSimulation
        With `spans`, `truth` and `carelessness`.

    Examples
    --------
    >>> import consilience as cs
    >>> cs.simulate.spans(100, n_workers=4, seed=1).spans
    Spans(...spans in 100 documents by 4 workers, 3 types: 'LOC', 'ORG', 'PER')
    """
    check_numbers(whole(1), n_documents=n_documents, n_workers=n_workers, n_types=n_types)
    check_numbers(whole(0), seed=seed)
    check_numbers(SHARE, density=density, misses=misses, boundary_errors=boundary_errors, type_errors=type_errors)
    check_numbers(SHARE, inventions=inventions)
    shortest, longest = to_range(length)
    n_readers = n_workers if readers is None else readers
    check_numbers(whole(1), readers=n_readers)
    if n_readers > n_workers:
        raise parameter_error("readers", "simulate", f"at most n_workers={n_workers}", readers)
    truths, people, slips = np.random.default_rng(seed).spawn(3)
    sizes = truths.integers(shortest, longest + 1, n_documents)
    first_words, n_words = np.cumsum(sizes) - sizes, int(sizes.sum())

    # Entities, in words of their document: document, first, stop, type. And for each word whether it is in one, with a
    # word's space around all documents.
    begins = truths.random(n_words) < density
    n_own = truths.choice(len(WORDS_PER_ENTITY), n_words, p=WORDS_PER_ENTITY) + 1
    types = truths.integers(0, n_types, n_words)
    entities, inside = [], np.zeros(n_words + 2, bool)
    for d, (base, size) in enumerate(zip(first_words.tolist(), sizes.tolist(), strict=True)):
        free = 0
        for word in np.flatnonzero(begins[base : base + size]).tolist():
            if word >= free:
                free = min(size, word + int(n_own[base + word]))
                entities.append((d, word, free, int(types[base + word])))
                inside[base + word + 1 : base + free + 1] = True
    parts, n_parts = truths.integers(0, len(SYLLABLES), (n_words, 3)).tolist(), truths.integers(1, 4, n_words).tolist()
    words = ["".join(SYLLABLES[part] for part in own[:n]) for own, n in zip(parts, n_parts, strict=True)]
    words = [word.capitalize() if named else word for word, named in zip(words, inside[1:-1].tolist(), strict=True)]

    # Each entity with each reading of its document: whether it is seen, how its ends move, and which type it gets.
    carelessness = people.uniform(*CARELESSNESS, n_workers)
    chosen = np.sort(people.random((n_documents, n_workers)).argsort(axis=1)[:, :n_readers], axis=1)
    readings = np.stack([np.repeat(np.arange(n_documents), n_readers), chosen.ravel()], axis=1)
    document, first, stop, kind = np.repeat(np.array(entities, np.int64).reshape(-1, 4), n_readers, axis=0).T
    worker = chosen[document[::n_readers]].ravel()
    draws = slips.random((len(worker), 3)) / carelessness[worker, None]
    kept = draws[:, 0] >= misses
    draws, worker = draws[kept], worker[kept]
    document, first, stop, kind = (column[kept] for column in (document, first, stop, kind))
    moved = draws[:, 1] < boundary_errors
    at_start, outwards = slips.random((2, len(worker))) < 0.5
    outwards |= stop - first == 1
    # Nothing grows into another entity, nor beyond the sentence; of two that are a word apart only the left one grows.
    place = first_words[document] + 1
    left_free = (first > 1) & ~inside[place + first - 1] & ~inside[np.maximum(place + first - 2, 0)]
    right_free = (stop < sizes[document]) & ~inside[place + stop]
    step = np.where(outwards, -1, 1)
    first = first + (moved & at_start & (~outwards | left_free)) * step
    stop = stop - (moved & ~at_start & (~outwards | right_free)) * step
    other = slips.integers(1, max(2, n_types), len(worker))
    kind = np.where((draws[:, 2] < type_errors) & (n_types > 1), (kind + other) % n_types, kind)
    # A word far from entities, in some readings.
    spot = (slips.random(len(readings)) * sizes[readings[:, 0]]).astype(np.int64)
    near = first_words[readings[:, 0]] + 1 + spot
    far = ~inside[near] & ~inside[near - 1] & ~inside[np.minimum(near + 1, n_words + 1)]
    more = far & (slips.random(len(readings)) < inventions * carelessness[readings[:, 1]])
    invented = np.stack([*readings[more].T, spot[more], spot[more] + 1, slips.integers(0, n_types, int(more.sum()))])
    marks = np.concatenate([np.stack([document, worker, first, stop, kind]), invented], axis=1)

    names = objects(["LOC", "ORG", "PER"] if n_types <= 3 else [f"T{number:04d}" for number in range(n_types)])
    who = objects([f"w{w}" for w in range(n_workers)])
    bounds = list(zip(first_words.tolist(), sizes.tolist(), strict=True))
    texts = {d: " ".join(words[base : base + size]) + "." for d, (base, size) in enumerate(bounds)}
    places = np.cumsum([0, *(len(word) + 1 for word in words)])  # of each word in all texts, one after the other

    def tabulate(document: Indices, worker: Indices, first: Indices, stop: Indices, kind: Indices) -> dict[str, Any]:
        base = first_words[document]
        start, end = places[base + first] - places[base], places[base + stop] - 1 - places[base]
        return {"document": document, "worker": who[worker], "start": start, "end": end, "label": names[kind]}

    document, first, stop, kind = np.array(entities, np.int64).reshape(-1, 4).T
    known, read = tabulate(document, np.zeros_like(document), first, stop, kind), readings.T
    marked = Spans.from_frame(tabulate(*marks), texts, {"document": read[0], "worker": who[read[1]]})
    true = Spans.from_frame({name: column[:0] for name, column in known.items()}, texts, gold=known)
    # Of each document it is known which spans it has, also where these are none.
    true = replace(true, gold_documents=np.arange(n_documents))
    return SpanSimulation(marked, true, carelessness[np.argsort(who)])  # as workers are sorted


class TagSimulation(NamedTuple):
    """Sets of tags, and what is true.

    Attributes
    ----------
    tags : Tags
        The sets that workers gave.
    truth : boolean array of shape (n_items, n_tags)
        Which tags fit each item.
    sensitivity, false_alarms : ndarray of shape (n_workers, n_tags)
        How often each worker gives a tag that fits, and one that does not.
    """

    tags: Tags
    truth: Truths
    sensitivity: Floats
    false_alarms: Floats


def tags(
    n_items: int = 400,
    n_workers: int = 25,
    n_tags: int = 8,
    *,
    per_item: int = 4,
    topics: int = 4,
    sensitivity: float = 0.67,
    false_alarms: float = 0.09,
    seed: int = 0,
) -> TagSimulation:
    """Draw a project in which workers give sets of tags to items.

    Each item has a topic, in which each tag has a share of its own. Workers differ in how many tags they miss, and in
    how many they give that do not fit; a worker is much alike over all tags.

    Parameters
    ----------
    n_items, n_workers, n_tags : int
        Sizes.
    per_item : int
        How many different workers give a set to each item.
    topics : int
        Number of topics. With 1, tags are independent of each other.
    sensitivity, false_alarms : float
        Means over workers of the probability that a tag is given where it fits, and where it does not.
    seed : int
        Same seed, same project.

    Returns
    -------
    TagSimulation
        With `tags`, `truth`, `sensitivity` and `false_alarms`.

    Examples
    --------
    >>> import consilience as cs
    >>> cs.simulate.tags(100, n_workers=9, n_tags=3, seed=1).tags
    Tags(400 sets of 100 items by 9 workers, 3 tags: 'a', 'b', 'c')
    """
    check_numbers(whole(1), n_items=n_items, n_workers=n_workers, n_tags=n_tags, per_item=per_item, topics=topics)
    check_numbers(whole(0), seed=seed)
    check_numbers(SHARE, sensitivity=sensitivity, false_alarms=false_alarms)
    if per_item > n_workers:
        raise parameter_error("per_item", "simulate", f"at most n_workers={n_workers}", per_item)
    rng = np.random.default_rng(seed)
    shares = rng.beta(0.6, 1.8, (topics, n_tags))
    truth = rng.random((n_items, n_tags)) < shares[rng.integers(topics, size=n_items)]
    rates = []
    for mean, strength, spread in ((sensitivity, 9.0, 0.08), (false_alarms, 13.0, 0.02)):
        own = rng.beta(strength * mean, strength * (1 - mean), n_workers) if 0 < mean < 1 else np.full(n_workers, mean)
        rates.append(np.clip(own[:, None] + rng.normal(0, spread, (n_workers, n_tags)), 0.005, 0.98))
    item = np.repeat(np.arange(n_items), per_item)
    worker = np.sort(rng.random((n_items, n_workers)).argsort(axis=1)[:, :per_item], axis=1).ravel()
    said = rng.random((len(item), n_tags)) < np.where(truth[item], rates[0][worker], rates[1][worker])
    names = objects([chr(ord("a") + t) if n_tags <= 26 else f"tag{t + 1}" for t in range(n_tags)])
    people = objects([f"w{m + 1}" for m in range(n_workers)])
    nothing = np.empty(0, np.int64), np.zeros((0, n_tags), bool)
    sets = Tags(np.arange(n_items), people, names, item, worker.astype(np.int64), said, *nothing)
    return TagSimulation(sets, truth, *rates)


@dataclass(frozen=True, eq=False)
class ComparisonSimulation:
    """Verdicts and what is behind them.

    Attributes
    ----------
    comparisons : Comparisons
        The verdicts.
    scores : ndarray
        The true score of each candidate, in the order of `comparisons.candidates`.
    discrimination, position_bias : ndarray
        Those of each judge, in the order of `comparisons.workers`.
    """

    comparisons: Comparisons
    scores: Floats
    discrimination: Floats
    position_bias: Floats

    def to_frame(self) -> object:
        """The verdicts as a pyarrow table: item, worker, left, right, winner."""
        data = self.comparisons
        sides = {"left": data.candidates[data.left], "right": data.candidates[data.right]}
        winner = [VERDICTS[verdict] for verdict in data.verdict.tolist()]
        assert data.item is not None
        return pa.table({"item": data.item + 1, "worker": data.workers[data.worker], **sides, "winner": winner})


def comparisons(
    n_comparisons: int = 1500,
    *,
    n_candidates: int = 12,
    n_judges: int = 15,
    coin_tossers: float = 0.3,
    bias: float = 0.4,
    tie: float = 0.5,
    per_item: int = 1,
    item_spread: float = 0.0,
    seed: int = 0,
) -> ComparisonSimulation:
    """Draw verdicts on pairs of candidates by judges of different discrimination.

    Scores are normal, discriminations uniform between 0.5 and 2.5, and 0 for judges who toss coins. See `BradleyTerry`
    for what they mean.

    Parameters
    ----------
    n_comparisons, n_candidates, n_judges : int
        How many there are.
    coin_tossers : float
        The probability that a judge tosses coins.
    bias : float
        Spread of the judges' position biases.
    tie : float
        The weight of ties.
    per_item : int
        How many verdicts in a row are about the same item.
    item_spread : float
        Spread of what an item adds to the score of each candidate: some do better on some prompts.
    seed : int
        Seed of everything.

    Returns
    -------
    ComparisonSimulation

    Examples
    --------
    >>> import consilience as cs
    >>> arena = cs.simulate.comparisons(2000, n_candidates=6, seed=1)
    >>> arena.comparisons
    Comparisons(2,000 verdicts on 6 candidates by 15 judges on 2,000 items)
    >>> model = cs.rank(arena.comparisons)
    >>> bool(model.candidates_[model.scores_.argmax()] == arena.comparisons.candidates[arena.scores.argmax()])
    True
    """
    check_numbers(whole(1), n_comparisons=n_comparisons, n_judges=n_judges, per_item=per_item)
    check_numbers(whole(2), n_candidates=n_candidates)
    check_numbers(whole(0), seed=seed)
    check_numbers(SHARE, coin_tossers=coin_tossers)
    check_numbers(number(0, 1e6), bias=bias, tie=tie, item_spread=item_spread)
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1, n_candidates)
    discrimination = rng.uniform(0.5, 2.5, n_judges)
    discrimination[rng.random(n_judges) < coin_tossers] = 0.0
    position = rng.normal(0, bias, n_judges)
    left = rng.integers(n_candidates, size=n_comparisons)
    right = (left + rng.integers(1, n_candidates, n_comparisons)) % n_candidates
    judge = rng.integers(n_judges, size=n_comparisons)
    item = np.arange(n_comparisons) // per_item
    ahead = scores[left] - scores[right]
    if item_spread:
        shift = rng.normal(0, item_spread, (int(item[-1]) + 1, n_candidates))
        ahead += shift[item, left] - shift[item, right]
    with np.errstate(divide="ignore"):
        tied, lead, _ = find_odds(discrimination[judge] * ahead + position[judge], float(np.log(tie)))
    drawn = rng.random(n_comparisons)
    is_left = drawn < (1 - tied + lead) / 2
    verdict = np.where(is_left, LEFT, np.where(drawn < 1 - tied, RIGHT, TIE)).astype(np.int8)
    width = len(str(max(n_candidates, n_judges)))
    candidates, judges = (
        objects([f"{letter}{place + 1:0{width}}" for place in range(n)])
        for letter, n in (("c", n_candidates), ("j", n_judges))
    )
    columns = {role: role for role in ("left", "right", "winner", "worker", "item")}
    pair, who, about = (left.astype(np.int32), right.astype(np.int32)), judge.astype(np.int32), item.astype(np.int32)
    data = Comparisons(*pair, verdict, who, candidates, judges, item=about, columns=columns)
    return ComparisonSimulation(data, scores, discrimination, position)


@dataclass(frozen=True, eq=False)
class NumberSimulation:
    """Numbers of workers, and what is behind them.

    Attributes
    ----------
    responses : Answers
        The answers, whose labels are numbers.
    truth : ndarray of shape (n_items,)
        The true values.
    bias, spread : ndarray of shape (n_workers,)
        How much higher each worker answers, and the standard deviation of the errors.
    careless : ndarray of shape (n_workers,)
        Whose answers have nothing to do with the items.
    """

    responses: Answers
    truth: Floats
    bias: Floats
    spread: Floats
    careless: Truths


def numbers(
    n_items: int = 300,
    n_workers: int = 30,
    answers_per_item: int = 3,
    *,
    bias: float = 0.6,
    spread: tuple[float, float] = (0.3, 1.5),
    careless: float = 0.1,
    middle: float = 50.0,
    scale: float = 15.0,
    seed: int = 0,
) -> NumberSimulation:
    """Draw numbers that workers give to items: marks of harsh, lenient, sloppy and careless graders.

    True values are normal. A worker says the true value, plus a bias, plus a normal error. Careless workers say
    anything within three standard deviations of the middle.

    Parameters
    ----------
    n_items, n_workers, answers_per_item : int
        Sizes; who answers about an item is drawn.
    bias : float
        The standard deviation of biases, in units of that of the true values.
    spread : (float, float)
        The least and the largest standard deviation of a worker's errors, in the same units.
    careless : float
        The share of workers who are careless.
    middle, scale : float
        Mean and standard deviation of the true values.
    seed : int
        Same seed, same project.

    Returns
    -------
    NumberSimulation
        With `responses`, `truth`, `bias`, `spread` and `careless`.

    Examples
    --------
    >>> import consilience as cs
    >>> project = cs.simulate.numbers(seed=4)
    >>> fused = cs.fuse(project.responses, kind="numbers")
    >>> print(f"{np.corrcoef(fused.values_, project.truth)[0, 1]:.2f}")
    0.87
    """
    check_numbers(whole(1), n_items=n_items, n_workers=n_workers, answers_per_item=answers_per_item)
    check_numbers(whole(0), seed=seed)
    check_numbers(number(0), bias=bias, least_spread=spread[0], largest_spread=spread[1], scale=scale)
    check_numbers(SHARE, careless=careless)
    if answers_per_item > n_workers:
        raise parameter_error("answers_per_item", "simulate", f"at most n_workers={n_workers}", answers_per_item)
    truths, people, errors = np.random.default_rng(seed).spawn(3)
    truth = truths.normal(size=n_items)
    worker = np.argsort(people.random((n_items, n_workers)), axis=1)[:, :answers_per_item].ravel()
    biases, spreads = bias * people.normal(size=n_workers), people.uniform(*spread, n_workers)
    lost = np.zeros(n_workers, bool)
    lost[people.permutation(n_workers)[: round(careless * n_workers)]] = True
    item = np.repeat(np.arange(n_items), answers_per_item)
    said = truth[item] + biases[worker] + spreads[worker] * errors.normal(size=len(item))
    said = middle + scale * np.where(lost[worker], errors.uniform(-3, 3, len(item)), said)
    table = {"item": item, "worker": worker, "label": said}
    return NumberSimulation(Answers.from_frame(table), middle + scale * truth, scale * biases, scale * spreads, lost)
