# The compiler for C, if it makes programs for a 64-bit Linux; else one line says what it makes, in the words of allocator/src/platform.h, which asks
# compilers that come without CMake.

set(needs "Freestone needs a 64-bit Linux (docs/reference/platforms.md)")

if(NOT CMAKE_SYSTEM_NAME STREQUAL Linux)
  message(FATAL_ERROR "${needs}: this is for ${CMAKE_SYSTEM_NAME}")
endif()

# Asked before CMake looks at the compiler: one for 32 bits often comes without a C library, and would be called broken. What CMake finds out then
# (where libraries lie, say) it finds by linking, so its own look stays as it is.
set(asked "${CMAKE_C_COMPILER}")
if(NOT asked)
  set(asked "$ENV{CC}")
endif()
if(NOT asked)
  set(asked cc)
endif()
separate_arguments(asked UNIX_COMMAND "${asked} $ENV{CFLAGS} ${CMAKE_C_FLAGS}")
execute_process(COMMAND ${asked} -fsyntax-only -x c "${PROJECT_SOURCE_DIR}/allocator/src/platform.h"
  RESULT_VARIABLE refused OUTPUT_QUIET ERROR_VARIABLE said)
if(NOT refused EQUAL 0 AND said MATCHES "Freestone needs")
  list(JOIN asked " " asked)
  message(FATAL_ERROR "${needs}: ${asked} makes programs for another system")
endif()

enable_language(C)
