"""Tag schemes: which label may follow which, read from the names of the labels.

=========  =====================================================================================================
"bio"      IOB2: a span of type X is B-X, then any number of I-X; everything else is O
"iob1"     a span is a run of I-X; B-X only where a span of type X follows another directly
"bilou"    B-X I-X ... L-X for longer spans, U-X for spans of one (BIOES: E for L, S for U)
=========  =====================================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InputError, Sentence, listing, parameter_error, shorten
from ..kernels.types import Truths

if TYPE_CHECKING:
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
    """Return what the parameter `transitions` allows: anything ("free"), a tag scheme by name, or a boolean matrix."""
    if not isinstance(transitions, str):
        return given_transitions(transitions, classes)
    return free_transitions(len(classes)) if transitions == "free" else tag_transitions(classes, transitions)


def free_transitions(n_classes: int) -> Transitions:
    """Return transitions that allow everything."""
    return Transitions(np.ones((n_classes, n_classes), bool), np.ones(n_classes, bool), np.ones(n_classes, bool))


def split_tag(tag: object, letters: Container[str]) -> tuple[str, str] | None:
    """Return (prefix, type) of a tag, whose prefix is "O" or one of `letters`; None if it is no such tag.

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
    """Return what `split_tag` does; anything but a tag of the scheme is an error."""
    parts = split_tag(tag, letters)
    if parts is None:
        raise InputError(
            f"{shorten(tag)} is no tag of this scheme: expected O or one of {', '.join(letters)} with a type, such as "
            f"{letters[0]}-PER.",
            Sentence("Use {transitions}, or a boolean matrix.", transitions="free"),
        )
    return parts


def looks_tagged(labels: Values) -> bool:
    """Tell whether all labels are IOB tags, and at least one of them is of a span.

    >>> looks_tagged(np.array(["O", "B-PER"], dtype=object)), looks_tagged(np.array(["O", "A"], dtype=object))
    (True, False)
    """
    tags = {split_tag(label, SCHEMES["bio"]) for label in labels.tolist()}
    return None not in tags and bool(tags - {("O", "")})


def looks_iob2(labels: Values) -> bool:
    """Tell whether all labels are IOB2 tags: with each I-X there is its B-X (else they are IOB1, or no tags).

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
    """Return the classes with O, and the tags that others need to be reached, added at the end where missing."""
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
    """Return what the scheme allows among the classes.

    >>> tag_transitions(np.array(["O", "B-X", "I-X"], dtype=object), "bio").steps.astype(int)
    array([[1, 1, 0],
           [1, 1, 1],
           [1, 1, 1]])
    """
    if scheme not in SCHEMES:
        known = ", ".join(repr(name) for name in ("free", *SCHEMES))
        raise parameter_error("transitions", "HiddenMarkov", f"{known} or a boolean matrix", scheme)
    tags = [parse_tag(tag, SCHEMES[scheme]) for tag in classes.tolist()]
    follows = _follows_iob1 if scheme == "iob1" else _follows_bilou if len(SCHEMES[scheme]) == 4 else _follows_bio
    steps = np.array([[follows(before, after) for after in tags] for before in tags], dtype=bool)
    start = np.array([follows(("O", ""), tag) for tag in tags], dtype=bool)
    end = np.array([follows(tag, ("O", "")) for tag in tags], dtype=bool)
    return Transitions(steps, start, end)


def given_transitions(matrix: object, classes: Values) -> Transitions:
    """Return a boolean matrix [from, to] as transitions; sequences may begin and end anywhere."""
    n_classes = len(classes)
    try:
        steps = np.asarray(matrix)
    except ValueError:  # rows of different lengths
        steps = np.empty(0)
    if steps.shape != (n_classes, n_classes) or steps.dtype != bool:
        expected = f"'free', 'bio' or a boolean matrix [from, to] of shape ({n_classes}, {n_classes})"
        raise parameter_error("transitions", "HiddenMarkov", expected, matrix)
    stuck = ~steps.any(axis=1)
    if stuck.any():
        raise InputError(
            f"transitions forbid every step from {listing(classes[stuck].tolist())}.", "Allow at least one."
        )
    return Transitions(steps, np.ones(n_classes, bool), np.ones(n_classes, bool))


def _follows_bio(before: tuple[str, str], after: tuple[str, str]) -> bool:
    return after[0] != "I" or (before[0] in "BI" and before[1] == after[1])


def _follows_iob1(before: tuple[str, str], after: tuple[str, str]) -> bool:
    return after[0] != "B" or (before[0] in "BI" and before[1] == after[1])


def _follows_bilou(before: tuple[str, str], after: tuple[str, str]) -> bool:
    inside = before[0] in "BI"
    continues = after[0] in "ILE"
    return (inside and continues and before[1] == after[1]) or (not inside and not continues)
