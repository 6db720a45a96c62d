"""Tag schemes: what may follow what, what is added, and fits that keep to it whatever workers say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import consilience as cs
from consilience.answers.tagging import (
    complete_tags,
    find_transitions,
    free_transitions,
    parse_tag,
    tag_transitions,
)
from consilience.errors import InputError, ParameterError
from effort import all_pairs


def names(*tags):
    return np.array(tags, dtype=object)


def allowed(scheme, *tags):
    """Return {(from, to)}, {first} and {last} of a scheme; None stands for the edge of a sequence."""
    found = tag_transitions(names(*tags), scheme)
    steps = {(a, b) for (i, a), (j, b) in itertools.product(enumerate(tags), repeat=2) if found.steps[i, j]}
    start = {tag for i, tag in enumerate(tags) if found.start[i]}
    end = {tag for i, tag in enumerate(tags) if found.end[i]}
    return steps, start, end


def spans_of(scheme, tags):
    """Tell, by reading a sequence from left to right, whether it is well formed."""
    inside, kind = False, None
    for tag in tags:
        prefix, _, this = tag.partition("-")
        if scheme == "bio":
            if prefix == "I" and not (inside and kind == this):
                return False
            inside, kind = prefix != "O", this
        elif scheme == "iob1":
            if prefix == "B" and not (inside and kind == this):
                return False
            inside, kind = prefix != "O", this
        else:
            open_, middle, close, single = (
                "B",
                "I",
                "LE"["E" in scheme.upper() and scheme == "bioes"],
                "US"[scheme == "bioes"],
            )
            if prefix in (middle, close):
                if not (inside and kind == this):
                    return False
                inside = prefix == middle
            else:
                if inside:
                    return False
                inside, kind = prefix == open_, this
            assert prefix in (open_, middle, close, single, "O")
    return not inside if scheme in ("bilou", "bioes") else True


@pytest.mark.parametrize(
    ("scheme", "letters"), [("bio", "BI"), ("iob2", "BI"), ("iob1", "BI"), ("bilou", "BILU"), ("bioes", "BIES")]
)
def test_schemes_allow_the_well_formed_and_nothing_else(scheme, letters):
    tags = ["O", *(f"{letter}-{kind}" for letter in letters for kind in "XY")]
    steps, start, end = allowed(scheme, *tags)
    rule = "bio" if scheme == "iob2" else scheme
    for length in (1, 2, 3):
        for sequence in itertools.product(tags, repeat=length):
            fits = (
                sequence[0] in start and sequence[-1] in end and all(p in steps for p in itertools.pairwise(sequence))
            )
            assert fits == spans_of(rule, sequence), sequence


def test_parsing():
    assert parse_tag("B_PER", "BI") == ("B", "PER")
    assert parse_tag("I-a-b", "BI") == ("I", "a-b")
    assert parse_tag("B", "BI") == ("B", "")
    for bad in ("PER", "b-PER", "L-PER", "", "BPER", 3, None, ("B", "X"), "B+X"):
        with pytest.raises(InputError, match="no tag of this scheme"):
            parse_tag(bad, "BI")


@pytest.mark.parametrize(
    ("scheme", "said", "added"),
    [
        ("bio", ["B-X", "I-X"], ["O"]),
        ("bio", ["O", "I-X"], ["B-X"]),
        ("iob2", ["I-X", "I_Y"], ["O", "B-X", "B-Y"]),
        ("bio", ["I"], ["O", "B"]),
        ("bio", ["B_X", "I_X", "I_Z"], ["O", "B_Z"]),
        ("bio", ["O", "B-X"], []),
        ("iob1", ["I-X", "O"], []),
        ("iob1", ["B-X"], ["O", "I-X"]),
        ("bilou", ["U-X"], ["O"]),
        ("bilou", ["B-X", "O"], ["L-X"]),
        ("bilou", ["I-X", "O"], ["B-X", "L-X"]),
        ("bilou", ["L-X", "O"], ["B-X"]),
        ("bioes", ["B-X", "S-Y", "O"], ["E-X"]),
    ],
)
def test_what_is_added(scheme, said, added):
    found = complete_tags(names(*said), scheme)
    assert found.tolist() == said + added
    transitions = tag_transitions(found, scheme)
    assert transitions.steps.any(axis=1).all()  # something may follow everything
    assert (transitions.steps.any(axis=0) | transitions.start).all()  # and everything can be reached


def test_matrices():
    classes = names("a", "b")
    steps = np.array([[True, False], [True, True]])
    found = find_transitions(steps, classes)
    np.testing.assert_array_equal(found.steps, steps)
    assert found.start.all()
    assert found.end.all()
    assert find_transitions(steps.tolist(), classes).steps.dtype == bool
    for bad in (np.ones((2, 2)), np.ones((3, 3), bool), np.ones(2, bool), None, [[1, 0], [1, 1]]):
        with pytest.raises(ParameterError, match="boolean matrix"):
            find_transitions(bad, classes)
    with pytest.raises(InputError, match="'b'"):
        find_transitions(np.array([[True, True], [False, False]]), classes)
    assert free_transitions(3).steps.all()
    with pytest.raises(ParameterError, match="'bioes'"):
        tag_transitions(names("O"), "iobes")


# --------------------------------------------------------------------------------------------------------------- fits


def is_valid(scheme, labels, lengths):
    return all(spans_of(scheme, part.tolist()) for part in np.split(labels, np.cumsum(lengths)[:-1]))


@pytest.mark.parametrize(
    ("scheme", "coupling", "options"),
    all_pairs(
        ["bio", "iob1", "bilou", "bioes"],
        [0.0, 1.0],
        [{}, {"estimation": "em", "smoothing": 0}, {"workers": "sequential"}],
    ),
)
def test_fits_are_well_formed_whatever_workers_say(scheme, coupling, options):
    letters = {"bio": "BI", "iob1": "BI", "bilou": "BILU", "bioes": "BIES"}[scheme]
    rng = np.random.default_rng(0)
    tags = np.array(["O", *(f"{letter}-{kind}" for letter in letters for kind in "XY")])
    lengths = [1, 1, 2, 2, 3, 11, 20, 40]
    said = tags[rng.choice(len(tags), (sum(lengths), 3))]
    r = cs.Answers.from_matrix(said, lengths=lengths)
    model = cs.HiddenMarkov(coupling=coupling, transitions=scheme, tol=0, max_iter=20, **options).fit(r)
    assert is_valid(scheme, model.labels_, lengths)
    assert np.isfinite(model.posterior_).all()
    assert (model.transition_[~tag_transitions(model.classes_, scheme).steps] == 0).all()
    assert (model.initial_[~tag_transitions(model.classes_, scheme).start] == 0).all()
    assert model.result_.n_answers.sum() == said.size


@pytest.mark.parametrize(
    ("scheme", "said"),
    [
        ("bio", ["I-X", "I-X", "B-X"]),
        ("bio", ["I", "I", "I"]),
        ("bio", ["B", "I", "B"]),
        ("iob1", ["B-X", "B-X", "B-X"]),
        ("bilou", ["B-X", "I-X", "B-X"]),
        ("bilou", ["U-X", "U-X", "L-X"]),
        ("bioes", ["I-X", "E-X", "S-X"]),
    ],
)
def test_tags_that_nobody_said_are_there(scheme, said):
    r = cs.Answers.from_matrix([[tag, tag] for tag in said], lengths=[len(said)])
    for coupling in (0.0, 0.5, 1.0):
        model = cs.HiddenMarkov(coupling=coupling, transitions=scheme).fit(r)
        assert "O" in model.classes_.tolist()
        assert model.confusion_.shape == (2, len(model.classes_), len(set(said)))
        assert is_valid(scheme, model.labels_, [len(said)])
        np.testing.assert_array_equal(model.predict(r), model.labels_)
    learned = cs.HiddenMarkov(transitions=scheme).fit(r)
    assert is_valid(scheme, learned.labels_, [len(said)])
