"""Traces of MLflow with assessments, as Trace.to_json writes them: pip install mlflow-skinny, then run this here."""

from pathlib import Path

from mlflow.entities import (
    AssessmentSource,
    Expectation,
    Feedback,
    Trace,
    TraceData,
    TraceInfo,
    TraceLocation,
    TraceState,
)
from mlflow.entities.assessment_error import AssessmentError

FACTS = ["What is the capital of France?", "What is 2 + 3?", "Which planet is red?", "What do bees make?"]
SAID = ["Paris", "6", "Mars", "wax"]
HUMAN = AssessmentSource("HUMAN", "vera")
JUDGES = {"oak": ["yes", "no", "yes", None], "yew": ["yes", "yes", "yes", "no"]}


def make(i):
    given = [Feedback("correct", ("yes", "no", "yes", "no")[i], source=HUMAN)] if i < 3 else []
    for judge, said in JUDGES.items():
        error = AssessmentError("JUDGE_ERROR", "the judge sent no JSON") if said[i] is None else None
        given.append(Feedback("correct", said[i], error=error, source=AssessmentSource("LLM_JUDGE", judge)))
    given.append(Feedback("short", len(SAID[i]) < 5, source=AssessmentSource("CODE", "len")))
    given.append(Expectation("expected_response", "Paris", source=HUMAN))
    for number, each in enumerate(given):
        each.create_time_ms = each.last_update_time_ms = 1_790_000_000_000 + number
        each.assessment_id = f"a-{i}{number}"
    info = TraceInfo(
        trace_id=f"tr-{i}",
        trace_location=TraceLocation.from_experiment_id("0"),
        request_time=1_790_000_000_000 + 1000 * i,
        state=TraceState.OK,
        request_preview=FACTS[i],
        response_preview=SAID[i],
        assessments=given,
        trace_metadata={"mlflow.modelId": ("ash", "elm")[i % 2]},
    )
    return Trace(info=info, data=TraceData(spans=[]))


if __name__ == "__main__":
    Path("mlflow.jsonl").write_text("".join(make(i).to_json() + "\n" for i in range(len(FACTS))))
