"""Times as platforms and spreadsheets write them, brought to ISO 8601.

A zone of three letters is a fixed offset: PST is 8 hours behind UTC and PDT 7, and UTC and GMT are UTC. Other zones are
left alone, because their letters have several meanings. Dates such as 11/13/2025 are read where some row of the column
tells which number is the month.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ZONES = {"": "", "UTC": "+00:00", "GMT": "+00:00", "Z": "+00:00", "PST": "-08:00", "PDT": "-07:00"}
_CLOCK = r"(\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?)"
# Mon Nov 10 10:12:21 PST 2025, as MTurk writes it.
_LONG = re.compile(rf"[A-Za-z]{{3}},? ([A-Za-z]{{3}}) +(\d{{1,2}}) {_CLOCK} (?:([A-Z]+) )?(\d{{4}})")
# 2025-11-10 10:12:21 UTC
_WITH_ZONE = re.compile(rf"(\d{{4}}-\d\d-\d\d)[ T]{_CLOCK} ([A-Z]+)")
_SLASHED = re.compile(rf"(\d{{1,2}})/(\d{{1,2}})/(\d{{4}})(?: {_CLOCK}(?: ([A-Z]+))?)?")


class DoubtfulDates(ValueError):
    """Dates of which no row tells which number is the month."""


def write_as_iso(texts: Sequence[str | None]) -> list[str | None]:
    """Return times as ISO 8601 writes them; what is not recognised stays as it is.

    >>> write_as_iso(["Mon Nov 10 10:12:21 PST 2025", "2025-11-10 10:12:21 UTC", "soon", None])
    ['2025-11-10T10:12:21-08:00', '2025-11-10T10:12:21+00:00', 'soon', None]
    >>> write_as_iso(["11/10/2025 9:12", "11/13/2025 10:12:21"])
    ['2025-11-10T09:12:00', '2025-11-13T10:12:21']
    """
    found = [None if text is None else _SLASHED.fullmatch(text) for text in texts]
    if any(found) and all(match or text is None for match, text in zip(found, texts, strict=True)):
        return _order_parts(found, texts)
    return [text if text is None else _write(text) for text in texts]


def _write(text: str) -> str:
    """Return one time, with the name of its month or its zone, as ISO 8601 writes it."""
    if (match := _LONG.fullmatch(text)) and match[1].lower() in _MONTHS:
        month = _MONTHS.index(match[1].lower()) + 1
        date, clock, zone = f"{match[5]}-{month:02}-{int(match[2]):02}", match[3], match[4]
    elif match := _WITH_ZONE.fullmatch(text):
        date, clock, zone = match.groups()
    else:
        return text
    return text if (zone or "") not in _ZONES else f"{date}T{_fill(clock)}{_ZONES[zone or '']}"


def _order_parts(found: Sequence[re.Match[str] | None], texts: Sequence[str | None]) -> list[str | None]:
    """Return dates with slashes as ISO 8601 writes them, if some of them tell which part is the month."""
    pairs = {(int(match[1]), int(match[2])) for match in found if match}
    month_first = any(second > 12 for _, second in pairs)
    day_first = any(first > 12 for first, _ in pairs)
    if month_first and day_first:  # one of them is no date
        return list(texts)
    if not month_first and not day_first and any(first != second for first, second in pairs):
        raise DoubtfulDates
    month, day = (2, 1) if day_first else (1, 2)
    written: list[str | None] = []
    for match, text in zip(found, texts, strict=True):
        if match is None or (match[5] or "") not in _ZONES:
            written.append(text)
            continue
        clock = f"T{_fill(match[4])}{_ZONES[match[5] or '']}" if match[4] else ""
        written.append(f"{match[3]}-{int(match[month]):02}-{int(match[day]):02}{clock}")
    return written


def _fill(clock: str) -> str:
    """Return the time of a day with two digits of the hour, and with seconds."""
    hour, _, rest = clock.partition(":")
    return f"{int(hour):02}:{rest}" if ":" in rest else f"{int(hour):02}:{rest}:00"
