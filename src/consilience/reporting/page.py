"""The page: a template with everything in it, filled by jinja2. No other file imports that.

Whatever comes from the data is escaped by jinja2, or is JSON whose signs ``<``, ``>`` and ``&`` are escaped. The page
may load nothing, and runs and styles nothing but what is in it: its content security policy has the hashes of the one
script and the one style sheet.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from ..errors import MissingDependencyError

FOLDER = Path(__file__).parent


def render(**context: Any) -> str:
    """Return the page.

    Parameters
    ----------
    **context
        What the template shows; `data` is for the script.
    """
    jinja2 = import_jinja()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=to_percent, sure=to_confidence, whole=to_whole)
    style, script = (read(name) for name in ("report.css", "report.js"))
    parts = {
        "policy": (
            f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        ),
        "style": _mark_safe(style),
        "script": _mark_safe(script),
        "data": _mark_safe(to_json(context.pop("data"))),
        "draw": lambda chart: _mark_safe(chart.svg),
    }
    page: str = environment.get_template("report.html.jinja").render(**context, **parts)
    return page


def read(name: str) -> str:
    """Return a file of this folder."""
    return (FOLDER / name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """Return what a content security policy calls a text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def to_json(data: Any) -> str:
    r"""Return data as JSON that can stand in a script element.

    >>> to_json({"a": "</script>"})
    '{"a":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def to_percent(share: float | None, digits: int = 0) -> str:
    """Return a share in percent; nothing for one that is not known.

    >>> to_percent(0.123), to_percent(None)
    ('12%', '')
    """
    return "" if share is None else f"{share:.{digits}%}"


def to_confidence(share: float) -> str:
    """Return a probability in percent, without rounding it to certainty.

    >>> to_confidence(0.93), to_confidence(0.998), to_confidence(1.0)
    ('93%', '>99%', '100%')
    """
    return ">99%" if 0.995 <= share < 1 else f"{share:.0%}"


def to_whole(number: int) -> str:
    """Return a whole number.

    >>> to_whole(1200)
    '1,200'
    """
    return f"{number:,}"


def _mark_safe(text: str) -> Any:
    from markupsafe import Markup  # comes with jinja2

    return Markup(text)


def import_jinja() -> Any:
    """Return jinja2, or raise the error that it is not installed."""
    try:
        import jinja2
    except ImportError as error:
        raise MissingDependencyError(
            "Reports need jinja2, which is not installed.", "Install it: pip install 'consilience[report]'"
        ) from error
    return jinja2
