"""gcc makes the same object of a large source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

FUNCTIONS = 600


def large_source() -> str:
    """Some 12,000 lines: structures, switch statements, loops and tables, each a little different."""
    parts = ["#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"]
    for i in range(FUNCTIONS):
        cases = "\n".join(
            f"        case {c}: value = value * {c + i % 7 + 3}u + {c * i % 1009}u; break;" for c in range(8)
        )
        parts.append(
            f"""
struct record_{i} {{ uint32_t key; uint64_t values[{i % 13 + 1}]; char name[{i % 29 + 8}]; }};
static const uint32_t table_{i}[] = {{ {", ".join(str((i * 31 + k * 17) % 65521) for k in range(24))} }};
uint64_t mix_{i}(struct record_{i} *record, size_t count) {{
    uint64_t value = record->key;
    for (size_t n = 0; n < count; n++) {{
        switch ((value + n) % 9) {{
{cases}
        default: value ^= table_{i}[n % 24]; break;
        }}
        record->values[n % {i % 13 + 1}] += value;
    }}
    memset(record->name, (int)(value & 127), sizeof record->name);
    return value;
}}
"""
        )
    return "".join(parts)


def test_gcc_makes_the_same_object(bench: Any, program: Callable[..., str]) -> None:
    gcc = program("gcc")
    source = large_source()

    def work(folder: Path, served: bool) -> Any:
        (folder / "large.c").write_text(source)
        return bench.one([gcc, "-O1", "-c", "large.c", "-o", "large.o"], folder, served=served)

    system, served = bench.both(work, ["cc1", Path(program("as", "binutils")).resolve().name])
    objects = [(run.folder / "large.o").read_bytes() for run in (system, served)]
    assert len(objects[0]) > 200_000
    assert objects[0] == objects[1]
