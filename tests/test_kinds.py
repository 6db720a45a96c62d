"""The register of tasks: one class and one line bring a new kind of what users have."""

import sys
import types
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import consilience as cs
from consilience import kinds, models
from consilience.answers.columns import to_column
from consilience.answers.tables import build_frame
from consilience.documents.document import Document, Fact, Facts
from consilience.documents.html import to_page
from consilience.documents.page import describe_page
from consilience.documents.view import View
from consilience.errors import InputError
from consilience.kinds.base import Kind
from consilience.models.base import Standalone


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
    def to_answers(cls, brought):
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

    def summarise(self, answers, fused, is_sure):
        return {}, f"The people have spoken about {len(fused.labels.codes)} questions."

    def from_labels(self, fused, labels):
        return dict(zip(self.questions, fused.labels.classes[fused.labels.codes].tolist(), strict=True))


@pytest.fixture
def poll(monkeypatch):
    monkeypatch.setitem(kinds.KINDS, "Poll", PollKind)
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
    assert result.kind.from_labels(result, fused.to_frame())["Is 5 lucky?"] == fused.labels_[5]


def test_a_task_is_kept_by_fits_and_files(poll, tmp_path):
    fused = cs.DawidSkene().fit(poll)
    loaded = cs.load(fused.save(tmp_path / "model"))
    assert isinstance(loaded.result_.kind, PollKind)
    assert loaded.result_.kind.show(np.array([7])) == ["Is 7 lucky?"]
    with pytest.raises(InputError, match=r"A poll cannot go on\. Poll again"):
        loaded.update({"item": [1], "worker": ["w9"], "label": ["no"]})
    assert (loaded.predict(poll) == fused.predict(poll)).all()


# ------------------------------------------------------------------------------------------- results that are no labels


@dataclass(frozen=True, eq=False)
class Means:
    """The mean of the numbers given to each item."""

    shapes: ClassVar = {"items": "N", "value": "N: finite"}
    items: NDArray[Any]
    value: NDArray[np.float64]
    backend: str


class Mean(Standalone[Means]):
    """The mean of numbers."""

    result_type = Means

    def __init__(self, *, seed: int = 0):
        self.seed = seed

    def fit(self, answers, *, gold=None):
        numbers = answers.labels.astype(float)[answers.label]
        total = np.bincount(answers.item_of_answer(), numbers, answers.n_items)
        return self._adopt(Means(answers.items, total / np.diff(answers.offsets), answers.backend))

    def to_frame(self):
        return build_frame({"item": to_column(self.result_.items), "value": to_column(self.result_.value)}, "pyarrow")

    def overview(self, title=""):
        return Document(title, "", [Facts([Fact("items", "Items", len(self.result_.items))])])

    page = overview

    def _describe(self):
        return f"{len(self.result_.items)} items"


def test_an_estimator_with_a_result_of_its_own_is_fused_saved_and_reported(tmp_path, monkeypatch):
    module = types.ModuleType("consilience.models.mean")
    module.Mean = Mean
    monkeypatch.setitem(sys.modules, "consilience.models.mean", module)
    monkeypatch.setitem(models.MODELS, "mean", "models.mean.Mean")
    table = {"item": [1, 1, 2], "worker": ["a", "b", "a"], "label": [1, 2, 3]}
    fused = cs.fuse(table, model="mean")
    assert fused.to_frame()["value"].to_pylist() == [1.5, 3.0]
    loaded = cs.load(fused.save(tmp_path / "mean.model"))
    assert loaded.to_frame() == fused.to_frame()
    assert "2 items" in repr(loaded)
    assert "Items" in loaded._repr_html_()
    assert "Items" in cs.report(loaded, tmp_path / "mean.html").read_text()
    with pytest.raises(cs.errors.ParameterError, match="Mean takes no features"):
        cs.fuse(table, model="mean", features=np.ones((2, 1)))
    with pytest.raises(cs.errors.ParameterError, match="Mean fuses one question"):
        cs.fuse(table | {"other": [1, 2, 3]}, model="mean", label=["label", "other"])
