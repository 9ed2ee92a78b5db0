# Sick programs for the doctor, which are no benchmarks: each has one fault, or two, on purpose.

set(patients_folder "${CMAKE_CURRENT_LIST_DIR}")
# What is sick is calls: the compiler must not delete a malloc with its free, nor make one call of two.
set(patients_options -fno-builtin-malloc -fno-builtin-free -fno-builtin-calloc -fno-builtin-realloc)

add_library(patient STATIC "${patients_folder}/patient.c")
target_link_libraries(patient PUBLIC freestone_strict Threads::Threads)
target_compile_options(patient PUBLIC ${patients_options})

add_executable(patients-own-heap "${patients_folder}/own_heap.c")
add_executable(matrices "${patients_folder}/matrices.c")
set(patients_programs patients-own-heap matrices)
# These fall ill by glibc's knobs, which other C libraries do not have.
include(CheckSymbolExists)
check_symbol_exists(M_ARENA_MAX malloc.h patients_have_knobs)
if(patients_have_knobs)
  add_executable(patients
    "${patients_folder}/patients.c" "${patients_folder}/time.c" "${patients_folder}/memory.c" "${patients_folder}/both.c"
    "${patients_folder}/cases.c" "${patients_folder}/well.c")
  list(APPEND patients_programs patients)
endif()
foreach(program IN LISTS patients_programs)
  target_link_libraries(${program} PRIVATE patient)
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endforeach()

# One for another C library, where there is a compiler for it.
if(NOT CMAKE_CROSSCOMPILING)
  find_program(patients_musl_compiler NAMES musl-gcc)
endif()
if(patients_musl_compiler)
  set(musl_patient "${PROJECT_BINARY_DIR}/patients-musl")
  add_custom_command(OUTPUT "${musl_patient}"
    COMMAND "${patients_musl_compiler}" -std=c17 -O2 -Wall -Wextra -Werror ${patients_options} -o "${musl_patient}"
            "${patients_folder}/musl_contention.c" "${patients_folder}/patient.c" -pthread
    DEPENDS "${patients_folder}/musl_contention.c" "${patients_folder}/patient.c" "${patients_folder}/patient.h"
    VERBATIM)
  add_custom_target(patients-musl ALL DEPENDS "${musl_patient}")
endif()
