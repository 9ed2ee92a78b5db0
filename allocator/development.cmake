# What a C or C++ program that links the library needs, with what CMake and pkg-config want to know. The folder may be moved.
#
#   cmake --install build --component development --prefix /usr/local

include(CMakePackageConfigHelpers)

set(made "${CMAKE_CURRENT_BINARY_DIR}/development")
file(MAKE_DIRECTORY "${made}")
file(CREATE_LINK ${freestone_soname} "${made}/libfreestone.so" SYMBOLIC)

set(config_folder "${CMAKE_INSTALL_LIBDIR}/cmake/freestone")
set(freestone_libraries "${CMAKE_INSTALL_LIBDIR}")
set(freestone_headers "${CMAKE_INSTALL_INCLUDEDIR}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/freestone-config.cmake.in" "${made}/freestone-config.cmake"
  INSTALL_DESTINATION "${config_folder}" PATH_VARS freestone_libraries freestone_headers)
write_basic_package_version_file("${made}/freestone-config-version.cmake" VERSION "${PROJECT_VERSION}" COMPATIBILITY SameMajorVersion)

file(RELATIVE_PATH freestone_prefix_from_pc "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" freestone_prefix_from_pc "${freestone_prefix_from_pc}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/freestone.pc.in" "${made}/freestone.pc" @ONLY)

# A library's file is executable where the platform's linker makes it so; the loader asks for no more than that it can be read.
install(FILES $<TARGET_FILE:freestone> RENAME ${freestone_soname} DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        EXCLUDE_FROM_ALL COMPONENT development)
install(FILES "${made}/libfreestone.so" DESTINATION "${CMAKE_INSTALL_LIBDIR}" EXCLUDE_FROM_ALL COMPONENT development)
install(TARGETS freestone_static EXCLUDE_FROM_ALL COMPONENT development ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES include/freestone.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" EXCLUDE_FROM_ALL COMPONENT development)
install(FILES "${made}/freestone-config.cmake" "${made}/freestone-config-version.cmake" DESTINATION "${config_folder}"
        EXCLUDE_FROM_ALL COMPONENT development)
install(FILES "${made}/freestone.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" EXCLUDE_FROM_ALL COMPONENT development)
