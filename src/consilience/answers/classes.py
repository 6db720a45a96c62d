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

from ..arguments import is_among
from ..errors import InputError, ParameterError, Sentence, listing, parameter_error
from .columns import Codes, Column, Values, find_present, is_text, objects, to_column, to_values
from .frames import read_distinct
from .tagging import SCHEMES, looks_tagged, split_tag
from .vocabulary import encode_in_order_of_appearance, encode_sorted, lookup, sorted_order

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
        As in `Responses.from_frame`.
    labels : ndarray
        What workers said.
    spell : callable, optional
        Writes a label as the labels have been written.
    """
    if not is_among(abstain, ABSTAIN):
        raise parameter_error("abstain", "Responses", "'ignore' or 'answer'", abstain)
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
    found = lookup(labels, to_column(values))
    if (found < 0).all():
        raise InputError(
            f"No worker ever said any of the classes {listing(values.tolist())}; they said {listing(labels.tolist())}.",
            Sentence("Write {classes} as the labels are written."),
            keyword="classes",
        )
    if labels.dtype != values.dtype and (found >= 0).all():
        return np.asarray(labels[found])  # as the workers' labels are written: 1, not "1"
    return values


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
