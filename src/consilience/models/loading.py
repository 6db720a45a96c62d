"""Loading models from files."""

from __future__ import annotations

import os

from ..arguments import to_path
from ..errors import StoreError, listing, shorten
from ..results.saving import SavedFusion, compare_names, open_saved
from .fitted import FittedModel
from .register import MODELS, model_class


def load(path: str | os.PathLike[str]) -> FittedModel:
    """Read a model that `Model.save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Model
        Fitted, with its results and parameters, except for a `callback`, a model given as `start`, and a `classifier`.
        The default classifier is there, and so are the answers (`responses_`), unless they were left out.

    Examples
    --------
    >>> import consilience as cs, tempfile, pathlib
    >>> answers = {"item": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "x", "y"]}
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "votes.model"
    >>> file = cs.MajorityVote().fit(answers).save(file)
    >>> cs.load(file).labels_
    array(['x', 'y'], dtype=object)
    """
    with open_saved(to_path("path", "load", path)) as saved:
        model = make_model(saved, os.fspath(path))
        recipe = model.recipe()
        recipe.check()
        return model.adopt(saved.read(recipe))


def make_model(saved: SavedFusion, path: str) -> FittedModel:
    """Return the model that a file names, with its parameters and before it is fitted."""
    names = {entry.class_name: name for name, entry in MODELS.items()}
    if saved.model not in names:  # a file can name nothing else
        raise StoreError(
            f"{path} holds a model {shorten(saved.model)}, which this release does not know.",
            f"It knows {listing(names)}.",
        )
    kind = model_class(names[saved.model])
    compare_names("parameter", kind.defaults(), saved.parameters)
    return kind(**saved.parameters)
