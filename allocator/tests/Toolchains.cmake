# The same library and the same programs by other compilers and libcs than the build's own: each is built by plain
# commands, since CMake knows one compiler per language.
#
#   other_compiler_flavour   clang where the build uses gcc, gcc where it uses clang; empty where there is only one
#   musl_flavours            musl-preload, musl-shared, musl-static; empty without musl-gcc

get_target_property(library_sources freestone_objects SOURCES)
get_target_property(library_sources_shared freestone_objects_shared SOURCES)
get_target_property(library_sources_static freestone_objects_static SOURCES)
get_target_property(library_folder freestone_objects SOURCE_DIR)
foreach(list library_sources library_sources_shared library_sources_static)
  list(TRANSFORM ${list} PREPEND "${library_folder}/" REGEX "^[^/]")
endforeach()
get_target_property(library_options freestone_objects COMPILE_OPTIONS)
file(GLOB_RECURSE library_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/allocator/*.h")
set(toolchain_flavours)

# Compiles libfreestone by `compiler` into a folder of its own: libfreestone.so and libfreestone.a.
function(toolchain_library name compiler)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  set(compile ${compiler} ${ARGN} -std=gnu17 -O2 -g -Wall -Wextra -Werror -Wconversion -fPIC -fvisibility=hidden
      ${library_options} -D_GNU_SOURCE "-DFREESTONE_BUILD_VERSION=\"${PROJECT_VERSION}\""
      "-I${PROJECT_SOURCE_DIR}/allocator/include" -c)
  add_custom_command(
    OUTPUT "${folder}/libfreestone.so" "${folder}/libfreestone.a"
    # The objects of sources that are no longer there must not be linked.
    COMMAND ${CMAKE_COMMAND} -E rm -rf "${folder}/both" "${folder}/shared" "${folder}/static" "${folder}/libfreestone.a"
    COMMAND ${CMAKE_COMMAND} -E make_directory "${folder}/both" "${folder}/shared" "${folder}/static"
    COMMAND sh -c "cd '${folder}/both' && exec \"$@\"" sh ${compile} ${library_sources}
    COMMAND sh -c "cd '${folder}/shared' && exec \"$@\"" sh ${compile} ${library_sources_shared}
    COMMAND sh -c "cd '${folder}/static' && exec \"$@\"" sh ${compile} ${library_sources_static}
    COMMAND sh -c "ar rcs '${folder}/libfreestone.a' '${folder}'/both/*.o '${folder}'/static/*.o"
    COMMAND sh -c "${compiler} -shared -pthread -nostartfiles -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -o '${folder}/libfreestone.so' '${folder}'/both/*.o '${folder}'/shared/*.o"
    DEPENDS ${library_sources} ${library_sources_shared} ${library_sources_static} ${library_headers}
    COMMENT "Building libfreestone by ${compiler}"
    VERBATIM)
  add_custom_target(test-library-${name} ALL DEPENDS "${folder}/libfreestone.so" "${folder}/libfreestone.a")
endfunction()

# Compiles a source by a toolchain: `output` among the programs of the toolchain, once for all that want it.
function(toolchain_object toolchain source output definitions)
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${toolchain}/programs/${output}")
  get_property(known GLOBAL PROPERTY toolchain_objects)
  if(object IN_LIST known)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY toolchain_objects "${object}")
  get_filename_component(folder "${object}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
  add_custom_command(
    OUTPUT "${object}"
    COMMAND ${${toolchain}_compiler} ${${toolchain}_options} -std=gnu17 -O2 -g ${behaviour_options} ${definitions}
            -D_GNU_SOURCE "-I${CMAKE_CURRENT_SOURCE_DIR}" "-I${PROJECT_SOURCE_DIR}/allocator/include" -pthread
            -c "${source}" -o "${object}"
    DEPENDS "${source}" ${library_headers}
    VERBATIM)
endfunction()

# Builds one program in a flavour of the form toolchain or toolchain-way. Those that are linked differ by that alone, and
# have their objects in common.
function(toolchain_program name flavour)
  string(REGEX MATCH "^[^-]+" toolchain ${flavour})
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${toolchain}")
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${flavour}/${name}")
  file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/${flavour}")
  set(proof serving.c)
  set(way linked)
  set(definitions)
  if(flavour MATCHES "-preload$")
    set(way preload)
    set(libraries)
    set(definitions -DFREESTONE_TESTS_PRELOAD)
  elseif(flavour MATCHES "-shared$")
    set(libraries -Wl,--no-as-needed "${folder}/libfreestone.so" "-Wl,-rpath,${folder}")
  elseif(flavour MATCHES "-static$")
    set(libraries "${folder}/libfreestone.a" -static)
    set(proof serving_static.c)
  else()
    set(libraries "${folder}/libfreestone.a")
  endif()
  set(objects)
  foreach(source ${ARGN} ${proof})
    string(REGEX REPLACE "\\.c$" ".o" object "${way}/${source}")
    toolchain_object(${toolchain} ${source} ${object} "${definitions}")
    list(APPEND objects "${folder}/programs/${object}")
  endforeach()
  add_custom_command(
    OUTPUT "${output}"
    COMMAND ${${toolchain}_compiler} -pthread ${objects} ${libraries} -o "${output}"
    DEPENDS ${objects} test-library-${toolchain} "${folder}/libfreestone.so" "${folder}/libfreestone.a"
    VERBATIM)
  add_custom_target(test-${name}-${flavour} ALL DEPENDS "${output}")
  set_property(GLOBAL PROPERTY behaviour_file_${name}_${flavour} "${output}")
endfunction()

# --- the other compiler ---------------------------------------------------------------------------------------------

if(CMAKE_C_COMPILER_ID STREQUAL "Clang")
  set(other gcc)
else()
  set(other clang)
endif()
if(NOT CMAKE_CROSSCOMPILING AND NOT FREESTONE_YIELDS) # which are gcc's
  find_program(${other}_compiler NAMES ${other})
endif()
if(${other}_compiler)
  set(other_compiler_flavour ${other})
  list(APPEND toolchain_flavours ${other})
  toolchain_library(${other} "${${other}_compiler}")
else()
  set(other_compiler_flavour)
  message(STATUS "allocator/tests: the second compiler's flavour is left out, there is no ${other}")
endif()

# --- musl -----------------------------------------------------------------------------------------------------------

if(NOT CMAKE_CROSSCOMPILING)
  find_program(musl_compiler NAMES musl-gcc)
endif()
if(musl_compiler)
  # The wrapper hides every header but musl's own, the kernel's among them.
  set(musl_options -idirafter /usr/include -idirafter "/usr/include/${CMAKE_C_LIBRARY_ARCHITECTURE}")
  set(musl_flavours musl-preload musl-shared musl-static)
  set(musl_library "${CMAKE_CURRENT_BINARY_DIR}/musl/libfreestone.so")
  list(APPEND toolchain_flavours ${musl_flavours})
  toolchain_library(musl "${musl_compiler}" ${musl_options})
else()
  set(musl_flavours)
  message(STATUS "allocator/tests: the musl flavours are left out, there is no musl-gcc (Debian: musl-tools)")
endif()
