"""Valid crowds of every kind, and every model on them: each case draws a crowd and a model, fits and checks the result.

What is checked: probabilities are finite and sum to one, labels are classes, gold is kept, what is forbidden is never
decoded, an objective that must not fall does not, predictions for the answers of the fit are those of the fit, and a
model that is saved and loaded has the same bits.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import consilience as cs
from consilience.answers.tagging import find_transitions
from consilience.inference.estimator import renew
from consilience.models.latent import LatentModel
from consilience.results.fitting import Others
from fuzz.harness import Nonsense

Rng = np.random.Generator

LETTERS = {
    "text": ["ant", "bee", "cat", "dog", "eel"],
    "numbers": [3, 1, 2**40, -7, 0],
    "tags": ["O", "B-X", "I-X", "B-Y", "I-Y"],
}
# By how much an objective may fall through rounding, as a share of its size.
ROUNDING = 1e-9


class Crowd(NamedTuple):
    """What a model is fitted to."""

    responses: Any
    graph: Any
    gold: dict[Any, Any] | None


def prepare() -> None:
    """Compile: the first cases would take seconds. What these cases find the others will find too."""
    for seed in range(20):
        with warnings.catch_warnings(), suppress(cs.errors.ConsilienceError, Nonsense):
            warnings.simplefilter("ignore")
            fit_and_check(np.random.default_rng(seed), None)


def run(rng: Rng, folder: Path) -> str:
    """Draw a crowd and a model, fit, and check all that can be asked of the model."""
    return fit_and_check(rng, folder)


def fit_and_check(rng: Rng, folder: Path | None) -> str:
    """Do one case; return the name of the model. Without a folder nothing is saved."""
    crowd = draw_crowd(rng)
    model = draw_model(rng, crowd)
    graph = crowd.graph if isinstance(model, cs.MarkovField) else None
    model.fit(crowd.responses, graph=graph, gold=crowd.gold)
    check_estimates(model, crowd)
    check_labels(model, crowd)
    check_trace(model)
    check_predictions(model, crowd, graph)
    if folder is not None:
        check_saved(model, crowd, graph, folder)
    if rng.random() < 0.1:
        check_judgement(rng, model, crowd, graph)
    return type(model).__name__


# --------------------------------------------------------------------------------------------------------------- crowds


def draw_crowd(rng: Rng) -> Crowd:
    """Draw answers, a graph over their items or none, and known labels or none."""
    draw = (draw_table, draw_table, draw_table, draw_table, draw_matrix, draw_votes, draw_sets)[rng.integers(7)]
    responses = draw(rng)
    if draw is draw_sets:
        return Crowd(responses, None, None)
    graph = draw_graph(rng, responses.items) if rng.random() < 0.5 else None
    return Crowd(responses, graph, draw_gold(rng, responses) if rng.random() < 0.3 else None)


def draw_sizes(rng: Rng) -> tuple[int, int, int]:
    """Return how many items, workers and classes there are: few, and often one."""
    n_items, n_workers = int(rng.choice([1, 2, 3, 5, 8, 20, 60])), int(rng.choice([1, 2, 3, 4, 7]))
    if rng.random() < 0.03:
        n_items, n_workers = (400, n_workers) if rng.random() < 0.5 else (n_items, 300)
    return n_items, n_workers, int(rng.choice([1, 2, 2, 3, 5]))


def draw_codes(rng: Rng, n_items: int, n_workers: int, n_classes: int) -> Any:
    """Return a matrix of answers (n_items, n_workers) of one of many kinds, -1 where there is none, not everywhere."""
    truth = rng.integers(n_classes, size=n_items)
    noise = rng.integers(n_classes, size=(n_items, n_workers))
    right = rng.random((n_items, n_workers)) < rng.random(n_workers)
    kinds = [
        np.where(right, truth[:, None], noise),
        noise,
        np.repeat(truth[:, None], n_workers, axis=1),  # unanimous
        np.repeat(noise[:, :1], n_workers, axis=1),  # copies
        np.zeros_like(noise),  # one-sided
        np.tile(rng.integers(n_classes, size=n_workers), (n_items, 1)),  # each worker always says the same
        np.where(right, truth[:, None], (truth[:, None] + 1) % n_classes),  # contrary
    ]
    codes = kinds[rng.integers(len(kinds))]
    codes[rng.random(codes.shape) < rng.choice([0.0, 0.3, 0.8])] = -1
    if rng.random() < 0.1:  # nobody checks anybody
        only = rng.integers(n_workers, size=n_items)
        codes[np.arange(n_workers) != only[:, None]] = -1
    codes[rng.integers(n_items), rng.integers(n_workers)] = rng.integers(n_classes)
    return codes


def draw_weights(rng: Rng, size: int) -> Any:
    weights = [rng.uniform(0.01, 1, size), np.full(size, 0.5), 10 ** rng.uniform(-12, 0, size), np.ones(size)]
    weights.append(rng.choice([5e-324, 1e-300, 1e-16, 1.0], size))
    return weights[rng.integers(len(weights))]


def draw_lengths(rng: Rng, n_items: int) -> list[int]:
    """Cut items in sequences, of which many are short."""
    cuts = np.flatnonzero(rng.random(n_items - 1) < rng.choice([0.0, 0.1, 0.5, 1.0])) + 1
    return np.diff([0, *cuts, n_items]).tolist()


def draw_table(rng: Rng) -> Any:
    """Return answers from a long table, with everything that goes with one."""
    n_items, n_workers, n_classes = draw_sizes(rng)
    codes = draw_codes(rng, n_items, n_workers, n_classes)
    kind = ("text", "numbers", "tags")[rng.integers(3)]
    names = LETTERS[kind]
    rows, columns = np.nonzero(codes >= 0)
    order = rng.permutation(len(rows))
    rows, columns = rows[order], columns[order]
    table: dict[str, Any] = {
        "worker": [f"w{m}" for m in columns],
        "label": [names[k] for k in codes[rows, columns]],
    }
    keywords: dict[str, Any] = {}
    if rng.random() < 0.5:
        lengths = draw_lengths(rng, n_items)
        owner = np.repeat(np.arange(len(lengths)), lengths)
        place = np.arange(n_items) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        table |= {"sequence": [f"s{i}" for i in owner[rows]], "position": place[rows].tolist()}
        everything: list[Any] = [(f"s{i}", int(p)) for i, p in zip(owner, place, strict=True)]
    else:
        call = (int, str, lambda i: ("doc", i))[rng.choice(3, p=[0.47, 0.5, 0.03])]
        table["item"] = [call(i) for i in rows.tolist()]
        everything = [call(i) for i in range(n_items + int(rng.integers(3)))]
    if rng.random() < 0.4:
        keywords["items"] = everything
    if rng.random() < 0.25:
        table["weight"] = draw_weights(rng, len(rows)).tolist()
        keywords["weight"] = "weight"
    if rng.random() < 0.25:
        said = list(dict.fromkeys(table["label"]))
        others = [name for name in names if name not in said]
        keywords["classes"] = said[: rng.integers(1, len(said) + 1)] + others[: rng.integers(len(others) + 1)]
    if kind == "numbers" and rng.random() < 0.6:
        keywords["ordered"] = True
    elif rng.random() < 0.15 and "weight" not in keywords:
        keywords["abstain"] = "answer"
        keywords["background"] = keywords.get("classes", table["label"])[0]
    return cs.Answers.from_frame(table, **keywords)


def draw_matrix(rng: Rng) -> Any:
    n_items, n_workers, n_classes = draw_sizes(rng)
    codes = draw_codes(rng, n_items, n_workers, n_classes)
    return cs.Answers.from_matrix(
        codes,
        lengths=draw_lengths(rng, n_items) if rng.random() < 0.5 else None,
        labels=LETTERS["text"] if rng.random() < 0.5 else None,
    )


def draw_votes(rng: Rng) -> Any:
    """Return soft votes, of which some count less than one, and some rows are missing."""
    shape = draw_sizes(rng)
    with np.errstate(all="ignore"):
        votes = rng.dirichlet(np.full(shape[2], rng.choice([0.05, 1.0, 50.0])), size=shape[:2])
    votes = np.where(np.isfinite(votes), votes, 1 / shape[2])
    votes *= rng.choice([1.0, 0.5])
    votes[rng.random(shape[:2]) < rng.choice([0.0, 0.5])] = np.nan
    votes[0, 0] = 1 / shape[2]
    lengths = draw_lengths(rng, shape[0]) if rng.random() < 0.5 else None
    return cs.Answers.from_probabilities(votes, lengths=lengths)


def draw_sets(rng: Rng) -> Any:
    """Return sets of tags, as answers about each tag of each item."""
    n_items, n_workers, n_tags = draw_sizes(rng)
    chosen = np.stack([draw_codes(rng, n_items, n_workers, 2) for _ in range(n_tags)], axis=2)
    rows, columns = np.nonzero((chosen >= 0).any(axis=2))
    said = [
        [LETTERS["text"][tag] for tag in np.flatnonzero(chosen[i, m] == 1)] for i, m in zip(rows, columns, strict=True)
    ]
    table = {"item": rows.tolist(), "worker": [f"w{m}" for m in columns], "label": said}
    return cs.Tags.from_frame(table, classes=LETTERS["text"][:n_tags]).to_responses()


def draw_gold(rng: Rng, responses: Any) -> dict[Any, Any]:
    items, classes = responses.items.tolist(), responses.classes.tolist()
    chosen = rng.permutation(len(items))[: rng.integers(1, len(items) + 1)]
    return {items[i]: classes[rng.integers(len(classes))] for i in chosen}


def draw_graph(rng: Rng, items: Any) -> Any:
    n = len(items)
    ids, everyone = items.tolist(), np.arange(n)
    parents = (rng.random(n) * everyone).astype(int)  # each node hangs on an earlier one
    some = rng.random(n) < 0.6
    n_edges = int(rng.integers(3 * n + 1))
    kinds = [
        (everyone[:-1], everyone[1:]),  # a path
        (everyone, parents),  # a tree
        (everyone[some], parents[some]),  # a forest
        (np.zeros(n, int), everyone),  # a star
        (rng.integers(n, size=n_edges), rng.integers(n, size=n_edges)),
        (everyone[:0], everyone[:0]),
        (everyone, everyone),  # nothing but self loops
        tuple(np.triu_indices(min(n, 12), 1)),
    ]
    source, target = kinds[rng.integers(len(kinds))]
    n_edges = len(source)
    usual, unusual = rng.uniform(0.1, 2, n_edges), rng.choice([1e-300, 1.0, 1e155, 1e308], n_edges)
    weights = [None, usual, 10 ** rng.uniform(-8, 8, n_edges), unusual][rng.choice(4, p=[0.4, 0.3, 0.2, 0.1])]
    if rng.random() < 0.1:
        sides = [d for d in range(1, n + 1) if n % d == 0]
        height = int(rng.choice(sides))
        return cs.Graph.grid((height, n // height), connectivity=int(rng.choice([4, 8])), items=items)
    return cs.Graph.from_edges([ids[i] for i in source], [ids[i] for i in target], weights, items=items)


# --------------------------------------------------------------------------------------------------------------- models


def draw_model(rng: Rng, crowd: Crowd) -> Any:
    """Return a model that goes with the crowd, with parameters drawn from all that it can have."""
    if crowd.responses.classes.tolist() == ["no", "yes"]:
        return draw_tag_sets(rng)
    kinds = ["vote", "independent", "independent"] + ["moments"] * (not crowd.responses.silence_counts)
    kinds += ["chain"] * 4 * (crowd.responses.sequences is not None) + ["field"] * 4 * (crowd.graph is not None)
    kind = kinds[rng.integers(len(kinds))]
    if kind == "vote":
        return cs.MajorityVote(ties=str(rng.choice(["random", "first"])), seed=int(rng.integers(9)))
    if kind == "moments":
        return draw_moments(rng, crowd)
    common = draw_common(rng, crowd.responses)
    if kind == "independent":
        return cs.DawidSkene(**common)
    return (draw_chain if kind == "chain" else draw_field)(rng, crowd, common)


def draw_tag_sets(rng: Rng) -> Any:
    return cs.TagSets(
        max_iter=int(rng.choice([1, 5, 50])),
        tol=float(rng.choice([0, 1e-5, 1])),
    )


def draw_moments(rng: Rng, crowd: Crowd) -> Any:
    return cs.MomentMatching(
        prior=draw_prior(rng, crowd.responses.n_classes),
        shrinkage=float(rng.choice([0, 1, 20, 1e6])),
        max_iter=int(rng.choice([1, 5, 50])),
        tol=float(rng.choice([0, 1e-5, 1])),
    )


def draw_prior(rng: Rng, n_classes: int) -> Any:
    if rng.random() < 0.6:
        return "learn"
    return ["uniform", rng.dirichlet(np.ones(n_classes)), np.eye(n_classes)[0]][rng.choice(3, p=[0.5, 0.4, 0.1])]


def draw_common(rng: Rng, r: Any) -> dict[str, Any]:
    """Return parameters that all models with a hidden truth have."""
    estimation = str(rng.choice(["variational", "em"]))
    n_answers = r.n_labels + r.silence_counts
    smoothings: list[Any] = [(0.1, 1.1), 0.5, 1e-6, 1e3, rng.uniform(0.01, 2, (r.n_classes, r.n_labels)), (1e-3, 5.0)]
    if estimation == "em":
        smoothings += [0, 0.0, (0, 1)]
    starts: list[Any] = ["majority", "majority", "moments", "best", "matrices", "model"]
    start = starts[rng.integers(len(starts) - 4 * r.silence_counts)]
    if start == "matrices":
        start = rng.dirichlet(np.ones(n_answers), size=(r.n_workers, r.n_classes))
    elif start == "model":
        start = cs.MajorityVote().fit(r)
    max_iter = int(rng.choice([0, 1, 3, 20, 200], p=[0.05, 0.15, 0.4, 0.3, 0.1]))
    fitted = max_iter > 0 and not (isinstance(start, str) and start == "best" and not max_iter)
    kinds = [kind for kind in list_workers(r) if estimation != "em" or kind not in ("ordinal", "nominal")]
    return {
        "workers": str(rng.choice(kinds)),
        "estimation": estimation,
        "prior": draw_prior(rng, r.n_classes),
        "smoothing": smoothings[rng.integers(len(smoothings))],
        "start": start if fitted or not isinstance(start, str) else "majority",
        "n_init": int(rng.choice([1, 1, 3])) if fitted else 1,
        "max_iter": max_iter,
        "tol": float(rng.choice([0, 1e-5, 1e-2])),
        "seed": int(rng.integers(5)),
    }


def list_workers(r: Any) -> list[str]:
    """Return the kinds of workers that such answers can have."""
    if r.silence_counts:
        return ["confusion"]
    return [
        *("confusion", "sequential", "one-coin"),
        *["ordinal"] * 3 * (r.positions is not None),
        *("temperatures", "mean") * (r.soft is not None),
    ]


def draw_chain(rng: Rng, crowd: Crowd, common: dict[str, Any]) -> Any:
    n_classes = crowd.responses.n_classes
    learns = common["max_iter"] > 0 and rng.random() < 0.15
    if learns:
        common = common | {"max_iter": min(common["max_iter"], 3), "n_init": 1}
    forbidden = rng.random((n_classes, n_classes)) < rng.choice([0.2, 0.7])
    forbidden[np.diag_indices(n_classes)] &= rng.random() < 0.3
    forbidden[np.arange(n_classes), rng.integers(n_classes, size=n_classes)] = False
    transitions: Any = ["free", "free", ~forbidden][rng.integers(3)]
    tagged = set(map(str, crowd.responses.classes)) <= set(LETTERS["tags"])
    if tagged and not isinstance(common["prior"], np.ndarray) and not isinstance(common["smoothing"], np.ndarray):
        scheme = ("free", "bio", "iob1")[rng.integers(3)]
        transitions = scheme if isinstance(common["start"], str) else "free"
    return cs.HiddenMarkov(
        coupling="learn" if learns else float(rng.choice([0, 0.1, 0.5, 1, rng.random()])),
        transitions=transitions,
        decode=str(rng.choice(["viterbi", "marginal"])),
        **common,
    )


def draw_field(rng: Rng, crowd: Crowd, common: dict[str, Any]) -> Any:
    given = [0, 0.3, 1.0, 3.0, 50.0, 1e6, 1e308]
    if common["max_iter"] and rng.random() < 0.1:
        common = common | {"start": "dawid-skene"}
    return cs.MarkovField(
        coupling=["learn", "paper", float(rng.choice(given))][rng.integers(3)],
        inference=str(rng.choice(["mean_field", "icm", "belief_propagation"])),
        **common,
    )


# --------------------------------------------------------------------------------------------------------------- checks


def demand(condition: Any, what: str, *found: Any) -> None:
    """Raise `Nonsense` unless the condition holds."""
    if not condition:
        raise Nonsense(f"{what}: {', '.join(str(value)[:300] for value in found)}")


def demand_distributions(array: Any, what: str) -> None:
    """Raise `Nonsense` unless the last axis of an array holds probabilities that sum to one."""
    demand(np.isfinite(array).all(), f"{what} is not finite", array)
    demand((array >= 0).all() and (array <= 1 + 1e-9).all(), f"{what} is not between 0 and 1", array)
    sums = array.sum(axis=-1)
    demand(np.allclose(sums, 1, atol=1e-6), f"{what} does not sum to one", sums)


def check_estimates(model: Any, crowd: Crowd) -> None:
    demand(model.posterior_.shape == (crowd.responses.n_items, len(model.classes_)), "shape", model.posterior_.shape)
    demand_distributions(model.posterior_, "posterior_")
    demand_distributions(model.prior_, "prior_")
    demand_distributions(model.confusion_, "confusion_")
    for name in ("transition_", "initial_", "sequential_confusion_"):
        if getattr(model, name, None) is not None:
            demand_distributions(getattr(model, name), name)
    if getattr(model, "coupling_", None) is not None:
        demand(np.isfinite(model.coupling_) and model.coupling_ >= 0, "coupling_", model.coupling_)


def check_labels(model: Any, crowd: Crowd) -> None:
    demand_most_probable(model.result_.labels)
    labels, r = model.labels_.tolist(), crowd.responses
    demand(set(labels) <= set(model.classes_.tolist()), "labels that are no classes", labels)
    if crowd.gold is not None:
        kept = {item: label for item, label in zip(r.items.tolist(), labels, strict=True) if item in crowd.gold}
        chain = isinstance(model, cs.HiddenMarkov)
        free = not chain or (isinstance(model.transitions, str) and model.transitions == "free")
        demand(not free or kept == crowd.gold, "gold was not kept", kept, crowd.gold)
    if isinstance(model, cs.HiddenMarkov) and model.decode == "viterbi" and crowd.gold is None:
        allowed = find_transitions(model.transitions, model.classes_)
        codes = model.result_.labels.codes
        for first, last in zip(r.sequences.offsets[:-1], r.sequences.offsets[1:], strict=True):
            steps = allowed.steps[codes[first : last - 1], codes[first + 1 : last]]
            demand(steps.all(), "forbidden transitions were decoded", codes[first:last])


def demand_most_probable(labels: Any) -> None:
    """Demand that labels which no rule decided are the most probable classes of what is reported; a vote draws lots."""
    rules = labels.list_columns().get("decided_by")
    free = np.array([""] * labels.n_items if rules is None else rules.to_pylist()) == ""
    behind = labels.posterior.max(axis=1) - labels.confidence > ROUNDING
    demand(not (free & behind).any(), "a label is not the most probable class", labels.codes, labels.posterior)


def check_trace(model: Any) -> None:
    """Demand numbers, and that an objective which is a likelihood or a bound never falls."""
    demand(np.isfinite(model.trace_).all(), "trace_ is not finite", model.trace_)
    if not is_likelihood(model):
        return
    for name, trace in model.result_.course.starts.items():
        fall = np.max(trace[:-1] - trace[1:], initial=0.0)
        demand(fall <= ROUNDING * max(1.0, np.abs(trace).max()), f"the objective fell from {name} by {fall}", trace)


def is_likelihood(model: Any) -> bool:
    """Tell whether the objective of a model is one that never falls: a likelihood, or a bound of one."""
    if isinstance(model, cs.TagSets):
        return True
    if isinstance(model, cs.HiddenMarkov):
        free = isinstance(model.transitions, str) and model.transitions == "free"
        proper = model.coupling == 1 or (model.coupling == 0 and free)
        # Where smoothing is so small, factors of steps are zero, and chains have to be cut.
        proper &= model.estimation == "em" or np.min(model.smoothing) > 0.002
    elif isinstance(model, cs.MarkovField):
        proper = model.inference == "mean_field" and not isinstance(model.coupling, str)
    else:
        proper = isinstance(model, cs.DawidSkene)
    # The smoothing of sequential workers moves with the fit; temperatures and means have no objective of their own.
    return proper and model.workers not in ("sequential", "temperatures", "mean")


def check_predictions(model: Any, crowd: Crowd, graph: Any) -> None:
    """Demand that the model says of the answers it was fitted to what it said at the fit, before calibration."""
    r, gold = crowd.responses, crowd.gold
    again, fitted = model.predict_proba(r, graph=graph, gold=gold), model.posterior_
    if isinstance(model, LatentModel):
        demand(np.isfinite(again).all(), "predict_proba is not finite", again)
        estimates, others = model.result_.estimates, Others(model, model.result_, r, graph, gold)
        again = others.infer(None, others.check(), estimates.structure, estimates.log_weights)[0]
        fitted = model.uncalibrated_posterior_
    demand(np.allclose(again, fitted, atol=1e-9), "predict_proba differs", again, fitted)
    demand_most_probable(Others(model, model.result_, r, graph, gold).find_labels(None))
    score = model.score(crowd.responses, graph=graph, gold=crowd.gold)
    demand(np.isfinite(score), "score is not finite", score)
    fewer = crowd.responses.keep(np.arange(crowd.responses.n_responses) % 2 == 0)
    demand_distributions(model.predict_proba(fewer, graph=graph), "predict_proba of fewer answers")
    demand(len(model.to_frame()) == crowd.responses.n_items, "to_frame", len(model.to_frame()))
    demand(len(model.worker_report()) == crowd.responses.n_workers, "worker_report", len(model.worker_report()))
    demand(len(repr(model)) <= 2000, "a long repr", repr(model))


def check_saved(model: Any, crowd: Crowd, graph: Any, folder: Path) -> None:
    loaded = cs.load(model.save(folder / "crowd.model"))
    for name in ("posterior_", "confusion_", "prior_", "trace_", "labels_", "classes_"):
        old, new = getattr(model, name), getattr(loaded, name)
        demand(old.dtype == new.dtype and np.array_equal(old, new), f"{name} is another after loading", old, new)
    probabilities = [each.predict_proba(crowd.responses, graph=graph, gold=crowd.gold) for each in (model, loaded)]
    demand(np.array_equal(*probabilities), "predictions are others after loading", *probabilities)


def check_judgement(rng: Rng, model: Any, crowd: Crowd, graph: Any) -> None:
    """Demand numbers where a model is judged by hidden answers or compared with the vote."""
    if rng.random() < 0.5:
        found = cs.held_out_score(model, crowd.responses, graph=graph, gold=crowd.gold, seed=1)
        demand(np.isfinite(found.score) and not np.isnan(found.error), "held-out score", found.score, found.error)
        return
    model = model if isinstance(model, cs.MajorityVote) or not model.max_iter else renew(model, max_iter=2)
    fused = cs.fuse(crowd.responses, graph=graph, gold=crowd.gold, model=model)
    demand_distributions(fused.posterior_, "posterior_ of fuse")
    str(fused.comparison_)
