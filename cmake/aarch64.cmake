# A toolchain file: aarch64 on another machine, with Debian's cross compiler, its programs run by an emulator.
#
#   cmake -S . -B build/aarch64 --toolchain cmake/aarch64.cmake      (make test-emulated MACHINE=aarch64)

set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(debian_machine aarch64-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
