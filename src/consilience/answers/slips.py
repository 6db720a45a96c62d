"""Slips in the data that show in the answers: several spellings, abstentions, scores, ids and free text as labels.

Most is judged by the vocabularies and the number of answers with each label. Only where labels are many, the answers
are looked at one by one. Answers may also look like those of labelling functions, whose silence means something.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from ..errors import DataWarning, Python, Sentence, join_names, listing, plural, shorten, warn, warn_of
from .classes import group_spellings, to_number, to_numbers
from .columns import count_codes, lookup, to_column
from .tagging import looks_tagged

if TYPE_CHECKING:
    from .answers import Answers

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
# So many answers are looked at together, until everybody who could be one-sided has said two labels.
AT_ONCE = 1 << 18
# What separates the labels of a set; the latter are seldom in names.
SET_SIGNS, SURE_SIGNS = (";", "|", ",", "+", "/"), (";", "|")


def find_sets(classes: list[object]) -> list[str]:
    """Return the classes that are sets of labels.

    Their parts are classes themselves. Or they occur in other classes too, if they are separated by signs that names
    do not have.

    >>> find_sets(["a", "b", "a;b"]), find_sets(["x|y", "y|z", "x|z"]), find_sets(["Bath, UK", "York, UK"])
    (['a;b'], ['x|y', 'y|z', 'x|z'], [])
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
    """Return the sign that most often separates the labels of sets.

    >>> find_sign(["a;b", "a,b;c"])
    ';'
    """
    return max(SET_SIGNS, key=lambda sign: sum(sign in each for each in sets))


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
    silent = doubt_silence(r) if silence else None
    if silent is not None:
        warn(silent)
    wanted = set(r.classes.tolist()) if named else set()
    meant = Sentence("If they are classes, list them with {classes} to silence this warning.")
    column: str | Sentence = "Check that the entries are labels."
    if tabular and "label" in r.columns:
        taken = shorten(r.columns["label"]).replace("{", "{{").replace("}", "}}")
        column = Sentence(f"If {taken} is the wrong column, name the right one with {{label}}.")
    odd = None if named else _doubt_classes(r)
    if odd is not None:  # where labels are no classes, their spellings do not matter
        problem, remedy = odd
        warn(DataWarning(problem, column, *([remedy] if remedy else []), *([] if remedy == MAP_TEXT else [meant])))
    groups = [] if odd else [group for group in group_spellings(r.labels.tolist()) if not wanted.issuperset(group)]
    if groups:
        same = join_names(map(_list_spellings, groups), separator="; ")
        warn_of(
            f"Some labels differ only in case, spaces or Unicode form: {same}. They are treated as different labels.",
            *([Sentence("To merge them, use {normalise}.", normalise=True)] if normalises else []),
            Sentence("If they are different classes, list them all with {classes} to silence this warning."),
            keyword="normalise",
        )
    meant_none = wanted if named else {r.background} if r.silence_counts else set()
    texts = [(code, label) for code, label in enumerate(r.labels.tolist()) if isinstance(label, str)]
    nothing = [k for k, text in texts if (text.strip() in NO_VALUE or not text.strip()) and text not in meant_none]
    if nothing and not odd:
        labels, n_answers = r.labels[nothing].tolist(), int(np.isin(r.label, nothing).sum())
        drop = "remove those rows." if tabular else "name it with {missing}."
        warn_of(
            f"The label{' ' if len(nothing) == 1 else 's '}{listing(labels)} {'is' if len(nothing) == 1 else 'are'} "
            f"treated as an answer like any other ({plural(n_answers, 'answer')}).",
            Sentence(f"If it stands for no answer, {drop}", missing=labels[0]),
            Sentence("If it is an answer, list all classes with {classes} to silence this warning."),
        )
    code = _find_abstention(r) if not named and not odd else None
    if code is not None and r.labels[code] in r.classes.tolist():
        label, classes = r.labels.tolist()[code], [each for each in r.classes.tolist() if each != r.labels[code]]
        simple = len(classes) <= MOST_LISTED and not any(set(str(each)) & set(',"\n') for each in classes)
        others = Python(f"classes={classes!r}", ",".join(map(str, classes))) if simple else None
        drop = "leave those cells empty" if r.format in ("wide", "matrix") else "remove those rows"
        drop = drop if tabular else "name it with {missing}"
        warn_of(
            f"The label {shorten(label)} is treated as an answer and as a class like any other "
            f"({plural(int(np.count_nonzero(r.label == code)), 'answer')}).",
            Sentence("If it means that a worker abstains, give the classes without it: {classes}.", classes=others),
            Sentence(f"If it means that the worker did not see the item, {drop}.", missing=label),
            Sentence("If it is a class, list all classes with {classes} to silence this warning."),
            keyword="classes",
        )
    groups = group_spellings(r.workers.tolist()) if r.n_workers <= MOST_WORKERS else []
    if groups:
        same = join_names(map(_list_spellings, groups), separator="; ")
        warn_of(
            f"Some ids of workers differ only in case, spaces or Unicode form: {same}. They are treated as different "
            "workers.",
            "If they are the same person, use one spelling in the data.",
        )


def _doubt_classes(r: Answers) -> tuple[str, str] | None:
    """What labels look like if they are no classes (ids, free text or scores), and what else to do; else None."""
    if r.n_labels >= 3 and r.n_responses >= FEWEST_IN_ALL and not r.silence_counts:
        whose = "workers" if _are_workers(r) else "items" if _are_items(r) else None
        if whose is not None:
            shown = listing(r.labels.tolist(), 3)
            return f"The labels look like the ids of the {whose}, such as {shown}. Each is treated as a class.", ""
    if r.n_labels < FEWEST_LABELS:
        return None
    if r.n_responses < FEWEST_ANSWERS * r.n_labels:
        rare = np.argsort(np.bincount(r.label, minlength=r.n_labels), kind="stable")[:3]
        return (
            f"There are {plural(r.n_labels, 'different label')} in {plural(r.n_responses, 'answer')}, such as "
            f"{listing(r.labels[np.sort(rare)].tolist())}. Most of them occur only once or twice, like ids or free "
            "text. Each is treated as a class."
        ), MAP_TEXT
    numbers = to_numbers(r.labels)
    if numbers is None or (r.n_labels < FEWEST_WHOLE and (numbers == np.round(numbers)).all()):
        return None
    # How often an answer is the same as the one before it about the same item.
    item = r.item_of_answer()
    pairs, seldom = item[1:] == item[:-1], ""
    if pairs.any():
        agreement = float(np.mean((r.label[1:] == r.label[:-1])[pairs]))
        if agreement >= LEAST_AGREEMENT:
            return None
        seldom = f", and two workers rarely give an item the same one ({agreement:.0%})"
    return (
        f"The labels are {len(numbers):,} different numbers, from {numbers.min():.6g} to {numbers.max():.6g}{seldom}. "
        "Each is treated as a class of its own; their order is not used."
    ), "If they are scores, bin them into a few classes first."


def _find_abstention(r: Answers) -> int | None:
    """The code of the label that looks like an abstention, or None.

    That is a word for it, or -1 beside words or whole numbers from 0 on. Beside 1, -1 is an ordinary answer.
    Beside 0 and 1 it is one in crowds, too: there it has to be most of the answers.
    """
    texts = [str(label).strip().lower().removesuffix(".0") for label in r.labels.tolist()]
    words = [code for code, text in enumerate(texts) if text in ABSTENTIONS]
    if words:
        return words[0] if len(words) < len(texts) else None
    others = {text for text in texts if text != "-1"}
    numbers = [to_number(text) for text in others]
    counts = all(number is None or (number >= 0 and number.is_integer()) for number in numbers)
    if "-1" not in texts or not others or others == {"1"} or not counts:
        return None
    code = texts.index("-1")
    return code if others != {"0", "1"} or np.mean(r.label == code) > MOST_ABSTAIN else None


def _list_spellings(group: list[str]) -> str:
    r"""Spellings as text; those that look alike on the screen by the codes of their letters.

    >>> print(_list_spellings(["Cat", "cat"]), _list_spellings(["e\u0301", "\xe9"]))
    'Cat', 'cat' 'e\u0301', '\xe9'
    """
    if len({unicodedata.normalize("NFC", text) for text in group}) == len(group):
        return listing(group)
    return listing([text.encode("unicode_escape").decode("ascii") for text in group]).replace("\\\\", "\\")


def _are_workers(r: Answers) -> bool:
    """Tell whether labels are ids of workers: of the one who answered in nearly all answers, or names of anyone.

    Text of one letter, or a number, can be both a label and an id by chance.
    """
    if not r.n_workers / 2 <= r.n_labels <= r.n_workers:
        return False
    found, labels = lookup(r.workers, to_column(r.labels)), r.labels.tolist()
    same = bool(np.mean(found[r.label] == r.worker) >= MOST_SAME)
    named = all(isinstance(each, str) and len(each) > 1 and not each.strip().isdecimal() for each in labels)
    return same or (named and bool((found >= 0).all()))


def _are_items(r: Answers) -> bool:
    """Tell whether the label of nearly every answer is the id of the item, or the sequence, that it is about."""
    ids = r.items if r.sequences is None else r.sequences.ids
    # Otherwise they cannot be; with millions of items that is much quicker to see.
    if not len(ids) / 2 <= r.n_labels <= len(ids):
        return False
    item = r.item_of_answer()
    owner = item if r.sequences is None else r.sequences.of_items()[item]
    return bool(np.mean(lookup(ids, to_column(r.labels))[r.label] == owner) >= MOST_SAME)


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
    for begin in range(0, r.n_responses, AT_ONCE):
        if not alike.any():
            break
        worker, label = r.worker[begin : begin + AT_ONCE], r.label[begin : begin + AT_ONCE]
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
