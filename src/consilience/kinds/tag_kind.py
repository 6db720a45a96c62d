"""Tags as a kind: the items are the tags of each thing, and labels of them become sets again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..answers.answers import Answers
from ..answers.columns import Column, Values, find_present, lookup, name_probabilities, to_column, to_values
from ..answers.tables import is_table, open_frame
from ..errors import InputError, listing, plural, shorten
from ..kernels import NEARLY_ZERO, Floats, Truths
from .base import Fused, FusedLabels, Kind, list_given
from .tags import (
    ONE_HOT,
    SEPARATOR,
    SEPARATOR_KEY,
    YES,
    KnownTags,
    Tags,
    encode_sets,
    encode_tags,
    list_column,
    open_known_sets,
    spread_sets,
)


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
    in_order = False
    empty_is_answer = True

    @classmethod
    def to_answers(cls, brought: Tags) -> tuple[TagsKind, Answers]:
        """The answers yes and no about each tag of each item."""
        known = brought.tags, brought.separator, brought.form, brought.origin, brought.columns.get("label")
        return cls(*known), brought.to_responses()

    def reading(self) -> dict[str, object]:
        """That tables hold sets, and what stands between tags."""
        return {"separator": self.separator, "format": ONE_HOT if self.form == ONE_HOT else None}

    def adapt(self, brought: Tags) -> Tags:
        """Further sets with the tags of the fit."""
        return brought.with_tags(self.tags)

    @classmethod
    def describe(cls, brought: Tags) -> str:
        """How many sets there are, by whom and of what."""
        sets = f"{plural(brought.n_sets, 'set')} of {plural(brought.n_tags, 'tag')}"
        return f"{sets} by {plural(brought.n_workers, 'worker')} about {plural(brought.n_items, 'item')}"

    @classmethod
    def take_known(
        cls, brought: Tags, gold: object, open_known: Callable[[object, object], object]
    ) -> tuple[Tags, object]:
        """The tags, and known sets, opened where they are at a path."""
        return brought, [open_known(each, brought) for each in list_given(gold)]

    def spread_known(self, gold: object, names: Mapping[str, str]) -> object:
        """What known sets say of each tag of their items; several may be given, or single tags with yes or no."""
        if gold is None or gold is False:
            return gold
        every: list[object] = []
        for each in list_given(gold):
            if isinstance(each, Tags):
                known = each.with_tags(self.tags)
                every.append(spread_sets(known.items[known.gold_items], known.gold))
            elif isinstance(each, KnownTags):
                every.append(each)
            elif is_table(each) and {"item", "tag", "label"} <= set(
                each if isinstance(each, Mapping) else open_frame(each).names
            ):
                table = open_frame(each, "gold")
                rows = table.keep(find_present(table.read("label")))  # without a label they tell nothing
                code = encode_tags(rows.read("tag"), self.tags)
                every.append({"sequence": rows.read("item"), "position": code, "label": rows.read("label")})
            else:
                items, sets = open_known_sets(each, self.separator, names)
                every.append(spread_sets(to_values(items), encode_sets(sets, self.tags)[1]))
        return every

    def list_parts(self) -> Values:
        """The tags."""
        return self.tags

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
        """How many things have tags, and how many sets they were given."""
        n_tags = max(len(self.tags), 1)
        return answers.n_items // n_tags, answers.n_responses // n_tags

    def summarise(self, answers: Answers, fused: Fused, is_sure: bool) -> tuple[dict[str, Any], str]:
        """How many sets workers gave, and how many tags the fused ones have, with their mean confidence."""
        said, confidence, _ = find_sets(self, fused.labels)
        made: dict[str, Any] = {
            "given": self.size(answers)[1],
            "tags": self.tags.tolist(),
            "fused": len(said),
            "mean_size": float(said.sum()) / max(len(said), 1),
            "mean_confidence": float(confidence.sum()) / max(len(said), 1),
        }
        text = f"{plural(len(said), 'set')} from {made['given']:,} that workers gave, "
        text += f"with {made['mean_size']:.1f} tags on average"
        sure = f", and a mean confidence of {made['mean_confidence']:.1%}" if is_sure else ""
        return {"tags": made}, f"{text}{sure}."

    def name_keys(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        """The columns of a table in which each row is about one tag of an item."""
        if "position" not in columns:
            return dict(columns)
        tag = to_column(self.tags[to_values(columns["position"])])
        named = {"item": columns["sequence"], "tag": tag}
        return named | {name: column for name, column in columns.items() if name not in ("sequence", "position")}

    def name_position(self, position: Any) -> object:
        """The tag of this number."""
        return self.tags[[position]].tolist()[0]

    def find_key(self, item: object) -> object:
        """The key of a tag of an item, which are named together."""
        if not isinstance(item, (tuple, list)) or len(item) != 2:
            raise InputError(
                f"Name an item and a tag, such as (item, {self.tags.tolist()[0]!r}). Got {shorten(item)} instead."
            )
        code = int(lookup(self.tags, to_column([item[1]]))[0])
        if code < 0:
            raise InputError(f"There is no tag {shorten(item[1])}.", f"There are {listing(self.tags.tolist())}.")
        return item[0], code

    def mark(self, labels: pa.Table) -> pa.Table:
        """The table of sets, which says what stands between tags where these are text."""
        at = labels.column_names.index("labels")
        marked = labels.schema.field(at).with_metadata({SEPARATOR_KEY: self.separator or SEPARATOR})
        return labels.set_column(at, marked, labels.column(at))

    def to_text(self, labels: pa.Table) -> pa.Table:
        """The table of sets with these as text."""
        sets = labels.column("labels").cast(pa.list_(pa.string()))
        text = pc.binary_join(sets, self.separator or SEPARATOR)
        return labels.set_column(labels.column_names.index("labels"), "label", text)

    def arrange(self, labels: FusedLabels, shown: bool, undecided: float | None) -> dict[str, Column]:
        """The columns of the table of fused sets."""
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


def find_sets(kind: TagsKind, labels: FusedLabels) -> tuple[Truths, Floats, Floats]:
    """Which tags each fused set has, the confidence of each set, and the probability of each of its tags.

    The confidence of a set is the product of those of its tags, given and not given.
    """
    n_tags = len(kind.tags)
    yes = int(lookup(labels.classes, to_column([YES]))[0])
    said = (labels.codes == yes).reshape(-1, n_tags)
    posterior = labels.posterior[:, yes].reshape(-1, n_tags)
    return said, labels.confidence.reshape(-1, n_tags).prod(axis=1), posterior


def report_tags(kind: TagsKind, shares: Floats, counts: Floats) -> dict[str, Column]:
    """The columns of a table of tags; counts are (M, T, L, K)."""
    total = counts.sum(axis=0)
    given = total[:, 1].sum(axis=1) / total.sum(axis=(1, 2))
    shares_of = total / np.maximum(total.sum(axis=-2, keepdims=True), NEARLY_ZERO)
    misses, alarms = shares_of[..., 0, 1], shares_of[..., 1, 0]
    figures = {"share": shares, "given": given, "misses": misses, "false_alarms": alarms}
    return {"tag": to_column(kind.tags)} | {name: to_column(values) for name, values in figures.items()}


def report_workers_by_tag(kind: TagsKind, workers: Values, counts: Floats, confusion: Floats) -> dict[str, Column]:
    """The columns of a table of workers and tags; counts are (M, T, L, K), confusion (M, T, K, L)."""
    n_workers, n_tags = counts.shape[:2]
    return {
        "worker": to_column(np.repeat(workers, n_tags)),
        "tag": to_column(np.tile(kind.tags, n_workers)),
        "answers": to_column(np.rint(counts.sum(axis=(2, 3))).astype(np.int64).ravel()),
        "misses": to_column(np.ascontiguousarray(confusion[:, :, 1, 0]).ravel()),
        "false_alarms": to_column(np.ascontiguousarray(confusion[:, :, 0, 1]).ravel()),
    }
