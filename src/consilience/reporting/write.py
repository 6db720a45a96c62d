"""`consilience.report`: one HTML page about a fitted model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import to_path
from ..data.gold import match_gold
from ..errors import ParameterError, Sentence, parameter_error, quietly
from ..formats.reading import open_path
from ..formats.writing import replace_file
from ..models.base import Model
from ..models.inputs import as_responses
from ..models.latent import LatentModel
from . import answers, items, overview, sequences, workers
from .charts import import_converter
from .content import find_content
from .page import import_jinja, render
from .subject import Subject


def report(
    model: Any,
    path: str | os.PathLike[str],
    content: Any = None,
    *,
    responses: Any = None,
    graph: Any = None,
    gold: Any = None,
    title: str | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> Path:
    """Write one HTML page about a fitted model: whether to trust the labels, whom to talk to, what to look at.

    The page needs no network and no other file. It holds sums over the data, and some items, workers and answers as
    examples; see the user guide for what it contains before you send it to others.

    Parameters
    ----------
    model : Model
        A fitted model, best one that `consilience.fuse` returned: it was compared with majority vote.
    path : str or path
        The file to write.
    content : dict, Series, table or path, optional
        What the items look like: a text, or the path of a picture, which is embedded small. {item: text}, for sequences
        {(sequence, position): text}; or a table with the items and a column of content.
    responses : Responses, Spans or table
        The answers that the model was fitted to.
    graph : Graph, optional
        The graph that it was fitted with.
    gold : dict, Series, table or path, optional
        Known labels that it was fitted with.
    title : str, optional
        What the page is called: usually the name of the file of answers.
    folder : str or path, optional
        Where relative paths of pictures start. Default: the current folder.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> import consilience as cs, tempfile
    >>> crowd = cs.simulate.independent(n_items=200, n_workers=12, seed=1).responses
    >>> fused = cs.fuse(crowd)
    >>> path = cs.report(fused, f"{tempfile.mkdtemp()}/report.html", responses=crowd)
    >>> path.stat().st_size < 1_000_000
    True
    """
    target = to_path("path", "report", path)
    page = make_page(gather(model, responses, content, graph, gold, folder), title)
    with replace_file(target) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return Path(target)


def check_installed() -> None:
    """Raise the error that a report would meet if what it needs is not installed."""
    import_jinja()
    import_converter()


def gather(model: Any, responses: Any, content: Any, graph: Any, gold: Any, folder: Any) -> Subject:
    """Return what the report is about, after a check that all belongs together."""
    if not isinstance(model, Model):
        raise parameter_error("model", "report", "a fitted model", model)
    model._check_fitted()
    if responses is None:
        raise ParameterError(
            "The report needs the answers that the model was fitted to.",
            Sentence("Give them with {responses}."),
            keyword="responses",
        )
    r = as_responses(responses).with_classes(model.classes_)
    if r.n_items != len(model._label_codes) or not same(r.workers, model.workers_) or not same(r.labels, model.answer_labels_):
        raise ParameterError("These are not the answers that the model was fitted to.", keyword="responses")
    with quietly():
        known = match_gold(open_path(gold), r, r.classes)
    shown = None if content is None else find_content(content, r, folder)
    return Subject(model, r, known, graph, shown)


def same(found: Any, expected: Any) -> bool:
    """Tell whether two arrays of ids are the same."""
    return len(found) == len(expected) and bool(np.all(found == expected))


def make_page(subject: Subject, title: str | None = None) -> str:
    """Return the page as HTML."""
    from .. import __version__

    model = subject.model
    table = workers.tabulate(subject)
    shown = workers.choose_workers(table)
    confusions = workers.gather_confusions(subject, shown)
    review = items.prepare_review(subject)
    chain = sequences.describe_chain(subject)
    compared = getattr(model, "comparison_", None)
    return render(
        title=title or "Fused labels",
        version=__version__,
        verdict=overview.judge(subject),
        figures=overview.list_figures(subject),
        facts=overview.list_facts(subject),
        notes=overview.list_notes(subject, table),
        answers=answers.draw_answers(subject),
        class_chart=answers.draw_classes(subject),
        agreement=None if compared is None else overview.to_sentence(compared.describe_agreement()),
        agreement_chart=answers.draw_agreement(subject),
        workers=[workers.to_row(row) for row in shown],
        n_workers=len(table),
        n_heat=len(confusions.counts),
        workers_chart=workers.draw_workers(table),
        confusion_chart=answers.draw_confusion(subject),
        confidence_chart=answers.draw_confidence(subject),
        kept=answers.list_kept(subject),
        calibration=model.explain_calibration() if isinstance(model, LatentModel) else None,
        features=model.explain_features() if getattr(model, "feature_findings_", None) is not None else None,
        reliability=answers.judge_by_gold(subject),
        comparison=None if compared is None else overview.to_sentence(compared.describe_test()),
        difference=items.compare_labels(subject),
        has_sequences=subject.responses.sequences is not None,
        chain=chain,
        examples=sequences.list_examples(subject),
        network=sequences.describe_network(subject),
        uncertain=items.list_uncertain(subject),
        review=review.cards,
        one_class=len(subject.classes) < 2,
        data={"review": review.data, "confusions": confusions._asdict()},
    )
