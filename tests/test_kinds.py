"""The register of tasks: one class and one line bring a new kind of what users have."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import consilience as cs
from consilience import kinds
from consilience.documents.html import to_page
from consilience.documents.page import describe_page
from consilience.documents.view import View
from consilience.errors import InputError
from consilience.kinds.base import Kind


@dataclass(frozen=True)
class Poll:
    """Questions that were put to several people, and perhaps what is known to be right."""

    answers: dict[str, dict[str, str]]  # by question and person
    known: dict[str, str]


@dataclass(frozen=True, eq=False)
class PollKind(Kind[Poll]):
    """The items are questions."""

    shapes: ClassVar = {"questions": "*: texts"}
    questions: list[str]

    name = "poll"
    brought = Poll
    title = "answers to a poll"
    item = "question"
    argument = "poll"
    results = "verdicts"
    no_update = ("A poll cannot go on.", "Poll again.")

    @classmethod
    def pose(cls, brought):
        rows = [(n, who, said) for n, by in enumerate(brought.answers.values()) for who, said in by.items()]
        item, worker, label = zip(*rows, strict=True)
        return cls(list(brought.answers)), cs.Answers.from_frame({"item": item, "worker": worker, "label": label})

    @classmethod
    def describe(cls, brought):
        return f"a poll of {len(brought.answers)} questions"

    @classmethod
    def take_known(cls, brought, gold, open_known):
        known = open_known(gold, brought)
        return brought, {n: known[text] for n, text in enumerate(brought.answers) if text in known}

    def choose_known(self, brought, answers):
        return self.take_known(brought, brought.known, lambda given, _: given)[1] or None

    def show(self, items):
        return [self.questions[item] for item in items.tolist()]

    def count(self, fused, is_sure):
        return f"The people have spoken about {len(fused.labels.codes)} questions."

    def collect(self, fused, labels):
        return dict(zip(self.questions, fused.labels.classes[fused.labels.codes].tolist(), strict=True))


@pytest.fixture
def poll(monkeypatch):
    monkeypatch.setitem(kinds.KINDS, "Poll", [PollKind])
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 120)
    answers = {
        f"Is {n} lucky?": {f"w{m}": ["no", "yes"][truth[n] ^ (rng.random() < 0.1 + 0.05 * m)] for m in range(5)}
        for n in range(120)
    }
    return Poll(answers, {f"Is {n} lucky?": "yes" for n in range(3)})


def test_a_task_is_read_fused_shown_and_given_back_by_one_line_in_the_register(poll):
    fused = cs.fuse(poll)
    assert fused.labels_[:3].tolist() == ["yes"] * 3  # by what is known
    assert cs.fuse(poll, gold={"Is 3 lucky?": "no"}).result_.given.gold.codes[:4].tolist() == [-1, -1, -1, 0]
    page = to_page(describe_page(View(fused), "poll"))
    assert "The people have spoken about 120 questions." in page
    assert "labels of questions" in page
    assert "120 questions" in page
    assert "lucky?" in page
    result = fused.result_
    assert result.task.collect(result, fused.to_frame())["Is 5 lucky?"] == fused.labels_[5]


def test_a_task_is_kept_by_fits_and_files(poll, tmp_path):
    fused = cs.DawidSkene().fit(poll)
    loaded = cs.load(fused.save(tmp_path / "model"))
    assert isinstance(loaded.result_.task, PollKind)
    assert loaded.result_.task.show(np.array([7])) == ["Is 7 lucky?"]
    with pytest.raises(InputError, match=r"A poll cannot go on\. Poll again"):
        loaded.update({"item": [1], "worker": ["w9"], "label": ["no"]})
    assert (loaded.predict(poll) == fused.predict(poll)).all()


def test_a_task_that_is_not_registered_is_not_read(tmp_path):
    with pytest.raises(InputError):
        cs.fuse(Poll({}, {}))
