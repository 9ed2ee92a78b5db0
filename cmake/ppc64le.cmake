# A toolchain file: ppc64le on another machine, with Debian's cross compiler, its programs run by an emulator.
#
#   cmake -S . -B build/ppc64le --toolchain cmake/ppc64le.cmake      (make test-emulated MACHINE=ppc64le)

set(CMAKE_SYSTEM_PROCESSOR ppc64le)
set(debian_machine powerpc64le-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
