"""The task of tables: every item has an id and stands for itself."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ..answers.columns import to_column
from ..answers.gold import LEAVE_OUT, find_strange
from ..answers.responses import LAYOUTS, Responses
from ..errors import DataWarning, Sentence, listing, plural, shorten, warn
from ..specs import NOT_SAVED
from .base import Fused, Posed, Task, Writers


@dataclass(frozen=True, eq=False)
class TableTask(Task[Responses]):
    """Items of a table.

    Attributes
    ----------
    origin : tuple of str or None
        Path and format of the file.
    question : str or None
        The column of the answers.
    """

    origin: Annotated[tuple[str, str] | None, NOT_SAVED] = None
    question: Annotated[str | None, NOT_SAVED] = None

    name = "table"
    brought = Responses
    title = "answers about whole items"
    layouts = LAYOUTS

    @classmethod
    def pose(cls, brought: Responses) -> Posed:
        """Return the answers themselves."""
        return Posed(cls(brought.provenance.origin, brought.columns.get("label")), brought)

    @classmethod
    def describe(cls, brought: Responses) -> str:
        """Return how many answers there are, by whom and about what."""
        return (
            f"{plural(brought.n_responses, 'answer')} by {plural(brought.n_workers, 'worker')} about "
            f"{plural(brought.n_items, 'item')}"
        )

    @classmethod
    def find_format(cls, brought: Responses) -> str | None:
        """Return the name of the format of the file."""
        return None if brought.provenance.origin is None else brought.provenance.origin[1]

    @classmethod
    def leave_known(cls, brought: Responses) -> Responses:
        """Return the answers without the known labels that their table has."""
        columns = {role: name for role, name in brought.columns.items() if role != "gold"}
        return brought.read_from(gold=None, columns=columns)

    @classmethod
    def choose_known(cls, brought: Responses, answers: Responses) -> Mapping[object, object] | None:
        """Return the known labels that the answers come with, if they are of use.

        They are not used if some are no classes, or if the label of every item is known: there would be nothing to
        fuse.
        """
        gold = brought.gold
        if not gold:
            return None
        name = shorten(brought.columns.get("gold"))
        strange = find_strange(answers, to_column(list(gold.values())))
        if strange:
            warn(
                DataWarning(
                    f"Column {name} is not used as known labels: it holds {listing(strange)}, and the classes are "
                    f"{listing(answers.classes.tolist())}.",
                    Sentence("If it holds known labels, name all classes with {classes}."),
                    LEAVE_OUT,
                )
            )
            return None
        if len(gold) == answers.n_items:
            warn(
                DataWarning(
                    f"Column {name} holds a known label of every item. It is not used: there would be nothing to fuse.",
                    "Compare the labels with it by evaluate.",
                    LEAVE_OUT,
                )
            )
            return None
        known = f"{len(gold):,} of {plural(answers.n_items, 'item')}"
        warn(DataWarning(f"Column {name} holds known labels of {known}. They are used as gold.", LEAVE_OUT))
        return gold

    @classmethod
    def list_losses(cls, brought: Responses, source: str, form: str, carried: Container[str]) -> list[str]:  # noqa: ARG003
        """Return what a layout cannot hold."""
        n_silent = int(np.count_nonzero(np.diff(brought.offsets) == 0))
        lost = [f"{plural(n_silent, 'item')} without an answer"] if form == "long" and n_silent else []
        return lost + ["the weights of answers"] * (form == "wide" and brought.weight is not None)

    def write(self, fused: Fused, labels: object, path: str, writers: Writers) -> None:  # noqa: ARG002
        """Write the labels into a copy of the file that the answers were read from."""
        assert self.origin is not None
        writers.write_labels(labels, path, self.origin[0], self.question)


# Of answers that nothing else is known of.
TABLE = TableTask()
