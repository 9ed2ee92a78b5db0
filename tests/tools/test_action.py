"""action.yml, run as GitHub runs it: its scripts in their order, with real builds, two rounds and a tiny suite."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.long

REPOSITORY = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
TINY = """
title = "three programs that end at once"
[[workload]]
name = "empty-{n}"
command = ["true", "{n}"]
matrix = { n = [1, 2] }
[[workload]]
name = "breaks"
command = ["sh", "-c", "exit 3"]
"""


@dataclass
class Job:
    """One job with this action in it, as far as GitHub knows of it."""

    workspace: Path
    runner: Path
    inputs: dict[str, str]
    outputs: dict[tuple[str, str], str] = field(default_factory=dict)
    log: str = ""

    def value(self, expression: str) -> str:
        """What an expression stands for; one that this test does not know fails it."""
        match expression.split("."):
            case ["inputs", name] if name in self.inputs:
                return self.inputs[name]
            case ["steps", step, "outputs", name] if step in {each.get("id") for each in STEPS}:
                return self.outputs.get((step, name), "")
        pytest.fail(f"action.yml uses {expression}, which stands for nothing")

    def filled(self, text: str) -> str:
        return EXPRESSION.sub(lambda match: self.value(match[1]), str(text))

    def run(self) -> int:
        """Every script up to the first that fails; its status."""
        for number, step in enumerate(STEPS):
            if "run" not in step:
                continue
            status = self._script(number, step)
            if status:
                return status
        return 0

    def _script(self, number: int, step: dict[str, Any]) -> int:
        assert step["shell"] == "bash"
        script, told = self.runner / f"{number}.sh", self.runner / f"output-{number}"
        script.write_text(self.filled(step["run"]))
        told.touch()
        environment = {
            **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")},
            "GITHUB_ACTION_PATH": str(REPOSITORY),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_OUTPUT": str(told),
            "GITHUB_STEP_SUMMARY": str(self.summary_file),
            "RUNNER_TEMP": str(self.runner),
            **{name: self.filled(value) for name, value in step.get("env", {}).items()},
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=self.workspace, env=environment, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        self.log += done.stdout + done.stderr
        for line in told.read_text().splitlines():
            name, equals, value = line.partition("=")
            assert equals, "an output is NAME=VALUE"
            self.outputs[step["id"], name] = value
        return done.returncode

    @property
    def summary_file(self) -> Path:
        return self.runner / "summary"

    def summary(self) -> str:
        return self.summary_file.read_text() if self.summary_file.exists() else ""

    def told(self, name: str) -> str:
        """An output of the action as a whole."""
        return self.filled(ACTION["outputs"][name]["value"])


@pytest.fixture
def job(tmp_path: Path, freestone_library: Path) -> Job:
    if not (REPOSITORY / ".venv" / "bin" / "freestone").exists():
        pytest.skip("make build has not been run here, and takes minutes the first time")
    workspace, runner = tmp_path / "work space", tmp_path / "runner"
    for folder in (workspace, runner):
        folder.mkdir()
    (workspace / "tiny.toml").write_text(TINY)
    for name in ("old.so", "new.so"):
        (workspace / name).symlink_to(freestone_library)
    given = {"before": "old.so", "after": "new.so", "suite": "tiny.toml", "only": "empty-*", "rounds": "2"}
    defaults = {name: str(each["default"]) for name, each in ACTION["inputs"].items() if "default" in each}
    assert set(ACTION["inputs"]) - set(defaults) == {"before", "after"}, "every other input has a default"
    return Job(workspace, runner, {**defaults, **given})


def test_a_change_within_limits_passes_and_the_summary_shows_it(job: Job) -> None:
    assert job.run() == 0, job.log
    assert job.told("outcome") in ("kept", "open")
    results = Path(job.told("results"))
    assert (results / "experiment.json").is_file()
    assert (results / "trials.jsonl").is_file()
    assert "peak RSS" in job.summary()
    assert "empty-1" in job.summary() + job.log
    assert list(job.workspace.glob("*gate*")) == [], "nothing is left in what was checked out"


def test_a_strict_gate_fails_where_two_rounds_cannot_tell(job: Job) -> None:
    job.inputs |= {"strict": "true", "max-faults": "0%"}
    assert job.run() == 6, job.log
    assert job.told("outcome") == "open"
    assert "minor faults" in job.summary()


def test_two_gates_in_one_job_do_not_meet(job: Job) -> None:
    job.inputs["only"] = "empty-1"
    assert job.run() == 0, job.log
    first, job.outputs = job.told("results"), {}
    assert job.run() == 0, job.log
    assert job.told("results") != first


def test_a_library_under_which_a_program_fails_fails_the_gate(job: Job) -> None:
    job.inputs["only"] = "*"
    assert job.run() == 4, job.log
    assert "could not measure everything (status 4)" in job.summary()
    assert Path(job.told("results"), "trials.jsonl").is_file(), "what was measured is kept"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"after": "none.so"}, r"none\.so does not exist"),
        ({"suite": "feild"}, r"did you mean field\?"),
        ({"max-slowdown": "3"}, "--max-slowdown takes a percentage"),
        ({"max-slowdown": "", "max-rss": ""}, "a gate needs a limit"),
    ],
)
def test_wrong_inputs_fail_with_a_line_that_says_why(job: Job, wrong: dict[str, str], said: str) -> None:
    job.inputs |= {"only": "", **wrong} if "suite" in wrong else wrong
    assert job.run() == 2
    assert re.search(said, job.log)


def test_what_is_handed_to_other_actions_exists() -> None:
    job = Job(Path(), Path(), dict.fromkeys(ACTION["inputs"], "x"))
    others = [step for step in STEPS if "uses" in step]
    assert [step["uses"] for step in others] == ["actions/upload-artifact@v4"]
    for step in others:
        assert all(job.filled(value) is not None for value in step["with"].values())
        assert step["if"].startswith("always() && "), "results are kept also where the gate fails"
        assert re.sub(r"steps\.measure\.outputs\.results", "", step["if"]) == "always() &&  != ''"
    written = {name for step in STEPS for name in re.findall(r"echo \"(\w+)=", step.get("run", ""))}
    assert {each["value"].rpartition(".")[2].rstrip(" }") for each in ACTION["outputs"].values()} == written


def test_an_input_in_the_guide_is_an_input(repository: Path) -> None:
    guide = (repository / "docs" / "guide" / "guard-a-change.md").read_text()
    block = re.search(r"uses: freestone/freestone@main\n\s+with:\n((?:\s+[\w-]+:.*\n)+)", guide)
    assert block
    assert set(re.findall(r"^\s+([\w-]+):", block[1], re.MULTILINE)) <= set(ACTION["inputs"])
