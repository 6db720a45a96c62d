"""The one exception tree of the package, and its warnings.

Every message says what is wrong, what was found, and what to do; at most five offenders are listed, with their number.

What to do often names a parameter. The library calls it ``label=``, the command line ``--label``. So an error keeps
apart what is wrong (`problem`) and what to do (`remedies`), and names parameters without spelling them: a remedy is a
`Sentence` with ``{label}`` in it, which is spelled by whoever shows it.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from string import Formatter
from typing import Self

# The most characters that a message has.
LONGEST_MESSAGE = 2000
# Names that a message lists if there are more.
MOST_NAMES = 10

# Spells a parameter, with the value that is given for it or None; None where there is no such parameter.
Spelling = Callable[[str, object], str | None]
# What the warnings that are given are about; see `about`.
_about: ContextVar[str | None] = ContextVar("about", default=None)


@dataclass(frozen=True)
class Python:
    """How Python spells a parameter where ``name=value`` would not do, and the value to give for it elsewhere."""

    text: str
    value: object = None


class Sentence:
    """A sentence that names parameters: ``{label}`` in the text is spelled by whoever shows it.

    Parameters
    ----------
    text : str
        Never holds text from the data: braces in that would be taken for parameters.
    **values
        What is to be given for a parameter. Text from the data is safe here.

    Examples
    --------
    >>> print(Sentence("Did you mean {label}?", label="lable"))
    Did you mean label='lable'?
    >>> Sentence("Name all {classes}.").say(lambda name, value: f"--{name}")
    'Name all --classes.'
    """

    def __init__(self, text: str, /, **values: object) -> None:
        self.text = text
        self.values = values

    def say(self, spell: Spelling) -> str | None:
        """The sentence as `spell` spells its parameters; None if that does not know one of them."""
        words = {name: spell(name, self.values.get(name)) for name in self.names}
        return None if None in words.values() else self.text.format_map(words)

    @property
    def names(self) -> list[str]:
        """The parameters that it names."""
        return [name for _, name, _, _ in Formatter().parse(self.text) if name]

    def __str__(self) -> str:
        return str(self.say(spell_in_python))

    def __repr__(self) -> str:
        return repr(str(self))


def spell_in_python(name: str, value: object) -> str:
    """A parameter as Python code names it.

    >>> spell_in_python("label", None), spell_in_python("label", "x")
    ('label=', "label='x'")
    """
    if isinstance(value, Python):
        return value.text
    return f"{name}=" if value is None else f"{name}={value!r}"


class Message(Exception):
    """What errors and warnings have in common.

    Attributes
    ----------
    problem : str or Sentence
        What is wrong, and what was found.
    remedies : tuple of str or Sentence
        What to do about it; any one of them helps.
    keyword : str or None
        The parameter that is at fault, if it is one.
    question : str or None
        The question that it is about, if there are several.
    """

    question: str | None = None

    def __init__(self, problem: str | Sentence = "", *remedies: str | Sentence, keyword: str | None = None) -> None:
        super().__init__(problem, *remedies)
        self.problem = problem
        self.remedies = remedies
        self.keyword = keyword

    def say(self, spell: Spelling) -> str:
        """The message as `spell` spells parameters, without remedies that name a parameter it does not know.

        It has at most `LONGEST_MESSAGE` characters.
        """
        known = (part.say(spell) if isinstance(part, Sentence) else part for part in self.remedies)
        remedies = cut(" ".join(filter(None, known)), LONGEST_MESSAGE // 2)
        problem = self.problem.say(spell) if isinstance(self.problem, Sentence) else self.problem
        problem = f"{'' if self.question is None else f'Question {self.question!r}: '}{problem or self.problem}"
        problem = cut(problem, LONGEST_MESSAGE - 1 - len(remedies))
        return f"{problem} {remedies}" if remedies else problem

    def __str__(self) -> str:
        return self.say(spell_in_python)


class ConsilienceError(Message):
    """Base of every error this package raises on purpose."""


class InputError(ConsilienceError, ValueError):
    """The data cannot be used: a missing column, an empty file, a null label, a duplicate answer."""


class ManyQuestionsError(InputError):
    """A table of a platform or tool has answers to several questions, of which one was to be chosen."""

    questions: tuple[str, ...] = ()


class ParameterError(ConsilienceError, ValueError):
    """A parameter has a value it cannot take."""


class NotFittedError(ConsilienceError, AttributeError):
    """A result was asked for before `fit`."""


class StoreError(ConsilienceError, ValueError):
    """A saved model cannot be written or read."""


class MissingDependencyError(ConsilienceError, ImportError):
    """An optional dependency is needed and not installed."""


class EngineError(ConsilienceError, RuntimeError):
    """The work could not be done where it was to be done: a cluster cannot be reached, or keeps failing."""


class ConsilienceWarning(Message, UserWarning):
    """Base of every warning this package gives."""

    def said_of(self, question: str) -> Self:
        """The warning with the question that it is about, which comes first.

        >>> print(DataWarning("There are few answers.", "Collect more.").said_of("Answer.tone"))
        Question 'Answer.tone': There are few answers. Collect more.
        """
        warning = copy.copy(self)
        warning.question = question
        return warning


class ConvergenceWarning(ConsilienceWarning):
    """The fit stopped before it settled."""


class DataWarning(ConsilienceWarning):
    """Something in the data deserves a look, and the work went on."""


class LabelWarning(DataWarning):
    """Labels that may be misspelt, stand for no answer, or be no classes. Nobody asks that of numbers."""


def warn(warning: ConsilienceWarning) -> None:
    """Give a warning, which points at the line outside this package that led to it."""
    question = _about.get()
    warning = warning if question is None else warning.said_of(question)
    # The package calls itself through these two modules of Python.
    inside = (os.path.dirname(__file__) + os.sep, contextlib.__file__, functools.__file__)
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


def warn_of(
    problem: str | Sentence,
    *remedies: str | Sentence,
    keyword: str | None = None,
    category: type[DataWarning] = DataWarning,
) -> None:
    """Warn of data that may not be what they seem; the parameters are those of `Message`."""
    warn(category(problem, *remedies, keyword=keyword))


@contextlib.contextmanager
def about(question: str | None) -> Iterator[None]:
    """Let the warnings that are given meanwhile name the question that they are about; None if there is only one."""
    token = _about.set(question)
    try:
        yield
    finally:
        _about.reset(token)


@contextlib.contextmanager
def quietly(category: type[Warning] = ConsilienceWarning) -> Iterator[None]:
    """Keep the package's warnings back, for fits that the user did not ask for, or those of one category."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield


def cut(text: str, width: int = LONGEST_MESSAGE) -> str:
    """Text, without a part of its middle if it is longer than `width`: a message begins and ends with words.

    >>> cut(f"The column {'x' * 1000} is empty.", 60)
    'The column xxxxxxxxxxx... [987 characters] ...xx is empty.'
    """
    if len(text) <= width:
        return text
    note = f"... [{len(text):,} characters] ..."
    n_head = (width - len(note)) * 2 // 3
    n_tail = width - len(note) - n_head
    return f"{text[:n_head]}... [{len(text) - n_head - n_tail:,} characters] ...{text[len(text) - n_tail :]}"


def shorten(value: object, width: int = 60) -> str:
    """`repr(value)`, cut to `width` characters, fit for a message.

    >>> shorten("a" * 100, width=12)
    "'aaaaaaaa..."
    """
    # A NumPy scalar is shown as the plain value it holds; this file imports no NumPy.
    plain = (
        value.item()
        if type(value).__module__ == "numpy" and hasattr(value, "item") and not hasattr(value, "__len__")
        else value
    )
    try:
        text = repr(plain)
    except Exception:  # an object whose own code fails, or one nested too deeply
        text = f"<{type(value).__name__}>"
    return text if len(text) <= width else text[: width - 3] + "..."


def count_shown(n: int, most: int = MOST_NAMES) -> int:
    """How many of `n` things to show, if `most` fit: to say that one is left out takes as much room as itself.

    >>> count_shown(9), count_shown(11), count_shown(12)
    (9, 11, 10)
    """
    return n if n <= most + 1 else most


def join_names(names: Iterable[str], where: str = "", most: int = MOST_NAMES, separator: str = ", ") -> str:
    """Names as text: all if there are few, else the first, how many more there are, and where all of them are.

    >>> join_names("abcd", "--json has all", most=3)
    'a, b, c, d'
    >>> join_names("abcde", "--json has all", most=3)
    'a, b, c, and 2 more (--json has all)'
    """
    every = list(names)
    n_shown = count_shown(len(every), most)
    rest = f"and {len(every) - n_shown:,} more{f' ({where})' if where else ''}"
    return separator.join([*every[:n_shown], *([rest] if n_shown < len(every) else [])])


def listing(values: Iterable[object], most: int = MOST_NAMES, where: str = "") -> str:
    """Values as `join_names` does, each as `shorten` shows it.

    >>> listing(["a", 7])
    "'a', 7"
    """
    return join_names(map(shorten, values), where, most)


def plural(number: int, noun: str) -> str:
    """A number of things in words.

    >>> plural(1, "label"), plural(2000, "label")
    ('1 label', '2,000 labels')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def to_sentence(words: str) -> str:
    """Words that begin with a small letter, and have no full stop, as a sentence.

    >>> to_sentence("no signal")
    'No signal.'
    """
    return f"{words[:1].upper()}{words[1:]}."


def first_line(error: Exception) -> str:
    r"""The first line of an error's message, fit to be continued.

    >>> first_line(OSError("No space left.\nErrno 28"))
    'No space left'
    """
    return str(error).strip().partition("\n")[0].rstrip(".")


def parameter_error(name: str, owner: str, expected: str, got: object) -> ParameterError:
    """The error for a parameter whose value is bad, in the same words everywhere.

    >>> print(parameter_error("tol", "DawidSkene", "a number >= 0", -1))
    The 'tol' parameter of DawidSkene must be a number >= 0. Got -1 instead.
    """
    complaint = f"must be {expected}. Got {shorten(got)} instead.".replace("{", "{{").replace("}", "}}")
    subject = Python(f"The {name!r} parameter of {owner}")
    return ParameterError(Sentence(f"{{{name}}} {complaint}", **{name: subject}), keyword=name)


# Joiners hold emoji and many scripts together, and do nothing else.
_JOINERS = "\u200c\u200d"


def make_inert(text: str) -> str:
    r"""Text in which control and direction characters are shown by their codes.

    >>> print(make_inert("a\x1b[31mb"))
    a\x1b[31mb
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in _JOINERS else char.encode("unicode_escape").decode() for char in text
    )
