# SPDX-License-Identifier: Apache-2.0
# What is installed so that other builds find the library: a CMake package and a pkg-config file.
include(CMakePackageConfigHelpers)

install(
  TARGETS compute compute_headers
  EXPORT ComputeTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  FILE_SET HEADERS
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(
  EXPORT ComputeTargets
  NAMESPACE Compute::
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Compute")

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/ComputeConfig.cmake.in" "${PROJECT_BINARY_DIR}/package/ComputeConfig.cmake"
  INSTALL_DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Compute")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/ComputeConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/package/ComputeConfig.cmake" "${PROJECT_BINARY_DIR}/package/ComputeConfigVersion.cmake"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Compute")

# The prefix is computed from the file's own place, so that an installed tree may be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE
           pkgconfig_to_prefix)
configure_file("${CMAKE_CURRENT_LIST_DIR}/compute.pc.in" "${PROJECT_BINARY_DIR}/package/compute.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package/compute.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
