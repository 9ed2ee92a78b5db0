"""git: many commits, merges and a rename, packed hard by two threads, checked, cloned, fetched and bundled."""

from __future__ import annotations

from foreign_programs.program import Program
from foreign_programs.room import Room

ROUNDS = 60
# index-pack says a pack's name after a tab, which tells the deltas that two threads happened to find: cut off there.
SCRIPT = f"""
set -e
git init -q -b main tree
cd tree
for round in $(seq 1 {ROUNDS}); do
    for number in $(seq 1 40); do
        mkdir -p "room$((number % 7))"
        {{ seq 1 $((number * 20)); echo "round $round"; seq $((round * 100)) $((round * 100 + number * 10)); }} \\
            > "room$((number % 7))/file$number.txt"
    done
    git add -A
    git commit -q -m "Round $round"
    [ $((round % 10)) = 0 ] && git tag -a -m "Tag $round" "round-$round"
done
git checkout -q -b side round-30
git mv room3 chamber3
git commit -q -m "A room by another name"
git checkout -q main
git merge -q -m "Take the side" side
git config core.packedGitLimit 64m
git -c pack.threads=2 gc -q --aggressive --prune=now
git -c pack.threads=2 repack -q -a -d -f --window=50 --depth=50
git fsck --full --strict
git rev-list --objects --all | sort | sha256sum
git log --stat --format='%H %an %s' | sha256sum
git log --follow --format=%H chamber3/file3.txt | sha256sum
git blame room4/file4.txt | sha256sum
git diff -M round-10 main | sha256sum
git grep -c 59 main | sha256sum
git archive --format=tar main | sha256sum
git count-objects -v | grep -E 'count|in-pack|garbage'
git bundle create -q ../all.bundle --all
cd ..
git clone -q --no-local tree clone
git -C clone -c pack.threads=2 index-pack --threads=2 --strict \\
    --stdin < "$(ls tree/.git/objects/pack/*.pack)" | cut -f 1
git -C clone fsck --full
git clone -q --bare --depth 3 "file://$PWD/tree" shallow
git -C shallow rev-list --count --all
git clone -q all.bundle unbundled
git -C unbundled rev-parse HEAD
cd clone
git checkout -q -b topic round-20
for number in $(seq 1 10); do
    seq 1 $((number * 30)) > topic$number.txt
    git add -A
    git commit -q -m "Topic $number"
done
git rebase -q main
git rev-parse HEAD
"""


def work(room: Room) -> None:
    identity = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in {"NAME": "A", "EMAIL": "a@example.org", "DATE": "2026-01-02T03:04:05Z"}.items()
    }
    extra = {**identity, "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER": "cat"}
    done = room.run(["sh", "-c", SCRIPT], extra=extra)
    for number, line in enumerate(done.text.splitlines()):
        room.fact(f"line {number}", line)


GIT = Program(
    name="git",
    what=f"{ROUNDS} commits, merge, gc --aggressive, repack and index-pack by two threads, fsck, clones, rebase",
    package="git",
    needs=("git",),
    images=("git",),
    work=work,
    version=("git", "--version"),
)
