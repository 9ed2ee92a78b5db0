# freestone_strict: what every C target of this repository is compiled with.
#
#   target_link_libraries(mine PRIVATE freestone_strict)

add_library(freestone_strict INTERFACE)
target_compile_options(freestone_strict INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Werror -Wconversion>)
