"""Labels that differ only in how they are written: by case, by spaces, or by the Unicode form of their letters.

The normal form of a label is NFC(casefold(NFD(text))), with each run of white space as one blank and none around the
text: "Cat", "cat" and " cat " are all "cat". Letters of full width, ligatures and the like are left alone (that would
be NFKC, which also takes "x²" for "x2"). Labels that are no text stay as they are.

IOB tags are told by their capital letter, so where all labels are tags it stays one: "b-per" and "B-PER " are "B-per".
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import numpy as np

from .tagging import SCHEMES, split_tag
from .vocabulary import (
    Codes,
    Column,
    Values,
    encode_in_order_of_appearance,
    encode_sorted,
    find_present,
    objects,
    to_column,
)


def normalise_label(label: Any) -> Any:
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


def normalise_tag(label: Any) -> Any:
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

    def spell(label: Any) -> Any:
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
