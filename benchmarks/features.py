"""What features are worth: labels and probabilities with and without them, and cleanlab's CROWDLAB beside them.

Writes the tables of docs/features.md, which are the same in every run:

    python benchmarks/features.py            # about four minutes; the real data ($CONSILIENCE_DATA) are used if there
    python benchmarks/features.py --quick    # one crowd of digits; prints, writes nothing

The column of CROWDLAB needs cleanlab (pip install cleanlab). Gold is used for scores only, except that of three rounds
of CROWDLAB, with each of three strengths of the classifier, the best one is shown.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consilience as cs
import real_crowds

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs" / "measured" / "features.md"
NOISE_TABLE = ROOT / "docs" / "measured" / "random-features.csv"
N_DIGITS, N_NOISE = 5, 4
STRENGTHS = (0.01, 0.1, 1.0)  # of the classifier of CROWDLAB
NOISY = ("rte", "dog", "bluebird", "music")


class Crowd(NamedTuple):
    """Answers, features of the items, and labels that are known of some."""

    responses: cs.Answers
    features: Any
    known: np.ndarray  # indices of items
    truth: np.ndarray


class Result(NamedTuple):
    """Scores of one crowd."""

    vote: float
    alone: float
    feature_fit: float
    crowdlab: float
    loss_alone: float
    loss_guided: float


def make_digits(seed: int) -> Crowd:
    """Return images of digits with three answers each, of thirty workers with accuracies from .3 to .9."""
    features, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    accuracy = rng.uniform(0.3, 0.9, 30)
    chosen = np.stack([rng.permutation(30)[:3] for _ in truth])
    votes = np.full((len(truth), 30), -1)
    for n, workers in enumerate(chosen):
        for m in workers:
            votes[n, m] = truth[n] if rng.random() < accuracy[m] else rng.integers(0, 10)
    return Crowd(cs.Answers.from_matrix(votes), features, np.arange(len(truth)), truth)


def load(name: str) -> Crowd:
    stored = real_crowds.load(name)
    labels = [stored.gold.get(item) for item in stored.responses.items.tolist()]
    known = np.array([index for index, label in enumerate(labels) if label is not None])
    features = stored.features
    if features is not None:
        row = {item: number for number, item in enumerate(stored.items.tolist())}
        features = features[[row[item] for item in stored.responses.items.tolist()]]
    return Crowd(stored.responses, features, known, np.array([labels[index] for index in known]))


def measure(crowd: Crowd, score: Any, has_rival: bool) -> Result:
    r = crowd.responses

    def judge(labels: Any) -> float:
        return float(score(crowd.truth, labels[crowd.known]))

    def lose(model: cs.DawidSkene) -> float:
        return cs.metrics.log_loss(crowd.truth, model.posterior_[crowd.known], model.classes_)

    alone, feature_fit = cs.DawidSkene().fit(r), cs.DawidSkene().fit(r, features=crowd.features)
    rounds = (found for strength in STRENGTHS for found in run_crowdlab(r, crowd.features, strength))
    rival = max(map(judge, rounds)) if has_rival else np.nan
    vote = cs.MajorityVote().fit(r)
    return Result(
        *map(judge, (vote.labels_, alone.labels_, feature_fit.labels_)), rival, lose(alone), lose(feature_fit)
    )


def run_crowdlab(r: cs.Answers, features: Any, strength: float) -> Iterator[np.ndarray]:
    """Yield the labels of CROWDLAB after each of three rounds, with a classifier of the same kind."""
    from cleanlab.multiannotator import get_label_quality_multiannotator, get_majority_vote_label

    votes = np.full((r.n_items, r.n_workers), np.nan)
    votes[r.item_of_answer(), r.worker] = r.class_of_label[r.label]
    labels = np.asarray(get_majority_vote_label(votes, verbose=False))
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=200))
    for _ in range(3):
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        chances = cross_val_predict(classifier, features, labels, cv=folds, method="predict_proba")
        found = get_label_quality_multiannotator(votes, chances, verbose=False)
        labels = found["label_quality"]["consensus_label"].to_numpy()
        yield r.classes[labels]


def make_ner() -> tuple[cs.Answers, Any, list[Any]]:
    """Return answers about tokens, one-hot features of each token and its two neighbours, and the truth."""
    import pyarrow.parquet as pq

    stored = real_crowds.load("ner")
    table = pq.read_table(Path(str(real_crowds.data_folder())) / "ner" / "gold.parquet")
    keys = zip(table["sequence"].to_pylist(), table["position"].to_pylist(), strict=True)
    token = dict(zip(keys, table["token"].to_pylist(), strict=True))
    items = stored.responses.items.tolist()
    columns: dict[tuple[int, Any], int] = {}
    chosen = [
        columns.setdefault((side, token[items[n + side]] if same_sequence(items, n, n + side) else None), len(columns))
        for n in range(len(items))
        for side in (0, -1, 1)
    ]
    rows = np.repeat(np.arange(len(items)), 3)
    features = csr_array((np.ones(len(chosen)), (rows, chosen)), shape=(len(items), len(columns)))
    return stored.responses, features, [stored.gold[item] for item in items]


def same_sequence(items: list[Any], one: int, other: int) -> bool:
    return 0 <= other < len(items) and items[one][0] == items[other][0]


def measure_ner() -> list[float]:
    """Return strict span F1 without and with features."""
    r, features, truth = make_ner()
    lengths = np.diff(r.sequences.offsets)
    scores = []
    for given in (None, features):
        model = cs.HiddenMarkov(transitions="bio").fit(r, features=given)
        scores.append(float(cs.metrics.span_f1(truth, model.labels_, lengths=lengths)))
    return scores


def measure_noise(name: str, n_columns: int) -> tuple[float, float, int]:
    """Return the accuracy without features, the largest change by random ones, and how often these had a say."""
    crowd = load(name)
    alone = cs.metrics.accuracy(crowd.truth, cs.DawidSkene().fit(crowd.responses).labels_[crowd.known])
    changes, n_used = [], 0
    for seed in range(N_NOISE):
        noise = np.random.default_rng(seed).normal(size=(crowd.responses.n_items, n_columns))
        with warnings.catch_warnings(action="ignore", category=cs.errors.DataWarning):  # that they tell nothing
            model = cs.DawidSkene().fit(crowd.responses, features=noise)
        changes.append(abs(cs.metrics.accuracy(crowd.truth, model.labels_[crowd.known]) - alone))
        n_used += model.result_.feature_result.findings.used
    return alone, max(changes), n_used


def has_cleanlab() -> bool:
    try:
        import cleanlab  # noqa: F401
    except ImportError:
        return False
    return True


def write(path: Path, header: str, rows: list[str], quick: bool) -> None:
    lines = [header, "|---" * (header.count("|") - 1) + "|", *rows]
    print("\n".join(lines))
    if not quick:
        path.write_text("\n".join(lines) + "\n")


def show(what: str, result: Result) -> str:
    rival = "" if np.isnan(result.crowdlab) else f"{result.crowdlab:.3f}"
    return (
        f"| {what} | {result.vote:.3f} | {result.alone:.3f} | **{result.guided:.3f}** | {rival} | "
        f"{result.loss_alone:.3f} | **{result.loss_guided:.3f}** |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rival, real = has_cleanlab(), real_crowds.data_folder() is not None
    by_seed = [measure(make_digits(seed), cs.metrics.accuracy, rival) for seed in range(1 if quick else N_DIGITS)]
    digits = Result(*np.mean(by_seed, axis=0).tolist())
    rows = [show(f"digits, 1,797 images, accuracy (mean of {len(by_seed)})", digits)]
    if real and not quick:
        for name, what in (("music", "music, 700 songs"), ("sentence_polarity", "sentence polarity, 4,999 sentences")):
            rows.append(show(f"{what}, macro-F1", measure(load(name), cs.metrics.macro_f1, rival)))
        alone, with_features = measure_ner()
        rows.append(f"| ner, 78,107 tokens, strict span F1 |  | {alone:.3f} | **{with_features:.3f}** |  |  |  |")
    header = "| | vote | without features | with features | CROWDLAB | log loss without | log loss with |"
    write(TABLE, header, rows, quick)
    if real and not quick:
        cases = [(name, n, *measure_noise(name, n)) for name in NOISY for n in (20, 200)]
        rows = [f"{name},{n},{a:.3f},{c:.3f},{used},{N_NOISE}" for name, n, a, c, used in cases]
        head = "crowd,random features,accuracy without,largest change,used,draws"
        NOISE_TABLE.write_text("\n".join([head, *rows]) + "\n")


if __name__ == "__main__":
    main()
