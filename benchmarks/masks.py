"""Readers who outline a shape in an image, and err smoothly along its boundary; and how well their masks are fused.

Writes the tables of docs/masks.md, which are the same in every run:

    python benchmarks/masks.py            # about three minutes; the real data ($CONSILIENCE_DATA) are used if there
    python benchmarks/masks.py --quick    # one set of images; prints, writes nothing

The column of STAPLE needs SimpleITK (pip install SimpleITK). The truth is used for scores only.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import consilience as cs

HARMONICS = 6
TABLE = Path(__file__).parents[1] / "docs" / "measured" / "masks.md"
CONFIDENCE = TABLE.with_name("mask-confidence.md")
N_SETS, N_IMAGES, SIZE = 6, 6, 64


class Masks(NamedTuple):
    """Answers about the pixels of an image, the true mask (1 inside), and the graph that links each pixel to eight."""

    responses: cs.Answers
    truth: NDArray[np.int64]
    graph: cs.Graph


def draw_masks(seed: int, size: int = 64, wobbles: tuple[float, ...] = (1.5,) * 5) -> Masks:
    """Draw a round shape, and one mask of it for each reader.

    In polar coordinates the shape ends at the radius r(angle), a circle with a few smooth waves. A reader draws
    r(angle) + b + w(angle): waves of their own, and a bias, of about `wobbles` pixels each.
    """
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:size, :size] - size / 2 - rng.uniform(-3, 3, (2, 1, 1))
    angle, radius = np.arctan2(row, column), np.hypot(row, column)
    edge = 0.28 * size + waves(rng, angle, 2.0, first=2)
    drawn = [edge + rng.normal(0, wobble / 2) + waves(rng, angle, wobble) for wobble in wobbles]
    answers = np.stack([(radius < each).astype(np.int64).ravel() for each in drawn], axis=1)
    truth = (radius < edge).astype(np.int64).ravel()
    return Masks(cs.Answers.from_matrix(answers), truth, cs.Graph.grid((size, size)))


def draw_noise(seed: int, size: int = 64, n_readers: int = 5, accuracy: float = 0.8) -> Masks:
    """Draw the same kind of shape, and readers who err at each pixel independently."""
    truth, graph = draw_masks(seed, size).truth, cs.Graph.grid((size, size))
    right = np.random.default_rng(seed).random((len(truth), n_readers)) < accuracy
    return Masks(cs.Answers.from_matrix(np.where(right, truth[:, None], 1 - truth[:, None])), truth, graph)


def waves(rng: np.random.Generator, angle: NDArray[np.float64], height: float, first: int = 1) -> NDArray[np.float64]:
    """Return a smooth random function of the angle, whose standard deviation is about `height`."""
    numbers = np.arange(first, HARMONICS + 1)
    a, b = rng.normal(0, height / np.sqrt(len(numbers)), (2, len(numbers), 1, 1))
    turns = numbers[:, None, None] * angle
    return np.asarray((a * np.cos(turns) + b * np.sin(turns)).sum(axis=0))


def dice(truth: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """Return how well two masks overlap: twice the common part over the sum of both."""
    return float(2 * (truth * labels).sum() / (truth.sum() + labels.sum()))


class ImageSet(NamedTuple):
    """Masks (reader, row, column) of some images, and the true ones."""

    drawn: list[NDArray[np.int64]]
    truth: list[NDArray[np.int64]]


def draw_outlines(seed: int, wobbles: tuple[float, ...]) -> ImageSet:
    return as_images([draw_masks(N_IMAGES * seed + i, SIZE, wobbles) for i in range(N_IMAGES)], len(wobbles))


def draw_noisy(seed: int, n_readers: int = 5) -> ImageSet:
    return as_images([draw_noise(N_IMAGES * seed + i, SIZE, n_readers) for i in range(N_IMAGES)], n_readers)


def as_images(drawn: list[Masks], n_readers: int) -> ImageSet:
    stacks = [each.responses.label.reshape(-1, n_readers).T.reshape(-1, SIZE, SIZE).astype(np.int64) for each in drawn]
    return ImageSet(stacks, [each.truth.reshape(SIZE, SIZE) for each in drawn])


def read_aortas() -> ImageSet | None:
    """Return the crowd's outlines of BU-BIL, or None if the data are not there."""
    import pyarrow.parquet as pq

    from real_crowds import data_folder

    folder = (data_folder() or Path("nowhere")) / "bubil_mri"
    if not folder.is_dir():
        return None
    items, answers, gold = (pq.read_table(folder / f"{name}.parquet") for name in ("items", "responses", "gold"))
    image, row, column = (items[name].to_numpy() for name in ("image", "row", "col"))
    at = {item: n for n, item in enumerate(items["item"].to_pylist())}
    votes = np.full((len(image), 7), -1)
    place = [at[item] for item in answers["item"].to_pylist()]
    votes[place, answers["worker"].to_numpy().astype(int)] = answers["label"].to_numpy().astype(int)
    truth = np.zeros(len(image), np.int64)
    truth[[at[item] for item in gold["item"].to_pylist()]] = gold["label"].to_numpy().astype(int)
    found = ImageSet([], [])
    for each in np.unique(image):
        here = image == each
        shape = row[here].max() + 1, column[here].max() + 1
        stack, right = np.zeros((7, *shape), np.int64), np.zeros(shape, np.int64)
        stack[:, row[here], column[here]] = votes[here].T
        right[row[here], column[here]] = truth[here]
        found.drawn.append(stack)
        found.truth.append(right)
    return found


def cases(quick: bool) -> Iterator[tuple[str, list[ImageSet]]]:
    """Yield what the table has rows for: a name, and sets of images that have the same readers."""
    seeds = range(1 if quick else N_SETS)
    yield "outlines of five readers, off by 1.5 pixels", [draw_outlines(seed, (1.5,) * 5) for seed in seeds]
    if quick:
        return
    uneven = (0.7, 0.7, 3.0, 3.0, 3.0)
    yield (
        "outlines of two careful readers (0.7 pixels) and three careless ones (3)",
        [draw_outlines(seed, uneven) for seed in seeds],
    )
    yield "independent noise: five readers, each right about 80% of the pixels", [draw_noisy(seed) for seed in seeds]
    real = read_aortas()
    if real is not None:
        yield "BU-BIL, 35 outlined aortas by seven crowd workers", [real]


def fuse_by_vote(images: ImageSet) -> list[NDArray[np.int64]]:
    return [(stack.mean(axis=0) > 0.5).astype(np.int64) for stack in images.drawn]


def fuse_by_staple(images: ImageSet) -> list[NDArray[np.int64]]:
    """Run STAPLE on each image, as its users do."""
    import SimpleITK as itk

    found = []
    for stack in images.drawn:
        masks = [itk.GetImageFromArray(mask.astype(np.uint8)) for mask in stack]
        found.append((itk.GetArrayFromImage(itk.STAPLE(masks, 1.0)) > 0.5).astype(np.int64))
    return found


def fuse_by_us(images: ImageSet) -> list[NDArray[np.int64]]:
    return list(fuse(images).values())


def fuse(images: ImageSet) -> Any:
    """Return the fused masks with their confidence."""
    masks = cs.Masks.from_arrays({i: dict(enumerate(stack)) for i, stack in enumerate(images.drawn)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.ConsilienceWarning)
        return cs.fuse(masks).to_masks()


def judge_confidence(sets: list[ImageSet]) -> list[float]:
    """Return mean confidence and accuracy of all pixels, and of those about which readers disagree."""
    confidence, right, disputed = [], [], []
    for images in sets:
        found = fuse(images)
        for i, (stack, truth) in enumerate(zip(images.drawn, images.truth, strict=True)):
            confidence.append(found.confidence[i].ravel())
            right.append((found[i] == truth).ravel())
            disputed.append((stack != stack[0]).any(axis=0).ravel())
    columns = np.stack([np.concatenate(confidence), np.concatenate(right)])
    return [*columns.mean(axis=1), *columns[:, np.concatenate(disputed)].mean(axis=1)]


WAYS: dict[str, Any] = {"one reader": None, "vote": fuse_by_vote, "STAPLE": fuse_by_staple, "`cs.fuse`": fuse_by_us}


def score(way: Any, images: ImageSet) -> float:
    """Return the mean Dice score; that of a single reader if there is no way to fuse."""
    pairs = list(zip(images.drawn, images.truth, strict=True))
    if way is None:
        return float(np.mean([dice(truth, mask) for stack, truth in pairs for mask in stack]))
    return float(np.mean([dice(t, f) for t, f in zip(images.truth, way(images), strict=True)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    ways = dict(WAYS)
    try:
        import SimpleITK  # noqa: F401
    except ImportError:
        print("No SimpleITK: its column is left out, and the table of scores is not written.")
        del ways["STAPLE"]
    lines = [f"| | {' | '.join(ways)} |", f"|---|{'---|' * len(ways)}"]
    trust = ["| | confidence | right | confidence where readers disagree | right |", "|---|---|---|---|---|"]
    for name, sets in cases(quick):
        scores = [np.mean([score(way, each) for each in sets]) for way in ways.values()]
        lines.append(f"| {name} | {' | '.join(f'{each:.3f}' for each in scores)} |")
        trust.append(f"| {name} | {' | '.join(f'{each:.2f}' for each in judge_confidence(sets))} |")
        print(lines[-1], trust[-1], sep="\n", flush=True)
    if not quick:
        CONFIDENCE.write_text("\n".join(trust) + "\n", encoding="utf-8")
    if not quick and "STAPLE" in ways:
        TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
