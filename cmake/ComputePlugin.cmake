# SPDX-License-Identifier: Apache-2.0
# compute_add_device_plugin(NAME SOURCES files... [KIT] [KERNEL_KIT] [MANIFEST file])
#
# The plugin NAME: the target compute_plugin_NAME, a shared object that exports the two functions of a plugin and hides everything else. KIT links
# Compute::plugin_kit, KERNEL_KIT also Compute::kernel_kit. The manifest is copied beside the shared object. Both are installed where this
# library looks for plugins.
include("${CMAKE_CURRENT_LIST_DIR}/ComputeKitTargets.cmake")
set(COMPUTE_PLUGIN_MAP "${CMAKE_CURRENT_LIST_DIR}/plugin.map")
# Each library with this version of the plugin interface provides this Debian package. A plugin's package depends on it.
set(COMPUTE_PLUGIN_INTERFACE_PACKAGE "compute-plugin-interface-@COMPUTE_PLUGIN_INTERFACE@")
# Where this library looks for plugins, relative to the prefix.
set(COMPUTE_PLUGIN_FOLDER "@CMAKE_INSTALL_LIBDIR@/compute/plugins")

function(compute_add_device_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "KIT;KERNEL_KIT" "MANIFEST" "SOURCES")
  set(target compute_plugin_${name})
  add_library(${target} MODULE ${arg_SOURCES})
  set_target_properties(
    ${target}
    PROPERTIES PREFIX ""
               CXX_STANDARD 20
               CXX_STANDARD_REQUIRED ON
               CXX_EXTENSIONS OFF
               C_VISIBILITY_PRESET hidden
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(${target} PRIVATE Compute::plugin $<$<BOOL:${arg_KIT}>:Compute::plugin_kit> $<$<BOOL:${arg_KERNEL_KIT}>:Compute::kernel_kit>)
  # The build id identifies the build to caches. Threads of a plugin outlive a dlclose by the program.
  target_link_options(${target} PRIVATE "-Wl,--version-script=${COMPUTE_PLUGIN_MAP}" -Wl,-z,defs -Wl,--build-id=sha1 -Wl,-z,nodelete)
  install(TARGETS ${target} LIBRARY DESTINATION "${COMPUTE_PLUGIN_FOLDER}")
  if(arg_MANIFEST)
    configure_file("${arg_MANIFEST}" "${CMAKE_CURRENT_BINARY_DIR}/${target}.json" COPYONLY)
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${target}.json" DESTINATION "${COMPUTE_PLUGIN_FOLDER}")
  endif()
endfunction()
