"""Run all benchmarks, and write docs/measured/benchmark.md (speed and memory) and docs/measured/league.md (quality).

Every time that is compared comes from one run on one machine, so only ratios mean anything.

    python benchmarks/run.py              # everything, about fifty minutes
    python benchmarks/run.py peers scale  # renew only these sections
    python benchmarks/run.py --quick      # small sizes, seconds; what the tests run so that it cannot rot
"""

from __future__ import annotations

import argparse
import os
import platform
import re
from pathlib import Path

import first_use
import independent
import league
import networks
import peers
import scale
import sequences

DOCS = Path(__file__).parent.parent / "docs" / "measured" / "benchmark.md"

PARTS = {
    "independent": independent,
    "peers": peers,
    "scale": scale,
    "sequences": sequences,
    "networks": networks,
    "first_use": first_use,
}
HEADER = """`make bench` wrote these tables on one machine ({machine}).
The figures of a table are from one run, unless the text says otherwise. Times are the best of several.
Only ratios are meaningful on other machines.
"""


def machine() -> str:
    """Return the machine in a few words."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} processors, Python {platform.python_version()}"


def measure(name: str, quick: bool, largest: int) -> str:
    """Return one section of the page, with how busy the machine was when it began."""
    load = os.getloadavg()[0]
    text = scale.report(quick, largest) if name == "scale" else PARTS[name].report(quick)
    return f"{text}\nLoad average of the machine when this section began: {load:.1f}.\n"


def read_sections(page: str) -> dict[str, str]:
    """Return the sections of a page by their titles."""
    parts = re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0].removeprefix("## "): part.rstrip() + "\n" for part in parts}


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} or league; default: all")
    parser.add_argument("--quick", action="store_true", help="small sizes; prints, writes nothing")
    parser.add_argument(
        "--largest",
        type=float,
        default=scale.LARGEST,
        help="the most answers in the section on growth; 1e8 takes ten minutes and 5 GB of disk",
    )
    arguments = parser.parse_args()
    chosen = arguments.parts or [*PARTS, "league"]
    if unknown := [name for name in chosen if name not in PARTS and name != "league"]:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(PARTS)} and league")
    peers.tell_missing()
    sections = read_sections(DOCS.read_text()) if arguments.parts else {}
    for name in PARTS:
        if name in chosen:
            text = measure(name, arguments.quick, int(arguments.largest))
            print(text, flush=True)
            sections |= read_sections(text)
    if not arguments.quick:
        DOCS.write_text(HEADER.format(machine=machine()) + "\n" + "\n".join(sections.values()))
    if "league" in chosen:
        league.renew(arguments.quick)


if __name__ == "__main__":
    main()
