"""Engines: where blocks live and who works on them. An engine knows nothing of models."""

from .base import Engine, resolve_engine
from .dask import Dask
from .local import Threads

__all__ = ["Dask", "Engine", "Threads", "resolve_engine"]
