"""Draw the pictures of the README and the docs into docs/_static.

Run it with `python docs/pictures.py` after a change that should alter a picture, and look at the result.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import consilience as cs

HERE = Path(__file__).parent / "_static"
INK, FAINT, BLUE, ORANGE = "#22303c", "#b8c2cc", "#2b6cb0", "#dd7b1f"


def style() -> None:
    plt.rcParams.update(
        {
            "figure.dpi": 160,
            "font.size": 9,
            "axes.edgecolor": FAINT,
            "axes.labelcolor": INK,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
        }
    )


def draw_fusion() -> None:
    """Workers found without the truth beside what they are, and probabilities that mean what they say."""
    crowd = cs.simulate.independent(
        3000, 60, 4, answers_per_item=5, accuracy=(0.35, 0.95), spammers=10, adversaries=3, seed=4
    )
    fused = cs.fuse(crowd.responses)
    vote = cs.MajorityVote().fit(crowd.responses)
    confusion = crowd.parameters.confusion
    true = np.einsum("k,mkk->m", crowd.parameters.prior, confusion)
    found = np.asarray(fused.worker_report()["accuracy"])
    kinds = np.repeat(["honest", "clicks at random", "contrary"], [47, 10, 3])
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6))
    left.plot([0, 1], [0, 1], color=FAINT, lw=1, zorder=0)
    for kind, colour, mark in (("honest", BLUE, "o"), ("clicks at random", ORANGE, "s"), ("contrary", INK, "v")):
        chosen = kinds == kind
        left.scatter(true[chosen], found[chosen], s=22, color=colour, marker=mark, label=kind, linewidths=0, alpha=0.85)
    left.set(xlabel="true accuracy of a worker", ylabel="accuracy found, no truth seen", xlim=(0, 1), ylim=(0, 1))
    left.legend(loc="upper left")
    for model, name, colour in ((vote, "majority vote", ORANGE), (fused, "consilience", BLUE)):
        curve = cs.metrics.reliability_curve(crowd.truth, model.posterior_, model.classes_, bins=10)
        accuracy = cs.metrics.accuracy(crowd.truth, model.labels_)
        label = f"{name}: {accuracy:.1%} right"
        full = curve.n_items >= 20
        right.plot(curve.confidence[full], curve.accuracy[full], color=colour, marker="o", ms=4, lw=1.5, label=label)
    right.plot([0, 1], [0, 1], color=FAINT, lw=1, zorder=0)
    right.set(xlabel="stated confidence", ylabel="share that is right", xlim=(0.2, 1), ylim=(0.2, 1.02))
    right.legend(loc="upper left")
    figure.tight_layout(w_pad=3)
    figure.savefig(HERE / "fusion.png")
    plt.close(figure)


if __name__ == "__main__":
    style()
    draw_fusion()
