"""Which foreign programs there are, in the order they are run."""

from __future__ import annotations

from foreign_programs import (
    compilers,
    cpython,
    faketime,
    git,
    guest,
    java,
    llvm,
    mariadb,
    mpi,
    nginx,
    node,
    opened_deep,
    plugin,
    postgres,
    redis,
    stress,
    ucx,
)
from foreign_programs.program import Program

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
        guest.GUEST,
        mpi.MPI,
        faketime.FAKETIME,
        ucx.UCX,
        plugin.PLUGIN,
        opened_deep.PHP,
        opened_deep.LDB,
        llvm.LLVM,
        cpython.CHOSEN,
        cpython.WHOLE,
    )
}
