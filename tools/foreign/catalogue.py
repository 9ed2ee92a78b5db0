"""Which foreign programs there are, in the order they are run."""

from __future__ import annotations

from foreign.program import Program
from foreign.programs import compilers, git, redis

PROGRAMS: dict[str, Program] = {
    one.name: one
    for one in (
        redis.REDIS,
        git.GIT,
        compilers.GCC,
        compilers.CLANG,
    )
}
