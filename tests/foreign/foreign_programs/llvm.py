"""LLVM's just-in-time compiler, in a library that Python loads with RTLD_LOCAL: it registers the frames of its code."""

from __future__ import annotations

from pathlib import Path

from foreign_programs.opened_deep import in_each_mode
from foreign_programs.program import Program
from foreign_programs.room import Room

PYTHON = "/usr/bin/python3"
"""The system's: the package belongs to it."""

SCRIPT = '''
import llvmlite.binding as llvm
from ctypes import CFUNCTYPE, c_double
llvm.initialize()
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
for number in range(50):
    module = llvm.parse_assembly(f"""
        define double @add(double %a, double %b) uwtable {{
          %r = fadd double %a, %b
          %s = fmul double %r, {number}.0
          ret double %s
        }}
    """)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    engine.run_static_constructors()
    add = CFUNCTYPE(c_double, c_double, c_double)(engine.get_function_address("add"))
    print(number, add(1.0, 2.5))
    engine.close()
'''


def work(room: Room) -> None:
    in_each_mode(room, [PYTHON, "-c", SCRIPT])


LLVM = Program(
    name="llvm-jit",
    what="50 modules compiled, run and closed; also guard=1 and harden=1",
    package="python3-llvmlite",
    needs=("/usr/lib/python3/dist-packages/llvmlite/__init__.py",),
    images=(Path(PYTHON).resolve().name,),
    work=work,
    version=(PYTHON, "-c", "from llvmlite.binding import llvm_version_info as of; print(*of, sep='.')"),
)
