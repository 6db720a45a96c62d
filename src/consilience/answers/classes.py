"""What can be true: the classes, and the class of items about which all workers are silent."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from ..arguments import is_among
from ..errors import InputError, ParameterError, Sentence, listing, parameter_error
from .frames import read_distinct
from .tagging import looks_tagged
from .vocabulary import Values, is_text, lookup, objects, sorted_order, to_column, to_values

ABSTAIN = ("ignore", "answer")


def choose_classes(
    classes: ArrayLike | None,
    labels: Values,
    abstain: str = "ignore",
    background: Any = None,
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


def _choose_background(background: Any, classes: Values, labels: Values, given: bool) -> Any:
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


def _spell_as(labels: Values, background: Any) -> Any:
    """Return text as the labels are written, as far as they can be: 0 where "0" is given and the labels are numbers."""
    kind = to_column(labels)
    if not isinstance(background, str) or isinstance(kind, np.ndarray) or is_text(kind.type):
        return background
    try:
        return pc.cast(pa.array([background]), kind.type)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return background


def _has(classes: Values, label: Any) -> bool:
    return bool(lookup(classes, to_column([label]))[0] >= 0)


def _find_close(background: Any, labels: Values) -> Any:
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
