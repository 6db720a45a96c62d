"""Spans as a kind: the items are the tokens of texts, and tags of tokens become spans again."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..answers.answers import Answers
from ..answers.columns import (
    Column,
    Indices,
    Values,
    encode_in_order_of_appearance,
    encode_sorted,
    lookup,
    objects,
    spell_surrogates,
    to_column,
)
from ..answers.tagging import LETTERS, are_tags, find_run_probabilities, find_runs, follow_alone, split_tag
from ..errors import InputError, NotFittedError, Python, Sentence, StoreError, listing, plural, warn_of
from ..kernels import freeze
from .base import FUSED, AnyKind, Fused, Kind, list_given
from .spans import Marks, Spans, find_span_columns, read_sole_spans, sort_marks
from .tokens import Tokens


@dataclass(frozen=True, eq=False)
class SpansKind(Kind[Spans]):
    """The texts whose tokens the items are.

    Attributes
    ----------
    documents : ndarray
        Ids of all documents, those without a reader included.
    texts : list of str or None
        Their texts; None if they were not saved.
    offsets : int64 array (D + 1,)
        Document d owns the tokens offsets[d]:offsets[d + 1].
    start, end : int64 array
        Where each token is in its text.
    fused : int64 array
        The document of each sequence; its tokens are the items.
    origin : tuple of str or None
        Path and format of the file.
    """

    documents: Values
    texts: list[str] | None
    offsets: Indices
    start: Indices
    end: Indices
    fused: Indices
    origin: tuple[str, str] | None

    name = "spans"
    brought = Spans
    title = "spans marked in texts"
    layouts: ClassVar[Mapping[str, Callable[[Spans], object]]] = {"long": Spans.to_frame}
    item = "word"
    argument = "spans"
    results = "spans"
    no_update = (
        "Spans of texts cannot be added to a fit.",
        "Fit again, to the spans of all workers, with all known spans.",
    )

    @classmethod
    def to_answers(cls, brought: Spans) -> tuple[SpansKind, Answers]:
        """The tags that workers gave to the tokens."""
        answers, tokens = brought.to_responses(), brought.tokenised
        places = (freeze(tokens.offsets), freeze(tokens.start), freeze(tokens.end))
        return cls(brought.documents, brought.texts, *places, brought.fused_documents, brought.origin), answers

    @classmethod
    def describe(cls, brought: Spans) -> str:
        """How many spans there are, by whom and where."""
        return (
            f"{plural(len(brought.marks.start), 'span')} by {plural(len(brought.workers), 'worker')} in "
            f"{plural(len(brought.documents), 'document')}"
        )

    @classmethod
    def take_known(
        cls, brought: Spans, gold: object, open_known: Callable[[object, object], object]
    ) -> tuple[Spans, object]:
        """The spans with known ones, and the tags that these make.

        Known spans cut tokens, so that they become a part of the spans. Those that the spans come with are then not
        used.
        """
        given = [open_known(each, brought) for each in list_given(gold)]
        for number, each in enumerate(given):
            if not isinstance(each, Spans) and find_span_columns(each) is not None:
                given[number] = read_sole_spans(each, "gold", brought.documents, brought.texts)
        known = [each for each in given if isinstance(each, Spans)]
        if not known:
            return brought, given
        spans = reduce(Spans.with_gold, known, brought.without_gold())
        others, tags = [each for each in given if not isinstance(each, Spans)], spans.known_tags()
        return spans, others if tags is None else [tags, *others]

    def choose_known(self, brought: Spans, answers: Answers) -> object:  # noqa: ARG002
        """The tags of documents whose spans are known, if those of others are not."""
        tags = brought.known_tags()
        if tags is None:
            return None
        read = np.unique(brought.readings[:, 0])
        n_known = int(np.isin(read, brought.gold_documents).sum())
        leave = Sentence("To leave them out, use {ignore_gold}.", ignore_gold=Python("gold=False"))
        if n_known == len(read):
            warn_of(
                "The spans of every document are known. They are not used: there would be nothing to fuse.",
                "Compare the fused spans with them by evaluate.",
            )
            return None
        known = f"{n_known:,} of {plural(len(read), 'document')}"
        warn_of(f"The spans of {known} are known. They are used as gold.", leave)
        return tags

    @classmethod
    def list_losses(cls, brought: Spans, source: str, form: str, carried: Container[str]) -> list[str]:
        """What a format of spans, or a table, cannot hold."""
        has = {
            "confidence": "the confidence of spans" if brought.marks.confidence is not None else "",
            "tokens": "the tokens of the tool" if brought.tokens is not None else "",
            "gold": f"the known spans of {plural(len(brought.gold_documents), 'document')}" if brought.gold else "",
            "white space": "white space of the texts, where it is more than one blank between tokens",
        }
        lost = [words for name, words in has.items() if words and name not in carried]
        if form == source:
            return lost
        if form in cls.layouts:
            marked = np.unique(np.stack([brought.marks.document, brought.marks.worker], axis=1), axis=0)
            n_empty = len(brought.readings) - len(marked)
            lost += ["the texts"] + ([f"{plural(n_empty, 'annotation')} without spans"] if n_empty else [])
        if brought.questions:
            lost.append(f"answers about whole texts ({listing(brought.questions)})")
        return [*lost, f"all else that {source} files may hold, such as metadata, relations and notes"]

    def to_saved(self, texts: bool) -> SpansKind:
        """The same, without texts if they are not wanted."""
        if not texts:
            return replace(self, texts=None)
        if self.texts is not None and isinstance(to_column(self.texts), np.ndarray):
            raise StoreError(
                "Cannot save the texts: there is half a character (a lone surrogate) in them, which no encoding knows.",
                "Save the model with texts=False.",
            )
        return self

    def check_items(self, keys: Mapping[str, Column] | None) -> None:
        """Raise an error unless the tokens of fused documents are the items, and all tokens are within their texts."""
        offsets, start, end, fused = self.offsets, self.start, self.end, self.fused
        sizes, n_documents = np.diff(offsets), len(self.documents)
        lengths = np.array([len(text) for text in self.texts or [""] * n_documents], np.int64)
        is_cut = len(sizes) == len(lengths) == n_documents and offsets[0] == 0 and offsets[-1] == len(start) == len(end)
        if not is_cut or (sizes < 0).any() or (end <= start).any() or (np.diff(fused) <= 0).any():
            raise ValueError("the tokens are not those of the documents")
        if self.texts is not None and (end > np.repeat(lengths, sizes)).any():
            raise ValueError("the tokens are not those of the texts")
        if keys is None or "sequence" not in keys or (fused >= n_documents).any():
            raise ValueError("the documents are not those of the sequences")
        if not np.array_equal(sizes[fused], np.bincount(encode_in_order_of_appearance(keys["sequence"])[0])):
            raise ValueError("the tokens are not the items")
        for array in (offsets, start, end, fused):
            freeze(array)

    @cached_property
    def bounds(self) -> Indices:
        """Sequence s owns the items bounds[s]:bounds[s + 1]."""
        return np.concatenate([[0], np.cumsum(np.diff(self.offsets)[self.fused])])

    def show(self, items: Indices) -> list[str] | None:
        """The words that some items are."""
        if self.texts is None:
            return None
        number = np.searchsorted(self.bounds, items, side="right") - 1
        document = self.fused[number]
        token = self.offsets[document] + items - self.bounds[number]
        places = zip(document.tolist(), self.start[token].tolist(), self.end[token].tolist(), strict=True)
        return [spell_surrogates(self.texts[d][start:end]) for d, start, end in places]

    def read(self, sequence: int) -> tuple[str, Indices, Indices] | None:
        """A text, and where its tokens are."""
        if self.texts is None:
            return None
        document = int(self.fused[sequence])
        tokens = slice(int(self.offsets[document]), int(self.offsets[document + 1]))
        return self.texts[document], self.start[tokens], self.end[tokens]

    def summarise(self, answers: Answers, fused: Fused, is_sure: bool) -> tuple[dict[str, Any], str]:
        """How many spans were marked, and how many there are now, with their mean confidence."""
        confidence = np.asarray(tabulate_spans(self, fused)["confidence"])
        begins = np.array([str(label).startswith("B") for label in answers.labels.tolist()])
        made: dict[str, Any] = {
            "marked": int(begins[answers.label].sum()),
            "documents": len(self.documents),
            "fused": len(confidence),
            "mean_confidence": float(confidence.mean()) if len(confidence) else None,
        }
        text = f"{plural(made['fused'], 'span')} from {made['marked']:,} that workers marked in "
        text += plural(made["documents"], "document")
        sure = f", with a mean confidence of {made['mean_confidence']:.1%}" if is_sure and len(confidence) else ""
        return {"spans": made}, f"{text}{sure}."

    def tabulate(self, fused: Fused) -> dict[str, Column]:
        """The columns of the table of fused spans."""
        return tabulate_spans(self, fused)

    def from_labels(self, fused: Fused, labels: object) -> Spans:  # noqa: ARG002
        """The fused spans with their texts."""
        return collect_spans(self, fused)


def tabulate_spans(kind: AnyKind, fused: Fused) -> dict[str, Column]:
    """The columns of a table of the spans among fused labels, in order; see `Model.to_spans`."""
    labels = fused.labels
    if "sequence" not in labels.keys:
        raise InputError("Only labels of sequences are spans, and these items are not in any.")
    codes, ids = encode_in_order_of_appearance(labels.keys["sequence"])
    sequence = codes.astype(np.int64)
    if not are_tags(labels.classes):
        raise InputError(
            f"Only tags such as B-PER, I-PER and O are spans. These labels are {listing(labels.classes.tolist())}."
        )
    runs = find_runs(labels.codes, labels.classes, sequence)
    confidence = fused.span_confidence
    if confidence is None:  # tokens are independent of each other
        confidence = find_run_probabilities(
            follow_alone(labels.posterior, labels.codes, labels.classes, sequence), runs
        )
    kinds = [(split_tag(name, LETTERS) or ("", ""))[1] for name in labels.classes.tolist()]
    types = [kinds[code] for code in labels.codes[runs.first].tolist()]
    start, end = runs.first - runs.offset, runs.stop - runs.offset
    texts: list[str | None] = [None] * len(types)
    if isinstance(kind, SpansKind):
        document = kind.fused[runs.sequence]
        base = kind.offsets[document]
        start, end = kind.start[base + start], kind.end[base + end - 1]
        if kind.texts is not None:
            places = zip(document.tolist(), start.tolist(), end.tolist(), strict=True)
            texts = [kind.texts[number][first:last] for number, first, last in places]
    nothing = pa.nulls(len(types), pa.string())
    return {
        "document": to_column(ids[runs.sequence]),
        "start": to_column(start),
        "end": to_column(end),
        "label": to_column(types) if types else nothing,
        "text": to_column(texts) if any(texts) else nothing,
        "confidence": to_column(confidence),
    }


def collect_spans(kind: AnyKind, fused: Fused) -> Spans:
    """The fused spans with their texts; see `Model.to_span_set`."""
    if not isinstance(kind, SpansKind) or kind.texts is None:
        of_spans = isinstance(kind, SpansKind)
        lack = "was saved without texts" if of_spans else "was fitted to tags"
        raise NotFittedError(
            f"This {fused.model} {lack}, and has no texts. to_spans() gives a table without them.",
            "Save it with texts=True." if of_spans else "Fit it to a Spans.",
        )
    table = tabulate_spans(kind, fused)
    start, end, confidence = (np.asarray(table[name]) for name in ("start", "end", "confidence"))
    codes, labels = encode_sorted(table["label"])
    nobody = np.zeros(len(start), np.int64)
    marks = Marks(lookup(kind.documents, table["document"]), nobody, start, end, codes.astype(np.int64), confidence)
    return Spans(
        kind.documents,
        kind.texts,
        objects([FUSED]),
        labels,
        sort_marks(marks),
        np.stack([kind.fused, np.zeros(len(kind.fused), np.int64)], axis=1),
        Tokens(kind.offsets, kind.start, kind.end),
        origin=kind.origin,
        backend=fused.backend,
    )
