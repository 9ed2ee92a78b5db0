# The kernel's own headers (linux/futex.h) for a compiler that does not search /usr/include, as Debian's musl-gcc.
# A folder of links to exactly these is searched last: the whole of /usr/include would hand out glibc's headers too.

include(CheckIncludeFile)
check_include_file(linux/futex.h FREESTONE_HAVE_KERNEL_HEADERS)

if(NOT FREESTONE_HAVE_KERNEL_HEADERS)
  find_program(FREESTONE_SYSTEM_COMPILER NAMES cc gcc clang)
  execute_process(COMMAND "${FREESTONE_SYSTEM_COMPILER}" -dumpmachine
                  OUTPUT_VARIABLE machine OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  string(REPLACE "-pc-" "-" machine "${machine}") # clang says x86_64-pc-linux-gnu, Debian's folder is without pc
  set(headers "${PROJECT_BINARY_DIR}/kernel-headers")
  file(MAKE_DIRECTORY "${headers}")
  foreach(folder linux asm asm-generic)
    foreach(place "/usr/include/${machine}" /usr/include)
      if(EXISTS "${place}/${folder}")
        file(CREATE_LINK "${place}/${folder}" "${headers}/${folder}" SYMBOLIC)
        break()
      endif()
    endforeach()
  endforeach()
  if(NOT EXISTS "${headers}/linux/futex.h")
    message(FATAL_ERROR "${CMAKE_C_COMPILER} finds no kernel headers (linux/futex.h); install linux-libc-dev")
  endif()
  add_compile_options("SHELL:-idirafter \"${headers}\"")
endif()
