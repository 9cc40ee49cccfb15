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
