"""``malloc_info`` has the structure of glibc's: what reads that document strictly reads ours."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytestmark = [
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc_info is glibc's"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
]

SOURCE = """
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    enum { BLOCKS = 20000 };
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(200 + i % 100);
    }
    for (int i = 0; i < BLOCKS; i += 2) {
        free(blocks[i]);
    }
    return malloc_info(0, stdout);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("malloc_info")
    source = folder / "program.c"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-O1", "-fno-builtin", str(source), "-o", str(folder / "program")], check=True)
    return folder / "program"


def document_of(program: Path, preload: str) -> ElementTree.Element:
    environment = {**os.environ, "LD_PRELOAD": preload}
    text = subprocess.run([str(program)], capture_output=True, text=True, check=True, env=environment).stdout
    return ElementTree.fromstring(text)


def shape_of(element: ElementTree.Element) -> list[object]:
    """Elements in their order, with the names of their attributes and the values that are words; sizes vary."""
    if element.tag == "sizes":
        return ["sizes"]
    words = {name: None if value.isdecimal() else value for name, value in element.attrib.items()}
    return [element.tag, words, *map(shape_of, element)]


def test_the_elements_are_those_of_glibc(program: Path, freestone_library: Path) -> None:
    ours, theirs = document_of(program, str(freestone_library)), document_of(program, "")
    assert shape_of(ours) == shape_of(theirs)
    assert ours.attrib == theirs.attrib == {"version": "1"}


def test_every_total_has_a_count_and_a_size(program: Path, freestone_library: Path) -> None:
    document = document_of(program, str(freestone_library))
    totals = document.findall(".//total")
    assert len(totals) == 5
    assert all(set(total.attrib) == {"type", "count", "size"} for total in totals)
    (rest,) = document.findall("./total[@type='rest']")
    assert int(rest.attrib["count"]) >= 9_000
    assert int(rest.attrib["size"]) >= 9_000 * 200
