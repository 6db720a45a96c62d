"""The task of sets of tags: each tag of each item is a question, answered with yes or no."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..answers.answers import Answers
from ..answers.columns import Column, Values, find_present, lookup, name_probabilities, objects, to_column, to_values
from ..answers.gold import LEAVE_OUT
from ..answers.tables import is_table, open_frame
from ..errors import DataWarning, InputError, listing, plural, shorten, warn
from ..kernels import Floats, Truths
from .base import Fused, Kind, Labels, list_given
from .tag_tables import ONE_HOT, SAY_WHICH, SIGN, encode_sets, open_known_sets
from .tags import NO, SEPARATOR, YES, Tags, list_column


@dataclass(frozen=True, eq=False)
class TagsKind(Kind[Tags]):
    """The tags about which workers were asked, each for all items.

    Attributes
    ----------
    tags : ndarray
        All tags. Items of the fit are pairs of an item and a tag: all tags of the first item, then those of the next.
    separator : str or None
        What stood between tags in a cell.
    form : str
        How sets were held, as in `Tags`.
    origin : tuple of str or None
        Path and format of the file.
    question : str or None
        The column of the sets.
    """

    tags: Values
    separator: str | None = None
    form: str = "lists"
    origin: tuple[str, str] | None = None
    question: str | None = None

    name = "tags"
    brought = Tags
    title = "sets of tags"
    layouts: ClassVar[Mapping[str, Callable[[Tags], object]]] = {"long": Tags.to_frame}
    item = "tag"
    places = ("item", "tag")
    argument = "tags"
    model = "tags"
    results = "sets"
    judged = "single tag"

    @classmethod
    def pose(cls, brought: Tags) -> tuple[TagsKind, Answers]:
        """Return the answers yes and no about each tag of each item."""
        known = brought.tags, brought.separator, brought.form, brought.origin, brought.columns.get("label")
        return cls(*known), brought.to_responses()

    def reading(self) -> dict[str, object]:
        """Return that tables hold sets, and what stands between tags."""
        return {"separator": self.separator, "format": ONE_HOT if self.form == ONE_HOT else None}

    def adapt(self, brought: Tags) -> Tags:
        """Return further sets with the tags of the fit."""
        return brought.with_tags(self.tags)

    @classmethod
    def describe(cls, brought: Tags) -> str:
        """Return how many sets there are, by whom and of what."""
        sets = f"{plural(brought.n_sets, 'set')} of {plural(brought.n_tags, 'tag')}"
        return f"{sets} by {plural(brought.n_workers, 'worker')} about {plural(brought.n_items, 'item')}"

    @classmethod
    def find_format(cls, brought: Tags) -> str | None:
        """Return the name of the format of the file."""
        return None if brought.origin is None else brought.origin[1]

    @classmethod
    def leave_known(cls, brought: Tags) -> Tags:
        """Return the same without known sets that the table has."""
        return brought.without_gold()

    @classmethod
    def take_known(
        cls, brought: Tags, gold: object, open_known: Callable[[object, object], object]
    ) -> tuple[Tags, object]:
        """Return the tags, and what known sets say of each tag of their items."""
        single: list[object] = []
        for each in list_given(gold):
            known = open_known(each, brought)
            by_tag = read_known_tags(known, brought.tags)
            if by_tag is None:
                brought = brought.with_gold(known)
            else:
                single.append(by_tag)
        sets = brought.known_answers()
        return brought, [*([] if sets is None else [sets]), *single]

    @classmethod
    def choose_known(cls, brought: Tags, answers: Answers) -> object:  # noqa: ARG003
        """Return what known sets say of each tag of their items, if there are other items."""
        n_known = len(brought.gold_items)
        name = shorten(brought.columns.get("gold", "gold"))
        if not n_known:
            return None
        if n_known == brought.n_items:
            warn(
                DataWarning(
                    f"Column {name} holds the known set of every item. It is not used: there would be nothing to fuse.",
                    "Compare the sets with it by evaluate.",
                    LEAVE_OUT,
                )
            )
            return None
        known = f"{n_known:,} of {plural(brought.n_items, 'item')}"
        warn(DataWarning(f"Column {name} holds known sets of {known}. They are used as gold.", LEAVE_OUT))
        return brought.known_answers()

    def spread_known(self, gold: object, names: Mapping[str, str]) -> object:
        """Return what known sets say of each tag of their items; several may be given."""
        if gold is None or gold is False:
            return gold
        every: list[object] = []
        for each in list_given(gold):
            if isinstance(each, Mapping) and each.keys() == {"sequence", "position", "label"}:
                every.append(each)  # as `Tags.known_answers` has it
                continue
            by_tag = read_known_tags(each, self.tags)
            if by_tag is None:
                table, cells = open_known_sets(each, self.separator, names)
                item = to_values(table.values(table.need("item"), SAY_WHICH))
                said = encode_sets(cells, self.tags)
                by_tag = {
                    "sequence": np.repeat(item, len(self.tags)),
                    "position": np.tile(np.arange(len(self.tags)), len(item)),
                    "label": objects([NO, YES])[said.astype(np.int64).ravel()],
                }
            every.append(by_tag)
        return every

    def check_items(self, keys: Mapping[str, Column] | None) -> None:
        """Raise a `ValueError` unless the items are all tags of one thing, then those of the next."""
        if keys is None:
            return  # the answers are on disk
        if "sequence" not in keys:
            raise ValueError("it has tags, but no sets")
        position, n_tags = to_values(keys["position"]), len(self.tags)
        if not np.array_equal(position, np.tile(np.arange(n_tags), len(position) // max(n_tags, 1))):
            raise ValueError("the tags are not those of the sets")

    def size(self, answers: Answers) -> tuple[int, int]:
        """Return how many things have tags, and how many sets they were given."""
        n_tags = max(len(self.tags), 1)
        return answers.n_items // n_tags, answers.n_responses // n_tags

    def count(self, fused: Fused, is_sure: bool) -> str:
        """Return in words how many sets there are, and how sure these are."""
        n_sets, size, confidence = self.add_up(fused)
        told = f"There are {plural(n_sets, 'set')} with {size:.1f} tags on average"
        return f"{told}, and a mean confidence of {confidence:.1%}." if is_sure else f"{told}."

    def summarise(self, answers: Answers, fused: Fused) -> dict[str, object]:
        """Return how many sets workers gave, and how many tags the fused ones have, with their mean confidence."""
        n_sets, size, confidence = self.add_up(fused)
        return {
            "given": self.size(answers)[1],
            "tags": self.tags.tolist(),
            "fused": n_sets,
            "mean_size": size,
            "mean_confidence": confidence,
        }

    def add_up(self, fused: Fused) -> tuple[int, float, float]:
        """How many fused sets there are, their mean size and their mean confidence."""
        said, confidence, _ = find_sets(self, fused.labels)
        n_sets = max(len(said), 1)
        return len(said), float(said.sum()) / n_sets, float(confidence.sum()) / n_sets

    def name_keys(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        """Return the columns of a table in which each row is about one tag of an item."""
        if "position" not in columns:
            return dict(columns)
        tag = to_column(self.tags[to_values(columns["position"])])
        named = {"item": columns["sequence"], "tag": tag}
        return named | {name: column for name, column in columns.items() if name not in ("sequence", "position")}

    def name_position(self, position: Any) -> object:
        """Return the tag of this number."""
        return self.tags[[position]].tolist()[0]

    def find_key(self, item: object) -> object:
        """Return the key of a tag of an item, which are named together."""
        if not isinstance(item, (tuple, list)) or len(item) != 2:
            raise InputError(
                f"Name an item and a tag, such as (item, {self.tags.tolist()[0]!r}). Got {shorten(item)} instead."
            )
        code = int(lookup(self.tags, to_column([item[1]]))[0])
        if code < 0:
            raise InputError(f"There is no tag {shorten(item[1])}.", f"There are {listing(self.tags.tolist())}.")
        return item[0], code

    def mark(self, labels: pa.Table) -> pa.Table:
        """Return the table of sets, which says what stands between tags where these are text."""
        at = labels.column_names.index("labels")
        marked = labels.schema.field(at).with_metadata({SIGN: self.separator or SEPARATOR})
        return labels.set_column(at, marked, labels.column(at))

    def arrange(self, labels: Labels, shown: bool, undecided: float | None) -> dict[str, Column]:
        """Return the columns of the table of fused sets."""
        said, confidence, posterior = find_sets(self, labels)
        lists = list_column(said, self.tags)
        if undecided is not None:
            lists = pc.if_else(pa.array(confidence >= undecided), lists, pa.scalar(None, lists.type))
        first, nothing = pa.array(np.arange(len(said)) * len(self.tags)), np.full(len(said), np.nan)
        item, _, *parts = labels.keys
        columns: dict[str, Column] = {"item": labels.keys[item].take(first)}
        columns |= {name: labels.keys[name].take(first) for name in parts}
        columns |= {"labels": lists, "confidence": to_column(confidence if shown else nothing)}
        for t, name in enumerate(name_probabilities(self.tags, columns)):
            columns[name] = to_column(np.ascontiguousarray(posterior[:, t]) if shown else nothing)
        return columns


def read_known_tags(given: object, tags: Values) -> dict[str, object] | None:
    """Return what a table with the columns item, tag and label (yes or no) tells; None for anything else.

    Rows without a label tell nothing.
    """
    needed = {"item", "tag", "label"}
    if not is_table(given) or (isinstance(given, Mapping) and not needed <= given.keys()):
        return None
    table = open_frame(given, "gold")
    if not needed <= set(table.names):
        return None
    rows = table.keep(find_present(table.read("label")))
    code = lookup(tags, rows.read("tag"))
    unknown = sorted({str(to_values(rows.read("tag"))[at]) for at in np.flatnonzero(code < 0).tolist()})
    if unknown:
        raise InputError(f"There are tags that nobody gave: {listing(unknown)}.", "Check how they are written.")
    return {"sequence": rows.read("item"), "position": code, "label": rows.read("label")}


def find_sets(task: TagsKind, labels: Labels) -> tuple[Truths, Floats, Floats]:
    """Which tags each fused set has, the confidence of each set, and the probability of each of its tags.

    The confidence of a set is the product of those of its tags, given and not given.
    """
    n_tags = len(task.tags)
    yes = int(lookup(labels.classes, to_column([YES]))[0])
    said = (labels.codes == yes).reshape(-1, n_tags)
    posterior = labels.posterior[:, yes].reshape(-1, n_tags)
    return said, labels.confidence.reshape(-1, n_tags).prod(axis=1), posterior


def report_tags(task: TagsKind, shares: Floats, counts: Floats) -> dict[str, Column]:
    """Return the columns of a table of tags; counts are (M, T, L, K)."""
    total = counts.sum(axis=0)
    given = total[:, 1].sum(axis=1) / total.sum(axis=(1, 2))
    misses, alarms = find_errors(total)
    figures = {"share": shares, "given": given, "misses": misses, "false_alarms": alarms}
    return {"tag": to_column(task.tags)} | {name: to_column(values) for name, values in figures.items()}


def report_workers_by_tag(task: TagsKind, workers: Values, counts: Floats, confusion: Floats) -> dict[str, Column]:
    """Return the columns of a table of workers and tags; counts are (M, T, L, K), confusion (M, T, K, L)."""
    n_workers, n_tags = counts.shape[:2]
    return {
        "worker": to_column(np.repeat(workers, n_tags)),
        "tag": to_column(np.tile(task.tags, n_workers)),
        "answers": to_column(np.rint(counts.sum(axis=(2, 3))).astype(np.int64).ravel()),
        "misses": to_column(np.ascontiguousarray(confusion[:, :, 1, 0]).ravel()),
        "false_alarms": to_column(np.ascontiguousarray(confusion[:, :, 0, 1]).ravel()),
    }


def find_errors(counts: Floats) -> tuple[Floats, Floats]:
    """Return which share of the tags that fit was missed, and of the others given, from counts (..., L, K)."""
    total = np.maximum(counts.sum(axis=-2), 1e-300)
    return counts[..., 0, 1] / total[..., 1], counts[..., 1, 0] / total[..., 0]
