# SPDX-License-Identifier: Apache-2.0
# The kit for plugins that are built outside of this tree: parts of plugins/common as static libraries with their headers. The kit does not belong
# to the ABI: a plugin links its own copy, and the headers may change in every release.

add_library(compute_plugin_interface INTERFACE)
add_library(Compute::plugin ALIAS compute_plugin_interface)
set_target_properties(compute_plugin_interface PROPERTIES EXPORT_NAME plugin)
target_link_libraries(compute_plugin_interface INTERFACE compute_headers)

# compute_add_kit(NAME ROOMS rooms of plugins/common... LIBRARIES kits...)
function(compute_add_kit name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ROOMS;LIBRARIES")
  set(target compute_${name})
  add_library(${target} STATIC)
  add_library(Compute::${name} ALIAS ${target})
  compute_target(${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} LINKER_LANGUAGE CXX)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC compute_plugin_interface ${arg_LIBRARIES})
  foreach(room IN LISTS arg_ROOMS)
    string(REPLACE "/" "_" objects "compute_common_${room}")
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
    file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/plugins/common/${room}/*.hpp")
    foreach(header IN LISTS headers)
      compute_write_kit_header("${header}")
    endforeach()
  endforeach()
  install(TARGETS ${target} EXPORT ComputeKitTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT plugin_development)
endfunction()

# The header as it is installed: <compute_kit/FILE>, from whichever room.
function(compute_write_kit_header header)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
  cmake_path(GET header FILENAME name)
  file(READ "${header}" text)
  string(REGEX REPLACE "\"plugins/common/[a-z/]*/([a-z_]+[.]hpp)\"" "<compute_kit/\\1>" text "${text}")
  string(REPLACE "// SPDX-License-Identifier: Apache-2.0\n" "// SPDX-License-Identifier: Apache-2.0\n// compute's kit for plugins: no part of the ABI. It may change in every release.\n//\n"
                 text "${text}")
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/package/compute_kit/${name}" CONTENT "${text}" @ONLY)
endfunction()

compute_add_kit(plugin_kit ROOMS op table driver)
compute_add_kit(kernel_kit ROOMS source/expressions LIBRARIES compute_plugin_kit)

# An export of its own: a package without the kit stays usable.
install(TARGETS compute_plugin_interface EXPORT ComputeKitTargets)
install(
  EXPORT ComputeKitTargets
  NAMESPACE Compute::
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Compute"
  COMPONENT plugin_development)
install(DIRECTORY "${PROJECT_BINARY_DIR}/package/compute_kit" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT plugin_development)
configure_file(cmake/ComputePlugin.cmake package/ComputePlugin.cmake @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package/ComputePlugin.cmake" plugins/plugin.map DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Compute" COMPONENT plugin_development)
