"""What a fitted model says of labels to come: what to label next, whom to ask, and what a sample of labels tells."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..answers.previews import build_report
from ..errors import parameter_error
from ..inference.estimator import Fitted
from ..options import check_truth, is_whole
from ..results.result import Result
from .opening import open_gold_tables

if TYPE_CHECKING:
    from ..estimation.estimate import Estimate
    from ..estimation.judges import Audit
    from ..estimation.population import Population


class PlanningMethods(Fitted[Result]):
    """Methods of fitted models for people who label: lists to work on, and estimates from what they found."""

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
        from ..planning.items import list_next_items

        if not (is_whole(n) and n >= 0):
            raise parameter_error("n", "next_items", "a whole number >= 0", n)
        # Another seed than at the fit draws other items.
        result, seed = self.result_, self.get_params().get("seed", 0)
        columns = list_next_items(result, int(n), at_random, seed)
        return build_report(result.kind.name_keys(columns), result.backend)

    def draw_items(self, n: int = 100, *, strata: bool = False) -> Any:
        """Return a table of items that were drawn at random, for a person to label.

        Add a column label with what the person says, and give the table to `estimate` and `audit`, or to `fit` as
        `gold`. It has no fused labels, which would lead the person.

        Columns: item (or sequence and position); text, the word, where texts are known; random, which is true; with
        strata inclusion_probability, with which the item was drawn.

        Parameters
        ----------
        n : int, default 100
            How many, of the items whose label was not given to the fit.
        strata : bool, default False
            Whether more are drawn of the items that the fit is uncertain of. Intervals are narrower then, and known
            labels alone say less.

        Examples
        --------
        >>> import consilience as cs
        >>> fused = cs.DawidSkene().fit(cs.simulate.independent(500, n_workers=5, n_classes=3, seed=1).responses)
        >>> fused.draw_items(40, strata=True).column_names
        ['item', 'random', 'inclusion_probability']
        """
        from ..planning.sample import draw_sample

        if not (is_whole(n) and n >= 1):
            raise parameter_error("n", "draw_items", "a whole number >= 1", n)
        check_truth("strata", "draw_items", strata)
        result = replace(self.result_, seed=self.get_params().get("seed", 0))
        return build_report(draw_sample(result, int(n), strata), result.backend)

    def estimate(self, gold: object = None, of: object = None, by: object = None, pairs: object = None) -> Estimate:
        """Return how many items are of each class, with intervals that hold whatever the errors of the workers.

        It needs the labels of some items that were drawn at random, such as those that `next_items` lists with
        ``at_random=True``. What the fit says of all items is corrected by what it says of these, as if their labels
        were not known to it.

        Parameters
        ----------
        gold : dict, Series, table or path, optional
            Known labels, as for `fit`. Where a column random says so, only some were drawn at random; a column
            inclusion_probability says with which probabilities. Default: those that the model was fitted to.
        of : label, list or "mean", optional
            A class or a tag, or several. The "mean" is that of ordered classes. Default: all that there is.
        by : str, dict, Series, table or path, optional
            Groups: a column of the items, such as one of several that identify them, {item: group}, or a table with the
            items and one other column.
        pairs : str, dict, Series, table or path, optional
            What items of different groups share, such as the prompt, given in the same way. Differences of groups then
            are those of pairs, and known labels that belong together count as such.

        Returns
        -------
        Estimate
            `table` has the estimates, with those by known labels alone and by the fit alone; `differences` those of
            groups.

        Examples
        --------
        >>> import consilience as cs
        >>> crowd = cs.simulate.independent(1000, n_workers=5, n_classes=2, accuracy=0.7, seed=1)
        >>> fused = cs.DawidSkene().fit(crowd.responses)
        >>> drawn = fused.next_items(50, at_random=True)["item"].to_pylist()
        >>> known = {item: crowd.truth[item] for item in drawn}
        >>> fused.estimate(known, of=1)
        of  estimate          items  known  labels_alone      fit_alone  worth
         1  0.47 (0.36-0.58)   1000     50  0.52 (0.38-0.66)      0.495     83
        By 50 known labels of 1,000 items, which count as drawn at random. Intervals hold in 95% of such draws.
        """
        from ..estimation.estimate import estimate_population

        return estimate_population(self._survey(gold), of, by, pairs)

    def audit(self, gold: object = None, by: object = None) -> Audit:
        """Return how good each worker is by known labels, and how far workers err together.

        Parameters
        ----------
        gold : optional
            As for `estimate`.
        by : str, dict, Series, table or path, optional
            Groups of items in which workers are judged apart, as for `estimate`: which candidate came first, or how
            long it is.

        Returns
        -------
        Audit
            `table` has accuracies with intervals, agreement beyond chance and correlations of errors;
            `effective_number` and `worth` say what the workers are good for together.

        Examples
        --------
        >>> import consilience as cs
        >>> crowd = cs.simulate.independent(500, n_workers=3, n_classes=2, accuracy=0.8, seed=1)
        >>> known = dict(zip(range(60), crowd.truth[:60].tolist(), strict=True))
        >>> cs.DawidSkene().fit(crowd.responses).audit(known).table["accuracy"].to_pylist()
        [0.783, 0.817, 0.7]
        """
        from ..estimation.judges import audit_workers

        return audit_workers(self.result_, self._survey(gold), by)

    def _survey(self, gold: object) -> Population:
        """The items of the fit, with known labels."""
        from ..estimation.population import survey_result

        result = self.result_
        return survey_result(result, result.kind.spread_known(open_gold_tables(gold), result.answers.columns))

    def stop_items(self, confidence: float = 0.95) -> Any:
        """Return a table of the items that are certain enough to stop paying for more answers.

        The most certain come first. Columns: item (or sequence and position); label and confidence, the label of the
        fit and its probability; expected_errors, how many labels are expected to be wrong, of this item and all items
        above it. The last row has the expected number of errors among all items of the table.

        The expectation is as good as the probabilities are. Without known labels it is often too low:
        ``result_.undecided`` says so in words.

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
        from ..planning.items import list_stop_items
        from ..results.label_files import check_confidence

        least = check_confidence(confidence, "confidence", "stop_items")
        columns = list_stop_items(self.result_.labels, least)
        return build_report(self.result_.kind.name_keys(columns), self.result_.backend)

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
        from ..planning.questions import list_questions

        result, seed = self.result_, self.get_params().get("seed", 0)
        columns = list_questions(result, n, workers, budget, cost, per_worker, asked, seed=seed)
        return build_report(result.kind.name_keys(columns), result.backend)
