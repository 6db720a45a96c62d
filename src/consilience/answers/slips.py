"""Slips in the data that show in the answers: several spellings, abstentions, scores, ids and free text as labels.

Most is judged by the vocabularies and the number of answers with each label. Only where labels are many, the answers
are looked at one by one. Answers may also look like those of labelling functions, whose silence means something.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..errors import DataWarning, Python, Sentence, join_names, listing, plural, shorten, warn
from ..kernels import Floats
from .answers import Answers
from .classes import group_spellings
from .columns import Indices, Values, count_codes, lookup, to_column
from .tagging import looks_tagged

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
# So many answers are looked at together, until everybody who could be one-sided has said two labels.
AT_ONCE = 1 << 18
# What separates the labels of a set; the latter are seldom in names.
SET_SIGNS, SURE_SIGNS = (";", "|", ",", "+", "/"), (";", "|")


@dataclass(frozen=True)
class Source:
    """Where answers come from, which decides what can be done about them: the words differ."""

    named: bool = False  # whether the user named the classes, and so has looked at the labels
    tabular: bool = True  # a long table; else a matrix
    normalises: bool = True  # whether it can be read with normalise=True
    unseen: bool = True  # whether there are labels that no earlier warning can have been about


def warn_of_slips(r: Answers, source: Source) -> None:
    """Warn of labels that look like a slip."""
    for warning in find_slips(r, source):
        warn(warning)


def find_slips(r: Answers, source: Source) -> Iterator[DataWarning]:
    """Yield the warnings that the labels and workers of these answers call for."""
    doubt = None if source.named else doubt_ids(r, source) or doubt_number(r, source) or doubt_scores(r, source)
    # Where labels are no classes, their spellings do not matter.
    doubts = [doubt] if doubt else [doubt_spellings(r, source), doubt_no_value(r, source), doubt_abstention(r, source)]
    yield from filter(None, [*doubts, doubt_workers(r)])


def doubt_spellings(r: Answers, source: Source) -> DataWarning | None:
    """Return the warning that labels differ only in how they are written; not of those that were named as classes."""
    wanted = set(r.classes.tolist()) if source.named else set()
    groups = [group for group in group_spellings(r.labels.tolist()) if not wanted.issuperset(group)]
    if not groups:
        return None
    return DataWarning(
        f"Some labels differ only in case, spaces or Unicode form: {_list_groups(groups)}. They are treated as "
        "different labels.",
        *([Sentence("To merge them, use {normalise}.", normalise=True)] if source.normalises else []),
        Sentence("If they are different classes, list them all with {classes} to silence this warning."),
        keyword="normalise",
    )


def doubt_workers(r: Answers) -> DataWarning | None:
    """Return the warning that ids of workers differ only in how they are written."""
    groups = group_spellings(r.workers.tolist()) if r.n_workers <= MOST_WORKERS else []
    if not groups:
        return None
    return DataWarning(
        f"Some ids of workers differ only in case, spaces or Unicode form: {_list_groups(groups)}. They are treated as "
        "different workers.",
        "If they are the same person, use one spelling in the data.",
    )


def doubt_no_value(r: Answers, source: Source) -> DataWarning | None:
    """Return the warning that a label may stand for no answer; not of one that was named as a class."""
    wanted = set(r.classes.tolist()) if source.named else {r.background} if r.silence_counts else set()
    odd = [
        code
        for code, label in enumerate(r.labels.tolist())
        if isinstance(label, str) and (label.strip() in NO_VALUE or not label.strip()) and label not in wanted
    ]
    if not odd:
        return None
    counts = np.bincount(r.label, minlength=r.n_labels)[odd]
    labels, n_answers = r.labels[odd].tolist(), plural(int(counts.sum()), "answer")
    drop = "remove those rows." if source.tabular else "name it with {missing}."
    verb = "label {} is" if len(odd) == 1 else "labels {} are"
    return DataWarning(
        f"The {verb.format(listing(labels))} treated as an answer like any other ({n_answers}).",
        Sentence(f"If it stands for no answer, {drop}", missing=labels[0]),
        Sentence("If it is an answer, list all classes with {classes} to silence this warning."),
    )


def doubt_abstention(r: Answers, source: Source) -> DataWarning | None:
    """Return the warning that a label which is a class may mean that a worker abstains; not if classes were named."""
    code = _find_abstention(r) if source.unseen and not source.named else None
    if code is None or r.labels[code] not in r.classes.tolist():
        return None
    label, classes = r.labels.tolist()[code], [each for each in r.classes.tolist() if each != r.labels[code]]
    simple = len(classes) <= MOST_LISTED and not any(set(str(each)) & set(',"\n') for each in classes)
    others = Python(f"classes={classes!r}", ",".join(map(str, classes))) if simple else None
    drop = "leave those cells empty" if r.provenance.format in ("wide", "matrix") else "remove those rows"
    drop = drop if source.tabular else "name it with {missing}"
    return DataWarning(
        f"The label {shorten(label)} is treated as an answer and as a class like any other "
        f"({plural(int(np.count_nonzero(r.label == code)), 'answer')}).",
        Sentence("If it means that a worker abstains, give the classes without it: {classes}.", classes=others),
        Sentence(f"If it means that the worker did not see the item, {drop}.", missing=label),
        Sentence("If it is a class, list all classes with {classes} to silence this warning."),
        keyword="classes",
    )


def _find_abstention(r: Answers) -> int | None:
    """Return the code of the label that looks like an abstention, or None.

    That is a word for it, or -1 beside words or whole numbers from 0 on. Beside 1, -1 is an ordinary answer.
    Beside 0 and 1 it is one in crowds, too: there it has to be most of the answers.
    """
    texts = [str(label).strip().lower().removesuffix(".0") for label in r.labels.tolist()]
    words = [code for code, text in enumerate(texts) if text in ABSTENTIONS]
    if words:
        return words[0] if len(words) < len(texts) else None
    others = {text for text in texts if text != "-1"}
    if "-1" not in texts or not others or others == {"1"} or not all(map(_is_word_or_count, others)):
        return None
    code = texts.index("-1")
    return code if others != {"0", "1"} or np.mean(r.label == code) > MOST_ABSTAIN else None


def _is_word_or_count(text: str) -> bool:
    try:
        number = float(text)
    except ValueError:
        return True
    return number >= 0 and number.is_integer()


def doubt_ids(r: Answers, source: Source) -> DataWarning | None:
    """Return the warning that labels are ids of the items or workers."""
    if r.n_labels < 3 or r.n_responses < FEWEST_IN_ALL or r.silence_counts:
        return None
    whose = "workers" if _are_workers(r) else "items" if _are_items(r) else None
    if whose is None:
        return None
    return DataWarning(
        f"The labels look like the ids of the {whose}, such as {listing(r.labels.tolist(), 3)}. Each is treated as a "
        "class.",
        _say_column(r, source),
        Sentence("If they are classes, list them with {classes} to silence this warning."),
    )


def doubt_number(r: Answers, source: Source) -> DataWarning | None:
    """Return the warning that there are nearly as many labels as answers."""
    if r.n_labels < FEWEST_LABELS or r.n_responses >= FEWEST_ANSWERS * r.n_labels:
        return None
    rare = np.argsort(np.bincount(r.label, minlength=r.n_labels), kind="stable")[:3]
    return DataWarning(
        f"There are {plural(r.n_labels, 'different label')} in {plural(r.n_responses, 'answer')}, such as "
        f"{listing(r.labels[np.sort(rare)].tolist())}. Most of them occur only once or twice, like ids or free text. "
        "Each is treated as a class.",
        _say_column(r, source),
        "If the answers are free text, map them to a few labels first.",
    )


def doubt_scores(r: Answers, source: Source) -> DataWarning | None:
    """Return the warning that labels are many numbers, on which workers rarely agree."""
    numbers = _read_numbers(r.labels) if r.n_labels >= FEWEST_LABELS else None
    if numbers is None or (r.n_labels < FEWEST_WHOLE and (numbers == np.round(numbers)).all()):
        return None
    agreement = _agree(r)
    if agreement is not None and agreement >= LEAST_AGREEMENT:
        return None
    seldom = "" if agreement is None else f", and two workers rarely give an item the same one ({agreement:.0%})"
    return DataWarning(
        f"The labels are {len(numbers):,} different numbers, from {numbers.min():.6g} to {numbers.max():.6g}{seldom}. "
        "Each is treated as a class of its own; their order is not used.",
        _say_column(r, source),
        "If they are scores, bin them into a few classes first.",
        Sentence("If they are classes, list them with {classes} to silence this warning."),
    )


def _say_column(r: Answers, source: Source) -> str | Sentence:
    if not source.tabular:
        return "Check that the entries are labels."
    taken = shorten(r.columns["label"]).replace("{", "{{").replace("}", "}}")
    return Sentence(f"If {taken} is the wrong column, name the right one with {{label}}.")


def _list_groups(groups: list[list[str]]) -> str:
    return join_names(map(_list_group, groups), separator="; ")


def _list_group(group: list[str]) -> str:
    r"""Return spellings as text; those that look alike on the screen by the codes of their letters.

    >>> print(_list_group(["Cat", "cat"]), _list_group(["e\u0301", "\xe9"]))
    'Cat', 'cat' 'e\u0301', '\xe9'
    """
    alike = len({unicodedata.normalize("NFC", text) for text in group}) < len(group)
    texts = [text.encode("unicode_escape").decode("ascii") for text in group] if alike else group
    return listing(texts).replace("\\\\", "\\") if alike else listing(texts)


def _are_workers(r: Answers) -> bool:
    """Tell whether labels are ids of workers: of the one who answered in nearly all answers, or names of anyone."""
    if not r.n_workers / 2 <= r.n_labels <= r.n_workers:
        return False
    found = lookup(r.workers, to_column(r.labels))
    same = bool(np.mean(found[r.label] == r.worker) >= MOST_SAME)
    return same or (bool((found >= 0).all()) and all(map(_is_name, r.labels.tolist())))


def _is_name(label: object) -> bool:
    """Tell whether a label is text that can hardly be both a label and an id by chance, as "1" and "A" are."""
    return isinstance(label, str) and len(label) > 1 and not label.strip().isdecimal()


def _are_items(r: Answers) -> bool:
    """Tell whether the label of nearly every answer is the id of the item, or the sequence, that it is about."""
    ids, owner = (r.items, None) if r.sequences is None else (r.sequences.ids, r.sequences.of_items())
    # Otherwise they cannot be; with millions of items that is much quicker to see.
    if not len(ids) / 2 <= r.n_labels <= len(ids):
        return False
    found = lookup(ids, to_column(r.labels))
    item = r.item_of_answer()
    return bool(np.mean(found[r.label] == (item if owner is None else owner[item])) >= MOST_SAME)


def _read_numbers(labels: Values) -> Floats | None:
    """Return labels as finite numbers; None if they are not all numbers."""
    if labels.dtype.kind not in "iufO":
        return None
    try:
        numbers = np.array([float(label) for label in labels.tolist()])
    except (TypeError, ValueError, OverflowError):
        return None
    return numbers if np.isfinite(numbers).all() else None


def _agree(r: Answers) -> float | None:
    """Return how often an answer is the same as the one before it about the same item; None if there are none."""
    item = r.item_of_answer()
    pairs = item[1:] == item[:-1]
    return float(np.mean((r.label[1:] == r.label[:-1])[pairs])) if pairs.any() else None


def warn_of_silence(r: Answers, n_stored: int | None = None) -> None:
    """Warn if silence may well be an answer, and is ignored. Parameters are those of `doubt_silence`."""
    doubt = doubt_silence(r, n_stored)
    if doubt is not None:
        warn(doubt)


def doubt_silence(r: Answers, n_stored: int | None = None) -> DataWarning | None:
    """Return the warning that silence may well be an answer, and is ignored; else None.

    Parameters
    ----------
    r : Answers
        The answers.
    n_stored : int, optional
        If they are from a store, where silence is never an answer: the number of items there.
    """
    if r.silence_counts:
        return None
    n_alike, n_judged = count_one_sided(r)
    tagged = r.sequences is not None and looks_tagged(r.labels) and "O" not in r.labels.tolist()
    answered, n_places = np.count_nonzero(np.diff(r.offsets)), count_places(r)
    if n_alike > max(1, MOST * n_judged):
        problem = f"{n_alike:,} of {plural(n_judged, 'worker')} with enough answers to tell only ever say one label"
    elif (tagged or r.n_labels == 1) and r.n_responses >= FEWEST_IN_ALL and answered < FEW * n_places:
        said = "tags and never O" if tagged else f"only {shorten(r.labels.tolist()[0])}"
        problem = f"Workers say {said}, about {answered:,} of {plural(n_places, 'item')}"
    else:
        return None
    if n_stored is not None and n_stored > r.n_items:
        problem = f"In a sample of {plural(r.n_items, 'item')}, {problem[0].lower()}{problem[1:]}"
    read = "read the answers with {abstain}" if n_stored is None else "read the answers into memory, with {abstain}"
    return DataWarning(
        f"{problem}, as labelling functions do. Their silence about other items is ignored.",
        Sentence(f"If it means something, {read}.", abstain="answer"),
        Sentence("Then {background} is the class of items about which all are silent."),
        *([] if answered < r.n_items else [Sentence("And {items} names those nobody spoke about, too.")]),
        keyword="abstain",
    )


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


def count_places(r: Answers) -> int:
    """Return the number of items, with those between the positions of a sequence that nobody answered or named."""
    if r.sequences is None or r.sequences.position.dtype.kind not in "iu":
        return r.n_items
    first, last = r.sequences.offsets[:-1], r.sequences.offsets[1:] - 1
    return int(np.sum(r.sequences.position[last].astype(float) - r.sequences.position[first] + 1))


def count_one_sided(r: Answers) -> tuple[int, int]:
    """Return how many workers only ever say one label, and how many there are, of those for whom it would be no chance.

    The first is 0 where such workers gave less than half of all answers.
    """
    n_answers = count_codes(r.worker, r.n_workers)
    judged = (n_answers >= FEWEST_TO_JUDGE) & (chance_of_one_label(r, n_answers) < CHANCE)
    alike, first = judged.copy(), np.full(r.n_workers, -1, r.label.dtype)
    for begin in range(0, r.n_responses, AT_ONCE):
        if not alike.any():
            break
        worker, label = r.worker[begin : begin + AT_ONCE], r.label[begin : begin + AT_ONCE]
        new = np.flatnonzero(first[worker] < 0)[::-1]  # of several answers the first one stays
        first[worker[new]] = label[new]
        alike[worker[label != first[worker]]] = False
    enough = n_answers[alike].sum() > MOST * r.n_responses
    return int(alike.sum()) if enough else 0, int(judged.sum())


def chance_of_one_label(r: Answers, n_answers: Indices) -> Floats:
    """Return for each worker how probable it is that all answers are alike, if they are drawn from those of all."""
    share = count_codes(r.label, r.n_labels) / max(r.n_responses, 1)
    counts, place = np.unique(n_answers, return_inverse=True)
    return np.array([np.sum(share**count) for count in counts.tolist()])[place]
