"""Models with a hidden truth: what their calibration and their features tell, and batches of answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from ..answers.previews import build_report
from ..arguments import is_whole as is_whole_number
from ..errors import NotFittedError, parameter_error, plural
from ..inference.classifiers import EstimatorJudge, LinearJudge, as_pipeline
from ..inference.recipes import LatentRecipe
from ..kernels import Floats
from ..results.new_answers import fit_first, fit_next, need_guidance, need_guide
from ..results.result import Calibrated, Result
from ..results.worker_report import list_disagreements, report_classifier
from .base import Found, open_posed
from .fitted import FittedModel


def calibrated_of(found: Result) -> Calibrated:
    """Return how probabilities were calibrated."""
    assert found.calibrated is not None
    return found.calibrated


def further_of(found: Result, name: str) -> Floats:
    """Return an array that only some worker models have."""
    if name not in found.learned.further:
        raise NotFittedError(f"The workers of this {found.model} are {found.learned.kind!r}, and have no {name}.")
    return found.learned.further[name]


class LatentModel(FittedModel):
    """A hidden label per item, a structure over the labels, and workers who answer as their worker model says."""

    calibration: object

    uncalibrated_posterior_ = Found(lambda found: found.labels.uncalibrated, "Probabilities before calibration.")
    starts_ = Found(lambda found: dict(found.course.starts), "The trace of every start.")
    smoothing_ = Found(lambda found: found.course.smoothing, "The pair of pseudo-counts that was used.")
    calibration_ = Found(lambda found: calibrated_of(found).found, "The power, and what it was chosen by.")
    power_ = Found(lambda found: calibrated_of(found).found.power, "The power that posteriors were raised to.")
    sequential_confusion_ = Found(
        lambda found: further_of(found, "sequential_confusion_"),
        "Confusion by a worker's previous answer, of sequential workers.",
    )
    temperatures_ = Found(
        lambda found: further_of(found, "temperatures_"),
        "What soft votes of each worker are multiplied by: below 1 where the worker is too sure.",
    )
    class_bias_ = Found(
        lambda found: further_of(found, "class_bias_"),
        "What is added to the soft votes of each worker for each class.",
    )
    feature_findings_ = Found(
        lambda found: None if found.guidance is None else found.guidance.findings, "What features were found to say."
    )
    feature_names_ = Found(
        lambda found: None if found.guidance is None else found.guidance.names, "The names of features in a table."
    )

    def recipe(self) -> LatentRecipe:
        """Return the parameters as they stand, and how they are followed."""
        raise NotImplementedError

    def explain_calibration(self) -> str:
        """Say in words how the probabilities were calibrated."""
        found = self.result_
        calibration = calibrated_of(found).found
        if calibration.given and isinstance(self.calibration, str) and self.calibration == "none":
            return "Probabilities are those of the fit, without correction, as was asked for."
        # A model from `fuse` finds it at each update.
        is_old = not calibration.given and not found.by_fuse
        return calibration.describe() + (describe_age(found) if is_old else "")

    @property
    def classifier_(self) -> Any:
        """The classifier, trained on all items; None if features have no say."""
        found = need_guidance(self.result_)
        if not found.findings.used:
            return None
        judge = need_guide(found).judge
        if isinstance(judge, EstimatorJudge):
            return judge.estimator
        assert isinstance(judge, LinearJudge)
        return as_pipeline(judge, self.classes_, found.findings.strength or 1.0, found.names)

    def explain_features(self) -> str:
        """Say in words what the features tell about the labels."""
        return need_guidance(self.result_).findings.describe()

    def classifier_report(self) -> Any:
        """Return a table with one row: the classifier, described as `worker_report` describes a worker.

        Its answers are the labels that it gives, out of fold, to items that have answers. They are compared with the
        fused labels, as those of workers are. There are no intervals. If features are not used, the table has no row.
        """
        found = self.result_
        return build_report(report_classifier(need_guidance(found), found.prior, found.names.classes), found.backend)

    def disagreements(self, n: int | None = None) -> Any:
        """Return a table of the items for which classifier and crowd call for different labels, the clearest first.

        At least one of the two is wrong: these are items to look at. Columns: item (or sequence and position); label,
        the fused one; crowd_label and crowd_confidence, by answers alone; classifier_label and classifier_confidence,
        by features alone, out of fold. Neither confidence is calibrated. Items are in the order of their product. Those
        without answers are left out, and those whose label is known. If features are not used, the table has no rows.

        Parameters
        ----------
        n : int, optional
            The most rows to return. Default: all.
        """
        found = self.result_
        guidance = need_guidance(found)
        if n is not None and not (is_whole_number(n) and n >= 0):
            raise parameter_error("n", "disagreements", "a whole number >= 0", n)
        return build_report(list_disagreements(guidance, found.labels, n), found.backend)


class StreamingModel(LatentModel):
    """A model whose items can be cut into batches."""

    def partial_fit(self, responses: object, gold: object = None, engine: object = None) -> Self:
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
        recipe = self.recipe()
        recipe.check()
        if not self.is_fitted:
            task, answers = open_posed(responses)
            return self.adopt(replace(fit_first(recipe, answers, gold, engine), task=task))
        task, answers = self.read(responses)
        return self.adopt(replace(fit_next(recipe, self.result_, answers, gold, engine), task=task))

    def _describe(self) -> str:
        n_batches = self.result_.n_batches
        return super()._describe() + (f"; the last of {n_batches:,} batches" if n_batches > 1 else "")


def describe_age(found: Result) -> str:
    """Return in words how many answers have come since power and coupling were found; empty if none have."""
    if not found.n_changes:
        return ""
    return f" This was found before the last {plural(found.n_changes, 'answer')} came or changed."
