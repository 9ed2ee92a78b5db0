# FREESTONE_SANITIZE instruments every target. The whole program has to agree on a sanitizer, so this is one
# option of the tree and not a property of a target.

if(FREESTONE_SANITIZE)
  set(known address undefined thread)
  if(NOT FREESTONE_SANITIZE IN_LIST known)
    message(FATAL_ERROR "FREESTONE_SANITIZE is '${FREESTONE_SANITIZE}'; it must be one of: ${known}")
  endif()
  add_compile_options(-fsanitize=${FREESTONE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FREESTONE_SANITIZE})
endif()
