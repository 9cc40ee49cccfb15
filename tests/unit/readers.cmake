# SPDX-License-Identifier: Apache-2.0
# No part opens a file but by files/: other ways block on a FIFO, open devices, leak descriptors, or ask nobody who wrote the file. Variable: SOURCE.
cmake_minimum_required(VERSION 3.25)

# What reads /proc and /sys, which nobody can prepare; a tool of the build's own; and what shows the trace that its user names.
set(allowed
    core/base/host_limits.cpp
    core/files/files.cpp
    plugins/cpu/device.cpp
    plugins/cpu/threads.cpp
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
