"""How labels are written, and what can be true: classes, and the class of items about which all workers are silent.

The normal form of a label is NFC(casefold(NFD(text))), with each run of white space as one blank and none around the
text: "Cat", "cat" and " cat " are all "cat". Letters of full width, ligatures and the like are left alone (that would
be NFKC, which also takes "x²" for "x2"). Labels that are no text stay as they are.

IOB tags are told by their capital letter, so where all labels are tags it stays one: "b-per" and "B-PER " are "B-per".
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from ..arguments import check_truth, is_among, to_floats
from ..errors import InputError, ParameterError, Python, Sentence, listing, parameter_error, shorten, warn_of
from ..kernels import Floats
from .columns import (
    Codes,
    Column,
    Indices,
    Values,
    encode_in_order_of_appearance,
    encode_sorted,
    find_present,
    is_text,
    lookup,
    objects,
    sorted_order,
    to_column,
    to_values,
)
from .tables import read_distinct
from .tagging import SCHEMES, looks_tagged

ABSTAIN = ("ignore", "answer")


def choose_classes(
    labels: Values,
    classes: ArrayLike | None,
    abstain: str,
    background: object,
    ordered: bool | None,
    positions: ArrayLike | None,
    levels: object,
    spell: Callable[[Any], Any] | None = None,
    is_scale: bool = False,
) -> tuple[Values, tuple[float, ...] | None, Any]:
    """The classes, where they are on their scale (None without one), and the background (None: silence means nothing).

    - ``ordered=True``: classes that are given are in order. Else they are those of a column that says so itself. Else
      they must be numbers, or text that reads as numbers, and are sorted by value. Anything else is an error.
    - ``ordered=None``: so are they if the column says so, or positions are given; else they have no order.
    - ``ordered=False``: they have no order.

    Parameters
    ----------
    labels : ndarray
        What workers said.
    classes, abstain, background, ordered, positions
        As in `Answers.from_frame`. The default positions are ranks: 0, 1, 2, ...
    levels : object
        What names the classes, None if nothing does. A set names them in no order.
    spell : callable, optional
        Writes a label as the labels have been written.
    is_scale : bool
        Whether the column of labels says that it is ordered.
    """
    if not is_among(abstain, ABSTAIN):
        raise parameter_error("abstain", "Answers", "'ignore' or 'answer'", abstain)
    if abstain == "ignore" and background is not None:
        problem = "{background} is for items about which all workers are silent: it needs {abstain}."
        raise ParameterError(Sentence(problem, abstain="answer"), keyword="background")
    if ordered is not None:
        check_truth("ordered", "Answers", ordered)
    if positions is not None and ordered is not None and not ordered:
        raise ParameterError(
            Sentence("{positions} are those of classes in order.", positions=Python("positions")),
            Sentence("Leave {ordered} out, or the positions.", ordered=False),
            keyword="positions",
        )
    known = _read_classes(classes, labels, spell)
    if abstain == "answer":
        background = background if spell is None else spell(background)
        background = _choose_background(background, known, labels, given=classes is not None)
        if lookup(known, to_column([background]))[0] < 0:
            known = to_values(to_column([background, *known.tolist()]))
    if not (ordered or (ordered is None and (is_scale or positions is not None))):
        return known, None, background
    values = to_numbers(known)
    if (levels is None or isinstance(levels, (set, frozenset))) and not is_scale:
        if values is None:
            words = [each for each in known.tolist() if to_numbers(objects([each])) is None]
            raise InputError(
                f"The order of the classes is not known: {listing(words)} {'is' if len(words) == 1 else 'are'} no "
                f"{'number' if len(words) == 1 else 'numbers'}.",
                Sentence("Name the classes from low to high with {classes}."),
                'A label that is left out, such as "can\'t tell", is an answer beside the scale.',
                keyword="classes",
            )
        order = np.argsort(values, kind="stable")
        known, same = known[order], np.flatnonzero(np.diff(values[order]) == 0)
        if len(same):
            both = listing(known[same[0] : same[0] + 2].tolist())
            raise InputError(f"The labels {both} are the same number.", "Write them alike.")
    elif levels is not None and len(known) < 2:
        raise InputError(
            f"A scale has at least two levels. Got {listing(known.tolist())}.",
            Sentence("Name all levels from low to high with {classes}."),
            keyword="classes",
        )
    elif levels is not None and values is not None and positions is None and (np.diff(values) < 0).all():
        first, last = (shorten(each) for each in known[[0, -1]].tolist())
        warn_of(
            f"The classes {listing(known.tolist())} are numbers from high to low, so {first} is the lowest level and "
            f"{last} the highest.",
            Sentence("If that is not meant, name them from low to high with {classes}."),
            keyword="classes",
        )
    places = tuple(map(float, range(len(known)))) if positions is None else _read_positions(positions, known)
    return known, places, background


def _read_classes(classes: ArrayLike | None, labels: Values, spell: Callable[[Any], Any] | None) -> Values:
    """The classes: the labels, or those given, which must include at least one label."""
    if classes is None:
        return labels
    values = list_classes(classes)
    if spell is not None:
        values = to_values(to_column(list(dict.fromkeys(map(spell, values.tolist())))))
    if not len(values):
        raise InputError("classes must name at least one class.", keyword="classes")
    exact, found = lookup(labels, to_column(values)), find_by_value(labels, values)
    if (found < 0).all():
        raise InputError(
            f"No worker ever said any of the classes {listing(values.tolist())}; they said {listing(labels.tolist())}.",
            Sentence("Write {classes} as the labels are written."),
            keyword="classes",
        )
    if (found == exact).all() and (labels.dtype == values.dtype or (found < 0).any()):
        return values
    # As the workers' labels are written: 1, not "1".
    said = labels.tolist()
    written = [said[at] if at >= 0 else str(each) for at, each in zip(found.tolist(), values.tolist(), strict=True)]
    return to_values(to_column(list(dict.fromkeys(written))))


def list_classes(classes: ArrayLike | None) -> Values:
    """The classes that are given, in order; none if they are not."""
    if classes is None:
        return objects([])
    if isinstance(classes, (set, frozenset)):
        entries = objects(list(classes))
        classes = entries[sorted_order(entries)]
    return read_distinct(classes, "classes")


def _choose_background(background: object, classes: Values, labels: Values, given: bool) -> Any:
    """The background, by default "O" where the labels are tags; one that looks like a slip is an error."""
    if background is None:
        if "O" in classes.tolist() or looks_tagged(labels):
            return "O"
        raise ParameterError(
            Sentence("With {abstain}, an item about which all workers are silent must have a class.", abstain="answer"),
            Sentence("Name it with {background}."),
            f"The classes are {listing(classes.tolist())}.",
            keyword="background",
        )
    kind, texts = to_column(labels), dict[str, Any]()
    if isinstance(background, str):
        if not (isinstance(kind, np.ndarray) or is_text(kind.type)):  # 0 where "0" is given and labels are numbers
            with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
                background = pc.cast(pa.array([background]), kind.type)[0].as_py()
        texts = {label.strip().lower(): label for label in labels.tolist() if isinstance(label, str)}
    if lookup(classes, to_column([background]))[0] >= 0 or (is_among(background, ("O",)) and looks_tagged(labels)):
        return background
    word = str(background).strip().lower()
    # One word that ends in the other is no slip: "abnormal" may well be the background where "normal" was said.
    likely = [text for text in texts if text == word or not (text.endswith(word) or word.endswith(text))]
    close = difflib.get_close_matches(word, likely, n=1, cutoff=0.8)
    if not (given or close):
        return background
    remedies = [Sentence("Did you mean {background}?", background=texts[close[0]])] if close else []
    raise ParameterError(
        Sentence("{background} is not among the classes.", background=background),
        f"They are {listing(classes.tolist())}.",
        *remedies,
        Sentence("A class that nobody said can be added with {classes}."),
        keyword="background",
    )


def _read_positions(positions: ArrayLike, classes: Values) -> tuple[float, ...]:
    """Positions, one for each class, increasing."""
    try:
        places = to_floats(positions)
    except (TypeError, ValueError) as error:
        raise parameter_error("positions", "Answers", "numbers, one for each class", positions) from error
    if places.shape != (len(classes),):
        raise ParameterError(
            f"There must be one position for each of the {len(classes)} classes {listing(classes.tolist())}. Got "
            f"{places.size}.",
            Sentence("Name all levels with {classes}, also those that nobody said."),
            keyword="positions",
        )
    if not np.isfinite(places).all():
        raise ParameterError(f"Positions must be finite. Got {listing(places.tolist())}.", keyword="positions")
    if not (np.diff(places) > 0).all():
        raise ParameterError(
            f"The positions of the classes {listing(classes.tolist())} must increase from each to the next. Got "
            f"{listing(places.tolist())}.",
            Sentence("Name the classes from low to high with {classes}."),
            keyword="positions",
        )
    return tuple(places.tolist())


def are_ranks(positions: tuple[float, ...]) -> bool:
    """Tell whether positions are the default ones."""
    return positions == tuple(range(len(positions)))


def extend_scale(classes: Values, positions: tuple[float, ...], said: Values, labels: Values) -> Values:
    """The classes of a scale with labels that are new, where it is known where these belong.

    That is so for numbers, if the classes were all that was said and had ranks for positions. Otherwise the classes
    stay as they are.

    Parameters
    ----------
    classes, positions
        The scale.
    said, labels : ndarray
        What workers said before, and what they say now.
    """
    values, before = to_numbers(labels), to_numbers(classes)
    if values is None or before is None or not are_ranks(positions) or (np.diff(before) <= 0).any():
        return classes
    order = np.argsort(values, kind="stable")
    if set(classes.tolist()) != set(said.tolist()) or (np.diff(values[order]) == 0).any():
        return classes
    return labels[order]


def to_numbers(labels: Values) -> Floats | None:
    """Labels as numbers, if they are numbers or text that reads as such; None if some are not.

    >>> to_numbers(objects(["1", "2.5"])), to_numbers(objects(["1", "unsure"]))
    (array([1. , 2.5]), None)
    """
    if labels.dtype.kind in "mM" or any(isinstance(each, str) and "_" in each for each in labels.tolist()):
        return None
    try:
        values = np.array([float(each) for each in labels.tolist()])
    except (TypeError, ValueError, OverflowError):
        return None
    return values if np.isfinite(values).all() else None


def to_number(label: object) -> float | None:
    """A label as a number; None of truth values, and of what is no number."""
    value = None if isinstance(label, (bool, np.bool_)) else to_numbers(objects([label]))
    return None if value is None else float(value[0])


def find_by_value(known: Values, labels: Values) -> Indices:
    """Where labels are among known ones, else where the same number is, written in another way; else -1.

    >>> find_by_value(objects(["1.0", "2.0", "unsure"]), objects(["2", "unsure", "3"]))
    array([ 1,  2, -1])
    """
    found = lookup(known, to_column(labels))
    missing = np.flatnonzero(found < 0)
    if len(missing):
        place = {to_number(each): at for at, each in reversed(list(enumerate(known.tolist())))}
        place[None] = -1
        found[missing] = [place.get(to_number(each), -1) for each in labels[missing].tolist()]
    return found


def normalise_label(label: object) -> Any:
    """Return the normal form of a label.

    >>> normalise_label("  New  York "), normalise_label("STRASSE") == normalise_label("Straße"), normalise_label(7)
    ('new york', True, 7)
    """
    if not isinstance(label, str) or isinstance(label, Enum):
        return label
    text = " ".join(label.split()).casefold()
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", label).casefold())
    return " ".join(unicodedata.normalize("NFC", folded.casefold()).split())


def normalise_tag(label: object) -> Any:
    """Return the normal form of an IOB tag, with a capital as its first letter.

    >>> normalise_tag("b-PER"), normalise_tag(" o")
    ('B-per', 'O')
    """
    text = normalise_label(label)
    return text[:1].upper() + text[1:] if isinstance(text, str) else text


def choose_spelling(labels: Values, classes: Iterable[Any] = ()) -> Callable[[Any], Any]:
    """The function that writes labels alike, and the classes that go with them.

    It writes them as those classes that are given, and all others in their normal form; tags keep a capital.

    >>> spell = choose_spelling(objects(["YES", "no "]), ["Yes"])
    >>> spell("yes "), spell("No")
    ('Yes', 'no')
    """
    given = [" ".join(each.split()) for each in classes if isinstance(each, str) and not isinstance(each, Enum)]
    tags = objects([normalise_tag(label) for label in labels.tolist()])
    if not any(looks_tagged(tags, letters) for letters in set(SCHEMES.values())):
        return spell_as(objects(given)) if given else normalise_label
    given = [each for each in given if each[:1] == normalise_tag(each)[:1]]
    return spell_as(objects(given), normalise_tag) if given else normalise_tag


def spell_as(known: Values, normal: Callable[[Any], Any] = normalise_label) -> Callable[[Any], Any]:
    """Return the function that writes text as the first known label of the same normal form; other text becomes normal.

    >>> spell = spell_as(objects(["O", "B-per"]))
    >>> spell("o"), spell(" b-PER"), spell("X"), spell(7)
    ('O', 'B-per', 'x', 7)
    """
    forms = {normal(label): label for label in reversed(known.tolist()) if isinstance(label, str)}

    def spell(label: object) -> Any:
        text = normal(label)
        return forms.get(text, text) if isinstance(text, str) and not isinstance(text, Enum) else text

    return spell


def merge_spellings(
    codes: Codes, labels: Values, spell: Callable[[Any], Any], ordered: bool = False
) -> tuple[Codes, Values]:
    """Return codes and vocabulary of labels in their normal form; with `ordered` in the order they had, else sorted."""
    encode = encode_in_order_of_appearance if ordered else encode_sorted
    place, merged = encode(to_column(list(map(spell, labels.tolist()))))
    return place[codes], merged


def normalise_column(column: Column, spell: Callable[[Any], Any] = normalise_label) -> Column:
    """Return a column with each label in its normal form; missing ones stay missing.

    >>> normalise_column(to_column(["Cat", None, "cat"])).to_pylist()
    ['cat', None, 'cat']
    """
    present = find_present(column)
    codes, labels = encode_in_order_of_appearance(column.take(present))
    spelled = np.full(len(column), None, object)
    spelled[present] = objects(list(map(spell, labels.tolist())))[codes]
    return to_column(spelled)


def group_spellings(values: Iterable[Any]) -> list[list[str]]:
    """Return the texts that have the same normal form, for each normal form that has several.

    >>> group_spellings(["Cat", "dog", "cat", 3])
    [['Cat', 'cat']]
    """
    groups: dict[str, list[str]] = {}
    for value in values:
        if isinstance(value, str) and not isinstance(value, Enum):
            groups.setdefault(normalise_label(value), []).append(value)
    return [group for group in groups.values() if len(group) > 1]
