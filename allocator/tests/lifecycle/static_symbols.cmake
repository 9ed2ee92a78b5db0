# Proves from the symbol table of a static PROGRAM (read by NM) that libc's own malloc was not linked into it beside
# libfreestone's: glibc's archive member is known by its internal functions, musl's by its own.
execute_process(COMMAND ${NM} ${PROGRAM} OUTPUT_VARIABLE symbols RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${NM} cannot read ${PROGRAM}")
endif()
if(NOT symbols MATCHES "[0-9a-f]+ [A-Z] freestone_identity\n")
  message(FATAL_ERROR "${PROGRAM} does not contain freestone_identity: libfreestone was not linked into it")
endif()
foreach(symbol _int_malloc _int_free __malloc_alloc_meta __libc_malloc_impl)
  if(symbols MATCHES "[0-9a-f]+ [A-Za-z] ${symbol}\n")
    message(FATAL_ERROR "${PROGRAM} contains libc's malloc (${symbol}) beside libfreestone's")
  endif()
endforeach()
