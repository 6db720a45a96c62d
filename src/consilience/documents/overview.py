"""What is said of a result at a glance: facts, findings, workers and items, and the same of several questions.

Each fact is made here and nowhere else: terminal, `--json` and notebooks show it. The sections of the page, which go
deeper, are in the other modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..answers import DIALECTS
from ..answers.columns import count_codes, lookup, to_column
from ..answers.previews import fit_text
from ..answers.tables import build_frame
from ..errors import join_names, plural, to_sentence
from ..formats import find_by_name
from ..inference.observations import Observations
from ..inference.workers import WORKERS
from ..inference.workers.temperatures import WELL_SURE
from ..kinds.tags import ONE_HOT
from ..results.comparison import describe_limit, describe_usual
from ..results.result import Result, describe_left_out
from ..results.worker_report import FEW_ANSWERS_REMARK, rank_attention
from .document import Column, Document, Fact, Facts, Part, Section, Table, Text, spell

Record = dict[str, Any]

N_EXTREMES = 3  # from either end
N_ITEMS, N_ITEMS_SHOWN = 5, 3  # those that JSON has, and people see
# Over several questions: who may answer without looking, and how many of them are listed.
SUSPECT, N_SUSPECTS = 0.1, 5
ALL_KNOWN = "the label of every item is known, so nothing was fused"
# What known labels are given with.
KNOWN_LABELS_REMEDY = " (consilience next --at-random)"
# The parameters to name beside the model, and those that nobody can read.
_NAMED, _NOT_SHOWN = ("estimation", "ties", "seed"), ("callback",)
# Of the drift report, what the worker report does not have.
_CHANGES = ("accuracy_first", "accuracy_last", "change", "change_low", "change_high")
_WORKER = (
    Column("worker", "worker"),
    Column("answers", "answers", "count"),
    Column("accuracy", "accuracy", "estimate"),
    Column("informativeness", "informativeness", "figure"),
    Column("worst_confusion", "worst confusion"),
    Column("brief", "remarks"),
)


def describe_fit(
    model: Any, title: str = "", undecided: float | None = None, all_workers: bool = False, more: Sequence[Fact] = ()
) -> Document:
    """The overview of one result.

    Parameters
    ----------
    model : fitted model
        It is asked for its result, and for explanations in words.
    title : str
        What it is about.
    undecided : float, optional
        The least confidence of a label that is not left open.
    all_workers : bool
        Whether all workers are listed, also those with few answers.
    more : sequence of Fact
        What else is to be said, such as what an update brought. It replaces facts of the same keys.
    """
    facts = {each.key or each.name: each for each in (*list_facts(model, undecided, KNOWN_LABELS_REMEDY), *more)}
    coupled = facts["chain"].value or facts["field"].value
    where = "Neighbours in a sequence" if facts["chain"].value else "Neighbours in the graph"
    parts: list[Part] = [
        Facts(list(facts.values())),
        model.findings_,
        *([Section(where, [Text([coupled["explanation"]])])] if coupled else []),
        *list_extremes(model, all_workers),
        *list_least_certain(model.result_),
    ]
    return Document(title, "", parts)


# ------------------------------------------------------------------------------------------------------------- facts


def list_facts(model: Any, undecided: float | None = None, remedy: str = "") -> list[Fact]:
    """What was fused, how, and how good it is. Those without a name are for JSON alone.

    Parameters
    ----------
    model, undecided
        As for `describe_fit`.
    remedy : str
        With what known labels are given.
    """
    result: Result = model.result_
    kind, r, names, course = result.kind, result.given.answers, result.names, result.course  # no r: not in the file
    compared, confidence, calibrated = result.comparison, result.reported_confidence, result.calibrated
    n_known = 0 if result.given.gold is None else result.given.gold.n_known
    all_known = n_known == result.labels.n_items > 0
    words = {} if compared is None else compared.describe(f"{kind.judged}s")
    if all_known and words:
        words = {"verdict": ALL_KNOWN, "alpha": words["alpha"]}
    facts = list[Fact]()

    # How many labels are right, and what known labels would tell.
    further = words.get("known_labels")
    if any(accuracy := [words.get("headline"), f"{further}{remedy}" if further else None]):
        facts.append(Fact("", "Accuracy", None, " ".join(to_sentence(each) for each in accuracy if each)))

    # What was read. Of tags, items of several columns are sequences, too.
    read = {} if r is None else r.columns
    columns = {role: name for role, name in read.items() if read.get("item") != name or role == "item"}
    renamed = "Columns" if any(role != name for role, name in columns.items()) else ""
    file = None if kind.origin is None else find_by_name(kind.origin[1])
    form = file.name if file is not None and file.kind != "table" else None if r is None else r.format or None
    titles = {each.name: each.title for each in (*DIALECTS, file) if each} | {ONE_HOT: "one column per tag"}
    parameters = {name: value for name, value in model.get_params().items() if name not in _NOT_SHOWN}
    who = WORKERS[parameters["workers"]].words if "workers" in parameters else ""
    shown = [who] if who else []
    shown += ["labels by median"] if parameters.get("label_by") == "median" else []
    shown += [f"{name} {parameters[name]}" for name in _NAMED if name in parameters]
    n_items, n_answers = (result.labels.n_items, int(result.n_answers.sum())) if r is None else kind.size(r)
    by = f"{n_answers:,} by {plural(len(names.workers), 'worker')} about {plural(n_items, 'item')}"
    blocked = result.left_out
    left_out = None if blocked is None else dict(zip(("workers", "answers"), blocked, strict=True))
    facts += [
        Fact("columns", renamed, columns, format_columns(columns)),
        Fact("format", "Format", form, f"{form}: {titles[form]}" if form else ""),
        Fact("model", "Model", result.model, f"{result.model} ({', '.join(shown)})" if shown else result.model),
        Fact("parameters", "", parameters),
        Fact("answers", "Answers", n_answers, by),
        Fact("workers", "", len(names.workers)),
        Fact("items", "", n_items),
        Fact("left_out", "Left out", left_out, describe_left_out(*blocked) if blocked else ""),
        Fact("source_kind", "", result.given.source_kind),
    ]

    # What can be true, and what came of it.
    made, summary = (None if r is None else kind.summarise(r, result, True)) or ({}, "")
    tags, spans = made.get("tags"), made.get("spans")
    classes: list[object] = names.classes.tolist() if tags is None else list(tags["tags"])
    listed = f"{len(classes)}: {name_classes(classes)}."
    facts += [
        Fact("classes", "Classes" if tags is None else "", classes, listed),
        Fact("tags", "" if tags is None else "Tags", tags, listed),
        *([] if tags is None else [Fact("", "Sets", None, summary)]),
    ]
    scale, said = result.given.scale_check, ""
    if scale is not None:  # whole numbers were taken for a scale, which is also a finding, or for names
        said = (
            "" if scale.ordered else f"{to_sentence(str(scale))} If they are levels, say so: ordered=True, --ordered."
        )
    order = None if scale is None else {**asdict(scale), "explanation": str(scale)}
    facts.append(Fact("scale", "Order" if said else "", order, said))
    soft = None if result.given.soft_check is None else str(result.given.soft_check)
    facts.append(Fact("soft", "Soft votes", soft, to_sentence(soft) if soft else ""))
    others, said = None, ""
    outside = np.empty(0, np.int64) if r is None else np.flatnonzero(lookup(names.classes, to_column(r.labels)) < 0)
    if r is not None and len(outside):  # answers with a label that is no class
        counts = count_codes(r.label, r.n_labels)[outside]
        strange = r.labels[outside[np.argsort(-counts, kind="stable")]].tolist()
        others = {"answers": round(counts.sum()), "labels": strange}
        meaning = "have no vote" if result.model == "MajorityVote" else "still are evidence"
        said = f"{name_classes(strange)}, in {plural(others['answers'], 'answer')}. Such answers {meaning}."
    facts.append(Fact("outside_classes", "Not classes", others, said))
    facts.append(Fact("spans", "Spans", spans, "" if spans is None else summary))

    # How good it is. The first fact names known labels that were drawn at random, and the expected accuracy says how
    # probable labels are.
    keeps = f"{plural(n_known, 'item')} {'keeps' if n_known == 1 else 'keep'} the label that is known"
    facts.append(Fact("gold", "Gold" if n_known and not (compared and compared.n_known) else "", n_known, keeps))
    is_only = compared is None and not all_known and confidence is not None
    facts.append(
        Fact(
            "mean_confidence", "Confidence" if is_only else "", confidence, f"{spell(confidence, 'figure')} on average"
        )
    )
    if compared is None:
        facts.append(Fact("comparison", "Verdict" if all_known else "", None, to_sentence(ALL_KNOWN)))
    else:
        value: Record = {"verdict": compared.verdict, "better": compared.better, "agreement": compared.agreement}
        value |= {each.name: getattr(compared, each.name) for each in fields(compared)[1:] if each.init}
        topics = ("headline", "known_labels", "expected", "verdict", "alpha")
        value["words"] = {topic: words.get(topic) or None for topic in topics}
        verdict, n_differ = to_sentence(words["verdict"]), compared.n_differ
        if n_differ and not all_known:
            judged = plural(n_differ, kind.judged)
            verdict += f" {judged} {'differs' if n_differ == 1 else 'differ'}."
        facts.append(Fact("comparison", "Verdict", value, verdict))
        if not all_known:
            facts.append(Fact("", "Expected" if words["expected"] else "", "", to_sentence(words["expected"])))
            facts.append(Fact("", "Agreement" if words["alpha"] else "", "", to_sentence(words["alpha"])))
    opened, said = None, ""
    if undecided is not None:
        kept = model.result_.undecided(undecided)
        said, rates = kept.describe(), {"share_kept": kept.share_kept, "expected_error_rate": kept.expected_error_rate}
        opened = {**kept._asdict(), **rates, "explanation": said}
    facts.append(Fact("undecided", "Undecided", opened, said))

    # How it was fitted.
    facts.append(
        Fact("iterations", "" if course.converged else "Iterations", course.n_iter, f"{course.n_iter}, not converged")
    )
    facts.append(Fact("converged", "", course.converged))
    chain, field = Fact("chain", "", None), Fact("field", "", None)
    if result.is_network:
        explanation = model.explain_coupling() if result.graph_check is None else str(result.graph_check)
        unit, listeners, who_listens = model._usual_weight, model.listeners, ""
        if listeners == "unanswered":
            explanation += f" {describe_limit(bool(Observations(result.answers).find_answered().all()), 'The graph')}"
            who_listens = ", for items that nobody answered"
        coupling = {
            "coupling": result.coupling,
            "usual_weight": unit,
            "listeners": listeners,
            "explanation": explanation,
        }
        text = f"coupling {(result.coupling or 0.0) * unit:.2f} nats per agreeing neighbour"
        text += f"{describe_usual(unit)}{who_listens}"
        field = Fact("field", "Graph", coupling, to_sentence(text) if describe_usual(unit) else text)
    elif result.coupling is not None:
        coupling = {"coupling": result.coupling, "explanation": model.explain_coupling()}
        chain = Fact("chain", "Chain", coupling, f"coupling {result.coupling:g}, from 0 (independent items) to 1")
    taught, said = None if result.feature_result is None else result.feature_result.findings, ""
    if taught is not None:
        said = taught.describe()
    teaching = result.teaching
    teaching_said = "" if teaching is None else teaching.describe()
    facts += [
        chain,
        field,
        Fact("features", "Features", None if taught is None else {**taught._asdict(), "explanation": said}, said),
        Fact("smoothing", "", course.smoothing),
        Fact("power", "", None if calibrated is None else calibrated.calibration.power),
        Fact("calibration", "", None if calibrated is None else model.result_.explain_calibration()),
        Fact("teaching", "Taught", None if teaching is None else teaching.to_record(), teaching_said),
        Fact("copies", "", [names.workers[group].tolist() for group in result.given.copies]),
    ]
    return facts


def format_columns(columns: Mapping[str, str]) -> str:
    """Which column has which role.

    >>> format_columns({"item": "task", "label": "says"})
    'item=task, label=says'
    """
    return ", ".join(f"{role}={fit_text(name, 40)}" for role, name in columns.items())


def name_classes(names: Sequence[object]) -> str:
    """Names of classes or labels, short enough to be read in a line; one with blanks around it is in quotes."""
    quoted = (repr(name) if isinstance(name, str) and name != name.strip() else name for name in names)
    return join_names((fit_text(name, 16) for name in quoted), "classes_ and --json have all")


# ----------------------------------------------------------------------------------------------------------- workers


def sort_workers(model: Any) -> pa.Table:
    """The worker report, those first who call for attention; where answers have an order, also how accuracy changes."""
    table = pa.table(model.worker_report())
    if model.result_.drift is not None:
        changes = model.drift_report()
        for name in _CHANGES:
            table = table.append_column(name, changes[name])
    kind, accuracy = rank_attention(table)
    return table.take(np.lexsort((accuracy, kind)))


def list_extremes(model: Any, all_workers: bool) -> list[Part]:
    """The workers at both ends, those first who call for attention.

    Workers with few answers are left out, since little is known about them, unless there are no others.
    """
    listed: list[Record] = sort_workers(model).to_pylist()
    few = [row for row in listed if FEW_ANSWERS_REMARK in row["remarks"]]
    few = [] if len(few) == len(listed) else few
    known = [row for row in listed if row not in few]
    if all_workers:
        worst, best, few, n_hidden = [], [*few, *known], [], 0
    else:
        n_best = min(N_EXTREMES, -(-len(known) // 2))
        n_worst = min(N_EXTREMES, len(known) - n_best)
        n_worst += len(known) - n_best - n_worst == 1  # to say that one is left out would take as much room
        worst, best, n_hidden = known[:n_worst], known[len(known) - n_best :], len(known) - n_best - n_worst
    facts = Facts(
        [
            Fact("most_reliable", "", best[::-1]),
            Fact("least_reliable", "", worst),
            Fact("workers_with_few_answers", "", len(few)),
        ]
    )
    if all(each["accuracy"] is None for each in (*best, *worst)):
        return [facts]
    dots: Record = dict.fromkeys([each.key for each in _WORKER])
    rows = [*worst, *([dots] if n_hidden else []), *best]
    for n, row in enumerate(rows):  # remarks in few words, and how sure a classifier is if that is not right
        remarks = "; ".join(each for each in (row.get("sureness"), row.get("remarks")) if each and each != WELL_SURE)
        for long, short in (("accuracy falls", "falls"), ("answers as if", "as if"), ("(group ", "(")):
            remarks = remarks.replace(long, short)
        rows[n] = row | {"brief": None if row is dots else remarks}
    columns = _WORKER if any(row["brief"] for row in rows) else _WORKER[:-1]
    left_out = f" ({n_hidden:,} between left out)" if n_hidden else ""
    table = Table("", f"Workers, those to look at first{left_out}", columns, rows)
    left = Text([f"Not ranked: {plural(len(few), 'worker')} with few answers"], quiet=True)
    return [facts, table, *([left] if few else [])]


# ------------------------------------------------------------------------------------------------------------- items


def list_least_certain(result: Result) -> list[Part]:
    """The items with the lowest confidence, each with the class that came second; of sets the tag that is in doubt."""
    if result.reported_confidence is None:
        return [Table("least_certain", "", [], [])]
    kind, labels = result.kind, result.labels
    set_columns = kind.arrange(labels, labels.shown, None)
    records: list[Record] = []
    if set_columns is not None:
        sets = build_frame(set_columns, "pyarrow")
        for row in sets.take(np.argsort(sets["confidence"].to_numpy(), kind="stable")[:N_ITEMS]).to_pylist():
            chances = {name[2:-1]: value for name, value in row.items() if name.startswith("p(")}
            second = min(chances, key=lambda tag: abs(chances[tag] - 0.5), default=None)
            label = ", ".join(map(str, row["labels"] or ())) or "(no tag)"
            records.append({"item": row["item"], "label": label, "confidence": row["confidence"], "runner_up": second})
            records[-1]["runner_up_probability"] = None if second is None else chances[second]
    else:
        rows = np.argsort(labels.confidence, kind="stable")[:N_ITEMS]
        part, words = labels.part(rows), kind.show(rows)
        listed = dict(part.keys) | ({} if words is None else {"text": to_column(words)})
        listed |= {"label": to_column(part.values), "confidence": to_column(part.confidence)}
        records = build_frame(listed, "pyarrow").to_pylist()
        for code, posterior, record in zip(part.codes, part.posterior, records, strict=True):
            others = np.where(np.arange(len(posterior)) == code, -1.0, posterior)
            second = int(others.argmax()) if len(others) > 1 else None
            record["runner_up"] = None if second is None else labels.classes[[second]].tolist()[0]
            record["runner_up_probability"] = None if second is None else float(others[second])
    keys = [name for name in ("item", "sequence", "position", "text") if name in records[0]]
    columns = [
        *(Column(name, name) for name in keys),
        Column("label", "label"),
        Column("confidence", "confidence", "figure"),
        Column("runner_up", "runner-up" if set_columns is None else "in doubt"),
        Column("runner_up_probability", "probability", "figure"),
    ]
    table: list[Part] = [Table("least_certain", "Least certain items", columns, records[:N_ITEMS_SHOWN], data=records)]
    if set_columns is None and any(
        (each["runner_up_probability"] or 0) > each["confidence"] for each in records[:N_ITEMS_SHOWN]
    ):
        why = "Labels are medians" if labels.rule == "median" else "The labels of a sequence are chosen together"
        table.append(Text([f"{why}, so a runner-up can be ahead."], quiet=True))
    return table


def list_first_labels(result: Result, most: int) -> Table:
    """The first labels with their confidence."""
    labels = result.labels.part(slice(most))
    columns = [*(Column(name, name) for name in labels.keys), Column("label", "label")]
    columns.append(Column("confidence", "confidence", "figure"))
    listed = {**labels.keys, "label": to_column(labels.values), "confidence": to_column(labels.shown_confidence)}
    rows = build_frame(listed, "pyarrow").to_pylist()
    return Table("labels", "", columns, rows, result.labels.n_items - labels.n_items)


# ----------------------------------------------------------------------------------------------- several questions


def describe_questions(questions: Any, title: str = "") -> Document:
    """The overview of several questions to the same workers, with that of each."""
    documents = [describe_fit(model, name) for name, model in questions.items()]
    blocked = max(
        (len(each.result_.given.blocked) for each in questions.values() if each.result_.given.blocked is not None),
        default=0,
    )
    shared, workers = questions.shared_, pa.table(questions.worker_report()).to_pylist()
    facts = [
        Fact("", "Questions", None, f"{len(questions)}"),
        Fact("", "Left out" if blocked else "", None, plural(blocked, "blocked worker")),
        Fact("sharing", "", None if shared is None else {"own": shared.own, "easiness": shared.easiness}),
        Fact("explanation", "", questions.explain_sharing()),
        Fact("workers", "", workers),
    ]
    suspects = sorted((row for row in workers if (row["chance"] or 0.0) >= SUSPECT), key=lambda row: -row["chance"])
    listed: list[Part] = [Text(["No worker seems to answer without looking, judging by all questions."])]
    if suspects:
        heads = [Column("worker", "worker"), Column("answers", "answers", "count")]
        heads += [Column(name, name, "figure") for name in ("accuracy", "chance")]
        who = "Who may answer without looking, over all questions"
        listed = [Table("", who, heads, suspects[:N_SUSPECTS], len(suspects[N_SUSPECTS:]))]
        listed.append(Text(["Leave out those above .9 with --block FILE, a table with a column worker."]))
    table = replace(tabulate_questions(questions, {}), key="", title="")
    return Document(title, "", [Facts(facts), table, Text([questions.explain_sharing()]), *documents, *listed])


def tabulate_questions(questions: Any, verdicts: Mapping[str, str]) -> Table:
    """The questions: what can be true, how many items and answers there are, and how sure the labels are."""
    rows = []
    for name, model in questions.items():
        values = {each.key: each.value for each in list_facts(model)}
        tags, compared, confidence = values["tags"], values["comparison"], values["mean_confidence"]
        sizes = len(values["classes"]), values["items"], values["answers"]
        sure = confidence if tags is None or confidence is None else tags["mean_confidence"]
        verdict = verdicts.get(name) or ("" if compared is None else compared["verdict"])
        rows.append([name, *sizes, sure, verdict])
    columns = [Column("question", "question")]
    columns += [Column(name, name, "count") for name in ("classes", "items", "answers")]
    columns += [Column("mean_confidence", "confidence", "figure"), Column("verdict", "against the vote")]
    return Table("questions", "Questions", columns, rows)
