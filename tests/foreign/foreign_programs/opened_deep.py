"""PHP and ldb: both open their modules with RTLD_DEEPBIND, past every preload that leaves the flag alone."""

from __future__ import annotations

import shutil
from pathlib import Path

from foreign_programs.program import Program, of_package
from foreign_programs.room import Room

MODES = ("", "guard=1", "harden=1")
"""Values of FREESTONE_OPTIONS; glibc's malloc knows nothing of them."""

PHP_SCRIPT = """
$words = [];
for ($i = 0; $i < 20000; $i++) { $words[md5((string)$i)] = str_repeat(chr(97 + $i % 26), $i % 300); }
ksort($words);
echo hash('sha256', json_encode($words)), "\\n";
echo hash('sha256', gzcompress(implode(',', $words), 9)), "\\n";
echo preg_match_all('/a[0-9]+/', implode(' ', array_keys($words))), "\\n";
echo implode(' ', get_loaded_extensions()), "\\n";
"""

LDB_SCRIPT = """
set -e
for number in $(seq 1 200); do
    printf 'dn: cn=name%s\\ncn: name%s\\nsize: %s\\n\\n' "$number" "$number" $((number % 7))
done > names.ldif
rm -f names.ldb
ldbadd -H tdb://names.ldb names.ldif
ldbsearch -H tdb://names.ldb '(size=3)' cn | grep '^dn' | sort | sha256sum
ldbdel -H tdb://names.ldb cn=name3
ldbsearch -H tdb://names.ldb '(cn=*)' cn | grep -c '^dn'
"""


def in_each_mode(room: Room, command: list[str]) -> None:
    for mode in MODES:
        done = room.run(command, extra={"FREESTONE_OPTIONS": mode} if mode else None)
        for number, line in enumerate(done.text.splitlines()):
            room.fact(f"{mode or 'default'}, line {number}", line)


def php(room: Room) -> None:
    in_each_mode(room, ["php", "-r", PHP_SCRIPT])


def ldb(room: Room) -> None:
    in_each_mode(room, ["sh", "-c", LDB_SCRIPT])


PHP = Program(
    name="php",
    what="arrays, JSON, zlib and regular expressions; modules opened with RTLD_DEEPBIND; also guard=1 and harden=1",
    package="php-cli",
    needs=("php",),
    images=(Path(shutil.which("php") or "php").resolve().name,),
    work=php,
    version=("php", "--version"),
)
LDB = Program(
    name="ldb",
    what="200 records added, searched and deleted; modules opened with RTLD_DEEPBIND; also guard=1 and harden=1",
    package="ldb-tools",
    needs=("ldbadd", "ldbsearch"),
    images=("ldbadd", "ldbsearch"),
    work=ldb,
    version=of_package("ldb-tools"),
)
