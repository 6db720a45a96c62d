"""A test run of DeepEval with metrics that need no network: pip install deepeval, then python make_deepeval.py here."""

import os
import shutil
from pathlib import Path

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_RESULTS_FOLDER": "made"}

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, DisplayConfig, ErrorConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase

FACTS = [("What is the capital of France?", "Paris"), ("What is 2 + 3?", "5"), ("Which planet is red?", "Mars")]
SAID = ["It is Paris.", "6", "Mars, as far as I can see"]


class Judge(BaseMetric):
    def __init__(self, name, model, verdict):
        self.name, self.evaluation_model, self.verdict, self.threshold = name, model, verdict, 0.5
        self.async_mode = False

    @property
    def __name__(self):
        return self.name

    def measure(self, case, *_, **__):
        self.score = self.verdict(case)
        if self.score is None:
            raise ValueError("the judge sent no JSON")
        self.reason = "as it seems"
        self.success = self.score >= self.threshold
        return self.score

    async def a_measure(self, case, *_, **__):
        return self.measure(case)

    def is_successful(self):
        return self.success


if __name__ == "__main__":
    cases = [
        LLMTestCase(input=question, actual_output=said, expected_output=answer, name=f"fact {i}")
        for i, ((question, answer), said) in enumerate(zip(FACTS, SAID, strict=True))
    ]
    metrics = [
        Judge("Contains", None, lambda case: float(case.expected_output in case.actual_output)),
        Judge("Sure", "oak", lambda case: None if "6" in case.actual_output else 0.9),
        Judge("Sure", "yew", lambda case: 0.2 if "as far" in case.actual_output else 0.7),
    ]
    evaluate(
        cases,
        metrics,
        async_config=AsyncConfig(run_async=False),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        error_config=ErrorConfig(ignore_errors=True),
    )
    shutil.move(next(Path("made").glob("test_run*.json")), "deepeval.json")
    shutil.rmtree("made")
    shutil.rmtree(".deepeval", ignore_errors=True)
