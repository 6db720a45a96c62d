"""Samples of lm-evaluation-harness with models that need no network.

pip install lm-eval, then python make_lm_eval.py in this folder. It writes lm-eval/<model>/samples_<task>_<date>.jsonl.
"""

import json
from pathlib import Path

import lm_eval
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

FACTS = [("The capital of France is", "Paris"), ("2 + 3 =", "5"), ("The red planet is", "Mars"), ("Bees make", "honey")]
SYSTEMS = {
    "ash": ["Paris", "It is 5.", "Mars", "honey"],
    "elm": ["Paris", "6", "the planet Mars", "wax"],
}
TASK = {
    "task": "facts",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "facts.jsonl"}},
    "test_split": "test",
    "output_type": "generate_until",
    "doc_to_text": "{{question}}",
    "doc_to_target": "{{answer}}",
    "generation_kwargs": {"until": ["\n"]},
    "metric_list": [
        {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True},
        {"metric": "chrf", "higher_is_better": True},
    ],
    "filter_list": [
        {"name": "strict", "filter": [{"function": "take_first"}]},
        {
            "name": "last-word",
            "filter": [{"function": "regex", "regex_pattern": "(\\w+)\\.?$"}, {"function": "take_first"}],
        },
    ],
}


class Fixed(LM):
    def __init__(self, answers):
        super().__init__()
        self.answers = dict(zip([question for question, _ in FACTS], answers, strict=True))

    def generate_until(self, requests, disable_tqdm=False):
        return [self.answers[each.args[0]] for each in requests]

    loglikelihood = loglikelihood_rolling = None


if __name__ == "__main__":
    Path("facts.jsonl").write_text("".join(json.dumps({"question": q, "answer": a}) + "\n" for q, a in FACTS))
    for name, answers in SYSTEMS.items():
        tracker = EvaluationTracker(output_path="lm-eval")
        tracker.general_config_tracker.model_name_sanitized = name
        found = lm_eval.simple_evaluate(Fixed(answers), tasks=[TASK], task_manager=TaskManager(), bootstrap_iters=0)
        tracker.date_id = "2026-11-19T00-00-00.000000"
        for task, samples in found["samples"].items():
            tracker.save_results_samples(task_name=task, samples=samples)
    Path("facts.jsonl").unlink()
