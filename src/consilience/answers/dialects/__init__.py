"""Forms of tables other than one row per answer under the usual names: results of platforms, wide tables, matrices."""

from .register import DIALECTS as DIALECTS
from .register import LONG as LONG
from .register import list_names as list_names
from .register import translate as translate
