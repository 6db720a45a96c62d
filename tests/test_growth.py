"""Time and memory go by the size of the input: see `growth`. `make experiments` grows all, `make fuzz` further."""

from __future__ import annotations

import time

import pytest

import growth
from consilience.answers import DIALECTS, LONG
from consilience.errors import InputError
from consilience.formats import FORMATS
from growth import SOURCES, Observations, find_leaps, list_cases

# Those that are looked at in every run of what takes long.
QUICK = ["csv", "jsonl: objects"]


# Times are told apart only on a quiet machine, so all but a few are left to those who ask for them.
pytestmark = pytest.mark.robust
CASES = [
    pytest.param(*case, marks=[] if number < len(list_cases(*QUICK)) else pytest.mark.experiment)
    for number, case in enumerate(list_cases())
]


@pytest.mark.parametrize(("name", "dimension"), CASES)
def test_no_dimension_leaps(name, dimension):
    assert list(find_leaps(SOURCES[name], dimension, seconds=0.1 if name in QUICK else 0.3)) == []


def test_every_format_is_grown():
    names = {each.name for each in FORMATS} | {LONG, *(each.name for each in DIALECTS)}
    assert {name.partition(":")[0] for name in SOURCES} >= names


def spend(exponent):
    """Return what takes time by some power of the number of items, 0.005 seconds for five hundred."""

    def use(size):
        until = time.process_time() + 0.005 * (size.items / 500) ** exponent
        while time.process_time() < until:
            pass

    return use


def test_leaps_are_found(monkeypatch):
    def grow(use, seconds):
        return list(find_leaps(Observations(lambda size, _: size, use, ("items",)), "items", seconds))

    assert grow(spend(1), 0.05) == []
    leaps = grow(spend(2.5), 0.1)
    assert len(leaps) == 1
    assert "s for half of it" in leaps[0]
    monkeypatch.setattr(growth, "MOST_FACTOR", 2)
    leaps = grow(lambda size: bytearray(100 * size.items**2), 1.0)
    assert len(leaps) == 1
    assert "bytes, and" in leaps[0]


def test_refusals_must_be_quick(monkeypatch):
    def refuse(size):
        if size.items > 500:
            spend(5)(size)
            raise InputError("too large")

    observations = Observations(lambda size, _: size, refuse, ("items",))
    assert list(find_leaps(observations, "items", 0.1)) == []
    monkeypatch.setattr(growth, "REFUSAL", 0.1)
    leaps = list(find_leaps(observations, "items", 0.1))
    assert len(leaps) == 1
    assert "refused after" in leaps[0]
