"""Scores of the paper, the best worker, and the graph of pixels."""

from __future__ import annotations

import numpy as np
import pytest

import consilience as cs
from paper.scoring import find_best_worker, score_inside, score_parts_of_spans, score_per_sequence
from paper.table_2 import join_pixels


def score_slowly(truth, found, lengths, n_classes):
    """The paper's F: one sequence and class at a time."""
    scores, begin = [], 0
    for length in lengths:
        t, f = truth[begin : begin + length], found[begin : begin + length]
        begin += length
        for k in range(n_classes):
            right = sum(a == b == k for a, b in zip(t, f, strict=True))
            precision = right / list(f).count(k) if k in f else 0.0
            recall = right / list(t).count(k) if k in t else 0.0
            both = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
            scores.append((precision, recall, both))
    return np.mean(scores, axis=0)


@pytest.mark.parametrize("seed", range(5))
def test_scores_per_sequence(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, 7)
    truth, found = rng.integers(0, 4, (2, lengths.sum()))
    assert np.allclose(score_per_sequence(truth, found, lengths, 4), score_slowly(truth, found, lengths, 4), atol=1e-12)


def test_scores_of_words_and_parts_of_spans():
    truth = np.array(["B", "I", "O", "O", "B", "I"])
    found = np.array(["B", "I", "I", "O", "O", "B"])
    assert score_inside(truth, found) == pytest.approx((3 / 4, 3 / 4, 3 / 4))
    # One predicted span is two thirds right, the other all; both true spans are found, the second by half.
    assert score_parts_of_spans(truth, found, np.array([4, 2])) == pytest.approx((5 / 6, 3 / 4, 15 / 19))
    assert score_inside(np.array(["O"]), np.array(["O"])) == (0, 0, 0)


def test_best_worker():
    r = cs.Answers.from_matrix([[0, 0, 1], [1, 0, 1], [1, -1, 0], [0, -1, 0]])
    best = find_best_worker(r, np.array([0, 1, 1, -1]))
    assert best.items.tolist() == [0, 1, 2]  # the last has no truth
    assert best.said.tolist() == [0, 1, 1]  # the answers of the first worker


def test_best_worker_has_answered_enough():
    answers = np.full((100, 2), -1)
    answers[:, 0] = np.arange(100) % 2
    answers[:4, 1] = [1, 0, 1, 0]
    truth = 1 - np.arange(100) % 2
    # The first worker is always wrong, but the second answered only four items.
    assert len(find_best_worker(cs.Answers.from_matrix(answers), truth).items) == 100
    answers[4, 1] = 1
    assert len(find_best_worker(cs.Answers.from_matrix(answers), truth).items) == 5


def test_pixels_join_the_eight_around_them():
    rng = np.random.default_rng(0)
    place = np.array([(i, y, x) for i in range(3) for y in range(4) for x in range(5 - i) if rng.random() < 0.8])
    order = rng.permutation(len(place))
    image, row, column = place[order].T
    graph = join_pixels(np.arange(len(place)), image, row, column)
    near = {
        (a, b)
        for a in range(len(place))
        for b in range(len(place))
        if a != b and image[a] == image[b] and max(abs(row[a] - row[b]), abs(column[a] - column[b])) == 1
    }
    source = np.repeat(np.arange(graph.n_items), graph.degrees)
    assert set(zip(source.tolist(), graph.neighbours.tolist(), strict=True)) == near
