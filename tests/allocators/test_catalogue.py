"""The catalogue and what users may put on top of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from freestone.allocators import CatalogueError, catalogue


def load(tmp_path: Path, text: str) -> dict[str, catalogue.Entry]:
    file = tmp_path / "allocators.toml"
    file.write_text(text)
    return catalogue.load(file)


@pytest.fixture(autouse=True)
def no_catalogue_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nothing-here"))


def test_the_built_in_catalogue_knows_the_allocators_people_choose() -> None:
    assert list(catalogue.load()) == ["glibc", "freestone", "mimalloc", "jemalloc", "tcmalloc", "tbb"]


def test_a_user_may_add_an_allocator(tmp_path: Path) -> None:
    entries = load(tmp_path, '[mesh]\ntitle = "Mesh"\nsonames = ["libmesh.so"]\n')
    assert entries["mesh"].title == "Mesh"
    assert "jemalloc" in entries


def test_a_user_may_change_one_key_of_a_known_allocator(tmp_path: Path) -> None:
    entries = load(tmp_path, '[jemalloc]\nsonames = ["libjemalloc-profiling.so"]\n')
    assert entries["jemalloc"].sonames == ["libjemalloc-profiling.so"]
    assert entries["jemalloc"].title == "jemalloc"


def test_the_user_catalogue_is_found_in_the_configuration_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "freestone").mkdir()
    (tmp_path / "freestone" / "allocators.toml").write_text('[mesh]\ntitle = "Mesh"\nsonames = ["libmesh.so"]\n')
    assert "mesh" in catalogue.load()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[mesh\n", "not valid TOML"),
        ("mesh = 3\n", "must be a table"),
        ('["Mesh!"]\ntitle = "Mesh"\n', "no allocator name"),
        ('[mesh]\ntitle = "Mesh"\n', "[mesh] sonames"),
        ('[mesh]\ntitle = "Mesh"\nsonames = []\n', "[mesh] sonames"),
        ('[mesh]\ntitle = "Mesh"\nsonames = ["l.so"]\ncolour = 1\n', "[mesh] colour"),
        ('[mesh]\ntitle = "Mesh"\nsonames = ["l.so"]\nversion = ["guess"]\n', "none of package"),
        ('[mesh]\ntitle = "Mesh"\nsonames = ["l.so"]\nversion = ["text:("]\n', "not a regular expression"),
        ('[mesh]\ntitle = "Mesh"\nsonames = ["l.so"]\nversion = ["text:x"]\n', "exactly one group"),
    ],
)
def test_a_wrong_catalogue_is_one_clear_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(CatalogueError) as caught:
        load(tmp_path, text)
    assert told in str(caught.value)
    assert "allocators.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_catalogue_that_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="cannot be read: No such file"):
        catalogue.load(tmp_path / "absent.toml")
    (tmp_path / "latin.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(CatalogueError, match="not UTF-8"):
        catalogue.load(tmp_path / "latin.toml")
