# SPDX-License-Identifier: Apache-2.0
# `compute cache fill` compiles kernels that later processes find. PROGRAM, WORK.
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
set(ENV{COMPUTE_CACHE_DIR} "${WORK}")
foreach(compiled "[1-9][0-9]*" 0)
  execute_process(
    COMMAND "${PROGRAM}" cache fill opencl0 --ops exp,sum,sort --threads 2 --json
    RESULT_VARIABLE result
    OUTPUT_VARIABLE output
    ERROR_VARIABLE errors)
  if(NOT result EQUAL 0 OR NOT output MATCHES "\"calls\": 3," OR NOT output MATCHES "\"kernels_compiled\": ${compiled},")
    message(FATAL_ERROR "cache fill ended with ${result}, expected ${compiled} compiled kernels:\n${output}${errors}")
  endif()
endforeach()

# If the cache is not writable, the command fails, and a program that compiles warns once.
file(WRITE "${WORK}/file" "")
set(ENV{COMPUTE_CACHE_DIR} "${WORK}/file")
execute_process(
  COMMAND "${PROGRAM}" cache fill opencl0 --ops exp
  RESULT_VARIABLE result
  OUTPUT_VARIABLE output
  ERROR_VARIABLE errors)
if(NOT result EQUAL 1 OR NOT output MATCHES "; not kept: ${WORK}/file cannot be written: Not a directory\n")
  message(FATAL_ERROR "cache fill without a folder ended with ${result}:\n${output}${errors}")
endif()
set(ENV{COMPUTE_LOG} warn)
execute_process(
  COMMAND "${PROGRAM}" cache fill opencl0 --ops exp,sum
  OUTPUT_QUIET
  ERROR_VARIABLE errors)
string(REGEX MATCHALL "compiled kernels are not cached: ${WORK}/file cannot be written: Not a directory" warnings "${errors}")
list(LENGTH warnings count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "${count} warnings, not 1:\n${errors}")
endif()
