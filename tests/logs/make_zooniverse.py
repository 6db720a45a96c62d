"""A Zooniverse export of our own, laid out as those of Panoptes: python make_zooniverse.py in this folder.

Panoptes cannot be installed here. Columns and cells are those of the exports in the tests of zooniverse's own
aggregation-for-caesar.
"""

import csv
import json
from random import Random

COLUMNS = [
    *("classification_id", "user_name", "user_id", "user_ip", "workflow_id", "workflow_name", "workflow_version"),
    *("created_at", "gold_standard", "expert", "metadata", "annotations", "subject_data", "subject_ids"),
]
ANIMALS = ("AGOUTI", "DEER", "NOTHINGHERE")


def main(path="zooniverse.csv", n_subjects=12, seed=1):
    random = Random(seed)
    rows = []
    for subject in range(101, 101 + n_subjects):
        truth = ANIMALS[subject % 3]
        for volunteer in random.sample(range(6), 4) + ["expert"] * (subject % 6 == 0):
            right = volunteer == "expert" or random.random() < (0.4, 0.9, 0.9, 0.8, 0.9, 0.7)[volunteer]
            seen = truth if right else random.choice(ANIMALS)
            is_known = volunteer in (0, 1, 2, "expert")
            address = f"{volunteer!s:0>20}" if not is_known else f"{7:0>20}"
            name = f"vera-{volunteer}" if is_known else f"not-logged-in-{address}"
            both = [seen, "DEER"] if seen == "AGOUTI" and subject % 5 == 0 else [seen]
            choices = [{"choice": each, "answers": {"HOWMANY": "1"}, "filters": {}} for each in both]
            light = None if volunteer == 1 and subject == 103 else ["dusk"] if subject % 2 else []
            menu = {"select_label": "Season", "option": True, "value": "a1", "label": ("dry", "wet")[subject % 2]}
            share = f"{0.1 * (subject % 7) + 0.01 * random.randrange(9):.2f}"
            combined = [{"task": "T3", "task_label": "Light", "value": light}, {"task": "T4", "value": [menu]}]
            mark = {"x": 1.5, "y": 2.5, "tool": 0, "frame": 0, "details": []}
            annotations = [
                {"task": "T0", "task_label": "Is there an animal?", "value": "No" if seen == "NOTHINGHERE" else "Yes"},
                {"task": "T1", "task_label": "Which ones?", "value": choices},
                {"task": "T2", "value": combined},
                {"task": "T5", "value": share, "taskType": "slider"},
                {"task": "T6", "task_label": "Mark it", "value": [mark]},
            ]
            metadata = {"source": "api", "session": f"5e55{volunteer}", "started_at": "2026-02-23T16:16:35.085Z"}
            if volunteer == 5:
                metadata.pop("session")
            data = {str(subject): {"retired": None, "Filename": f"{subject}.jpg", "#site": "north"}}
            cells = [len(rows) + 5000, name, 70 + len(name) if is_known else "", address, 10, "Animals", "3.14"]
            cells += [
                f"2026-02-23 16:{subject - 100:02d}:{len(rows) % 60:02d} UTC",
                "true" * (volunteer == "expert"),
                "",
            ]
            rows.append([*cells, *map(json.dumps, (metadata, annotations, data)), subject])
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
