"""Run the fuzzers: `python -m fuzz --cases 1000 --seed 7`, or `--minutes 30`."""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from fuzz.harness import SURFACES, run_cases


def main() -> int:
    """Run the surfaces in turn; return 1 if anything happened that must not."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("surfaces", nargs="*", metavar="SURFACE", help=f"of {', '.join(SURFACES)}; all by default")
    parser.add_argument("--cases", type=int, help="of each surface; 1,000 by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, help="share so much time among the surfaces")
    parser.add_argument("--only", type=int, help="run this case alone")
    options = parser.parse_args()
    surfaces = options.surfaces or list(SURFACES)
    if unknown := set(surfaces) - SURFACES.keys():
        parser.error(f"there is no surface {', '.join(sorted(unknown))}")
    failed = False
    for surface in surfaces:
        until = np.inf if options.minutes is None else time.monotonic() + 60 * options.minutes / len(surfaces)
        most = options.cases or (1000 if options.minutes is None else sys.maxsize)
        cases = range(most) if options.only is None else range(options.only, options.only + 1)
        tally = run_cases(surface, cases, options.seed, until=until)
        print(tally, *tally.failures, sep="\n", flush=True)
        failed |= bool(tally.failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
