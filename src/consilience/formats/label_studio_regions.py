"""Regions of Label Studio: which text they are in, and where.

Offsets count characters. Older exports count UTF-16 units, which differs after an emoji; the text that a region quotes
shows which of the two it is. So it does where a browser turned line breaks of two characters into one. A region that is
not where its text is, is moved there if the text occurs once.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ..errors import listing, shorten
from .annotation_tools import Scored
from .records import Entry, Place, Record

UNKNOWN_TYPE = "Only spans in plain text (labels), choices and ratings can be read."


class Controls(NamedTuple):
    """How a project names things: the tags that mark spans, and the key of the text."""

    from_name: str = "label"
    to_name: str = "text"
    key: str = "text"
    of_label: dict[str, str] | None = None  # the name of the tag that has a label


def find_kind(place: Place, result: Record) -> str:
    """Return the type of a result, after a check that regions are in plain text."""
    kind = place.get(result, "type", str, "")
    value = result.get("value")
    if kind == "labels" and isinstance(value, dict) and ("channel" in value or isinstance(value.get("start"), float)):
        place.fail("the regions are in audio or a time series (labels).", UNKNOWN_TYPE)
    if kind == "labels" and isinstance(value, dict) and isinstance(value.get("start"), str):
        place.fail("the regions are in HTML (labels with a path as start).", UNKNOWN_TYPE)
    if kind != "labels" and (kind.endswith("labels") or (isinstance(value, dict) and "labels" in value)):
        place.fail(f"a region has type {shorten(kind)}.", UNKNOWN_TYPE)
    return kind


def keep_regions(place: Place, results: Iterable[Record]) -> list[Record]:
    """Return those results that mark spans."""
    return [result for result in results if find_kind(place, result) == "labels"]


def list_labels(place: Place, region: Record) -> list[str]:
    """Return the labels of a region."""
    return place.entries(place.need(region, "value", dict), "labels", str)


# ------------------------------------------------------------------------------------------------- the text they are in


def find_controls(annotated: Iterable[tuple[Entry, Iterator[list[Record]]]], whole: bool) -> Controls | None:
    """Return the names in the first tasks that have spans; `whole`: with the tags of all labels.

    The text is the value of the data in which most regions fit, by offsets and by what they quote. Further tasks are
    looked at while several values fit equally well.

    Parameters
    ----------
    annotated : iterable of (Entry, iterator)
        Tasks, and the results of each of their annotations.
    whole : bool
        Whether to look at all of them.
    """
    names: tuple[str, str] | None = None
    key: str | None = None
    of_label: dict[str, str] = {}
    tally: Counter[str] = Counter()
    last: tuple[Place, Record, Record] | None = None
    for (place, _, _, task), given in annotated:
        for results in given:
            regions = keep_regions(place, results)
            for region in regions:
                from_name, to_name = (place.need(region, name, str) for name in ("from_name", "to_name"))
                names = names or (from_name, to_name)
                for label in list_labels(place, region):
                    of_label.setdefault(label, from_name)
                last = place, task, region
            if key is None:
                tally.update({name: sum(_align(place, text, regions)[1]) for name, text in list_texts(task).items()})
        if last is not None and key is None:
            key = _choose_key(tally, *last[1:])
        if key is not None and not whole:
            break
    if names is None or last is None:
        return None
    return Controls(*names, key or _fail_key(tally, *last), of_label)


def list_texts(task: Record) -> dict[str, str]:
    """Return the values of a task's data that are text."""
    return {key: value for key, value in task["data"].items() if isinstance(value, str)}


def _choose_key(tally: Counter[str], task: Record, region: Record) -> str | None:
    """Return which value of a task's data is the text, None if that is not clear yet."""
    most = max(tally.values(), default=0)
    fitting = [key for key, number in tally.items() if number == most > 0]
    named = [key for key in _named_keys(region) if key in fitting]
    only = fitting if most else list(list_texts(task))
    return only[0] if len(only) == 1 else next(iter(named), None)


def _named_keys(region: Record) -> list[str]:
    return [str(region.get("source") or "").removeprefix("$"), str(region.get("to_name"))]


def _fail_key(tally: Counter[str], place: Place, task: Record, region: Record) -> str:
    """Return the value of the data that is called as the region says, although nothing fits; else raise an error."""
    texts = list_texts(task)
    if not texts:
        place.fail("'data' holds no text.", UNKNOWN_TYPE)
    named = [key for key in _named_keys(region) if key in texts]
    if named:
        return named[0]
    what = "several of them" if any(tally.values()) else "none of them"
    return place.fail(
        f"it is not clear which value of 'data' is the text: {listing(texts)}. The regions fit {what}.",
        "Export the text that each region quotes, or call the text as 'to_name' of the regions does.",
    )


def find_text(entry: Entry, controls: Controls | None) -> str:
    """Return the text of a task; without controls, which only regions show, the longest."""
    place, _, _, task = entry
    if controls is not None:
        return place.need(task["data"], controls.key, str, "in 'data' the text ")
    texts = list_texts(task)
    if not texts:
        place.fail("'data' holds no text.", UNKNOWN_TYPE)
    return texts[max(texts, key=lambda key: (len(texts[key]), key))]


def check_text(place: Place, regions: Iterable[Record], controls: Controls | None) -> None:
    """Raise an error unless all regions are in the same text."""
    for region in regions:
        place.need(region, "from_name", str)
        to_name = place.need(region, "to_name", str)
        if controls is not None and to_name != controls.to_name:
            place.fail(
                f"regions are in several texts: {shorten(controls.to_name)} and {shorten(to_name)}.",
                "Keep the annotations of one of them.",
            )


# -------------------------------------------------------------------------------------------------------------- offsets


def find_spans(place: Place, text: str, regions: list[Record]) -> tuple[Scored, int]:
    """Return the spans of one annotation, each with its score if there is one, and how many had to be moved."""
    found: Scored = {}
    n_moved = 0
    located = []
    for (start, end), is_right, quote in zip(*_align(place, text, regions), strict=True):
        located.append((start, end) if is_right else _search(place, text, start, end, quote))
        n_moved += not is_right
    for (start, end), region in zip(located, regions, strict=True):
        score = place.check_score(region.get("score"))
        for label in list_labels(place, region):
            found[start, end, label] = score
    return found, n_moved


def _align(
    place: Place, text: str, regions: list[Record]
) -> tuple[list[tuple[int, ...]], list[bool], list[str | None]]:
    """Return start and end of the regions of one annotation in characters, whether they fit, and what they quote.

    A region fits if it is within the text, which there is what the region quotes, but for line breaks.
    """
    values = [place.need(region, "value", dict) for region in regions]
    given = [tuple(place.need(value, key, int) for key in ("start", "end")) for value in values]
    quoted = [place.get(value, "text", str) for value in values]

    def fits(offsets: Iterable[tuple[int, ...]]) -> list[bool]:
        return [
            0 <= start < end <= len(text) and (quote is None or _same(text[start:end], quote))
            for (start, end), quote in zip(offsets, quoted, strict=True)
        ]

    offsets: list[tuple[int, ...]] = given
    right = fits(given)
    for is_likely, make in ((not text.isascii(), _map_utf16), ("\r\n" in text, _map_line_breaks)):
        if is_likely and not all(right):
            convert = make(text)
            other: list[tuple[int, ...]] = [(convert(start), convert(end)) for start, end in given]
            if all(fits(other)):
                offsets, right = other, [True] * len(other)
    for i, ((start, end), quote) in enumerate(zip(offsets, quoted, strict=True)):
        if quote is not None and not right[i] and 0 <= start < end <= len(text):  # line breaks may have been changed
            right[i] = _drop_whitespace(text[start:end]) == _drop_whitespace(quote) != ""
    return offsets, right, quoted


def _same(text: str, quote: str) -> bool:
    return text == quote or text.replace("\r\n", "\n") == quote


def _search(place: Place, text: str, start: int, end: int, quote: str | None) -> tuple[int, int]:
    """Return where a region is whose offsets do not fit the text that it quotes."""
    if quote and text.count(quote) == 1:
        return text.index(quote), text.index(quote) + len(quote)
    place.check_span(text, start, end)
    return place.fail(
        f"a region quotes {shorten(quote)}, but from {start} to {end} the text is {shorten(text[start:end])}.",
        "Check that the annotations belong to this text.",
    )


def _map_utf16(text: str) -> Callable[[int], int]:
    """Return a function that turns an offset in UTF-16 units into one in characters; -1 if it is none."""
    return _map_offsets([2 if sign > "\uffff" else 1 for sign in text])


def _map_line_breaks(text: str) -> Callable[[int], int]:
    r"""Return a function that turns an offset which counts ``\r\n`` once into one in characters; -1 if it is none."""
    return _map_offsets([int(text[i : i + 2] != "\r\n") for i in range(len(text))])


def _map_offsets(widths: list[int]) -> Callable[[int], int]:
    where: dict[int, int] = {}
    for index, offset in enumerate(itertools.accumulate(widths, initial=0)):
        where.setdefault(offset, index)
    return lambda offset: where.get(offset, -1)


def _drop_whitespace(text: str) -> str:
    r"""Return text without blanks and line breaks, also those that are spelled ``\n``."""
    return re.sub(r"\s+|\\n|\\r", "", text)
