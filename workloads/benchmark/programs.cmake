# Programs written with Google Benchmark, where that is here.

find_cxx_package(benchmark)
if(benchmark_FOUND)
  add_executable(workload-sizes-benchmark benchmark/sizes.cpp)
  target_link_libraries(workload-sizes-benchmark PRIVATE benchmark::benchmark)
  target_compile_options(workload-sizes-benchmark PRIVATE
    -Wall -Wextra -Werror -Wconversion
    -fno-builtin-malloc -fno-builtin-free -fno-builtin-calloc -fno-builtin-realloc)
  set_target_properties(workload-sizes-benchmark PROPERTIES
    CXX_STANDARD 17
    CXX_STANDARD_REQUIRED ON
    OUTPUT_NAME sizes-benchmark
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/workloads/programs")
  install(TARGETS workload-sizes-benchmark RUNTIME DESTINATION "${FREESTONE_NATIVE_DIR}/workloads")
endif()
