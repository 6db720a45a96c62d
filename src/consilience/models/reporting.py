"""What fitted models tell: tables of labels, of spans and of workers, plans for what to ask next, and files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..answers.columns import Column, to_column
from ..answers.frames import build_frame
from ..arguments import check_truth, is_whole, to_path
from ..checks.drift import add_falls, check_order, find_drift, has_order, tabulate_drift
from ..checks.judging import list_findings
from ..errors import StoreError, parameter_error
from ..planning.next_items import list_next_items, list_stop_items
from ..planning.next_questions import list_questions
from ..results.findings import Finding
from ..results.fusion import Fusion
from ..results.label_files import write_labels
from ..results.previews import build_report
from ..results.saving import save_fusion
from ..results.tables import describe_answers
from ..results.undecided import Undecided, check_confidence, count_kept, list_undecided
from ..results.worker_report import name_copies
from ..specs import Fault
from ..tasks.mask_task import draw_masks
from ..tasks.masks import FusedMasks, Masks
from ..tasks.span_task import collect_spans, tabulate_spans
from ..tasks.spans import Spans
from .base import Model


def list_worker_columns(found: Fusion) -> dict[str, Column]:
    """Return the columns of the worker report, after the first."""
    columns = describe_answers(found)
    if has_order(found):
        columns = add_falls(columns, find_drift(found))
    return name_copies(columns, found.copies, found.names.workers)


class Reporting(Model):
    """A model whose results can be read as tables."""

    def to_frame(self, *, undecided: float | None = None) -> Any:
        """Return a table with one row per item: its id, label, confidence, and the probability of each class.

        The table is of the library that the answers came in (pandas, polars), pyarrow for files and matrices.

        Parameters
        ----------
        undecided : float, optional
            Labels whose confidence is below this number, from 0 to 1, are left open: they are missing in the table.
            `labels_` does not change. The method `undecided` counts how many are kept.
        """
        found = self.fusion_
        least = None if undecided is None else check_confidence(undecided, "undecided", "to_frame")
        return build_frame(list_undecided(found.labels, least), found.backend)

    def write(self, path: str | os.PathLike[str], engine: object = None, *, undecided: float | None = None) -> None:
        """Write the labels with their probabilities to files.

        Labels of answers on disk (see `scan_responses`) are made block by block, and never all in memory; their items
        are in the order of the store. The columns are those of `to_frame`. What is there is replaced when everything is
        written. A model that was fitted to answers on disk, saved and loaded cannot write: it has no answers.

        Parameters
        ----------
        path : str or path
            A folder of Parquet files, or the name of one file (.parquet .csv .tsv .jsonl .arrow).
        engine : optional
            Where to work; see `consilience.engines`.
        undecided : float, optional
            As for `to_frame`: labels whose confidence is below this number are left open.
        """
        least = None if undecided is None else check_confidence(undecided, "undecided", "write")
        write_labels(self.fusion_, to_path("path", "write", path), engine, least)

    def undecided(self, confidence: float) -> Undecided:
        """Return how many labels have at least this confidence, and how many of these are expected to be wrong.

        The expectation is as good as the probabilities are. Without known labels it is often too low, since errors that
        workers share cannot be seen.

        Parameters
        ----------
        confidence : float
            From 0 to 1. `to_frame(undecided=confidence)` leaves the other labels open.

        Examples
        --------
        >>> import consilience as cs
        >>> fused = cs.DawidSkene().fit(cs.simulate.independent(500, n_workers=5, n_classes=3, seed=1).responses)
        >>> print(fused.undecided(0.9).describe())
        282 of 500 labels (56.4%) are kept, with a confidence of at least 0.9. By their probabilities, 3.1% of these are
        wrong (about 8.7). Without known labels this is often too low: on seven of eight real crowds, about twice as
        many or more were wrong.
        """
        least = check_confidence(confidence, "confidence", "undecided")
        return count_kept(self.fusion_.labelled, least, self.fusion_.n_calibrating)

    def to_spans(self) -> Any:
        """Return a table with one row per fused span, for labels that are tags such as B-PER, I-PER and O.

        Columns: document (the sequence), start, end (excluded), label, text, and confidence: the probability that
        exactly this span with this type is there. Start and end count characters where the model was fitted to `Spans`.
        Where it was fitted to tags, they count tokens of the sequence, and the text is missing.

        The table is of the library that the answers came in, as that of `to_frame`.

        Examples
        --------
        >>> import consilience as cs
        >>> project = cs.simulate.spans(50, seed=1)
        >>> fused = cs.HiddenMarkov(transitions="bio").fit(project.spans)
        >>> fused.to_spans().column_names
        ['document', 'start', 'end', 'label', 'text', 'confidence']
        """
        found = self.fusion_
        return build_frame(tabulate_spans(found.task, found), found.backend)

    def to_span_set(self) -> Spans:
        """Return the fused spans with their texts as a `Spans`, of one worker who is called "consilience".

        It holds all documents that the model was fitted to, and the confidence of each span.
        """
        return collect_spans(self.fusion_.task, self.fusion_)

    def to_masks(self, masks: Masks | None = None) -> FusedMasks:
        """Return one mask for each image, for a model that was fitted to `Masks`.

        Parameters
        ----------
        masks : Masks, optional
            The masks that the model was fitted to. A model that was saved and loaded needs them, since its file does
            not hold the sizes of images.

        Returns
        -------
        FusedMasks
            A dict with an array for each image, of the values that the readers' masks hold. Its attribute `confidence`
            is a dict with the probability of each pixel's class.
        """
        return draw_masks(self.fusion_.task, self.fusion_.labels, masks)

    @property
    def findings_(self) -> list[Finding]:
        """What checks found, the most serious first: what `fuse` warns of, and what a report says of workers and items.

        A `Finding` has the attributes kind, level ("care" or "bad"), problem, remedies and place.
        """
        return list_findings(self.recipe(), self.fusion_)

    def worker_report(self) -> Any:
        """Return a table with one row per worker: how many answers, how good, and what to look at.

        Columns:

        - worker: the id.
        - answers: how many there are.
        - accuracy: share of answers that agree with the truth, weighted by the posterior before calibration.
        - accuracy_low, accuracy_high: ends of its 95 % interval, missing for workers without answers.
        - informativeness: mutual information of answer and truth, as a share of the truth's entropy: 0 tells nothing, 1
          tells all, also for one who is always wrong in the same way.
        - informativeness_low, informativeness_high: ends of its 95 % interval, missing as those of accuracy are.
        - worst_confusion: the most frequent mistake, and its share of the answers about that truth.
        - remarks: "few answers", "uninformative", "contrary", "one label", "near-copy of ...", "accuracy falls from ...
          to ..."; several are separated by semicolons. Where silence is an answer, which it never is to `MajorityVote`,
          those who speak little or say one label are judged by what they tell when they speak.
        - group: the number of the group of near-copies that the worker belongs to, missing for others. Workers of a
          group agree more than workers who answer independently would, given how accurate they are: at least half of
          their answers seem to be copied from each other, or from one source.

        Some worker models add columns of their own.

        The table is of the library that the answers came in (pandas, polars). For others it is a `ReportTable`: an
        Arrow table that prints as a table.
        """
        found = self.fusion_
        return build_report({"worker": to_column(found.names.workers), **list_worker_columns(found)}, found.backend)

    def drift_report(self) -> Any:
        """Return a table with one row per worker: how accuracy changes over the order of the answers.

        The answers must have been read with ``order``, a column that says when each was given.

        Columns: worker; answers, by which the worker is judged: those with a time, to items that at least two others
        answered, or whose label is known and one other did; accuracy_first and accuracy_last, the accuracy in the first
        and in the last fifth of the worker's answers, by a straight line; change, the difference; change_low and
        change_high, the ends of its 95 % interval; remarks, "accuracy falls from ... to ..." if it falls beyond chance.
        All but the first two are missing for workers with fewer than 20 such answers.

        An answer is judged by those of other workers to the same item, and a worker relative to them: if the items at
        the end are harder for all, that is no fall. In a crowd in which nobody changes, anybody gets a
        remark with a probability of about 5 % or less. `worker_report` has the same remarks.

        Examples
        --------
        >>> import consilience as cs
        >>> crowd = cs.simulate.independent(400, n_workers=5, n_classes=2, accuracy=0.9, seed=1)
        >>> r, item = crowd.responses, crowd.responses.item_of_answer()
        >>> tired = (r.worker == 4) & (item > 200) & (item % 2 == 0)
        >>> table = {"item": item, "worker": r.worker, "label": r.label ^ tired, "time": item}
        >>> answers = cs.Responses.from_frame(table, order="time")
        >>> cs.DawidSkene().fit(answers).drift_report().to_pydict()["remarks"]
        ['', '', '', '', 'accuracy falls from 93% to 48%']
        """
        found = self.fusion_
        check_order(found)
        columns = {"worker": to_column(found.names.workers), **tabulate_drift(find_drift(found))}
        return build_report(columns, found.backend)

    def save(self, path: str | os.PathLike[str], *, answers: bool = True, texts: bool = True) -> Path:
        """Write the fitted model to one file, without pickle; `consilience.load` reads it.

        Parameters
        ----------
        path : str or path
            The file.
        answers : bool, default True
            Whether the answers are written too, and the graph of a `MarkovField`: who said what about which item.
            Without them `responses_` of the loaded model is not available. All results are, and `predict` works. A
            model that was fitted to answers on disk is always written without them, and without labels.
        texts : bool, default True
            Whether the texts of a model that was fitted to `Spans` are written too. Without them the file still has
            the offsets of all tokens, and `to_spans` of the loaded model gives spans without their texts.
        """
        check_truth("answers", "save", answers)
        check_truth("texts", "save", texts)
        kind, target = type(self).__name__, to_path("path", "save", path)
        if kind != self.fusion_.model:
            raise StoreError(f"A {kind} is not one of this package's models, and cannot be saved.")
        try:
            self.recipe().check_learned(self.fusion_.learned.structure)
        except Fault as error:
            raise StoreError(
                "Parameters were changed since the fit, and no longer belong to what was learned.", "Fit again."
            ) from error
        return save_fusion(self.fusion_, self.get_params(), target, answers=answers, texts=texts)


class Planning(Model):
    """A model that tells what to ask next."""

    def next_items(self, n: int = 50) -> Any:
        """Return a table of the items that a person should label next.

        The items whose probabilities have the largest entropy come first. Two of ten are drawn at random. No item is
        listed whose label was given to the fit as `gold`.

        Columns: item (or sequence and position); random, whether the item was drawn at random; fused_label and
        confidence, the label of the fit and its probability; entropy, in nats. Add a column label with what the person
        says, and give the table to `fit` as `gold`: probabilities are calibrated by the random items alone.

        Independent items that nobody answered come last. In a sequence each position is an item, and one with a less
        certain neighbour comes after those without: the label of the neighbour may settle both.

        Parameters
        ----------
        n : int, default 50
            The most items to list. Labels teach more if the model is fitted again after each ten or so.

        Examples
        --------
        >>> import consilience as cs
        >>> fused = cs.DawidSkene().fit(cs.simulate.independent(500, n_workers=5, n_classes=3, seed=1).responses)
        >>> fused.next_items(5).to_pydict()["random"]
        [False, False, True, False, False]
        """
        if not (is_whole(n) and n >= 0):
            raise parameter_error("n", "next_items", "a whole number >= 0", n)
        found = self._seeded()
        return build_report(list_next_items(found, int(n)), found.backend)

    def stop_items(self, confidence: float = 0.95) -> Any:
        """Return a table of the items that are certain enough to stop paying for more answers.

        The most certain come first. Columns: item (or sequence and position); label and confidence, the label of the
        fit and its probability; expected_errors, how many labels are expected to be wrong, of this item and all items
        above it. The last row has the expected number of errors among all items of the table.

        The expectation is as good as the probabilities are. Without known labels it is often too low; see `undecided`,
        which says so in words.

        Parameters
        ----------
        confidence : float, default 0.95
            The least confidence, from 0 to 1, of an item that is certain enough.

        Examples
        --------
        >>> import consilience as cs
        >>> fused = cs.DawidSkene().fit(cs.simulate.independent(500, n_workers=5, n_classes=3, seed=1).responses)
        >>> done = fused.stop_items(0.9)
        >>> done.num_rows, round(done["expected_errors"].to_pylist()[-1], 1)
        (282, 8.7)
        """
        least = check_confidence(confidence, "confidence", "stop_items")
        return build_report(list_stop_items(self.fusion_.labelled, least), self.fusion_.backend)

    def next_questions(
        self,
        n: int | None = None,
        workers: object = None,
        budget: float | None = None,
        *,
        cost: object = None,
        per_worker: object = None,
        asked: object = None,
    ) -> Any:
        """Return a table of questions to ask next: which worker should answer which item.

        The questions come first whose answers are expected to tell most about the labels, for what they cost. Several
        questions may be about one item: the gain of each is what its answer tells beyond those listed before. No worker
        is asked about an item twice, nor are two workers who copy each other. Nothing is asked about items whose label
        was given to the fit as `gold`, nor where an answer would tell nothing.

        Columns: item (or sequence and position); worker; gain, the expected information about the label of the item, in
        nats; cost. In sequences and networks a question counts less if one about a neighbour is listed before it.

        Parameters
        ----------
        n : int, optional
            The most questions to list. Default: 10, or as many as the budget pays for.
        workers : list, optional
            Who may be asked; default: all workers of the fit. Workers who were not there are taken to answer as the
            crowd does on the whole, with a warning.
        budget : float, optional
            The most that all questions may cost together.
        cost : float or dict, optional
            What an answer costs, for all workers or by worker. Questions are chosen by their gain per cost. Default: 1.
        per_worker : int or dict, optional
            The most questions for each worker. By default no worker has more than four times an even share, as long as
            others can be asked: who is best is not known for certain, and errors of a few would be everywhere.
        asked : table, optional
            Questions that were asked before, such as an earlier list: a table with the columns item (or sequence and
            position) and worker. They are not listed again. Where there is no answer yet, it is expected to come: gains
            are what answers tell beyond it, and it counts in `per_worker`, but not in `budget`.

        Examples
        --------
        >>> import consilience as cs
        >>> crowd = cs.simulate.independent(500, n_workers=30, n_classes=3, answers_per_item=3, seed=1)
        >>> questions = cs.DawidSkene().fit(crowd.responses).next_questions(100)
        >>> questions.column_names
        ['item', 'worker', 'gain', 'cost']
        """
        found = self._seeded()
        return build_report(list_questions(found, n, workers, budget, cost, per_worker, asked), found.backend)

    def _seeded(self) -> Fusion:
        """Return the result with the seed that the model has now: another one draws other items."""
        return replace(self.fusion_, seed=self.get_params().get("seed", 0))
