"""What programs find in their environment: nothing that steers one allocator, and the same size for all."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freestone.allocators import configuration_for, find
from freestone.analysis.same_environment import environments_differ
from freestone.records.schema import Configuration, Environment, Workload
from freestone.trials import environment, preload

GLIBC = configuration_for(find(["glibc"])[0])

names = st.from_regex(r"[A-Z][A-Z_]{0,11}", fullmatch=True)
values = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
environments = st.dictionaries(names, values, max_size=8)

STEERING = (
    "MALLOC_ARENA_MAX MALLOC_CONF GLIBC_TUNABLES MIMALLOC_ARENA_EAGER_COMMIT FREESTONE_OPTIONS JEMALLOC_X TCMALLOC_X "
    "TBB_MALLOC_USE_HUGE_PAGES SNMALLOC_X RPMALLOC_X _RJEM_MALLOC_CONF LD_LIBRARY_PATH LD_BIND_NOW LD_PRELOAD "
    "PYTHONMALLOC"
)


def workload(given: dict[str, str], *, kept: bool = False) -> Workload:
    return Workload(name="w", command=["true"], environment=given, keep_environment=kept)


def configuration(settings: dict[str, str]) -> Configuration:
    return GLIBC.model_copy(update={"environment": settings})


@pytest.mark.parametrize("name", STEERING.split())
def test_what_steers_an_allocator_is_taken_out_unless_somebody_asks_for_it(name: str) -> None:
    inherited = {name: "1", "PATH": "/bin"}
    assert environment.in_force(workload({}), GLIBC, inherited) == {"PATH": "/bin"}
    assert environment.in_force(workload({name: "2"}), GLIBC, inherited)[name] == "2"
    assert environment.in_force(workload({}), configuration({name: "3"}), inherited)[name] == "3"
    assert environment.in_force(workload({}, kept=True), GLIBC, inherited) == inherited


@pytest.mark.parametrize("name", ["PATH", "HOME", "LANG", "MALLOCATED", "PYTHONPATH", "LDFLAGS", "TBBROOT", "MY_LD_X"])
def test_what_steers_no_allocator_stays(name: str) -> None:
    assert not environment.steers(name)


@given(environments, environments, environments, environments)
def test_every_configuration_s_environment_has_the_same_size(
    inherited: dict[str, str], given: dict[str, str], one: dict[str, str], other: dict[str, str]
) -> None:
    def size(settings: dict[str, str]) -> tuple[int, int]:
        arm = configuration(settings)
        held = environment.in_force(workload(given), arm, inherited)
        held |= environment.fillers(workload(given), arm, inherited)
        return len(held), sum(len(os.fsencode(name)) + len(os.fsencode(value)) + 2 for name, value in held.items())

    small = [
        each for each in (one, other, {}) if len(each) < 7 and sum(map(len, map(os.fsencode, each.values()))) < 500
    ]
    assert len({size(each) for each in small}) == 1


@given(st.lists(st.from_regex(r"/[a-z][a-z/.]{0,60}", fullmatch=True), min_size=1, max_size=3))
def test_a_preload_has_a_length_of_its_own_and_leads_to_the_same_files(files: list[str]) -> None:
    padded = preload.of_equal_length(files)
    assert len(":".join(padded)) % 256 == 0
    assert [os.path.normpath(file) for file in padded] == [os.path.normpath(file) for file in files]


def test_stacks_lie_alike_under_every_allocator(attempt, compile_c, tmp_path) -> None:
    program = compile_c(r"""
        #include <stdio.h>
        int main(int count, char **words) { int here; printf("%p %p\n", (void *)&here, (void *)words[0]); return 0; }
    """)  # fmt: skip
    if subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("addresses cannot be kept from being random here (setarch -R)")
    told = tmp_path / "told"
    arms = [configuration_for(each) for each in find(["glibc", "freestone"])]
    arms.append(configuration_for(arms[0].allocator, name="set", environment={"MALLOC_ARENA_MAX": "2", "X": "y" * 99}))
    for arm in arms:
        record = attempt("sh", "-c", f"setarch -R {program} >>{told}", configuration=arm)
        assert (record.status, record.reason) == ("ok", None)
    lines = told.read_text().splitlines()
    assert len(lines) == 3
    assert len(set(lines)) == 1


def test_a_program_that_misses_its_library_path_is_told_how_to_get_it(
    attempt, compile_c, monkeypatch, tmp_path
) -> None:
    (tmp_path / "away").mkdir()
    compile_c(
        "int theirs(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libtheirs.so", name="away/libtheirs.so"
    )
    program = compile_c(
        "int theirs(void);\nint main(void) { return theirs(); }", f"-L{tmp_path}/away", "-l:libtheirs.so"
    )
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "away"))
    assert "--env LD_LIBRARY_PATH" in (attempt(program).reason or "")
    assert attempt(program, environment={"LD_LIBRARY_PATH": str(tmp_path / "away")}).status == "ok"


# --- the record


@given(environments)
def test_the_record_names_every_variable_and_no_secret(inherited: dict[str, str]) -> None:
    inherited = {**inherited, "TOKEN": "not-for-anybody", "MALLOC_ARENA_MAX": "1", "SHLVL": "3"}
    found = environment.describe(inherited, kept=False)
    assert "not-for-anybody" not in found.model_dump_json()
    assert found.taken_out["MALLOC_ARENA_MAX"] == "1"
    assert "TOKEN" in found.others
    assert "SHLVL" not in found.others
    assert Environment.model_validate_json(found.model_dump_json()) == found


@given(environments, environments)
def test_two_environments_are_the_same_exactly_when_what_is_in_force_is(
    one: dict[str, str], other: dict[str, str]
) -> None:
    def mattering(inherited: dict[str, str]) -> dict[str, str]:
        told = environment.describe(inherited, kept=False)
        return {name: inherited[name] for name in (*told.told, *told.others)}

    differ = environments_differ(environment.describe(one, kept=False), environment.describe(other, kept=False))
    assert (differ is None) == (mattering(one) == mattering(other))


def test_what_differs_is_named() -> None:
    one = environment.describe({"LANG": "C", "A": "1", "B": "2", "MALLOC_X": "1"}, kept=False)
    other = environment.describe({"LANG": "de", "A": "1", "C": "2"}, kept=False)
    assert environments_differ(one, other) == (
        "LANG ('C' and 'de'), B (set on one side only), C (set on one side only)"
    )
    assert environments_differ(one, None) is None


def test_a_name_or_value_that_is_not_utf_8_is_recorded_all_the_same() -> None:
    found = environment.describe({"A\udcff": "\udc80", "MALLOC_\udcff": "\udc80"}, kept=True)
    assert Environment.model_validate_json(found.model_dump_json()) == found
