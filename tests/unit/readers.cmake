# SPDX-License-Identifier: Apache-2.0
# Only core/trusted_files opens files: other code could block on a FIFO, open devices, leak descriptors, or trust files that other users can write.
# Variable: SOURCE.
cmake_minimum_required(VERSION 3.25)

# Exceptions: readers of /proc and /sys, which users cannot prepare; a build tool; a test; and the viewer of a trace that its user names.
set(allowed
    core/collective/mpi_transport.cpp
    core/process/host_limits.cpp
    core/trusted_files/trusted_files.cpp
    plugins/cpu/device.cpp
    plugins/cpu/threads/threads.cpp
    plugins/vulkan/tests/kernels.cpp
    tools/compute/system.cpp
    tools/compute/view.cpp
    tools/opgen/main.cpp)

file(GLOB_RECURSE sources RELATIVE "${SOURCE}" "${SOURCE}/core/*.[ch]pp" "${SOURCE}/plugins/*.[ch]pp"
     "${SOURCE}/tools/*.[ch]pp" "${SOURCE}/tools/*.c")
set(count 0)
foreach(source IN LISTS sources)
  math(EXPR count "${count} + 1")
  if(source IN_LIST allowed)
    continue()
  endif()
  file(STRINGS "${SOURCE}/${source}" lines REGEX
       "(ifstream|ofstream|std::fstream|fopen *\\(|[^A-Za-z0-9_]open(at)? *\\([^)]*O_(RDONLY|WRONLY|RDWR)|creat *\\()")
  foreach(line IN LISTS lines)
    message(SEND_ERROR "${source} opens a file by itself: ${line}")
  endforeach()
endforeach()
if(count LESS 100)
  message(FATAL_ERROR "only ${count} sources in ${SOURCE}")
endif()
