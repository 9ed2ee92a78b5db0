"""git makes the same history, and packs and checks it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
set -e
git init -q -b main .
for round in 1 2 3 4 5 6; do
    for number in $(seq 1 60); do
        mkdir -p "room$((number % 7))"
        { seq 1 $((number * 20)); echo "round $round"; seq $((round * 100)) $((round * 100 + number * 10)); } \
            > "room$((number % 7))/file$number.txt"
    done
    git add -A
    git commit -q -m "Round $round"
    git tag "round-$round"
done
git branch side round-3
git checkout -q side
echo side > side.txt
git add side.txt
git commit -q -m "A side"
git checkout -q main
git merge -q -m "Take the side" side
git log --stat --format='%H %an %s' | cat
git blame room3/file3.txt | tail -3
git diff round-1 main | sha256sum
git repack -q -a -d -f --depth=20 --window=20 --threads=2
git gc -q
git fsck --full --strict
git rev-parse HEAD main side
git archive --format=tar main | sha256sum
git clone -q . clone
git -C clone log --oneline | sha256sum
"""


@pytest.mark.long
def test_the_same_history(bench: Any, program: Callable[..., str]) -> None:
    git = program("git")
    identity = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in {"NAME": "A", "EMAIL": "a@example.org", "DATE": "2026-01-02T03:04:05Z"}.items()
    }
    extra = {**identity, "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER": "cat"}

    def work(folder: Path, served: bool) -> Any:
        (folder / "home").mkdir()
        (folder / "tree").mkdir()
        return bench.one(["sh", "-c", f"cd tree\n{SCRIPT}"], folder, served=served, extra=extra)

    system, served = bench.both(work, [Path(git).resolve().name])
    assert system.stdout.count(b"\n") > 300
    assert served.stdout == system.stdout
