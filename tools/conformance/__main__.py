"""``python -m conformance hazards|misuses|foreign``: the cases of one suite, under allocators."""

from __future__ import annotations

import importlib
import sys

SUITES = {"hazards": "Hazards", "misuses": "Misuses", "foreign": "Foreign"}


def main(words: list[str]) -> int:
    """Run the suite that the first word names."""
    if not words or words[0] not in SUITES:
        print(f"usage: python -m conformance {'|'.join(SUITES)} [OPTION...]", file=sys.stderr)
        return 2
    from conformance.suite import run

    suite = getattr(importlib.import_module(f"conformance.{words[0]}"), SUITES[words[0]])
    return run(suite(), words[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
