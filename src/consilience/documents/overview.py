"""What is said of a result at a glance: facts, findings, workers and items, and the same of several questions.

Each fact is made here and nowhere else: terminal, `--json` and notebooks show it. The sections of the page, which go
deeper, are in the other modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..answers import DIALECTS
from ..answers.columns import count_codes, lookup, to_column
from ..answers.previews import fit_text
from ..answers.tables import build_frame
from ..errors import join_names, plural, to_sentence
from ..formats import find_by_name
from ..inference.sources import Source
from ..inference.workers.temperatures import WELL_SURE
from ..kinds.tag_tables import ONE_HOT
from ..results.comparison import describe_limit, describe_usual
from ..results.result import Result, count_known, describe_left_out
from ..results.worker_report import FEW, rank_attention
from .document import Column, Document, Documents, Fact, Facts, Findings, Part, Section, Table, Text, spell

Record = dict[str, Any]

N_WORKERS = 3  # from either end
N_ITEMS, N_SHOWN = 5, 3  # those that JSON has, and people see
# Over several questions: who may answer without looking, and how many of them are listed.
SUSPECT, N_SUSPECTS = 0.1, 5
ALL_KNOWN = "the label of every item is known, so nothing was fused"
# What known labels are given with.
REMEDY = " (consilience next --at-random)"
# The parameters to name beside the model, and those that nobody can read.
_NAMED, _NOT_SHOWN = ("estimation", "ties", "seed"), ("callback", "classifier")
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
    found: Result = model.result_
    facts = {each.key or each.name: each for each in (*list_facts(model, undecided, REMEDY), *more)}
    coupled = facts["chain"].value or facts["field"].value
    where = "Neighbours in a sequence" if facts["chain"].value else "Neighbours in the graph"
    parts: list[Part] = [
        Facts(list(facts.values())),
        Findings(model.findings_),
        *([Section("neighbours", where, where, [Text([coupled["explanation"]])])] if coupled else []),
        *list_workers(model, all_workers),
        *list_least_certain(found),
    ]
    return Document(title, "", parts)


def to_records(columns: Mapping[str, Any]) -> list[Record]:
    """The rows of a table that is given by its columns."""
    rows: list[Record] = build_frame(columns, "pyarrow").to_pylist()
    return rows


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
    found: Result = model.result_
    task, r, names = found.task, found.given.answers, found.names  # which a file may not hold
    parameters = {name: value for name, value in model.get_params().items() if name not in _NOT_SHOWN}
    n_items, n_answers = (found.labels.n_items, int(found.n_answers.sum())) if r is None else task.size(r)
    # Of tags, items of several columns are sequences, too.
    read = {} if r is None else r.columns
    columns = {role: name for role, name in read.items() if read.get("item") != name or role == "item"}
    shown = ["ordinal workers"] if parameters.get("workers") == "ordinal" else []
    shown += ["labels by median"] if parameters.get("label_by") == "median" else []
    shown += [f"{name} {parameters[name]}" for name in _NAMED if name in parameters]
    made = None if r is None else task.summarise(r, found)
    tags, spans = (made if task.results == kind else None for kind in ("sets", "spans"))
    n_known, all_known = count_known(found.given.gold), knows_all(found)
    classes: list[object] = names.classes.tolist() if tags is None else list(cast(Any, tags["tags"]))
    facts = [
        *list_accuracy(found, remedy),
        Fact("columns", "Columns" if any(a != b for a, b in columns.items()) else "", columns, format_columns(columns)),
        name_format(found),
        Fact("model", "Model", found.model, f"{found.model} ({', '.join(shown)})" if shown else found.model),
        Fact("parameters", "", parameters),
        Fact(
            "answers",
            "Answers",
            n_answers,
            f"{n_answers:,} by {plural(len(names.workers), 'worker')} about {plural(n_items, 'item')}",
        ),
        Fact("workers", "", len(names.workers)),
        Fact("items", "", n_items),
        Fact(
            "left_out",
            "Left out",
            None if found.left_out is None else dict(zip(("workers", "answers"), found.left_out, strict=True)),
            "" if found.left_out is None else describe_left_out(*found.left_out),
        ),
        Fact("source_kind", "", found.source_kind),
        Fact("classes", "Classes" if tags is None else "", classes, f"{len(classes)}: {list_names(classes)}."),
        *([Fact("tags", "", None)] if tags is None else describe_tags(tags)),
        describe_order(found),
        Fact(
            "soft",
            "Soft votes",
            None if found.soft_check is None else str(found.soft_check),
            "" if found.soft_check is None else to_sentence(str(found.soft_check)),
        ),
        count_outside(found) if r is not None else Fact("outside_classes", "", None),
        describe_spans(spans),
    ]
    # The first fact names known labels that were drawn at random.
    is_told = found.comparison is not None and found.comparison.n_known
    keep = f"{plural(n_known, 'item')} {'keeps' if n_known == 1 else 'keep'} the label that is known"
    facts.append(Fact("gold", "Gold" if n_known and not is_told else "", n_known, keep))
    told = found.told_confidence
    is_only = found.comparison is None and not all_known  # else the expected accuracy says it
    text = f"{spell(told, 'figure')} on average"
    facts.append(Fact("mean_confidence", "Confidence" if is_only and told is not None else "", told, text))
    facts += list_verdict(found)
    if undecided is not None:
        kept = model.undecided(undecided)
        rates = {"share_kept": kept.share_kept, "expected_error_rate": kept.expected_error_rate}
        explanation = kept.describe()
        facts.append(
            Fact("undecided", "Undecided", {**kept._asdict(), **rates, "explanation": explanation}, explanation)
        )
    else:
        facts.append(Fact("undecided", "", None))
    course = found.course
    facts += [
        Fact("iterations", "" if course.converged else "Iterations", course.n_iter, f"{course.n_iter}, not converged"),
        Fact("converged", "", course.converged),
        *describe_coupling(model),
        describe_features(found),
        Fact("smoothing", "", course.smoothing),
        Fact("power", "", None if found.calibrated is None else found.calibrated.found.power),
        Fact("calibration", "", None if found.calibrated is None else model.explain_calibration()),
        Fact("copies", "", [names.workers[group].tolist() for group in found.copies]),
    ]
    return facts


def knows_all(found: Result) -> bool:
    """Whether the label of every item was known."""
    return count_known(found.given.gold) == found.labels.n_items > 0


def compare(found: Result) -> dict[str, str]:
    """What the comparison with majority vote says, by topic; {} where there was none."""
    if found.comparison is None:
        return {}
    words = found.comparison.describe(f"{found.task.judged}s")
    return {"verdict": ALL_KNOWN, "alpha": words["alpha"]} if knows_all(found) else words


def list_accuracy(found: Result, remedy: str) -> list[Fact]:
    """How many labels are right, and what known labels would tell: the first fact."""
    words = compare(found)
    more = f"{words['known_labels']}{remedy}" if words.get("known_labels") else ""
    sentences = [to_sentence(each) for each in (words.get("headline"), more) if each]
    return [Fact("", "Accuracy", None, " ".join(sentences))] if sentences else []


def list_verdict(found: Result) -> list[Fact]:
    """How the labels compare with majority vote, how many are expected to be right, and how far workers agree."""
    compared, words = found.comparison, compare(found)
    if compared is None:
        known = to_sentence(ALL_KNOWN) if knows_all(found) else ""
        return [Fact("comparison", "Verdict" if known else "", None, known)]
    topics = ("headline", "known_labels", "expected", "verdict", "record", "alpha")
    figures = {name: value for name, value in asdict(compared).items() if name != "n_items"}
    value = {
        "verdict": compared.verdict,
        "better": compared.better,
        "agreement": compared.agreement,
        **figures,
        "words": {topic: words.get(topic) or None for topic in topics},
    }
    verdict = to_sentence(words["verdict"])
    if compared.n_differ and not knows_all(found):
        judged = "label" if found.task.results != "sets" else "single tag"
        verdict += f" {to_sentence(differ(compared.n_differ, judged))}"
    facts = [Fact("comparison", "Verdict", value, verdict)]
    if not knows_all(found):
        more = {"Expected": words["expected"], "Agreement": words["alpha"]}
        facts += [Fact("", name, None, to_sentence(said)) for name, said in more.items() if said]
    return facts


def differ(number: int, judged: str = "label") -> str:
    """How many labels differ, in words.

    >>> differ(1), differ(220)
    ('1 label differs', '220 labels differ')
    """
    return f"{plural(number, judged)} {'differs' if number == 1 else 'differ'}"


def name_format(found: Result) -> Fact:
    """The format of the source; None for a table with one row per answer."""
    origin = getattr(found.task, "origin", None)
    file = find_by_name(found.task.name if found.task.name == "masks" else None if origin is None else origin[1])
    r = found.given.answers
    form = None if r is None else r.format or None
    name = file.name if file is not None and file.kind != "table" else form
    titles = {each.name: each.title for each in (*DIALECTS, file) if each} | {ONE_HOT: "one column per tag"}
    return Fact("format", "Format", name, "" if name is None else f"{name}: {titles[name]}")


def format_columns(columns: Mapping[str, str]) -> str:
    """Which column has which role.

    >>> format_columns({"item": "task", "label": " says"})
    "item=task, label=' says'"
    """
    return ", ".join(f"{role}={quote_blanks(fit_text(name, 40))}" for role, name in columns.items())


def quote_blanks(value: object) -> object:
    """A name with blanks around it in quotes, so that they are seen.

    >>> quote_blanks("cat"), quote_blanks(" cat")
    ('cat', "' cat'")
    """
    return repr(value) if isinstance(value, str) and value != value.strip() else value


def list_names(names: Sequence[object]) -> str:
    """Names of classes or labels, short enough to be read in a line."""
    return join_names((fit_text(quote_blanks(name), 16) for name in names), "classes_ and --json have all")


def describe_spans(spans: Mapping[str, Any] | None) -> Fact:
    """How many spans were marked and fused."""
    if spans is None:
        return Fact("spans", "", None)
    sure = spans["mean_confidence"]
    made = (
        f"{spans['fused']:,} from {spans['marked']:,} that workers marked in {plural(spans['documents'], 'document')}"
    )
    told = "" if sure is None else f", with a mean confidence of {spell(sure, 'figure')}"
    return Fact("spans", "Spans", spans, f"{made}{told}.")


def describe_tags(tags: Mapping[str, Any]) -> list[Fact]:
    """Which tags there are, and how large the fused sets are."""
    size = f"{tags['mean_size']:.1f} tags on average"
    sure = f"a mean confidence of {spell(tags['mean_confidence'], 'figure')}"
    made = f"{tags['fused']:,} from {tags['given']:,} that workers gave, with {size}, and {sure}."
    return [
        Fact("tags", "Tags", tags, f"{len(tags['tags'])}: {list_names(tags['tags'])}."),
        Fact("", "Sets", None, made),
    ]


def describe_order(found: Result) -> Fact:
    """Whether whole numbers were taken for a scale, which is also a finding, or for names."""
    check = found.scale_check
    if check is None:
        return Fact("scale", "", None)
    value = {"ordered": check.ordered, **asdict(check), "explanation": str(check)}
    advice = f"{to_sentence(str(check))} If they are levels, say so: ordered=True, --ordered."
    return Fact("scale", "" if check.ordered else "Order", value, advice)


def count_outside(found: Result) -> Fact:
    """How many answers have a label that is not a class, and what that means."""
    r = found.answers
    outside = np.flatnonzero(lookup(found.names.classes, to_column(r.labels)) < 0)
    if not len(outside):
        return Fact("outside_classes", "", None)
    counts = count_codes(r.label, r.n_labels)
    labels = r.labels[outside[np.argsort(-counts[outside], kind="stable")]].tolist()
    number = round(counts[outside].sum())
    meaning = "Such answers have no vote" if found.model == "MajorityVote" else "Such answers still are evidence"
    text = f"{list_names(labels)}, in {plural(number, 'answer')}. {meaning}."
    return Fact("outside_classes", "Not classes", {"answers": number, "labels": labels}, text)


def describe_coupling(model: Any) -> list[Fact]:
    """The coupling of a chain or of a field, and where it comes from."""
    found: Result = model.result_
    chain, field = Fact("chain", "", None), Fact("field", "", None)
    if found.is_network:
        explanation = model.explain_coupling() if found.graph_check is None else str(found.graph_check)
        unit = model.usual_weight
        if model.listeners == "unanswered":
            explanation += f" {describe_limit(bool(Source(found.answers).find_told().all()), 'The graph')}"
        value = {"coupling": found.coupling, "usual_weight": unit, "listeners": model.listeners}
        heard = "" if model.listeners == "all" else ", for items that nobody answered"
        weighted = describe_usual(unit)
        text = f"coupling {(found.coupling or 0.0) * unit:.2f} nats per agreeing neighbour{weighted}{heard}"
        text = to_sentence(text) if weighted else text
        field = Fact("field", "Graph", {**value, "explanation": explanation}, text)
    elif hasattr(model, "explain_coupling"):
        value = {"coupling": found.coupling, "explanation": model.explain_coupling()}
        chain = Fact("chain", "Chain", value, f"coupling {found.coupling:g}, from 0 (independent items) to 1")
    return [chain, field]


def describe_features(found: Result) -> Fact:
    """What features were found to say."""
    if found.guidance is None:
        return Fact("features", "", None)
    findings, explanation = found.guidance.findings, found.guidance.findings.describe()
    return Fact("features", "Features", {**findings._asdict(), "explanation": explanation}, explanation)


# ----------------------------------------------------------------------------------------------------------- workers


def tabulate_workers(model: Any) -> pa.Table:
    """The worker report, those first who call for attention; where answers have an order, also how accuracy changes."""
    table = pa.table(model.worker_report())
    if model.result_.drift is not None:
        changes = model.drift_report()
        for name in _CHANGES:
            table = table.append_column(name, changes[name])
    kind, accuracy = rank_attention(table)
    return table.take(np.lexsort((accuracy, kind)))


def rank_workers(report: pa.Table) -> tuple[NDArray[np.int64], int]:
    """The rows of a worker report from most to least reliable, and how many workers are left out.

    They are in the order of `rank_attention`, from its end. Workers with few answers are left out, since little is
    known about them, unless there are no others.
    """
    kind, accuracy = rank_attention(report)
    known = ~np.asarray(pc.match_substring(report["remarks"], FEW))
    ranked = np.lexsort((-accuracy, -kind))
    ranked = ranked[known[ranked]] if known.any() else ranked
    return ranked, len(kind) - len(ranked)


def list_workers(model: Any, all_workers: bool) -> list[Part]:
    """The workers at both ends, those first who call for attention."""
    found, report = model.result_, tabulate_workers(model)
    ranked, n_few = rank_workers(report)
    if all_workers:
        ranked, n_few = np.append(ranked, np.setdiff1d(np.arange(len(report)), ranked)), 0
    n_best = len(ranked) if all_workers else min(N_WORKERS, -(-len(ranked) // 2))
    n_worst = min(N_WORKERS, len(ranked) - n_best)
    if len(ranked) - n_best - n_worst == 1:  # to say that one is left out would take as much room
        n_worst += 1
    n_hidden = len(ranked) - n_best - n_worst
    best: list[Record] = report.take(ranked[:n_best]).to_pylist()
    worst: list[Record] = report.take(ranked[::-1][:n_worst]).to_pylist()
    classifier: Record | None = None
    if found.guidance is not None and found.guidance.findings.used:
        classifier = pa.table(model.classifier_report()).to_pylist()[0]
    figures = Facts(
        [
            Fact("most_reliable", "", best),
            Fact("least_reliable", "", worst),
            Fact("workers_with_few_answers", "", n_few),
            Fact("classifier", "", classifier),
        ]
    )
    if all(each["accuracy"] is None for each in (*best, *worst)):
        return [figures]
    dots: Record = dict.fromkeys(each.key for each in _WORKER)
    rows = [*worst, *([dots] if n_hidden else []), *best[::-1]]
    rows += [] if classifier is None else [{**classifier, "worker": "(classifier)"}]
    rows = [row | {"brief": None if row is dots else shorten_remarks(row)} for row in rows]
    columns = _WORKER if any(row["brief"] for row in rows) else _WORKER[:-1]
    left_out = f" ({n_hidden:,} between left out)" if n_hidden else ""
    table = Table.of("", f"Workers, those to look at first{left_out}", columns, rows)
    few = Text([f"Not ranked: {plural(n_few, 'worker')} with few answers"], quiet=True)
    return [figures, table, *([few] if n_few else [])]


def shorten_remarks(worker: Record) -> str:
    """The remarks in few words, and how sure a classifier is if that is not right."""
    remarks = "; ".join(each for each in (worker.get("sureness"), worker["remarks"]) if each and each != WELL_SURE)
    for long, short in (("accuracy falls", "falls"), ("answers as if", "as if"), ("(group ", "(")):
        remarks = remarks.replace(long, short)
    return remarks


# ------------------------------------------------------------------------------------------------------------- items


def list_least_certain(found: Result) -> list[Part]:
    """The items with the lowest confidence, each with the class that came second; of sets the tag that is in doubt."""
    if found.told_confidence is None:
        return [Table("least_certain", "", [], [])]
    task, labels = found.task, found.labels
    is_set = task.results == "sets"
    records: list[Record] = []
    if is_set:
        sets = build_frame(task.arrange(labels, labels.shown, None) or {}, "pyarrow")
        for row in sets.take(np.argsort(sets["confidence"].to_numpy(), kind="stable")[:N_ITEMS]).to_pylist():
            chances = {name[2:-1]: value for name, value in row.items() if name.startswith("p(")}
            second = min(chances, key=lambda tag: abs(chances[tag] - 0.5), default=None)
            label = ", ".join(map(str, row["labels"] or ())) or "(no tag)"
            records.append({"item": row["item"], "label": label, "confidence": row["confidence"], "runner_up": second})
            records[-1]["runner_up_probability"] = None if second is None else chances[second]
    else:
        confidence = labels.confidence
        n_shown = min(N_ITEMS, len(confidence))
        rows = np.flatnonzero(confidence <= np.partition(confidence, n_shown - 1)[n_shown - 1])
        rows = rows[np.argsort(confidence[rows], kind="stable")][:N_ITEMS]
        part, words = labels.part(rows), task.show(rows)
        listed = dict(part.keys) | ({} if words is None else {"text": to_column(words)})
        listed |= {"label": to_column(part.values), "confidence": to_column(part.confidence)}
        records = to_records(listed)
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
        Column("runner_up", "in doubt" if is_set else "runner-up"),
        Column("runner_up_probability", "probability", "figure"),
    ]
    shown = Table.of("least_certain", "Least certain items", columns, records[:N_SHOWN])
    table: list[Part] = [replace(shown, data=records)]
    if not is_set and any((each["runner_up_probability"] or 0) > each["confidence"] for each in records[:N_SHOWN]):
        why = "Labels are medians" if labels.rule == "median" else "The labels of a sequence are chosen together"
        table.append(Text([f"{why}, so a runner-up can be ahead."], quiet=True))
    return table


def list_first_labels(found: Result, most: int) -> Table:
    """The first labels with their confidence."""
    labels = found.labels.part(slice(most))
    columns = [*(Column(name, name) for name in labels.keys), Column("label", "label")]
    columns.append(Column("confidence", "confidence", "figure"))
    listed = {**labels.keys, "label": to_column(labels.values), "confidence": to_column(labels.shown_confidence)}
    records = to_records(listed)
    rows = [[record[each.key] for each in columns] for record in records]
    return Table("labels", "", columns, rows, found.labels.n_items - labels.n_items)


# ----------------------------------------------------------------------------------------------- several questions


def describe_questions(found: Any, title: str = "") -> Document:
    """The overview of several questions to the same workers, with that of each."""
    documents = {name: describe_fit(model, name) for name, model in found.items()}
    rows = []
    for name, document in documents.items():
        values = {each.key: each.value for facts in document.find(Facts) for each in facts.facts}
        tags, compared, told = values["tags"], values["comparison"], values["mean_confidence"]
        sizes = len(values["classes"]), values["items"], values["answers"]
        sure = told if tags is None or told is None else tags["mean_confidence"]
        rows.append([name, *sizes, sure, "" if compared is None else compared["verdict"]])
    counted = ("classes", "items", "answers")
    columns = [Column("question", "question"), *(Column(name, name, "count") for name in counted)]
    columns += [Column("mean_confidence", "confidence", "figure"), Column("verdict", "against the vote")]
    blocked = max((len(each.result_.blocked) for each in found.values() if each.result_.blocked is not None), default=0)
    shared, workers = found.shared_, pa.table(found.worker_report()).to_pylist()
    facts = [
        Fact("", "Questions", None, f"{len(found)}"),
        Fact("", "Left out" if blocked else "", None, plural(blocked, "blocked worker")),
        Fact("sharing", "", None if shared is None else {"own": shared.own, "easiness": shared.easiness}),
        Fact("explanation", "", found.explain_sharing()),
        Fact("workers", "", workers),
    ]
    suspects = sorted((row for row in workers if (row["chance"] or 0.0) >= SUSPECT), key=lambda row: -row["chance"])
    heads = [Column("worker", "worker"), Column("answers", "answers", "count")]
    heads += [Column(name, name, "figure") for name in ("accuracy", "chance")]
    listed: list[Part] = [Text(["No worker seems to answer without looking, judging by all questions."])]
    if suspects:
        first = [[row[each.key] for each in heads] for row in suspects[:N_SUSPECTS]]
        who = "Who may answer without looking, over all questions"
        remedy = "Leave out those above .9 with --block FILE, a table with a column worker."
        listed = [Table("", who, heads, first, len(suspects) - len(first)), Text([remedy])]
    parts: list[Part] = [Facts(facts), Table("", "", columns, rows), Text([found.explain_sharing()])]
    return Document(title, "", [*parts, Documents("questions", documents), *listed])
