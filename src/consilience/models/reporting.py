"""What fitted models tell: tables of labels, of spans and of workers, plans for what to ask next, and files.

Notebooks show a few figures, some labels, and a small picture.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..answers.columns import to_column
from ..answers.previews import build_report, draw_histogram, round_figures
from ..answers.tables import build_frame
from ..arguments import check_truth, is_whole, to_path
from ..documents.document import Document, Facts
from ..documents.notebook import to_cells
from ..documents.overview import list_facts, list_first_labels
from ..errors import ParameterError, Sentence, StoreError, parameter_error
from ..inference.estimator import describe_call
from ..kinds.masks import FusedMasks, Masks, draw_masks
from ..kinds.span_task import collect_spans, tabulate_spans
from ..kinds.spans import Spans
from ..planning.next_items import list_next_items, list_stop_items
from ..planning.next_questions import list_questions
from ..results.explanations import Explanation, explain_item
from ..results.label_files import Undecided, check_confidence, count_kept, list_undecided, write_labels
from ..results.result import Result
from ..results.saving import save_result
from .base import Model
from .register import MODELS

# Labels that are shown.
FIRST = 5


class Reporting(Model):
    """A model whose results can be read as tables."""

    def to_frame(self, *, undecided: float | None = None, label_by: str | None = None) -> Any:
        """Return a table with one row per item: its id, label, confidence, and the probability of each class.

        The label is the most probable class. Where a rule can decide otherwise, the last column is decided_by: "known
        label", "sequence" for a label that is on the most probable path and not the most probable by itself, "median"
        for a median that is not the most probable level, or "". Confidence, probabilities and what is made of them are
        missing if each item has one answer and nothing else checks it.

        Ordered classes have four more columns, after confidence:

        - median: the lowest level with at least half of the probability at or below it. No other level has a smaller
          expected distance from the truth.
        - mean: of the levels that are numbers; of their positions if they are names (0 for the lowest, then 1, 2, ...),
          or if other `positions` were given.
        - low, high: the ends of a 90 % interval: the lowest levels with at least 5 % and 95 % at or below them.

        Levels that read as numbers are numbers in median, low and high; others are named as the labels are.

        The table is of the library that the answers came in (pandas, polars), pyarrow for files and matrices.

        Parameters
        ----------
        undecided : float, optional
            Labels whose confidence is below this number, from 0 to 1, are left open: they are missing in the table.
            `labels_` does not change. The method `undecided` counts how many are kept.
        label_by : {"mode", "median"}, optional
            What the label is: the most probable class, or the median of ordered classes. Known labels stay. Confidence
            is the probability of the label, whichever it is. Default: as the model was fitted.
        """
        found = self.result_
        least = None if undecided is None else check_confidence(undecided, "undecided", "to_frame")
        labels = found.label(label_by)
        arranged = found.task.arrange(labels, labels.shown, least)
        return build_frame(list_undecided(labels, least) if arranged is None else arranged, found.backend)

    def write(self, path: str | os.PathLike[str], *, undecided: float | None = None) -> None:
        """Write the labels with their probabilities to files, about a million items at a time.

        The columns are those of `to_frame`. What is there is replaced when everything is written.

        Parameters
        ----------
        path : str or path
            A folder of Parquet files, or the name of one file (.parquet .csv .tsv .jsonl .arrow).
        undecided : float, optional
            As for `to_frame`: labels whose confidence is below this number are left open.
        """
        least = None if undecided is None else check_confidence(undecided, "undecided", "write")
        write_labels(self.result_, to_path("path", "write", path), least)

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
        282 of 500 labels (56.4%) are kept, with a confidence of at least 0.9. If workers err independently, 3.1% of
        these are wrong (about 8.7). Real workers share errors: on 23 real crowds 10% of the labels were expected to be
        wrong, and 20% were.
        """
        least = check_confidence(confidence, "confidence", "undecided")
        found = self.result_
        kept = count_kept(found.labels, least, found.n_calibrating)
        return kept._replace(ordered=found.names.positions is not None)

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
        found = self.result_
        return build_frame(tabulate_spans(found.task, found), found.backend)

    def to_span_set(self) -> Spans:
        """Return the fused spans with their texts as a `Spans`, of one worker who is called "consilience".

        It holds all documents that the model was fitted to, and the confidence of each span.
        """
        return collect_spans(self.result_.task, self.result_)

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
        return draw_masks(self.result_.task, self.result_.labels, masks)

    def explain(self, item: object) -> Explanation:
        """Return why an item has its label: what each answer weighed, and all else that had a say.

        The parts are log odds of the label against the most probable other class, with natural logarithms: 0.7 doubles
        the odds, 2.3 makes them ten times as large. They are the class prior, the answers, what else is known of the
        item (classifier or item prior), in a chain the rest of the sequence, in a network the neighbours, and
        calibration. Together they are the log odds of the probabilities in `posterior_`. The parts of a `MajorityVote`
        are shares of the votes.

        Parameters
        ----------
        item : id, or pair of sequence and position
            The item.

        Returns
        -------
        Explanation
            It prints as a table; `parts`, `log_odds` and `to_frame` have the figures.

        Examples
        --------
        >>> import consilience as cs
        >>> votes = {"item": [1, 1, 1, 2], "worker": ["ann", "bo", "cy", "ann"], "label": ["cat", "cat", "dog", "dog"]}
        >>> print(cs.MajorityVote().fit(votes).explain(1))
        Item 1: cat (0.667), against dog (0.333)
        2 of 3 workers say cat.
                        answer  share
          ann           cat      0.33  for
          bo            cat      0.33  for
          cy            dog      0.33  against
          share of cat           0.67
        """
        return explain_item(self, self.result_, self.result_.task.find_key(item))

    def worker_report(self) -> Any:
        """Return a table with one row per worker: how many answers, how good, and what to look at.

        Columns:

        - worker: the id.
        - answers: how many there are.
        - accuracy: share of answers that agree with the truth, weighted by the posterior before calibration.
        - accuracy_low, accuracy_high: ends of its 95 % interval, missing for workers without answers. All figures
          are missing for those none of whose answers is judged by anything else.
        - informativeness: mutual information of answer and truth, as a share of the truth's entropy: 0 tells nothing, 1
          tells all, also for one who is always wrong in the same way. Few answers pull it towards the crowd's, so this
          is not the column to block workers by.
        - informativeness_low, informativeness_high: ends of its 95 % interval, missing as those of accuracy are.
        - chance: the probability that the answers have nothing to do with the truth, as those of one who clicks without
          looking. The worker's own answer is left out of what each item is judged by. From 0.9 on it is safe to act
          on. Missing where nothing can be told: for workers without an answer that anything else judges, for functions
          with one label, in streams, and for `MajorityVote`.
        - worst_confusion: the mistake with the highest rate, its share of the answers about that truth. Empty for
          workers who say only one label.
        - remarks: "few answers", "answers as if by chance", "uninformative", "contrary", "one label", "near-copy
          (group ...)", "calls ... ... (...%)", "accuracy falls from ... to ...", "harsh by ... levels", "lenient
          by ... levels"; several are separated by semicolons. Where silence is an answer, which it never is to
          `MajorityVote`, those who speak little or say one label are judged by what they tell when they speak.
        - group: the number of the group of near-copies that the worker belongs to, missing for others. Workers of a
          group agree more than workers who answer independently would, given how accurate they are: at least half of
          their answers seem to be copied from each other, or from one source.

        Raters on a scale (``workers="ordinal"``) have five more:

        - bias, bias_low, bias_high: by how many levels the answers are too high, compared with the mean of all raters,
          and the ends of its 95 % interval. Below 0 a rater is harsh, above 0 lenient. The rater's own answer is left
          out of what each item is judged by. Missing where chance is.
        - spread: by how many levels the answers scatter, as a standard deviation.
        - careless: the share of answers that might be any level.

        Other worker models add columns of their own too. Figures are rounded to three digits.

        The table is of the library that the answers came in (pandas, polars). For others it is a `ReportTable`: an
        Arrow table that prints as a table.
        """
        found = self.result_
        ids, figures = found.workers["worker"], {name: each for name, each in found.workers.items() if name != "worker"}
        return build_report({"worker": ids, **round_figures(figures)}, found.backend)

    def drift_report(self) -> Any:
        """Return a table with one row per worker: how accuracy changes over the order of the answers.

        The answers must have been read with ``order``, a column that says when each was given.

        Columns: worker; answers, by which the worker is judged: those with a time, to items that at least two others
        answered, or whose label is known and one other did; accuracy_first and accuracy_last, the accuracy in the first
        and in the last third of the worker's answers; change, the difference; change_low and change_high, the ends of
        its 95 % interval; remarks, "accuracy falls from ... to ..." if it falls beyond chance. All but the first two
        are missing for workers with fewer than 20 such answers.

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
        >>> answers = cs.Answers.from_frame(table, order="time")
        >>> cs.DawidSkene().fit(answers).drift_report().to_pydict()["remarks"]
        ['', '', '', '', 'accuracy falls from 86% to 52%']
        """
        found = self.result_
        if found.answers.order is None:
            raise ParameterError(
                "It is not known in which order the answers were given.",
                Sentence("Read them with {order}, the column of numbers or times that tells."),
                keyword="order",
            )
        columns = {"worker": to_column(found.names.workers), **round_figures(dict(found.drift or {}))}
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
        if kind not in {entry.class_name for entry in MODELS.values()}:
            raise StoreError(f"A {kind} is not one of this package's models, and cannot be saved.")
        try:
            self._check_learned(self.result_.learned.structure)
        except ValueError as error:
            raise StoreError(
                "Parameters were changed since the fit, and no longer belong to what was learned.", "Fit again."
            ) from error
        return save_result(self.result_, self.get_params(), target, answers=answers, texts=texts)

    def _repr_html_(self) -> str:
        if self._result is None:
            return to_cells(Document(describe_call(self), "Not fitted yet.", []))
        labels = self._result.labels
        picture = ""
        if labels.n_items and labels.shown:
            picture = draw_histogram(labels.confidence, "Confidence: how many labels have which")
        facts, labels_shown = Facts(list_facts(self)), list_first_labels(self._result, FIRST)
        return to_cells(Document(describe_call(self), "", [facts, labels_shown]), picture)


class Planning(Model):
    """A model that tells what to ask next."""

    def next_items(self, n: int = 50, *, at_random: bool = False) -> Any:
        """Return a table of the items that a person should label next.

        The items whose probabilities have the largest entropy come first. Two of ten are drawn at random. No item is
        listed whose label was given to the fit as `gold`.

        Columns: item (or sequence and position); text, the word, where texts are known; random, whether the item was
        drawn at random; fused_label and confidence, the label of the fit and its probability; entropy, in nats. Add a
        column label with what the person says, and give the table to `fit` as `gold`: probabilities are calibrated by
        the random items alone.

        Independent items that nobody answered come last. In a sequence each position is an item, and one with a less
        certain neighbour comes after those without: the label of the neighbour may settle both.

        Parameters
        ----------
        n : int, default 50
            The most items to list. Labels teach more if the model is fitted again after each ten or so.
        at_random : bool, default False
            Draw all items at random. Their labels tell how many of all labels are right; see `Comparison.accuracy`.

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
        columns = list_next_items(found, int(n), at_random=at_random)
        return build_report(found.task.name_keys(columns), found.backend)

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
        columns = list_stop_items(self.result_.labels, least)
        return build_report(self.result_.task.name_keys(columns), self.result_.backend)

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
            Who may be asked; default: all workers of the fit who do not answer as if by chance. Workers who were not
            there are taken to answer as the crowd does on the whole, with a warning. Labelling functions answer all
            that they can, so only new workers can be asked beside them.
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
        columns = list_questions(found, n, workers, budget, cost, per_worker, asked)
        return build_report(found.task.name_keys(columns), found.backend)

    def _seeded(self) -> Result:
        """Return the result with the seed that the model has now: another one draws other items."""
        return replace(self.result_, seed=self.get_params().get("seed", 0))
