"""Sections on single items: those to review, those that differ from the vote, and what known labels say of them."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..answers.columns import spell_surrogates
from ..errors import join_names, plural, to_sentence
from ..kernels import ROUNDING
from ..metrics.probabilities import reliability_curve
from ..planning.items import choose_next_items
from ..results.explanations import explain_row
from .charts import Chart, draw_curve
from .document import Column, Part, Section, Table, Text, Widget
from .view import View, find_address

# How many items each list shows, how many of these before they are folded, and workers for each label.
N_UNCERTAIN, N_DIFFERENT, N_FLOWS, N_REVIEW, N_FIRST = 9, 9, 4, 50, 3
MOST_WORKERS_EACH, MOST_LABELS_EACH, MOST_PROBABLE_CLASSES = 6, 6, 3
# Words that are shown on either side of an item.
AROUND = 10
# Labels of at least this confidence are not called uncertain.
SURE_CONFIDENCE = 0.95
# Fewer known labels than this say little about probabilities.
LEAST_KNOWN_SHOWN = 20
# The file that the page downloads. Labels that were known before are in it too, if there are no more than so many.
GOLD_FILE, MOST_KNOWN = "gold.csv", 10_000
# Why labels need not be the most probable classes, by the rule.
BEHIND = {
    "sequence": "the labels of a sequence are chosen together, so that they fit each other",
    "median": "labels are medians, which are the nearest to the truth on average",
}


def repeat_command(command: Sequence[str], *more: str) -> str:
    """A command line with more options.

    >>> repeat_command(["consilience", "fuse", "--", "my answers.csv"], "--gold", "gold.csv")
    "consilience fuse --gold gold.csv -- 'my answers.csv'"
    """
    place = command.index("--") if "--" in command else len(command)  # what follows is no option
    return shlex.join(spell_surrogates(str(part)) for part in (*command[:place], *more, *command[place:]))


def describe_item(view: View, item: int, drawn: bool = False, explained: bool = False) -> dict[str, Any]:
    """An item as a person looks at it, for the templates.

    Beside name, label and confidence: the most `probable` classes; what was `said`, by how many workers, and the names
    of some of them; text, picture and link; the words `around` it, and whether each is the item itself; the classes
    with most votes; whether it was drawn at random; and `why` it has its label, line by line.
    """
    r, labels = view.answers, view.result.labels
    posterior, label = labels.posterior[item], int(labels.codes[item])
    order = np.argsort(-posterior, kind="stable")[:MOST_PROBABLE_CLASSES].tolist()
    shown = [k for k in order if posterior[k] >= 0.005 or k == label]
    shown += [] if label in shown else [label]
    voted = np.flatnonzero(view.vote[item] >= view.vote[item].max() - ROUNDING)

    given = slice(int(r.offsets[item]), int(r.offsets[item + 1]))
    worker, code = r.worker[given], r.label[given]
    who = {each: worker[code == each].tolist() for each in np.unique(code).tolist()}
    said = [(view.labels[k], len(w), [view.workers[m] for m in w[:MOST_WORKERS_EACH]]) for k, w in who.items()]
    said.sort(key=lambda each: -each[1])
    if len(said) > MOST_LABELS_EACH:
        rest = said[MOST_LABELS_EACH - 1 :]
        said[MOST_LABELS_EACH - 1 :] = [(f"{len(rest):,} other labels", sum(n for _, n, _ in rest), [])]

    around = list[tuple[str, bool]]()  # only if all is known
    if r.sequences is not None:
        number = int(np.searchsorted(r.sequences.offsets, item, side="right"))
        start, stop = r.sequences.offsets[number - 1 : number + 1].tolist()
        near = range(max(start, item - AROUND), min(stop, item + AROUND + 1))
        words = [view.show(each) for each in near]
        if all(text and not picture for text, picture, _ in words):
            around = [(text, each == item) for (text, *_), each in zip(words, near, strict=True)]
    text, picture, link = view.show(item)
    is_reported = view.confidence is not None
    return {
        "name": view.name_of(item),
        "address": find_address(view.key_of(item)[0]),
        "label": view.classes[label],
        "confidence": float(posterior[label]) if is_reported else None,
        "probable": [(view.classes[k], float(posterior[k])) for k in shown] if is_reported else [],
        "said": said,
        "text": text,
        "picture": picture,
        "link": link,
        "around": around,
        "vote": ", ".join(view.classes[k] for k in voted[:3].tolist()),
        "drawn": drawn,
        "why": list(explain_row(view.model, view.result, item).list_rows()) if explained else [],
    }


def describe_known(view: View) -> list[Part]:
    """What known labels say of the others: what the answers alone say of the same items, and how that is judged."""
    gold, blind, calibrated = view.result.given.gold, view.blind, view.result.calibrated
    assert gold is not None
    rows, is_reported = np.flatnonzero(view.is_known), view.confidence is not None
    words = [f"{plural(len(rows), 'label')} {'is' if len(rows) == 1 else 'are'} known."]
    if blind is not None:
        truth, codes, confidence = gold.codes[rows], blind.argmax(axis=1), blind.max(axis=1)
        n_differ, drawn = int((codes != truth).sum()), (gold.judging & view.is_answered)[rows]
        differ = f"{n_differ:,} of them {'differ' if n_differ > 1 else 'differs'} from what the answers say."
        words.append(differ if n_differ else "The answers alone say the same.")
        sure = np.flatnonzero((codes != truth) & (confidence >= SURE_CONFIDENCE))
        sure = sure[np.argsort(-confidence[sure], kind="stable")].tolist()
        if is_reported and sure:
            named = join_names(
                f"{view.name_of(int(rows[i]))} (known {view.classes[truth[i]]}, crowd {view.classes[codes[i]]} "
                f"{confidence[i]:.1%})"
                for i in sure
            )
            which = "known label contradicts a label" if len(sure) == 1 else "known labels contradict labels"
            words.append(
                f"{len(sure):,} {which} of which the crowd was at least {SURE_CONFIDENCE:.0%} sure: {named}. "
                "Check this."
            )
        if drawn.sum() >= LEAST_KNOWN_SHOWN:
            right, at_random = (codes == truth)[drawn], "" if drawn.all() else " that were drawn at random"
            share = f"{right.sum():,} of {plural(len(right), 'known item')}{at_random} ({right.mean():.1%})"
            words.append(f"The answers alone are right about {share}.")
    n_gold = 0 if calibrated is None else calibrated.calibration.n_gold
    if (
        calibrated is not None
        and is_reported
        and 0 < n_gold < LEAST_KNOWN_SHOWN
        and calibrated.calibration.power < calibrated.calibration.power_before
    ):
        counts = f"{plural(n_gold, 'known label')} {'counts' if n_gold == 1 else 'count'} as drawn at random"
        words.append(f"Only {counts}. So few say little about the other items, and probabilities are lowered.")
    return [Text(words)]


def draw_by_gold(view: View) -> Chart | None:
    """How often labels of the answers alone are right, by their confidence; None if few labels are known.

    Only labels of items that were drawn at random count.
    """
    gold, blind = view.result.given.gold, view.blind
    if gold is None or blind is None or view.result.model == "MajorityVote":
        return None
    drawn = (gold.judging & view.is_answered)[view.is_known]
    truth, posterior = gold.codes[view.is_known][drawn], blind[drawn]
    if len(truth) < LEAST_KNOWN_SHOWN:
        return None
    right, mean = np.mean(posterior.argmax(axis=1) == truth), posterior.max(axis=1).mean()
    judged = f"{right:.1%} of {plural(len(truth), 'label')} are right"
    alt = f"Without known labels, {judged}, with a mean confidence of {mean:.1%}."
    curve = reliability_curve(truth, posterior, np.arange(posterior.shape[1]), bins=10, adaptive=True)
    title = "Confidence without known labels, and how often it is right"
    return draw_curve(title, alt, curve.confidence, curve.accuracy, curve.n_items)


def describe_differences(view: View) -> list[Part]:
    """Where another class than the fused label has most votes, with the clearest examples."""
    compared, soft, codes = view.result.comparison, view.answers.soft is not None, view.result.labels.codes
    rows, rival = np.flatnonzero(view.differs), "the mean of the probabilities" if soft else "majority vote"
    n_fewer = len(rows)
    # `Comparison.n_differ` has a part of the ties, since majority vote draws lots there.
    n_differ = n_fewer if compared is None else max(compared.n_differ, n_fewer)
    words = f"{plural(n_differ, 'fused label')} {'differs' if n_differ == 1 else 'differ'} from {rival}"
    if not soft and n_fewer < n_differ:
        absent = "" if view.is_voted.all() else ", or there are none"
        words += f", {n_differ - n_fewer:,} of them where votes are tied{absent}"
    test = [] if compared is None else [compared.describe_test()]
    said: list[Part] = [Text([f"{words}."])]
    said += [Section("How this was tested", [Text([to_sentence(each) for each in test])])] if test else []

    voted = view.vote[rows].argmax(axis=1) if n_fewer else np.empty(0, np.int64)
    pairs, counts = np.unique(voted * len(view.classes) + codes[rows], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    flows: list[tuple[str, int]] = []
    for n in order[:N_FLOWS].tolist():
        before, after = divmod(int(pairs[n]), len(view.classes))
        flows.append((f"{view.classes[before]} → {view.classes[after]}", int(counts[n])))
    if len(order) > N_FLOWS:
        flows.append((plural(len(order) - N_FLOWS, "other kind"), int(counts[order[N_FLOWS:]].sum())))
    title = f"Labels that were changed against the {'mean' if soft else 'majority'}"
    heads = [Column("change", f"{'Mean' if soft else 'Vote'} → fused label"), Column("items", "Items", "count")]
    clearest = rows[np.argsort(-view.result.labels.confidence[rows], kind="stable")[:N_DIFFERENT]].tolist()
    examples = Widget("cards", {"items": [describe_item(view, item) for item in clearest], "rival": rival})
    return [
        (said, [Table("changed", title, heads, flows)] if flows else []),
        *([Section("Clearest differences", [examples])] if clearest else []),
    ]


def list_uncertain(view: View) -> list[Part]:
    """The items with the lowest confidence among those with answers; those without if there are no others.

    Nothing if confidences are not told.
    """
    confidence = view.confidence
    if confidence is None:
        return []
    doubtful = ~view.is_known & (confidence < SURE_CONFIDENCE) & (len(view.classes) > 1)
    told = doubtful & view.is_answered
    rows = np.flatnonzero(told if told.any() else doubtful)
    chosen = rows[np.argsort(confidence[rows], kind="stable")[:N_UNCERTAIN]].tolist()
    if not chosen:
        one_class = "There is only one class, so no label is uncertain."
        return [
            Text([one_class if len(view.classes) < 2 else "Every label has a confidence of at least 95%, or is known."])
        ]
    items = [describe_item(view, item, explained=True) for item in chosen]
    n_behind = sum(item["probable"][0][1] > item["confidence"] for item in items)
    why = BEHIND.get(view.result.labels.rule, "")
    behind = f"For {n_behind} of these {len(items)} items, another class is more probable than the fused label: {why}."
    parts: list[Part] = [Text([behind], quiet=True)] if n_behind else []
    parts.append(Widget("cards", {"items": items[:N_FIRST], "rival": ""}))
    if items[N_FIRST:]:
        rest = Widget("cards", {"items": items[N_FIRST:], "rival": ""})
        parts.append(Section(f"{len(items) - N_FIRST} more uncertain items", [rest]))
    return parts


def prepare_review(view: View) -> list[Part]:
    """The items to review, with what a person sees and what is written to gold.csv; nothing if there are none."""
    result, sequences = view.result, view.answers.sequences
    classes, gold = result.names.classes, result.given.gold

    if result.kind.linked or len(classes) < 2:
        return []
    items, at_random, _ = choose_next_items(result, N_REVIEW)
    chosen = list(zip(items.tolist(), at_random.tolist(), strict=True))
    if not chosen:
        return []
    data: dict[str, object] = {
        "columns": ["item"] if sequences is None else list(result.kind.places),
        "items": [[*view.key_of(item), drawn] for item, drawn in chosen],
        "classes": [spell_surrogates(str(name)) for name in classes.tolist()],
    }
    # The same list and classes have the same name in the browser's storage, so that work survives a new report.
    data["id"] = hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]
    known = np.flatnonzero(view.is_known)
    holds_known = len(known) <= MOST_KNOWN
    data["known"] = [
        [*view.key_of(item), int(gold.codes[item]), bool(gold.judging[item])]
        for item in (known.tolist() if holds_known else [])
        if gold is not None
    ]
    # How to fuse again: for the shell, if the command that was given is known, or for Python. Known labels that were in
    # the file of answers are not taken from there if others are given.
    command, python, gives_known = "", "", not holds_known
    if not view.command:
        files = f'"{GOLD_FILE}"' if holds_known else f'["known.csv", "{GOLD_FILE}"]'
        python = f"fused = consilience.fuse({result.kind.argument}, gold={files})"
    else:
        given = any(part.partition("=")[0] == "--gold" for part in view.command)
        again = [] if given or holds_known or not view.source else ["--gold", view.source]
        command = repeat_command(view.command, *again, "--gold", GOLD_FILE)
        gives_known = not holds_known and bool(given or view.source)
    values = {
        "items": [describe_item(view, item, drawn) for item, drawn in chosen],
        "n_random": sum(drawn for _, drawn in chosen),
        "command": command,
        "python": python,
        "n_known": len(known),
        "holds_known": holds_known,
        "gives_known": gives_known,
        "tells": view.confidence is not None,
        "asks": result.given.source_kind != "functions",
    }
    return [Widget("review", values, {"review": data})]
