"""What is in the packages of dist: read from invented ones, and written as CycloneDX wants it."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import bill_of_materials as tool
import freestone

METADATA = """Metadata-Version: 2.4
Name: freestone
Version: 9.9.9
Requires-Dist: rich>=13
Requires-Dist: jinja2>=3; extra == "figures"
Requires-Dist: vl-convert-python>=1; extra == "figures"
Requires-Dist: pytest>=8; extra == "test"
Provides-Extra: figures
Provides-Extra: test
"""
OF_OTHER = "Metadata-Version: 2.1\nName: Other_One\nVersion: 2.0\nLicense: MIT\n"
CRATE_MANIFEST = Path(__file__).resolve().parents[2] / "packaging" / "crate" / "Cargo.toml"
LOCK = """version = 3
[[package]]
name = "freestone"
version = "9.9.9"
[[package]]
name = "cc"
version = "1.11.3"
source = "registry+https://github.com/rust-lang/crates.io-index"
[[package]]
name = "shlex"
version = "2.0.1"
source = "registry+https://github.com/rust-lang/crates.io-index"
"""
OF_RUST: list[dict[str, Any]] = [
    {
        "name": "ahash",
        "version": "0.8.12",
        "purl": "pkg:cargo/ahash@0.8.12",
        "licenses": [{"expression": "MIT"}],
        "type": "library",
    },
    {
        "name": "odd",
        "version": "1.0.0",
        "purl": "pkg:cargo/odd@1.0.0",
        "licenses": [{"license": {"name": "Own"}}],
        "type": "library",
    },
    {"name": "tested-with", "version": "1.0.0", "purl": "pkg:cargo/tested-with@1.0.0", "scope": "excluded"},
]
STATIC_C = "int main(void) { return 0; }\n"


@pytest.fixture(scope="module")
def static_program(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A program that holds its C library."""
    folder = tmp_path_factory.mktemp("static")
    (folder / "main.c").write_text(STATIC_C, encoding="utf-8")
    subprocess.run(["cc", "-static", "-o", str(folder / "main"), str(folder / "main.c")], check=True)
    return (folder / "main").read_bytes()


def tar(file: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(file, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


@pytest.fixture
def folder(tmp_path: Path, static_program: bytes) -> Path:
    """A dist with one package of each kind."""
    made = tmp_path / "dist"
    made.mkdir()
    with zipfile.ZipFile(made / "freestone-9.9.9-py3-none-manylinux_2_31_x86_64.whl", "w") as wheel:
        wheel.writestr("freestone-9.9.9.dist-info/METADATA", METADATA)
        wheel.writestr("freestone/_native/libfreestone.so", b"\x7fELF of no use")
        wheel.writestr("freestone/_native/freestone-launch", static_program)
    manifest = b'[package]\nname = "freestone"\n[build-dependencies]\ncc = "1"\n'
    packed = {"Cargo.toml": manifest, "Cargo.lock": LOCK.encode(), "README.md": b""}
    tar(made / "freestone-9.9.9.crate", {f"freestone-9.9.9/{name}": content for name, content in packed.items()})
    tar(
        made / "freestone-9.9.9.tar.gz",
        {"freestone-9.9.9/PKG-INFO": METADATA.encode(), "freestone-9.9.9/allocator/src/allocate.c": b""},
    )
    root = tmp_path / "deb"
    site = root / "usr/lib/freestone/site-packages/Other_One-2.0.dist-info"
    site.mkdir(parents=True)
    (site / "METADATA").write_text(OF_OTHER, encoding="utf-8")
    (site / "sboms").mkdir()
    (site / "sboms" / "other-one.cyclonedx.json").write_text(json.dumps({"components": OF_RUST}), encoding="utf-8")
    (root / "DEBIAN").mkdir()
    fields = "Package: freestone\nVersion: 9.9.9\nArchitecture: all\nMaintainer: A <a@b.org>\nDescription: it\n"
    (root / "DEBIAN" / "control").write_text(fields + "Depends: libc6 (>= 2.31), python3 | pypy3\n", encoding="utf-8")
    if shutil.which("dpkg-deb") is None:
        pytest.skip("dpkg-deb is missing: no Debian package can be looked into")
    pack = ["dpkg-deb", "--root-owner-group", "--build", str(root), str(made / "freestone_9.9.9_all.deb")]
    subprocess.run(pack, check=True, capture_output=True)
    (made / "SHA256SUMS").write_text("of no matter\n", encoding="utf-8")
    return made


WHEEL = "freestone-9.9.9-py3-none-manylinux_2_31_x86_64.whl"


def licence(entry: dict[str, Any]) -> str | None:
    said = entry.get("licenses", [{}])[0]
    return said.get("expression") or said.get("license", {}).get("id") or said.get("license", {}).get("name")


def test_the_bill_names_each_package_and_what_is_in_it(folder: Path) -> None:
    assert tool.main(["--dist", str(folder)]) == 0
    bill = json.loads((folder / f"freestone-{freestone.__version__}.cdx.json").read_text(encoding="utf-8"))
    entries = {each["name"]: each for each in bill["components"]}
    files = [file for file in folder.iterdir() if tool.is_package(file)]
    assert len(files) == 4
    for file in files:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        assert entries[file.name]["hashes"] == [{"alg": "SHA-256", "content": digest}]
    inside = {file.name: {each["name"]: each for each in entries[file.name]["components"]} for file in files}
    assert set(inside[WHEEL]) == {"libfreestone", "glibc", "libgcc"}
    assert licence(inside[WHEEL]["libgcc"]) == "GPL-3.0-or-later WITH GCC-exception-3.1"
    assert "libfreestone" in inside["freestone-9.9.9.tar.gz"]
    crate = inside["freestone-9.9.9.crate"]
    assert {name: (each["version"], licence(each)) for name, each in crate.items()} == {
        "cc": ("1.11.3", "MIT OR Apache-2.0"),
        "shlex": ("2.0.1", "MIT OR Apache-2.0"),  # which cc asks for
    }
    debian = inside["freestone_9.9.9_all.deb"]
    assert set(debian) == {"libc6", "python3", "pypy3", "other-one"}
    assert licence(debian["other-one"]) == "MIT"
    own = {each["name"]: licence(each) for each in debian["other-one"]["components"]}
    assert own == {"ahash": "MIT", "odd": "Own"}
    asked = {each["ref"]: each["dependsOn"] for each in bill["dependencies"] if "dependsOn" in each}
    assert set(asked["root-component"]) == set(inside)
    names = {each["bom-ref"]: each["name"].lower() for each in bill["components"]}
    assert {"rich", "pygments", "jinja2"} <= {names[ref] for ref in asked[WHEEL]}, "pygments: rich asks for it"
    lower = {name.lower(): each for name, each in entries.items()}
    assert (lower["rich"]["scope"], lower["jinja2"]["scope"]) == ("required", "optional")
    assert licence(lower["rich"]) == "MIT"
    assert "pytest" not in lower
    scripts = {each["name"] for each in lower["vl-convert-python"]["components"]}
    assert {"vega", "vega-lite", "vega-embed", "d3-array"} <= scripts


def test_a_dist_without_packages_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["--dist", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"freestone: no bill of materials: {tmp_path} has no package: make packages\n"


def test_a_bill_that_is_not_right_is_not_written(tmp_path: Path) -> None:
    part = {"type": "of no kind", "name": "a"}
    made = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": [part]}
    target = tmp_path / "wrong.json"
    with pytest.raises(tool.Failure, match=r"not as CycloneDX wants it: .*of no kind"):
        tool.write(made, target)
    assert not target.exists()


def test_the_scripts_of_pages_are_all_known_with_their_licences() -> None:
    scripts = tool.of_pages()
    names = [script["name"] for script in scripts]
    assert names.count("vega-lite") == 1
    assert [script["name"] for script in scripts if licence(script) is None] == []


def test_a_script_is_found_by_its_address() -> None:
    content = b"x/npm/vega-lite@6.4.1/+esm npm/vega-lite@5.8.0/ npm/vega@6/+esm npm/@a/b.c@1.2.3\0 npm/vega@6.2.0-rc.1/"
    assert [(each["name"], each["version"], licence(each)) for each in tool.scripts(content, "6.4")] == [
        ("@a/b.c", "1.2.3", None),
        ("vega-lite", "6.4.1", "BSD-3-Clause"),
    ]


def test_all_that_the_crate_is_built_with_has_a_licence_in_the_table(tmp_path: Path) -> None:
    tar(tmp_path / "freestone-9.9.9.crate", {"freestone-9.9.9/Cargo.toml": CRATE_MANIFEST.read_bytes()})
    entry, _ = tool.read(tmp_path / "freestone-9.9.9.crate")
    assert entry["components"]
    assert [each["name"] for each in entry["components"] if licence(each) is None] == []


@pytest.mark.parametrize(("said", "form"), [("MIT OR ISC", "expression"), ("BSD", "license"), ("(MIT", "license")])
def test_a_licence_is_an_expression_of_spdx_or_told_in_its_own_words(said: str, form: str) -> None:
    assert list(tool.component("a", licence=said)["licenses"][0]) == [form]


def test_a_dynamic_program_holds_no_c_library(static_program: bytes) -> None:
    assert tool.linked(Path("/bin/true").read_bytes(), musl=False) == {}
    assert set(tool.linked(static_program, musl=False)) == {"glibc", "libgcc"}
    assert set(tool.linked(static_program, musl=True)) == {"musl", "libgcc"}


def test_what_the_compiler_has_put_into_a_static_program_is_found_and_of_a_stripped_one_supposed(
    static_program: bytes, tmp_path: Path
) -> None:
    assert tool.holds_compilers(static_program)
    (tmp_path / "stripped").write_bytes(static_program)
    subprocess.run(["strip", str(tmp_path / "stripped")], check=True)
    assert tool.holds_compilers((tmp_path / "stripped").read_bytes())
    source = "void _start(void) { for (;;); }\n"
    bare = ["cc", "-static", "-nostdlib", "-x", "c", "-", "-o", str(tmp_path / "bare")]
    subprocess.run(bare, input=source, text=True, check=True)
    assert not tool.holds_compilers((tmp_path / "bare").read_bytes())
