# A toolchain file: riscv64 on another machine, with Debian's cross compiler, its programs run by an emulator.
#
#   cmake -S . -B build/riscv64 --toolchain cmake/riscv64.cmake      (make test-emulated MACHINE=riscv64)

set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(debian_machine riscv64-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
