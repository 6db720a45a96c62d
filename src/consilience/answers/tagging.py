"""Tags of tokens: which tag may follow which, the spans among them, and how probable each span is.

Tag schemes are read from the names of the labels.

=========  =====================================================================================================
"bio"      IOB2: a span of type X is B-X, then any number of I-X; everything else is O
"iob1"     a span is a run of I-X; B-X only where a span of type X follows another directly
"bilou"    B-X I-X ... L-X for longer spans, U-X for spans of one (BIOES: E for L, S for U)
=========  =====================================================================================================

Spans are read from tags as conlleval reads them, whatever the scheme: a span begins at B (S, U), where the type
changes, and at I (E, L) after O or after the end of a span; it goes on while neither happens. So an I-X after O begins
a span.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, Sentence, listing, parameter_error, shorten
from ..kernels import Floats, Truths
from .columns import Values

SCHEMES = {"bio": "BI", "iob2": "BI", "iob1": "BI", "bilou": "BILU", "bioes": "BIES"}
# Which tags of the same type a tag cannot do without: to be reached, or for the span to end.
_NEEDED = {
    "BI": {"I": "B"},
    "iob1": {"B": "I"},
    "BILU": {"B": "L", "I": "BL", "L": "B"},
    "BIES": {"B": "E", "I": "BE", "E": "B"},
}
_TAG = re.compile(r"([A-Z])(?:[-_](.*))?", re.DOTALL)


class Transitions(NamedTuple):
    """What may follow what: `steps[from, to]`, and what may begin and end a sequence."""

    steps: Truths
    start: Truths
    end: Truths


def find_transitions(transitions: object, classes: Values) -> Transitions:
    """What the parameter `transitions` allows: anything ("free"), a tag scheme by name, or a boolean matrix [from, to].

    With a matrix sequences may begin and end anywhere.
    """
    free = free_transitions(len(classes))
    if isinstance(transitions, str):
        return free if transitions == "free" else tag_transitions(classes, transitions)
    try:
        steps = np.asarray(transitions)
    except ValueError:  # rows of different lengths
        steps = np.empty(0)
    if steps.shape != free.steps.shape or steps.dtype != bool:
        expected = f"'free', 'bio' or a boolean matrix [from, to] of shape {free.steps.shape}"
        raise parameter_error("transitions", "HiddenMarkov", expected, transitions)
    stuck = classes[~steps.any(axis=1)].tolist()
    if stuck:
        raise InputError(f"transitions forbid every step from {listing(stuck)}.", "Allow at least one.")
    return free._replace(steps=steps)


def free_transitions(n_classes: int) -> Transitions:
    """Transitions that allow everything."""
    return Transitions(np.ones((n_classes, n_classes), bool), np.ones(n_classes, bool), np.ones(n_classes, bool))


def split_tag(tag: object, letters: Container[str]) -> tuple[str, str] | None:
    """(prefix, type) of a tag, whose prefix is "O" or one of `letters`; None if it is no such tag.

    >>> split_tag("B-PER", "BI"), split_tag("B", "BI"), split_tag("O", "BI"), split_tag("PER", "BI")
    (('B', 'PER'), ('B', ''), ('O', ''), None)
    """
    if not isinstance(tag, str):
        return None
    if tag == "O":
        return "O", ""
    match = _TAG.fullmatch(tag)
    return None if match is None or match[1] not in letters else (match[1], match[2] or "")


def parse_tag(tag: object, letters: str) -> tuple[str, str]:
    """What `split_tag` does; anything but a tag of the scheme is an error."""
    parts = split_tag(tag, letters)
    if parts is None:
        raise InputError(
            f"{shorten(tag)} is no tag of this scheme: expected O or one of {', '.join(letters)} with a type, such as "
            f"{letters[0]}-PER.",
            Sentence("Use {transitions}, or a boolean matrix.", transitions="free"),
        )
    return parts


def looks_tagged(labels: Values, letters: str = SCHEMES["bio"]) -> bool:
    """Whether all labels are tags, by default IOB tags, and at least one of them is of a span.

    >>> looks_tagged(np.array(["O", "B-PER"], dtype=object)), looks_tagged(np.array(["O", "A"], dtype=object))
    (True, False)
    """
    tags = {split_tag(label, letters) for label in labels.tolist()}
    return None not in tags and bool(tags - {("O", "")})


def looks_iob2(labels: Values) -> bool:
    """Whether all labels are IOB2 tags: with each I-X there is its B-X (else they are IOB1, or no tags).

    Where nobody says O, as in answers that leave it out, each tag must have a type, and one of them must be an I-X.

    >>> looks_iob2(np.array(["B-PER", "I-PER", "O"], dtype=object)), looks_iob2(np.array(["I-PER", "O"], dtype=object))
    (True, False)
    >>> looks_iob2(np.array(["B-PER", "I-PER"], dtype=object)), looks_iob2(np.array(["B", "I"], dtype=object))
    (True, False)
    """
    if not looks_tagged(labels):
        return False
    tags = {parse_tag(label, SCHEMES["bio"]) for label in labels.tolist()}
    if ("O", "") not in tags and not (all(kind for _, kind in tags) and any(prefix == "I" for prefix, _ in tags)):
        return False
    return all(("B", kind) in tags for _, kind in tags - {("O", "")})


def complete_tags(classes: Values, scheme: str) -> Values:
    """The classes with O, and the tags that others need to be reached, added at the end where missing."""
    letters = SCHEMES[scheme]
    tags = [parse_tag(tag, letters) for tag in classes.tolist()]
    separator = next((tag[1] for tag in classes.tolist() if len(tag) > 1), "-")
    needed = _NEEDED["iob1" if scheme == "iob1" else letters]
    wanted = [("O", "")] + [(other, kind) for prefix, kind in tags for other in needed.get(prefix, "")]
    missing = [tag for tag in dict.fromkeys(wanted) if tag not in tags]
    if not missing:
        return classes
    added = [prefix + (separator + kind if kind else "") for prefix, kind in missing]
    return np.array(classes.tolist() + added, dtype=object)


def tag_transitions(classes: Values, scheme: str) -> Transitions:
    """What the scheme allows among the classes.

    >>> tag_transitions(np.array(["O", "B-X", "I-X"], dtype=object), "bio").steps.astype(int)
    array([[1, 1, 0],
           [1, 1, 1],
           [1, 1, 1]])
    """
    if scheme not in SCHEMES:
        known = ", ".join(repr(name) for name in ("free", *SCHEMES))
        raise parameter_error("transitions", "HiddenMarkov", f"{known} or a boolean matrix", scheme)
    letters = SCHEMES[scheme]

    def follows(before: tuple[str, str], after: tuple[str, str]) -> bool:
        continues = before[0] in "BI" and before[1] == after[1]
        if len(letters) == 2:  # one of the letters may only go on with a span
            return continues or after[0] != ("B" if scheme == "iob1" else "I")
        return continues if after[0] in "ILE" else before[0] not in "BI"

    outside, tags = ("O", ""), [parse_tag(tag, letters) for tag in classes.tolist()]
    steps = np.array([[follows(before, after) for after in tags] for before in tags], dtype=bool)
    start = np.array([follows(outside, tag) for tag in tags], dtype=bool)
    return Transitions(steps, start, np.array([follows(tag, outside) for tag in tags], dtype=bool))


OUTSIDE, BEGIN, INSIDE, END, SINGLE = range(5)
# What the letter before the type says. BILOU's L and U are what BIOES calls E and S.
LETTERS = {"O": OUTSIDE, "B": BEGIN, "I": INSIDE, "E": END, "L": END, "S": SINGLE, "U": SINGLE}


def find_spans(
    prefix: NDArray[np.int64], kind: NDArray[np.int64], first: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first token of each span, and the one after its last; `first` marks the first token of each sequence.

    Tags are given as codes of prefix and type. A span is of the type of its first token.
    """
    before, kind_before = np.roll(prefix, 1), np.roll(kind, 1)
    before[first] = OUTSIDE
    inside = prefix != OUTSIDE
    closed = np.isin(before, (OUTSIDE, END, SINGLE))
    begins = inside & (np.isin(prefix, (BEGIN, SINGLE)) | closed | (kind != kind_before))
    start = np.flatnonzero(begins)
    # A span ends before the next token that is outside, begins another, or belongs to another sequence.
    ends = np.flatnonzero(np.concatenate([~inside | begins | first, [True]]))
    return start, ends[np.searchsorted(ends, start, side="right")]


def find_continuations(prefix: NDArray[np.int64], kind: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which tag goes on with a span, [before, after], as `find_spans` reads them."""
    open_before, continues = np.isin(prefix, (BEGIN, INSIDE)), np.isin(prefix, (INSIDE, END))
    return np.asarray(open_before[:, None] & continues & (kind[:, None] == kind))


def split_tags(tags: Sequence[object]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Prefix codes and type numbers of tags; each distinct tag is parsed once."""
    parsed: dict[object, tuple[int, int]] = {}
    kinds: dict[str, int] = {}
    odd = [tag for tag in tags if not isinstance(tag, str)]  # which may have no hash
    for tag in odd[:1] or dict.fromkeys(tags):
        parts = split_tag(tag, LETTERS)
        if parts is None:
            raise InputError(f"{shorten(tag)} is no tag: expected O, or B, I, E, S, L or U with a type, such as B-PER.")
        prefix = LETTERS[parts[0]]
        parsed[tag] = (prefix, -1 if prefix == OUTSIDE else kinds.setdefault(parts[1], len(kinds)))
    codes = np.array([parsed[tag] for tag in tags], dtype=np.int64).reshape(-1, 2)
    return codes[:, 0], codes[:, 1]


class Runs(NamedTuple):
    """Runs of tags that are spans, in order."""

    sequence: NDArray[np.int64]  # number of the sequence
    first: NDArray[np.int64]  # first token, as an index into all items
    stop: NDArray[np.int64]  # token after the last one
    offset: NDArray[np.int64]  # first token of the sequence


def are_tags(classes: Values) -> bool:
    """Whether all classes are tags of spans, of any scheme."""
    return all(split_tag(name, LETTERS) is not None for name in classes.tolist())


def find_runs(codes: NDArray[np.int64], classes: Values, sequence: NDArray[np.int64]) -> Runs:
    """The spans among labels, given as indices into the classes; `sequence` is the number of that of each."""
    prefix, kind = split_tags(classes.tolist())
    first = np.append(True, sequence[1:] != sequence[:-1])[: len(codes)]
    start, stop = find_spans(prefix[codes], kind[codes], first)
    return Runs(sequence[start], start, stop, np.flatnonzero(first)[sequence[start]])


def find_run_probabilities(parts: Floats, runs: Runs) -> Floats:
    """The probability of each span: enter_a step_{a+1} ... step_b stop_b."""
    if not len(runs.first):
        return np.empty(0)
    steps = parts[:, 1].copy()
    steps[runs.first] = parts[runs.first, 0]
    ends = np.stack([runs.first, runs.stop], axis=1).ravel()
    product = np.multiply.reduceat(np.append(steps, 1.0), ends)[::2]
    return np.asarray(np.clip(product * parts[runs.stop - 1, 2], 0.0, 1.0))


def follow_alone(posterior: Floats, codes: NDArray[np.int64], classes: Values, sequence: NDArray[np.int64]) -> Floats:
    """What `consilience.kernels.chain.follow_paths` does, for labels that are independent of each other."""
    continues = find_continuations(*split_tags(classes.tolist())).astype(np.float64)
    rows = np.arange(len(codes))
    linked = np.flatnonzero(sequence[1:] == sequence[:-1])
    parts = np.ones((len(codes), 3))
    parts[:, 1] = posterior[rows, codes]
    parts[linked + 1, 0] -= np.einsum("ij,ji->i", posterior[linked], continues[:, codes[linked + 1]])
    parts[:, 0] *= parts[:, 1]
    parts[linked, 2] -= np.einsum("ij,ij->i", posterior[linked + 1], continues[codes[linked]])
    return parts
