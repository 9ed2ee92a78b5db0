# find_cxx_package(NAME): what a program in C++ needs beside its source. NAME_FOUND afterwards says whether there is a C++
# compiler with that library here. Never in a wheel: such a program would need the library on every machine it is installed on.
#
# A macro, because a language can be enabled in the scope of a file only.

include(CheckLanguage)

macro(find_cxx_package name)
  if(NOT SKBUILD)
    check_language(CXX)
    if(CMAKE_CXX_COMPILER)
      enable_language(CXX)
      find_package(${name} CONFIG QUIET)
    endif()
  endif()
endmacro()
