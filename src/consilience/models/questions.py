"""Several questions to the same workers: a fitted model for each, and what is said of all of them together."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self, cast
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from ..answers.answers import Answers
from ..answers.columns import Column, find_present, lookup, to_column, to_values
from ..answers.joining import check_join_policy, drop_workers, join_responses
from ..answers.previews import build_report, round_figures
from ..answers.tables import Table, build_frame, is_table, open_frame
from ..arguments import check_truth, to_path
from ..engines import open_engine
from ..errors import InputError, ParameterError, StoreError, listing
from ..formats.reading import open_path
from ..formats.sources import open_table
from ..formats.writing import replace_file, write_table
from ..inference.estimator import renew
from ..inference.sharing import Together
from ..inference.sources import Source
from ..kernels import Floats
from ..kinds.base import AnyKind
from ..kinds.tags import TagsKind
from ..results.explanations import Explanations
from ..results.label_files import is_one_file
from .base import open_answers
from .fitted import FittedModel, check_answers, join_gold, read_batch, read_like
from .fusing import Posed, fit_posed
from .question_tables import (
    interleave,
    join_tags,
    keep_answered,
    lengthen,
    merge_rows,
    plain_model,
    report_workers,
    table_of,
    to_columns,
    widen,
)


class Shared(NamedTuple):
    """What was found of all questions together.

    Attributes
    ----------
    own : float
        The probability that a question calls for a skill of its own. At 1 questions are as separate fits.
    easiness : dict
        How easy each question is, compared with the others; 1 is their geometric mean.
    trace : array
        The objective of all questions together; it never falls.
    """

    own: float
    easiness: dict[str, float]
    trace: Floats

    @classmethod
    def of(cls, together: Together | None, names: Sequence[str]) -> Shared | None:
        """What is told of a joint fit of some questions; None if there was none."""
        if together is None:
            return None
        return cls(together.own, dict(zip(names, together.easiness.tolist(), strict=True)), together.trace)

    def describe(self) -> str:
        """Say in words whether skills carry over."""
        if self.own > MOSTLY_OWN:
            return (
                f"Skills hardly carry over from one question to another: with probability {self.own:.2f} a worker has "
                "one of their own. So the questions are fused nearly as if each were alone."
            )
        if self.own > MOSTLY_SAME:
            return (
                f"Skills carry over in part from one question to another: with probability {1 - self.own:.2f} a worker "
                "has the same in a question as in all. So each question says a little about the others."
            )
        return (
            f"Skills carry over from one question to another: with probability {1 - self.own:.2f} a worker has the "
            "same in a question as in all. So what is known of a worker is known by all questions."
        )


FORMAT, VERSION, HEADER = "consilience-questions", 1, "questions.json"
# What a damaged archive raises; a RuntimeError where it calls for a password, or for another version.
UNREADABLE = (OSError, EOFError, ValueError, OverflowError, RuntimeError, zipfile.BadZipFile)
# The largest header of a file that may come from anywhere.
LARGEST_HEADER = 1 << 20
# From the first probability on questions count as separate, and up to the second as one.
MOSTLY_OWN, MOSTLY_SAME = 0.8, 0.2


class Questions(Mapping[str, FittedModel]):
    """Answers to several questions by the same workers: a mapping from each question to its fitted model.

    `consilience.fuse` returns one if `label` names several columns. Workers are known by their answers to all
    questions, as far as skills carry over.

    Attributes
    ----------
    shared_ : Shared or None
        Whether skills carry over: `own`, the probability that a question calls for a skill of its own; `easiness` of
        the questions; `trace` of the joint fit. None if nothing is shared.

    Examples
    --------
    >>> import consilience as cs
    >>> spam, tone = (cs.simulate.independent(100, n_workers=5, seed=seed).responses for seed in (1, 2))
    >>> answers = {
    ...     "item": spam.item_of_answer(),
    ...     "worker": spam.worker,
    ...     "spam": spam.labels[spam.label],
    ...     "tone": tone.labels[tone.label],
    ... }
    >>> fused = cs.fuse(answers, label=["spam", "tone"])
    >>> list(fused), fused["spam"].labels_.shape
    (['spam', 'tone'], (100,))
    >>> fused.to_frame(wide=True).column_names
    ['item', 'spam', 'spam_confidence', 'tone', 'tone_confidence']
    """

    def __init__(self, models: Mapping[str, FittedModel], shared: Shared | None = None) -> None:
        self._models = dict(models)
        self.shared_ = shared

    def __getitem__(self, question: str) -> FittedModel:
        if question not in self._models:
            raise KeyError(f"There is no question {question!r}. There are {listing(self._models, len(self._models))}.")
        return self._models[question]

    def __iter__(self) -> Iterator[str]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)

    def __repr__(self) -> str:
        lines = [f"    {name!r}: {model!r}" for name, model in self._models.items()]
        return "\n".join([f"Questions({len(self)}):", *lines])

    @property
    def backend(self) -> str:
        """The library that tables are of."""
        return next(iter(self.values())).result_.backend

    def explain_sharing(self) -> str:
        """Say in words whether skills carry over from one question to another."""
        return "The questions were fused each on its own." if self.shared_ is None else self.shared_.describe()

    def to_frame(self, *, wide: bool = False, undecided: float | None = None) -> Any:
        """Return the labels of all questions as one table.

        Parameters
        ----------
        wide : bool, default False
            Whether there is one row per item, with columns <question> and <question>_confidence for each question. By
            default there is a row for each item and question: item (or sequence and position), question, label,
            confidence. If all questions have the same classes, the probability of each follows.
        undecided : float, optional
            As for `DawidSkene.to_frame`: labels below this confidence are left open.
        """
        return build_frame(self._list_labels(wide, undecided), self.backend)

    def _list_labels(self, wide: bool, undecided: float | None) -> dict[str, Column]:
        check_truth("wide", "to_frame", wide)
        tables = {name: table_of(model, undecided) for name, model in self.items()}
        return widen(tables) if wide else lengthen(tables)

    def worker_report(self) -> Any:
        """Return a table with one row per worker, over all questions; each model has one of its own.

        Columns: worker; answers, to all questions; accuracy, the mean over answers; chance, the probability that the
        worker answers all questions without looking; remarks; and accuracy(<question>) for each question.
        """
        return build_report(round_figures(report_workers(self)), self.backend)

    def write(self, path: str | os.PathLike[str], *, wide: bool = False, undecided: float | None = None) -> None:
        """Write the labels of all questions to files.

        Parameters
        ----------
        path : str or path
            A folder, in which each question has one of its own called question=<name>; or the name of one file, with
            the table that `to_frame` returns.
        wide, undecided
            As for `to_frame`.
        """
        target = to_path("path", "write", path)
        if is_one_file(target):
            write_table(build_frame(self._list_labels(wide, undecided), "pyarrow"), target)
            return
        os.makedirs(target, exist_ok=True)
        for name, model in self.items():
            model.write(os.path.join(target, f"question={quote(name, safe='')}", ""), undecided=undecided)

    def predict(self, responses: object, *, as_frame: bool = False) -> Any:
        """Return the labels of other items answered by the same workers, of each question that has answers.

        Parameters
        ----------
        responses : table or path
            Other answers, in columns of the same names. Questions that have no column there, or no answers, are left
            out.
        as_frame : bool, default False
            Whether to return one table, as `to_frame` does.

        Returns
        -------
        dict or table
            From questions to arrays of labels.
        """
        check_truth("as_frame", "predict", as_frame)
        read = self.read(responses)
        if not as_frame:
            return {name: self[name].predict(answers) for name, answers in read.items()}
        shown = {name: replace(answers, backend="pyarrow") for name, answers in read.items()}
        tables = {
            name: join_tags(self[name].predict(answers, as_frame=True), self[name].result_.task)
            for name, answers in shown.items()
        }
        return build_frame(lengthen(tables), next(iter(read.values())).backend)

    def predict_proba(self, responses: object) -> dict[str, Floats]:
        """Return class probabilities of other items, for each question that has answers; see `predict`."""
        return {name: self[name].predict_proba(answers) for name, answers in self.read(responses).items()}

    def read(self, responses: object) -> dict[str, Answers]:
        """Return other answers to each question that has some."""
        read = {}
        for name, model in self.items():
            old, task = model.result_.given.answers, model.result_.task
            label = name if old is None else old.columns.get("label", name)
            rows: Any = open_rows(responses, label, task)
            if label in rows.names and rows.n_rows:
                if old is None:
                    read[name] = model._read(open_answers(rows, **task.reading(), label=label))[1]
                else:
                    read[name] = read_like(model, rows)
        if not read:
            raise InputError(f"There are no answers to {listing(self, len(self))}.", "Name columns as at the fit.")
        return read

    def next_items(self, n: int = 50, *, at_random: bool = False) -> object:
        """Return a table of what a person should label next: items, each with one question.

        Columns: those of `DawidSkene.next_items`, and question. Rows of all questions are ordered by entropy. Add a
        column label with what the person says, and give the table to `update` or `fuse` as `gold`.
        """
        tables = {name: plain_model(model).next_items(n, at_random=at_random) for name, model in self.items()}
        rows = merge_rows(tables, "fused_label", "entropy")
        drawn = rows.column("random").to_numpy().astype(bool)
        pattern = next(iter(tables.values())).column("random").to_pylist()
        order = interleave(np.flatnonzero(~drawn).tolist(), np.flatnonzero(drawn).tolist(), pattern)[:n]
        return build_frame(to_columns(rows.take(pa.array(order, pa.int64()))), self.backend)

    def next_questions(self, n: int = 50, workers: Sequence[object] | None = None) -> object:
        """Return a table of whom to ask what next: item, question, worker and gain, the largest gain first.

        Parameters
        ----------
        n, workers
            As for `DawidSkene.next_questions`.
        """
        asked = {name: plain_model(model).next_questions(n, workers) for name, model in self.items()}
        return build_frame(to_columns(merge_rows(asked, "worker", "gain").slice(0, n)), self.backend)

    def explain(self, item: object) -> Explanations:
        """Return why an item has its labels: an explanation for each question that has the item.

        Parameters
        ----------
        item : id, or pair of sequence and position
            The item. Of a question of tags, each tag has an explanation.
        """
        found, refused = Explanations(), None
        for name, model in self.items():
            try:
                why = model.explain(item)
                found |= {f"{name}: {tag}": each for tag, each in why.items()} if isinstance(why, dict) else {name: why}
            except InputError as error:
                refused = error
        if refused is not None and not found:
            raise refused
        return found

    def save(self, path: str | os.PathLike[str], *, answers: bool = True, texts: bool = True) -> Path:
        """Write all questions to one file, without pickle; `consilience.load` reads it.

        Parameters
        ----------
        path, answers, texts
            As for `DawidSkene.save`.
        """
        target = to_path("path", "save", path)
        shared = None if self.shared_ is None else self.shared_._replace(trace=self.shared_.trace.tolist())._asdict()
        header = {"format": FORMAT, "version": VERSION, "questions": list(self), "shared": shared}
        with (
            tempfile.TemporaryDirectory() as folder,
            replace_file(target) as beside,
            zipfile.ZipFile(beside, "w", zipfile.ZIP_STORED) as archive,
        ):
            archive.writestr(zipfile.ZipInfo(HEADER), json.dumps(header, indent=1))
            for number, model in enumerate(self.values()):
                saved = model.save(Path(folder, "model"), answers=answers, texts=texts)
                with archive.open(name_member(number), "w", force_zip64=True) as member, saved.open("rb") as source:
                    shutil.copyfileobj(source, member)
        return Path(target)

    def update(
        self, responses: object = None, gold: object = None, engine: object = None, *, duplicates: str = "error"
    ) -> Self:
        """Add answers and known labels, and fuse all questions again.

        Parameters
        ----------
        responses : table or path, optional
            New answers, in columns of the same names. A cell without an answer adds nothing to its question.
        gold : mapping, table or path, optional
            As for `consilience.fuse`: {question: known labels}, or a table with a column for each question.
        engine, duplicates
            As for `DawidSkene.update`.
        """
        if responses is None and gold is None:
            raise ParameterError("There is nothing to add.", "Give new answers or known labels.")
        check_join_policy(duplicates)
        known, posed = split_gold(gold, list(self)), {}
        for name, model in self.items():
            before = model.result_
            old = check_answers(before)
            rows = None if responses is None else open_rows(responses, old.columns.get("label", name), before.task)
            new, retracted, _ = read_batch(
                rows if rows is not None and rows.n_rows else None, old, duplicates, before.task
            )
            if before.blocked is not None:
                blocked = lookup(new.workers, to_column(before.blocked))
                new = drop_workers(new, blocked[blocked >= 0])
            joined = join_responses(old, new, duplicates, retracted)
            r = model._prepare(joined.responses)
            labels = join_gold(before, joined, r, new.gold if known.get(name) is None else known[name])[0]
            beside = {each: getattr(before, each) for each in ("scale_check", "soft_check", "blocked", "n_blocked")}
            posed[name] = Posed(renew(model), Source(r, labels, task=before.task), None, beside)
        with open_engine(engine) as opened:
            found, together, names = fit_posed(posed, opened, next(iter(self.values())).result_.source_kind)
        self._models, self.shared_ = found, Shared.of(together, names)
        return self


def name_member(number: int) -> str:
    """What the file of a question is called in an archive."""
    return f"models/{number:04d}"


def read_questions(path: str, load: Callable[[str], object]) -> Questions | None:
    """The questions in a file; None if it holds something else. `load` reads the file of a model.

    Nothing in it is compressed, so that no member is larger than the file.
    """
    try:
        archive = zipfile.ZipFile(path)
    except UNREADABLE:
        return None  # whoever reads a model says what is wrong
    with archive, tempfile.TemporaryDirectory() as folder:
        members = archive.infolist()
        if not members or members[0].filename != HEADER:
            return None
        try:
            if members[0].file_size > LARGEST_HEADER or any(each.compress_type for each in members):
                raise ValueError("not as it is written")
            header = json.loads(archive.read(HEADER))
            names: list[str] = header["questions"]
            expected = [HEADER, *map(name_member, range(len(names)))]
            if (
                header["format"] != FORMAT
                or header["version"] != VERSION
                or not all(type(each) is str for each in names)
            ):
                raise ValueError("another format")
            if not 0 < len(set(names)) == len(names) or archive.namelist() != expected:
                raise ValueError("other members")
            models = {name: load(archive.extract(each, folder)) for name, each in zip(names, members[1:], strict=True)}
            found = [each.result_ for each in models.values() if isinstance(each, FittedModel)]
            # Sets of tags are about items, each with all its tags.
            items = {tuple(each.labels.keys) for each in found if not isinstance(each.task, TagsKind)}
            if len(found) < len(names) or len(items) > 1:
                raise ValueError("not models of labels, or of other items")
            if header["shared"] is None:
                return Questions(cast(Any, models))
            own, easiness, trace = (header["shared"][name] for name in Shared._fields)
            shared = Shared(
                float(own), {str(name): float(each) for name, each in easiness.items()}, np.array(trace, float)
            )
            if not (0 <= shared.own <= 1 and set(easiness) <= set(names) and np.isfinite(shared.trace).all()):
                raise ValueError("not what is learned")
            return Questions(cast(Any, models), shared)
        except StoreError:
            raise
        except (AttributeError, KeyError, TypeError, *UNREADABLE) as error:
            raise StoreError(f"{path} is damaged, or was not written by this package.", "Save it again.") from error


def split_gold(gold: object, names: Sequence[str]) -> dict[str, Any]:
    """Return the known labels of each question that has some.

    They are a mapping from questions, or a table, or a file, with a column for each question; or one with columns
    question and label, such as `Questions.to_frame` returns.
    """
    if gold is None or gold is False:
        return dict.fromkeys(names, gold) if gold is False else {}
    if isinstance(gold, Mapping) and set(gold) <= set(names) and not any(map(is_plain, gold.values())):
        return dict(gold)
    if isinstance(gold, (list, tuple)) and len(gold) == 1:
        gold = gold[0]
    opened = open_path(gold) if isinstance(gold, (str, os.PathLike)) else gold
    if is_table(opened):
        table = open_frame(opened, "gold")
        there, in_rows = [name for name in names if name in table.names], "question" in table.names
        asked = np.array(list(map(str, to_values(table.read("question")).tolist())) if in_rows else [], object)
        # A question may itself be called question, or label.
        if in_rows and (not there or ("label" in table.names and set(asked) & set(names))):
            places = {name: np.flatnonzero(asked == name) for name in names}
            said = {"known label": "label" if "label" in table.names else None}
            return {name: replace(table.keep(each), preferred=said) for name, each in places.items() if len(each)}
        if there:
            rows = {name: table.keep(find_present(table.read(name))) for name in there}
            return {name: replace(each, preferred={"known label": name}) for name, each in rows.items()}
    raise InputError(
        f"It is not clear to which questions the known labels belong. The questions are {listing(names, len(names))}.",
        "Give {question: known labels}, or a table with a column for each question.",
        keyword="gold",
    )


def is_plain(value: object) -> bool:
    """Tell whether a value is a label, and not known labels of a question."""
    return (
        value is None
        or isinstance(value, (bool, int, float, np.generic))
        or (isinstance(value, str) and not os.path.exists(value))
    )


def open_rows(source: object, label: str, task: AnyKind) -> Table:
    """The rows of a table, or of the one at a path, in which a question has an answer."""
    table = open_table(os.fspath(source))[0] if isinstance(source, (str, os.PathLike)) else open_frame(source)
    return keep_answered(table, label, isinstance(task, TagsKind))
