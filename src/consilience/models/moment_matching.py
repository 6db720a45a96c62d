"""Moment matching as a model of its own: no likelihood, no EM."""

from __future__ import annotations

from collections.abc import Callable

from ..inference.em import Progress
from ..inference.moments import SHRINKAGE
from ..inference.recipes.independent import MomentRecipe
from .base import NoBatches
from .fitted import FittedModel


class MomentMatching(FittedModel):
    r"""Learn confusion matrices and class prior from which answers occur together, without EM.

    Single answers, pairs and triples of answers to the same item occur with frequencies that depend on the matrices
    :math:`\Gamma_m` and the prior :math:`\pi` alone; both are chosen to match the frequencies observed (least squares
    under simplex constraints, by alternating ADMM). Labels are then the most probable classes. The estimate is
    consistent: its error falls as :math:`1 / \sqrt{N}`. It is a start for EM that does not depend on majority vote
    (``start="moments"`` of the other models) more than an end: EM is more precise.

    Parameters
    ----------
    prior : {"learn", "uniform"} or array
        The class prior.
    shrinkage : float
        How many answers per class the crowd's matrix counts for when the matrix of a worker with few answers is pulled
        towards it.
    max_iter, tol : int, float
        Most sweeps; stop when no probability changes by more than `tol` in one.
    label_by : {"mode", "median"}
        As for `DawidSkene`.
    callback : callable, optional
        Called after each sweep with a `Progress`; its gain is the largest change.

    Attributes
    ----------
    labels_, posterior_, classes_, prior_, confusion_, workers_, answer_labels_, copies_count_once_
        As for `DawidSkene`.
    trace_ : ndarray
        The objective after each sweep (implicit: without its constant). It falls.
    n_iter_, converged_ : int, bool
        How the search ended.

    Notes
    -----
    There is a warning, which names workers, when the answers cannot identify the matrices: workers who never share an
    item with two others, groups of workers without common items, classes that nobody tells apart. Weights of answers
    are not used: of a spread answer the label with most weight counts. Where near-copies count once (`fuse`), one
    member of a group is drawn for each item, and all members have the same matrix.

    Time grows with the cube of the number of classes. A fit that may take more than two minutes gives a warning that
    says how long.

    References
    ----------
    P. A. Traganitis, A. Pages-Zamora and G. B. Giannakis, "Blind multiclass ensemble classification", IEEE Transactions
    on Signal Processing 66 (2018).

    Examples
    --------
    >>> import consilience as cs
    >>> crowd = cs.simulate.independent(5000, n_workers=8, n_classes=3, seed=2)
    >>> model = cs.MomentMatching().fit(crowd.responses)
    >>> round(cs.metrics.confusion_error(crowd.parameters.confusion, model.confusion_), 2)
    0.04
    """

    def __init__(
        self,
        *,
        prior: object = "learn",
        shrinkage: float = SHRINKAGE,
        max_iter: int = 500,
        tol: float = 1e-5,
        label_by: str = "mode",
        callback: Callable[[Progress], object] | None = None,
    ) -> None:
        self._store(locals())

    partial_fit = NoBatches(": moments are those of all answers")

    def recipe(self) -> MomentRecipe:
        """Return the parameters as they stand, and how they are followed."""
        return MomentRecipe(**self.get_params())
