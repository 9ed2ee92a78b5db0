"""What ``--on`` names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.experiments import places
from freestone.experiments.plan import PlanError
from freestone.records import store
from freestone.records.schema import Place


def test_each_place_by_its_engine() -> None:
    found = places.read(["local", "ssh:me@board1,10.0.0.2:2222", "slurm:rome,arm64", "dask:tcp://h:8786#a,b"])
    assert [(each.name, each.engine, each.address, each.kind) for each in found] == [
        ("local", "local", None, None),
        ("me-board1", "ssh", "me@board1", None),
        ("10.0.0.2-2222", "ssh", "10.0.0.2:2222", None),
        ("slurm-rome", "slurm", None, "rome"),
        ("slurm-arm64", "slurm", None, "arm64"),
        ("dask-a", "dask", "tcp://h:8786", "a"),
        ("dask-b", "dask", "tcp://h:8786", "b"),
    ]
    assert places.read(["slurm"]) == [Place(name="slurm", engine="slurm")]
    assert places.read(["dask:tcp://h:1"]) == [Place(name="dask", engine="dask", address="tcp://h:1")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["cloud"], "--on takes local, ssh, slurm, dask, as in ssh:board1,board2, not 'cloud'"),
        (["local:x"], "not 'local:x'"),
        (["ssh:"], "--on 'ssh:' lacks a host next to a comma or colon, as in ssh:board1,"),
        (["ssh:a,,b"], "--on 'ssh:a,,b' lacks a host next to a comma or colon, as in ssh:board1,"),
        (["slurm:a,"], "--on 'slurm:a,' lacks a feature of nodes next to a comma"),
        (["dask:tcp://h:1#a,"], "lacks a resource of workers next to a comma"),
        (["ssh:127.0.0.1:22022x"], "'22022x' is no port of 127.0.0.1: a port is a number up to 65535"),
        (["ssh:a:"], "'' is no port of a"),
        (["ssh:b,me@a:0"], "'0' is no port of me@a"),
        (["ssh:a:65536"], "'65536' is no port of a"),
        (["ssh:-oProxyCommand=x"], "'-oProxyCommand=x' is not a host"),
        (["ssh:a b"], "'a b' is not a host"),
        (["slurm:a b"], "'a b' is not a feature of nodes"),
        (["dask:"], "the scheduler's address is missing"),
        (["dask:tcp://h:1#"], "the scheduler's address is missing"),
        (["ssh:a", "ssh:a"], "names the place 'a' twice"),
        (["ssh:a@b,a-b"], "names the place 'a-b' twice"),
    ],
)
def test_a_slip_is_one_line(words: list[str], told: str) -> None:
    with pytest.raises(PlanError) as error:
        places.read(words)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_an_address_with_many_colons_has_no_port() -> None:
    assert [each.address for each in places.read(["ssh:fe80::1%eth0,me@2001:db8::7"])] == [
        "fe80::1%eth0",
        "me@2001:db8::7",
    ]


@given(st.lists(st.text(max_size=30), max_size=4))
def test_whatever_is_typed_gives_places_that_folders_can_be_named_after(words: list[str]) -> None:
    try:
        found = places.read(words)
    except PlanError:
        return
    names = [each.name for each in found]
    assert len(set(names)) == len(names)
    for name in names:
        assert name not in ("", ".", "..")
        assert "/" not in name
        assert not name.startswith((".", "-"))
        assert store.unlike_files(name) == name
    assert not any((each.address or "").startswith("-") for each in found)


def test_no_place_is_called_as_what_another_has_beside_its_folder() -> None:
    names = [each.name for each in places.read(["slurm:a,a.log,a.job"])]
    assert not {f"{name}{ending}" for name in names for ending in (".log", ".job")} & set(names)
