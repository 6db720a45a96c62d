"""Files of earlier releases, read as if they were of this one. What a schema changed is said here, and nowhere else."""

from __future__ import annotations

from typing import Any

from ..models.register import MODELS, model_class
from ..specs import Fault
from .kept_answers import are_kept

Members = dict[str, str | None]  # the member of an archive that holds each array

# Arrays of schema 1, and what they are called since.
_RENAMED_IN_2 = {
    "pooled": "crowd",
    "structure strength": "structure coupling",
    "sequential_confusion": "workers sequential_confusion_",
    "sequential_counts": "workers _sequential_counts",
}
# Arrays that are there since schema 4, and are not known of earlier fits.
_NEW_IN_4 = ("worker_intervals", "prior_interval", "expected_interval")


def upgrade(header: dict[str, Any], arrays: Members) -> tuple[dict[str, Any], Members]:
    """Return header and names of arrays of any schema as the newest one has them."""
    if header["schema"] == 1:
        renamed = {_RENAMED_IN_2.get(name, name): member for name, member in arrays.items()}
        if len(renamed) < len(arrays):
            raise Fault("it holds arrays of two schemas")
        header, arrays = _upgrade_header_1(header), renamed
    if header["schema"] < 3 and _is_calibrated(header.get("model")):
        if "uncalibrated_posterior" in arrays:
            raise Fault("it holds arrays of two schemas")
        header = _upgrade_header_2(header)
        arrays = arrays | ({"uncalibrated_posterior": arrays["posterior"]} if "posterior" in arrays else {})
    if header["schema"] < 4:
        header = _forget_notes(_complete_field(_upgrade_header_3(header)))
        arrays = _add_intervals(header.get("model"), arrays)
    if header["schema"] < 5 and _is_calibrated(header.get("model")):
        header = _upgrade_header_4(header)
    if header["schema"] < 6:
        if any(map(are_kept, arrays)):
            raise Fault("it holds arrays of two schemas")
        header = header | {"answers": None}  # answers and known labels were not in the file
    if isinstance(header.get("parameters"), dict):
        gone = ("acceleration", "method")
        header = header | {"parameters": {n: value for n, value in header["parameters"].items() if n not in gone}}
    if header["schema"] < 8:
        header = header | {"totals": None}  # answers were in memory
    if header["schema"] < 9:
        if any(name.startswith("past ") for name in arrays):
            raise Fault("it holds arrays of two schemas")
        header = _upgrade_header_8(header)
    return header, arrays


def _upgrade_header_3(header: dict[str, Any]) -> dict[str, Any]:
    """Nothing was known of copies, and labels were as they were written."""
    scalars = header.get("scalars")
    if not isinstance(scalars, dict):
        raise Fault("the header is not one of schema 3")
    return header | {"scalars": {"_normalised": False, "copies_count_once_": False, "_copies": []} | scalars}


def _upgrade_header_4(header: dict[str, Any]) -> dict[str, Any]:
    """There were no features."""
    parameters, scalars = header.get("parameters"), header.get("scalars")
    calibration = scalars.get("calibration_") if isinstance(scalars, dict) else None
    if not isinstance(parameters, dict) or not isinstance(scalars, dict) or not isinstance(calibration, list):
        raise Fault("the header is not one of schema 4")
    added = {"feature_findings_": None, "feature_names_": None, "calibration_": [*calibration, 0]}
    return header | {"parameters": {"classifier": None} | parameters, "scalars": scalars | added}


def _upgrade_header_8(header: dict[str, Any]) -> dict[str, Any]:
    """What updates and batches need was not kept."""
    name, scalars = header.get("model"), header.get("scalars")
    if not isinstance(name, str) or name not in MODELS or not isinstance(scalars, dict):
        return header
    added = {"_powers": [], "_n_changes": 0, "_has_priors": False, "_n_batches": 0}
    return header | {"scalars": {each: added[each] for each in added if each in model_class(name)._scalars} | scalars}


def _forget_notes(header: dict[str, Any]) -> dict[str, Any]:
    """Comparison and check of the graph were made in another way: they are not there any more."""
    notes = header.get("notes")
    return header | {"notes": dict.fromkeys(notes)} if isinstance(notes, dict) else header


def _complete_field(header: dict[str, Any]) -> dict[str, Any]:
    """In a field, all items listened to their neighbours."""
    parameters = header.get("parameters")
    if header.get("model") != "markov-field" or not isinstance(parameters, dict):
        return header
    return header | {"parameters": {"listeners": "all"} | parameters}


def _add_intervals(model: object, arrays: Members) -> Members:
    """There were no intervals."""
    if not isinstance(model, str) or model not in MODELS:
        return arrays
    if any(name in arrays for name in _NEW_IN_4):
        raise Fault("it holds arrays of two schemas")
    held = {name.strip("_") for name in model_class(model)._arrays}
    return arrays | dict.fromkeys(name for name in _NEW_IN_4 if name in held)


def _is_calibrated(name: object) -> bool:
    """Tell whether a model has calibrated probabilities since schema 3."""
    return isinstance(name, str) and name in MODELS and "calibration" in model_class(name)._defaults()


def _upgrade_header_2(header: dict[str, Any]) -> dict[str, Any]:
    """Probabilities were those of the fit, smoothing was given, and fields did not judge couplings."""
    parameters, scalars = header.get("parameters"), header.get("scalars")
    if not isinstance(parameters, dict) or not isinstance(scalars, dict):
        raise Fault("the header is not one of schema 2")
    found = {"smoothing_": _read_pair(parameters.get("smoothing")), "calibration_": [1.0, 0, 0, True]}
    if "coupling_scores_" in model_class(header["model"])._scalars:
        found["coupling_scores_"] = []
    return header | {"parameters": {"calibration": "none"} | parameters, "scalars": found | scalars}


def _read_pair(smoothing: Any) -> Any:
    """Return the pair that a parameter stands for; None for an array."""
    pair = smoothing.get("array") if isinstance(smoothing, dict) else [smoothing, smoothing]
    return pair if isinstance(pair, list) and not any(isinstance(entry, list) for entry in pair) else None


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
