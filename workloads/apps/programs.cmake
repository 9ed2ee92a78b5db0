# Real programs as workloads: wrappers that start them, their scripts and input generators, beside the native programs.

foreach(wrapper served in-folder)
  string(REPLACE "-" "_" source "${wrapper}")
  add_executable(workload-${wrapper} apps/${source}.c apps/child.c apps/folder.c)
  target_link_libraries(workload-${wrapper} PRIVATE freestone_strict)
  set_target_properties(workload-${wrapper} PROPERTIES
    OUTPUT_NAME ${wrapper}
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/workloads/programs")
  install(TARGETS workload-${wrapper} RUNTIME DESTINATION "${FREESTONE_NATIVE_DIR}/workloads/apps")
endforeach()

install(FILES json_sqlite.py DESTINATION "${FREESTONE_NATIVE_DIR}/workloads")
install(FILES everyday/make_inputs.py DESTINATION "${FREESTONE_NATIVE_DIR}/workloads/everyday")
install(FILES apps/keys.pl apps/keys.rb apps/keys.lua apps/rows.sql
  apps/transactions.sql apps/totals.sql DESTINATION "${FREESTONE_NATIVE_DIR}/workloads/apps")
