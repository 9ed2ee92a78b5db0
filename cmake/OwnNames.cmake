# Gives every name that is the library's own business a prefix, in an archive: a program that links it may use names like `registry`
# itself. What the library offers keeps its name, and so does what the linker defines.
#
#   cmake -D ARCHIVE=libfreestone.a -D READELF=... -D OBJCOPY=... -P OwnNames.cmake
execute_process(COMMAND ${READELF} -sW ${ARCHIVE} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "\\[<[^\n]*>: [^\n]*\\]" "" symbols "${symbols}") # where a function of ppc64le has a second entry
string(REGEX MATCHALL "(GLOBAL|WEAK) +HIDDEN +[0-9A-Z]+ +[^\n ]+" hidden "${symbols}")
set(map "")
foreach(symbol IN LISTS hidden)
  string(REGEX REPLACE ".* " "" name "${symbol}")
  if(NOT name MATCHES "^(freestone_|__ehdr_start$|__dso_handle$)")
    list(APPEND map "${name} freestone_own_${name}")
  endif()
endforeach()
list(REMOVE_DUPLICATES map)
list(JOIN map "\n" map)
file(WRITE "${ARCHIVE}.names" "${map}\n")
execute_process(COMMAND ${OBJCOPY} --redefine-syms=${ARCHIVE}.names ${ARCHIVE} COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE "${ARCHIVE}.names")
