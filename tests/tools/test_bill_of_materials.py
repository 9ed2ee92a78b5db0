"""What is in the packages of dist: read from invented ones, and written as SPDX wants it."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

import bill_of_materials.__main__ as tool
import freestone
from bill_of_materials import dist, embedded, python_parts, rust_parts
from bill_of_materials.part import Part, licence_expression

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
    {"name": "ahash", "version": "0.8.12", "purl": "pkg:cargo/ahash@0.8.12", "licenses": [{"expression": "MIT"}]},
    {"name": "odd", "version": "1.0.0", "purl": "pkg:cargo/odd@1.0.0", "licenses": [{"license": {"name": "Own"}}]},
    {"name": "tested-with", "version": "1.0.0", "purl": "pkg:cargo/tested-with@1.0.0", "scope": "excluded"},
    {"name": "of-c", "version": "1.0.0", "purl": "pkg:generic/of-c@1.0.0"},
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


def written(folder: Path) -> tuple[dict[str, dict[str, Any]], set[tuple[str, str, str]]]:
    """The bill of a folder: its packages and their relations, all by name."""
    assert tool.main(["--dist", str(folder)]) == 0
    target = folder / f"freestone-{freestone.__version__}.spdx.json"
    assert validate_full_spdx_document(parse_file(str(target))) == []
    bill = json.loads(target.read_text(encoding="utf-8"))
    assert bill["spdxVersion"] == "SPDX-2.3"
    names = {each["SPDXID"]: each["name"] for each in bill["packages"]} | {bill["SPDXID"]: "the bill"}
    relations = {
        (names[each["spdxElementId"]], each["relationshipType"], names[each["relatedSpdxElement"]])
        for each in bill["relationships"]
    }
    return {each["name"]: each for each in bill["packages"]}, relations


def test_the_bill_names_each_package_and_what_is_in_it(folder: Path, repository: Path) -> None:
    packages, relations = written(folder)
    files = [file for file in folder.iterdir() if file.suffix not in (".json", "")]
    assert len(files) == 4
    for file in files:
        assert ("the bill", "DESCRIBES", file.name) in relations
        assert packages[file.name]["checksums"] == [
            {"algorithm": "SHA256", "checksumValue": hashlib.sha256(file.read_bytes()).hexdigest()}
        ]
    wheel = "freestone-9.9.9-py3-none-manylinux_2_31_x86_64.whl"
    assert (wheel, "CONTAINS", "libfreestone") in relations
    assert ("freestone-9.9.9.tar.gz", "CONTAINS", "libfreestone") in relations
    assert (wheel, "STATIC_LINK", "glibc") in relations
    assert (wheel, "DEPENDS_ON", "rich") in relations
    assert (wheel, "DEPENDS_ON", "pygments") in relations  # which rich asks for
    assert ("jinja2", "OPTIONAL_DEPENDENCY_OF", wheel) in relations
    assert ("vl-convert-python", "CONTAINS", "vega-lite") in relations
    assert ("freestone-9.9.9.crate", "DEPENDS_ON", "cc") in relations
    assert ("freestone-9.9.9.crate", "DEPENDS_ON", "shlex") in relations  # which cc asks for
    assert packages["cc"]["versionInfo"] == "1.11.3"
    assert packages["cc"]["licenseDeclared"] == "MIT OR Apache-2.0"
    assert (wheel, "STATIC_LINK", "libgcc") in relations
    assert packages["libgcc"]["licenseDeclared"] == "GPL-3.0-or-later WITH GCC-exception-3.1"
    assert {name for owner, _, name in relations if owner == "other-one"} == {"ahash", "odd"}
    assert packages["ahash"]["licenseDeclared"] == "MIT"
    assert packages["odd"]["licenseComments"] == "It says: Own"
    debian = "freestone_9.9.9_all.deb"
    assert (debian, "CONTAINS", "other-one") in relations
    assert {(debian, "DEPENDS_ON", name) for name in ("libc6", "python3", "pypy3")} <= relations
    assert "pytest" not in packages
    locked = python_parts.locked((repository / "tools" / "constraints.txt").read_text(encoding="utf-8"))
    assert packages["rich"]["versionInfo"] == locked["rich"]
    assert packages["rich"]["licenseDeclared"] == "MIT"
    assert packages["other-one"]["licenseDeclared"] == "MIT"


def test_a_dist_without_packages_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["--dist", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"freestone: no bill of materials: {tmp_path} has no package: make packages\n"


def test_a_bill_that_is_not_right_is_not_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tool.bill(tool.read(folder), "9.9.9", {"license": "MIT", "authors": [{"name": "A"}]}, "")
    made.packages[0].spdx_id = "of no form"
    target = folder / "wrong.json"
    with pytest.raises(tool.Failure, match=r"not as SPDX wants them; the first: .*of no form"):
        tool.write(made, target)
    assert not target.exists()


def test_the_scripts_of_pages_are_all_known_with_their_licences() -> None:
    scripts = embedded.of_pages()
    names = [script.name for script in scripts]
    assert {"vega", "vega-lite", "vega-embed", "d3-array"} <= set(names)
    assert names.count("vega-lite") == 1
    assert [script.name for script in scripts if script.licence is None] == []


def test_a_script_is_found_by_its_address() -> None:
    content = b"x/npm/vega-lite@6.4.1/+esm npm/vega-lite@5.8.0/ npm/vega@6/+esm npm/@a/b.c@1.2.3\0 npm/vega@6.2.0-rc.1/"
    assert embedded.scripts(content, "6.4") == [
        Part("@a/b.c", "1.2.3", "script", None),
        Part("vega-lite", "6.4.1", "script", "BSD-3-Clause"),
    ]


def test_every_part_of_the_lab_has_a_locked_version(repository: Path) -> None:
    locked = python_parts.locked((repository / "tools" / "constraints.txt").read_text(encoding="utf-8"))
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [
        *project["dependencies"],
        *(line for extra in ("figures", "parquet", "dask") for line in extras[extra]),
    ]
    always, _ = python_parts.requirements("".join(f"Requires-Dist: {line}\n" for line in lines))
    assert len(always) == len(lines)
    assert [name for name in python_parts.with_theirs(always) if name not in locked] == []


def test_requirements_are_told_apart_by_extra() -> None:
    always, extras = python_parts.requirements(METADATA)
    assert [each.name for each in always] == ["rich"]
    assert {name: [each.name for each in those] for name, those in extras.items()} == {
        "figures": ["jinja2", "vl-convert-python"],
        "test": ["pytest"],
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MIT", "MIT"),
        ("Apache-2.0 OR BSD-2-Clause", "Apache-2.0 OR BSD-2-Clause"),
        ("BSD", None),
        ("MIT License", None),
        ("", None),
        ("(MIT", None),
    ],
)
def test_a_licence_is_an_expression_of_spdx_or_not_claimed(text: str, expected: str | None) -> None:
    assert licence_expression(text) == expected


@given(st.text())
def test_no_text_of_a_licence_is_too_odd(text: str) -> None:
    expression = licence_expression(text)
    assert expression is None or licence_expression(expression) == expression


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.whl", "wheel"), ("a.tar.gz", "sdist"), ("a.deb", "deb"), ("a.crate", "crate"), ("a.gz", None)],
)
def test_packages_are_told_by_their_names(name: str, kind: str | None) -> None:
    assert dist.kind_of(name) == kind


def test_a_dynamic_program_holds_no_c_library(static_program: bytes) -> None:
    assert dist.linked_library(Path("/bin/true").read_bytes(), musl=False) is None
    assert dist.linked_library(static_program, musl=False) == "glibc"
    assert dist.linked_library(static_program, musl=True) == "musl"


def test_what_the_compiler_has_put_into_a_static_program_is_found_and_of_a_stripped_one_supposed(
    static_program: bytes, tmp_path: Path
) -> None:
    assert dist.holds_compilers(static_program)
    (tmp_path / "stripped").write_bytes(static_program)
    subprocess.run(["strip", str(tmp_path / "stripped")], check=True)
    assert dist.holds_compilers((tmp_path / "stripped").read_bytes())
    source = "void _start(void) { for (;;); }\n"
    bare = ["cc", "-static", "-nostdlib", "-x", "c", "-", "-o", str(tmp_path / "bare")]
    subprocess.run(bare, input=source, text=True, check=True)
    assert not dist.holds_compilers((tmp_path / "bare").read_bytes())


def test_all_that_ours_is_built_with_has_a_licence_in_the_table() -> None:
    assert [part.licence for part in rust_parts.locked(LOCK)] == ["MIT OR Apache-2.0"] * 2
    assert [part for part in rust_parts.needs(CRATE_MANIFEST.read_text(encoding="utf-8")) if part.licence is None] == []
