"""Which foreign programs there are, in the order they are run."""

from __future__ import annotations

from foreign.program import Program
from foreign.programs import compilers, cpython, git, java, mariadb, nginx, node, postgres, redis, stress

PROGRAMS: dict[str, Program] = {
    one.name: one
    for one in (
        redis.REDIS,
        git.GIT,
        compilers.GCC,
        compilers.CLANG,
        stress.STRESS,
        postgres.POSTGRES,
        mariadb.MARIADB,
        nginx.NGINX,
        node.NODE,
        java.JAVA,
        cpython.CHOSEN,
        cpython.WHOLE,
    )
}
