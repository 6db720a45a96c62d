"""Masks of several readers: arrays, files, fusion and the way back."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import consilience as cs
from benchmarks.masks import dice, draw_masks
from command_line import run
from consilience.errors import DataWarning, InputError, ParameterError
from real_data import FOLDER, gold_of, needs_data

READERS = ("ann", "bob", "cy")
# Outlines err along edges, and the vote of few readers is hard to beat: `fuse` warns of both.
quiet = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


def draw(image: int, size: int = 24, n_readers: int = 3) -> np.ndarray:
    """Return masks (reader, row, column) of zeros and ones, of a disc at a place that depends on the image."""
    rng = np.random.default_rng(image)
    row, column = np.mgrid[:size, :size]
    centre = [(size * 0.3, size * 0.3), (size * 0.7, size * 0.3), (size * 0.5, size * 0.7), (size * 0.3, size * 0.75)]
    middle = np.array(centre[image % 4])
    radius = size * 0.2
    return np.stack(
        [
            np.hypot(row - middle[0] - rng.normal(0, 0.7), column - middle[1]) < radius + rng.normal(0, 0.7)
            for _ in range(n_readers)
        ]
    ).astype(np.uint8)


def draw_all(n_images: int = 3, size: int = 24) -> dict[str, dict[str, np.ndarray]]:
    return {f"scan{i}": dict(zip(READERS, draw(i, size), strict=True)) for i in range(n_images)}


def save(path: Path, array: np.ndarray, mode: str | None = None, palette: list[int] | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(array)
    if palette is not None:
        image.putpalette(palette)
    (image if mode is None else image.convert(mode)).save(path)


def save_all(folder: Path, arrays: dict[str, dict[str, np.ndarray]], by: str = "reader", scale: int = 1) -> Path:
    for image, by_reader in arrays.items():
        for reader, array in by_reader.items():
            parts = (reader, image) if by == "reader" else (image, reader)
            save(folder / parts[0] / f"{parts[1]}.png", array * np.uint8(scale))
    return folder


def same(masks: cs.Masks, arrays: dict) -> bool:
    found = masks.arrays()
    return set(found) == set(arrays) and all(
        set(found[image]) == set(arrays[image])
        and all(np.array_equal(found[image][reader], arrays[image][reader]) for reader in arrays[image])
        for image in arrays
    )


def message(call, *arguments, **keywords) -> str:
    with pytest.raises((InputError, ParameterError)) as caught:
        call(*arguments, **keywords)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------------ arrays


def test_answers_are_those_of_a_plain_loop():
    arrays = {
        "a": {"z": np.array([[0, 1], [2, -1]]), "y": np.array([[0, 0], [2, 2]])},
        "b": {"y": np.array([[1, 1, 1]])},
    }
    r = cs.Masks.from_arrays(arrays).to_responses()
    expected, item = [], 0
    for by_reader in arrays.values():
        for pixel in np.ndindex(next(iter(by_reader.values())).shape):
            for reader in sorted(by_reader):
                if by_reader[reader][pixel] >= 0:
                    expected.append((item, reader, by_reader[reader][pixel]))
            item += 1
    found = zip(r.item_of_answer().tolist(), r.workers[r.worker].tolist(), r.labels[r.label].tolist(), strict=True)
    assert list(found) == expected
    assert (r.n_items, r.classes.tolist()) == (7, [0, 1, 2])


def test_pixels_without_an_answer():
    nan = np.array([[0.0, np.nan], [1.0, 1.0]])
    masked = np.ma.masked_array([[0, 9], [1, 1]], [[False, True], [False, False]])
    for array, missing in ((nan, -1), (masked, -1), (np.array([[0, 255], [1, 1]]), 255), (nan, None)):
        masks = cs.Masks.from_arrays({"a": {"x": array}}, missing=missing)
        assert masks.to_responses().n_responses == 3
        assert masks.classes.tolist() == [0, 1]
        assert masks.arrays()["a"]["x"][0, 1] == (-1 if missing is None else missing)


def test_classes_have_names():
    named = {0: "background", 1: "lesion", 2: "lesion", 7: "vessel"}
    masks = cs.Masks.from_arrays(np.array([[[0, 1], [2, 0]]]), classes=named)
    assert masks.classes.tolist() == ["background", "lesion", "vessel"]
    assert masks.to_responses().label.tolist() == [0, 1, 1, 0]
    assert masks.arrays()[0][0].tolist() == [[0, 1], [1, 0]]
    assert "hold 3, and only 0, 1" in message(cs.Masks.from_arrays, [[[3]]], classes={0: "a", 1: "b"})


@pytest.mark.parametrize(
    ("arrays", "more", "words"),
    [
        ([[[0.5, 0.2]]], {}, "0.5"),
        (np.zeros((4, 4), int), {}, "readers along its first axis"),
        (np.arange(300).reshape(1, 15, 20), {}, "300 different values"),
        ({"a": {"x": [["b", "c"]]}}, {}, "whole numbers"),
        ({"a": {"x": [[1], [2, 3]]}}, {}, "whole numbers"),
        ({"a": {"x": np.zeros((2, 2)), "y": np.zeros((3, 2))}}, {}, "(3, 2), and the mask of 'a' by 'x' has (2, 2)"),
        ({}, {}, "no masks"),
        ({"a": np.zeros((2, 2), int)}, {}, "{image: {reader: array}}"),
        ({"a": {"x": np.zeros((0, 3), int)}}, {}, "has the shape (0, 3)"),
        ([[[-1, -1]]], {}, "every pixel"),
        ([[[1]]], {"missing": "x"}, "'missing'"),
    ],
)
def test_what_is_no_mask_is_refused(arrays, more, words):
    assert words in message(cs.Masks.from_arrays, arrays, **more)


# ------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("by", ["reader", "image"])
@pytest.mark.parametrize("n_images", [1, 2, 4])
def test_folders_are_readers_or_images(tmp_path, by, n_images):
    arrays = draw_all(n_images)
    assert same(cs.read_masks(save_all(tmp_path / "alike", arrays, by)), arrays)
    sized = {f"scan{i}": dict(zip(READERS, draw(0, 20 + i), strict=True)) for i in range(n_images)}
    if n_images > 1:  # of different sizes
        assert same(cs.read_masks(save_all(tmp_path / "sized", sized, by)), sized)


def test_doubt_about_folders(tmp_path):
    disc = draw(0)[0]
    arrays = {name: dict.fromkeys(READERS, disc) for name in ("one", "two", "three")}
    save_all(tmp_path, arrays)
    said = message(cs.read_masks, tmp_path)
    assert "readers ('ann', 'bob', 'cy')" in said
    assert "folders='images'" in said
    assert same(cs.read_masks(tmp_path, folders="readers"), arrays)
    assert cs.read_masks(tmp_path, folders="images").readers.tolist() == ["one", "three", "two"]
    assert "'folders'" in message(cs.read_masks, tmp_path, folders="rows")


@pytest.mark.parametrize("mode", ["1", "L", "P", "255", "I;16", "grey RGB", "npy", "4 bits"])
def test_round_trip(tmp_path, mode):
    arrays = draw_all()
    palette = [0, 0, 0, 200, 30, 30, 0, 0, 250]
    for image, by_reader in arrays.items():
        for reader, drawn in by_reader.items():
            path = tmp_path / "in" / reader / f"{image}.png"
            array = {"1": drawn > 0, "255": drawn * np.uint8(255), "I;16": drawn * np.uint16(999)}.get(mode, drawn)
            if mode == "npy":
                path.parent.mkdir(parents=True, exist_ok=True)
                np.save(path.with_suffix(".npy"), drawn)
            elif mode == "4 bits":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(png(drawn, depth=4))
            else:
                save(path, array, "RGB" if mode == "grey RGB" else None, palette if mode == "P" else None)
            by_reader[reader] = array
    masks = cs.read_masks(tmp_path / "in")
    assert same(masks, arrays)
    cs.write_masks(masks, tmp_path / "out")
    again = cs.read_masks(tmp_path / "out")
    assert same(again, arrays)
    assert (again.images.tolist(), again.readers.tolist()) == (masks.images.tolist(), masks.readers.tolist())
    assert again.classes.tolist() == masks.classes.tolist()
    suffix = ".npy" if mode == "npy" else ".png"
    written = tmp_path / "out" / "ann" / f"scan0{suffix}"
    assert written.is_file()


def png(values: np.ndarray, depth: int = 8, kind: int = 0, size: tuple[int, int] | None = None) -> bytes:
    """Return a PNG file of grey values, made by hand."""
    height, width = values.shape if size is None else size
    lines = values if depth == 8 else (values[:, ::2] << 4 | values[:, 1::2]).astype(np.uint8)
    body = zlib.compress(b"".join(b"\0" + line.tobytes() for line in lines))
    parts = {b"IHDR": struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0), b"IDAT": body, b"IEND": b""}
    chunks = (struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts.items())
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def test_single_arrays(tmp_path):
    np.save(tmp_path / "one.npy", np.stack([draw(0), draw(1)], axis=1))
    masks = cs.read_masks(tmp_path / "one.npy")
    assert (masks.shapes, len(masks.readers)) == (((2, 24, 24),), 3)
    np.savez(tmp_path / "many.npz", left=draw(0), right=draw(1, 16))
    masks = cs.read_masks(tmp_path / "many.npz")
    assert (masks.images.tolist(), masks.shapes) == (["left", "right"], ((24, 24), (16, 16)))
    np.savez(tmp_path / "odd.npz", left=draw(0), right=draw(1)[:2])
    assert "2, 3 masks" in message(cs.read_masks, tmp_path / "odd.npz")


def test_names_of_files_stay_in_the_folder(tmp_path):
    for name in ("../x", "a/b", "", ".hidden", "a\0b"):
        masks = cs.Masks.from_arrays({name: {"ann": draw(0)[0]}})
        assert "name of a file" in message(cs.write_masks, masks, tmp_path / "out")
    masks = cs.Masks.from_arrays({1: {"ann": draw(0)[0]}, "1": {"ann": draw(0)[0]}})
    assert "Two masks" in message(cs.write_masks, masks, tmp_path / "out")
    (tmp_path / "file").write_text("x")
    assert "cannot be created" in message(cs.write_masks, cs.Masks.from_arrays(draw(0)), tmp_path / "file")


def test_damaged_files(tmp_path):
    save_all(tmp_path, draw_all())
    path = tmp_path / "bob" / "scan1.png"
    whole = path.read_bytes()
    huge = png(np.zeros((1, 1), np.uint8), size=(60_000, 60_000))
    large = png(np.zeros((1, 1), np.uint8), size=(11_000, 11_000))
    for content in (b"", b"no picture", whole[:40], whole[:-30], huge, large, whole[:20] + b"\xff" * 30 + whole[50:]):
        path.write_bytes(content)
        assert str(path) in message(cs.read_masks, tmp_path)
    path.unlink()
    np.save(path.with_suffix(".npy"), np.array([{}], dtype=object), allow_pickle=True)
    assert "scan1.npy" in message(cs.read_masks, tmp_path)
    path.with_suffix(".npy").write_bytes(b"\x93NUMPY\x01\x00")
    assert "scan1.npy" in message(cs.read_masks, tmp_path)


def test_ones_beside_255(tmp_path):
    drawn = draw(0)
    for reader, scale in zip(READERS, (1, 255, 255), strict=True):
        save(tmp_path / reader / "a.png", drawn[READERS.index(reader)] * np.uint8(scale))
    with pytest.warns(DataWarning, match="both 1 and 255"):
        cs.read_masks(tmp_path, folders="readers")
    masks = cs.read_masks(tmp_path, folders="readers", classes={0: "no", 1: "yes", 255: "yes"})
    assert masks.classes.tolist() == ["no", "yes"]


# ------------------------------------------------------------------------------------------------------------ fusion


def simulate(seed: int, size: int = 40, wobbles: tuple[float, ...] = (0.7, 0.7, 2.5, 2.5, 2.5)) -> tuple:
    drawn = draw_masks(seed, size, wobbles)
    stack = drawn.responses.label.reshape(-1, len(wobbles)).T.reshape(-1, size, size).astype(np.uint8)
    return stack, drawn.truth.reshape(size, size)


@quiet
def test_fused_masks(tmp_path):
    (first, truth), (second, _) = simulate(0), simulate(1)
    arrays = {"a": dict(enumerate(first * np.uint8(255))), "b": dict(enumerate(second[:4] * np.uint8(255)))}
    masks = cs.Masks.from_arrays(arrays, classes={0: "healthy", 255: "lesion"})
    fused = cs.fuse(masks)
    found = fused.to_masks()
    assert list(found) == ["a", "b"]
    assert (found["a"].dtype, np.unique(found["a"]).tolist()) == (np.uint8, [0, 255])
    names = np.concatenate([found[image].ravel() for image in found])
    assert np.array_equal(np.where(names > 0, "lesion", "healthy"), fused.labels_)
    confidence = np.concatenate([found.confidence[image].ravel() for image in found])
    assert np.array_equal(confidence, fused.to_frame()["confidence"].to_numpy())
    assert dice(truth, (found["a"] > 0).astype(int)) > min(dice(truth, each) for each in first)
    loaded = cs.load(fused.save(tmp_path / "x.model"))
    assert "give them with masks=" in message(loaded.to_masks)
    assert np.array_equal(loaded.to_masks(masks)["a"], found["a"])
    assert "not the masks" in message(loaded.to_masks, cs.Masks.from_arrays(simulate(0, 20)[0]))
    assert "images" in message(cs.DawidSkene().fit(cs.Answers.from_matrix(draw(0).reshape(3, -1).T)).to_masks)


@quiet
def test_from_a_folder_to_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_all(Path("masks"), draw_all(), scale=255)
    result = run("fuse", "masks", "-o", "fused", "--json")
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    assert (summary["items"], summary["workers"], summary["files"]) == (3 * 24 * 24, 3, {"labels": "fused"})
    found = cs.fuse("masks", model="dawid-skene").to_masks()
    for image in ("scan0", "scan1", "scan2"):
        assert np.array_equal(np.array(Image.open(f"fused/{image}.png")), found[image])
    assert run("fuse", "masks", "-o", "labels.parquet", "-q", "--model", "majority").exit_code == 0
    assert pq.read_table("labels.parquet").num_rows == 3 * 24 * 24
    assert "would change the input" in run("fuse", "masks", "-o", "masks/fused").stderr
    assert "--item is for tables" in run("fuse", "masks", "--item", "x").stderr


# --------------------------------------------------------------------------------------------------------- real data


@pytest.mark.robust
@needs_data
@quiet
def test_crowd_outlines_of_an_aorta():
    """BU-BIL: 35 magnetic resonance images, seven outlines of each. Fused masks are at least as good as the vote."""
    items = pq.read_table(FOLDER / "bubil_mri" / "items.parquet").to_pydict()
    answers = pq.read_table(FOLDER / "bubil_mri" / "responses.parquet").to_pydict()
    place = dict(zip(items["item"], zip(items["image"], items["row"], items["col"], strict=True), strict=True))
    gold = gold_of("bubil_mri")
    chosen = set(sorted(set(items["image"]))[:8])
    shapes = {
        image: tuple(1 + max(p[axis] for p in place.values() if p[0] == image) for axis in (1, 2)) for image in chosen
    }
    arrays = {image: {m: np.full(shapes[image], -1) for m in range(7)} for image in sorted(chosen)}
    truth = {image: np.full(shapes[image], -1) for image in chosen}
    for item, worker, label in zip(answers["item"], answers["worker"], answers["label"], strict=True):
        image, row, column = place[item]
        if image in chosen:
            arrays[image][worker][row, column] = int(label)
            truth[image][row, column] = int(gold[item])
    masks = cs.Masks.from_arrays(arrays)
    fused = cs.fuse(masks).to_masks()
    vote = cs.MajorityVote().fit(masks).to_masks()
    scores = [np.mean([dice(truth[i], found[i]) for i in arrays]) for found in (vote, fused)]
    assert scores[1] > scores[0] - 0.01
    assert scores[1] > 0.8
