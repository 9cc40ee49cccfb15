# SPDX-License-Identifier: Apache-2.0
# compute_add_device_plugin(NAME SOURCES files... [KIT] [KERNEL_KIT] [MANIFEST file])
#
# The plugin NAME: the target compute_plugin_NAME, a shared object that exports the two functions of a plugin and hides everything else. KIT links
# Compute::plugin_kit, KERNEL_KIT also Compute::kernel_kit. The manifest is copied beside the shared object. Both are installed into the folder of
# plugins.
include("${CMAKE_CURRENT_LIST_DIR}/ComputeKitTargets.cmake")
set(COMPUTE_PLUGIN_MAP "${CMAKE_CURRENT_LIST_DIR}/plugin.map")

function(compute_add_device_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "KIT;KERNEL_KIT" "MANIFEST" "SOURCES")
  include(GNUInstallDirs)
  set(target compute_plugin_${name})
  set(plugins "${CMAKE_INSTALL_LIBDIR}/compute/plugins")
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
  install(TARGETS ${target} LIBRARY DESTINATION "${plugins}")
  if(arg_MANIFEST)
    configure_file("${arg_MANIFEST}" "${CMAKE_CURRENT_BINARY_DIR}/${target}.json" COPYONLY)
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${target}.json" DESTINATION "${plugins}")
  endif()
endfunction()
