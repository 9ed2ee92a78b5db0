"""The lines that put a winner to use: each reader of them gets the very values that were measured."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from freestone.allocators import notation
from freestone.analysis import summarise
from freestone.records.schema import Allocator, Configuration, Experiment, TrialRecord, Workload
from freestone.reports import deployment, system_settings

MakeExperiment = Callable[..., Experiment]
MakeRecord = Callable[..., TrialRecord]

FAST = Configuration(
    name="fast:FAST_CONF=a:b,c%d",
    allocator=Allocator(
        name="fast", title="Fast", file="/usr/lib/libfast.so.2", preload=["/usr/lib/libfast.so.2"],
        origin="package libfast2",
    ),
    environment={"FAST_CONF": "a:b,c%d"},
)  # fmt: skip
SYSTEM = Configuration(
    name="glibc", allocator=Allocator(name="glibc", title="glibc", file="/lib/libc.so.6", preload=["/lib/libc.so.6"])
)
TUNED = SYSTEM.model_copy(update={"name": "glibc:MALLOC_ARENA_MAX=2", "environment": {"MALLOC_ARENA_MAX": "2"}})

values = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=30)


def told(
    make_experiment: MakeExperiment,
    make_record: MakeRecord,
    arm: Configuration,
    wall_s: float,
    peak: int,
    *,
    environment: dict[str, str] | None = None,
    brings_malloc: bool = False,
) -> list[str]:
    """What is told of ten rounds in which the baseline took a second and 1000 KiB, and ``arm`` what is given."""
    workload = Workload(name="work", command=["./app", "a b"], environment=environment or {})
    experiment = make_experiment(rounds=10, configurations=[SYSTEM, arm], workloads=[workload])
    records = [
        record
        for number in range(10)
        for record in (
            make_record("glibc", number, wall_s=1 + number / 1000, peak_rss_kib=1000 + number),
            make_record("glibc", number, repeat=1, wall_s=1 + number / 1000, peak_rss_kib=1000 + number),
            make_record(arm.name, number, wall_s=wall_s + number / 1000, peak_rss_kib=peak + number),
        )
    ]
    return deployment.told(experiment, summarise(experiment, records), brings_malloc=brings_malloc)


def test_what_was_measured_in_an_environment_is_started_in_it(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    environment = {"PYTHONMALLOC": "malloc", "NOTE": "a 'b'"}
    lines = told(make_experiment, make_record, FAST, 0.5, 1000, environment=environment)
    started = [line for line in lines if "./app" in line]
    assert len(started) == 2, "by the tool, and by a shell"
    for line in started:
        assert "PYTHONMALLOC=malloc" in line
        assert shlex.split(line.split(maxsplit=1)[1])[-2:] == ["./app", "a b"]
    text = "\n".join(lines)
    assert 'Environment="PYTHONMALLOC=malloc"' in text
    assert 'ENV PYTHONMALLOC="malloc"' in text


def test_a_winner_comes_with_its_price_and_every_way_to_use_it(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    lines = told(make_experiment, make_record, FAST, 0.5, 2000)
    assert re.fullmatch(
        r"To use it, fast:FAST_CONF=a:b,c%d \(time 0\.\d+× glibc, peak memory [12]\.\d+× glibc\):", lines[0]
    )
    assert [line.strip() for line in lines[1:]] == [
        "freestone   freestone run -a fast:FAST_CONF=a:b,c%d -- ./app 'a b'",
        "shell       LD_PRELOAD=/usr/lib/libfast.so.2 FAST_CONF=a:b,c%d ./app 'a b'",
        "systemd     [Service]",
        'Environment="LD_PRELOAD=/usr/lib/libfast.so.2"',
        'Environment="FAST_CONF=a:b,c%%d"',
        "Dockerfile  RUN apt-get update && apt-get install -y --no-install-recommends libfast2",
        'ENV LD_PRELOAD="/usr/lib/libfast.so.2"',
        'ENV FAST_CONF="a:b,c%d"',
    ]


def test_without_a_winner_there_is_nothing_to_use(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    for wall_s, peak in ((1.0, 1000), (1.5, 1000), (1.5, 500)):
        lines = told(make_experiment, make_record, FAST, wall_s, peak)
        assert lines == ["To use it: there is nothing to change; no allocator is really better than glibc here."]


def test_who_takes_less_memory_and_no_more_time_wins(make_experiment: MakeExperiment, make_record: MakeRecord) -> None:
    assert told(make_experiment, make_record, FAST, 1.0, 500)[0].startswith("To use it, fast:FAST_CONF=a:b,c%d (time ")


def test_settings_of_the_systems_malloc_need_no_preload_but_where_the_program_brings_another(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    text = "\n".join(told(make_experiment, make_record, TUNED, 0.5, 1000))
    assert "MALLOC_ARENA_MAX=2 ./app" in text
    assert "LD_PRELOAD" not in text
    text = "\n".join(told(make_experiment, make_record, TUNED, 0.5, 1000, brings_malloc=True))
    assert "LD_PRELOAD=/lib/libc.so.6 MALLOC_ARENA_MAX=2 ./app" in text


def test_a_library_of_no_package_is_copied_into_the_image() -> None:
    built = FAST.model_copy(update={"allocator": FAST.allocator.model_copy(update={"origin": "built here"})})
    lines = deployment.dockerfile(built, deployment.environment(built))
    assert lines[:2] == ["COPY libfast.so.2 /usr/local/lib/", 'ENV LD_PRELOAD="/usr/local/lib/libfast.so.2"']


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


def test_a_library_in_a_home_is_installed_for_services(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    file = "/home/me/a clone/libfast.so"
    changed = {"file": file, "preload": [file], "origin": "built here"}
    built = FAST.model_copy(update={"allocator": FAST.allocator.model_copy(update=changed)})
    lines = [line.strip() for line in told(make_experiment, make_record, built, 0.5, 1000)]
    place = lines.index("install     install -m 644 '/home/me/a clone/libfast.so' /usr/lib/libfast.so")
    assert lines[place + 1 :] == [
        "systemd     [Service]",
        'Environment="LD_PRELOAD=/usr/lib/libfast.so"',
        'Environment="FAST_CONF=a:b,c%%d"',
        "Dockerfile  COPY libfast.so /usr/local/lib/",
        'ENV LD_PRELOAD="/usr/local/lib/libfast.so"',
        'ENV FAST_CONF="a:b,c%d"',
    ]


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


def test_a_program_with_a_malloc_of_its_own_is_not_left_as_it_is(
    make_experiment: MakeExperiment, make_record: MakeRecord
) -> None:
    """What was measured as the baseline is not what it runs on by itself."""
    lines = told(make_experiment, make_record, FAST, 2.0, 2000, brings_malloc=True)
    assert lines[0].startswith("To use it: no allocator is really better than glibc here. The program brings a malloc")
    assert any("LD_PRELOAD=/lib/libc.so.6" in line for line in lines)
    plain = told(make_experiment, make_record, FAST, 2.0, 2000)
    assert plain == ["To use it: there is nothing to change; no allocator is really better than glibc here."]


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
