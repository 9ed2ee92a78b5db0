#!/usr/bin/env python3
"""Makes the simulator's copy of the library's sources: ``variant.py SOURCES VARIANTS FOLDER``.

Limits and seams of the table are worked into the copy, and so are all faults, each beside the right text:
``if (PLANTED(n)) { the fault } else { the library }``, with n counted from 1 in the order of the table. The faults'
names and what they break go to ``faults.c``. A file that would not change is left alone, so that only what changed
is built again.
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


def fault_row(fault: dict[str, Any]) -> str:
    """Its row of the C table. What it has to be found as is not optional: else any failure would do."""
    kinds = ", ".join(f'"{kind}"' for kind in fault["found_as"])
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


def main(arguments: list[str]) -> int:
    """Makes the copy."""
    sources, variants, folder = (Path(argument) for argument in arguments)
    table = tomllib.loads(variants.read_text(encoding="utf-8"))
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(sources.glob("*.[ch]"))}
    try:
        for entry in table["limit"]:
            texts[entry["file"]] = replaced(texts[entry["file"]], entry, entry["new"])
        for number, entry in enumerate(table.get("fault", []), start=1):
            texts[entry["file"]] = replaced(texts[entry["file"]], entry, planted(entry, number))
    except VariantError as error:
        print(f"variants.toml: {error}", file=sys.stderr)
        return 1
    for entry in table["seam"]:
        texts[entry["file"]] += entry["text"]
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write(folder / name, text)
    write(folder / "faults.c", fault_table(table.get("fault", [])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
