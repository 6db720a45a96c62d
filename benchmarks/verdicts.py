"""How often the verdict of `fuse` is right: real crowds, whole and thinned, judged with the truth beside them.

Writes the tables of docs/evidence.md, which are the same in every run:

    python benchmarks/verdicts.py            # about three minutes; needs the real data ($CONSILIENCE_DATA)
    python benchmarks/verdicts.py --quick    # one crowd; prints, writes nothing
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import consilience as cs
import real_crowds
from consilience.inference.labels import find_tied

ROOT = Path(__file__).parent.parent
WHOLE = "all answers"
TABLES = ROOT / "docs" / "measured" / "verdicts.md"

CROWDS = ("bluebird", "rte", "dog", "web", "product", "llm_judges", "sentence_polarity", "music")
SEQUENCES = ("ner", "sleep")
# Most answers to an item, and share of the items.
THINNED = ((5, 1.0), (3, 1.0), (3, 0.3))
SEEDS = (0, 1, 2)
VERDICTS = ("better", "no different", "worse")


class Case(NamedTuple):
    """One crowd, or a part of one, with the verdict and what is true."""

    name: str
    part: str
    verdict: str
    expected: float  # accuracy, by the calibrated probabilities
    accuracy: float
    vote: float  # the same of the vote, as expected over its random ties

    @property
    def gain(self) -> float:
        """How much more often the labels are right than the vote's."""
        return self.accuracy - self.vote


def thin(r: cs.Answers, most: int, share: float, seed: int) -> cs.Answers:
    """Return the answers about a random share of the items, at most so many to each."""
    rng = np.random.default_rng(seed)
    item = r.item_of_answer()
    order = np.lexsort((rng.random(len(item)), item))
    rank = np.zeros(len(item), np.int64)
    rank[order] = np.arange(len(item)) - r.offsets[item[order]]
    items = np.flatnonzero(rng.random(r.n_items) < share) if share < 1 else np.arange(r.n_items)
    return r.keep(rank < most).about(items)


def judge(name: str, part: str, r: cs.Answers, gold: dict[object, object]) -> Case:
    """Fuse answers without gold, and see what is true of the labels of items whose truth is known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fused = cs.fuse(r, workers="confusion")  # the record is one of such fits
    truth = [gold.get(item) for item in r.items.tolist()]
    position = {label: k for k, label in enumerate(fused.classes_.tolist())}
    codes = np.array([position.get(label, -1) if label is not None else -2 for label in truth])
    known = np.flatnonzero((codes > -2) & (np.diff(r.offsets) > 0))
    right = fused.result_.labels.codes[known] == codes[known]
    by_vote = vote_chances(r.with_classes(fused.classes_))[known]
    vote = np.where(codes[known] >= 0, by_vote[np.arange(len(known)), codes[known]], 0.0)
    comparison = fused.comparison_
    return Case(name, part, comparison.verdict, comparison.expected_accuracy, float(right.mean()), float(vote.mean()))


def vote_chances(r: cs.Answers) -> NDArray[np.float64]:
    """Return the probability that the vote of each item falls on each class."""
    tied = find_tied(cs.MajorityVote().fit(r).posterior_)
    return np.asarray(tied / tied.sum(axis=1, keepdims=True))


def find_cases(name: str) -> Iterator[Case]:
    """Yield the whole crowd, and its parts if items are independent and something is left out."""
    stored = real_crowds.load(name)
    whole = stored.responses
    yield judge(name, WHOLE, whole, stored.gold)
    if whole.sequences is not None:
        return
    for most, share in THINNED:
        for seed in SEEDS:
            r = thin(whole, most, share, seed)
            if r.n_responses < whole.n_responses:
                part = f"at most {most} an item" + (f", {share:.0%} of the items" if share < 1 else "")
                yield judge(name, part, r, stored.gold)


def tabulate_record(cases: list[Case]) -> str:
    """Return, for each verdict, how often the labels were more often right than the vote's, and how much."""
    lines = ["| verdict | cases | more right labels than the vote | fewer | mean gain | least | largest |"]
    lines.append("|---|" + ":-:|" * 6)
    for verdict in VERDICTS:
        gains = [case.gain for case in cases if case.verdict == verdict]
        counts = f"{len(gains)} | {sum(gain > 0 for gain in gains)} | {sum(gain < 0 for gain in gains)}"
        figures = [np.mean(gains), min(gains), max(gains)] if gains else []
        lines.append(f"| {verdict} | {counts} | {' | '.join([f'{x:+.3f}' for x in figures] or [''] * 3)} |")
    return "\n".join(lines)


def tabulate_whole(cases: list[Case]) -> str:
    """Return the verdict on each whole crowd, and what is true."""
    lines = ["| crowd | verdict | accuracy | vote | expected accuracy |", "|---|---|:-:|:-:|:-:|"]
    for case in cases:
        if case.part == WHOLE:
            figures = " | ".join(f"{x:.3f}" for x in (case.accuracy, case.vote, case.expected))
            lines.append(f"| `{case.name}` | {case.verdict} | {figures} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and write or print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one crowd; prints, writes nothing")
    quick = parser.parse_args().quick
    cases = []
    for name in CROWDS[:1] if quick else CROWDS + SEQUENCES:
        cases += find_cases(name)
        print(tabulate_whole([case for case in cases if case.name == name]), flush=True)
    text = tabulate_record(cases) + "\n"
    print(text)
    if not quick:
        TABLES.write_text(text)


if __name__ == "__main__":
    main()
