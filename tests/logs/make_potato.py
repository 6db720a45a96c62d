"""States of Potato's annotators and its JSONL export: pip install potato-annotation, then python make_potato.py here.

The server needs a browser. Its own classes write the states and the export, with values as its pages send them.
"""

import json
import shutil
from pathlib import Path

from potato.export.base import ExportContext
from potato.export.tabular_exporter import JSONLExporter
from potato.item_state_management import Label, SpanAnnotation
from potato.user_state_management import InMemoryUserState

SAID = {
    "ann": [("good", ["food"], "4", "0.5"), ("bad", ["food", "staff"], "2", "0.25"), ("good", [], "5", None)],
    "bob": [("good", ["food"], "5", "0.75"), ("bad", ["staff"], "1", "0.1"), None],
    "cem": [("bad", ["food"], "3", "0.5"), ("bad", ["food", "staff"], "2", "0.2"), ("good", ["staff"], "4", "1")],
}

if __name__ == "__main__":
    rows = []
    for user, said in SAID.items():
        state = InMemoryUserState(user, max_assignments=3)
        for item, answers in enumerate(said):
            if answers is None:
                continue
            tone, topics, stars, share = answers
            values = {("tone", each): each == tone for each in ("good", "bad")}
            values |= {("topics", each): each in topics for each in ("food", "staff")}
            values |= {("stars", stars): stars, ("why", "text_box"): ""}
            values |= {} if share is None else {("share", "slider"): share}
            held = state.instance_id_to_label_to_value[f"review-{item}"]
            for (schema, name), value in values.items():
                held[Label(schema, name)] = value
            if item == 1:
                span = SpanAnnotation("marks", "rude", "rude", 4, 9)
                state.instance_id_to_span_to_value[f"review-{item}"][span] = "true"
            labels = {}
            for (schema, name), value in values.items():
                labels.setdefault(schema, {})[name] = value
            rows.append({"instance_id": f"review-{item}", "user_id": user, "labels": labels, "spans": {}, "links": {}})
        folder = Path("potato", user)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "user_state.json").write_text(json.dumps(state.to_json(), indent=1))
    schemas = [{"name": "tone", "annotation_type": "radio"}, {"name": "topics", "annotation_type": "multiselect"}]
    context = ExportContext(config={}, annotations=rows, items={}, schemas=schemas, output_dir=".")
    JSONLExporter().export(context, "made")
    shutil.move(next(Path("made").glob("*.jsonl")), "potato.jsonl")
    shutil.rmtree("made")
