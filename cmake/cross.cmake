# Included by a toolchain file of another machine, which sets CMAKE_SYSTEM_PROCESSOR, as the emulator calls it, and `debian_machine`, as
# Debian's cross compiler does: what is common to all of them.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${debian_machine}-gcc)
find_program(${CMAKE_SYSTEM_PROCESSOR}_cxx NAMES ${debian_machine}-g++)
if(${CMAKE_SYSTEM_PROCESSOR}_cxx)
  set(CMAKE_CXX_COMPILER ${debian_machine}-g++)
else() # not this machine's own
  set(CMAKE_CXX_COMPILER CMAKE_CXX_COMPILER-NOTFOUND)
endif()

set(CMAKE_FIND_ROOT_PATH /usr/${debian_machine})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# FREESTONE_PAGE_BYTES: what the emulated kernel says its pages are; some machines have several sizes.
set(FREESTONE_PAGE_BYTES 4096 CACHE STRING "4096, 16384 or 65536")
set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-${CMAKE_SYSTEM_PROCESSOR}-static -R 0x400000000 -L /usr/${debian_machine} -p ${FREESTONE_PAGE_BYTES})
# The emulator takes any multiple of 4 KiB for the start of a page, so the library does not find the size there by itself.
set(CMAKE_C_FLAGS_INIT -DOS_PAGE_LEAST=${FREESTONE_PAGE_BYTES})
