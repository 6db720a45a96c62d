"""Label Studio: the JSON export of tasks, and tasks with predictions to import.

Relies on the task format of Label Studio 1.x (guide pages "Label Studio Task Format" and "Import pre-annotated
data"). A task has ``data`` (the text is one of its values), ``annotations`` by people and ``predictions`` by models.
Each of these has a list ``result``: entries of type ``labels`` are spans, those of type ``choices`` are answers about
the whole task.

- A worker is the email, else the id, in ``completed_by``, as text; for a prediction it is ``model_version``, with
  "model" before it if an annotator is called the same.
- Cancelled annotations (``was_cancelled``) and drafts are no annotations. An annotation without spans is an empty one.
- An annotation marked as ``ground_truth`` is the truth, not the annotation of a worker.
- Offsets count characters. Older exports count UTF-16 units, which differs after an emoji; ``value.text`` shows which
  of the two it is. So it does where a browser turned line breaks of two characters into one. A region that is not
  where its text is, is moved there if the text occurs once, with a warning.
- The text is the value of ``data`` in which the regions fit; if several do, the one called as ``to_name``.
- Spans with a confidence are written as predictions, other spans as annotations. Fused labels are predictions with one
  choice.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa

from ..errors import DataWarning, listing, plural, shorten, warn
from ..tasks.spans import SpanCollector, Spans
from ..tasks.texts import FUSED
from .annotations import (
    Reading,
    Span,
    Verdict,
    Verdicts,
    build_table,
    check_all_found,
    check_unchanged,
    choose,
    choose_readings,
    finish,
    index_documents,
    list_gold,
    list_inputs,
    list_readings,
    origin_of,
    say_answers,
    say_nothing,
    say_spans,
    warn_dropped,
)
from .files import open_output
from .records import (
    Identity,
    Place,
    drop_whitespace,
    map_line_breaks,
    map_utf16,
    peek_keys,
    plain,
    read_documents,
    write_array,
)
from .register import Codec
from .writing import replace_file

_NAME = "label-studio"
_TOOL = "Label Studio"
_MODEL = "prediction"  # the worker of predictions without a model_version
_UNKNOWN_TYPE = "Only spans in plain text (labels) and choices can be read."
_KNOWN_TYPES = {"labels", "choices", "relation", ""}


class _Controls(NamedTuple):
    """How a project names things: the tags that mark spans, and the key of the text."""

    from_name: str = "label"
    to_name: str = "text"
    key: str = "text"
    of_label: dict[str, str] | None = None  # the name of the tag that has a label


def _tasks(path: str) -> Iterator[tuple[Place, Any, dict[str, Any]]]:
    """Yield place, id and content of each task."""
    for place, name, _, task in read_documents(list_inputs(path), _identify):
        yield place, name, task


def _identify(place: Place, task: dict[str, Any], file: str) -> Identity:
    if "annotation_id" in task and "data" not in task:
        place.fail("this is the export JSON-MIN, which leaves out what is needed.", "Export as JSON.")
    if not isinstance(task.get("data"), dict):
        place.fail(
            "this is no task of Label Studio: 'data' is missing.",
            "Export as JSON from Label Studio, or give a table as JSON lines.",
        )
    return Identity(task.get("id"), task["data"], file)


def _annotations(
    place: Place, task: dict[str, Any], people: Collection[str] = ()
) -> Iterator[tuple[str | None, list[dict[str, Any]]]]:
    """Yield worker (None: the truth) and results of all annotations and predictions that count."""
    for each in place.entries(task, "annotations", dict):
        if not place.get(each, "was_cancelled", bool, False):
            is_truth = place.get(each, "ground_truth", bool, False)
            yield (None if is_truth else _annotator(place, each)), _results(place, each)
    for each in place.get(task, "predictions", list, []):
        if type(each) is not int:  # exports may have only the ids of predictions
            place.check(each, dict, "an entry of 'predictions'")
            yield _model(place, each, people), _results(place, each)


def _find_people(path: str) -> frozenset[str]:
    """Return the names of all annotators, which a model must not share."""
    return frozenset(
        _annotator(place, each)
        for place, _, task in _tasks(path)
        for each in place.entries(task, "annotations", dict)
        if not place.get(each, "was_cancelled", bool, False) and not place.get(each, "ground_truth", bool, False)
    )


def _annotator(place: Place, annotation: dict[str, Any]) -> str:
    who = annotation.get("completed_by")
    if isinstance(who, dict):
        who = who.get("email") or who.get("id")
    if who is None:
        place.fail("an annotation has no 'completed_by'.", "Say in it who made the annotation.")
    return str(place.check_id(who, "'completed_by'"))


def _model(place: Place, prediction: dict[str, Any], people: Collection[str] = ()) -> str:
    """Return the name of a model; "model" goes before it if it is that of an annotator."""
    version = prediction.get("model_version")
    name = _MODEL if version in (None, "") else str(place.check_id(version, "'model_version'"))
    return f"model {name}" if name in people else name


def _results(place: Place, annotation: dict[str, Any]) -> list[dict[str, Any]]:
    return place.entries(annotation, "result", dict)


def _kind(place: Place, result: dict[str, Any]) -> str:
    kind: str = place.get(result, "type", str, "")
    value = result.get("value")
    if kind == "labels" and isinstance(value, dict) and ("channel" in value or isinstance(value.get("start"), float)):
        place.fail("the regions are in audio or a time series (labels).", _UNKNOWN_TYPE)
    if kind == "labels" and isinstance(value, dict) and isinstance(value.get("start"), str):
        place.fail("the regions are in HTML (labels with a path as start).", _UNKNOWN_TYPE)
    if kind != "labels" and (kind.endswith("labels") or (isinstance(value, dict) and "labels" in value)):
        place.fail(f"a region has type {shorten(kind)}.", _UNKNOWN_TYPE)
    return kind


# ------------------------------------------------------------------------------------------------------------- spans


def _read_spans(path: str) -> Spans:
    controls = _find_controls(path, whole=False)
    collector = SpanCollector()
    people = _find_people(path)
    n_spans = n_unlabelled = n_moved = 0
    questions: set[str] = set()
    others: set[str] = set()
    documents: dict[Any, int] = {}
    truths: dict[int, list[Span]] = {}
    for place, name, task in _tasks(path):
        text = _text(place, task, controls)
        if name not in documents:
            documents[name] = collector.add_document(name, text)
        document = documents[name]
        for worker, results in _annotations(place, task, people):
            regions = _regions_of(place, results, controls)
            questions |= {place.need(result, "from_name", str) for result in results if _is_answer(place, result)}
            others |= {_kind(place, result) for result in results} - _KNOWN_TYPES
            n_unlabelled += sum(not _labels(place, region) for region in regions)
            located = _locate(place, text, regions)
            n_moved += sum(each.is_moved for each in located)
            spans = _label(place, regions, located)
            n_spans += len(spans)
            if worker is not None:
                scores = [spans[span] for span in spans]
                known = [score for score in scores if score is not None]
                collector.add_reading(document, worker, spans, known if len(known) == len(scores) > 0 else None)
            elif set(truths.setdefault(document, list(spans))) != set(spans):
                place.fail("two annotations are marked as ground truth, and differ.", "Keep one of them.")
    for document, truth in truths.items():
        collector.add_gold(document, truth)
    if questions and not n_spans:
        say_answers(path, _TOOL)
    if others and not n_spans:
        _refuse_types(path, others)
    _warn_of_types(path, others)
    warn_dropped(path, n_unlabelled, "region", "no label")
    if n_moved:
        verb = "was moved to the text that it quotes" if n_moved == 1 else "were moved to the texts that they quote"
        warn(DataWarning(f"{plural(n_moved, 'region')} in {path!r} {verb}, which is not at the offsets given."))
    read = finish(collector, path, _NAME, questions)
    if not len(read.readings) and read.gold is None:
        say_nothing(path, _TOOL)
    return read


def _find_controls(path: str, whole: bool) -> _Controls | None:
    """Return the names in the first tasks that have spans; `whole`: with the tags of all labels.

    The text is the value of the data in which most regions fit, by offsets and by what they quote. Further tasks are
    looked at while several values fit equally well.
    """
    names: tuple[str, str] | None = None
    key: str | None = None
    of_label: dict[str, str] = {}
    tally: Counter[str] = Counter()
    last: tuple[Place, dict[str, Any], dict[str, Any]] | None = None
    for place, _, task in _tasks(path):
        for _, results in _annotations(place, task):
            regions = [region for region in results if _kind(place, region) == "labels"]
            for region in regions:
                from_name, to_name = (place.need(region, key, str) for key in ("from_name", "to_name"))
                names = names or (from_name, to_name)
                for label in _labels(place, region):
                    of_label.setdefault(label, from_name)
                last = place, task, region
            if key is None:
                tally.update(_count_fitting(place, task, regions))
        if last is not None and key is None:
            key = _choose_key(tally, *last[1:])
        if key is not None and not whole:
            break
    if names is None or last is None:
        return None
    return _Controls(*names, key or _fail_key(tally, *last), of_label)


def _texts(task: dict[str, Any]) -> dict[str, str]:
    return {key: value for key, value in task["data"].items() if isinstance(value, str)}


def _count_fitting(place: Place, task: dict[str, Any], regions: list[dict[str, Any]]) -> dict[str, int]:
    """Return for each text of a task how many regions fit."""
    return {key: sum(_align(place, text, regions)[1]) for key, text in _texts(task).items()}


def _choose_key(tally: Counter[str], task: dict[str, Any], region: dict[str, Any]) -> str | None:
    """Return which value of a task's data is the text, None if that is not clear yet."""
    most = max(tally.values(), default=0)
    fitting = [key for key, number in tally.items() if number == most > 0]
    named = [key for key in _named_keys(region) if key in fitting]
    only = fitting if most else list(_texts(task))
    return only[0] if len(only) == 1 else next(iter(named), None)


def _named_keys(region: dict[str, Any]) -> list[str]:
    return [str(region.get("source") or "").removeprefix("$"), str(region.get("to_name"))]


def _fail_key(tally: Counter[str], place: Place, task: dict[str, Any], region: dict[str, Any]) -> str:
    """Return the value of the data that is called as the region says, although nothing fits; else raise an error."""
    texts = _texts(task)
    if not texts:
        place.fail("'data' holds no text.", _UNKNOWN_TYPE)
    named = [key for key in _named_keys(region) if key in texts]
    if named:
        return named[0]
    what = "several of them" if any(tally.values()) else "none of them"
    return place.fail(
        f"it is not clear which value of 'data' is the text: {listing(texts)}. The regions fit {what}.",
        "Export the text that each region quotes, or call the text as 'to_name' of the regions does.",
    )


def _regions_of(place: Place, results: list[dict[str, Any]], controls: _Controls | None) -> list[dict[str, Any]]:
    """Return the regions of an annotation, which must all be in the same text."""
    regions = [result for result in results if _kind(place, result) == "labels"]
    for region in regions:
        place.need(region, "from_name", str)
        to_name = place.need(region, "to_name", str)
        if controls is not None and to_name != controls.to_name:
            place.fail(
                f"regions are in several texts: {shorten(controls.to_name)} and {shorten(to_name)}.",
                "Keep the annotations of one of them.",
            )
    return regions


def _longest(place: Place, texts: dict[str, str]) -> str:
    if not texts:
        place.fail("'data' holds no text.", _UNKNOWN_TYPE)
    return max(texts, key=lambda key: (len(texts[key]), key))


def _text(place: Place, task: dict[str, Any], controls: _Controls | None) -> str:
    data = task["data"]
    if controls is None:
        return str(data[_longest(place, _texts(task))])
    return str(place.need(data, controls.key, str, "in 'data' the text "))


def _labels(place: Place, region: dict[str, Any]) -> list[str]:
    value = place.need(region, "value", dict)
    return place.entries(value, "labels", str)


class _Located(NamedTuple):
    start: int
    end: int
    is_moved: bool  # to where the text is that the region quotes


def _spans(place: Place, text: str, regions: list[dict[str, Any]]) -> dict[Span, float | None]:
    """Return the spans of one annotation, each with its score if there is one."""
    return _label(place, regions, _locate(place, text, regions))


def _label(place: Place, regions: list[dict[str, Any]], located: list[_Located]) -> dict[Span, float | None]:
    found: dict[Span, float | None] = {}
    for (start, end, _), region in zip(located, regions, strict=True):
        score = place.check_score(region.get("score"))
        for label in _labels(place, region):
            found[start, end, label] = score
    return found


def _align(
    place: Place, text: str, regions: list[dict[str, Any]]
) -> tuple[list[tuple[int, ...]], list[bool], list[str | None]]:
    """Return start and end of the regions of one annotation in characters, whether they fit, and what they quote.

    A region fits if it is within the text, which there is what the region quotes, but for line breaks.
    """
    values = [place.need(region, "value", dict) for region in regions]
    given = [tuple(place.need(value, key, int) for key in ("start", "end")) for value in values]
    quoted = [place.get(value, "text", str) for value in values]

    def fits(offsets: Iterable[tuple[int, ...]]) -> list[bool]:
        return [
            0 <= start < end <= len(text) and (quote is None or _same(text[start:end], quote))
            for (start, end), quote in zip(offsets, quoted, strict=True)
        ]

    offsets: list[tuple[int, ...]] = given
    right = fits(given)
    for is_likely, make in ((not text.isascii(), map_utf16), ("\r\n" in text, map_line_breaks)):
        if is_likely and not all(right):
            convert = make(text)
            other: list[tuple[int, ...]] = [(convert(start), convert(end)) for start, end in given]
            if all(fits(other)):
                offsets, right = other, [True] * len(other)
    for i, ((start, end), quote) in enumerate(zip(offsets, quoted, strict=True)):
        if quote is not None and not right[i] and 0 <= start < end <= len(text):  # line breaks may have been changed
            right[i] = drop_whitespace(text[start:end]) == drop_whitespace(quote) != ""
    return offsets, right, quoted


def _locate(place: Place, text: str, regions: list[dict[str, Any]]) -> list[_Located]:
    """Return where the regions of one annotation are; one that does not fit is moved to the text that it quotes."""
    located = []
    for (start, end), is_right, quote in zip(*_align(place, text, regions), strict=True):
        located.append(_Located(start, end, False) if is_right else _search(place, text, start, end, quote))
    return located


def _same(text: str, quote: str) -> bool:
    return text == quote or text.replace("\r\n", "\n") == quote


def _search(place: Place, text: str, start: int, end: int, quote: str | None) -> _Located:
    """Return where a region is whose offsets do not fit the text that it quotes."""
    if quote and text.count(quote) == 1:
        return _Located(text.index(quote), text.index(quote) + len(quote), True)
    place.check_span(text, start, end)
    return place.fail(
        f"a region quotes {shorten(quote)}, but from {start} to {end} the text is {shorten(text[start:end])}.",
        "Check that the annotations belong to this text.",
    )


# ------------------------------------------------------------------------------------------------------------ choices


def _refuse_types(path: str, types: Collection[str]) -> NoReturn:
    """Raise the error for a file that holds only results of types that cannot be read."""
    Place(path, "record", 1).fail(f"found results of type {', '.join(sorted(map(shorten, types)))}.", _UNKNOWN_TYPE)


def _warn_of_types(path: str, types: Collection[str]) -> None:
    """Warn of results of types that cannot be read beside others that can, if there are any."""
    if types:
        warn(DataWarning(f"Results of type {listing(sorted(types))} in {path!r} are not used. {_UNKNOWN_TYPE}"))


def _is_answer(place: Place, result: dict[str, Any]) -> bool:
    """Tell whether a result is a choice about the whole task, not about a region of it."""
    value = result.get("value")
    return place.get(result, "type", str, "") == "choices" and not (isinstance(value, dict) and "start" in value)


def _read(path: str, wanted: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    rows = []
    people = _find_people(path)
    n_spans = 0
    others: set[str] = set()
    for place, name, task in _tasks(path):
        truth: dict[Any, str] = {}
        answers = []
        for worker, results in _annotations(place, task, people):
            given: dict[Any, str] = {}
            for result in results:
                kind = place.get(result, "type", str, "")
                if not _is_answer(place, result):
                    n_spans += kind == "labels"
                    others.add(kind)
                    continue
                key = ("question", place.need(result, "from_name", str))
                choices = place.check_all(
                    place.need(place.need(result, "value", dict), "choices", list), str, "'choices'"
                )
                if len(choices) > 1 or key in given:
                    place.fail(
                        f"several choices are made for {shorten(key[1])}: {shorten(choices)}.",
                        "One label per item can be fused: ask about each choice separately, with one tag per choice.",
                    )
                if choices:
                    given[key] = choices[0]
            if worker is None:
                if truth and truth != given:
                    place.fail("two annotations are marked as ground truth, and differ.", "Keep one of them.")
                truth = given
            elif given:
                answers.append({"item": name, "worker": worker, **given})
        known = next(iter(truth.values())) if len(truth) == 1 else None
        rows += [{**answer, "gold": known} for answer in answers]
    if not rows and n_spans:
        say_spans(path, _TOOL)
    if not rows and others:
        _refuse_types(path, others)
    _warn_of_types(path, others - _KNOWN_TYPES)
    return choose(build_table(path, _TOOL, rows), wanted)


# ------------------------------------------------------------------------------------------------------------ writing


def _write_spans(spans: Spans, path: str) -> None:
    with replace_file(path) as temporary, open_output(str(temporary)) as sink:
        write_array(_updated_tasks(spans), sink)


def _updated_tasks(spans: Spans) -> Iterator[dict[str, Any]]:
    """Yield the tasks of the original file with the spans in place, then tasks of documents that it lacks."""
    readings, gold, left = list_readings(spans), list_gold(spans), index_documents(spans)
    origin = origin_of(spans, _NAME)
    found = _find_controls(origin.path, whole=True) if origin else None
    controls = found or _Controls()
    people = _find_people(origin.path) if origin else frozenset()
    indices, known = dict(left), _find_workers(origin.path, people) if origin else {}
    is_named = origin is not None and len(list_inputs(origin.path)) > 1  # in one file the same text is several tasks
    for place, name, task in _tasks(origin.path) if origin else ():
        index = indices.get(name)
        if index is not None:
            check_unchanged(place, _text(place, task, found), spans.texts[index])
            own = {worker for worker, _ in _entries(place, task, people)}
            chosen = choose_readings(readings[index], own, known[name])
            known[name].update(str(each.worker) for each in chosen)
            _update(place, task, spans.texts[index], chosen, controls, people)
            left.pop(name, None)
        yield {**task, "id": plain(name)} if is_named else task
    check_all_found(origin, left, ())
    for name, index in left.items():
        task = {"id": plain(name), "data": {controls.key: spans.texts[index]}}
        _update(Place("", "record", index + 1), task, spans.texts[index], readings[index], controls)
        if index in gold:
            truth = Reading("gold", gold[index])
            task["annotations"] = [
                *task.get("annotations", []),
                {"ground_truth": True, "result": _regions(name, spans.texts[index], truth, controls)},
            ]
        yield task


def _update(
    place: Place,
    task: dict[str, Any],
    text: str,
    readings: list[Reading],
    controls: _Controls,
    people: Collection[str] = (),
) -> None:
    """Put the spans of the workers into a task. What is there already and has the same spans stays as it is."""
    for reading in readings:
        worker, name = str(reading.worker), task.get("id")
        old = next((each for who, each in _entries(place, task, people) if who == worker), None)
        is_annotation = any(old is each for each in task.get("annotations") or [])
        if old is not None and (is_annotation or _says_same(place, text, old, reading)):
            results = _results(place, old)
            kept = [
                result
                for result in results
                if _kind(place, result) != "labels" or _is_kept(place, text, result, reading)
            ]
            there = set(_spans(place, text, [result for result in kept if _kind(place, result) == "labels"]))
            missing = Reading(worker, [span for span in reading.spans if span not in there])
            old["result"] = _drop_dangling(kept) + _regions(name, text, missing, controls)
        elif reading.confidence is not None:
            predictions = task.get("predictions") or []
            task["predictions"] = [each for each in predictions if each is not old]
            task["predictions"].append(
                {"model_version": worker, "score": reading.score, "result": _regions(name, text, reading, controls)}
            )
        else:
            is_number = worker.isdecimal() and len(worker) < 19 and str(int(worker)) == worker
            who: Any = int(worker) if is_number else {"email": worker}
            added = {"completed_by": who, "result": _regions(name, text, reading, controls)}
            task["annotations"] = [*(task.get("annotations") or []), added]


def _find_workers(path: str, people: Collection[str]) -> dict[Any, set[str]]:
    """Return who annotated each document."""
    found: dict[Any, set[str]] = {}
    for place, name, task in _tasks(path):
        found.setdefault(name, set()).update(worker for worker, _ in _entries(place, task, people))
    return found


def _entries(place: Place, task: dict[str, Any], people: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for each in task.get("annotations") or []:
        if not each.get("was_cancelled") and not each.get("ground_truth"):
            yield _annotator(place, each), each
    for each in task.get("predictions") or []:
        if isinstance(each, dict):
            yield _model(place, each, people), each


def _says_same(place: Place, text: str, old: dict[str, Any], reading: Reading) -> bool:
    """Tell whether a prediction need not change: there is no confidence to add, or it is there already."""
    regions = [result for result in _results(place, old) if _kind(place, result) == "labels"]
    said = dict(zip(reading.spans, reading.scores, strict=True))
    return reading.confidence is None or _spans(place, text, regions) == said


def _is_kept(place: Place, text: str, region: dict[str, Any], reading: Reading) -> bool:
    return set(_spans(place, text, [region])) <= set(reading.spans)


def _drop_dangling(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return results without relations to regions that are gone."""
    ids = [result.get("id") for result in results]
    return [
        each
        for each in results
        if each.get("type") != "relation" or (each.get("from_id") in ids and each.get("to_id") in ids)
    ]


def _regions(name: Any, text: str, reading: Reading, controls: _Controls) -> list[dict[str, Any]]:
    regions = []
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


def _write_labels(verdicts: Verdicts, origin: str, path: str) -> None:
    targets = _find_targets(origin)
    question = verdicts.choose(origin, targets)
    with replace_file(path) as temporary, open_output(str(temporary)) as sink:
        write_array(_labelled_tasks(verdicts, origin, question, targets[question]), sink)


def _find_targets(path: str) -> dict[str, str]:
    """Return the tags of choices, and what each is about."""
    return {
        place.need(result, "from_name", str): place.need(result, "to_name", str)
        for place, _, task in _tasks(path)
        for _, results in _annotations(place, task)
        for result in results
        if _is_answer(place, result)
    }


def _labelled_tasks(verdicts: Verdicts, origin: str, question: str, target: str) -> Iterator[dict[str, Any]]:
    written: set[str] = set()
    for place, name, task in _tasks(origin):
        verdict = verdicts.find(name)
        written.add(str(name))
        if verdict is not None:
            old = place.get(task, "predictions", list, [])
            kept = [each for each in old if not _is_outdated(place, each, question)]
            task["predictions"] = [*kept, _predict(name, verdict, question, target)]
        yield task
    verdicts.check_written(origin, written)


def _is_outdated(place: Place, prediction: Any, question: str) -> bool:
    """Tell whether a prediction is an earlier fused label for the same question."""
    if not isinstance(prediction, dict) or _model(place, prediction) != FUSED:
        return False
    results = _results(place, prediction)
    return bool(results) and all(result.get("from_name") == question for result in results)


def _predict(name: Any, verdict: Verdict, question: str, target: str) -> dict[str, Any]:
    result = {
        "id": _make_id(name, FUSED, question),
        "from_name": question,
        "to_name": target,
        "type": "choices",
        "value": {"choices": [str(verdict.label)]},
    }
    return {"model_version": FUSED, "score": verdict.confidence, "result": [result]}


def _make_id(*key: Any) -> str:
    """Return the id of a region or a choice, the same whenever it is written."""
    return hashlib.blake2b(repr(key).encode(), digest_size=5).hexdigest()


def _recognise(head: bytes, _path: str) -> bool:
    keys = peek_keys(head)
    if {"annotation_id", "annotator", "lead_time"} <= keys.keys():
        return True  # JSON-MIN, for which the reader has an error
    # The first annotations may be longer than what is shown of the file.
    has_data = keys.get("data") == "{" or (b'"result"' in head and b'"from_name"' in head)
    return has_data and "[" in (keys.get("annotations"), keys.get("predictions"))


LABEL_STUDIO = Codec(
    _read,
    recognise=_recognise,
    read_spans=_read_spans,
    write_spans=_write_spans,
    carries=frozenset({"confidence", "gold", "white space"}),
    write_labels=_write_labels,
)
