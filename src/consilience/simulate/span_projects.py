"""Made-up texts in which workers mark spans, with the errors that people make."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import objects
from ..kernels import Floats
from ..kinds.spans import Marks, Spans, sort_marks
from .drawing import bad_parameter, check_between, check_whole, length_range

# How many words an entity has, by probability.
_WORDS_PER_ENTITY = (0.45, 0.35, 0.15, 0.05)
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


class _Entities(NamedTuple):
    """Places of spans, in words."""

    document: NDArray[np.int64]
    first: NDArray[np.int64]
    stop: NDArray[np.int64]
    kind: NDArray[np.int64]


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
    streams = np.random.default_rng(seed).spawn(3)
    sizes = streams[0].integers(shortest, longest + 1, n_documents)
    entities = _draw_entities(streams[0], sizes, density, n_types)
    texts, starts, ends = _write_texts(streams[0], sizes, entities)
    carelessness = streams[1].uniform(_LEAST_CARELESS, _MOST_CARELESS, n_workers)
    order = streams[1].random((n_documents, n_workers)).argsort(axis=1)[:, :n_readers]
    readings = np.stack([np.repeat(np.arange(n_documents), n_readers), np.sort(order, axis=1).ravel()], axis=1)
    owner, found = _draw_marks(streams[2], sizes, entities, readings, carelessness, rates, n_types)
    names = objects(_name_types(n_types))
    offsets = np.cumsum(sizes) - sizes

    def place(each: _Entities, worker: NDArray[np.int64]) -> Marks:
        base = offsets[each.document]
        return sort_marks(
            Marks(each.document, worker, starts[base + each.first], ends[base + each.stop - 1], each.kind)
        )

    documents = objects(np.arange(n_documents).tolist())
    workers = objects([f"w{number}" for number in range(n_workers)])
    # Sorted as text: w10 comes before w2.
    rank = np.argsort(np.argsort(workers.astype(str)))
    readings[:, 1] = rank[readings[:, 1]]
    workers, carelessness = objects(sorted(workers.tolist())), carelessness[np.argsort(rank)]
    marked = Spans(documents, texts, workers, names, place(found, rank[owner]), readings[np.lexsort(readings.T[::-1])])
    nothing = np.empty(0, np.int64)
    nobody = Marks(nothing, nothing, nothing, nothing, nothing)
    known = place(entities, np.zeros(len(entities.first), np.int64))
    truth = Spans(
        documents, texts, objects([]), names, nobody, np.empty((0, 2), np.int64), None, known, np.arange(n_documents)
    )
    return SpanSimulation(marked, truth, carelessness)


def _name_types(n_types: int) -> list[str]:
    known = ["LOC", "ORG", "PER"]
    return known[:n_types] if n_types <= len(known) else [f"T{number:04d}" for number in range(n_types)]


def _draw_entities(rng: np.random.Generator, sizes: NDArray[np.int64], density: float, n_types: int) -> _Entities:
    begins = (rng.random(int(sizes.sum())) < density).tolist()
    words = rng.choice(len(_WORDS_PER_ENTITY), len(begins), p=_WORDS_PER_ENTITY) + 1
    kinds = rng.integers(0, n_types, len(begins))
    rows, base = [], 0
    for document, size in enumerate(sizes.tolist()):
        free = 0
        for word in range(size):
            if word >= free and begins[base + word]:
                free = min(size, word + int(words[base + word]))
                rows.append((document, word, free, int(kinds[base + word])))
        base += size
    return _Entities(*np.array(rows, np.int64).reshape(-1, 4).T)


def _write_texts(
    rng: np.random.Generator, sizes: NDArray[np.int64], entities: _Entities
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Return the texts, and where each word begins and ends; words of entities are capitalised."""
    n_words = int(sizes.sum())
    parts = rng.integers(0, len(_SYLLABLES), (n_words, 3)).tolist()
    n_parts = rng.integers(1, 4, n_words).tolist()
    words = ["".join(_SYLLABLES[part] for part in own[:n]) for own, n in zip(parts, n_parts, strict=True)]
    offsets = np.cumsum(sizes) - sizes
    for document, first, stop, _ in zip(*(column.tolist() for column in entities), strict=True):
        for word in range(offsets[document] + first, offsets[document] + stop):
            words[word] = words[word].capitalize()
    lengths = np.array([len(word) for word in words], np.int64)
    before = np.cumsum(lengths + 1) - lengths - 1
    starts = before - np.repeat(before[offsets], sizes)
    bounds = [*offsets.tolist(), n_words]
    texts = [" ".join(words[a:b]) + "." for a, b in itertools.pairwise(bounds)]
    return texts, starts, starts + lengths


def _draw_marks(
    rng: np.random.Generator,
    sizes: NDArray[np.int64],
    entities: _Entities,
    readings: NDArray[np.int64],
    carelessness: Floats,
    rates: dict[str, float],
    n_types: int,
) -> tuple[NDArray[np.int64], _Entities]:
    """Return who marked what."""
    offsets = np.cumsum(sizes) - sizes
    # Words in entities, with a word's space around each document.
    inside = np.zeros(int(sizes.sum()) + 2, bool)
    for a, b in zip(
        offsets[entities.document] + entities.first, offsets[entities.document] + entities.stop, strict=True
    ):
        inside[a + 1 : b + 1] = True
    seen, reading = _pair_up(entities.document, readings)
    careless = carelessness[readings[reading, 1]]
    draws = rng.random((len(seen), 3)) / careless[:, None]
    kept = draws[:, 0] >= rates["misses"]
    seen, reading, draws = seen[kept], reading[kept], draws[kept]
    document, first, stop, kind = (column[seen] for column in entities)
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
    invented = _Entities(readings[more, 0], word[more], word[more] + 1, rng.integers(0, n_types, int(more.sum())))
    owner = np.concatenate([readings[reading, 1], readings[more, 1]])
    both = (np.concatenate(pair) for pair in zip((document, first, stop, kind), invented, strict=True))
    return owner, _Entities(*both)


def _pair_up(document: NDArray[np.int64], readings: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each entity with each reading of its document."""
    low, high = (np.searchsorted(readings[:, 0], document, side=side) for side in ("left", "right"))
    counts = high - low
    entity = np.repeat(np.arange(len(document)), counts)
    reading = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)
    return entity, reading
