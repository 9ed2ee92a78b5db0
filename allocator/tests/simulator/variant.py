#!/usr/bin/env python3
"""Makes the simulator's copy of the library's sources: ``variant.py SOURCES FOLDER TABLE...``.

Limits and seams of the tables are worked into the copy, and so are all faults, each beside the right text:
``if (PLANTED(n)) { the fault } else { the library }``, with n counted from 1 in the order of the tables. The faults'
names and what they break go to ``faults.c``. A file that would not change is left alone, so that only what changed
is built again.

``variant.py --names TABLE...`` prints the faults that the simulator has to find, one a line.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any


class VariantError(Exception):
    """A text that does not stand in its source exactly once."""


def replaced(source: str, entry: dict[str, Any], new: str) -> str:
    """The source with the entry's old text replaced."""
    if source.count(entry["old"]) != 1:
        raise VariantError(f"{entry['file']}: {source.count(entry['old'])} times instead of once: {entry['old']}")
    return source.replace(entry["old"], new)


def planted(entry: dict[str, Any], number: int) -> str:
    """Both texts, of which one is chosen as the simulator runs; an expression where the entry says so."""
    if "raw" in entry:
        return str(entry["raw"]).replace("@", str(number))
    if entry.get("expression", False):
        return f"(PLANTED({number}) ? ({entry['new']}) : ({entry['old']}))"
    return f"if (PLANTED({number})) {{ {entry['new']} }} else {{ {entry['old']} }}"


def is_found(fault: dict[str, Any]) -> bool:
    """Whether the simulator has to find it. What as is not optional then: else any failure would do."""
    return "survives" not in fault


def fault_row(fault: dict[str, Any]) -> str:
    """Its row of the C table."""
    kinds = ", ".join(f'"{kind}"' for kind in (fault["found_as"] if is_found(fault) else []))
    return f'    {{"{fault["name"]}", "{fault["breaks"]}", {{{kinds}}}, {fault.get("seed", 1)}}},\n'


def fault_table(faults: list[dict[str, Any]]) -> str:
    """The C source that names the faults."""
    return (
        '#include "faults.h"\n\n#include <stddef.h>\n\n'
        f"const struct fault faults[] = {{\n{''.join(map(fault_row, faults))}    {{NULL, NULL, {{NULL}}, 0}},\n}};\n"
    )


def write(path: Path, text: str) -> None:
    """Writes what differs."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def read(paths: list[Path]) -> dict[str, list[dict[str, Any]]]:
    """Limits, seams and faults of all tables, in their order."""
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in paths]
    return {kind: [entry for table in tables for entry in table.get(kind, [])] for kind in ("limit", "seam", "fault")}


def main(arguments: list[str]) -> int:
    """Makes the copy, or prints names."""
    if arguments[0] == "--names":
        faults = read([Path(name) for name in arguments[1:]])["fault"]
        print("\n".join(fault["name"] for fault in faults if is_found(fault)))
        return 0
    sources, folder, *names = (Path(argument) for argument in arguments)
    table = read(names)
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(sources.glob("*.[ch]"))}
    try:
        for entry in table["limit"]:
            texts[entry["file"]] = replaced(texts[entry["file"]], entry, entry["new"])
        for number, entry in enumerate(table["fault"], start=1):
            texts[entry["file"]] = replaced(texts[entry["file"]], entry, planted(entry, number))
    except VariantError as error:
        print(f"{' '.join(name.name for name in names)}: {error}", file=sys.stderr)
        return 1
    for entry in table["seam"]:
        texts[entry["file"]] += entry["text"]
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write(folder / name, text)
    write(folder / "faults.c", fault_table(table["fault"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
