"""The two lines that bring libfreestone into an image, done as an image builder does them, in a bare Debian root."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from debian_root import DebianRoot

import container_context
import freestone
from freestone.allocators import elf

pytestmark = pytest.mark.timeout(1800)  # the first time a Debian system is fetched

SERVES = f"freestone: {freestone.__version__} serves malloc"


@pytest.fixture(scope="module")
def context(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make container` lays out."""
    out = tmp_path_factory.mktemp("container") / "context"
    container_context.lay_out(repository / "dist", out)
    return out


def image_of(context: Path, folder: Path) -> Path:
    """The image's files, by the lines of its Dockerfile."""
    lines = (context / container_context.LAID_OUT).read_text(encoding="utf-8").splitlines()
    for line in lines:
        if line.startswith("COPY "):
            *names, place = line.split()[1:]
            (folder / place.lstrip("/")).mkdir(parents=True)
            for name in names:
                shutil.copy(context / name, folder / place.lstrip("/"))
    return folder


def lines_of(page: Path) -> list[str]:
    """The lines of a page that take something from the image, with those that follow them."""
    text = re.sub(r"^#  ?", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = re.search(r"^ *(COPY --from=freestone \S+ \S+)\n *(ENV LD_PRELOAD=\S+)$", text, re.MULTILINE)
    assert found, f"{page} does not have the two lines"
    return list(found.groups())


def done(lines: list[str], image: Path, root: Path) -> str:
    """Does the lines in a root; gives what is set for each program that is started there."""
    copy, env = (shlex.split(line) for line in lines)
    source, place = copy[2], copy[3]
    shutil.copy(image / source.lstrip("/"), root / place.lstrip("/"))
    return env[1]


@pytest.mark.parametrize("page", ["packaging/container/Containerfile", "docs/guide/containers.md"])
def test_two_lines_and_the_library_serves(
    page: str, repository: Path, context: Path, tmp_path: Path, bare_root: DebianRoot
) -> None:
    setting = done(lines_of(repository / page), image_of(context, tmp_path), bare_root.folder)
    served = bare_root.run("env", setting, "FREESTONE_OPTIONS=identify=1", "perl", "-e", "print 6 * 7")
    assert (served.returncode, served.stdout, served.stderr.splitlines()) == (0, "42", [SERVES])


def test_each_library_of_the_image_is_for_its_libc(context: Path, tmp_path: Path) -> None:
    image = image_of(context, tmp_path) / "usr/lib"
    assert elf.inspect(image / "libfreestone.so").libc == "glibc"
    assert elf.inspect(image / "libfreestone-musl.so").libc == "musl"


def test_an_image_builder_takes_the_same_lines(repository: Path, context: Path, tmp_path: Path) -> None:
    """Nothing is pulled, and nothing run: the other image is empty."""
    if shutil.which("buildah") is None or os.geteuid() != 0:
        pytest.skip("buildah is missing, or this is not root: no image is built")
    storage = [f"--root={tmp_path / 'storage'}", f"--runroot={tmp_path / 'run'}", "--storage-driver=vfs"]
    build = ["buildah", *storage, "bud", "--isolation=chroot", "--quiet"]
    subprocess.run([*build, "--tag", "freestone", str(context)], check=True, capture_output=True)
    other = tmp_path / "other"
    other.mkdir()
    lines = lines_of(repository / "docs/guide/containers.md")
    (other / "Containerfile").write_text("\n".join(["FROM scratch", *lines, ""]), encoding="utf-8")
    subprocess.run([*build, "--pull=never", "--tag", "other", str(other)], check=True, capture_output=True)
    archive = tmp_path / "other.tar"
    push = ["buildah", *storage, "push", "--quiet", "other", f"oci-archive:{archive}"]
    subprocess.run(push, check=True, capture_output=True)
    assert archive.stat().st_size > (context / "libfreestone.so").stat().st_size // 10
    told = subprocess.run(["buildah", *storage, "inspect", "--type=image", "other"], check=True, capture_output=True)
    assert b"LD_PRELOAD=/usr/lib/libfreestone.so" in told.stdout
