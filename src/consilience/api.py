"""What users call: one call from answers to labels, loading a model, and judging one without any truth.

`fuse` goes the way of a model's `fit`, and does more on it:

===================================  ===============================================================================
``cs.DawidSkene().fit(source)``      ``cs.fuse(source)``
===================================  ===============================================================================
`open_with_kind`: answers            `prepare`, for each question: answers, known labels, graph, blocked workers
                                     `choose_estimator`: the model that these call for
`fit_model`, where all copies count  `fit_model`, where each group of copies counts once
                                     `compare_fused`: with the vote, and with a shuffled graph
`complete`: the result               `complete`: the result, whose findings are warned of
===================================  ===============================================================================
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

from .answers.random_choices import hide_answers
from .comparisons.vote import renew_with_estimates
from .documents.charts import Chart, import_converter
from .documents.html import check_page, write_page
from .documents.page import CHARTS, describe_page
from .documents.view import View
from .engines import EngineLike, open_engine
from .errors import ParameterError, Sentence, parameter_error, warn
from .estimation.estimate import estimate_population
from .estimation.population import survey_table
from .formats.sources import COLUMNS, TAG_COLUMNS
from .inference.em import Progress
from .inference.estimator import list_defaults
from .inference.hidden_answers import HeldOutScore, score_hidden
from .inference.workers.rows import shrink_rows
from .models.base import Model, Standalone, name_source, restore
from .models.fusing import fuse_prepared, open_each
from .models.opening import open_gold_tables, open_with_kind
from .models.questions import Questions
from .numbers.measurement import Measurement
from .options import check, given, is_among, is_number, to_path
from .rankings.bradley_terry import BradleyTerry
from .rankings.comparisons import open_comparisons
from .results.fitting import align, fit_model, make_observations
from .results.saving import open_saved
from .results.worker_report import expect_counts

# Keywords of `fuse` that neither say how answers are read, nor are parameters of the model.
BESIDE = (
    *(
        "source",
        "graph",
        "gold",
        "model",
        "engine",
        "callback",
        "features",
        "item_prior",
        "teach",
        "block",
        "source_kind",
    ),
    "kind",
)


def fuse(
    source: Any,
    graph: Any = None,
    gold: Any = None,
    *,
    item: str | Sequence[str] | None = None,
    worker: str | None = None,
    label: str | Sequence[str] | None = None,
    sequence: str | Sequence[str] | None = None,
    position: str | None = None,
    weight: str | None = None,
    order: str | None = None,
    gold_column: str | None = None,
    ignore: str | Sequence[str] = (),
    format: str | None = None,
    separator: str | Mapping[str, str] | None = None,
    classes: Any = None,
    items: Any = None,
    ordered: bool | Mapping[str, bool] | None = None,
    positions: Any = None,
    kind: str | None = None,
    duplicates: str = "error",
    abstain: str = "ignore",
    background: object = None,
    normalise: bool = False,
    drop_missing: bool = False,
    rescale: bool = False,
    block: Any = None,
    features: Any = None,
    item_prior: Any = None,
    teach: str | bool = "auto",
    model: str | Model | Standalone[Any] = "auto",
    workers: str | None = None,
    estimation: str | None = None,
    prior: Any = None,
    smoothing: Any = None,
    calibration: str | float | None = None,
    label_by: str | None = None,
    start: Any = None,
    n_init: int | None = None,
    max_iter: int | None = None,
    tol: float | None = None,
    seed: int | None = None,
    coupling: str | float | None = None,
    transitions: Any = None,
    decode: str | None = None,
    inference: str | None = None,
    listeners: str | None = None,
    ties: str | None = None,
    average: str | None = None,
    scale: str | None = None,
    shrinkage: float | None = None,
    callback: Callable[[Progress], object] | None = None,
    engine: Any = None,
    source_kind: str | None = None,
) -> Any:
    """Fuse answers into labels with a model chosen by what is given, and compare the result with majority vote.

    Parameters
    ----------
    source : table, path, Answers, Tags, Spans or Masks
        The answers: a pandas, polars or pyarrow table, a dict of columns, or a file, glob or folder. A path may be that
        of anything that `read_answers`, `read_tags`, `read_spans` or `read_masks` can read. Answers are sets of tags
        if cells hold lists, or with ``separator=";"`` (see `Tags.from_frame`). If a file holds spans and answers about
        whole texts, the spans are fused, unless a column is named. Of `Spans` the known ones (`Spans.gold`) are
        used, unless `gold` is given; `Spans.without_gold` leaves them out. The pixels of `Masks` are linked to their
        neighbours by a graph. Of more than 30,000 pixels, a part shows whether to use it, and how strongly.
    graph : Graph, table, path, list of pairs, networkx graph or sparse matrix, optional
        How items hang together: a `Graph`, or edges from which one is made (a table or file with columns source and
        target, and perhaps weight, or a list of pairs of items).
    gold : dict, Series, table or path, or a list of these, optional
        Known labels. Of spans also `Spans` or a file of an annotation tool: its known spans, or those of its only
        worker; or a table of spans, with columns document, start, end and label. Of masks also `Masks` of one reader,
        or where they are. Of tags a dict {item: tags}, or a table with sets. Default: those that the answers come with
        (`Answers.gold`), if some items have one and others do not; a warning tells. False: none.
    item, worker, label, sequence, position, weight, order, ignore : optional
        Columns, as for `Answers.from_frame`.
    format, classes, items, ordered, positions : optional
        How they are read, as for `Answers.from_frame`. Several labels are several questions; `classes`,
        `ordered`, `positions`, `separator` and `gold` may then be mappings from questions to what is given for each,
        with the key None for all others.
    kind : {"numbers", "labels", "ratings"}, optional
        What the answers of a table are: numbers on a scale, of which each item gets one (`Measurement`); classes; or
        classes in order. By default they are numbers if they are many different ones, seldom the same for an item.
        Then a warning tells.
    duplicates, abstain, background, normalise, drop_missing, rescale : optional
        As for `Answers.from_frame`. What would have no effect on these answers is an error.
    gold_column : str, optional
        The column of known labels beside the answers. Default: gold, truth or a similar name.
    separator : str, optional
        What stands between the tags in a cell: answers are sets of tags, as for `Tags.from_frame`.
    model : Model or str
        "auto", "majority", "dawid-skene", "moments", "hidden-markov", "markov-field", "tags" or "measurement".
        "auto" is `MarkovField` with a graph, `HiddenMarkov` for sequences, `TagSets` for sets of tags, and `DawidSkene`
        for other items. A
        `HiddenMarkov` chosen by name or "auto" has ``transitions="bio"`` where the classes are IOB2 tags (O, and B-X
        with each I-X). If classes are ordered, a model chosen so has ``workers="ordinal"``, unless `workers` are given.
        With "auto", 3 to 11 consecutive whole numbers count as ordered if hidden answers are predicted clearly better
        that way: ``result_.given.scale_check`` tells. Say ``ordered=False`` if they are only names, or else
        ``ordered=True``.
    engine : optional
        Where to work; see `consilience.engines`.
    callback : callable, optional
        Called after each iteration with a `Progress`.
    features, item_prior : array, table or path, optional
        What is known of the items beside their answers: numbers that describe them, or class probabilities; see
        `DawidSkene.fit`.
    teach : {"auto", True, False}
        Whether known labels tell how much to trust each worker; see `DawidSkene.fit`.
    workers, estimation, prior, smoothing, calibration, label_by : optional
        Parameters of the model; see `DawidSkene`. Default: those of the model.
    start, n_init, max_iter, tol, seed : optional
        Parameters of the model; see `DawidSkene`. Default: those of the model.
    coupling, transitions, decode, inference, listeners, ties, shrinkage, average, scale : optional
        Parameters that some models have; see `HiddenMarkov`, `MarkovField`, `MajorityVote`, `MomentMatching` and
        `Measurement`.
    block : list, table or path, optional
        Workers whose answers are left out, here and in updates: their ids, or a table with a column worker. The column
        chance of `worker_report` tells whom. For answers on disk, give it to `scan_answers`.
    source_kind : {"people", "functions", "models"}, optional
        Who gives the answers: findings and reports are worded for them. By default it is recognised: functions are
        silent, as an answer or as one label each; soft votes come from models.

    Returns
    -------
    Model or Questions
        The fitted model; for several questions a mapping from each to its model. It has `comparison_` against majority
        vote: a `Comparison`, or None where there is nothing to compare (the model is the vote, or there are too few
        answers to hide any). Workers who copy each other are in
        `copies_`, and each group of them counts as one worker. With a graph also `graph_check_`, a `GraphCheck`: what
        the same fit on a shuffled graph tells, and whether workers' errors run along the edges. If they do, and no
        coupling is given, only items that nobody answered hear their neighbours (``listeners="unanswered"``).

    Warns
    -----
    ConsilienceWarning
        When the fit does not predict hidden answers better than the vote does: then the vote may be as good.
    DataWarning
        When workers seem to copy each other, each item has one answer, or a class that nobody said seems to be
        misspelt; when a graph tells nothing, or workers' errors run along its edges. Reading gives others, see
        `Answers.from_frame`.

    Examples
    --------
    >>> import consilience as cs, numpy as np
    >>> truth = np.random.default_rng(0).integers(0, 2, 300)
    >>> good, better, flipped = truth.copy(), truth.copy(), 1 - truth
    >>> good[:60] = 1 - good[:60]
    >>> fused = cs.fuse(cs.Answers.from_matrix(np.stack([good, better, flipped], axis=1)))
    >>> fused.comparison_.n_differ, fused.comparison_.verdict
    (60, 'better')
    """
    asked = given(locals())
    columns = {name: value for name, value in asked.items() if name in COLUMNS | TAG_COLUMNS and name not in BESIDE}
    if kind is not None:
        check("kind", kind, "fuse")
    if kind == "ratings":
        columns.setdefault("ordered", True)
    parameters = {name: value for name, value in asked.items() if name not in (*columns, *BESIDE, "gold_column")}
    if gold_column is not None:
        if gold is not None:
            problem = Sentence("{gold_column} has no effect beside {gold}, which takes its place.")
            raise ParameterError(problem, "Leave out one of them.", keyword="gold_column")
        columns["gold"] = gold_column
    # What answers are read as: "numbers" or "labels" where something says so, else "auto".
    measures = isinstance(model, Standalone) or is_among(model, ("measurement",))
    says = kind is not None or {"classes", "ordered", "separator"} & columns.keys() or not is_among(model, ("auto",))
    wanted = "numbers" if kind == "numbers" or (measures and kind is None) else "labels" if says else "auto"
    names, opening = open_each(source, graph, gold, columns, block, wanted)
    models, shared = fuse_prepared(
        names or [None], opening, model, engine, callback, features, item_prior, teach, parameters, source_kind
    )
    return models[None] if names is None else Questions(models, shared)


def rank(
    comparisons: Any,
    left: str | None = None,
    right: str | None = None,
    winner: str | None = None,
    worker: str | None = None,
    item: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    gold: Any = None,
    *,
    candidate: str | None = None,
    score: str | None = None,
    rank: str | None = None,
    discrimination: str | None = None,
    position_bias: str | None = None,
    max_iter: int | None = None,
    tol: float | None = None,
    n_draws: int | None = None,
    seed: int | None = None,
    callback: Callable[[Any], object] | None = None,
) -> BradleyTerry:
    """Rank candidates by verdicts on pairs, and weigh the judges who gave them.

    Parameters
    ----------
    comparisons : table, path or Comparisons
        One row per verdict: two candidates, and which of them won. Or one row per judge, item and candidate, with a
        score or a rank.
    left, right, winner, worker, item, group, weight, candidate, score, rank : str, optional
        Names of columns; see `Comparisons.from_frame`.
    gold : table, path or dict, optional
        Known verdicts: a table with columns left, right and winner, or {(left, right): winner}.
    discrimination, position_bias, max_iter, tol, n_draws, seed, callback : optional
        Parameters of `BradleyTerry`. Default: those of the model.

    Returns
    -------
    BradleyTerry
        Fitted, with `ranking_` and `judge_report`.

    Warns
    -----
    DataWarning
        When some candidates were never compared with the rest, or all verdicts are ties; when judges prefer the worse
        candidate, or rows are repeated.

    Examples
    --------
    >>> import consilience as cs
    >>> verdicts = {"left": list("aabbcc"), "right": list("bccaab"), "winner": list("aacaab")}
    >>> cs.rank(verdicts).ranking_["candidate"].to_pylist()
    ['a', 'b', 'c']
    """
    asked = {name: value for name, value in locals().items() if value is not None}
    parameters = {name: asked[name] for name in list_defaults(BradleyTerry) if name in asked}
    columns = {name: value for name, value in asked.items() if name not in (*parameters, "comparisons", "gold")}
    model = BradleyTerry(**parameters)
    data = open_comparisons(comparisons, **columns)
    model.fit(data, gold=gold)
    for finding in model.findings_:
        if finding.category is not None:
            warn(finding.warning())
    return model


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `Model.save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Model, Questions or BradleyTerry
        Fitted, with its results and parameters, except for a `callback` and a model given as `start`.
        The answers are there too (``result_.answers``), unless they were left out.

    Examples
    --------
    >>> import consilience as cs, tempfile, pathlib
    >>> answers = {"item": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "x", "y"]}
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "votes.model"
    >>> file = cs.MajorityVote().fit(answers).save(file)
    >>> cs.load(file).labels_
    array(['x', 'y'], dtype=object)
    """
    with open_saved(to_path("path", "load", path)) as saved:
        return restore(saved)


def estimate(
    source: Any,
    gold: object = None,
    of: object = None,
    by: object = None,
    pairs: object = None,
    *,
    item: str | Sequence[str] | None = None,
) -> Any:
    """Estimate how many items are of each class, or a mean, from labels that already exist.

    Parameters
    ----------
    source : Model, mapping of models, table or path
        A fitted model, whose method `estimate` this is. Or a table with a row for each item, and columns p(<class>),
        such as `Model.to_frame` returns, or with one column of labels or numbers, such as those of one judge.
    gold, of, by, pairs
        As for `Model.estimate`.
    item : str or list of str, optional
        The column of items in the table, or several.

    Returns
    -------
    Estimate
        For several questions a dict of these.

    Examples
    --------
    >>> import consilience as cs
    >>> said = {"item": list(range(100)), "label": ["yes"] * 70 + ["no"] * 30}
    >>> known = {item: "yes" if item < 60 else "no" for item in range(3, 100, 5)}
    >>> cs.estimate(said, known, of="yes")
    of   estimate          items  known  labels_alone      fit_alone  worth
    yes  0.59 (0.47-0.72)    100     20  0.59 (0.39-0.80)      0.700     50
    By 20 known labels of 100 items, which count as drawn at random. Intervals hold in 95% of such draws.
    """
    if isinstance(source, (Model, Questions, Measurement)):
        return source.estimate(gold, of, by, pairs)
    if isinstance(source, Standalone):
        raise ParameterError(f"A {type(source).__name__} has neither shares nor means.", "Give labels or values.")
    if gold is None:
        raise ParameterError("There are no known labels.", Sentence("Give some with {gold}."), keyword="gold")
    return estimate_population(survey_table(source, gold, item), of, by, pairs)


def held_out_score(
    model: Model,
    responses: object,
    graph: object = None,
    gold: object = None,
    fraction: float = 0.1,
    seed: int = 0,
    engine: EngineLike = None,
    features: object = None,
    item_prior: object = None,
) -> HeldOutScore:
    r"""Hide a fraction of the answers, fit a fresh copy of `model` on the rest, and score the hidden answers.

    The score is the mean of :math:`\log \sum_k q_{nk} \Gamma_m[k, f]` over hidden answers f of worker m about item n,
    with the calibrated posterior q, and with matrices counted from the answers that are left and their uncalibrated
    posterior, shrunk towards the whole crowd's: it is the posterior that is judged, and every model's in the same way.
    Needs no gold.

    Parameters
    ----------
    model : Model
        Whose parameters to use; the model itself is not touched. Of one that is fitted the power of its calibration is
        taken as found; one that is not is calibrated by answers hidden among those that are left, which takes longer.
    responses : Answers or table
        The answers.
    graph, gold
        As for `fit`.
    fraction : float
        Share of answers to hide: single answers of independent items, all answers of a worker in a sequence together
        for sequences (a worker's neighbouring answers are alike, and would give each other away).
    seed : int
        Which answers are hidden: they depend on the seed and on the ids of items and workers, not on the order of rows.
        The same seed hides the same answers for every model.
    engine, features, item_prior : optional
        As for `fit`.

    Returns
    -------
    HeldOutScore
        Higher is better. `a.minus(b)` compares two models.

    Examples
    --------
    >>> import consilience as cs, numpy as np
    >>> truth = np.tile([0, 1], 50)
    >>> votes = np.stack([truth, truth, 1 - truth], axis=1)
    >>> r = cs.Answers.from_matrix(votes)
    >>> fit, vote = (cs.held_out_score(m, r) for m in (cs.DawidSkene(), cs.MajorityVote()))
    >>> fit.score > vote.score
    True
    """
    if not isinstance(model, Model):
        raise parameter_error("model", "held_out_score", "a model such as DawidSkene()", model)
    check("seed", seed, "held_out_score")
    if not (is_number(fraction) and 0 < fraction < 1):
        raise parameter_error("fraction", "held_out_score", "a number > 0 and < 1", fraction)
    estimator = model if model._result is None else renew_with_estimates(model, model._result, coupling=False)
    observations = make_observations(
        estimator, open_with_kind(responses)[1], open_gold_tables(gold), features, item_prior
    )
    r = observations.responses
    aligned = align(estimator, r, graph)
    hidden, unit = next(hide_answers(r, fraction, seed))
    with open_engine(engine) as opened:
        result = fit_model(estimator, observations.keep(~hidden), aligned, opened, copies=[])
    by_class = shrink_rows(expect_counts(result), r.worker[hidden], r.label[hidden])
    return score_hidden(r, hidden, unit, result.labels.posterior, by_class)


def report(model: Any, path: str | os.PathLike[str], content: object = None, *, source_kind: str | None = None) -> Path:
    """Write one HTML page about a fitted model: whether to trust the labels, whom to talk to, what to look at.

    The page needs no network and no other file. It holds sums over the data, and some items, workers and answers as
    examples; see the user guide for what it contains before you send it to others.

    Parameters
    ----------
    model : Model, mapping of models, or BradleyTerry
        A fitted model, with its answers. Best is one that `consilience.fuse` returned: it was compared with majority
        vote. Or what `fuse` returned of several questions, or a ranking, for which there is no other parameter.
    path : str or path
        The file to write, whose name ends in .html.
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
    if isinstance(model, Standalone) and not (content is None and source_kind is None):
        raise ParameterError("There are no items to show.", "Leave out content and source_kind.")
    target = to_path("path", "report", path)
    if source_kind is not None and isinstance(model, Model):
        model = copy(model)
        name_source(model, source_kind)
    return write_report(model, target, content, model.page_title if isinstance(model, Standalone) else "Fused labels")


def write_report(
    model: Any, path: str, content: object, title: str, folder: str = "", command: Sequence[str] = (), source: str = ""
) -> Path:
    """Write the page that `report` writes.

    Parameters
    ----------
    model, path, content
        As for `report`.
    title : str
        What the page is called: usually the name of the file of answers.
    folder : str
        Where relative paths of pictures start.
    command : sequence of str, optional
        The command line that fused the answers: the page says how to repeat it with new labels.
    source : str
        Its file of answers, which may hold known labels too; empty if a saved model holds them.
    """
    check_page(path)
    if isinstance(model, (Standalone, Questions)):
        return write_page(model.page(title), path)
    if not isinstance(model, Model):
        raise parameter_error("model", "report", "a fitted model", model)
    return write_page(describe_page(View(model, content, folder, command, source), title), path)


def chart(model: Any, name: str | None = None) -> Chart:
    """One of the charts of the report.

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
        answers and labels. "agreement": how many workers share the most frequent answer.
        "reliability": how often labels of each confidence are right, by known labels.
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
    charts: Mapping[str, Any] = model.charts if isinstance(model, Standalone) else CHARTS
    name = next(iter(charts)) if name is None else name
    if not isinstance(name, str) or name not in charts:
        raise parameter_error("name", "chart", f"one of {', '.join(map(repr, charts))}", name)
    import_converter()
    if isinstance(model, Standalone):
        drawn, lack = model.charts[name](model.result_), "there is only one judge"
    else:
        if not isinstance(model, Model):
            raise parameter_error("model", "report", "a fitted model", model)
        draw, lack = CHARTS[name]
        drawn = draw(View(model))
    if drawn is None:
        raise ParameterError(f"This model has no chart {name!r}: {lack}.", keyword="name")
    return drawn
