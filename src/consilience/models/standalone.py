"""Estimators whose result is not one label per item, such as a ranking."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..arguments import to_path
from ..inference.estimator import Fitted, Found, describe_call

if TYPE_CHECKING:
    from ..documents.charts import Chart
    from ..documents.document import Document
    from ..results.findings import Finding
    from ..results.saving import SavedModel


class Standalone(Fitted[Found]):
    """An estimator with a result of its own: parameters, `fit`, and a frozen dataclass as its result.

    It shares saving, documents and the command line with the models of labels, and nothing else. A subclass has a
    constructor, `fit`, which ends in `_adopt`, `overview`, `page`, and the attributes below. It is found by its line
    in `models/register.py`.

    Attributes
    ----------
    result_type : type
        The dataclass. Its `shapes` say what saved arrays must look like, see `consilience.results.shapes`; its method
        `check_saved`, if it has one, raises a `ValueError` unless its fields go together. It has a field `backend`, the
        frame library of tables.
    charts : dict
        What draws each chart of a result, by name; the first one is the default.
    """

    result_type: ClassVar[Any]
    charts: ClassVar[Mapping[str, Callable[[Any], Chart | None]]] = {}
    findings_: list[Finding]

    def _adopt(self, found: Found) -> Self:
        """Take a result as that of this model; return the model itself."""
        self._result = found
        return self

    @abstractmethod
    def fit(self, answers: Any, *, gold: Any = None) -> Self:
        """Learn from what users bring, and from what is known of it."""

    @abstractmethod
    def overview(self, title: str = "") -> Document:
        """What terminals, notebooks and JSON show."""

    @abstractmethod
    def page(self, title: str = "") -> Document:
        """The report."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to one file, without pickle; `consilience.load` reads it.

        Parameters
        ----------
        path : str or path
            The file.
        """
        from ..results.saving import write_parts

        parameters = {name: None if name == "callback" else value for name, value in self.get_params().items()}
        return write_parts(to_path("path", "save", path), type(self).__name__, parameters, self.result_)

    def _restore(self, saved: SavedModel) -> Self:
        """Take the result that `save` wrote, after a look at whether it can be one; return the model itself."""
        self._check()
        found = saved.read_part(self.result_type, saved.header["fusion"], "")
        if hasattr(found, "check_saved"):
            found.check_saved()
        saved.check_all_was_read()
        return self._adopt(found)

    def _repr_html_(self) -> str:
        from ..documents.document import Document
        from ..documents.notebook import to_cells

        call = describe_call(self)
        return to_cells(self.overview(call) if self._result is not None else Document(call, "Not fitted yet.", []))
