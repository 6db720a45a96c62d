"""A fitted model as users hold it: it can be read, planned with, and updated."""

from __future__ import annotations

from typing import Any, Self

from ..results.previews import build_report
from .base import Found
from .reporting import Planning, Reporting
from .updating import need_update, update_model


class FittedModel(Reporting, Planning):
    """A model that goes on when more answers come."""

    update_ = Found(lambda found: need_update(found), "What the last `update` brought, in numbers.")

    def update(
        self,
        responses: object = None,
        graph: object = None,
        gold: object = None,
        engine: object = None,
        *,
        duplicates: str = "error",
    ) -> Self:
        """Add answers, known labels or edges to those of the fit, and fit the model to all of them.

        The result is that of a fit to all answers, up to `tol`. Items, workers and labels may be new, and sequences may
        grow. `labels_` and all other results are those of all items. `changes` lists the labels that have changed, and
        `update_` counts what is new.

        While less than a tenth of the answers has come or changed since the last whole fit, three things that are
        expensive and change little are kept as they were found: the power that calibrates probabilities, a coupling
        that is learned, and which workers copy each other. `explain_calibration` says so. With 500,000 answers or more,
        the loop then also starts from where the fit stood, which takes a few iterations. With fewer it starts as `fit`
        does, which is fast enough: another start can lead to another result. After a tenth, or with new known labels,
        everything is fitted again from the beginning. A model from `consilience.fuse` is compared with majority vote
        again after each update, and for this its power is found again, too.

        Parameters
        ----------
        responses : Responses, table or path, optional
            New answers. A table is read as the answers of the fit were: columns of the same names play the same roles,
            and labels are normalised if those were. An answer that is there already with the same label changes
            nothing.
        graph : Graph, or edges in any form that `consilience.fuse` takes, optional
            For `MarkovField`: further edges. An edge that is there already takes the new weight. New items may have
            edges to old ones.
        gold : dict, Series, table or path, or a list of these, optional
            Further known labels, as for `fit`. If the label of an item was known before, the new one replaces it.
        engine : optional
            Where to work; see `fit`.
        duplicates : {"error", "last"}
            What to do if a worker answered an item before, with another label. "last": the new answer replaces the old
            one, and a row without a label retracts the old answer.

        Returns
        -------
        self

        Examples
        --------
        >>> import consilience as cs
        >>> answers = {"item": [1, 1, 2, 2], "worker": ["a", "b", "a", "b"], "label": ["x", "x", "y", "x"]}
        >>> model = cs.DawidSkene().fit(answers)
        >>> model.update({"item": [2, 3], "worker": ["c", "c"], "label": ["x", "y"]}).responses_.items
        array([1, 2, 3])
        """
        update_model(self, responses, graph, gold, engine, duplicates)
        return self

    def changes(self) -> Any:
        """Return a table of the items whose label was changed by the last `update`.

        Columns: item (or sequence and position); label_before and label; confidence_before and confidence;
        new_answers, the number of answers to the item that came or changed. Items that are new are not listed:
        ``update_.n_new_items`` says how many there are. The table is of the library that the answers came in.
        """
        return build_report(self.update_.columns, self.fusion_.backend)
