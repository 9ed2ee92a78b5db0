"""The folder of the reports: in memory where it can be, and never left there for long."""

from __future__ import annotations

import os
import subprocess
import time

from freestone.trials import shelf


def test_without_a_memory_folder_the_other_one_is_used(tmp_path):
    folder = shelf.new_folder(tmp_path, memory=tmp_path / "none")
    assert folder.parent == tmp_path


def test_only_old_folders_of_ended_processes_are_cleared(tmp_path):
    with subprocess.Popen(["true"]) as ended:
        pass
    now = time.time()
    names = {
        "gone": (f"freestone-{ended.pid}-abc", now - 7200),
        "recent": (f"freestone-{ended.pid}-def", now - 60),
        "alive": (f"freestone-{os.getpid()}-abc", now - 7200),
        "other": ("somebody-elses", now - 7200),
    }
    for name, changed in names.values():
        (tmp_path / name).mkdir()
        (tmp_path / name / "1-2").write_text("report")
        os.utime(tmp_path / name, (changed, changed))
    shelf.clear(tmp_path, now_s=now)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {name for kind, (name, _) in names.items() if kind != "gone"}
