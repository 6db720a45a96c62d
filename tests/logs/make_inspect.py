"""Inspect AI logs with its mock model: pip install inspect-ai, then python make_inspect.py in this folder."""

import gzip
import shutil
from pathlib import Path
from types import SimpleNamespace

import tiktoken
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import Score, accuracy, includes, match, mean, model_graded_qa, multi_scorer, scorer
from inspect_ai.solver import generate

# The mock model counts tokens by a table that would be fetched from the network.
tiktoken.get_encoding = lambda _: SimpleNamespace(encode=lambda text, **_: text.split())

QUESTIONS = [
    ("What is the capital of France?", "Paris"),
    ("What is 2 + 3?", "5"),
    ("Which planet is red?", "Mars"),
    ("What do bees make?", "honey"),
    ("How many days has a week?", "7"),
    ("What colour is snow?", "white"),
]
SYSTEMS = {
    "ash": ["Paris", "5", "Mars.", "honey", "7", "white"],
    "elm": ["Paris", "6", "It is Mars", "wax", "eight", "I cannot say."],
}
# What the graders say: one forgets the form of the verdict, one is often wrong.
GRADERS = {
    "oak": ["GRADE: C", "GRADE: C", "GRADE: C", "GRADE: I", "GRADE: I", "No verdict."],
    "yew": ["GRADE: C", "GRADE: I", "GRADE: C", "GRADE: C", "GRADE: I", "GRADE: I"],
}


def mock(name, texts, epochs=1):
    outputs = [ModelOutput.from_content(f"mockllm/{name}", text) for text in texts * epochs]
    return get_model(f"mockllm/{name}", custom_outputs=outputs, memoize=False)


@scorer(metrics=[mean()])
def length():
    async def score(state, target):
        return Score(value=len(state.output.completion) / 10)

    return score


@scorer(metrics={"*": [accuracy()]})
def rubric():
    async def score(state, target):
        text = state.output.completion
        if text == "eight":
            raise RuntimeError("the rubric is broken")
        return Score(value={"polite": "C" if text.startswith("I") else "I", "short": "C" if len(text) < 8 else "I"})

    return score


def graders(epochs=1):
    said = {name: texts[-2:] * epochs if epochs > 1 else texts for name, texts in GRADERS.items()}
    return [model_graded_qa(model=mock(name, texts)) for name, texts in said.items()]


def run(name, system, scorers, format="eval", epochs=1, n=6):
    samples = [Sample(id=i, input=q, target=t) for i, (q, t) in enumerate(QUESTIONS[-n:], 1)]
    shutil.rmtree("made", ignore_errors=True)
    (log,) = eval(
        Task(dataset=samples, solver=generate(), scorer=scorers, name="facts"),
        model=mock(system, SYSTEMS[system][-n:], epochs),
        log_dir="made",
        log_format=format,
        max_samples=1,
        max_connections=1,
        display="none",
        epochs=epochs,
        fail_on_error=False,
    )
    made = next(Path("made").iterdir())
    if name.endswith(".gz"):
        Path(name).write_bytes(gzip.compress(made.read_bytes(), mtime=0))
    else:
        shutil.move(made, name)
    print(name, log.status)


if __name__ == "__main__":
    for system in SYSTEMS:
        run(f"inspect-{system}.eval", system, [match(), includes(), *graders()])
    run("inspect-collect.json.gz", "ash", multi_scorer(graders(2), "collect"), "json", epochs=2, n=2)
    run("inspect-mixed.json", "elm", [match(), length(), rubric()], "json", n=3)
    shutil.rmtree("made")
