"""`consilience.report`: one HTML page about a fitted model; `consilience.chart`: one of its charts.

The page is a template with everything in it, filled by jinja2. No other file imports that. Whatever comes from the data
is escaped by jinja2, or is JSON whose signs ``<``, ``>`` and ``&`` are escaped. The page may load nothing, and runs and
styles nothing but what is in it: its content security policy has the hashes of the one script and the one style sheet.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping
from copy import copy
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from ..arguments import to_path
from ..documents.charts import Chart, Plain, import_converter, not_installed
from ..errors import ParameterError, parameter_error
from ..formats.writing import replace_file
from ..models.base import Model
from ..models.questions import Questions
from ..rankings.bradley_terry import BradleyTerry
from . import CHARTS, RANKING_CHARTS, RANKING_SECTIONS, SECTIONS, Section
from .overview import Header, describe_all
from .questions import describe_questions
from .ranking import describe_ranking
from .subject import Command, Subject, find_content, show_by_task, to_name

TEMPLATES = Path(__file__).parent / "templates"
# Characters that control a terminal or an editor in which the page is looked at; a tab and ends of lines do not.
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
LONGEST_TITLE = 200


def report(
    model: Model | BradleyTerry,
    path: str | os.PathLike[str],
    content: object = None,
    *,
    source_kind: str | None = None,
) -> Path:
    """Write one HTML page about a fitted model: whether to trust the labels, whom to talk to, what to look at.

    The page needs no network and no other file. It holds sums over the data, and some items, workers and answers as
    examples; see the user guide for what it contains before you send it to others.

    Parameters
    ----------
    model : Model or BradleyTerry
        A fitted model, with its answers. Best is one that `consilience.fuse` returned: it was compared with majority
        vote. Or a ranking, for which there is no other parameter.
    path : str or path
        The file to write.
    content : dict, Series, table or path, optional
        What the items look like: a text, or the path of a picture, which is embedded small (this needs pillow). {item:
        text}, for sequences {(sequence, position): text}; or a table with the items and a column of content. Relative
        paths of pictures start in the current folder.
    source_kind : {"people", "functions", "models"}, optional
        Who gives the answers; the page is worded for them. Default: as `consilience.fuse` recognised it.

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
    if isinstance(model, BradleyTerry):
        if content is not None or source_kind is not None:
            raise ParameterError("A ranking has no items to show.", "Leave out content and source_kind.")
        return write_page(model, to_path("path", "report", path), title="Ranking")
    if isinstance(model, Questions):
        return write_questions(model, to_path("path", "report", path))
    if source_kind is not None:
        model = copy(model).name_source(source_kind)
    return write_page(model, to_path("path", "report", path), content)


def chart(model: Model | BradleyTerry, name: str | None = None) -> Chart:
    """Return one of the charts of the report.

    A notebook shows it. `Chart.save` writes it to a file, `Chart.spec` is its specification in Vega-Lite, and
    `Chart.rows` are the figures behind it.

    Parameters
    ----------
    model : Model or BradleyTerry
        A fitted model, with its answers.
    name : str, optional
        Of a ranking, "ranking" (the default): scores of the candidates; "wins": the probability that each beats each
        other; "judges": discrimination and position bias. Of other models, "workers" (the default): the accuracy of
        the workers. "raters": the bias of raters on a scale. "confusion": what the crowd
        says about items of each class. "confidence": how sure the labels are. "classes": how frequent classes are in
        answers and labels. "agreement": how many workers share the most frequent answer. "answers_per_item",
        "answers_per_worker". "reliability": how often labels of each confidence are right, by known labels.
        "transitions": which label follows which, of a `HiddenMarkov`.

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
    ('3', '11.3%', '6.0% to 16.8%')
    """
    charts = RANKING_CHARTS if isinstance(model, BradleyTerry) else CHARTS
    name = next(iter(charts)) if name is None else name
    if not isinstance(name, str) or name not in charts:
        raise parameter_error("name", "chart", f"one of {', '.join(map(repr, charts))}", name)
    import_converter()
    found = charts[name].draw(model if isinstance(model, BradleyTerry) else gather(model))
    if found is None:
        raise ParameterError(f"This model has no chart {name!r}: {charts[name].lack}.", keyword="name")
    return found


def write_page(
    model: Model | BradleyTerry,
    path: str,
    content: object = None,
    title: str = "Fused labels",
    folder: str = "",
    command: Command | None = None,
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
    command : Command, optional
        The command that fused the answers: the page says how to repeat it with new labels.
    """
    check_installed()
    if isinstance(model, BradleyTerry):
        page = make_page(model, title, RANKING_SECTIONS, describe_ranking(model))
    else:
        page = make_page(gather(model, content, folder, command), title)
    with replace_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return Path(path)


def write_questions(questions: Questions, path: str, title: str = "Fused labels") -> Path:
    """Write one page on several questions, with the report on each."""
    check_installed()
    subjects = {name: gather(model) for name, model in questions.items()}
    pages = {name: make_page(subject, name) for name, subject in subjects.items()}
    view = describe_questions(questions, subjects, pages)
    with replace_file(path) as temporary:
        temporary.write_text(
            render(template="questions", title=to_name(title, LONGEST_TITLE), view=view), encoding="utf-8"
        )
    return Path(path)


def check_installed() -> None:
    """Raise the error that a report would meet if what it needs is not installed."""
    import_templates()
    import_converter()


def gather(model: object, content: object = None, folder: str = "", command: Command | None = None) -> Subject:
    """Return what the report is about.

    Parameters
    ----------
    model, content
        As for `consilience.report`.
    folder : str
        Where relative paths of pictures start.
    command : Command, optional
        The command that fused the answers.
    """
    if not isinstance(model, Model):
        raise parameter_error("model", "report", "a fitted model", model)
    found = model.result_
    findings, n_labels = model.findings_, found.labels.n_items
    r = found.answers.with_classes(found.names.classes)
    shown = show_by_task(found.task) if content is None else find_content(content, r, folder)
    return Subject(model, r, findings, n_labels, shown, command)


def make_page(
    subject: Any, title: str, sections: Mapping[str, Section] = SECTIONS, header: Header | None = None
) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    subject : Subject or BradleyTerry
        What the page is about, as the sections take it.
    title : str
        What the page is called.
    sections : mapping, optional
        The sections, by their ids. Default: those of fused labels.
    header : Header, optional
        The first screen. Default: that of fused labels.
    """
    views = {name: section.describe(subject) for name, section in sections.items()}
    views = {name: view for name, view in views.items() if view is not None}
    data = dict[str, object]()
    for view in views.values():
        data |= getattr(view, "script", {})
    templates = {name: "plain" if isinstance(view, Plain) else name for name, view in views.items()}
    return render(
        title=to_name(title, LONGEST_TITLE),
        header=describe_all(subject) if header is None else header,
        sections={name: sections[name] for name in views},
        views=views,
        templates=templates,
        data=to_json(data),
    )


def import_templates() -> ModuleType:
    """Return jinja2, or raise the error that it is not installed."""
    try:
        import jinja2
    except ImportError as error:
        raise not_installed("jinja2") from error
    return jinja2


def render(template: str = "page", **context: object) -> str:
    """Return a page, filled with what its template names.

    All pages have the same policy: it also holds for the documents within a page.
    """
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    policy = (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    filled = load_templates().get_template(f"{template}.html.jinja")
    page: str = filled.render(**context, policy=policy, style=style, script=script)
    return page


@cache
def load_templates() -> Any:
    """Return the templates, which are compiled once however many pages there are."""
    jinja2 = import_templates()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=hide_controls,
    )
    environment.filters.update(percent=to_percent, sure=to_confidence, whole=to_whole)
    return environment


def hide_controls(value: object) -> object:
    """Return what a template shows: plain text without control characters; markup is our own."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", value) if type(value) is str else value


def digest(text: str) -> str:
    """Return what a content security policy calls a text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def to_json(data: object) -> str:
    r"""Return data as JSON that can stand in a script element.

    >>> to_json({"a": "</script>"})
    '{"a":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def to_percent(share: float | None, digits: int = 0) -> str:
    """Return a share in percent; nothing for one that is not known.

    >>> to_percent(0.123), to_percent(None)
    ('12%', '')
    """
    return "" if share is None else f"{share:.{digits}%}"


def to_confidence(share: float) -> str:
    """Return a probability in percent, without rounding it to certainty.

    >>> to_confidence(0.93), to_confidence(0.998), to_confidence(1.0)
    ('93%', '>99%', '100%')
    """
    return ">99%" if 0.995 <= share < 1 else f"{share:.0%}"


def to_whole(number: int) -> str:
    """Return a whole number.

    >>> to_whole(1200)
    '1,200'
    """
    return f"{number:,}"
