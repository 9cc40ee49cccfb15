# SPDX-License-Identifier: Apache-2.0
# libcompute exports exactly the functions that its headers declare, and a plugin exactly its two entry points.
include("${HERE}/declared.cmake")

function(read_exports file out)
  execute_process(COMMAND ${NM} -D --defined-only --format=posix "${file}" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" lines "${text}")
  list(FILTER lines EXCLUDE REGEX "^COMPUTE_[0-9.]+ A") # the names of versions
  list(TRANSFORM lines REPLACE "(@.*)? .*" "")
  # Sanitizers and coverage add symbols.
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
  # One entry point per interface version.
  if(NOT exported MATCHES "^compute_plugin_open(;compute_plugin_open[0-9]+)*;compute_plugin_query$")
    message(SEND_ERROR "${plugin} exports: ${exported}")
  endif()
endforeach()
list(LENGTH declared declared_count)
list(LENGTH plugins plugin_count)
if(declared_count LESS 100 OR plugin_count EQUAL 0)
  message(SEND_ERROR "nothing was compared")
endif()
message(STATUS "${declared_count} declared functions, ${plugin_count} plugins")
