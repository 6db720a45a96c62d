"""Scores of Langfuse, as its SDK serialises what the API gives: pip install langfuse, then run this here.

The export of the table of scores needs a server. langfuse.csv has the same scores with the columns of the API.
"""

import csv
import datetime as dt
import json
from pathlib import Path

from langfuse.api import BooleanScore, CategoricalScore, NumericScore

WHEN = dt.datetime(2026, 9, 21, 14, 13, 20, tzinfo=dt.UTC)
SAID = {
    ("tone", "EVAL", None): ["kind", "kind", "curt", "kind"],
    ("tone", "ANNOTATION", "vera"): ["kind", "curt", "curt"],
    ("grounded-oak", "EVAL", None): [True, False, True, True],
    ("grounded-yew", "API", None): [True, True, True, False],
}


def make():
    for (name, source, author), values in SAID.items():
        for i, value in enumerate(values):
            more = {"id": f"{name}-{source}-{i}", "trace_id": f"t{i}", "name": name, "source": source}
            more["environment"] = "default"
            more |= {"timestamp": WHEN, "created_at": WHEN, "updated_at": WHEN, "author_user_id": author}
            if isinstance(value, bool):
                text = str(value)
                yield BooleanScore(**more, value=float(value), string_value=text, data_type="BOOLEAN"), "BOOLEAN"
            else:
                yield CategoricalScore(**more, value=0, string_value=value, data_type="CATEGORICAL"), "CATEGORICAL"
    yield NumericScore(**more | {"id": "n", "name": "length"}, value=4.5, data_type="NUMERIC"), "NUMERIC"


if __name__ == "__main__":
    rows = [{**json.loads(score.json()), "dataType": kind} for score, kind in make()]
    page = {"data": rows, "meta": {"page": 1, "limit": 50, "totalItems": len(rows), "totalPages": 1}}
    Path("langfuse.json").write_text(json.dumps(page, indent=1))
    with open("langfuse.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list({key: None for row in rows for key in row}), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
