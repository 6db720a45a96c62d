"""Write the small files that the documentation uses: simulated answers, in the forms that tools export.

``python examples/make.py`` renews them, byte for byte; ``python examples/make.py FOLDER`` writes them elsewhere. All
draws come from `random.Random.random`, which gives the same numbers in every version of Python.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
import struct
import sys
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).parent
ANIMALS = ["cat", "dog", "fox"]


class Draws:
    """Random draws by a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random

    def happens(self, chance: float) -> bool:
        return self.random() < chance

    def pick(self, values: Sequence[Any]) -> Any:
        return values[int(self.random() * len(values))]

    def pick_several(self, values: Sequence[Any], n: int) -> list[Any]:
        left = list(values)
        return [left.pop(int(self.random() * len(left))) for _ in range(n)]

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.random()

    def noise(self) -> float:
        """Return a number that is nearly standard normal."""
        return sum(self.random() for _ in range(12)) - 6

    def answer(self, truth: str, classes: Sequence[str], accuracy: float) -> str:
        """Return the truth, or another class with equal chances."""
        return truth if self.happens(accuracy) else self.pick([each for each in classes if each != truth])


def table(header: Sequence[str], rows: Iterable[Sequence[Any]], separator: str = ",", quote: bool = False) -> bytes:
    """Return a text table."""
    text = io.StringIO()
    quoting = csv.QUOTE_ALL if quote else csv.QUOTE_MINIMAL
    writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def lines(records: Iterable[dict[str, Any]]) -> bytes:
    """Return JSON lines."""
    return "".join(json.dumps(each) + "\n" for each in records).encode()


# Images of animals, and a crowd that looks at them


def animals() -> list[str]:
    """Return what 100 images show."""
    draws = Draws(10)
    return [draws.pick(ANIMALS) for _ in range(100)]


def image(number: int) -> str:
    return f"{number:03d}.jpg"


def known() -> dict[str, bytes]:
    """Return what all images show, to see how good the labels are."""
    return {"animals.csv": table(["image", "label"], [(image(item), name) for item, name in enumerate(animals())])}


def crowd(draws: Draws, truth: list[str]) -> list[tuple[int, str, str]]:
    """Return (item, worker, answer) of ten workers: seven are careful, three only guess."""
    skills = {f"A{n:02d}": draws.between(0.65, 0.95) if n < 7 else 1 / 3 for n in range(10)}
    return [
        (item, worker, draws.answer(animal, ANIMALS, skills[worker]))
        for item, animal in enumerate(truth)
        for worker in draws.pick_several(list(skills), 5)
    ]


def mturk() -> dict[str, bytes]:
    """Return the results of a batch of MTurk, in which a few assignments were rejected."""
    draws = Draws(11)
    header = ["HITId", "AssignmentId", "WorkerId", "AssignmentStatus", "Input.image", "Answer.animal"]
    rows = []
    for number, (item, worker, animal) in enumerate(crowd(draws, animals())):
        status = "Rejected" if draws.happens(0.02) else "Approved"
        rows.append([f"3H{item:03d}", f"3A{number:04d}", worker, status, image(item), animal])
    return {"mturk.csv": table(header, rows, quote=True)}


def toloka() -> dict[str, bytes]:
    """Return the assignments of a pool of Toloka, in which every eighth task is a control task."""
    truth = animals()
    header = ["INPUT:image", "OUTPUT:result", "GOLDEN:result", "ASSIGNMENT:worker_id", "ASSIGNMENT:status"]
    rows = [
        [image(item), animal, "" if item % 8 else truth[item], worker, "APPROVED"]
        for item, worker, animal in crowd(Draws(12), truth)
    ]
    return {"toloka.tsv": table(header, rows, "\t")}


def questions() -> dict[str, bytes]:
    """Return a batch of MTurk with three questions on each of 150 messages; four of sixteen workers never look."""
    draws = Draws(81)
    asked = {"spam": ["no", "yes"], "urgent": ["no", "yes"], "tone": ["angry", "friendly", "neutral"]}
    skills = {f"B{n:02d}": draws.between(0.7, 0.95) if n < 12 else None for n in range(16)}
    header = ["HITId", "AssignmentId", "WorkerId", "AssignmentStatus", *(f"Answer.{name}" for name in asked)]
    rows = []
    for item in range(150):
        truth = {name: draws.pick(classes) for name, classes in asked.items()}
        for worker in sorted(draws.pick_several(sorted(skills), 5)):
            skill = skills[worker]
            said = [
                draws.pick(classes) if skill is None else draws.answer(truth[name], classes, skill)
                for name, classes in asked.items()
            ]
            rows.append([f"3M{item:03d}", f"3Q{len(rows):04d}", worker, "Approved", *said])
    return {"questions.csv": table(header, rows)}


# Named entities


class Entity(NamedTuple):
    """A span of characters with a type."""

    start: int
    end: int
    kind: str


PEOPLE = ["Mara Voss", "Ilya Brandt", "Tomas", "June Okoro", "Petra Halloran"]
PLACES = ["Lund", "Port Elm", "Tarvo", "New Harrow"]
FIRMS = ["Quillon", "Ostara Labs", "Bexley Freight", "Norvane"]
SENTENCES = [
    "{PER} joined {ORG} in spring .",
    "In {LOC} , {PER} met a friend .",
    "{ORG} will close its office in {LOC} .",
    "Nobody answered the phone today .",
    "{PER} moved from {LOC} to {LOC} .",
    "{ORG} and {ORG} share a building .",
]
NAMES = {"PER": PEOPLE, "LOC": PLACES, "ORG": FIRMS}


def entities(draws: Draws, n: int) -> list[tuple[str, list[Entity]]]:
    """Return texts with their entities."""
    found = []
    for number in range(n):
        text, spans = "", []
        for word in SENTENCES[number % len(SENTENCES)].split():
            text += " " if text else ""
            name = word
            if word.startswith("{"):
                name = draws.pick(NAMES[word[1:-1]])
                spans.append(Entity(len(text), len(text) + len(name), word[1:-1]))
            text += name
        found.append((text, spans))
    return found


def mark(draws: Draws, text: str, spans: list[Entity], carelessness: float) -> list[Entity]:
    """Return what an annotator marks: some entities are missed, cut at the last word, or get another type."""
    marked = []
    for start, end, kind in spans:
        if draws.happens(0.2 * carelessness):
            continue
        words = text[start:end].split()
        if len(words) > 1 and draws.happens(0.3 * carelessness):
            end = start + len(words[0])
        if draws.happens(0.2 * carelessness):
            kind = draws.pick([each for each in NAMES if each != kind])
        marked.append(Entity(start, end, kind))
    return marked


def annotate(
    seed: int, n: int, annotators: dict[str, float]
) -> list[tuple[str, list[Entity], dict[str, list[Entity]]]]:
    """Return text, true entities, and the entities that each annotator marked."""
    draws = Draws(seed)
    return [
        (text, spans, {who: mark(draws, text, spans, carelessness) for who, carelessness in annotators.items()})
        for text, spans in entities(draws, n)
    ]


def label_studio() -> dict[str, bytes]:
    """Return an export of Label Studio. Every third task has a ground truth."""
    annotators = {"ann@example.org": 0.4, "bob@example.org": 0.8, "cem@example.org": 0.8, "dee@example.org": 1.2}
    tasks = []
    for number, (text, spans, marked) in enumerate(annotate(21, 30, annotators), start=1):
        annotations = [(list(annotators).index(who) + 1, who, found, False) for who, found in marked.items()]
        if number % 3 == 1:
            annotations.append((9, "lead@example.org", spans, True))
        tasks.append(
            {
                "id": number,
                "data": {"text": text},
                "annotations": [
                    {
                        "id": 10 * number + key,
                        "completed_by": {"id": key, "email": who},
                        "was_cancelled": False,
                        "ground_truth": is_truth,
                        "result": [region(text, each, n) for n, each in enumerate(found)],
                    }
                    for key, who, found, is_truth in annotations
                ],
            }
        )
    return {"label_studio.json": ("[\n" + ",\n".join(json.dumps(each) for each in tasks) + "\n]\n").encode()}


def region(text: str, span: Entity, number: int) -> dict[str, Any]:
    """Return a span as Label Studio writes it."""
    value = {"start": span.start, "end": span.end, "text": text[span.start : span.end], "labels": [span.kind]}
    return {"id": f"r{number}", "from_name": "label", "to_name": "text", "type": "labels", "value": value}


def other_tools() -> dict[str, bytes]:
    """Return the same six texts with the annotations of two people as Prodigy, doccano, brat and CoNLL have them."""
    texts = annotate(22, 6, {"ann": 0.5, "bob": 1.0})
    found = {
        "prodigy.jsonl": lines(
            prodigy_task(number, text, who, marked[who])
            for number, (text, _, marked) in enumerate(texts)
            for who in marked
        )
    }
    for who in ("ann", "bob"):
        found[f"doccano/{who}.jsonl"] = lines(
            {"id": number, "text": text, "label": [list(each) for each in marked[who]]}
            for number, (text, _, marked) in enumerate(texts, start=1)
        )
        for number, (text, _, marked) in enumerate(texts, start=1):
            notes = (
                f"T{n}\t{each.kind} {each.start} {each.end}\t{text[each.start : each.end]}\n"
                for n, each in enumerate(marked[who], start=1)
            )
            found[f"brat/{who}/{number}.txt"] = f"{text}\n".encode()
            found[f"brat/{who}/{number}.ann"] = "".join(notes).encode()
        sentences = ["".join(conll_lines(text, marked[who])) for text, _, marked in texts]
        found[f"conll/{who}.conll"] = "\n".join(sentences).encode()
    return found


def words_of(text: str) -> list[tuple[str, int, int]]:
    """Return the words between single blanks, with start and end."""
    words, start = [], 0
    for word in text.split(" "):
        words.append((word, start, start + len(word)))
        start += len(word) + 1
    return words


def prodigy_task(number: int, text: str, who: str, marked: list[Entity]) -> dict[str, Any]:
    words = words_of(text)
    first = {start: n for n, (_, start, _) in enumerate(words)}
    last = {end: n for n, (_, _, end) in enumerate(words)}
    tokens = [{"text": word, "start": start, "end": end, "id": n} for n, (word, start, end) in enumerate(words)]
    spans = [
        {"start": start, "end": end, "token_start": first[start], "token_end": last[end], "label": kind}
        for start, end, kind in marked
    ]
    return {
        "text": text,
        "_input_hash": number,
        "tokens": tokens,
        "spans": spans,
        "_view_id": "ner_manual",
        "_annotator_id": who,
        "answer": "accept",
    }


def conll_lines(text: str, marked: list[Entity]) -> Iterable[str]:
    for word, start, end in words_of(text):
        inside = [each for each in marked if each.start <= start and end <= each.end]
        tag = f"{'B' if inside[0].start == start else 'I'}-{inside[0].kind}" if inside else "O"
        yield f"{word}\t{tag}\n"


# Programs as workers


def judge() -> tuple[dict[str, str], list[tuple[str, str, str]]]:
    """Return which of two answers is better, by prompt, and (prompt, model, verdict) of seven models.

    The three models called atlas are of one family: of the prompts on which one of them errs, most mislead all three.
    """
    draws = Draws(31)
    alone = {"birch-2": 0.85, "cedar-7b": 0.75, "dune-large": 0.8, "elm-mini": 0.65}
    family = ["atlas-large", "atlas-medium", "atlas-small"]
    truth, rows = {}, []
    for number in range(120):
        prompt, better = f"p{number:03d}", draws.pick("AB")
        shared = draws.answer(better, "AB", 0.75)
        verdicts = {name: shared if draws.happens(0.9) else draws.answer(better, "AB", 0.7) for name in family}
        verdicts |= {name: draws.answer(better, "AB", accuracy) for name, accuracy in alone.items()}
        truth[prompt] = better
        rows += [(prompt, name, verdict) for name, verdict in verdicts.items()]
    return truth, rows


def judges() -> dict[str, bytes]:
    """Return the verdicts of models, and what a person says about every fourth prompt."""
    truth, rows = judge()
    return {
        "judges.csv": table(["prompt_id", "model", "verdict"], rows),
        "judges_gold.csv": table(["prompt_id", "verdict"], list(truth.items())[::4]),
    }


def logs() -> dict[str, bytes]:
    """Return logs of two systems, as Inspect AI writes them: 60 samples and five graders, one of which may fail."""
    draws, found = Draws(83), {}
    graders = {"cedar": 0.9, "dune": 0.85, "fern": 0.6, "hazel": 0.8, "ivy": 0.9}
    for system, share in (("ash", 0.8), ("elm", 0.55)):
        samples = []
        for number in range(60):
            truth, scores = "C" if draws.happens(share) else "I", {}
            for name, accuracy in graders.items():
                value: Any = draws.answer(truth, "CI", accuracy)
                if name == "ivy" and draws.happens(0.3):
                    scores[name] = {"value": math.nan, "reason": "grader_failed"}
                else:
                    scores[name] = {"value": value}
            prompt = f"Question {number + 1} of the exam"
            samples.append({"id": number + 1, "epoch": 1, "input": prompt, "target": "", "scores": scores})
        head = {"version": 2, "status": "success", "eval": {"task": "exam", "model": system}}
        found[f"logs/{system}.json"] = (json.dumps({**head, "samples": samples}, indent=1) + "\n").encode()
    return found


def zooniverse() -> dict[str, bytes]:
    """Return classifications of 40 subjects by seven volunteers, three of whom have no name, and by an expert."""
    draws, rows = Draws(89), []
    animals = ["agouti", "deer", "nothing"]
    skills = [0.9, 0.85, 0.8, 0.45, 0.85, 0.9, 0.7]
    header = ["classification_id", "user_name", "user_id", "user_ip", "workflow_id", "created_at", "gold_standard"]
    for subject in range(40):
        truth = draws.pick(animals)
        for volunteer in [*draws.pick_several(range(7), 4), *([7] if subject % 8 == 0 else [])]:
            seen = truth if volunteer == 7 else draws.answer(truth, animals, skills[volunteer])
            address = f"{volunteer + 11:020x}"
            name = f"not-logged-in-{address}" if 4 <= volunteer < 7 else f"user-{volunteer}"
            known, time = "true" if volunteer == 7 else "", f"2026-02-23 16:{subject:02d}:{volunteer:02d} UTC"
            cells = [len(rows) + 1, name, "" if 4 <= volunteer < 7 else volunteer, address, 10, time, known]
            task = [{"task": "T0", "task_label": "Which animal is it?", "value": seen}]
            data = {str(900 + subject): {"filename": f"{900 + subject}.jpg"}}
            session = {"session": f"{volunteer + 3:032x}"}
            rows.append([*cells, *map(json.dumps, (session, task, data)), 900 + subject])
    return {"zooniverse.csv": table([*header, "metadata", "annotations", "subject_data", "subject_ids"], rows)}


def systems() -> dict[str, bytes]:
    """Return whether answers of three systems to 150 prompts are good, by five models, and what people say of 100.

    Prompts are easy or hard for all systems. The models praise what sage writes.
    """
    draws = Draws(65)
    quality = {"quill": 0.75, "reed": 0.6, "sage": 0.5}
    models = {"birch": 0.84, "cedar": 0.76, "dune": 0.86, "elm": 0.68, "fir": 0.8}
    truth, rows = {}, []
    for number in range(150):
        prompt, easy = f"p{number:03d}", draws.between(-0.35, 0.35)
        for system, share in quality.items():
            verdict = "good" if draws.happens(share + easy) else "bad"
            charmed = system == "sage" and draws.happens(0.5)
            truth[prompt, system] = verdict
            for model, accuracy in models.items():
                said = "good" if charmed and draws.happens(0.6) else draws.answer(verdict, ("good", "bad"), accuracy)
                rows.append((prompt, system, model, said))
    drawn = draws.pick_several(list(truth), 100)
    return {
        "systems.csv": table(["prompt", "system", "judge", "verdict"], rows),
        "systems_known.csv": table(["prompt", "system", "verdict"], [(*key, truth[key]) for key in drawn]),
    }


def ratings() -> dict[str, bytes]:
    """Return how relevant 240 results of a search are, 0 to 4, by twelve raters, who cannot tell now and then."""
    draws = Draws(71)
    raters = {f"rater-{n + 1:02d}": (0.7 * draws.noise(), draws.between(0.3, 0.9)) for n in range(11)}
    raters["rater-12"] = (-1.2, 0.3)
    rows = []
    for item in range(240):
        truth = draws.pick([0, 0, 0, 1, 1, 2, 2, 3, 3, 4])
        for name in draws.pick_several(sorted(raters), 3):
            bias, spread = raters[name]
            seen = min(4, max(0, round(truth + bias + spread * draws.noise())))
            rows.append((f"result-{item:03d}", name, "can't tell" if draws.happens(0.02) else seen))
    return {"ratings.csv": table(["item", "rater", "rating"], rows)}


def marks() -> dict[str, bytes]:
    """Return marks from 0 to 100 of 150 essays, each by three of twelve graders; two of them mark without looking."""
    draws = Draws(79)
    graders = {f"grader-{n + 1:02d}": (8 * draws.noise(), draws.between(3, 9)) for n in range(10)}
    rows = []
    for item in range(150):
        truth = 62 + 13 * draws.noise()
        for name in draws.pick_several([*sorted(graders), "grader-11", "grader-12"], 3):
            bias, spread = graders.get(name, (0.0, 0.0))
            seen = truth + bias + spread * draws.noise() if name in graders else draws.between(20, 95)
            rows.append((f"essay-{item:03d}", name, f"{min(100, max(0, seen)):.1f}"))
    return {"marks.csv": table(["item", "grader", "mark"], rows)}


def scores() -> dict[str, bytes]:
    """Return scores from 1 to 10 of 200 answers, each by three of five models, and means of two people for some."""
    draws = Draws(73)
    models = {"birch-2": (0.2, 0.8), "cedar-7b": (1.8, 1.1), "dune-large": (-0.3, 0.6), "elm-mini": (0.4, 1.9)}
    models["fir-turbo"] = (-1.2, 0.8)
    rows, known = [], []
    for number in range(200):
        name, truth = f"p{number:03d}", draws.pick([2, 3, 4, 5, 5, 6, 6, 7, 7, 8, 9])
        for model in sorted(draws.pick_several(sorted(models), 3)):
            bias, spread = models[model]
            rows.append((name, model, min(10, max(1, round(truth + bias + spread * draws.noise())))))
        people = [min(10, max(1, round(truth + 0.5 * draws.noise()))) for _ in range(2)]
        known += [(name, sum(people) / 2)] if number % 6 == 0 else []
    return {
        "scores.csv": table(["prompt_id", "model", "score"], rows),
        "scores_gold.csv": table(["prompt_id", "score"], known),
    }


def battles() -> dict[str, bytes]:
    """Return which of two answers to a prompt judges prefer; oak tosses coins, and yew likes the first."""
    draws = Draws(91)
    models = {"atlas": 1.2, "birch": 0.9, "cedar": 0.4, "dune": -0.1, "elm": -0.8, "fir": -1.6}
    judges = {"ash": (1.6, 0.0), "beech": (1.1, 0.2), "hazel": (2.2, -0.1), "larch": (0.8, 0.1), "maple": (1.4, 0.3)}
    judges |= {"oak": (0.0, 0.0), "pine": (1.2, -0.2), "yew": (0.9, 1.4)}
    rows = []
    for number in range(150):
        for judge in sorted(draws.pick_several(sorted(judges), 4)):
            discrimination, bias = judges[judge]
            first, second = draws.pick_several(sorted(models), 2)
            z = discrimination * (models[first] - models[second]) + bias
            odds = {"model_a": math.exp(z / 2), "model_b": math.exp(-z / 2), "tie": 0.5}
            at = draws.random() * sum(odds.values())
            winner = next(name for n, name in enumerate(odds, 1) if at <= sum(list(odds.values())[:n]))
            rows.append((f"p{number:03d}", judge, first, second, winner))
    return {"battles.csv": table(["prompt", "judge", "model_a", "model_b", "winner"], rows)}


def functions() -> dict[str, bytes]:
    """Return a label matrix of eight labelling functions: 0 is ham, 1 is spam, -1 is silence."""
    draws = Draws(41)
    rates = [(draws.between(0.3, 0.6), draws.between(0, 0.1)) for _ in range(8)]
    rows = []
    for _ in range(400):
        truth = int(draws.happens(0.2))
        rows.append(
            [
                n % 2 if draws.happens(right if n % 2 == truth else wrong) else -1
                for n, (right, wrong) in enumerate(rates)
            ]
        )
    file = io.BytesIO()
    np.save(file, np.array(rows, np.int8))
    return {"functions.npy": file.getvalue()}


def probabilities() -> dict[str, bytes]:
    """Return what four classifiers think of each image, rounded to two decimals. The last one is far too sure.

    A classifier of skill s sees s for the true class and 0 for others, with normal noise. The best it can say is then
    softmax(s z), where z is what it sees.
    """
    draws = Draws(51)
    skills = {"forest": 1.6, "linear": 1.3, "nearest": 1.0, "network": 0.8}
    rows = []
    for item, truth in enumerate(animals()):
        for name, skill in skills.items():
            seen = [skill * (animal == truth) + draws.noise() for animal in ANIMALS]
            odds = [math.exp((5 if name == "network" else 1) * skill * z) for z in seen]
            rows.append((image(item), name, *(f"{each / sum(odds):.2f}" for each in odds)))
    return {"probabilities.csv": table(["image", "classifier", *ANIMALS], rows)}


# Masks


def tags() -> dict[str, bytes]:
    """Return sets of tags that three of eight readers gave to each of 150 messages to a shop."""
    draws = Draws(71)
    shares = {
        "refund": (0.6, 0.05),
        "damaged": (0.5, 0.02),
        "late": (0.1, 0.3),
        "invoice": (0.15, 0.35),
        "urgent": (0.3, 0.2),
    }
    skills = [(0.9, 0.02), (0.85, 0.05), (0.8, 0.02), (0.75, 0.03), (0.7, 0.15), (0.65, 0.05), (0.5, 0.02), (0.4, 0.08)]
    readers = {f"reader-{n}": skill for n, skill in enumerate(skills, 1)}
    rows, truths = [], []
    for n in range(150):
        kind = draws.happens(0.6)
        fits = [tag for tag, share in shares.items() if draws.happens(share[kind])]
        truths.append((f"message-{n:03}", ";".join(fits)))
        for reader in sorted(draws.pick_several(list(readers), 3)):
            seen, false = readers[reader]
            given = [tag for tag in shares if draws.happens(seen if tag in fits else false)]
            rows.append((f"message-{n:03}", reader, ";".join(given)))
    return {
        "tags.csv": table(["item", "worker", "tags"], rows),
        "tags_gold.csv": table(["item", "tags"], truths[:40]),
    }


def masks() -> dict[str, bytes]:
    """Return the outlines of two lesions by three readers, of whom the last draws too large."""
    draws = Draws(61)
    found = {}
    for scan, (row, column, radius) in {"scan-1": (15, 14, 8), "scan-2": (12, 18, 6)}.items():
        for reader, excess in {"reader-1": 0, "reader-2": 0, "reader-3": 2}.items():
            middle = row + draws.between(-1, 1), column + draws.between(-1, 1)
            size = radius + excess + draws.between(-0.5, 0.5)
            found[f"masks/{reader}/{scan}.png"] = png(disc(32, middle, size))
    return found


def disc(side: int, middle: tuple[float, float], radius: float) -> list[list[int]]:
    return [[255 * ((y - middle[0]) ** 2 + (x - middle[1]) ** 2 < radius**2) for x in range(side)] for y in range(side)]


def png(pixels: list[list[int]]) -> bytes:
    """Return a grey image as PNG, not compressed, so that the bytes do not depend on the version of zlib."""
    data = b"".join(b"\0" + bytes(row) for row in pixels)
    stored = b"\x78\x01\x01" + struct.pack("<HH", len(data), len(data) ^ 0xFFFF) + data
    stored += struct.pack(">I", zlib.adler32(data))
    header = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", stored), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def make() -> dict[str, bytes]:
    """Return the content of all files by their path."""
    found: dict[str, bytes] = {}
    for part in (
        known,
        mturk,
        questions,
        toloka,
        label_studio,
        other_tools,
        judges,
        systems,
        ratings,
        marks,
        logs,
        zooniverse,
        scores,
        battles,
        functions,
        probabilities,
        tags,
        masks,
    ):
        found |= part()
    return found


def main(folder: Path) -> None:
    """Write all files."""
    for path, content in make().items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
