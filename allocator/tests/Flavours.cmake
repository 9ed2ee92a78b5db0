# behaviour_program(NAME SOURCES ... FLAVOURS ... [LIBRARIES ...])
#   builds NAME once per flavour.
# behaviour(TEST PROGRAM NAME [FLAVOURS ...] [ARGUMENTS ...] [LAUNCHER ...] [ENVIRONMENT ...] [LABELS ...] [TIMEOUT s]
#           [ONLY_WITH VARIABLE] [WITHOUT_LIBRARY])
#   runs it in those flavours (all it is built in), as TEST.flavour.
#
# `bare` is a program that is not served by the library: a launcher, or one that loads it itself.
#
# For another machine than this one every program is run by CMAKE_CROSSCOMPILING_EMULATOR, a launcher too: what it starts
# is the emulator once more.

include(CheckLanguage)
include(CheckCSourceCompiles)

check_language(CXX)
if(CMAKE_CXX_COMPILER)
  enable_language(CXX)
else()
  message(STATUS "allocator/tests: the C++ behaviours are left out, there is no C++ compiler")
endif()

set(CMAKE_REQUIRED_LINK_OPTIONS -static)
check_c_source_compiles("#include <stdlib.h>\nint main(void) { free(malloc(1)); return 0; }" FREESTONE_TESTS_STATIC_LIBC)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
if(FREESTONE_TESTS_STATIC_LIBC)
  set(static_flavour static)
else()
  set(static_flavour)
  message(STATUS "allocator/tests: the static flavour is left out, there is no static libc")
endif()

# What every program here is compiled with. The compiler must not know what malloc is: it would drop the very calls
# under test.
set(behaviour_options -fno-builtin -Wall -Wextra -Werror -Wconversion)

function(behaviour_target target flavour)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  target_compile_options(${target} PRIVATE ${behaviour_options})
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}"
    $<TARGET_PROPERTY:freestone,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
  if(flavour STREQUAL preload)
    target_compile_definitions(${target} PRIVATE FREESTONE_TESTS_PRELOAD)
  elseif(flavour STREQUAL shared)
    # Needed whether or not a symbol of it is left to resolve, as a user's program would say.
    target_link_libraries(${target} PRIVATE -Wl,--no-as-needed freestone)
  elseif(flavour STREQUAL archive)
    target_link_libraries(${target} PRIVATE freestone_static)
  elseif(flavour STREQUAL static)
    target_link_libraries(${target} PRIVATE freestone_static)
    target_link_options(${target} PRIVATE -static)
  endif()
endfunction()

# The proof of service is compiled once for all programs, and a program once for the flavours that do not differ in that.
set(linked_flavours shared archive static)

function(behaviour_objects name flavour)
  add_library(${name} OBJECT ${ARGN})
  behaviour_target(${name} ${flavour})
endfunction()

behaviour_objects(test-proof-preload preload serving.c)
behaviour_objects(test-proof-linked bare serving.c)
if(static_flavour)
  behaviour_objects(test-proof-static bare serving_static.c)
endif()

function(behaviour_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;FLAVOURS;LIBRARIES")
  set_property(GLOBAL PROPERTY behaviour_flavours_${name} ${arg_FLAVOURS})
  foreach(flavour ${arg_FLAVOURS})
    if(flavour IN_LIST toolchain_flavours)
      toolchain_program(${name} ${flavour} ${arg_SOURCES})
      continue()
    endif()
    set(target test-${name}-${flavour})
    set(sources ${arg_SOURCES})
    if(flavour IN_LIST linked_flavours)
      if(NOT TARGET test-${name}-linked)
        behaviour_objects(test-${name}-linked bare ${arg_SOURCES})
      endif()
      set(sources $<TARGET_OBJECTS:test-${name}-linked>)
    endif()
    if(flavour STREQUAL bare)
      set(proof)
    elseif(flavour MATCHES "^(preload|static)$")
      set(proof $<TARGET_OBJECTS:test-proof-${flavour}>)
    else()
      set(proof $<TARGET_OBJECTS:test-proof-linked>)
    endif()
    add_executable(${target} ${sources} ${proof})
    behaviour_target(${target} ${flavour})
    target_link_libraries(${target} PRIVATE ${arg_LIBRARIES})
    set_target_properties(${target} PROPERTIES
      OUTPUT_NAME ${name}
      RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/${flavour}")
    set_property(GLOBAL PROPERTY behaviour_file_${name}_${flavour} $<TARGET_FILE:${target}>)
  endforeach()
endfunction()

function(behaviour test)
  cmake_parse_arguments(PARSE_ARGV 1 arg "WITHOUT_LIBRARY" "PROGRAM;TIMEOUT;ONLY_WITH"
                        "FLAVOURS;ARGUMENTS;LAUNCHER;ENVIRONMENT;LABELS")
  if(NOT arg_FLAVOURS)
    get_property(arg_FLAVOURS GLOBAL PROPERTY behaviour_flavours_${arg_PROGRAM})
  endif()
  if(NOT DEFINED arg_TIMEOUT)
    set(arg_TIMEOUT 240)
  endif()
  if(arg_LAUNCHER)
    list(PREPEND arg_LAUNCHER ${CMAKE_CROSSCOMPILING_EMULATOR})
  endif()
  if(arg_ONLY_WITH)
    list(PREPEND arg_LAUNCHER "${CMAKE_CURRENT_SOURCE_DIR}/only-with" ${arg_ONLY_WITH})
  endif()
  foreach(flavour ${arg_FLAVOURS})
    get_property(program GLOBAL PROPERTY behaviour_file_${arg_PROGRAM}_${flavour})
    add_test(NAME ${test}.${flavour} COMMAND ${arg_LAUNCHER} ${CMAKE_CROSSCOMPILING_EMULATOR} ${program} ${arg_ARGUMENTS})
    set(environment ${arg_ENVIRONMENT})
    if(NOT arg_WITHOUT_LIBRARY)
      if(flavour STREQUAL preload)
        list(APPEND environment LD_PRELOAD=$<TARGET_FILE:freestone>)
      elseif(flavour STREQUAL musl-preload)
        list(APPEND environment LD_PRELOAD=${musl_library})
      endif()
    endif()
    set_tests_properties(${test}.${flavour} PROPERTIES
      ENVIRONMENT "${environment}"
      SKIP_RETURN_CODE 77
      TIMEOUT ${arg_TIMEOUT}
      LABELS "${arg_LABELS};${flavour}")
  endforeach()
endfunction()
