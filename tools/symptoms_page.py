#!/usr/bin/env python3
"""Writes docs/explanation/symptoms.md from the texts that ``freestone doctor --explain`` shows.

Usage: ``.venv/bin/python tools/symptoms_page.py [--check]``

``--check`` writes nothing; its exit status is 1 where the page is not up to date.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from freestone.doctor import explanation

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "symptoms.md"


def main() -> int:
    """Write the page, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description="Write docs/explanation/symptoms.md from the doctor's explanations.")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 where it is not up to date")
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if parser.parse_args().check:
        if written != explanation.page():
            print(f"{PAGE} is not up to date: .venv/bin/python tools/symptoms_page.py renews it", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(explanation.page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
