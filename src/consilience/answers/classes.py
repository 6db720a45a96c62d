"""Labels and classes: how labels are written, what can be true, and what looks like a slip in either.

The normal form of a label is NFC(casefold(NFD(text))), with each run of white space as one blank and none around the
text: "Cat", "cat" and " cat " are all "cat". Letters of full width, ligatures and the like are left alone (that would
be NFKC, which also takes "x²" for "x2"). Labels that are no text stay as they are. IOB tags are told by their capital
letter, so where all labels are tags it stays one: "b-per" and "B-PER " are "B-per".

Slips are several spellings of a label, abstentions, scores, ids and free text as labels, and a silence that means
something. They are found by the vocabularies and the number of answers with each label; each is a warning, once, when
answers are read.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import check_truth, is_among, to_floats
from ..errors import (
    DataWarning,
    InputError,
    ParameterError,
    Python,
    Sentence,
    join_names,
    listing,
    parameter_error,
    plural,
    shorten,
    warn,
    warn_of,
)
from ..kernels import Floats
from .columns import (
    Codes,
    Column,
    Indices,
    Values,
    count_codes,
    encode_in_order_of_appearance,
    encode_sorted,
    find_present,
    lookup,
    objects,
    sorted_order,
    to_column,
    to_values,
)
from .items import Sequences
from .tables import read_distinct
from .tagging import SCHEMES, looks_tagged

if TYPE_CHECKING:
    from .answers import Answers

ABSTAIN = ("ignore", "answer")
# How other programs write that there is no value. "none" is a common class.
NO_VALUE = frozenset(["NA", "N/A", "#N/A", "<NA>", "n/a", "nan", "NaN", "NAN", "NaT", "null", "NULL", "Null", "None"])
# How labelling functions and crowds write that a worker abstains, in lower case.
ABSTENTIONS = frozenset(["abstain", "abstained", "abstains", "abstention"])
# Beside 0 and 1, -1 is an abstention rather than an answer beyond this share.
MOST_ABSTAIN = 0.5
# With more classes they are not all listed in an advice.
MOST_LISTED = 12
# Fewer labels are always taken for classes. So are fewer whole numbers.
FEWEST_LABELS, FEWEST_WHOLE = 20, 50
# Ids are not looked for in fewer answers, nor are tags and single labels judged by fewer.
FEWEST_IN_ALL = 20
# With fewer answers per label, on average, hardly anybody agrees with anybody.
FEWEST_ANSWERS = 3
# Numbers are classes, not scores, if two workers give an item the same one at least so often.
LEAST_AGREEMENT = 0.25
# Labels are ids if they are those of the item or worker in at least this share of answers.
MOST_SAME = 0.9
# More ids of workers are not compared: that would take long.
MOST_WORKERS = 20_000
# A worker with fewer answers is not judged, nor one whose answers would all be alike with a higher probability.
FEWEST_TO_JUDGE, CHANCE = 5, 0.01
# Workers count as most, and items as few, beyond this share.
MOST, FEW = 0.5, 0.5
MAP_TEXT = "If the answers are free text, map them to a few labels first."
# So many answers are looked at together.
SLICE = 1 << 18
# What separates the labels of a set; the latter are seldom in names.
SET_SIGNS, SURE_SIGNS = (";", "|", ",", "+", "/"), (";", "|")


# ----------------------------------------------------------------------------------------------------- what can be true


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
    if not (isinstance(abstain, str) and abstain in ABSTAIN):
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
    known = labels
    if classes is not None:
        known = list_classes(classes)
        if spell is not None:
            known = to_values(to_column(list(dict.fromkeys(map(spell, known.tolist())))))
        if not len(known):
            raise InputError("classes must name at least one class.", keyword="classes")
        exact, found = lookup(labels, to_column(known)), find_by_value(labels, known)
        if (found < 0).all():
            raise InputError(
                f"No worker ever said any of the classes {listing(known.tolist())}; they said "
                f"{listing(labels.tolist())}.",
                Sentence("Write {classes} as the labels are written."),
                keyword="classes",
            )
        if (found != exact).any() or (labels.dtype != known.dtype and (found >= 0).all()):
            # As the workers' labels are written: 1, not "1".
            said = [*labels.tolist(), None]
            pairs = zip(found.tolist(), known.tolist(), strict=True)
            known = to_values(to_column(list(dict.fromkeys(said[at] if at >= 0 else str(each) for at, each in pairs))))
    if abstain == "answer":
        background = background if spell is None else spell(background)
        background = _choose_background(background, known, labels, given=classes is not None)
        if lookup(known, to_column([background]))[0] < 0:
            known = to_values(to_column([background, *known.tolist()]))
    if not (ordered or (ordered is None and (is_scale or positions is not None))):
        return known, None, background
    if (levels is None or isinstance(levels, (set, frozenset))) and not is_scale:
        values = to_numbers(known)
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
    if positions is None:
        return known, tuple(map(float, range(len(known)))), background
    expected = f"finite numbers that increase, one for each of the {len(known)} classes {listing(known.tolist())}"
    try:
        places = to_floats(positions)
    except (TypeError, ValueError) as error:
        raise parameter_error("positions", "Answers", expected, positions) from error
    if places.shape != (len(known),) or not np.isfinite(places).all() or not (np.diff(places) > 0).all():
        raise parameter_error("positions", "Answers", expected, positions)
    return known, tuple(places.tolist()), background


def list_classes(classes: ArrayLike | None) -> Values:
    """The classes that are given, in order; none if they are not."""
    if classes is None:
        return objects([])
    if isinstance(classes, (set, frozenset)):
        entries = objects(list(classes))
        classes = entries[sorted_order(entries)]
    return read_distinct(classes, "classes")


def _choose_background(background: Any, classes: Values, labels: Values, given: bool) -> Any:
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
    place = int(find_by_value(classes, objects([background]))[0])  # 0 where "0" is given and labels are numbers
    if place >= 0:
        return classes.tolist()[place]
    if is_among(background, ("O",)) and looks_tagged(labels):
        return background
    word = str(background).strip().lower()
    texts = {label.strip().lower(): label for label in labels.tolist() if isinstance(label, str)}
    # One word that ends in the other is no slip: "abnormal" may well be the background where "normal" was said.
    likely = [text for text in texts if text == word or not (text.endswith(word) or word.endswith(text))]
    close = difflib.get_close_matches(word, likely, n=1, cutoff=0.8) if isinstance(background, str) else []
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


def are_ranks(positions: tuple[float, ...]) -> bool:
    """Whether positions are the default ones."""
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


# ------------------------------------------------------------------------------------------------------------- spelling


def normalise_label(label: object) -> Any:
    """The normal form of a label.

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
    """The normal form of an IOB tag, with a capital as its first letter.

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
        return spell_as(objects(given))
    return spell_as(objects([each for each in given if each[:1] == normalise_tag(each)[:1]]), normalise_tag)


def spell_as(known: Values, normal: Callable[[Any], Any] = normalise_label) -> Callable[[Any], Any]:
    """The function that writes text as the first known label of the same normal form; other text becomes normal.

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
    """Codes and vocabulary of labels as `spell` writes them; with `ordered` in the order they had, else sorted."""
    encode = encode_in_order_of_appearance if ordered else encode_sorted
    place, merged = encode(to_column(list(map(spell, labels.tolist()))))
    return place[codes], merged


def normalise_column(column: Column, spell: Callable[[Any], Any] = normalise_label) -> Column:
    """A column with each label in its normal form; missing ones stay missing.

    >>> normalise_column(to_column(["Cat", None, "cat"])).to_pylist()
    ['cat', None, 'cat']
    """
    present = find_present(column)
    codes, labels = encode_in_order_of_appearance(column.take(present))
    spelled = np.full(len(column), None, object)
    spelled[present] = objects(list(map(spell, labels.tolist())))[codes]
    return to_column(spelled)


def group_spellings(values: Iterable[Any]) -> list[list[str]]:
    """The texts that have the same normal form, for each normal form that has several.

    >>> group_spellings(["Cat", "dog", "cat", 3])
    [['Cat', 'cat']]
    """
    groups: dict[str, list[str]] = {}
    for value in values:
        if isinstance(value, str) and not isinstance(value, Enum):
            groups.setdefault(normalise_label(value), []).append(value)
    return [group for group in groups.values() if len(group) > 1]


# ---------------------------------------------------------------------------------------------------------------- slips


def warn_of_slips(
    r: Answers, named: bool = False, tabular: bool = True, normalises: bool = True, silence: bool = True
) -> None:
    """Warn of what the labels and workers of these answers call for.

    Parameters
    ----------
    r : Answers
        The answers.
    named : bool
        Whether the user named the classes, and so has looked at the labels.
    tabular : bool
        Whether they come from a table, and not from a matrix: the words differ.
    normalises : bool
        Whether they can be read with ``normalise=True``.
    silence : bool
        Whether silence may be doubted, too.
    """
    if silence and r.silence_doubt is not None:
        warn(r.silence_doubt)
    groups = group_spellings(r.workers.tolist()) if r.n_workers <= MOST_WORKERS else []
    if groups:
        warn_of(
            f"Some ids of workers differ only in case, spaces or Unicode form: {_list_groups(groups)}. They are "
            "treated as different workers.",
            "If they are the same person, use one spelling in the data.",
        )
    # Few labels are classes, unless they are ids of as few workers or items. Of measurements others warn.
    n_ids = min(r.n_workers, r.n_items if r.sequences is None else len(r.sequences))
    doubtful = not named and r.n_labels >= min(FEWEST_LABELS, max(3, n_ids / 2)) and not are_measured(r)
    problem, remedy = _doubt_classes(r) if doubtful else ("", "")
    if problem:  # where labels are no classes, their spellings do not matter
        column: str | Sentence = "Check that the entries are labels."
        if tabular and "label" in r.columns:
            taken = shorten(r.columns["label"]).replace("{", "{{").replace("}", "}}")
            column = Sentence(f"If {taken} is the wrong column, name the right one with {{label}}.")
        listing_them = Sentence("If they are classes, list them with {classes} to silence this warning.")
        warn_of(problem, column, *([remedy] if remedy else []), *([] if remedy == MAP_TEXT else [listing_them]))
        return

    # Labels that are spelled in several ways, words for no value, and abstentions.
    labels, classes = r.labels.tolist(), r.classes.tolist()
    listed = set(classes) if named else set()
    groups = [group for group in group_spellings(labels) if not listed.issuperset(group)]
    if groups:
        warn_of(
            f"Some labels differ only in case, spaces or Unicode form: {_list_groups(groups)}. They are treated as "
            "different labels.",
            *([Sentence("To merge them, use {normalise}.", normalise=True)] if normalises else []),
            Sentence("If they are different classes, list them all with {classes} to silence this warning."),
            keyword="normalise",
        )
    meant = listed if named or not r.silence_counts else {r.background}
    texts = {label: label.strip() for label in labels if isinstance(label, str) and label not in meant}
    nothing = [label for label, text in texts.items() if text in NO_VALUE or not text]
    if nothing:
        n_answers = int(np.isin(r.label, [labels.index(label) for label in nothing]).sum())
        drop = "remove those rows." if tabular else "name it with {missing}."
        warn_of(
            f"The label{' ' if len(nothing) == 1 else 's '}{listing(nothing)} {'is' if len(nothing) == 1 else 'are'} "
            f"treated as an answer like any other ({plural(n_answers, 'answer')}).",
            Sentence(f"If it stands for no answer, {drop}", missing=nothing[0]),
            Sentence("If it is an answer, list all classes with {classes} to silence this warning."),
        )
    # An abstention is a word for it, or -1 beside words or whole numbers from 0 on. Beside 1, -1 is an ordinary answer.
    # Beside 0 and 1 it is one in crowds, too: there it has to be most of the answers.
    spelled = [str(label).strip().lower().removesuffix(".0") for label in labels]
    code = next((code for code, text in enumerate(spelled) if text in ABSTENTIONS), None)
    rest = {text for text in spelled if text != "-1"}
    if code is None and "-1" in spelled and rest != {"1"}:
        values = map(to_number, rest)
        counts = all(value is None or (value >= 0 and value.is_integer()) for value in values)
        share = np.mean(r.label == spelled.index("-1"))
        if counts and (rest != {"0", "1"} or share > MOST_ABSTAIN):
            code = spelled.index("-1")
    if code is not None and not named and labels[code] in classes and len(classes) > 1:
        label, others = labels[code], [each for each in classes if each != labels[code]]
        simple = len(others) <= MOST_LISTED and not any(set(str(each)) & set(',"\n') for each in others)
        without = Python(f"classes={others!r}", ",".join(map(str, others))) if simple else None
        drop = "leave those cells empty" if r.format in ("wide", "matrix") else "remove those rows"
        drop = drop if tabular else "name it with {missing}"
        warn_of(
            f"The label {shorten(label)} is treated as an answer and as a class like any other "
            f"({plural(int(np.count_nonzero(r.label == code)), 'answer')}).",
            Sentence("If it means that a worker abstains, give the classes without it: {classes}.", classes=without),
            Sentence(f"If it means that the worker did not see the item, {drop}.", missing=label),
            Sentence("If it is a class, list all classes with {classes} to silence this warning."),
            keyword="classes",
        )


def find_scores(r: Answers) -> Floats | None:
    """Labels that are many numbers, and seldom the same for an item, as numbers; None where they may be classes."""
    numbers = to_numbers(r.labels) if r.n_labels >= FEWEST_LABELS else None
    if numbers is None or (r.n_labels < FEWEST_WHOLE and (numbers == np.round(numbers)).all()):
        return None
    item = r.item_of_answer()
    same_item, same_label = item[1:] == item[:-1], r.label[1:] == r.label[:-1]
    return None if same_item.any() and np.mean(same_label[same_item]) >= LEAST_AGREEMENT else numbers


def are_measured(r: Answers) -> bool:
    """Whether labels are scores that are not all whole: no classes, but measurements."""
    numbers = find_scores(r)
    return numbers is not None and bool((numbers != np.round(numbers)).any())


def _doubt_classes(r: Answers) -> tuple[str, str]:
    """What labels look like if they are no classes (ids, free text or scores), and what else to do; else nothing."""
    if r.n_labels >= 3 and r.n_responses >= FEWEST_IN_ALL and not r.silence_counts:
        for whose, ids in (("workers", r.workers), ("items", r.keys.ids if isinstance(r.keys, Sequences) else r.keys)):
            if not len(ids) / 2 <= r.n_labels <= len(ids):
                continue
            owner: Any = r.worker if whose == "workers" else r.owners_of(r.item_of_answer())
            found, labels = lookup(ids, to_column(r.labels)), r.labels.tolist()
            # Each label names who answered, or what about; or all are names, and all of them of workers.
            same = np.mean(found[r.label] == owner) >= MOST_SAME
            names = all(isinstance(each, str) and len(each) > 1 and not each.strip().isdecimal() for each in labels)
            if same or (whose == "workers" and names and (found >= 0).all()):
                shown = listing(labels, 3)
                return f"The labels look like the ids of the {whose}, such as {shown}. Each is treated as a class.", ""
    if r.n_labels < FEWEST_LABELS:
        return "", ""
    if r.n_responses < FEWEST_ANSWERS * r.n_labels:
        rare = np.argsort(np.bincount(r.label, minlength=r.n_labels), kind="stable")[:3]
        return (
            f"There are {plural(r.n_labels, 'different label')} in {plural(r.n_responses, 'answer')}, such as "
            f"{listing(r.labels[np.sort(rare)].tolist())}. Most of them occur only once or twice, like ids or free "
            "text. Each is treated as a class."
        ), MAP_TEXT
    numbers = find_scores(r)
    if numbers is None:
        return "", ""
    return (
        f"The labels are {len(numbers):,} different numbers, from {numbers.min():.6g} to {numbers.max():.6g}. Each is "
        "treated as a class of its own; their order is not used."
    ), "If they are scores, bin them into a few classes first."


def _list_groups(groups: list[list[str]]) -> str:
    r"""Spellings as text; those that look alike on the screen by the codes of their letters.

    >>> print(_list_groups([["Cat", "cat"], ["e\u0301", "\xe9"]]))
    'Cat', 'cat'; 'e\u0301', '\xe9'
    """
    shown = []
    for group in groups:
        alike = len({unicodedata.normalize("NFC", text) for text in group}) < len(group)
        shown.append(", ".join(map(ascii, group)) if alike else listing(group))
    return join_names(shown, separator="; ")


def doubt_silence(r: Answers) -> DataWarning | None:
    """The warning that silence may well be an answer, and is ignored; else None."""
    if r.silence_counts:
        return None
    # How many workers only ever say one label, of those for whom it would be no chance.
    n_answers = count_codes(r.worker, r.n_workers)
    share = count_codes(r.label, r.n_labels) / max(r.n_responses, 1)
    counts, place = np.unique(n_answers, return_inverse=True)
    chance = np.array([np.sum(share**count) for count in counts.tolist()])[place]
    judged = (n_answers >= FEWEST_TO_JUDGE) & (chance < CHANCE)
    alike, first = judged.copy(), np.full(r.n_workers, -1, r.label.dtype)
    for begin in range(0, r.n_responses, SLICE):
        if not alike.any():  # soon, in crowds
            break
        worker, label = r.worker[begin : begin + SLICE], r.label[begin : begin + SLICE]
        new = np.flatnonzero(first[worker] < 0)[::-1]  # of several answers the first one stays
        first[worker[new]] = label[new]
        alike[worker[label != first[worker]]] = False
    n_alike = int(alike.sum()) if n_answers[alike].sum() > MOST * r.n_responses else 0
    # Items, with those between the positions of a sequence that nobody answered or named.
    n_places, keys = r.n_items, r.sequences
    if keys is not None and keys.position.dtype.kind in "iu":
        ends = keys.position[keys.offsets[1:] - 1].astype(float)
        n_places = int(np.sum(ends - keys.position[keys.offsets[:-1]] + 1))
    tagged = keys is not None and looks_tagged(r.labels) and "O" not in r.labels.tolist()
    answered = np.count_nonzero(np.diff(r.offsets))
    if n_alike > max(1, MOST * judged.sum()):
        n_judged = plural(int(judged.sum()), "worker")
        problem = f"{n_alike:,} of {n_judged} with enough answers to tell only ever say one label"
    elif (tagged or r.n_labels == 1) and r.n_responses >= FEWEST_IN_ALL and answered < FEW * n_places:
        said = "tags and never O" if tagged else f"only {shorten(r.labels.tolist()[0])}"
        problem = f"Workers say {said}, about {answered:,} of {plural(n_places, 'item')}"
    else:
        return None
    return DataWarning(
        f"{problem}, as labelling functions do. Their silence about other items is ignored.",
        Sentence("If it means something, read the answers with {abstain}.", abstain="answer"),
        Sentence("Then {background} is the class of items about which all are silent."),
        *([] if answered < r.n_items else [Sentence("And {items} names those nobody spoke about, too.")]),
        keyword="abstain",
    )


def find_set_labels(classes: list[object]) -> list[str]:
    """The classes that are sets of labels.

    Their parts are classes themselves. Or they occur in other classes too, if they are separated by signs that names
    do not have.

    >>> find_set_labels(["a", "b", "a;b"]), find_set_labels(["Bath, UK", "York, UK"])
    (['a;b'], [])
    """
    names, found = {name for name in classes if isinstance(name, str)}, []
    for sign in SET_SIGNS:
        parts = {name: {part.strip() for part in name.split(sign)} for name in classes if isinstance(name, str)}
        uses = Counter(part for each in parts.values() for part in each)
        for name, each in parts.items():
            often = sign in SURE_SIGNS and min(uses[part] for part in each) > 1
            if len(each) > 1 and "" not in each and (each <= names or often):
                found.append(name)
    return found


def find_sign(sets: list[str]) -> str:
    """The sign that most often separates the labels of sets.

    >>> find_sign(["a;b", "a,b;c"])
    ';'
    """
    return max(SET_SIGNS, key=lambda sign: sum(sign in each for each in sets))
