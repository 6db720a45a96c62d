"""What users hand in as answers, as `Responses`."""

from __future__ import annotations

import os
from typing import Any

from scipy.sparse import issparse

from ..answers.graph import Graph
from ..answers.responses import Responses
from ..errors import ParameterError, listing
from ..formats.answers import read_source
from ..formats.reading import open_path
from ..formats.sources import Opened, open_source
from ..storage.answers import StoredResponses
from ..tasks.masks import Masks
from ..tasks.spans import Spans


def open_answers(source: Any, **columns: Any) -> Opened:
    """Return answers in any form as `Responses`, `Spans` or `Masks`: as they are, or read from a table or a path.

    A column of known labels beside the answers is not read, unless it is asked for with ``gold=None``.
    """
    if isinstance(source, StoredResponses):
        raise ParameterError(
            "Answers on disk are only for fit and fuse, and here they must be in memory.",
            "Read them with read_responses.",
        )
    if not isinstance(source, (Responses, Spans, Masks)):
        read = open_source if isinstance(source, (str, os.PathLike)) else read_source
        return read(source, **{"gold": False, **columns})
    if columns:
        raise ParameterError(
            f"Columns ({listing(columns)}) cannot be named for {type(source).__name__}: they are read already."
        )
    return source


def as_responses(source: Any, **columns: Any) -> Responses:
    """Return answers in any form as `Responses`, those of spans and masks too; see `open_answers`."""
    opened = open_answers(source, **columns)
    return opened if isinstance(opened, Responses) else opened.to_responses()


def as_graph(graph: Any, responses: Responses) -> Graph:
    """Return a graph over these items from whatever describes one."""
    if isinstance(graph, Graph):
        return graph
    if issparse(graph):
        return Graph.from_scipy(graph, items=responses.items)
    if isinstance(graph, list) and all(isinstance(edge, tuple) and len(edge) == 2 for edge in graph):
        return Graph.from_edges([edge[0] for edge in graph], [edge[1] for edge in graph], items=responses.items)
    if hasattr(graph, "nodes") and callable(getattr(graph, "edges", None)):
        return Graph.from_networkx(graph)
    return Graph.from_frame(open_path(graph), items=responses.items)
