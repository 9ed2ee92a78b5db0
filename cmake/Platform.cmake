# The compiler for C, if it makes programs for a 64-bit Linux; else one line says what it makes. allocator/src/platform.h asks the same of
# compilers that come without CMake.

set(needs "Freestone needs a 64-bit Linux (docs/reference/platforms.md)")

if(NOT CMAKE_SYSTEM_NAME STREQUAL Linux)
  message(FATAL_ERROR "${needs}: this is for ${CMAKE_SYSTEM_NAME}")
endif()

# Compiled only, not linked: a compiler for 32 bits often comes without a C library, and would be called broken.
set(told_of_trials "${CMAKE_TRY_COMPILE_TARGET_TYPE}")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
enable_language(C)
set(CMAKE_TRY_COMPILE_TARGET_TYPE "${told_of_trials}")

include(CheckCSourceCompiles)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
check_c_source_compiles("#if !defined(__linux__) || !defined(__LP64__)
                         #error
                         #endif
                         int of_64_bits;"
                        FREESTONE_LINUX_OF_64_BITS)
set(CMAKE_TRY_COMPILE_TARGET_TYPE "${told_of_trials}")
if(NOT FREESTONE_LINUX_OF_64_BITS)
  string(STRIP "${CMAKE_C_COMPILER} ${CMAKE_C_FLAGS}" compiler)
  message(FATAL_ERROR "${needs}: ${compiler} makes programs for another system")
endif()

check_c_source_compiles("int main(void) { return 0; }" FREESTONE_LINKS_PROGRAMS)
if(NOT FREESTONE_LINKS_PROGRAMS)
  message(FATAL_ERROR "${CMAKE_C_COMPILER} compiles, and links no program; is the C library for it installed (Debian: libc6-dev)?")
endif()
