"""Run all benchmarks, and write docs/benchmark.md (speed and memory) and docs/league.md (quality).

Every time that is compared comes from one run on one machine, so only ratios mean anything.

    python benchmarks/run.py            # everything, about twenty minutes
    python benchmarks/run.py --quick    # small sizes, seconds; what the tests run so that it cannot rot
"""

from __future__ import annotations

import argparse
import os
import platform
from pathlib import Path

import convergence
import first_use
import independent
import league
import networks
import sequences

DOCS = Path(__file__).parent.parent / "docs" / "benchmark.md"

HEADER = """# Speed and memory

`make bench` wrote this page in one run on one machine ({machine}). Times are the best of several. Only the ratios are
meaningful on other machines.
"""


def machine() -> str:
    """Return the machine in a few words."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} processors, Python {platform.python_version()}"


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes; prints, writes nothing")
    quick = parser.parse_args().quick
    reports = [part.report(quick) for part in (independent, sequences, networks, convergence, first_use)]
    text = HEADER.format(machine=machine()) + "\n" + "\n".join(reports)
    print(text)
    if not quick:
        DOCS.write_text(text)
    league.renew(quick)


if __name__ == "__main__":
    main()
