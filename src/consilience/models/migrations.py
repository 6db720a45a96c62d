"""Files of earlier releases, read as if they were of this one. What a schema changed is said here, and nowhere else."""

from __future__ import annotations

from typing import Any

from ..specs import Fault
from .register import MODELS

# Arrays of schema 1, and what they are called since.
_RENAMED_IN_2 = {
    "pooled": "crowd",
    "structure strength": "structure coupling",
    "sequential_confusion": "workers sequential_confusion_",
    "sequential_counts": "workers _sequential_counts",
}


def upgrade(header: dict[str, Any], arrays: dict[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return header and names of arrays of any schema as the newest one has them."""
    if header["schema"] == 1:
        renamed = {_RENAMED_IN_2.get(name, name): member for name, member in arrays.items()}
        if len(renamed) < len(arrays):
            raise Fault("it holds arrays of two schemas")
        return _upgrade_header_1(header), renamed
    return header, arrays


def _upgrade_header_1(header: dict[str, Any]) -> dict[str, Any]:
    """Models are named as on the command line, settings are parameters, and there are more notes than one."""
    if not {"class", "settings", "comparison"} <= header.keys():
        raise Fault("the header is not one of schema 1")
    new = {name: value for name, value in header.items() if name not in ("class", "settings", "comparison")}
    names = {entry.class_name: name for name, entry in MODELS.items()}
    known = isinstance(header["class"], str) and header["class"] in names
    new["model"] = names[header["class"]] if known else header["class"]
    new["parameters"] = header["settings"]
    new["notes"] = {} if header["comparison"] is None else {"comparison_": header["comparison"]}
    if isinstance(header["settings"], dict) and isinstance(header.get("scalars"), dict):
        new["scalars"] = header["scalars"] | {"_workers_fitted": header["settings"].get("workers", "confusion")}
    return new
