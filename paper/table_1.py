"""Table 1: real sequences. Parts of speech, named entities, and populations in abstracts of clinical trials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience import Answers, DawidSkene, HiddenMarkov
from consilience.errors import InputError

from .crowds import Crowd, keep_busiest, load_crowd, measure_sequences, merge_labels, reorder_classes
from .drawing import draw_scores
from .experiment import Experiment, Job, Record, mean_of, pick, sure_mean_of
from .markdown import join, make_list, make_table, number, verdict, with_printed
from .methods import (
    ALG_2,
    ALG_2_1,
    DS,
    LABELS,
    METHODS,
    MV,
    MV_1,
    MV_DS,
    MV_FIRST,
    MV_INSIDE,
    MV_OUTSIDE,
    OURS,
    OURS_ALONE,
    OURS_SEQUENTIAL,
    SINGLE_BEST,
)
from .printed import TABLE_1
from .scoring import (
    OUTSIDE,
    Score,
    find_best_worker,
    score_classes,
    score_inside,
    score_parts_of_spans,
    score_per_sequence,
    score_spans,
)
from .taggers import CREW, tag_treebank

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POS, NER, IE = "POS", "NER", "Biomedical IE"
PER_SENTENCE, CLASSES, SPANS, PARTS, WORDS = "per sentence", "classes", "spans", "parts of spans", "words"
# How each is scored. The first is the score that the paper prints.
PROTOCOLS = {POS: (PER_SENTENCE, CLASSES), NER: (SPANS, CLASSES), IE: (PARTS, WORDS, CLASSES)}
PAPER = (MV, MV_OUTSIDE, MV_INSIDE, DS, MV_DS, ALG_2, ALG_2_1, MV_1)
IE_WORKERS = (120, 312)


def run_pos(answers: str) -> list[Record]:
    """Score all methods on parts of speech: on the stored answers, or on those of newly trained taggers ("seed 0")."""
    crowd = load_crowd("pos")
    r = crowd.responses if answers == "stored" else _train_taggers(crowd, int(answers.removeprefix("seed ")))
    bench = Bench(POS, answers, r, crowd.truth)
    return [*bench.score_paper(), *bench.score_ours({OURS_ALONE: DawidSkene(**LABELS), OURS: HiddenMarkov(**LABELS)})]


def _train_taggers(crowd: Crowd, seed: int) -> Answers:
    """Return the answers of newly trained taggers about the same words."""
    folder = crowd.stored.folder
    answers, sentences = tag_treebank(folder, seed)
    if [tag for sentence in sentences for tag in sentence] != crowd.truth.tolist():
        raise InputError(f"treebank.zip and gold.parquet in {str(folder)!r} do not hold the same sentences.")
    classes = crowd.responses.classes.tolist()
    code = {tag: k for k, tag in enumerate(classes)}
    matrix = np.array([[code[tag] for tag in tags] for tags in answers]).T
    return Answers.from_matrix(matrix, lengths=[len(each) for each in sentences], labels=classes, workers=list(CREW))


def run_ner() -> list[Record]:
    """Score all methods on named entities."""
    crowd = load_crowd("ner")
    bench = Bench(NER, "stored", crowd.responses, crowd.truth)
    ours = {
        OURS_ALONE: DawidSkene(**LABELS),
        OURS: HiddenMarkov(transitions="bio", **LABELS),
        OURS_SEQUENTIAL: HiddenMarkov(transitions="bio", workers="sequential", coupling=1.0, **LABELS),
    }
    return [*bench.score_paper(), *bench.score_ours(ours)]


def run_ie(workers: int) -> list[Record]:
    """Score all methods on abstracts, with the answers of the workers who gave most.

    The paper's methods see two classes, inside a span and outside. Ours see the tags B, I and O.
    """
    _, r, truth = load_crowd("pico")
    r, answers = keep_busiest(r, workers), f"{workers} workers"
    merged = merge_labels(r, {label: OUTSIDE if label == OUTSIDE else "I" for label in r.labels.tolist()})
    inside = Bench(IE, answers, merged, np.where(truth == "B", "I", truth))
    ours = {OURS_ALONE: DawidSkene(**LABELS), OURS: HiddenMarkov(transitions="bio", **LABELS)}
    return [*inside.score_paper(), *Bench(IE, answers, r, truth).score_ours(ours)]


class Bench:
    """Answers and the truth where it is known, for scoring whatever labels them."""

    def __init__(self, data: str, answers: str, r: Answers, truth: Any) -> None:
        self._case = {"data": data, "answers": answers}
        self._r, self._truth, self._known = r, truth, truth != ""

    def score_paper(self) -> Iterator[Record]:
        """Yield the scores of the methods that the paper compares."""
        yield from self._score_best_worker()
        for method in PAPER:
            if method not in (MV_OUTSIDE, MV_INSIDE):
                yield from self._record(method, METHODS[method]().fit(self._r))
            elif OUTSIDE in self._r.classes:
                # Ties go to the first class, so O comes first or last.
                order = sorted(self._r.classes.tolist(), key=lambda name: (name == OUTSIDE) == (method == MV_INSIDE))
                yield from self._record(method, METHODS[MV_FIRST]().fit(reorder_classes(self._r, order)))

    def score_ours(self, models: dict[str, Any]) -> Iterator[Record]:
        """Yield the scores of our models."""
        for method, model in models.items():
            yield from self._record(method, model.fit(self._r))

    def _record(self, method: str, model: Any) -> Iterator[Record]:
        more = {"coupling": model.coupling_} if isinstance(model, HiddenMarkov) else {}
        yield from self._score(method, np.asarray(model.labels_), self._known, **more)

    def _score_best_worker(self) -> Iterator[Record]:
        """Yield the scores of the best worker, who is chosen with gold, on the items that this worker answered."""
        code = {label: k for k, label in enumerate(self._r.classes.tolist())}
        best = find_best_worker(self._r, np.array([code.get(label, -1) for label in self._truth.tolist()]))
        found = np.full(len(self._truth), "", dtype=object)
        found[best.items] = self._r.classes[best.said]
        answered = found != ""
        yield from self._score(SINGLE_BEST, found, answered, coverage=float(answered.sum() / self._known.sum()))

    def _score(self, method: str, labels: Any, chosen: Any, **more: Any) -> Iterator[Record]:
        truth, found = self._truth[chosen], labels[chosen].astype(str)
        lengths = measure_sequences(self._r, chosen)
        for protocol in PROTOCOLS[self._case["data"]]:
            score = self._measure(protocol, truth, found, lengths)
            yield {**self._case, "method": method, "protocol": protocol, **score._asdict(), **more}

    def _measure(self, protocol: str, truth: Any, found: Any, lengths: Any) -> Score:
        if protocol == SPANS:
            return score_spans(truth, found, lengths)
        if protocol == PARTS:
            return score_parts_of_spans(truth, found, lengths)
        if protocol == WORDS:
            return score_inside(truth, found)
        if protocol == PER_SENTENCE:
            code = {label: k for k, label in enumerate(self._r.classes.tolist())}
            true, said = (np.array([code[label] for label in labels.tolist()]) for labels in (truth, found))
            return score_per_sequence(true, said, lengths, len(code))
        if self._case["data"] == IE:
            return score_classes(truth != OUTSIDE, found != OUTSIDE)
        return score_classes(truth, found)


SHOWN = (SINGLE_BEST, *PAPER, OURS_ALONE, OURS, OURS_SEQUENTIAL)
ROWS = ((POS, "stored"), (NER, "stored"), (IE, "120 workers"))


def draw_figure(records: list[Record]) -> Figure:
    """Draw F of all methods, by the protocol of the paper."""
    scores = {
        method: {
            data: (
                mean_of(records, "f", data=data, answers=answers, method=method, protocol=PROTOCOLS[data][0]),
                TABLE_1[data]["f"].get(method),
            )
            for data, answers in ROWS
        }
        for method in SHOWN
    }
    return draw_scores([data for data, _ in ROWS], scores, "F-score by the paper's protocol")


def tell_scores(records: list[Record]) -> str:
    """Show the scores of all methods beside the printed ones, and F by the other protocols."""
    parts = []
    for data, answers in dict.fromkeys((record["data"], record["answers"]) for record in records):
        here = pick(records, data=data, answers=answers)
        first, *others = PROTOCOLS[data]
        rows = [
            [
                method,
                *(
                    with_printed(
                        number(mean_of(here, score, method=method, protocol=first)), TABLE_1[data][score].get(method)
                    )
                    for score in ("precision", "recall", "f")
                ),
                *(number(mean_of(here, "f", method=method, protocol=protocol)) for protocol in others),
                number(mean_of(here, "coupling", method=method, protocol=first), 2),
            ]
            for method in SHOWN
            if pick(here, method=method)
        ]
        head = ["method", "P", "R", "F", *(f"F, {_tell_protocol(protocol)}" for protocol in others), "coupling"]
        table = make_table(head, rows)
        parts.append(f"**{data}**, {_tell_answers(data, answers)}: {_tell_protocol(first)}.\n\n{table}")
    return "\n\n".join(parts)


def _tell_answers(data: str, answers: str) -> str:
    if data == POS:
        return "the stored answers" if answers == "stored" else f"newly trained taggers ({answers})"
    return answers if data == IE else "the crowd's answers"


def _tell_protocol(protocol: str) -> str:
    return {
        PER_SENTENCE: "means over sentences and classes, absent classes count 0 (printed numbers in parentheses)",
        SPANS: "strict spans (printed numbers in parentheses)",
        PARTS: "relaxed spans (printed numbers in parentheses)",
        WORDS: "words inside a span",
        CLASSES: "macro over words",
    }[protocol]


def tell_findings(records: list[Record]) -> str:
    """Say how Dawid and Skene's EM compares with the paper's hidden Markov model."""
    f = {
        (data, method): sure_mean_of(
            records, "f", data=data, answers=answers, method=method, protocol=PROTOCOLS[data][0]
        )
        for data, answers in ROWS
        for method in (DS, MV_DS, ALG_2_1)
    }
    printed = [data for data, _ in ROWS if TABLE_1[data]["f"][DS] < TABLE_1[data]["f"][ALG_2_1]]
    above = {method: [data for data, _ in ROWS if f[data, method] > f[data, ALG_2_1]] for method in (DS, MV_DS)}
    pairs = join([f"{number(f[data, MV_DS])} against {number(f[data, ALG_2_1])} on {data}" for data, _ in ROWS])
    return make_list(
        [
            f"""{verdict(not above[DS])} Dawid and Skene's EM is below Alg. 2 + Alg. 1 (as printed, on
            {join(printed)}). Here EM from moments is above it on {join(above[DS])}, and EM from the vote on
            {join(above[MV_DS])}: {pairs}."""
        ]
    )


EXPERIMENT = Experiment(
    name="table-1",
    title="Table 1, real sequences: F-scores measured (filled) and printed (hollow)",
    keys={"data": str, "answers": str, "method": str, "protocol": str},
    scores=("precision", "recall", "f", "coverage", "coupling"),
    jobs=[
        Job(run_pos, {"answers": "stored"}, data=("pos",)),
        Job(run_pos, {"answers": "seed 0"}, data=("pos",)),
        Job(run_ner, data=("ner",), quick=True),
        *(Job(run_ie, {"workers": workers}, data=("pico",)) for workers in IE_WORKERS),
    ],
    draw=draw_figure,
    tell=tell_scores,
    tell_findings=tell_findings,
    tolerance=0.01,
)
