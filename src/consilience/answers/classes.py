"""Labels and classes: what can be true, how labels are written, and what looks like a slip in either.

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
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import (
    DataWarning,
    InputError,
    LabelWarning,
    ParameterError,
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
from ..options import check, is_among, to_floats
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
    to_column,
    to_values,
)
from .tables import read_distinct
from .tagging import SCHEMES, looks_tagged

if TYPE_CHECKING:
    from .answers import Answers

# How other programs write that there is no value. "none" is a common class.
NO_VALUE = ("", "NA", "N/A", "#N/A", "<NA>", "n/a", "nan", "NaN", "NAN", "NaT", "null", "NULL", "Null", "None")
# How labelling functions and crowds write that a worker abstains, in lower case.
ABSTENTIONS = ("abstain", "abstained", "abstains", "abstention")
# Beside 0 and 1, -1 is an abstention rather than an answer beyond this share.
MOST_ABSTAIN = 0.5
# Fewer labels are always taken for classes. So are fewer whole numbers.
FEWEST_LABELS, FEWEST_WHOLE = 20, 50
# Tags and single labels are not judged by fewer answers.
FEWEST_IN_ALL = 20
# With fewer answers per label, on average, hardly anybody agrees with anybody.
FEWEST_ANSWERS_PER_LABEL = 3
# Numbers are classes, not scores, if two workers give an item the same one at least so often.
LEAST_AGREEMENT = 0.25
# A worker with fewer answers is not judged, nor one whose answers would all be alike with a higher probability.
FEWEST_TO_JUDGE, CHANCE_OF_ONE_LABEL = 5, 0.01
# Workers count as most, and items as few, beyond this share.
MOST_WORKERS_SHARE, FEW_ITEMS_SHARE = 0.5, 0.5
# So many answers are looked at together.
SLICE = 1 << 18
# What separates the labels of a set; the latter are seldom in names.
SET_SIGNS, SURE_SIGNS = (";", "|", ",", "+", "/"), (";", "|")


# ----------------------------------------------------------------------------------------------------- what can be true


def choose_classes(
    answers: Answers,
    classes: ArrayLike | None,
    abstain: str,
    background: object,
    ordered: bool | None,
    positions: ArrayLike | None,
    levels: object,
    spell: Callable[[Any], Any] | None = None,
) -> Answers:
    """The answers with their classes, where these are on a scale, and the background if silence means something.

    - ``ordered=True``: classes that `levels` lists are in order. Else they must be numbers, or text that reads as
      numbers, and are sorted by value. Anything else is an error.
    - ``ordered=None``: they have no order, unless positions are given.
    - ``ordered=False``: they have no order.

    Parameters
    ----------
    answers : Answers
        Whose classes are not chosen yet.
    classes, abstain, background, ordered, positions
        As in `Answers.from_frame`. The default positions are ranks: 0, 1, 2, ...
    levels : object
        What lists the classes, None if nothing does.
    spell : callable, optional
        Writes a label as the labels have been written.
    """
    check("abstain", abstain, "Answers")
    if abstain == "ignore" and background is not None:
        problem = "{background} is for items about which all workers are silent: it needs {abstain}."
        raise ParameterError(Sentence(problem, abstain="answer"), keyword="background")
    if ordered is not None:
        check("ordered", ordered, "Answers")
    if positions is not None and ordered is not None and not ordered:
        remedy = Sentence("Leave {ordered} out, or the positions.", ordered=False)
        raise ParameterError("Positions are those of classes in order.", remedy, keyword="positions")
    known = labels = answers.labels
    if classes is not None:
        known = read_distinct(classes, "classes")
        if spell is not None:
            known = to_values(to_column(list(dict.fromkeys(map(spell, known.tolist())))))
        if not len(known):
            raise InputError("classes must name at least one class.", keyword="classes")
        code = find_by_value(labels, known)
        if (code < 0).all():
            said = f"No worker ever said any of the classes {listing(known.tolist())}; they said "
            remedy = Sentence("Write {classes} as the labels are written.")
            raise InputError(f"{said}{listing(labels.tolist())}.", remedy, keyword="classes")
        # As the workers' labels are written: 1, not "1", and "1.0", not "1".
        if (code >= 0).all():
            known = labels[list(dict.fromkeys(code.tolist()))]
        elif (code != lookup(labels, to_column(known))).any():
            said, pairs = labels.tolist(), zip(code.tolist(), known.tolist(), strict=True)
            known = to_values(to_column(list(dict.fromkeys(said[at] if at >= 0 else str(each) for at, each in pairs))))
    if abstain == "answer":
        tagged, names = looks_tagged(labels), f"The classes are {listing(known.tolist())}."
        if background is None and not tagged and "O" not in known.tolist():
            problem = "With {abstain}, an item about which all workers are silent must have a class."
            name_it = Sentence("Name it with {background}.")
            raise ParameterError(Sentence(problem, abstain="answer"), name_it, names, keyword="background")
        if background is None:
            background = "O"
        elif spell is not None:
            background = spell(background)
        place = int(find_by_value(known, objects([background]))[0])  # 0 where "0" is given and labels are numbers
        if place >= 0:
            background = known.tolist()[place]
        else:
            # One word that ends in the other is no slip: "abnormal" may be the background where "normal" was said.
            words = [each for each in map(str, labels.tolist()) if not each.endswith(str(background))]
            words = [each for each in words if not str(background).endswith(each)]
            close = difflib.get_close_matches(str(background), words, 1, 0.65) if classes is None else []
            if close or not (classes is None or (tagged and is_among(background, ("O",)))):
                absent = Sentence("{background} is not among the classes.", background=background)
                meant = [Sentence("Did you mean {background}?", background=each) for each in close]
                remedy = Sentence("A class that nobody said can be added with {classes}.")
                raise ParameterError(absent, names, *meant, remedy, keyword="background")
            known = to_values(to_column([background, *known.tolist()]))
    if not (ordered or (ordered is None and positions is not None)):
        return replace(answers, classes=known, background=background)
    if levels is None:
        values = to_numbers(known)
        if values is None:
            words = [each for each in known.tolist() if to_number(each) is None]
            are_none = "is no number" if len(words) == 1 else "are no numbers"
            raise InputError(
                f"The order of the classes is not known: {listing(words)} {are_none}.",
                Sentence("Name the classes from low to high with {classes}."),
                'A label that is left out, such as "can\'t tell", is an answer beside the scale.',
                keyword="classes",
            )
        order = np.argsort(values, kind="stable")
        known, same = known[order], np.flatnonzero(np.diff(values[order]) == 0)
        if len(same):
            both = listing(known[same[0] : same[0] + 2].tolist())
            raise InputError(f"The labels {both} are the same number.", "Write them alike.")
    places: Any = np.arange(float(len(known)))
    if positions is not None:
        try:
            places = to_floats(positions)
        except (TypeError, ValueError):
            places = np.empty(0)
    if places.shape != (len(known),) or not np.isfinite(places).all() or not (np.diff(places) > 0).all():
        expected = f"finite numbers that increase, one for each of the {len(known)} classes {listing(known.tolist())}"
        raise parameter_error("positions", "Answers", expected, positions)
    return replace(answers, classes=known, positions=tuple(places.tolist()), background=background)


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

    Of truth values, yes and no are other spellings.

    >>> find_by_value(objects(["1.0", "2.0", "unsure"]), objects(["2", "unsure", "3"]))
    array([ 1,  2, -1])
    >>> find_by_value(objects([False, True]), objects(["Yes", "false", "maybe"]))
    array([ 1,  0, -1])
    """
    code = lookup(known, to_column(labels))
    missing = np.flatnonzero(code < 0)
    if len(missing) and all(isinstance(each, (bool, np.bool_)) for each in known.tolist()):
        words = [_TRUTHS.get(str(each).strip().casefold()) for each in labels[missing].tolist()]
        index = {each: at for at, each in enumerate(known.tolist())}
        code[missing] = [-1 if word is None else index.get(word, -1) for word in words]
        return code
    if len(missing):
        place = {to_number(each): at for at, each in reversed(list(enumerate(known.tolist())))}
        place[None] = -1
        others = labels[missing].tolist()
        place_of = {each: place.get(to_number(each), -1) for each in dict.fromkeys(others)}
        code[missing] = [place_of[each] for each in others]
    return code


# ------------------------------------------------------------------------------------------------------------- spelling

_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


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


def choose_spelling(labels: Values, classes: Any = None) -> Callable[[Any], Any]:
    """The function that writes labels alike, and the classes that go with them.

    It writes them as those classes that are given, and all others in their normal form; tags keep a capital.

    >>> spell = choose_spelling(objects(["YES", "no "]), ["Yes"])
    >>> spell("yes "), spell("No")
    ('Yes', 'no')
    """
    named = [] if classes is None else read_distinct(classes, "classes").tolist()
    given = objects([" ".join(each.split()) if isinstance(each, str) else each for each in named])
    tags = objects([normalise_tag(label) for label in labels.tolist()])
    are_tags = any(looks_tagged(tags, letters) for letters in set(SCHEMES.values()))
    return spell_as(given, normalise_tag if are_tags else normalise_label)


def spell_as(known: Values, normal: Callable[[Any], Any] = normalise_label) -> Callable[[Any], Any]:
    """The function that writes text as the first known label of the same normal form; other text becomes normal.

    >>> spell = spell_as(objects(["O", "B-per"]))
    >>> spell("o"), spell(" b-PER"), spell("X"), spell(7)
    ('O', 'B-per', 'x', 7)
    """
    forms = {normal(label): label for label in reversed(known.tolist()) if isinstance(label, str)}

    def spell(label: object) -> Any:
        text = normal(label)
        return forms.get(text, text) if isinstance(text, str) else text

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


# ---------------------------------------------------------------------------------------------------------------- slips


def warn_of_slips(
    r: Answers, named: bool = False, tabular: bool = True, normalises: bool = True, silence: bool = True
) -> None:
    """Warn of what the labels of these answers call for.

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
    if not named and are_measured(r):  # of numbers others warn
        return
    if silence and r.silence_doubt is not None:
        warn(r.silence_doubt)
    labels, classes = r.labels.tolist(), r.classes.tolist()
    listed = set(classes) if named else {r.background}
    to_silence = "list all classes with {classes} to silence this warning."

    # Labels that are no classes: ids and free text.
    if not named and r.n_labels >= FEWEST_LABELS and r.n_responses < FEWEST_ANSWERS_PER_LABEL * r.n_labels:
        rare = np.argsort(np.bincount(r.label, minlength=r.n_labels), kind="stable")[:3]
        problem = (
            f"There are {plural(r.n_labels, 'different label')} in {plural(r.n_responses, 'answer')}, such as "
            f"{listing(r.labels[np.sort(rare)].tolist())}. Most of them occur only once or twice, like ids or free "
            "text. Each is treated as a class."
        )
        where: list[str | Sentence] = []
        if tabular and "label" in r.columns:
            taken = shorten(r.columns["label"]).replace("{", "{{").replace("}", "}}")
            where.append(Sentence(f"If {taken} is the wrong column, name the right one with {{label}}."))
        remedy = "If the answers are free text, map them to a few labels first."
        about_classes = Sentence(f"If they are classes, {to_silence}")
        warn_of(problem, *where, remedy, about_classes, category=LabelWarning)
        return  # their spellings do not matter

    # Labels that are spelled in several ways.
    spellings: dict[str, list[str]] = {}  # by normal form
    for label in labels:
        if isinstance(label, str):
            spellings.setdefault(normalise_label(label), []).append(label)
    several = [group for group in spellings.values() if len(group) > 1]
    groups = [group for group in several if not (named and listed.issuperset(group))]
    if groups:
        warn_of(
            f"Some labels differ only in case, spaces or Unicode form: "
            f"{join_names(map(listing, groups), separator='; ')}. They are treated as different labels.",
            *([Sentence("To merge them, use {normalise}.", normalise=True)] if normalises else []),
            Sentence("If they are different classes, list them all with {classes} to silence this warning."),
            keyword="normalise",
            category=LabelWarning,
        )

    # Labels that mean that there is no answer: words for no value, and abstentions. Beside words or whole numbers from
    # 0 on, -1 is one. Beside 1 alone it is an ordinary answer, and beside 0 and 1 an abstention if most answers are.
    nothing = [label for label in labels if isinstance(label, str) and label.strip() in NO_VALUE]
    if len(classes) > 1 and not named:
        spelled = {str(label).strip().lower().removesuffix(".0"): label for label in labels}
        nothing += [label for text, label in spelled.items() if text in ABSTENTIONS]
        if "-1" in spelled and not nothing:
            rest = spelled.keys() - {"-1"}
            numbers = [value for value in map(to_number, rest) if value is not None]
            most = np.mean(r.label == labels.index(spelled["-1"])) > MOST_ABSTAIN
            if all(x >= 0 and x.is_integer() for x in numbers) and rest != {"1"} and (rest != {"0", "1"} or most):
                nothing.append(spelled["-1"])
    for label in nothing:
        if label in listed:
            continue
        n_answers = plural(int(np.count_nonzero(r.label == labels.index(label))), "answer")
        drop = "leave those cells empty" if r.format in ("wide", "matrix") else "remove those rows"
        warn_of(
            f"The label {shorten(label)} is treated as an answer like any other ({n_answers}).",
            Sentence(f"If it stands for no answer, {drop if tabular else 'name it with {missing}'}.", missing=label),
            Sentence("If it is an answer that can never be true, name all other classes with {classes}."),
            Sentence(f"If it is a class, {to_silence}"),
            keyword="classes",
            category=LabelWarning,
        )


def are_measured(r: Answers) -> bool:
    """Whether labels are many numbers, and seldom the same for an item: no classes, but measurements.

    Two workers may often say the most frequent number, such as 0. If most numbers occur only once or twice, they are no
    classes either, however often two are the same.
    """
    numbers = to_numbers(r.labels) if r.n_labels >= FEWEST_LABELS else None
    if numbers is None or (r.n_labels < FEWEST_WHOLE and (numbers == np.round(numbers)).all()):
        return False
    same_item, same_label = np.diff(r.item_of_answer()) == 0, r.label[1:] == r.label[:-1]
    is_usual = same_label & (r.label[1:] == np.argmax(count_codes(r.label, r.n_labels)))
    agreement = float(np.mean(same_label[same_item & ~is_usual])) if (same_item & ~is_usual).any() else 0.0
    return agreement < LEAST_AGREEMENT or r.n_responses < FEWEST_ANSWERS_PER_LABEL * r.n_labels


def doubt_silence(r: Answers) -> DataWarning | None:
    """The warning that silence may well be an answer, and is ignored; else None."""
    if r.silence_counts:
        return None
    # How many workers only ever say one label, of those for whom it would be no chance.
    n_answers = count_codes(r.worker, r.n_workers)
    share = (r.label_counts if r.amount is None else count_codes(r.label, r.n_labels)) / max(r.n_responses, 1)
    counts, place = np.unique(n_answers, return_inverse=True)
    chance = np.array([np.sum(share**count) for count in counts.tolist()])[place]
    judged = (n_answers >= FEWEST_TO_JUDGE) & (chance < CHANCE_OF_ONE_LABEL)
    alike, first = judged.copy(), np.full(r.n_workers, -1, r.label.dtype)
    for begin in range(0, r.n_responses, SLICE):
        if not alike.any():  # soon, in crowds
            break
        worker, label = r.worker[begin : begin + SLICE], r.label[begin : begin + SLICE]
        new = np.flatnonzero(first[worker] < 0)[::-1]  # of several answers the first one stays
        first[worker[new]] = label[new]
        alike[worker[label != first[worker]]] = False
    n_alike, n_judged = int(alike.sum()), int(judged.sum())
    # Items, with those between the positions of a sequence that nobody answered or named.
    n_places, keys = r.n_items, r.sequences
    if keys is not None and keys.position.dtype.kind in "iu":
        ends = keys.position[keys.offsets[1:] - 1].astype(float)
        n_places = int(np.sum(ends - keys.position[keys.offsets[:-1]] + 1))
    tagged = keys is not None and looks_tagged(r.labels) and "O" not in r.labels.tolist()
    answered = np.count_nonzero(np.diff(r.offsets))
    if n_alike > max(1, MOST_WORKERS_SHARE * n_judged) and n_answers[alike].sum() > MOST_WORKERS_SHARE * r.n_responses:
        problem = f"{n_alike:,} of {plural(n_judged, 'worker')} with enough answers to tell only ever say one label"
    elif (tagged or r.n_labels == 1) and r.n_responses >= FEWEST_IN_ALL and answered < FEW_ITEMS_SHARE * n_places:
        said = "tags and never O" if tagged else f"only {shorten(r.labels.tolist()[0])}"
        problem = f"Workers say {said}, about {answered:,} of {plural(n_places, 'item')}"
    else:
        return None
    return LabelWarning(
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
    names, sets = {name for name in classes if isinstance(name, str)}, []
    for sign in SET_SIGNS:
        parts = {name: {part.strip() for part in name.split(sign)} for name in classes if isinstance(name, str)}
        uses = Counter(part for each in parts.values() for part in each)
        for name, each in parts.items():
            often = sign in SURE_SIGNS and min(uses[part] for part in each) > 1
            if len(each) > 1 and "" not in each and (each <= names or often):
                sets.append(name)
    return sets


def find_sign(sets: list[str]) -> str:
    """The sign that most often separates the labels of sets.

    >>> find_sign(["a;b", "a,b;c"])
    ';'
    """
    return max(SET_SIGNS, key=lambda sign: sum(sign in each for each in sets))
