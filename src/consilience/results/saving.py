"""Saving by declaration (to come)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .fusion import Fusion


def save_fusion(fusion: Fusion, parameters: Mapping[str, object], path: str, *, answers: bool, texts: bool) -> Path:
    """Write a result to one file."""
    raise NotImplementedError
