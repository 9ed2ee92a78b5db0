# One program twice, without optimisation and with: what a compiler can do about allocation. Where TBB is here.

find_cxx_package(TBB)
if(TBB_FOUND AND TARGET TBB::tbbmalloc)
  foreach(level IN ITEMS O0 O3)
    add_executable(workload-parallel-${level} parallel/parallel.cpp)
    target_link_libraries(workload-parallel-${level} PRIVATE TBB::tbb TBB::tbbmalloc)
    # Behind CMake's own -O2, the last one counts.
    target_compile_options(workload-parallel-${level} PRIVATE -Wall -Wextra -Werror -Wconversion -${level})
    set_target_properties(workload-parallel-${level} PROPERTIES
      CXX_STANDARD 17
      CXX_STANDARD_REQUIRED ON
      OUTPUT_NAME parallel-${level}
      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/workloads/programs")
    install(TARGETS workload-parallel-${level} RUNTIME DESTINATION "${FREESTONE_NATIVE_DIR}/workloads")
  endforeach()
endif()
