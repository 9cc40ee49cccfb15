# SPDX-License-Identifier: Apache-2.0
# The CMake package and the pkg-config file, documents, examples and bindings.
include(CMakePackageConfigHelpers)

install(
  TARGETS compute compute_cxx compute_headers
  EXPORT ComputeTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          COMPONENT runtime
          NAMELINK_COMPONENT development
  FILE_SET HEADERS
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  COMPONENT development)
install(
  EXPORT ComputeTargets
  NAMESPACE Compute::
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Compute"
  COMPONENT development)

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/ComputeConfig.cmake.in" "${PROJECT_BINARY_DIR}/package/ComputeConfig.cmake"
  INSTALL_DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Compute")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/ComputeConfigVersion.cmake" COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/package/ComputeConfig.cmake" "${PROJECT_BINARY_DIR}/package/ComputeConfigVersion.cmake"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Compute" COMPONENT development)

# The documents, with the paths under which headers and programs name them: docs/ops.md and so on.
set(COMPUTE_INSTALL_DOCDIR "${CMAKE_INSTALL_DATAROOTDIR}/doc/compute")
set(data_dir "${CMAKE_INSTALL_DATADIR}/compute")
set(examples_dir "${data_dir}/examples")
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE DESTINATION "${COMPUTE_INSTALL_DOCDIR}" COMPONENT development)
install(DIRECTORY docs DESTINATION "${COMPUTE_INSTALL_DOCDIR}" COMPONENT development PATTERN docs/benchmarks EXCLUDE)

# Programs, a plugin and packages to copy, without build products.
set(built PATTERN target EXCLUDE PATTERN Cargo.lock EXCLUDE PATTERN compute*.mod EXCLUDE PATTERN *.node EXCLUDE PATTERN __pycache__ EXCLUDE)
install(FILES LICENSE DESTINATION "${data_dir}" COMPONENT development)
install(
  DIRECTORY examples/
  DESTINATION "${examples_dir}"
  COMPONENT development
  FILES_MATCHING
  PATTERN "*.c"
  PATTERN "*.cpp"
  PATTERN "*.hpp"
  PATTERN "*.py"
  PATTERN "CMakeLists.txt"
  PATTERN plugin_* EXCLUDE)
install(DIRECTORY tests/plugins/minimal/ DESTINATION "${examples_dir}/plugin" COMPONENT plugin_development FILES_MATCHING PATTERN "*.cpp" PATTERN "*.hpp")
install(FILES tests/plugins/minimal/outside/CMakeLists.txt DESTINATION "${examples_dir}/plugin" COMPONENT plugin_development)
install(DIRECTORY examples/plugin_rust examples/plugin_template DESTINATION "${examples_dir}" COMPONENT plugin_development ${built})
install(DIRECTORY examples/languages DESTINATION "${examples_dir}" COMPONENT development ${built})
install(DIRECTORY bindings/python DESTINATION "${data_dir}/bindings" COMPONENT development ${built})
if(TARGET compute_packages) # tools/opgen
  install(DIRECTORY bindings/fortran bindings/go bindings/rust DESTINATION "${data_dir}/bindings" COMPONENT development ${built})
  install(FILES "${PROJECT_BINARY_DIR}/bindings/fortran/ops.f90" DESTINATION "${data_dir}/bindings/fortran" COMPONENT development)
  install(FILES "${PROJECT_BINARY_DIR}/bindings/go/ops.go" DESTINATION "${data_dir}/bindings/go" COMPONENT development)
  install(FILES "${PROJECT_BINARY_DIR}/bindings/rust/src/ops.rs" DESTINATION "${data_dir}/bindings/rust/src" COMPONENT development)
endif()
install(FILES plugins/plugin.map DESTINATION "${examples_dir}/plugin" COMPONENT plugin_development RENAME minimal.map)
install(PROGRAMS tools/compute-new-plugin DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT plugin_development)

# Pages name headers, examples, packages and each other by their paths in the source tree. Symbolic links lead from there to the installed files.
function(compute_install_link path target)
  cmake_path(GET path PARENT_PATH folder)
  cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE base)
  cmake_path(ABSOLUTE_PATH target BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
  cmake_path(RELATIVE_PATH target BASE_DIRECTORY "${base}")
  set(link "${PROJECT_BINARY_DIR}/package/${path}")
  cmake_path(GET link PARENT_PATH link_folder)
  file(MAKE_DIRECTORY "${link_folder}")
  file(CREATE_LINK "${target}" "${link}" SYMBOLIC)
  install(FILES "${link}" DESTINATION "${folder}" COMPONENT development)
endfunction()
compute_install_link("${COMPUTE_INSTALL_DOCDIR}/api/compute" "${CMAKE_INSTALL_INCLUDEDIR}/compute")
compute_install_link("${COMPUTE_INSTALL_DOCDIR}/bindings" "${data_dir}/bindings")
compute_install_link("${COMPUTE_INSTALL_DOCDIR}/examples" "${examples_dir}")
compute_install_link("${data_dir}/docs" "${COMPUTE_INSTALL_DOCDIR}/docs")

# The prefix is relative to the file, so the installed tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE
           pkgconfig_to_prefix)
configure_file("${CMAKE_CURRENT_LIST_DIR}/compute.pc.in" "${PROJECT_BINARY_DIR}/package/compute.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package/compute.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)
