"""`consilience.chart`: one of the report's charts, for notebooks, slides and papers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import ParameterError, parameter_error
from . import answers, sequences, workers
from .charts import Chart, import_converter
from .confusions import draw_confusion
from .subject import Subject
from .write import gather


class Kind(NamedTuple):
    """How to draw a chart, and why there may be none."""

    draw: Callable[[Subject], Chart | None]
    lack: str


def _draw_answers(title: str) -> Callable[[Subject], Chart | None]:
    return lambda subject: next((each for each in answers.draw_answers(subject).charts if each.title == title), None)


def _draw_transitions(subject: Subject) -> Chart | None:
    found = sequences.describe_chain(subject)
    return None if found is None else found[1]


CHARTS = {
    "workers": Kind(lambda subject: workers.draw_workers(workers.tabulate(subject)), "no worker has an answer"),
    "confusion": Kind(draw_confusion, "there is only one class"),
    "confidence": Kind(answers.draw_confidence, ""),
    "classes": Kind(answers.draw_classes, ""),
    "agreement": Kind(answers.draw_agreement, "no item has two answers"),
    "answers_per_item": Kind(_draw_answers("Answers per item"), "all items have the same number of answers"),
    "answers_per_worker": Kind(_draw_answers("Answers per worker"), "all workers gave the same number of answers"),
    "reliability": Kind(
        answers.draw_by_gold,
        f"it needs {answers.LEAST_KNOWN} known labels that were drawn at random, and a fit without features",
    ),
    "transitions": Kind(_draw_transitions, "only those of HiddenMarkov have it"),
}


def chart(model: Any, name: str = "workers") -> Chart:
    """Return one of the charts of the report.

    A notebook shows it. `Chart.save` writes it to a file, `Chart.spec` is its specification in Vega-Lite, and
    `Chart.rows` are the figures behind it.

    Parameters
    ----------
    model : Model
        A fitted model, with its answers.
    name : str
        "workers": the accuracy of the workers. "confusion": what the crowd says about items of each class.
        "confidence": how sure the labels are. "classes": how frequent classes are in answers and labels. "agreement":
        how many workers share the most frequent answer. "answers_per_item", "answers_per_worker". "reliability": how
        often labels of each confidence are right, by known labels. "transitions": which label follows which, of a
        `HiddenMarkov`.

    Returns
    -------
    Chart

    Examples
    --------
    >>> import consilience as cs
    >>> fused = cs.DawidSkene().fit(cs.simulate.independent(200, n_workers=5, seed=1).responses)
    >>> chart = cs.chart(fused, "workers")
    >>> print(chart.title)
    Accuracy of the workers, with 95% intervals
    >>> chart.rows[0]
    ('0', '71.0%', '63.2% to 79.4%')
    """
    if not isinstance(name, str) or name not in CHARTS:
        raise parameter_error("name", "chart", f"one of {', '.join(map(repr, CHARTS))}", name)
    import_converter()
    found = CHARTS[name].draw(gather(model))
    if found is None:
        raise ParameterError(f"This model has no chart {name!r}: {CHARTS[name].lack}.", keyword="name")
    return found
