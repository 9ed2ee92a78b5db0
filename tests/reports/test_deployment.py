"""The lines that put a winner to use: each reader of them gets the very values that were measured."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from invented_arms import FAST, SYSTEM, TUNED

from freestone.allocators import notation
from freestone.records.schema import Allocator, Configuration, Experiment, TrialRecord, Workload
from freestone.reports import deployment, system_settings

MakeExperiment = Callable[..., Experiment]
MakeRecord = Callable[..., TrialRecord]

values = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=30)


def test_a_library_of_no_package_is_copied_into_the_image() -> None:
    built = FAST.model_copy(update={"allocator": FAST.allocator.model_copy(update={"origin": "built here"})})
    lines = deployment.dockerfile(built, deployment.environment(built))
    assert lines[1:4] == [
        "# first put the library beside the Dockerfile: cp /usr/lib/libfast.so.2 .",
        "COPY libfast.so.2 /usr/local/lib/",
        'ENV LD_PRELOAD="/usr/local/lib/libfast.so.2"',
    ]


def test_an_image_keeps_what_the_program_preloads_itself_and_a_name_with_a_space() -> None:
    changed = {"origin": "built here", "file": "/x/lib fast.so", "preload": ["/x/lib fast.so"]}
    built = FAST.model_copy(update={"allocator": FAST.allocator.model_copy(update=changed)})
    lines = deployment.dockerfile(built, {"LD_PRELOAD": "/x/lib fast.so:/own.so"})
    assert 'COPY ["lib fast.so", "/usr/local/lib/"]' in lines
    assert lines[-1] == 'ENV LD_PRELOAD="/usr/local/lib/lib fast.so:/own.so"'


def test_every_image_is_told_that_musl_is_another_matter() -> None:
    built = FAST.model_copy(update={"allocator": FAST.allocator.model_copy(update={"origin": "built here"})})
    for each in (FAST, built, TUNED):
        first = deployment.dockerfile(each, deployment.environment(each))[0]
        assert first.startswith("# for an image ")
        assert "musl (Alpine): see docs/guide/deploy.md" in first
    assert deployment.dockerfile(SYSTEM, {}) == [], "nothing has to be set"


@given(values, st.lists(values.filter(bool), min_size=1, max_size=3))
def test_a_shell_reads_what_was_measured(value: str, command: list[str]) -> None:
    words = shlex.split(deployment.shell({"V": value}, command))
    assert words == [f"V={value}", *command]


def test_a_real_shell_does(tmp_path: object) -> None:
    value = "a 'b' \"c\" $HOME `x` \\ %d\n*"
    line = deployment.shell({"V": value}, ["printenv", "V"])
    assert subprocess.run(["sh", "-c", line], capture_output=True, text=True).stdout == value + "\n"


@given(values)
def test_a_unit_and_an_image_hold_what_was_measured(value: str) -> None:
    unit = deployment.systemd({"V": value})[1]
    assert "\n" not in unit
    read = re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), unit, flags=re.DOTALL)
    assert read.replace("%%", "%") == f'Environment="V={value}"'
    assert not re.search(r"(?<!%)(?:%%)*%(?!%)", unit)
    image = deployment.dockerfile(SYSTEM, {"V": value})[-1]
    assert re.sub(r'\\(["\\$])', r"\1", image) == f'ENV V="{value}"'


paths = st.text("/ab,:\\=. A_", min_size=1, max_size=20).map(lambda text: f"/x{text}.so")


@given(paths, st.dictionaries(st.sampled_from(["A_B", "C"]), st.text("ab,:=/\\", max_size=8), max_size=2))
def test_an_allocator_given_by_a_path_is_typed_with_it(file: str, settings: dict[str, str]) -> None:
    allocator = Allocator(name="fast", title="fast", file=file, preload=[file], origin="given as ./fast.so")
    name = notation.write("fast", settings)
    typed = deployment.as_typed(Configuration(name=name, allocator=allocator, environment=settings))
    (read,) = notation.read(typed)
    assert read.allocator.strip() == f"fast={file}".strip()
    assert read.settings == settings


def test_a_pod_gets_the_values_that_were_measured() -> None:
    lines = deployment.kubernetes({"LD_PRELOAD": "/usr/lib/a.so", "CONF": 'a:"b" %c'})
    assert lines == ["env:", '- {name: LD_PRELOAD, value: "/usr/lib/a.so"}', '- {name: CONF, value: "a:\\"b\\" %c"}']


def test_knobs_of_glibc_are_calls_and_others_are_none() -> None:
    knobs = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "18446744073709551615"}
    tuned = SYSTEM.model_copy(update={"environment": knobs})
    assert deployment.c_calls(tuned) == [
        "#include <malloc.h>",
        "mallopt(M_MMAP_MAX, 0);",
        "mallopt(M_TRIM_THRESHOLD, -1);",
    ]
    assert deployment.c_calls(SYSTEM) == []
    assert deployment.c_calls(FAST) == []
    mixed = SYSTEM.model_copy(update={"environment": {**knobs, "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}})
    assert deployment.c_calls(mixed) == []


def condition(arm: Configuration, **changes: object) -> Configuration:
    """An arm that needs more than its environment, named as the doctor names it."""
    made = arm.model_copy(update=changes)
    return made.model_copy(update={"name": arm.name + system_settings.suffix(made)})


def test_folios_come_with_the_lines_that_set_the_kernels_switch() -> None:
    arm = condition(TUNED, kernel={"hugepages-16kB": "always", "hugepages-64kB": "always"})
    assert arm.name == "glibc:MALLOC_ARENA_MAX=2+folios-16kB-64kB"
    lines = [line.strip() for line in deployment.lines(Workload(name="w", command=["./app"]), arm)]
    file = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled"
    assert f"echo always > {file}" in lines
    assert any(line.endswith(f"w {file} - - - - always") for line in lines)
    assert any(line.endswith("thp_anon=16K:always;64K:always") for line in lines)
    assert any(line.endswith("freestone run -a glibc:MALLOC_ARENA_MAX=2 -- ./app") for line in lines)


def test_a_program_without_huge_pages_really_has_none() -> None:
    workload = Workload(name="w", command=["sh", "-c", "grep THP_enabled /proc/self/status"])
    arm = condition(SYSTEM, huge_pages_off=True)
    lines = deployment.lines(workload, arm)
    (shell,) = [line.split(maxsplit=1)[1] for line in lines if line.startswith("  shell")]
    said = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["THP_enabled:", "0"]
    (image,) = [line.split("ENTRYPOINT ")[1] for line in lines if "ENTRYPOINT" in line]
    assert json.loads(image) == shlex.split(shell)
    (unit,) = [line for line in lines if "ExecStart=" in line]
    assert "prctl(41, 1, 0, 0, 0)" in unit
    pod, *calls = [line.strip() for line in deployment.more_lines(workload, arm)]
    assert json.loads(pod.split("command: ")[1]) == shlex.split(shell)
    assert calls == ["C           #include <sys/prctl.h>", "prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);"]


def test_what_a_program_preloads_itself_stands_behind_the_allocator_in_every_line() -> None:
    """Units and pods had lost it, and a pod under glibc's settings got libc.so.6 in its place."""
    workload = Workload(name="app", command=["app"], environment={"LD_PRELOAD": "/opt/app/libhook.so"})
    fast = Allocator(name="fast", title="fast", file="/home/me/libfast.so", preload=["/home/me/libfast.so"])
    lines = [*deployment.lines(workload, Configuration(name="fast", allocator=fast))]
    lines += deployment.more_lines(workload, Configuration(name="fast", allocator=fast))
    unit = next(line for line in lines if "Environment=" in line)
    pod = next(line for line in lines if "- {name: LD_PRELOAD" in line)
    assert '"LD_PRELOAD=/usr/lib/libfast.so:/opt/app/libhook.so"' in unit
    assert '"/usr/local/lib/libfast.so:/opt/app/libhook.so"' in pod, "where the lines for a Dockerfile have put it"
    libc = "/usr/lib/x86_64-linux-gnu/libc.so.6"
    glibc = Allocator(name="glibc", title="glibc", file=libc, preload=[libc])
    settings = {"MALLOC_ARENA_MAX": "1"}
    (own,) = [
        line
        for line in deployment.more_lines(workload, Configuration(name="x", allocator=glibc, environment=settings))
        if "LD_PRELOAD" in line
    ]
    assert '"/opt/app/libhook.so"' in own
    assert "libc" not in own
