"""``python -m simulated_tables``: prints the table, or puts it into a page between its marks."""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from made_part import deliver
from simulated_tables import campaign, noise

MAKER = "make simulated-tables"


def main() -> int:
    parser = argparse.ArgumentParser(prog="simulated_tables", description=campaign.__doc__)
    parser.add_argument("--tables", type=int, default=200, help="of every kind of noise and number of rounds")
    parser.add_argument("--rounds", type=int, nargs="+", default=[4, 5, 10], help="how many rounds a table has")
    parser.add_argument(
        "--only", nargs="+", choices=list(noise.KINDS), default=list(noise.KINDS), help="kinds of noise"
    )
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn")
    parser.add_argument("--page", type=Path, help="put the table in there instead")
    given = parser.parse_args()
    asked = [(kind, rounds) for kind in given.only for rounds in given.rounds]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        tallies = [pool.submit(campaign.tally, kind, rounds, given.tables, seed=given.seed) for kind, rounds in asked]
        found = [(kind, rounds, each.result()) for (kind, rounds), each in zip(asked, tallies, strict=True)]
    made = campaign.table(found)
    return deliver(given.page, made, MAKER)


if __name__ == "__main__":
    raise SystemExit(main())
