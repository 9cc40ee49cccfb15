# SPDX-License-Identifier: Apache-2.0
# Builds the Rust plugin of an installed tree, and runs that tree's conformance program on it.
find_program(RUSTC rustc)
if(NOT RUSTC)
  message(STATUS "skipped: rustc is not installed")
  return()
endif()
# rustc may be a proxy of rustup, which looks for toolchains in the home folder, which is empty in tests.
cmake_path(GET RUSTC PARENT_PATH folder)
cmake_path(SET rustup NORMALIZE "${folder}/../../.rustup")
if(NOT DEFINED ENV{RUSTUP_HOME} AND EXISTS "${rustup}")
  set(ENV{RUSTUP_HOME} "${rustup}")
endif()
execute_process(COMMAND ${RUSTC} --print sysroot RESULT_VARIABLE result OUTPUT_VARIABLE sysroot OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT result EQUAL 0)
  message(STATUS "skipped: rustc has no toolchain")
  return()
endif()
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}/home")
foreach(name HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME)
  set(ENV{${name}} "${WORK}/home")
endforeach()
foreach(name COMPUTE_DEVICE COMPUTE_PLUGIN_PATH COMPUTE_PLUGIN_FILES COMPUTE_CONFIG LD_LIBRARY_PATH DESTDIR)
  unset(ENV{${name}})
endforeach()
set(prefix "${TREE}")
set(plugin_source "${prefix}/share/compute/examples/plugin_rust")

# The ids and sizes that the plugin repeats match the installed header.
file(READ "${prefix}/include/compute/plugin.h" header)
file(READ "${plugin_source}/intrinsics.rs" ids)
string(REGEX MATCHALL "pub const [A-Z0-9_]+: i32 = [0-9]+" ids "${ids}")
foreach(id IN LISTS ids)
  string(REGEX REPLACE "pub const ([A-Z0-9_]+): i32 = ([0-9]+)" "COMPUTE_PLUGIN_INTRINSIC_\\1 = \\2[,\n]" line "${id}")
  if(NOT header MATCHES "${line}")
    message(SEND_ERROR "plugin.h does not have ${line}")
  endif()
endforeach()

set(plugin "${WORK}/compute_plugin_rust.so")
execute_process(
  COMMAND "${sysroot}/bin/rustc" --edition 2021 -O -D warnings --crate-type cdylib -o "${plugin}" "${plugin_source}/lib.rs"
  RESULT_VARIABLE result ERROR_VARIABLE errors)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "rustc: ${result}\n${errors}")
endif()
execute_process(
  COMMAND "${prefix}/${BINDIR}/compute-cts" --plugin "${plugin}" --device rust0 --level quick --jobs 2
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 0 OR NOT output MATCHES "([0-9]+) passed, 0 failed" OR CMAKE_MATCH_1 LESS 400)
  message(FATAL_ERROR "compute-cts: ${result}\n${output}")
endif()
message(STATUS "rust0: ${CMAKE_MATCH_1} passed")
