"""What a check finds: worded once, and shown by warnings, terminal, `--json` and report. See `consilience.checks`.

What is said of workers goes by who gives the answers: people, labelling functions or models.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

from ..errors import ConsilienceWarning, DataWarning, Sentence, Spelling, parameter_error
from ..options import is_among

Words: TypeAlias = str | Sentence
# What one of them is called, and what to do about one that answers badly.
NOUNS = {"people": "worker", "functions": "function", "models": "model"}
ADVICE = {
    "people": "Look at their answers, and ask how they understood the task.",
    "functions": "Look at what they label, and correct them or leave them out.",
    "models": "Look at their answers, and at what they were told to do.",
}


@dataclass(frozen=True)
class Finding:
    """Something that the user should know about a result.

    Attributes
    ----------
    problem : str or Sentence
        What was found, with its figures.
    remedies : tuple of str or Sentence
        What to do about it.
    level : {"care", "bad"}
        How serious it is: whether labels call for care, or should not be relied on.
    keyword : str or None
        The parameter that is at fault, if it is one.
    category : type or None
        The warning that `fuse` gives; None if it gives none: reading or fitting may have warned already.
    kind, place : str
        What was found, and the section of the report that shows more, as the register of checks says.

    Examples
    --------
    >>> found = Finding("Most are silent.", (Sentence("Use {abstain}.", abstain="answer"),))
    >>> found.warning()
    DataWarning('Most are silent.', "Use abstain='answer'.")
    >>> found.spelled(lambda name, value: f"--{name} {value}").remedies
    ('Use --abstain answer.',)
    """

    problem: Words
    remedies: tuple[Words, ...] = ()
    level: Literal["care", "bad"] = "care"
    keyword: str | None = None
    category: type[ConsilienceWarning] | None = DataWarning
    kind: str = ""
    place: str = ""

    @classmethod
    def of_warning(cls, warning: ConsilienceWarning) -> Finding:
        """The finding of a warning that was given when answers were read, or fitted."""
        return cls(warning.problem, warning.remedies, keyword=warning.keyword, category=None)

    def warning(self) -> ConsilienceWarning:
        """The finding as a warning."""
        return (self.category or ConsilienceWarning)(self.problem, *self.remedies, keyword=self.keyword)

    def spelled(self, spell: Spelling) -> Finding:
        """The finding in plain text, without remedies that name a parameter which `spell` does not know."""
        problem, *remedies = (
            part.say(spell) if isinstance(part, Sentence) else part for part in (self.problem, *self.remedies)
        )
        return replace(self, problem=problem or str(self.problem), remedies=tuple(filter(None, remedies)))

    def to_record(self, spell: Spelling) -> dict[str, Any]:
        """The record that `--json` shows."""
        record = asdict(self.spelled(spell))
        return {name: record[name] for name in ("kind", "level", "problem", "remedies", "place")}


def check_kind(kind: str) -> str:
    """The kind of source that is given, if there is such a one."""
    if is_among(kind, tuple(NOUNS)):
        return kind
    raise parameter_error("source_kind", "fuse", f"one of {', '.join(map(repr, NOUNS))}, or None", kind)
