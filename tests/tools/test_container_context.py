"""What an image with libfreestone is built from."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

import container_context as context

NEW, OLD = "freestone-1.0.0-py3-none-manylinux_2_34_x86_64.whl", "freestone-1.0.0-py3-none-manylinux_2_5_x86_64.whl"
MUSL = "freestone-1.0.0-py3-none-musllinux_1_2_x86_64.whl"


def dist_of(folder: Path, *names: str) -> Path:
    for name in names:
        with zipfile.ZipFile(folder / name, "w") as wheel:
            wheel.writestr(context.IN_WHEEL, name)
    return folder


def test_the_library_for_the_oldest_glibc_is_taken_and_the_one_for_musl(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert context.main(["--dist", str(dist_of(tmp_path, NEW, OLD, MUSL)), "--out", str(out)]) == 0
    assert {file.name for file in out.iterdir()} == {"Dockerfile", "libfreestone.so", "libfreestone-musl.so"}
    assert (out / "libfreestone.so").read_text(encoding="utf-8") == OLD
    assert (out / "libfreestone-musl.so").read_text(encoding="utf-8") == MUSL


@pytest.mark.parametrize(
    ("names", "said"),
    [((), "no manylinux and no musllinux wheel"), ((NEW,), "no musllinux wheel"), ((MUSL,), "no many")],
)
def test_what_is_missing_is_one_line(
    names: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert context.main(["--dist", str(dist_of(tmp_path, *names)), "--out", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.endswith("make wheel\n")
    assert error.count("\n") == 1


def test_every_file_that_the_image_takes_is_laid_out() -> None:
    (line,) = [line for line in context.CONTAINERFILE.read_text(encoding="utf-8").splitlines() if line[:5] == "COPY "]
    assert set(line.split()[1:-1]) == set(context.LIBRARIES.values())
