"""Silence as an answer: labelling functions of BC5CDR, by the coupling of the chain and the number of iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from consilience import HiddenMarkov, MajorityVote, held_out_score, read_answers
from consilience.metrics.labels import span_f1

from .chain_coupling import COUPLINGS
from .crowds import Crowd, load_crowd, measure_sequences
from .drawing import Curve, draw_gains
from .experiment import Experiment, Job, Record, falls, pick, rises, sure_mean_of, values_of
from .markdown import make_list, make_paragraph, make_table, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATA = "bc5cdr"
VOTE, IGNORED, LEARNED, FIXED = "majority vote", "silence ignored", "learned coupling", "fixed coupling"
ALL = "to convergence"
ITERATIONS = ("1", "2", "5", "10", ALL)


def run_defaults() -> list[Record]:
    """Score majority vote, and the default with and without silence."""
    crowd = load_crowd(DATA)
    spoken = read_answers(crowd.stored.folder / "responses.parquet", items=list(crowd.stored.gold))
    assert spoken.items.tolist() == crowd.responses.items.tolist()
    vote = MajorityVote().fit(crowd.responses)
    ignored, learned = (HiddenMarkov(transitions="bio").fit(r) for r in (spoken, crowd.responses))
    return [
        {"model": VOTE, "f": _score(crowd, vote)},
        {"model": IGNORED, "f": _score(crowd, ignored)},
        {"model": LEARNED, "f": _score(crowd, learned), "chosen": learned.coupling_},
    ]


def run_couplings(iterations: str) -> list[Record]:
    """Score each coupling after a number of iterations, and how well it predicts hidden answers."""
    crowd = load_crowd(DATA)
    limit: dict[str, Any] = {} if iterations == ALL else {"max_iter": int(iterations), "tol": 0}
    records: list[Record] = []
    for coupling in COUPLINGS:
        model = HiddenMarkov(transitions="bio", coupling=coupling, **limit)
        case = {"model": FIXED, "iterations": iterations, "coupling": coupling}
        hidden = held_out_score(model, crowd.responses)
        records.append({**case, "f": _score(crowd, model.fit(crowd.responses)), "held_out": hidden.score})
    return records


def _score(crowd: Crowd, model: Any) -> float:
    known = crowd.truth != ""
    found = np.asarray(model.labels_)[known]
    return span_f1(crowd.truth[known], found, measure_sequences(crowd.responses, known))


def draw_figure(records: list[Record]) -> Figure:
    """Draw F over the coupling, against the vote, with a mark where hidden answers are predicted best."""
    vote = sure_mean_of(records, "f", model=VOTE)
    curves = {}
    for iterations in values_of(pick(records, model=FIXED), "iterations"):
        here = pick(records, iterations=iterations)
        best = max(here, key=lambda record: record["held_out"])
        mark = (best["coupling"], best["f"] - vote)
        curves[_tell_limit(iterations)] = Curve(COUPLINGS, [record["f"] - vote for record in here], mark)
    return draw_gains(curves, "coupling of the chain", "F against the vote, in points", "best for hidden answers")


def _tell_limit(iterations: str) -> str:
    return {"1": "1 iteration", ALL: ALL}.get(iterations, f"{iterations} iterations")


def tell_scores(records: list[Record]) -> str:
    """Show the scores by coupling and number of iterations."""
    f_table, hidden_table = (
        make_table(
            ["", *(f"coupling {coupling:g}" for coupling in COUPLINGS)],
            [
                [_tell_limit(iterations), *(number(record[score]) for record in pick(records, iterations=iterations))]
                for iterations in values_of(pick(records, model=FIXED), "iterations")
            ],
        )
        for score in ("f", "held_out")
    )
    (learned,) = pick(records, model=LEARNED)
    defaults = f"""
        Strict span F. Majority vote, O where all are silent: {number(sure_mean_of(records, "f", model=VOTE))}.
        `HiddenMarkov(transitions="bio")` with silence ignored: {number(sure_mean_of(records, "f", model=IGNORED))}. The
        same with `abstain="answer"`: {number(learned["f"])}, with the learned coupling {learned["chosen"]:g}. With a
        given coupling:"""
    return f"""
{make_paragraph(defaults)}

{f_table}

Mean log probability of hidden answers (higher is better):

{hidden_table}
"""


def tell_findings(records: list[Record]) -> str:
    """Say whether hidden answers are a good judge where silence is an answer."""
    vote, chains = sure_mean_of(records, "f", model=VOTE), pick(records, model=FIXED)
    f, hidden = ([record[score] for record in pick(chains, iterations=ALL)] for score in ("f", "held_out"))
    why = """
        An answer that is hidden looks like silence, which counts as evidence against it. The more a model concludes
        from silence, the less it expects what was hidden, whether it is right about the words or not."""
    best = max(chains, key=lambda record: record["held_out"])
    late = [record["f"] for record in pick(chains, iterations="5")]
    settled = max(abs(early - last) for early, last in zip(late, f, strict=True))
    return make_list(
        [
            f"""Hidden answers are a poor judge here. From coupling 0 to 1, at convergence, their mean log probability
            falls from {number(hidden[0])} to {number(hidden[-1])}, while F rises from {number(f[0])} to
            {number(f[-1])}. {why}"""
            if falls(hidden) and rises(f)
            else "",
            f"""Of all these fits they choose coupling {best["coupling"]:g} and {_tell_limit(best["iterations"])}. Its F
            is {number(best["f"])}, that of the vote {number(vote)}.""",
            """After five iterations F changes by less than 0.005. Items are anchored to their votes, so a long fit does
            not drift away, and no rule for stopping is needed."""
            if settled < 0.005
            else "",
        ]
    )


EXPERIMENT = Experiment(
    name="silence",
    title="Silence as an answer (BC5CDR): F-score by coupling and number of iterations, against majority vote",
    keys={"model": str, "iterations": str, "coupling": float},
    scores=("f", "held_out", "chosen"),
    jobs=[
        Job(run_defaults, data=(DATA,), quick=True),
        *(Job(run_couplings, {"iterations": each}, data=(DATA,), quick=each == "1") for each in ITERATIONS),
    ],
    draw=draw_figure,
    tell=tell_scores,
    tell_findings=tell_findings,
    tolerance=0.005,
)
