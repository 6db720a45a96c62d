"""How good rankings are: simulated judges, against evalica and crowd-kit in the same run.

Writes the table of docs/rankings.md, which is the same in every run:

    python benchmarks/rankings.py            # about a minute
    python benchmarks/rankings.py --quick    # two seeds; prints, writes nothing
    python benchmarks/rankings.py --large    # also times 1M verdicts from file to ranking; prints
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import evalica
import numpy as np
import pandas as pd
import pyarrow.csv
from crowdkit.aggregation import BradleyTerry, NoisyBradleyTerry
from scipy.stats import kendalltau

import consilience as cs

TABLE = Path(__file__).parent.parent / "docs" / "measured" / "rankings.md"
SETTINGS = {
    "1,500 verdicts": {"n_comparisons": 1500, "coin_tossers": 0.3, "bias": 0.4},
    "300 verdicts": {"n_comparisons": 300, "coin_tossers": 0.5, "bias": 1.0},
}
SIDES = {"left": evalica.Winner.X, "right": evalica.Winner.Y, "tie": evalica.Winner.Draw}


def rank_evalica(frame: pd.DataFrame) -> pd.Series:
    """Return the scores of evalica's Bradley-Terry, which knows ties and no judges."""
    return evalica.bradley_terry(frame["left"], frame["right"], frame["winner"].map(SIDES)).scores


def rank_crowdkit(kind: type) -> Callable[[pd.DataFrame], pd.Series]:
    """Return what ranks with crowd-kit, which knows no ties."""

    def rank(frame: pd.DataFrame) -> pd.Series:
        decided = frame[frame["winner"] != "tie"]
        label = np.where(decided["winner"] == "left", decided["left"], decided["right"])
        return kind(n_iter=100).fit_predict(decided.assign(label=label)[["worker", "left", "right", "label"]])

    return rank


OTHERS = {
    "evalica, Bradley-Terry": rank_evalica,
    "crowd-kit, Bradley-Terry": rank_crowdkit(BradleyTerry),
    "crowd-kit, noisy Bradley-Terry": rank_crowdkit(NoisyBradleyTerry),
}


def measure(setting: dict[str, float], seeds: range) -> dict[str, float]:
    """Return the mean of each figure over the seeds."""
    figures = defaultdict[str, list[float]](list)
    for seed in seeds:
        arena = cs.simulate.comparisons(**setting, seed=seed)
        frame = arena.to_frame().to_pandas().drop(columns="item")
        names, truth = arena.comparisons.candidates, arena.scores
        model = cs.BradleyTerry().fit(frame)
        result = model.result_
        figures["consilience"].append(kendalltau(model.scores_, truth)[0])
        for name, rank in OTHERS.items():
            scores = rank(frame)
            figures[name].append(kendalltau([scores.get(each, 0.0) for each in names], truth)[0])
        scaled = (truth - truth.mean()) * arena.discrimination.mean()
        places = (-truth).argsort().argsort() + 1
        figures["scores in their interval"].append(np.mean(np.abs(result.score - scaled) <= 1.96 * result.error))
        inside = (result.rank_low <= places) & (places <= result.rank_high)
        figures["ranks in their interval"].append(np.mean(inside))
        figures["correlation of discrimination"].append(np.corrcoef(result.discrimination, arena.discrimination)[0, 1])
    return {name: float(np.mean(values)) for name, values in figures.items()}


def tabulate(seeds: range) -> str:
    """Return the table."""
    columns = {name: measure(setting, seeds) for name, setting in SETTINGS.items()}
    head = f"| | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}"
    names = next(iter(columns.values()))
    rows = [f"| {name} | {' | '.join(f'{figures[name]:.3f}' for figures in columns.values())} |" for name in names]
    return "\n".join([head, *rows])


def time_large() -> str:
    """Return how long 1M verdicts of 1,000 judges on 100 candidates take from file to ranking, and the memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "battles.csv")
        arena = cs.simulate.comparisons(1_000_000, n_candidates=100, n_judges=1000, seed=1)
        pyarrow.csv.write_csv(arena.to_frame(), path)
        started, cpu = time.perf_counter(), time.process_time()
        cs.rank(path)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return f"1M verdicts: {seconds:.1f} s, of which {cpu:.1f} s on the processor; at most {memory:.2f} GB"


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.large:
        print(time_large())
        return
    table = tabulate(range(2 if options.quick else 10))
    print(table)
    if not options.quick:
        TABLE.write_text(f"{table}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
