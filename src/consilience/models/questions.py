"""Several questions to the same workers: a fitted model for each, and what is said of all of them together."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from ..answers.answers import Answers
from ..answers.columns import Column, Values, find_present, is_missing, lookup, to_column, to_values
from ..answers.graph import Graph
from ..answers.joining import check_join_policy, drop_workers, join_responses
from ..answers.previews import build_report, round_figures
from ..answers.tables import build_frame, is_table, open_frame
from ..arguments import check_truth, to_path
from ..checks.register import judge
from ..engines import open_engine
from ..engines.base import Engine
from ..errors import InputError, ParameterError, StoreError, about, first_line, listing
from ..formats.reading import open_path
from ..formats.sources import open_table
from ..formats.writing import replace_file, write_table
from ..inference.sharing import Together
from ..inference.sources import Source
from ..kernels import Floats
from ..kinds.base import AnyKind
from ..kinds.tag_task import TagsKind
from ..results.comparison import ScaleCheck
from ..results.explanations import Explanations
from ..results.fitting import fit_questions
from ..results.label_files import is_one_file
from .base import open_answers
from .fitted import FittedModel, check_answers, join_gold, read_batch, read_like
from .question_files import FORMAT, HEADER, UNREADABLE, VERSION, name_member, read_header
from .question_tables import (
    interleave,
    join_tags,
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


# From the first probability on questions count as separate, and up to the second as one.
MOSTLY_OWN, MOSTLY_SAME = 0.8, 0.2


class Posed(NamedTuple):
    """A question before it is fitted."""

    name: str
    model: FittedModel
    source: Source
    graph: Graph | None
    scale: ScaleCheck | None = None
    blocked: Values | None = None
    n_blocked: tuple[int, int] | None = None


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
        found = {name: read_question(model, name, responses) for name, model in self.items()}
        read = {name: answers for name, answers in found.items() if answers is not None}
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
        with tempfile.TemporaryDirectory() as folder:
            saved = [
                each.save(Path(folder, str(number)), answers=answers, texts=texts)
                for number, each in enumerate(self.values())
            ]
            with replace_file(target) as beside, zipfile.ZipFile(beside, "w", zipfile.ZIP_STORED) as archive:
                with archive.open(HEADER, "w") as member:
                    member.write(json.dumps(header, indent=1).encode())
                for number, file in enumerate(saved):
                    with archive.open(name_member(number), "w", force_zip64=True) as member, file.open("rb") as source:
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
        known = split_gold(gold, list(self))
        posed = [self._join(name, responses, known.get(name), duplicates) for name in self]
        with open_engine(engine) as opened:
            found = fit_posed(posed, opened, next(iter(self.values())).result_.source_kind)
        self._models, self.shared_ = found._models, found.shared_
        return self

    def _join(self, name: str, responses: object, gold: object, duplicates: str) -> Posed:
        model = self[name]
        before, recipe = model.result_, model.recipe()
        old = check_answers(before)
        rows = answered_rows(responses, old.columns.get("label", name), before.task)
        added = None if rows is None or not rows.n_rows else rows
        new, retracted, _ = read_batch(added, old, duplicates, before.task)
        if before.blocked is not None:
            blocked = lookup(new.workers, to_column(before.blocked))
            new = drop_workers(new, blocked[blocked >= 0])
        joined = join_responses(old, new, duplicates, retracted)
        r = recipe.prepare(joined.responses)
        known, _ = join_gold(before, joined, r, new.gold if gold is None else gold)
        source = Source(r, known, task=before.task)
        return Posed(name, model.fresh(), source, None, before.scale_check, before.blocked, before.n_blocked)


def read_questions(path: str, load: Callable[[str], FittedModel]) -> Questions | None:
    """Return the questions in a file; None if it holds something else. `load` reads the file of a model."""
    try:
        archive = zipfile.ZipFile(path)
    except UNREADABLE:
        return None  # whoever reads a model says what is wrong
    with archive:
        members = archive.infolist()
        if not members or members[0].filename != HEADER:
            return None
        try:
            header = read_header(archive, members)
            models = {}
            for name, member in zip(header["questions"], members[1:], strict=True):
                with unpack(path, archive, member) as file:
                    model = load(file)
                if not isinstance(model, FittedModel):  # a ranking, or questions once more
                    raise ValueError("not as it is written")
                models[name] = model
            # Sets of tags are about items, each with all its tags.
            found = [each.result_ for each in models.values()]
            items = {tuple(each.labels.keys) for each in found if not isinstance(each.task, TagsKind)}
            if len(items) > 1:
                raise ValueError("questions about other items")
            shared = header["shared"]
            return Questions(models, None if shared is None else read_shared(shared, list(models)))
        except (AttributeError, KeyError, TypeError, *UNREADABLE) as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{path} is damaged, or was not written by this package.", "Save it again.") from error


@contextmanager
def unpack(path: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[str]:
    """Give the path of a temporary file with a member of an archive."""
    with ExitStack() as stack:
        try:
            file = Path(stack.enter_context(tempfile.TemporaryDirectory()), "model")
            with archive.open(member) as source, file.open("wb") as target:
                shutil.copyfileobj(source, target)
        except OSError as error:
            raise StoreError(
                f"{path} cannot be unpacked to a temporary file: {first_line(error)}.",
                "Free some space, or name another folder in the environment variable TMPDIR.",
            ) from error
        yield str(file)


def read_shared(given: Mapping[str, Any], names: list[str]) -> Shared:
    """Return what a header says of sharing."""
    own, easiness = float(given["own"]), {str(name): float(value) for name, value in given["easiness"].items()}
    trace = np.array(given["trace"], np.float64)
    if not (0 <= own <= 1 and set(easiness) <= set(names) and trace.ndim == 1 and np.isfinite(trace).all()):
        raise ValueError("not what is learned")
    return Shared(own, easiness, trace)


def fit_posed(posed: Sequence[Posed], engine: Engine, source_kind: str | None) -> Questions:
    """Return several questions, fused together as far as their workers are of types."""
    recipes, graphs = [each.model.recipe() for each in posed], [each.graph for each in posed]
    sources = [each.source for each in posed]
    recipes, results, together, questions = fit_questions(
        recipes, sources, graphs, engine, count_copies_once=True, source_kind=source_kind
    )
    models = {}
    for each, recipe, found in zip(posed, recipes, results, strict=True):
        with about(each.name):
            scaled = replace(found, scale_check=each.scale)
            checked, changed = judge(recipe, scaled, each.source, each.graph, engine)
        left_out = replace(checked, blocked=each.blocked, n_blocked=each.n_blocked)
        models[each.name] = each.model.set_params(**changed).adopt(left_out)
    shared = None if together is None else describe_sharing(together, [posed[q].name for q in questions])
    return Questions(models, shared)


def describe_sharing(together: Together, names: list[str]) -> Shared:
    """Return what is told of a joint fit of some questions."""
    return Shared(together.own, dict(zip(names, together.easiness.tolist(), strict=True)), together.trace)


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


def read_question(model: FittedModel, name: str, source: object) -> Answers | None:
    """Return other answers to a question; None if there are none."""
    old = model.result_.given.answers
    label = name if old is None else old.columns.get("label", name)
    rows = answered_rows(source, label, model.result_.task)
    if label not in rows.names or not rows.n_rows:
        return None
    if old is None:
        rows = open_answers(rows, **model.result_.task.reading(), label=label)
        return model.read(rows)[1]
    return read_like(model, rows)


def answered_rows(source: object, label: str, task: AnyKind) -> Any:
    """Return the rows of a table, or of the one at a path, in which a question has an answer.

    Those of tags are all rows, since an empty cell may be an empty set, or none if all cells are empty.
    """
    if source is None:
        return None
    table = open_table(os.fspath(source))[0] if isinstance(source, (str, os.PathLike)) else open_frame(source)
    if label not in table.names:
        return table
    if not isinstance(task, TagsKind):
        return table.keep(find_present(table.read(label)))
    is_answered = table.lists(label) is not None or any(
        not is_missing(cell) and str(cell).strip() for cell in to_values(table.read(label)).tolist()
    )
    return table if is_answered else table.keep(np.empty(0, np.int64))
