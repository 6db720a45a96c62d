"""Real crowds, read from a folder of yours: `$CONSILIENCE_DATA`. The data are not part of the package.

`CATALOGUE` says what there is and where it comes from; `load` reads one set into answers, gold, graph and features.
"""

from __future__ import annotations

from .catalogue import CATALOGUE, Entry
from .loading import Dataset, data_folder, find_folder, is_present, load

__all__ = ["load", "is_present", "find_folder", "data_folder", "Dataset", "CATALOGUE", "Entry"]
