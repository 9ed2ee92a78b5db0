"""What brings the libraries of an extra, by how the lab was installed."""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from freestone.records import installation

REQUIRES = (
    "rich>=13.7",
    "altair>=5.5; extra == 'figures'",
    'jinja2>=3.1 ; extra == "figures"',
    "duckdb>=1.1; python_version > '3.9' and extra == 'parquet'",
    "figures>=1; extra == 'figures-too'",
)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(direct_url: object | None) -> None:
        info = tmp_path / "freestone-0.1.0.dist-info"
        info.mkdir()
        lines = ["Metadata-Version: 2.1", "Name: freestone", "Version: 0.1.0"]
        (info / "METADATA").write_text("\n".join([*lines, *(f"Requires-Dist: {each}" for each in REQUIRES), ""]))
        if direct_url is not None:
            (info / "direct_url.json").write_text(json.dumps(direct_url))
        monkeypatch.setattr(metadata, "distribution", lambda name: metadata.Distribution.at(info))

    return install


def clone(folder: Path) -> dict[str, object]:
    return {"url": folder.as_uri(), "dir_info": {"editable": True}}


def test_in_a_clone_it_is_the_clones_own_extra(installed: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a clone"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    installed(clone(folder))
    assert installation.to_get("figures", ["altair"]) == "pip install '.[figures]' in the clone"


@pytest.mark.parametrize(
    "direct_url",
    [None, {"url": "file:///dist/freestone-0.1.0-py3-none-any.whl", "archive_info": {}}, clone(Path("/gone"))],
)
def test_from_a_wheel_it_is_what_the_extra_holds_and_never_the_labs_name(
    installed: Any, direct_url: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/my lab/bin/python")
    installed(direct_url)
    told = shlex.split(installation.to_get("figures", ["altair"]))
    assert told == ["/my lab/bin/python", "-m", "pip", "install", "altair>=5.5", "jinja2>=3.1"]
    assert shlex.split(installation.to_get("parquet", ["duckdb"]))[4:] == ["duckdb>=1.1"]


def test_without_pip_beside_it_another_pip_is_told_where(installed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    installed(None)
    assert shlex.split(installation.to_get("parquet", ["duckdb"]))[:3] == ["pip", "--python", sys.executable]


def test_what_came_by_no_pip_is_told_of_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    told = installation.to_get("figures", ["altair", "jinja2"])
    assert told == "altair, jinja2, which the lab can have where pip has installed it from its wheel"


def test_every_extra_is_found_in_the_metadata_of_this_installation(repository: Path) -> None:
    extras = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    known = metadata.distribution(installation.DISTRIBUTION).requires or []
    for extra, wanted in extras.items():
        assert {*map(Requirement, installation.requirements(known, extra))} == {*map(Requirement, wanted)}
