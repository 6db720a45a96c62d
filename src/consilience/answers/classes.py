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
from .tagging import SCHEMES, looks_tagged, split_tag

ABSTAIN = ("ignore", "answer")


def choose_classes(
    classes: ArrayLike | None,
    labels: Values,
    abstain: str = "ignore",
    background: object = None,
    spell: Callable[[Any], Any] | None = None,
) -> tuple[Values, Any]:
    """Return the classes, and the background: None where silence means nothing.

    Parameters
    ----------
    classes, abstain, background
        As in `Answers.from_frame`.
    labels : ndarray
        What workers said.
    spell : callable, optional
        Writes a label as the labels have been written.
    """
    if not is_among(abstain, ABSTAIN):
        raise parameter_error("abstain", "Answers", "'ignore' or 'answer'", abstain)
    if abstain == "ignore" and background is not None:
        raise ParameterError(
            Sentence(
                "{background} is for items about which all workers are silent: it needs {abstain}.", abstain="answer"
            ),
            keyword="background",
        )
    known = _read_classes(classes, labels, spell)
    if spell is not None:
        background = spell(background)
    if abstain == "ignore":
        return known, None
    chosen = _choose_background(_spell_as(labels, background), known, labels, given=classes is not None)
    if _has(known, chosen):
        return known, chosen
    return to_values(to_column([chosen, *known.tolist()])), chosen


def choose_scale(
    ordered: bool | None, positions: ArrayLike | None, classes: Values, given: object, is_scale: bool
) -> tuple[Values, tuple[float, ...] | None]:
    """Return the classes in their order, and where they are on their scale: None for classes without an order.

    - ``ordered=True``: classes that are given are in order. Else they are those of a column that says so itself. Else
      they must be numbers, or text that reads as numbers, and are sorted by value. Anything else is an error.
    - ``ordered=None``: so are they if the column says so, or positions are given; else they have no order.
    - ``ordered=False``: they have no order.

    Parameters
    ----------
    ordered, positions
        As in `Answers.from_frame`. The default positions are ranks: 0, 1, 2, ...
    classes : ndarray
        What can be true.
    given : object
        What names the classes, None if nothing does. A set names them in no order.
    is_scale : bool
        Whether the column of labels says that it is ordered.
    """
    if ordered is not None:
        check_truth("ordered", "Answers", ordered)
    if positions is not None and ordered is not None and not ordered:
        raise ParameterError(
            Sentence("{positions} are those of classes in order.", positions=Python("positions")),
            Sentence("Leave {ordered} out, or the positions.", ordered=False),
            keyword="positions",
        )
    if not (ordered or (ordered is None and (is_scale or positions is not None))):
        return classes, None
    if (given is None or isinstance(given, (set, frozenset))) and not is_scale:
        classes = classes[_order_by_value(classes)]
    elif given is not None:
        _doubt_order(classes, placed=positions is not None)
    return classes, tuple(map(float, range(len(classes)))) if positions is None else _read_positions(positions, classes)


def _doubt_order(classes: Values, placed: bool) -> None:
    """Raise an error if one level was named, and warn of numbers that were named from high to low."""
    if len(classes) < 2:
        raise InputError(
            f"A scale has at least two levels. Got {listing(classes.tolist())}.",
            Sentence("Name all levels from low to high with {classes}."),
            keyword="classes",
        )
    values = to_numbers(classes)
    if values is not None and not placed and (np.diff(values) < 0).all():
        first, last = (shorten(each) for each in classes[[0, -1]].tolist())
        warn_of(
            f"The classes {listing(classes.tolist())} are numbers from high to low, so {first} is the lowest level and "
            f"{last} the highest.",
            Sentence("If that is not meant, name them from low to high with {classes}."),
            keyword="classes",
        )


def are_ranks(positions: tuple[float, ...]) -> bool:
    """Tell whether positions are the default ones."""
    return positions == tuple(range(len(positions)))


def extend_scale(classes: Values, positions: tuple[float, ...], said: Values, labels: Values) -> Values:
    """Return the classes of a scale with labels that are new, where it is known where these belong.

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


def _read_positions(positions: ArrayLike, classes: Values) -> tuple[float, ...]:
    """Return positions, one for each class, increasing."""
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


def _order_by_value(classes: Values) -> Indices:
    """Return the order of classes that are numbers; others, or two that are the same number, are an error."""
    values = to_numbers(classes)
    if values is None:
        words = [each for each in classes.tolist() if to_numbers(objects([each])) is None]
        verb = "is no number" if len(words) == 1 else "are no numbers"
        raise InputError(
            f"The order of the classes is not known: {listing(words)} {verb}.",
            Sentence("Name the classes from low to high with {classes}."),
            'A label that is left out, such as "can\'t tell", is an answer beside the scale.',
            keyword="classes",
        )
    order = np.argsort(values, kind="stable")
    same = np.flatnonzero(np.diff(values[order]) == 0)
    if len(same):
        raise InputError(
            f"The labels {listing(classes[order[same[0] : same[0] + 2]].tolist())} are the same number.",
            "Write them alike.",
        )
    return order


def to_numbers(labels: Values) -> Floats | None:
    """Return labels as numbers, if they are numbers or text that reads as such; None if some are not.

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


def find_by_value(known: Values, labels: Values) -> Indices:
    """Return where labels are among known ones, else where the same number is, written in another way; else -1.

    >>> find_by_value(objects(["1.0", "2.0", "unsure"]), objects(["2", "unsure", "3"]))
    array([ 1,  2, -1])
    """
    found = lookup(known, to_column(labels))
    missing = np.flatnonzero(found < 0)
    if not len(missing):
        return found
    place: dict[float, int] = {}
    for at, each in enumerate(known.tolist()):
        value = _to_number(each)
        if value is not None:
            place.setdefault(value, at)
    for row, each in zip(missing.tolist(), labels[missing].tolist(), strict=True):
        value = _to_number(each)
        found[row] = -1 if value is None else place.get(value, -1)
    return found


def _to_number(label: object) -> float | None:
    """Return a label as a number; None of truth values, and of what is no number."""
    value = None if isinstance(label, (bool, np.bool_)) else to_numbers(objects([label]))
    return None if value is None else float(value[0])


def _choose_background(background: object, classes: Values, labels: Values, given: bool) -> Any:
    """Return the background, by default "O" where the labels are tags; one that looks like a slip is an error."""
    default = "O" if "O" in classes.tolist() or looks_tagged(labels) else None
    if background is None and default is None:
        raise ParameterError(
            Sentence("With {abstain}, an item about which all workers are silent must have a class.", abstain="answer"),
            Sentence("Name it with {background}."),
            f"The classes are {listing(classes.tolist())}.",
            keyword="background",
        )
    if background is None or is_among(background, (default,)) or _has(classes, background):
        return default if background is None else background
    close = _find_close(background, labels)
    if given or close is not None:
        remedies = [] if close is None else [Sentence("Did you mean {background}?", background=close)]
        raise ParameterError(
            Sentence("{background} is not among the classes.", background=background),
            f"They are {listing(classes.tolist())}.",
            *remedies,
            Sentence("A class that nobody said can be added with {classes}."),
            keyword="background",
        )
    return background


def _spell_as(labels: Values, background: object) -> Any:
    """Return text as the labels are written, as far as they can be: 0 where "0" is given and the labels are numbers."""
    kind = to_column(labels)
    if not isinstance(background, str) or isinstance(kind, np.ndarray) or is_text(kind.type):
        return background
    try:
        return pc.cast(pa.array([background]), kind.type)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return background


def _has(classes: Values, label: object) -> bool:
    return bool(lookup(classes, to_column([label]))[0] >= 0)


def _find_close(background: object, labels: Values) -> Any:
    """Return the label that may have been meant, or None.

    One word that ends in the other is no slip: "abnormal" may well be the background where "normal" was said.
    """
    if not isinstance(background, str):
        return None
    word = background.strip().lower()
    texts = {label.strip().lower(): label for label in labels.tolist() if isinstance(label, str)}
    likely = [text for text in texts if text == word or not (text.endswith(word) or word.endswith(text))]
    return next((texts[text] for text in difflib.get_close_matches(word, likely, n=1, cutoff=0.8)), None)


def list_classes(classes: ArrayLike | None) -> Values:
    """Return the classes that are given, in order; none if they are not."""
    if classes is None:
        return objects([])
    if isinstance(classes, (set, frozenset)):
        entries = objects(list(classes))
        classes = entries[sorted_order(entries)]
    return read_distinct(classes, "classes")


def _read_classes(classes: ArrayLike | None, labels: Values, spell: Callable[[Any], Any] | None) -> Values:
    """Return the classes: the labels, or those given, which must include at least one label."""
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
    if labels.dtype != values.dtype and (found >= 0).all():
        return _drop_repeats(labels[found].tolist())  # as the workers' labels are written: 1, not "1"
    if (found != exact).any():
        said = labels.tolist()
        return _drop_repeats(
            [said[at] if at >= 0 else str(each) for at, each in zip(found.tolist(), values.tolist(), strict=True)]
        )
    return values


def _drop_repeats(entries: list[Any]) -> Values:
    return to_values(to_column(list(dict.fromkeys(entries))))


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
    """Return the function that writes labels alike, and the classes that go with them.

    It writes them as those classes that are given, and all others in their normal form.

    >>> spell = choose_spelling(objects(["YES", "no "]), ["Yes"])
    >>> spell("yes "), spell("No")
    ('Yes', 'no')
    """
    spell = _choose_form(labels)
    given = [" ".join(each.split()) for each in classes if isinstance(each, str) and not isinstance(each, Enum)]
    if spell is normalise_tag:  # which is told by its capital letter
        given = [each for each in given if each[:1] == normalise_tag(each)[:1]]
    return spell_as(objects(given), spell) if given else spell


def _choose_form(labels: Values) -> Callable[[Any], Any]:
    """Return the function that brings labels to their normal form: as tags, if that is what they are."""
    tags = [normalise_tag(label) for label in labels.tolist()]
    for letters in set(SCHEMES.values()):
        parts = {split_tag(tag, letters) for tag in tags}
        if None not in parts and parts - {("O", "")}:
            return normalise_tag
    return normalise_label


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
