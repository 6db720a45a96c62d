"""Tables: named columns, found by the role they play, and errors that say where a value is."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..arguments import is_among
from ..errors import InputError, Sentence, listing, plural, shorten
from .vocabulary import Column, find_missing

ALIASES = {
    "item": ("item", "task", "question", "id"),
    "worker": ("worker", "annotator", "judge", "labeler"),
    "label": ("label", "answer", "response"),
    "sequence": ("sequence",),
    "position": ("position",),
    "weight": ("weight",),
    # In a table of gold.
    "known label": ("label", "answer", "response", "gold", "truth"),
    "random": ("random",),
    # In a table of spans.
    "document": ("document", "document_id", "doc", "doc_id", "text_id", "sentence", "sequence", "item", "task", "id"),
    "start": ("start", "begin", "start_offset", "start_char"),
    "end": ("end", "stop", "end_offset", "end_char"),
    "type": ("label", "type", "tag", "entity"),
    "text": ("text", "content"),
}
_ALL_ALIASES = {alias for aliases in ALIASES.values() for alias in aliases}
_SEPARATORS = {";": "semicolons", "\t": "tabs"}


def check_names(names: Sequence[str], owner: str) -> None:
    """Raise an error unless the columns of a table, which `owner` stands for, have different names."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(
            f"{owner} has more than one column called {listing(repeated)}.", "Give each column its own name."
        )


@dataclass(frozen=True)
class Table:
    """Named columns of one length, of any frame library or file.

    Attributes
    ----------
    names : sequence of str
        Names of the columns.
    read : callable
        Returns the column of a name.
    n_rows : int
        Length of the columns.
    backend : str
        The frame library the table came in.
    name : str
        What messages call the table.
    locate : callable
        Says for a message where a row is.
    preferred : mapping
        For a role, the column to take if there is one of that name.
    """

    names: Sequence[str]
    read: Callable[[str], Column]
    n_rows: int
    backend: str
    name: str
    locate: Callable[[int], str]
    preferred: Mapping[str, str | None] = field(default_factory=dict)

    def find(self, role: str, given: str | None = None) -> str | None:
        """Return the name of the column that plays `role`: the given one, or the first alias that exists.

        Upper and lower case are the same to an alias.
        """
        if given is not None:
            if not is_among(given, self.names):
                raise self.no_column(role, given, parameter=role)
            return given
        wanted = self.preferred.get(role)
        if wanted is not None and is_among(wanted, self.names):
            return wanted
        by_lower = {str(name).lower(): name for name in reversed(self.names)} | {name: name for name in self.names}
        return next((by_lower[alias] for alias in ALIASES[role] if alias in by_lower), None)

    def need(self, role: str, given: str | None = None, parameter: str | None = None) -> str:
        """Return the column that `find` finds, or raise the error of `no_column`."""
        name = self.find(role, given)
        if name is None:
            raise self.no_column(role, None, parameter)
        return name

    def no_column(self, role: str, given: str | None, parameter: str | None = None) -> InputError:
        """Return the error for a missing column, with the nearest name there is.

        Parameters
        ----------
        role : str
            The role for which there is no column.
        given : str or None
            The name that was looked for; None: the aliases of the role.
        parameter : str, optional
            The parameter with which the caller can name the column; without one, it has to be renamed.
        """
        names = {str(name).lower(): str(name) for name in self.names}
        if given is None:  # a column that is found for another role is not the one that was meant
            names = {lower: name for lower, name in names.items() if lower not in _ALL_ALIASES}
        tried = ALIASES[role] if given is None else (given.lower() if isinstance(given, str) else shorten(given),)
        close = [names[name] for word in tried for name in difflib.get_close_matches(word, names, n=1, cutoff=0.6)]
        aliases = f" (looked for {', '.join(ALIASES[role])})" if given is None else ""
        wanted = f"has no column for the {role}{aliases}" if given is None else f"has no column {shorten(given)}"
        remedy: str | Sentence
        if parameter is not None:
            text = f"Did you mean {{{parameter}}}?" if close else f"Name it with {{{parameter}}}."
            remedy = Sentence(text, **{parameter: close[0] if close else None})
        else:
            remedy = f"Rename {close[0]!r}?" if close else "Rename the column that holds it."
        return InputError(
            f"{self.name} {wanted}. {self._list_names()}.", self._explain_names(tried) or remedy, keyword=parameter
        )

    def no_columns(self, roles: Sequence[str]) -> InputError:
        """Return the error for several missing columns, which the caller can name with parameters."""
        looked = "; ".join(f"{role}: looked for {', '.join(ALIASES[role])}" for role in roles)
        tried = [alias for role in roles for alias in ALIASES[role]]
        remedy = Sentence(f"Name them with {', '.join(f'{{{role}}}' for role in roles)}.")
        return InputError(
            f"{self.name} has no columns for {', '.join(roles)} ({looked}). {self._list_names()}.",
            self._explain_names(tried) or remedy,
        )

    def _list_names(self) -> str:
        return f"It has {listing(map(str, self.names))}" if self.names else "It has no columns"

    def _explain_names(self, tried: Sequence[str]) -> str:
        """Return why names may not be what they seem (another separator, or blanks around them); empty if not so."""
        names = [str(name) for name in self.names]
        if len(names) == 1:
            for sign, signs in _SEPARATORS.items():
                if sign in names[0]:
                    remedy = "Save it with commas" + (", or call it .tsv." if sign == "\t" else ".")
                    return f"That is one column: its parts seem to be separated by {signs}. {remedy}"
        padded = [name for name in names if name != name.strip() and name.strip().lower() in tried]
        return f"Remove the blanks around the name {padded[0]!r}." if padded else ""

    def values(self, name: str, remedy: str | Sentence) -> Column:
        """Return a column without missing values; a missing one is an error that says where it is, with the remedy."""
        column = self.read(name)
        rows = find_missing(column)
        if len(rows):
            share = "is empty throughout" if len(rows) == len(column) else f"has {plural(len(rows), 'missing value')}"
            raise InputError(
                f"Column {name!r} of {self.name} {share}; the first is at {self.locate(int(rows[0]))}.", remedy
            )
        return column
