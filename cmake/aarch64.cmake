# A toolchain file: aarch64 on another machine, with Debian's cross compiler, its programs run by an emulator.
#
#   cmake -S . -B build/aarch64 --toolchain cmake/aarch64.cmake      (make test-aarch64)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
find_program(aarch64_cxx NAMES aarch64-linux-gnu-g++)
if(aarch64_cxx)
  set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
else() # not this machine's own
  set(CMAKE_CXX_COMPILER CMAKE_CXX_COMPILER-NOTFOUND)
endif()

set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# FREESTONE_PAGE_BYTES: what the emulated kernel says its pages are; 4, 16 and 64 KiB exist on this architecture.
set(FREESTONE_PAGE_BYTES 4096 CACHE STRING "4096, 16384 or 65536")
set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-aarch64-static -R 0x400000000 -L /usr/aarch64-linux-gnu -p ${FREESTONE_PAGE_BYTES})
