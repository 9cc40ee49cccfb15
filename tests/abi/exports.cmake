# SPDX-License-Identifier: Apache-2.0
# libcompute exports what its headers declare, a plugin its two entry points, and neither anything else.
include("${HERE}/declared.cmake")

function(read_exports file out)
  execute_process(COMMAND ${NM} -D --defined-only --format=posix "${file}" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" lines "${text}")
  list(TRANSFORM lines REPLACE " .*" "")
  # Sanitizers and coverage add symbols of their own.
  list(FILTER lines EXCLUDE REGEX "^__(asan|ubsan|tsan|odr_asan|gcov|llvm)")
  list(SORT lines)
  set(${out} "${lines}" PARENT_SCOPE)
endfunction()

read_declared(declared)
read_exports("${LIBRARY}" exported)
set(surplus ${exported})
list(REMOVE_ITEM surplus ${declared})
if(surplus)
  message(SEND_ERROR "exported by libcompute but not declared: ${surplus}")
endif()

file(GLOB_RECURSE plugins ${PLUGINS})
foreach(plugin IN LISTS plugins)
  read_exports("${plugin}" exported)
  if(NOT exported STREQUAL "compute_plugin_open;compute_plugin_query")
    message(SEND_ERROR "${plugin} exports: ${exported}")
  endif()
endforeach()
list(LENGTH declared declared_count)
list(LENGTH plugins plugin_count)
message(STATUS "${declared_count} declared functions, ${plugin_count} plugins")
