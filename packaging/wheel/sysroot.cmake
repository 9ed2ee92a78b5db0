# A toolchain file: this machine's compiler, and the C library of an older release in FREESTONE_SYSROOT (tools/wheels). What is built runs
# on every machine with that C library or a newer one.
set(FREESTONE_SYSROOT "" CACHE PATH "a folder with the C library's headers, start files and libraries, as tools/wheels makes it")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES FREESTONE_SYSROOT)
set(CMAKE_SYSROOT "${FREESTONE_SYSROOT}")

# A native gcc looks for start files and libraries beside itself first, in this machine's own folder, whatever the root.
file(GLOB libraries "${FREESTONE_SYSROOT}/usr/lib/*-linux-gnu")
if(NOT libraries)
  message(FATAL_ERROR "FREESTONE_SYSROOT is '${FREESTONE_SYSROOT}': there is no C library")
endif()
set(CMAKE_C_FLAGS_INIT "-B${libraries}")
