"""The process that draws: reads figures and pictures from standard input, and writes what vl-convert makes of them.

`converter` starts this file as a program of its own, because vl-convert brings a JavaScript engine, which ends the
whole process where it cannot go on: where its address space is limited, and at some characters. No other file imports
vl-convert, and this one imports nothing of the package, which would take longer than a drawing.

Each line of the input is a JSON object: {"figure": specification in Vega-Lite} for a picture as SVG, or {"svg": text,
"scale": number} for the same as PNG in base64. Each line of the output is a JSON object with "text" or "error".
"""

from __future__ import annotations

import base64
import json
import os
import sys
from contextlib import suppress
from typing import Any

# With this the engine gets ready, which takes longer than ten pictures.
WARM_UP = {"data": {"values": []}, "mark": "point"}


def main(folder: str) -> None:
    """Answer all requests. `folder` holds vl-convert; this program has no other path to look for packages."""
    leave_no_core()
    # What libraries print must not be taken for answers.
    with os.fdopen(os.dup(1), "w", encoding="ascii") as answers:
        os.dup2(2, 1)
        sys.path.append(folder)
        import vl_convert

        vl_convert.vegalite_to_svg(WARM_UP)
        for line in sys.stdin.buffer:
            answers.write(json.dumps(answer(vl_convert, json.loads(line))) + "\n")
            answers.flush()


def answer(converter: Any, request: dict[str, Any]) -> dict[str, str]:
    """Return what was asked for, or what went wrong."""
    try:
        if "figure" in request:
            return {"text": converter.vegalite_to_svg(request["figure"])}
        return {"text": base64.b64encode(converter.svg_to_png(request["svg"], scale=request["scale"])).decode()}
    except Exception as error:  # whatever it is, it is told
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def leave_no_core() -> None:
    """Let an abort leave no file of the memory behind."""
    with suppress(ImportError, OSError, ValueError):  # only Unix has it
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt, BrokenPipeError):
        main(sys.argv[1])
