"""`consilience.report`: one HTML page about a fitted model."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import to_path
from ..checks.judging import list_findings
from ..errors import parameter_error, to_sentence
from ..formats.writing import replace_file
from ..models.base import Model
from ..models.latent import LatentModel
from ..models.majority_vote import MajorityVote
from ..results.parts import view_sample
from . import answers, items, overview, sequences, workers
from .again import Given, plan_next_run
from .changes import find_changes
from .charts import import_converter
from .confusions import draw_confusion
from .content import find_content, show_item
from .page import import_jinja, render
from .subject import Subject, spell


def report(model: Any, path: str | os.PathLike[str], content: Any = None) -> Path:
    """Write one HTML page about a fitted model: whether to trust the labels, whom to talk to, what to look at.

    The page needs no network and no other file. It holds sums over the data, and some items, workers and answers as
    examples; see the user guide for what it contains before you send it to others.

    Parameters
    ----------
    model : Model
        A fitted model, with its answers. Best is one that `consilience.fuse` returned: it was compared with majority
        vote.
    path : str or path
        The file to write.
    content : dict, Series, table or path, optional
        What the items look like: a text, or the path of a picture, which is embedded small (this needs pillow). {item:
        text}, for sequences {(sequence, position): text}; or a table with the items and a column of content. Relative
        paths of pictures start in the current folder.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> import consilience as cs, tempfile
    >>> fused = cs.fuse(cs.simulate.independent(n_items=200, n_workers=12, seed=1).responses)
    >>> cs.report(fused, f"{tempfile.mkdtemp()}/report.html").name
    'report.html'
    """
    return write_page(model, to_path("path", "report", path), content)


def write_page(
    model: Any,
    path: str,
    content: Any = None,
    title: str = "Fused labels",
    folder: str = "",
    given: Given | None = None,
) -> Path:
    """Write the page.

    Parameters
    ----------
    model, path, content
        As for `report`.
    title : str
        What the page is called: usually the name of the file of answers.
    folder : str
        Where relative paths of pictures start.
    given : Given, optional
        The arguments of the command that fused the answers: the page says how to repeat it with new labels.
    """
    page = make_page(gather(model, content, folder), title, given)
    with replace_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return Path(path)


def check_installed() -> None:
    """Raise the error that a report would meet if what it needs is not installed."""
    import_jinja()
    import_converter()


def gather(model: Any, content: Any = None, folder: str = "") -> Subject:
    """Return what the report is about."""
    if not isinstance(model, Model):
        raise parameter_error("model", "report", "a fitted model", model)
    found = model.fusion_
    findings, n_labels = list_findings(model.recipe(), found), found.labelled.n_items
    if found.source is not None:
        found = view_sample(found)
        model = model.fresh().adopt(found)
    r = found.answers.with_classes(found.names.classes)
    shown = None
    if content is not None:
        shown = find_content(content, r, folder)
    elif found.task.show(np.arange(1)) is not None:
        shown = partial(show_item, found.task)
    return Subject(model, r, findings, found.given.gold, found.given.graph, shown, n_labels)


def make_page(subject: Subject, title: str, given: Given | None = None) -> str:
    """Return the page as HTML."""
    model = subject.model
    table = workers.tabulate(subject)
    shown = workers.choose_workers(table)
    confusions = workers.gather_confusions(subject, shown)
    review = items.prepare_review(subject)
    has_content = subject.content is not None
    chain = sequences.describe_chain(subject)
    compared = getattr(model, "comparison_", None)
    verdict = overview.judge(subject)
    return render(
        title=spell(title),
        verdict=verdict,
        spans=subject.task.count(model.fusion_, verdict.counts),
        figures=overview.list_figures(subject),
        facts=overview.list_facts(subject),
        notes=overview.list_notes(subject),
        changes=None if subject.is_sample else find_changes(subject),
        answers=answers.draw_answers(subject),
        class_chart=answers.draw_classes(subject),
        agreement=None if compared is None else to_sentence(compared.describe_agreement()),
        agreement_chart=answers.draw_agreement(subject),
        workers=[workers.to_row(row) for row in shown],
        remarks=workers.list_meanings(shown),
        n_workers=len(table),
        n_heat=len(confusions.counts),
        workers_chart=workers.draw_workers(table),
        confusion_chart=draw_confusion(subject),
        confidence_chart=answers.draw_confidence(subject),
        kept=answers.list_kept(subject) if verdict.counts else [],
        calibration=model.explain_calibration() if isinstance(model, LatentModel) else None,
        features=model.explain_features() if getattr(model, "feature_findings_", None) is not None else None,
        reliability=answers.draw_by_gold(subject),
        comparison=None if compared is None else to_sentence(compared.describe_test()),
        difference=None if isinstance(model, MajorityVote) else items.compare_labels(subject),
        has_sequences=subject.responses.sequences is not None,
        chain=chain,
        examples=sequences.list_examples(subject),
        examples_differ=bool(subject.differs.any()),
        network=sequences.describe_network(subject),
        uncertain=items.list_uncertain(subject),
        describe_lead=items.describe_lead,
        review=review.cards,
        n_known=review.n_known,
        holds_known=review.holds_known,
        n_nameless=review.n_nameless,
        again=plan_next_run(given, has_content, subject.task.argument, review.holds_known),
        one_class=len(subject.classes) < 2,
        data={"review": review.data, "confusions": confusions._asdict()},
    )
