"""Draw the pictures of the README and the docs into docs/_static.

Run it with `python -m docs.pictures`, in the folder of the repository, after a change that should alter a picture, and
look at the result.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from PIL import Image

import consilience as cs
from paper.drawing import FAINT, INK, RC

HERE = Path(__file__).parent / "_static"
BLUE, ORANGE = "#2b6cb0", "#dd7b1f"


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
    right.legend(loc="lower right")
    figure.tight_layout(w_pad=3)
    figure.savefig(HERE / "fusion.png")
    plt.close(figure)


TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"]
TAG_COLOURS = {"O": "#eef1f4", "PER": BLUE, "LOC": ORANGE, "ORG": "#2f855a"}
TAG_STEPS = np.array(
    [
        [0.82, 0.07, 0.00, 0.06, 0.00, 0.05, 0.00],
        [0.30, 0.00, 0.70, 0.00, 0.00, 0.00, 0.00],
        [0.80, 0.02, 0.15, 0.03, 0.00, 0.00, 0.00],
        [0.74, 0.02, 0.00, 0.04, 0.20, 0.00, 0.00],
        [0.88, 0.00, 0.00, 0.02, 0.10, 0.00, 0.00],
        [0.38, 0.00, 0.00, 0.02, 0.00, 0.00, 0.60],
        [0.55, 0.00, 0.00, 0.00, 0.00, 0.00, 0.45],
    ]
)
SENTENCE = ["On", "Monday", "Ada", "Lovelace", "joined", "the", "Royal", "Society", "in", "London"]
SENTENCE_ANSWERS = {
    "Ann": "O O B-PER I-PER O O B-ORG O O B-LOC",
    "Ben": "O O B-PER O O O B-ORG O O O",  # tags only the first word of a name
    "Cem": "O O B-PER O O O B-LOC I-LOC O B-LOC",  # takes organisations for places
    "Dot": "O O B-PER O O O B-ORG O O O",  # as Ben, and misses names
    "Eve": "O B-PER I-PER O O O O B-ORG O O",  # slips at random
}
# How far each of these habits goes: P(O for I), P(LOC for ORG), P(O for B), P(any tag).
HABITS = {
    "Ann": (0.12, 0.12, 0.10, 0.08),
    "Ben": (0.75, 0.10, 0.12, 0.08),
    "Cem": (0.12, 0.75, 0.12, 0.08),
    "Dot": (0.70, 0.12, 0.40, 0.08),
    "Eve": (0.20, 0.20, 0.25, 0.30),
}


def tagging_crowd() -> tuple[dict[str, list[object]], list[int]]:
    """Made-up answers of five workers about 400 sentences, and about SENTENCE, which comes last."""
    rng = np.random.default_rng(5)
    columns: dict[str, list[object]] = {"sequence": [], "position": [], "worker": [], "label": []}
    truth: list[int] = []

    def add(sentence: int, position: int, worker: str, tag: str) -> None:
        for name, value in zip(columns, (sentence, position, worker, tag), strict=True):
            columns[name].append(value)

    for sentence in range(400):
        tag = 0
        for position in range(rng.integers(6, 20)):
            tag = int(rng.choice(7, p=TAG_STEPS[tag]))
            truth.append(tag)
            for worker, habits in HABITS.items():
                add(sentence, position, worker, answer(rng, TAGS[tag], *habits))
    for worker, tags in SENTENCE_ANSWERS.items():
        for position, name in enumerate(tags.split()):
            add(400, position, worker, name)
    return columns, truth


def answer(rng: np.random.Generator, tag: str, shorten: float, misplace: float, miss: float, slip: float) -> str:
    if rng.random() < slip:
        return str(rng.choice(TAGS))
    if (tag.startswith("I") and rng.random() < shorten) or (tag.startswith("B") and rng.random() < miss):
        return "O"
    return tag.replace("ORG", "LOC") if rng.random() < misplace else tag


def draw_sentence() -> None:
    """One sentence: what five workers said, what counting votes gives, and what fusing gives, with its confidence."""
    columns, _ = tagging_crowd()
    fused = cs.HiddenMarkov(transitions="bio").fit(columns)
    vote = cs.MajorityVote().fit(columns)
    n = len(SENTENCE)
    rows = {worker: tags.split() for worker, tags in SENTENCE_ANSWERS.items()}
    rows["majority vote"] = vote.labels_[-n:].tolist()
    rows["consilience"] = fused.labels_[-n:].tolist()
    confidence = np.asarray(fused.to_frame()["confidence"])[-n:]
    figure, axis = plt.subplots(figsize=(8.4, 3.7))
    for row, (name, tags) in enumerate(rows.items()):
        y = row + 0.35 * (row >= 5) + 0.2 * (row >= 6)
        axis.text(-0.65, y, name, ha="right", va="center", weight="bold" if row == 6 else "normal")
        for x, tag in enumerate(tags):
            colour = TAG_COLOURS[tag[2:] or tag]
            cell = plt.Rectangle((x - 0.46, y - 0.4), 0.92, 0.8, color=colour, lw=0, alpha=1 if row >= 5 else 0.75)
            axis.add_patch(cell)
            ink = "#8795a3" if tag == "O" else "white"
            axis.text(x, y, tag, ha="center", va="center", color=ink, fontsize=8)
    for x, (word, sure) in enumerate(zip(SENTENCE, confidence, strict=True)):
        axis.text(x, -0.75, word, ha="center", va="center", fontsize=9)
        axis.add_patch(plt.Rectangle((x - 0.46, 7.15), 0.92, 0.1, color=FAINT, lw=0, alpha=0.5))
        axis.add_patch(plt.Rectangle((x - 0.46, 7.15), 0.92 * sure, 0.1, color=INK, lw=0))
        axis.text(x, 7.5, f"{sure:.0%}", ha="center", va="center", fontsize=7.5)
    axis.text(-0.65, 7.3, "confidence", ha="right", va="center", fontsize=8)
    axis.set(xlim=(-2.1, n - 0.5), ylim=(7.8, -1.1))
    axis.axis("off")
    figure.subplots_adjust(0.01, 0.01, 0.99, 0.99)
    figure.savefig(HERE / "sentence.png")
    plt.close(figure)


def draw_network() -> None:
    """A network before and after: labels from answers alone, and with neighbours."""
    crowd = cs.simulate.network(
        300, n_workers=4, n_classes=3, degree=7, homophily=0.9, answers_per_item=3, accuracy=(0.5, 0.8), seed=5
    )
    alone = cs.DawidSkene().fit(crowd.responses)
    fused = cs.MarkovField().fit(crowd.responses, graph=crowd.graph)
    rng = np.random.default_rng(3)
    centre = np.array([[0.0, 1.0], [-0.95, -0.55], [0.95, -0.55]])
    place = centre[crowd.truth] + rng.normal(0, 0.32, (len(crowd.truth), 2))
    palette = np.array([BLUE, ORANGE, "#4f9d69"])
    source = np.repeat(np.arange(crowd.graph.n_items), crowd.graph.degrees)
    figure, panels = plt.subplots(1, 2, figsize=(8.4, 4.0))
    for axes, model, name in zip(panels, (alone, fused), ("answers alone", "answers and neighbours"), strict=True):
        for a, b in zip(source, crowd.graph.neighbours, strict=True):
            if a < b:
                axes.plot(*place[[a, b]].T, color=FAINT, lw=0.4, zorder=0)
        wrong = model.labels_ != crowd.truth
        axes.scatter(*place.T, s=22, c=palette[model.labels_], linewidths=0)
        axes.scatter(*place[wrong].T, s=70, facecolors="none", edgecolors=INK, linewidths=1)
        axes.set_title(f"{name}: {wrong.sum()} of {len(wrong)} wrong (ringed)", fontsize=9)
        axes.set_axis_off()
    figure.tight_layout()
    figure.savefig(HERE / "network.png")
    plt.close(figure)
    shrink(HERE / "network.png")


def draw_pixels() -> None:
    """Noisy pixel labels, cleaned by a grid."""
    size = 60
    y, x = np.mgrid[:size, :size]
    truth = np.zeros((size, size), int)
    truth[(x - 22) ** 2 + (y - 26) ** 2 < 15**2] = 1
    truth[(np.abs(x - 43) < 9) & (np.abs(y - 40) < 12)] = 2
    rng = np.random.default_rng(0)
    votes = np.where(rng.random((size * size, 3)) < 0.6, truth.ravel()[:, None], rng.integers(0, 3, (size * size, 3)))
    r = cs.Answers.from_matrix(votes)
    graph = cs.Graph.grid((size, size))
    pictures = {
        "truth": truth.ravel(),
        "majority vote": cs.MajorityVote().fit(r).labels_,
        "MarkovField": cs.MarkovField().fit(r, graph=graph).labels_,
    }
    figure, panels = plt.subplots(1, 3, figsize=(8.4, 3.0))
    for axes, (name, labels) in zip(panels, pictures.items(), strict=True):
        axes.imshow(labels.reshape(size, size), cmap=ListedColormap(["#e8edf2", BLUE, ORANGE]), interpolation="nearest")
        right = "" if name == "truth" else f": {np.mean(labels == truth.ravel()):.1%} right"
        axes.set_title(name + right, fontsize=9)
        axes.set_axis_off()
    figure.tight_layout()
    figure.savefig(HERE / "pixels.png")
    plt.close(figure)


class Shot(NamedTuple):
    """A picture of a report: its file, the section that it shows (the top of the page if None), and its size."""

    file: str
    section: str | None = None
    width: int = 1120
    height: int = 880
    dark: bool = False


def draw_campaign() -> None:
    """Accuracy by the number of answers per item, as benchmarks/campaigns.py measured it."""
    measured = json.loads((HERE.parent / "measured" / "campaigns.json").read_text("utf-8"))
    figure, axes = plt.subplots(1, len(measured), figsize=(8.4, 3.2))
    kinds = {"random": ("random assignment", ORANGE), "information": ("next_questions", BLUE)}
    for axis, (name, curves) in zip(axes, measured.items(), strict=True):
        for policy, (label, colour) in kinds.items():
            answers = 8 * np.array(curves[policy]["share"])
            axis.plot(answers, curves[policy]["accuracy"], color=colour, marker="o", ms=2.5, lw=1.5, label=label)
        axis.axhline(curves["random"]["accuracy"][-1], color=FAINT, lw=1, zorder=0)
        axis.set(xlabel="answers per item", title=name, xticks=range(2, 9, 2))
        axis.title.set_size(10)
    axes[0].set_ylabel("accuracy")
    axes[0].legend(loc="lower right")
    figure.tight_layout(w_pad=1.5)
    figure.savefig(HERE / "campaign.png")
    plt.close(figure)


def shrink(file: Path) -> None:
    """Keep 64 colours of a picture: it looks the same and takes a fraction of the space."""
    with Image.open(file) as picture:
        small = picture.convert("RGB").convert("P", palette=Image.Palette.ADAPTIVE, colors=64)
    small.save(file, optimize=True)


def photograph(page: Path, *shots: Shot) -> None:
    """Take pictures of a report, at twice the resolution. This needs playwright and Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for shot in shots:
            size = {"width": shot.width, "height": shot.height}
            scheme = "dark" if shot.dark else "light"
            view = browser.new_page(viewport=size, device_scale_factor=2, color_scheme=scheme)
            view.goto(page.as_uri())
            top = 0 if shot.section is None else view.locator(f"#{shot.section}").bounding_box()["y"]
            view.screenshot(path=HERE / shot.file, full_page=True, clip={"x": 0, "y": top, **size})
            view.close()
            shrink(HERE / shot.file)
        browser.close()


def draw_report() -> None:
    """The first screen of the report on the crowd of the demo, light and dark."""
    from consilience.api import write_report
    from consilience.cli.simulate import N_KNOWN, draw_demo

    with tempfile.TemporaryDirectory() as folder:
        answers, images, _ = draw_demo()
        fused = cs.fuse(answers, gold=images.slice(0, N_KNOWN))
        page = write_report(fused, f"{folder}/report.html", None, "answers.csv")
        photograph(page, Shot("report.png"), Shot("report-dark.png", dark=True))


SECTIONS = {"ner": "sequences", "llm_judges": None, "music": "workers"}


def draw_gallery() -> None:
    """A part of each report of the gallery that shows sums and no single answers. This needs the real data."""
    from consilience.api import write_report
    from docs.gallery import EXHIBITS

    for exhibit in EXHIBITS:
        if not exhibit.is_real:
            print(f"gallery: the data of {exhibit.name} are absent, so its picture stays as it is")
            continue
        with tempfile.TemporaryDirectory() as folder:
            page = write_report(exhibit.fuse(), f"{folder}/report.html", None, exhibit.title)
            photograph(page, Shot(f"gallery-{exhibit.name}.png", SECTIONS[exhibit.name], 900, 600))


if __name__ == "__main__":
    plt.rcParams.update(RC)
    draw_fusion()
    draw_sentence()
    draw_network()
    draw_pixels()
    draw_campaign()
    if shutil.which("chromium"):
        draw_report()
        draw_gallery()
    else:
        print("pictures of reports stay as they are: there is no Chromium")
