"""Hidden Markov fusion: the labels of a sequence form a Markov chain, believed as far as the data bear it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from ..inference.em import Progress
from ..inference.learned import explain_choice
from ..inference.recipes.chain import ChainRecipe
from ..inference.structures.chain import ChainParameters
from ..results.result import Result
from .base import Found
from .latent import StreamingModel, describe_age


def chain_of(found: Result) -> ChainParameters:
    """Return the chain that was learned."""
    return cast(ChainParameters, found.learned.structure)


class HiddenMarkov(StreamingModel):
    r"""Fuse answers about sequences: tokens of a sentence, epochs of a night, frames of a film.

    The truth of a sequence is a Markov chain with start distribution s and transition matrix T[from, to]; workers
    answer each position by their confusion matrices. Everything is learned from the answers (Baum-Welch over all
    sequences, variational by default), for any number of sequences of any length, with answers and positions missing.

    On real data a worker's mistakes along a sequence are one decision, not many, and a full Markov chain then believes
    them too much. So the chain has a coupling :math:`\lambda`, with factors
    :math:`(T[j, k] / \pi_k)^\lambda \pi_k`: 1 is the hidden Markov model of the paper, 0 treats positions as
    independent (up to forbidden transitions). By default it is chosen by hidden answers, without any truth.

    Parameters
    ----------
    coupling : "learn" or float
        How strongly neighbours are coupled, in [0, 1]. "learn" hides all answers of some (worker, sequence) pairs, fits
        each of 0, 0.1, 0.25, 0.5 and 1 to the rest, and takes the smallest whose prediction of what was hidden is
        within one (paired) standard error of the best. The fit with it starts from the votes, and once more from the
        fits with weaker couplings, as in that trial; the higher objective is kept (below 1 it is a guide, not a
        likelihood).
    transitions : {"free", "bio", "iob1", "bilou"} or boolean array
        Which label may follow which: anything; what the tag scheme allows, read from the label names ("bio" is IOB2;
        "bioes" is "bilou" with other letters); or ``array[from, to]``. What is forbidden stays impossible through fit
        and decoding, and is only improbable in calibrated probabilities, which would be too sure otherwise. Workers may
        break the rules: their answers are just answers. With a scheme, O and what a span needs (B-X where only I-X was
        said) are added to the classes if nobody said them.
    decode : {"viterbi", "marginal"}
        Labels are the most probable sequence, or the most probable class of each position on its own. `posterior_`
        is there either way.
    workers, estimation, prior, smoothing, calibration, label_by, classifier
        As for `DawidSkene`. Medians are of each position on its own, whatever `decode` is.
    start, n_init, max_iter, tol, seed, callback
        As for `DawidSkene`. Start and transitions are smoothed as the prior is. ``start="moments"`` estimates T by
        moments too (Algorithm 2 of the paper).

    Attributes
    ----------
    labels_, posterior_, classes_, prior_, confusion_, trace_, n_iter_, converged_, starts_
        As for `DawidSkene`, and so are all that are not listed here. The trace never falls at coupling 1, nor at 0
        without forbidden transitions (unless a smoothing below 0.002 makes steps that hardly ever happen impossible to
        variational Bayes); in between the chain is tempered, and the trace is only a guide.
    transition_ : ndarray of shape (n_classes, n_classes)
        ``transition_[from, to]``; rows sum to 1. The paper's T is the transpose.
    initial_ : ndarray of shape (n_classes,)
        Distribution of the first position.
    coupling_ : float
        The coupling used.
    coupling_scores_ : list of CouplingScore
        How well each coupling predicted hidden answers; empty if the coupling was given.

    Examples
    --------
    >>> import consilience as cs
    >>> crowd = cs.simulate.sequences(200, length=20, n_workers=6, n_classes=3, seed=3)
    >>> model = cs.HiddenMarkov().fit(crowd.responses)
    >>> model.coupling_
    1.0
    >>> cs.metrics.accuracy(crowd.truth, model.labels_) > cs.metrics.accuracy(
    ...     crowd.truth, cs.DawidSkene().fit(crowd.responses).labels_
    ... )
    True
    """

    coupling_ = Found(lambda found: cast(float, found.coupling), "How far the chain is believed.")
    coupling_scores_ = Found(lambda found: found.coupling_scores, "How well each coupling predicted hidden answers.")
    transition_ = Found(lambda found: chain_of(found).transition, "Transition matrix [from, to].")
    initial_ = Found(lambda found: chain_of(found).initial, "Distribution of the first position.")

    coupling: str | float

    def __init__(
        self,
        *,
        coupling: str | float = "learn",
        transitions: object = "free",
        decode: str = "viterbi",
        workers: str = "confusion",
        estimation: str = "variational",
        prior: object = "learn",
        smoothing: object = "learn",
        calibration: str | float = "hidden answers",
        classifier: object = None,
        label_by: str = "mode",
        start: object = "majority",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        seed: int = 0,
        callback: Callable[[Progress], object] | None = None,
    ) -> None:
        self._store(locals())

    def recipe(self) -> ChainRecipe:
        """Return the parameters as they stand, and how they are followed."""
        return ChainRecipe(**self.get_params())

    def explain_coupling(self) -> str:
        """Say in words how strongly neighbouring labels are coupled, and why."""
        found = self.result_
        if not found.coupling_scores:
            why = "it was given"
            if self.coupling == "learn":
                alone = "all answers are one worker's about one sequence"
                why = "it is that of the first batch" if found.n_batches > 1 else alone
            return f"Coupling {self.coupling_:g}: {why}."
        meaning = {0.0: "neighbouring labels tell nothing that the answers do not", 1.0: "the Markov chain fits"}
        words = meaning.get(self.coupling_, "neighbouring labels help, but a worker's errors come in runs")
        first = " It was chosen by the first batch of answers, and kept since." if found.n_batches > 1 else ""
        return explain_choice(self.coupling_, found.coupling_scores, words) + describe_age(found) + first

    def _describe(self) -> str:
        return f"{super()._describe()}; coupling {self.coupling_:g}"
