"""Simulated projects of other kinds: spans in made-up texts, sets of tags, and verdicts on pairs of candidates."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..answers.columns import objects, to_column
from ..answers.tables import build_frame
from ..kernels import Floats, Integers, Truths
from ..kinds.spans import Marks, Spans, sort_marks
from ..kinds.tags import Tags
from ..rankings.comparisons import LEFT, RIGHT, TIE, VERDICTS, Comparisons
from ..rankings.likelihood import find_odds
from .drawing import bad_parameter, check_between, check_whole, length_range

# How many words an entity has, by probability.
_WORDS_PER_ENTITY = (0.45, 0.35, 0.15, 0.05)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SYLLABLES = ("ba", "den", "ki", "lor", "mu", "ne", "ra", "sto", "tel", "vi")
# The error rates of workers are those given, times a factor from this range.
_LEAST_CARELESS, _MOST_CARELESS = 0.5, 1.5


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

    def __repr__(self) -> str:
        return f"SpanSimulation({self.spans!r})"


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
    >>> cs.simulate.spans(100, n_workers=4, seed=1)
    SpanSimulation(Spans(...spans in 100 documents by 4 workers, 3 types: 'LOC', 'ORG', 'PER'))
    """
    check_whole(1, n_documents=n_documents, n_workers=n_workers, n_types=n_types)
    shortest, longest = length_range(length)
    rates = {"misses": misses, "boundary_errors": boundary_errors, "type_errors": type_errors, "inventions": inventions}
    for name, rate in {"density": density, **rates}.items():
        check_between(name, rate, 0, 1)
    n_readers = n_workers if readers is None else readers
    check_whole(1, readers=n_readers)
    if n_readers > n_workers:
        raise bad_parameter("readers", f"at most n_workers={n_workers}", readers)
    check_whole(0, seed=seed)
    truths, people, slips = np.random.default_rng(seed).spawn(3)
    sizes = truths.integers(shortest, longest + 1, n_documents)
    offsets, n_words = np.cumsum(sizes) - sizes, int(sizes.sum())

    # Entities, in words of their document: document, first, stop, type.
    begins = (truths.random(n_words) < density).tolist()
    longest_words = truths.choice(len(_WORDS_PER_ENTITY), n_words, p=_WORDS_PER_ENTITY) + 1
    types = truths.integers(0, n_types, n_words)
    rows = []
    for document, (base, size) in enumerate(zip(offsets.tolist(), sizes.tolist(), strict=True)):
        free = 0
        for word in range(size):
            if word >= free and begins[base + word]:
                free = min(size, word + int(longest_words[base + word]))
                rows.append((document, word, free, int(types[base + word])))
    entities = np.array(rows, np.int64).reshape(-1, 4).T

    # Texts, and where each word begins and ends; words of entities are capitalised.
    parts = truths.integers(0, len(_SYLLABLES), (n_words, 3)).tolist()
    n_parts = truths.integers(1, 4, n_words).tolist()
    words = ["".join(_SYLLABLES[part] for part in own[:n]) for own, n in zip(parts, n_parts, strict=True)]
    for document, first, stop, _ in rows:
        for place in range(offsets[document] + first, offsets[document] + stop):
            words[place] = words[place].capitalize()
    lengths = np.array([len(word) for word in words], np.int64)
    before = np.cumsum(lengths + 1) - lengths - 1
    starts = before - np.repeat(before[offsets], sizes)
    ends = starts + lengths
    texts = [" ".join(words[a:b]) + "." for a, b in itertools.pairwise([*offsets.tolist(), n_words])]

    carelessness = people.uniform(_LEAST_CARELESS, _MOST_CARELESS, n_workers)
    order = people.random((n_documents, n_workers)).argsort(axis=1)[:, :n_readers]
    readings = np.stack([np.repeat(np.arange(n_documents), n_readers), np.sort(order, axis=1).ravel()], axis=1)
    owner, found = _draw_marks(slips, sizes, entities, readings, carelessness, rates, n_types)

    def place_marks(marked: Integers, worker: Integers) -> Marks:
        document, first, stop, kind = marked
        return sort_marks(
            Marks(document, worker, starts[offsets[document] + first], ends[offsets[document] + stop - 1], kind)
        )

    known_types = ["LOC", "ORG", "PER"]
    names = known_types[:n_types] if n_types <= 3 else [f"T{number:04d}" for number in range(n_types)]
    documents = objects(np.arange(n_documents).tolist())
    workers = objects([f"w{number}" for number in range(n_workers)])
    # Sorted as text: w10 comes before w2.
    rank = np.argsort(np.argsort(workers.astype(str)))
    readings[:, 1] = rank[readings[:, 1]]
    workers, carelessness = objects(sorted(workers.tolist())), carelessness[np.argsort(rank)]
    readings = readings[np.lexsort(readings.T[::-1])]
    marked = Spans(documents, texts, workers, objects(names), place_marks(found, rank[owner]), readings)
    nothing = np.empty(0, np.int64)
    nobody, unread = Marks(nothing, nothing, nothing, nothing, nothing), np.empty((0, 2), np.int64)
    known = place_marks(entities, np.zeros(entities.shape[1], np.int64))
    truth = Spans(documents, texts, objects([]), objects(names), nobody, unread, None, known, np.arange(n_documents))
    return SpanSimulation(marked, truth, carelessness)


def _draw_marks(
    rng: np.random.Generator,
    sizes: Integers,
    entities: Integers,
    readings: Integers,
    carelessness: Floats,
    rates: dict[str, float],
    n_types: int,
) -> tuple[Integers, Integers]:
    """Who marked what: the workers, and the marks in words."""
    offsets = np.cumsum(sizes) - sizes
    # Words in entities, with a word's space around each document.
    inside = np.zeros(int(sizes.sum()) + 2, bool)
    for document, first, stop, _ in entities.T.tolist():
        inside[offsets[document] + first + 1 : offsets[document] + stop + 1] = True
    # Each entity with each reading of its document.
    low, high = (np.searchsorted(readings[:, 0], entities[0], side=side) for side in ("left", "right"))
    counts = high - low
    seen = np.repeat(np.arange(len(counts)), counts)
    reading = np.arange(len(seen)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)
    draws = rng.random((len(seen), 3)) / carelessness[readings[reading, 1]][:, None]
    kept = draws[:, 0] >= rates["misses"]
    seen, reading, draws = seen[kept], reading[kept], draws[kept]
    document, first, stop, kind = entities[:, seen]
    moved = draws[:, 1] < rates["boundary_errors"]
    at_start, outwards = rng.random((2, len(seen))) < 0.5
    outwards |= stop - first == 1
    # Nothing grows into another entity, nor beyond the sentence; of two that are a word apart only the left one grows.
    place = offsets[document] + 1
    left_free = (first > 1) & ~inside[place + first - 1] & ~inside[np.maximum(place + first - 2, 0)]
    right_free = (stop < sizes[document]) & ~inside[place + stop]
    step = np.where(outwards, -1, 1)
    start_moves = moved & at_start & (~outwards | left_free)
    stop_moves = moved & ~at_start & (~outwards | right_free)
    first, stop = first + start_moves * step, stop - stop_moves * step
    other = rng.integers(1, max(2, n_types), len(seen))
    wrong = (draws[:, 2] < rates["type_errors"]) & (n_types > 1)
    kind = np.where(wrong, (kind + other) % n_types, kind)
    # A word far from entities, in some readings.
    word = (rng.random(len(readings)) * sizes[readings[:, 0]]).astype(np.int64)
    near = offsets[readings[:, 0]] + 1 + word
    far = ~inside[near] & ~inside[near - 1] & ~inside[np.minimum(near + 1, len(inside) - 1)]
    more = far & (rng.random(len(readings)) < rates["inventions"] * carelessness[readings[:, 1]])
    invented = np.stack([readings[more, 0], word[more], word[more] + 1, rng.integers(0, n_types, int(more.sum()))])
    owner = np.concatenate([readings[reading, 1], readings[more, 1]])
    return owner, np.concatenate([np.stack([document, first, stop, kind]), invented], axis=1)


# ----------------------------------------------------------------------------------------------------------------- tags


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

    def __repr__(self) -> str:
        return f"TagSimulation({self.tags!r})"


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
    >>> cs.simulate.tags(100, n_workers=9, n_tags=3, seed=1)
    TagSimulation(Tags(400 sets of 100 items by 9 workers, 3 tags: 'a', 'b', 'c'))
    """
    check_whole(1, n_items=n_items, n_workers=n_workers, n_tags=n_tags, per_item=per_item, topics=topics)
    check_whole(0, seed=seed)
    check_between("sensitivity", sensitivity, 0, 1)
    check_between("false_alarms", false_alarms, 0, 1)
    if per_item > n_workers:
        raise bad_parameter("per_item", f"at most n_workers={n_workers}", per_item)
    rng = np.random.default_rng(seed)
    shares = rng.beta(0.6, 1.8, (topics, n_tags))
    truth = rng.random((n_items, n_tags)) < shares[rng.integers(topics, size=n_items)]
    hit, alarm = (
        np.clip(_draw(rng, mean, strength, n_workers) + rng.normal(0, spread, (n_workers, n_tags)), 0.005, 0.98)
        for mean, strength, spread in ((sensitivity, 9.0, 0.08), (false_alarms, 13.0, 0.02))
    )
    item = np.repeat(np.arange(n_items), per_item)
    worker = np.sort(rng.random((n_items, n_workers)).argsort(axis=1)[:, :per_item], axis=1).ravel()
    said = rng.random((len(item), n_tags)) < np.where(truth[item], hit[worker], alarm[worker])
    names = objects([_LETTERS[t] if n_tags <= len(_LETTERS) else f"tag{t + 1}" for t in range(n_tags)])
    nothing = np.empty(0, np.int64), np.zeros((0, n_tags), bool)
    people = objects([f"w{m + 1}" for m in range(n_workers)])
    sets = Tags(np.arange(n_items), people, names, item, worker.astype(np.int64), said, *nothing)
    return TagSimulation(sets, truth, hit, alarm)


def _draw(rng: np.random.Generator, mean: float, strength: float, size: int) -> Floats:
    """Return probabilities around a mean, one for each worker."""
    if mean in (0, 1):
        return np.full((size, 1), float(mean))
    return rng.beta(strength * mean, strength * (1 - mean), size)[:, None]


# ---------------------------------------------------------------------------------------------------------- comparisons


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
        """Return the verdicts as a pyarrow table: item, worker, left, right, winner."""
        data = self.comparisons
        assert data.item is not None
        return build_frame(
            {
                "item": to_column(data.item + 1),
                "worker": to_column(data.workers[data.worker]),
                "left": to_column(data.candidates[data.left]),
                "right": to_column(data.candidates[data.right]),
                "winner": to_column([VERDICTS[verdict] for verdict in data.verdict.tolist()]),
            },
            "pyarrow",
        )


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
    check_whole(1, n_comparisons=n_comparisons, n_judges=n_judges, per_item=per_item)
    check_whole(2, n_candidates=n_candidates)
    check_whole(0, seed=seed)
    check_between("coin_tossers", coin_tossers, 0, 1)
    for name, number in (("bias", bias), ("tie", tie), ("item_spread", item_spread)):
        check_between(name, number, 0, 1e6)
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
        odds = find_odds(discrimination[judge] * ahead + position[judge], float(np.log(tie)))
    drawn = rng.random(n_comparisons)
    is_left = drawn < (1 - odds.tie + odds.lead) / 2
    verdict = np.where(is_left, LEFT, np.where(drawn < 1 - odds.tie, RIGHT, TIE)).astype(np.int8)
    width = len(str(max(n_candidates, n_judges)))
    data = Comparisons(
        left.astype(np.int32),
        right.astype(np.int32),
        verdict,
        judge.astype(np.int32),
        np.array([f"c{place + 1:0{width}}" for place in range(n_candidates)], object),
        np.array([f"j{place + 1:0{width}}" for place in range(n_judges)], object),
        item=item.astype(np.int32),
        columns={role: role for role in ("left", "right", "winner", "worker", "item")},
    )
    return ComparisonSimulation(data, scores, discrimination, position)
