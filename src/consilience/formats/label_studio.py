"""Label Studio: the JSON export of tasks, and tasks with predictions to import.

Relies on the task format of Label Studio 1.x (guide pages "Label Studio Task Format" and "Import pre-annotated
data"). A task has ``data`` (the text is one of its values), ``annotations`` by people and ``predictions`` by models.
Each of these has a list ``result``: entries of type ``labels`` are spans, those of type ``choices`` and ``rating`` are
answers about the whole task.

- A worker is the email, else the id, in ``completed_by``, as text; for a prediction it is ``model_version``, with
  "model" before it if an annotator is called the same.
- Cancelled annotations (``was_cancelled``) and drafts are no annotations. An annotation without spans is an empty one.
- An annotation marked as ``ground_truth`` is the truth, not the annotation of a worker.
- Offsets count characters. Older exports count UTF-16 units, which differs after an emoji; ``value.text`` shows which
  of the two it is. So it does where a browser turned line breaks of two characters into one. A region that is not
  where its text is, is moved there if the text occurs once, with a warning.
- The text is the value of ``data`` in which the regions fit; if several do, the one called as ``to_name``.
- Ratings are whole numbers, and levels of a scale. Choices are text.
- Spans with a confidence are written as predictions, other spans as annotations. Fused labels are predictions with one
  choice, or a rating.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from functools import cached_property

from ..errors import DataWarning, Python, Sentence, listing, plural, shorten, warn, warn_of
from ..tasks.spans import Spans
from ..tasks.texts import FUSED
from . import Verdict, Verdicts
from . import label_studio_regions as areas
from .annotation_tools import Answer, Reading, Scored, SharedRecords, Span, as_rating
from .records import Entry, Id, Identity, Place, Record, peek_record, plain, write_records

_MODEL = "prediction"  # the worker of predictions without a model_version
_ANSWERS = ("choices", "rating")
_KNOWN_TYPES = {"labels", *_ANSWERS, "relation", ""}


class LabelStudio(SharedRecords):
    """Tasks of Label Studio."""

    name = "label-studio"
    title = "Label Studio"
    carries = frozenset({"confidence", "gold", "white space"})
    numbers_are_ratings = True
    silence_is_empty = True

    def __init__(self, path: str | None) -> None:
        super().__init__(path)
        self.other_types: set[str] = set()
        self.n_unlabelled = self.n_moved = 0
        self.question = self.target = ""  # the tag of the answers that are written, and what it is about
        self.is_rating = False  # whether these are ratings
        self.is_whole = False  # whether to look for the tags of all labels

    @staticmethod
    def recognise(head: bytes, path: str) -> bool:  # noqa: ARG004
        """Tell whether the first bytes of a file are those of tasks."""
        first = peek_record(head)
        if {"annotation_id", "annotator", "lead_time"} <= first.keys():
            return True  # JSON-MIN, for which the reader has an error
        has_answers = any(isinstance(first.get(key), list) for key in ("annotations", "predictions"))
        return isinstance(first.get("data"), dict) and has_answers

    def identify(self, place: Place, record: Record, file: str) -> Identity:
        """Return id and data of a task; the same data without an id may occur several times in a file."""
        if "annotation_id" in record and "data" not in record:
            place.fail("this is the export JSON-MIN, which leaves out what is needed.", "Export as JSON.")
        if not isinstance(record.get("data"), dict):
            place.fail(
                "this is no task of Label Studio: 'data' is missing.",
                "Export as JSON from Label Studio, or give a table as JSON lines.",
            )
        return Identity(record.get("id"), record["data"], file)

    @cached_property
    def people(self) -> frozenset[str]:
        """The names of all annotators, which a model must not share."""
        return frozenset(
            _annotator(place, each)
            for place, _, _, task in self.entries()
            for each in place.entries(task, "annotations", dict)
            if not place.get(each, "was_cancelled", bool, False) and not place.get(each, "ground_truth", bool, False)
        )

    def _announce_models(self) -> None:
        """Say that models count as workers, if there are people beside them; of fused results others warn."""
        models = {
            _model(place, each, self.people)
            for place, _, _, task in self.entries()
            for each in place.get(task, "predictions", list, [])
            if isinstance(each, dict)
        } - {FUSED}
        if models and self.people:
            names = sorted(models)
            count = "counts as a worker, who is a model" if len(names) == 1 else "count as workers, who are models"
            given = Python(f"fuse(source, block={names!r})", "FILE")
            warn_of(
                f"In {self.path!r}, {listing(names)} {count}: there are predictions.",
                Sentence("To fuse without predictions, use {block}.", block=given),
            )

    @cached_property
    def controls(self) -> areas.Controls | None:
        """How the project names things, None if there are no spans."""
        tasks = ((entry, (results for _, results in _annotations(entry))) for entry in self.entries())
        return areas.find_controls(tasks, self.is_whole)

    def text(self, entry: Entry) -> str:
        """Return the value of the data in which the regions are."""
        return areas.find_text(entry, self.controls)

    def readings(self, entry: Entry) -> Iterator[tuple[str | None, Scored]]:
        """Yield the regions of annotations and predictions."""
        place, text = entry.place, self.text(entry)
        for worker, results in _annotations(entry, self.people):
            regions = areas.keep_regions(place, results)
            areas.check_text(place, regions, self.controls)
            self.questions |= {place.need(result, "from_name", str) for result in results if _is_answer(place, result)}
            self.other_types |= {areas.find_kind(place, result) for result in results} - _KNOWN_TYPES
            self.n_unlabelled += sum(not areas.list_labels(place, region) for region in regions)
            spans, n_moved = areas.find_spans(place, text, regions)
            self.n_moved += n_moved
            yield worker, spans

    def check_spans(self, n_readings: int, n_spans: int) -> None:  # noqa: ARG002
        """Warn of other types, and of regions without a label or in other places; refuse what has no spans."""
        if self.questions and not n_spans:
            self.say_answers()
        self._check_types(n_spans)
        self._announce_models()
        self.warn_dropped(self.n_unlabelled, "region", "no label")
        if self.n_moved:
            where = "were moved to the texts that they quote"
            where = "was moved to the text that it quotes" if self.n_moved == 1 else where
            regions = plural(self.n_moved, "region")
            warn(DataWarning(f"{regions} in {self.path!r} {where}, which is not at the offsets given."))

    def read_spans(self) -> Spans:
        """Return the texts, and the spans that workers marked in them."""
        read = super().read_spans()
        if not len(read.readings) and read.gold is None:
            self.say_nothing()
        return read

    def _check_types(self, n_found: int) -> None:
        """Warn of results of types that cannot be read; an error if there are no others."""
        if self.other_types and not n_found:
            found = ", ".join(sorted(map(shorten, self.other_types)))
            Place(self.path, "record", 1).fail(f"found results of type {found}.", areas.UNKNOWN_TYPE)
        if types := sorted(self.other_types - _KNOWN_TYPES):
            warn(DataWarning(f"Results of type {listing(types)} in {self.path!r} are not used. {areas.UNKNOWN_TYPE}"))

    def answers(self, entry: Entry) -> Iterator[Answer]:
        """Yield the choices and ratings of annotations and predictions about a whole task."""
        place = entry.place
        truth: dict[str, Id | list[Id]] = {}
        answers: list[tuple[str, dict[str, Id | list[Id]]]] = []  # those without a choice may be empty sets
        for worker, results in _annotations(entry, self.people):
            given = self._answers(place, results)
            if worker is None:
                if truth and truth != given:
                    place.fail("two annotations are marked as ground truth, and differ.", "Keep one of them.")
                truth = given
            else:
                answers.append((worker, given))
        known = next(iter(truth.values())) if len(truth) == 1 else None
        return (Answer(entry.name, worker, given, known) for worker, given in answers)

    def _answers(self, place: Place, results: list[Record]) -> dict[str, Id | list[Id]]:
        """Return the choices, or the rating, for each tag."""
        given: dict[str, Id | list[Id]] = {}
        for result in results:
            if not _is_answer(place, result):
                kind = place.get(result, "type", str, "")
                self.n_spans += kind == "labels"
                self.other_types.add(kind)
                continue
            question = place.need(result, "from_name", str)
            choices = _read_choices(place, result)
            if question in given:
                place.fail(f"choices for {shorten(question)} are made twice: {shorten(choices)}.", "Keep one of them.")
            given[question] = choices
        return given

    def check_answers(self, answers: list[Answer]) -> list[Answer]:
        """Return all answers, after a warning of other types."""
        n_given = sum(bool(answer.given) for answer in answers)
        if self.n_spans and not n_given:
            self.say_spans()
        self._check_types(n_given)
        self._announce_models()
        return answers

    # -------------------------------------------------------------------------------------------------------- writing

    def write_spans(self, spans: Spans, path: str) -> None:
        """Write the tasks of the original file with the spans in place, then tasks of documents that it lacks."""
        self.is_whole = True
        write_records(self.updated_records(spans), path, as_array=True)

    def workers(self, entry: Entry) -> set[str]:
        """Return who annotated a task, and the models that did."""
        return {worker for worker, _ in self._annotated(entry.place, entry.record)}

    def _annotated(self, place: Place, task: Record) -> Iterator[tuple[str, Record]]:
        for each in task.get("annotations") or []:
            if not each.get("was_cancelled") and not each.get("ground_truth"):
                yield _annotator(place, each), each
        for each in task.get("predictions") or []:
            if isinstance(each, dict):
                yield _model(place, each, self.people), each

    def new_record(self, name: Id, text: str) -> Record:
        """Return a task without annotations."""
        return {"id": plain(name), "data": {(self.controls or areas.Controls()).key: text}}

    def add_truth(self, name: Id, record: Record, text: str, spans: list[Span]) -> None:
        """Put the known spans of a document into a new task."""
        truth = {"ground_truth": True, "result": self._regions(name, text, Reading("gold", spans))}
        record["annotations"] = [*record.get("annotations", []), truth]

    def update(self, place: Place, record: Record, text: str, readings: list[Reading]) -> None:
        """Put the spans of the workers into a task. What is there already and has the same spans stays as it is."""
        name, known = record.get("id"), dict[str | None, Record]()
        for who, each in self._annotated(place, record):
            known.setdefault(who, each)
        annotations, predictions = (list(record.get(kind) or []) for kind in ("annotations", "predictions"))
        given, n_predictions, replaced = set(map(id, annotations)), len(predictions), set[int]()
        for reading in readings:
            worker = str(reading.worker)
            old = known.get(worker)
            if old is not None and (id(old) in given or _says_same(place, text, old, reading)):
                kept = [
                    result
                    for result in place.entries(old, "result", dict)
                    if areas.find_kind(place, result) != "labels"
                    or areas.find_spans(place, text, [result])[0].keys() <= set(reading.spans)
                ]
                there = areas.find_spans(place, text, areas.keep_regions(place, kept))[0]
                missing = Reading(worker, [span for span in reading.spans if span not in there])
                old["result"] = _drop_dangling(kept) + self._regions(name, text, missing)
                continue
            new = {"result": self._regions(name, text, reading)}
            if reading.confidence is not None:
                replaced |= set() if old is None else {id(old)}
                predictions.append({"model_version": worker, "score": reading.score, **new})
            else:
                is_number = worker.isdecimal() and len(worker) < 19 and str(int(worker)) == worker
                annotations.append({"completed_by": int(worker) if is_number else {"email": worker}, **new})
        if len(annotations) > len(given):
            record["annotations"] = annotations
        if len(predictions) > n_predictions:
            record["predictions"] = [each for each in predictions if id(each) not in replaced]

    def _regions(self, name: object, text: str, reading: Reading) -> list[Record]:
        controls, regions = self.controls or areas.Controls(), []
        for (start, end, label), score in zip(reading.spans, reading.scores, strict=True):
            region = {
                "id": _make_id(name, reading.worker, start, end, label),
                "from_name": (controls.of_label or {}).get(label, controls.from_name),
                "to_name": controls.to_name,
                "type": "labels",
                "value": {"start": start, "end": end, "text": text[start:end], "labels": [label]},
            }
            regions.append(region if score is None else {**region, "score": score})
        return regions

    def write_labels(self, verdicts: Verdicts, path: str) -> None:
        """Write all tasks, with the fused labels as predictions."""
        targets = {
            entry.place.need(result, "from_name", str): (entry.place.need(result, "to_name", str), result["type"])
            for entry in self.entries()
            for _, results in _annotations(entry)
            for result in results
            if _is_answer(entry.place, result)
        }
        self.question = verdicts.choose(self.path, targets)
        self.target, kind = targets[self.question]
        self.is_rating = kind == "rating"
        write_records(self.labelled_records(verdicts), path, as_array=True)

    def add_label(self, entry: Entry, verdict: Verdict) -> None:
        """Put a prediction into a task, in place of an earlier fused label for the same question."""
        place, name, _, task = entry
        value: Record = {"choices": list(map(str, verdict.labels))}
        if self.is_rating:
            value = {"rating": as_rating(verdict.label, self.question)}
        result = {
            "id": _make_id(name, FUSED, self.question),
            "from_name": self.question,
            "to_name": self.target,
            "type": "rating" if self.is_rating else "choices",
            "value": value,
        }
        old = place.get(task, "predictions", list, [])
        kept = [each for each in old if not _is_outdated(place, each, self.question)]
        task["predictions"] = [*kept, {"model_version": FUSED, "score": verdict.confidence, "result": [result]}]


def _annotations(entry: Entry, people: Collection[str] = ()) -> Iterator[tuple[str | None, list[Record]]]:
    """Yield worker (None: the truth) and results of all annotations and predictions that count."""
    place, _, _, task = entry
    for each in place.entries(task, "annotations", dict):
        if not place.get(each, "was_cancelled", bool, False):
            is_truth = place.get(each, "ground_truth", bool, False)
            yield (None if is_truth else _annotator(place, each)), place.entries(each, "result", dict)
    for each in place.get(task, "predictions", list, []):
        if type(each) is not int:  # exports may have only the ids of predictions
            place.check(each, dict, "an entry of 'predictions'")
            yield _model(place, each, people), place.entries(each, "result", dict)


def _annotator(place: Place, annotation: Record) -> str:
    who = annotation.get("completed_by")
    if isinstance(who, dict):
        who = who.get("email") or who.get("id")
    if who is None:
        place.fail("an annotation has no 'completed_by'.", "Say in it who made the annotation.")
    return str(place.check_id(who, "'completed_by'"))


def _model(place: Place, prediction: Record, people: Collection[str] = ()) -> str:
    """Return the name of a model; "model" goes before it if it is that of an annotator."""
    version = prediction.get("model_version")
    name = _MODEL if version in (None, "") else str(place.check_id(version, "'model_version'"))
    return f"model {name}" if name in people else name


def _is_answer(place: Place, result: Record) -> bool:
    """Tell whether a result is a choice or a rating of the whole task, not of a region of it."""
    value = result.get("value")
    return place.get(result, "type", str, "") in _ANSWERS and not (isinstance(value, dict) and "start" in value)


def _read_choices(place: Place, result: Record) -> list[Id]:
    """Return the choices of a result, or its rating; none if there is none."""
    value = place.need(result, "value", dict)
    if result["type"] == "choices":
        return [*place.check_all(place.need(value, "choices", list), str, "'choices'")]
    rating = place.get(value, "rating", float)
    if rating is not None and rating != (rating // 1):
        place.fail(f"a rating must be a whole number, found {shorten(rating)}.", "Correct it.")
    return [] if rating is None else [int(rating)]


def _says_same(place: Place, text: str, old: Record, reading: Reading) -> bool:
    """Tell whether a prediction need not change: there is no confidence to add, or it is there already."""
    regions = areas.keep_regions(place, place.entries(old, "result", dict))
    said = dict(zip(reading.spans, reading.scores, strict=True))
    return reading.confidence is None or areas.find_spans(place, text, regions)[0] == said


def _drop_dangling(results: list[Record]) -> list[Record]:
    """Return results without relations to regions that are gone."""
    ids = [result.get("id") for result in results]
    return [
        each
        for each in results
        if each.get("type") != "relation" or (each.get("from_id") in ids and each.get("to_id") in ids)
    ]


def _is_outdated(place: Place, prediction: object, question: str) -> bool:
    """Tell whether a prediction is an earlier fused label for the same question."""
    if not isinstance(prediction, dict) or _model(place, prediction) != FUSED:
        return False
    results = place.entries(prediction, "result", dict)
    return bool(results) and all(result.get("from_name") == question for result in results)


def _make_id(*key: object) -> str:
    """Return the id of a region or a choice, the same whenever it is written."""
    return hashlib.blake2b(repr(key).encode(), digest_size=5).hexdigest()


LABEL_STUDIO = LabelStudio.codec()
