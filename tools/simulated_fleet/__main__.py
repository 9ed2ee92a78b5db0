"""``python -m simulated_fleet``: prints what reports of many machines cost, or puts it into a page."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from made_part import deliver
from simulated_fleet import cost, fleet

MAKER = "make simulated-fleet"


def main() -> int:
    parser = argparse.ArgumentParser(prog="simulated_fleet", description=fleet.__doc__)
    parser.add_argument("--machines", type=int, nargs="+", default=[10, 100, 1000], help="how many")
    parser.add_argument("--workloads", type=int, default=1, help="of the suite that they have measured")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn")
    parser.add_argument("--results", type=Path, help="keep the folders here. Default: they are removed")
    parser.add_argument("--page", type=Path, help="put the table in there instead")
    given = parser.parse_args()
    costs = []
    with tempfile.TemporaryDirectory(prefix="freestone-fleet-") as scratch:
        for count in given.machines:
            folder = fleet.write(given.results or Path(scratch), count, given.seed, given.workloads)
            costs.append(cost.of(folder, count))
            print(f"{count} machines: {costs[-1]}", file=sys.stderr)
    made = cost.table(costs)
    return deliver(given.page, made, MAKER)


if __name__ == "__main__":
    raise SystemExit(main())
