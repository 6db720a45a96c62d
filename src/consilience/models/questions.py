"""Several questions to the same workers: a dict of fitted models, with one prior of the workers, and shared tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from ..answers.answers import Answers
from ..answers.columns import Column, add_values, lookup, to_column, to_values
from ..answers.previews import build_report, round_figures
from ..answers.tables import Table, build_frame, open_frame
from ..documents.document import Document
from ..documents.page import describe_questions_page
from ..engines import open_engine
from ..errors import InputError, ParameterError, listing
from ..formats.sources import open_table
from ..formats.writing import write_table
from ..inference.estimator import renew
from ..options import check_truth, to_path
from ..results.chance import BY_CHANCE, pool_chance
from ..results.explanations import Explanations
from ..results.label_files import is_one_file
from ..results.worker_report import AS_IF_BY_CHANCE
from .base import Model, restore
from .fusing import Question, Shared, fit_questions
from .opening import keep_answered, split_gold
from .updating import join_batch, join_edges, read_like

if TYPE_CHECKING:
    from ..estimation.estimate import Estimate
    from ..estimation.judges import Audit
    from ..results.saving import SavedModel

# The column of tags in tables about one tag each.
TAG = "tag"


class Questions(Mapping[str, Model]):
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

    def __init__(self, models: Mapping[str, Model], shared: Shared | None = None) -> None:
        self._models = dict(models)
        self.shared_ = shared

    def __getitem__(self, question: str) -> Model:
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
        """Whether skills carry over from one question to another."""
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
        return self._build(self._list_labels(wide, undecided))

    def _list_labels(self, wide: bool, undecided: float | None) -> pa.Table:
        check_truth("wide", "to_frame", wide)
        tables = {name: in_arrow(model).to_frame(undecided=undecided) for name, model in self.items()}
        return widen(self._join_tags(tables)) if wide else lengthen(self._join_tags(tables))

    def _build(self, table: pa.Table) -> Any:
        """A table of the library that the answers came in."""
        columns = {name: to_column(table.column(name)) for name in table.column_names}
        return build_frame(columns, self.backend)

    def _join_tags(self, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Tables of labels with sets of tags as text, between which is what was between them in the answers."""
        return {name: self[name].result_.kind.to_text(table) for name, table in tables.items()}

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
            write_table(self._list_labels(wide, undecided), target)
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
        tables = {
            name: self[name].predict(replace(answers, backend="pyarrow"), as_frame=True)
            for name, answers in read.items()
        }
        return self._build(lengthen(self._join_tags(tables)))

    def read(self, responses: object) -> dict[str, Answers]:
        """Return other answers to each question that has some."""
        rows = self._find_rows(responses)
        read = {name: read_like(self[name], table) for name, table in rows.items()}
        if not read:
            raise InputError(f"There are no answers to {listing(self, len(self))}.", "Name columns as at the fit.")
        return read

    def _find_rows(self, responses: object) -> dict[str, Table]:
        """The rows of a table in which each question has an answer, of the questions that have some."""
        places = {}
        if isinstance(responses, (str, os.PathLike)):
            table = open_table(os.fspath(responses))[0]
        else:
            table = open_frame(responses)
        for name, model in self.items():
            old = model.result_.given.answers
            label = name if old is None else old.columns.get("label", name)
            rows = keep_answered(table, label, model.result_.kind.empty_is_answer)
            if label in rows.names and rows.n_rows:
                places[name] = rows if old is not None else rows.prefer({"label": label})
        return places

    def next_items(self, n: int = 50, *, at_random: bool = False) -> object:
        """Return a table of what a person should label next: items, each with one question.

        Columns: those of `DawidSkene.next_items`, and question. Rows of all questions are ordered by entropy. Add a
        column label with what the person says, and give the table to `update` or `fuse` as `gold`.
        """
        tables = {name: in_arrow(model).next_items(n, at_random=at_random) for name, model in self.items()}
        rows = stack(tables, "fused_label").sort_by([("entropy", "descending")])
        # Where the list of one question has an item that was drawn at random, so has that of all.
        is_drawn = rows.column("random").to_numpy().astype(bool)
        drawn, others = np.flatnonzero(is_drawn), np.flatnonzero(~is_drawn)
        wanted = sum(next(iter(tables.values())).column("random").to_pylist())
        n_drawn = min(len(drawn), max(wanted, n - len(others)))
        order = np.sort(np.append(drawn[:n_drawn], others[: n - n_drawn]))
        return self._build(rows.take(pa.array(order)))

    def draw_items(self, n: int = 100, *, strata: bool = False) -> object:
        """Return a table of items that were drawn at random, with each question; see `DawidSkene.draw_items`."""
        tables = {name: pa.table(in_arrow(model).draw_items(n, strata=strata)) for name, model in self.items()}
        return self._build(stack(tables, "random"))

    def estimate(
        self, gold: object = None, of: object = None, by: object = None, pairs: object = None
    ) -> dict[str, Estimate]:
        """Return how many items are of each class, by question; see `DawidSkene.estimate`.

        Parameters
        ----------
        gold : mapping, table or path, optional
            As for `consilience.fuse`: {question: known labels}, or a table with a column for each question. Questions
            without known labels are left out.
        of, by, pairs
            As for `DawidSkene.estimate`.
        """
        known = self._split_known(gold)
        return {name: self[name].estimate(each, of, by, pairs) for name, each in known.items()}

    def audit(self, gold: object = None, by: object = None) -> dict[str, Audit]:
        """Return how good each worker is by known labels, by question; see `DawidSkene.audit`.

        Parameters
        ----------
        gold, by
            As for `estimate`.
        """
        return {name: self[name].audit(each, by) for name, each in self._split_known(gold).items()}

    def _split_known(self, gold: object) -> dict[str, Any]:
        """The known labels of each question that has some."""
        if gold is not None:
            return split_gold(gold, list(self))
        known: dict[str, Any] = {name: None for name, model in self.items() if model.result_.given.gold is not None}
        if not known:
            raise InputError("There are no known labels of any question.", keyword="gold")
        return known

    def next_questions(self, n: int = 50, workers: Sequence[object] | None = None) -> object:
        """Return a table of whom to ask what next: item, question, worker and gain, the largest gain first.

        Parameters
        ----------
        n, workers
            As for `DawidSkene.next_questions`.
        """
        asked = {name: in_arrow(model).next_questions(n, workers) for name, model in self.items()}
        return self._build(stack(asked, "worker").sort_by([("gain", "descending")]).slice(0, n))

    def explain(self, item: object) -> Explanations:
        """Return why an item has its labels: an explanation for each question that has the item.

        Parameters
        ----------
        item : id, or pair of sequence and position
            The item. Of a question of tags, each tag has an explanation.
        """
        explanations, refused = Explanations(), None
        for name, model in self.items():
            try:
                why = model.explain(item)
                explanations |= (
                    {f"{name}: {tag}": each for tag, each in why.items()} if isinstance(why, dict) else {name: why}
                )
            except InputError as error:
                refused = error
        if refused is not None and not explanations:
            raise refused
        return explanations

    def save(self, path: str | os.PathLike[str], *, answers: bool = True, texts: bool = True) -> Path:
        """Write all questions to one file, without pickle; `consilience.load` reads it.

        Parameters
        ----------
        path, answers, texts
            As for `DawidSkene.save`.
        """
        from ..results.saving import write_model

        models = {str(number): model._to_saved(answers, texts) for number, model in enumerate(self.values())}
        fusion = {"names": list(self), "shared": self.shared_, "models": models}
        return write_model(to_path("path", "save", path), type(self).__name__, {}, fusion)

    @classmethod
    def _restore(cls, saved: SavedModel) -> Self:
        """The questions that `save` wrote, each with its model."""
        from ..results.saving import SavedModel, compare_names

        compare_names("entry of the questions", ("names", "shared", "models"), saved.fusion)
        names, inner = saved.read(list[str], saved.fusion["names"], "names"), saved.fusion["models"]
        compare_names("model", [str(number) for number in range(len(names))], inner)
        models = {
            name: restore(SavedModel(inner[str(number)], saved.parts, f"models/{number}/fusion"))
            for number, name in enumerate(names)
        }
        shared = saved.read(Shared | None, saved.fusion["shared"], "shared")
        saved.check_all_was_read()
        return cls(models, shared)

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
        known, questions = split_gold(gold, list(self)), dict[str, Question]()
        rows = {} if responses is None else self._find_rows(responses)
        for name, model in self.items():
            observations, *_ = join_batch(model, rows.get(name), known.get(name), duplicates)
            links = join_edges(model, observations.responses)
            questions[name] = renew(model), observations, links, model.result_.given
        source_kind = next(iter(self.values())).result_.given.source_kind
        with open_engine(engine) as opened:
            self._models, self.shared_ = fit_questions(questions, opened, source_kind)
        return self

    def page(self, title: str) -> Document:
        """The report."""
        return describe_questions_page(self, title)


# ------------------------------------------------------------------------------------------------------------- tables


def in_arrow(model: Any) -> Any:
    """A fitted model, or several, whose tables are of Arrow."""
    if isinstance(model, Questions):
        return Questions({name: in_arrow(each) for name, each in model.items()}, model.shared_)
    return renew(model)._adopt(replace(model.result_, backend="pyarrow"))


def stack(tables: Mapping[str, pa.Table], before: str) -> pa.Table:
    """The rows of all questions one below the other, with a column question before another one.

    Columns that are not in all tables are left out, but for that of tags. Where types differ, entries are text.
    """
    every = [
        table.append_column("question", pa.array([name] * table.num_rows, pa.string()))
        for name, table in tables.items()
    ]
    names = [name for name in every[0].column_names[:-1] if all(name in table.column_names for table in every)]
    has_tags = any(TAG in table.column_names for table in every)
    place = names.index(TAG if TAG in names else before)
    names[place:place] = ["question", TAG] if has_tags and TAG not in names else ["question"]
    for name in names:
        types = {table.schema.field(name).type for table in every if name in table.column_names}
        if len(types) > 1:
            every = [
                table.set_column(table.column_names.index(name), name, table.column(name).cast(pa.string()))
                if name in table.column_names
                else table
                for table in every
            ]
    parts = [table.select([name for name in names if name in table.column_names]) for table in every]
    return pa.concat_tables(parts, promote_options="default").select(names)


def lengthen(tables: Mapping[str, pa.Table]) -> pa.Table:
    """A table with a row for each item and question."""
    first = next(iter(tables.values())).column_names
    if any(table.column_names != first for table in tables.values()):
        names = [*first[: first.index("label")], "label", "confidence"]
        tables = {name: table.select(names) for name, table in tables.items()}
    return stack(tables, "label")


def widen(tables: Mapping[str, pa.Table]) -> pa.Table:
    """A table with a row for each item."""
    first = next(iter(tables.values())).column_names
    n_keys = first.index("label")
    keys = stack({name: table.select(first[: n_keys + 1]) for name, table in tables.items()}, "label")
    keys = keys.select(first[:n_keys])
    row = dict[tuple[object, ...], int]()
    places = [row.setdefault(key, len(row)) for key in zip(*keys.to_pydict().values(), strict=True)]
    wide, begin = keys.take(np.unique(np.array(places, np.int64), return_index=True)[1]), 0
    for name, table in tables.items():
        at = np.full(len(row), -1, np.int64)
        at[places[begin : begin + table.num_rows]] = np.arange(table.num_rows)
        begin += table.num_rows
        pick = pa.array(at, mask=at < 0)
        for title, source in ((name, "label"), (f"{name}_confidence", "confidence")):
            title = title if title not in wide.column_names else f"answer_{title}"
            wide = wide.append_column(title, table.column(source).take(pick))
    return wide


def report_workers(questions: Mapping[str, Model]) -> dict[str, Column]:
    """The columns of the report on workers over all questions."""
    results = [model.result_ for model in questions.values()]
    every = results[0].names.workers
    for result in results[1:]:
        every, _ = add_values(every, result.names.workers)
    # One row per worker, one column per question.
    answers, accuracy, chance = (np.full((len(every), len(results)), np.nan) for _ in range(3))
    for q, result in enumerate(results):
        place = lookup(every, to_column(result.names.workers))
        for name, figures in (("answers", answers), ("accuracy", accuracy), ("chance", chance)):
            if name in result.workers:
                figures[place, q] = to_values(result.workers[name])
    judged = np.where(np.isnan(accuracy), 0.0, np.nan_to_num(answers))
    n_judged, right = judged.sum(axis=1), (judged * np.nan_to_num(accuracy)).sum(axis=1)
    pooled = pool_chance(list(chance.T))
    return {
        "worker": to_column(every),
        "answers": to_column(np.nansum(answers, axis=1).astype(np.int64)),
        "accuracy": to_column(np.divide(right, n_judged, out=np.full(len(every), np.nan), where=n_judged > 0)),
        "chance": to_column(pooled),
        "remarks": to_column([AS_IF_BY_CHANCE if each > BY_CHANCE else "" for each in pooled]),
        **{f"accuracy({name})": to_column(accuracy[:, q].copy()) for q, name in enumerate(questions)},
    }
