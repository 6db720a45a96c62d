"""Models that learn from a stream of answers, batch by batch; see `consilience.results.batches` for what is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..answers.columns import to_column
from ..answers.gold import match_gold
from ..answers.joining import grow
from ..answers.responses import Responses
from ..answers.vocabulary import lookup
from ..arguments import is_number
from ..checks.copy_groups import count_once, number_groups
from ..engines import open_engine
from ..errors import NotFittedError, ParameterError, Python, Sentence, parameter_error
from ..formats.reading import open_paths
from ..inference.em import Problem, expect_from_votes, maximise
from ..inference.statistics import Statistics
from ..inference.structures.base import AnyStructure, Summary
from ..inference.workers.learned import make_pair
from ..kernels.types import Floats
from ..models.inputs import as_responses
from ..models.latent import LatentModel, Plan, Starts
from ..models.predicting import part_of
from ..specs import ArraySpec, is_whole
from ..storage.answers import StoredResponses
from .batches import Past, specs_of_past


class StreamingModel(LatentModel):
    """A model whose items can be cut into batches."""

    #: What the structure counts.
    _summary_type: ClassVar[type[Summary]] = Summary
    _scalars: ClassVar[Mapping[str, Callable[[Any], bool]]] = {**LatentModel._scalars, "_n_batches": is_whole}

    def partial_fit(
        self, responses: Any, gold: Any = None, engine: Any = None, *, half_life: float | None = None
    ) -> Self:
        """Learn from one more batch of answers, without those of earlier batches.

        What earlier batches taught about workers and classes counts as if their answers were fitted again, at the
        labels that they got then. Answers are not kept: results per item (`labels_`, `posterior_`, `to_frame`) are
        those of the last batch, and memory depends on the number of workers, labels and classes alone. What is said
        about workers and classes (`confusion_`, `prior_`, `worker_report`) is about all batches. `partial_fit` also
        goes on from `fit`, and from a model that was loaded. `fit` starts anew.

        Workers, labels and classes may be new in any batch. All answers to an item, and all positions of a sequence,
        should be in the same batch. Workers who copy each other are not looked for.

        Parameters
        ----------
        responses, gold, engine
            As for `fit`: one batch, and known labels of its items.
        half_life : float, optional
            After how many answers of a worker what was seen of them counts half, so that their matrix can drift. By
            default nothing is forgotten. Class shares and transitions never are, except with ``abstain="answer"``,
            where the silence about an item is an answer too.

        Returns
        -------
        self

        Examples
        --------
        >>> import consilience as cs
        >>> model = cs.DawidSkene()
        >>> for day in range(3):
        ...     answers = {
        ...         "item": [1, 1, 1, 2, 2, 2],
        ...         "worker": ["ann", "bob", "eve"] * 2,
        ...         "label": ["cat", "cat", "dog", "dog", "dog", "dog"],
        ...     }
        ...     model = model.partial_fit(answers)
        >>> model.labels_.tolist(), model.worker_report()["answers"].to_pylist()
        (['cat', 'dog'], [6, 6, 6])
        """
        self._check_parameters()
        if half_life is not None and not (is_number(half_life) and 0 < half_life < np.inf):
            raise parameter_error("half_life", "partial_fit", "a number of answers > 0, or None", half_life)
        if isinstance(responses, StoredResponses):
            raise ParameterError(
                "partial_fit takes one batch of answers in memory, and these are on disk.",
                Sentence("Fit them all with {fit}.", fit=Python("fit")),
                "Or read each batch with read_responses.",
                keyword="responses",
            )
        work = copy(self)  # a batch that is interrupted leaves the model as it was
        if self._is_fitted():
            n_batches = max(self._n_batches, 1)  # what `fit` learned from is the first one
            work._go_on(responses, gold, engine, half_life)
        else:
            n_batches = 0
            work._begin(responses, gold, engine)
        work._answers, work._n_batches = None, n_batches + 1
        self.__dict__ = work.__dict__
        return self

    def _begin(self, responses: Any, gold: Any, engine: Any) -> None:
        """Fit the first batch."""
        r = self._prepare(as_responses(responses))
        known = match_gold(open_paths(gold), r, r.classes)
        self._check_size(r, None)
        with open_engine(engine) as opened:
            plan = self._plan(r, None, known, opened)
            problem = plan.problem
            nothing = np.zeros((problem.workers.n_rows, r.n_classes))
            earlier = Statistics(nothing, problem.structure.one_of_each(r.label_of_class >= 0))
            plan = plan._replace(problem=replace(problem, earlier=earlier))
            self._finish(r, plan, self._run(plan), known, None)
        self._copies, self.copies_count_once_ = [], False
        self._gold, self._graph, self._stored = known, None, None

    def _go_on(self, responses: Any, gold: Any, engine: Any, half_life: float | None) -> None:
        """Fit one more batch."""
        past = self._need_past()
        r = self._check_answers(self._read(responses))
        self._check_silence(r)
        r = self._prepare(grow(r, self.workers_, self.answer_labels_, self.classes_))
        known = match_gold(open_paths(gold), r, r.classes)
        self._check_size(r, None)
        worker = lookup(r.workers, to_column(self.workers_))
        copies = [worker[group].tolist() for group in self._copies]
        used = count_once(r, number_groups(copies, r.n_workers)) if self.copies_count_once_ else r
        n_answers = np.zeros(r.n_workers, np.int64)
        n_answers[worker] = self._n_answers
        with open_engine(engine) as opened:
            problem = self._pose(used, self._structure_of_batch(used), None, known, opened)
            past, earlier = self._carry_over(past, r, problem, keep_share(r, half_life))
            problem = replace(problem, earlier=earlier)
            plan = Plan(problem, self._find_starts(used, problem), self._notes_of_batch(), past)
            self._finish(used, plan, self._run(plan), known, None)
        self._n_answers = n_answers + self._n_answers
        self._copies, self._gold, self._graph, self._stored = copies, known, None, None

    def _carry_over(self, past: Past, r: Responses, problem: Problem, kept: Floats) -> tuple[Past, Statistics]:
        """Return what earlier batches teach about the workers, labels and classes of this one.

        A share `kept` (M,) of what was seen of each worker is not forgotten.
        """
        worker, label, klass = (
            lookup(new, to_column(old))
            for new, old in (
                (r.workers, self.workers_),
                (r.labels, self.answer_labels_),
                (r.classes, self.classes_),
            )
        )
        past = past.embed(worker, r.n_workers, klass, r.n_classes).forget(kept, r.silence_counts)
        counts = problem.workers.embed_counts(self._counts, self._further, worker, (label, klass))
        counts *= np.repeat(kept, len(counts) // r.n_workers)[:, None]
        summary = past.summary + problem.structure.one_of_each(self._find_new_classes(r))
        return past, Statistics(drop_tiny(counts, problem), summary)

    def _find_new_classes(self, r: Responses) -> NDArray[np.bool_]:
        """Tell which classes no label has named before."""
        named = self.classes_[lookup(self.answer_labels_, to_column(self.classes_)) >= 0]
        return (r.label_of_class >= 0) & (lookup(named, to_column(r.classes)) < 0)

    def _need_past(self) -> Past:
        """Return what is kept of earlier batches, or say why there is nothing."""
        if self._totals is not None:
            raise ParameterError(
                "This model was fitted to answers on disk, which cannot be followed by a batch.",
                Sentence("Fit all answers with {fit}.", fit=Python("fit")),
                keyword="responses",
            )
        if self.feature_findings_ is not None and self.feature_findings_.used:
            raise ParameterError(
                "This model was fitted with features, which batches do not have.",
                "Start from a model without them.",
                keyword="features",
            )
        if self._workers_fitted != self.workers:
            raise ParameterError(
                f"This model was fitted with workers={self._workers_fitted!r}, whose counts are of another kind than "
                f"those of {self.workers!r}.",
                Sentence("Keep {workers}.", workers=self._workers_fitted),
                keyword="workers",
            )
        if self._due is not None:
            _ = self._worker_intervals  # which an update works out later, with what a batch needs
        if self._past is None:
            raise NotFittedError(
                "The file of this model is of an earlier release, and does not hold what further batches need.",
                "Fit the model again.",
            )
        return self._past

    def _find_starts(self, r: Responses, problem: Problem) -> Starts:
        """Return where to start: at what earlier batches teach.

        If there are new classes, or more answers than before, votes are another start.
        """
        assert problem.earlier is not None
        prior = problem.prior
        if prior.parts is not None and self.smoothing_ is not None and min(self.smoothing_) > 0:
            prior = make_pair(prior, prior.parts, self.smoothing_)
        starts = [("earlier", maximise(problem, problem.earlier, prior))]
        if self._find_new_classes(r).any() or r.weights().sum() > problem.earlier.counts.sum():
            starts.append(("majority", maximise(problem, expect_from_votes(problem), prior)))
        return starts

    def _structure_of_batch(self, r: Responses) -> AnyStructure:
        """Return the structure for a batch that is not the first."""
        return self._make_structure(r)

    def _notes_of_batch(self) -> dict[str, Any]:
        """Return attributes of the model that were found before the first batch was fitted."""
        return {}

    def _describe(self) -> str:
        batches = f"; the last of {self._n_batches:,} batches" if self._n_batches > 1 else ""
        return super()._describe() + batches

    def _state(self) -> dict[str, NDArray[Any]]:
        state = super()._state()  # which may work out intervals, and then there is a past
        past = {} if self._past is None else self._past.state()
        return state | {f"past {name}": array for name, array in past.items()}

    def _specs(self, names: Iterable[str]) -> dict[str, ArraySpec]:
        there = any(name.startswith("past ") for name in names)
        past = specs_of_past(self._summary_type) if there else {}
        return super()._specs(names) | {f"past {name}": spec for name, spec in past.items()}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(arrays)
        past = part_of(arrays, "past ")
        self._past = Past.restore(self._summary_type, past) if past else None


def keep_share(r: Responses, half_life: float | None) -> Floats:
    """Return which share of what was seen of each worker is kept before a batch, (M,)."""
    if half_life is None:
        return np.ones(r.n_workers)
    n_new = np.full(r.n_workers, r.n_items) if r.silence_counts else r.votes_per_worker()
    return np.asarray(np.exp2(-n_new / half_life))


def drop_tiny(counts: Floats, problem: Problem) -> Floats:
    """Return counts without those that the M-step would take for 0: their logarithm would be minus infinity."""
    from ..kernels.answers import SMALLEST

    return counts if problem.weighted else np.where(counts < SMALLEST * problem.n_responses, 0.0, counts)
