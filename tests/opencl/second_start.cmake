# SPDX-License-Identifier: Apache-2.0
# Runs PROGRAM, which prints how many kernels its device compiled, twice with one new cache in FOLDER. The second start must compile nothing, by the
# plugin's count and by the driver's cache.
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}/pocl")
foreach(start first second)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env "COMPUTE_CACHE_DIR=${FOLDER}/compute" "POCL_CACHE_DIR=${FOLDER}/pocl" "${PROGRAM}" ${ARGUMENTS}
    RESULT_VARIABLE result
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT result EQUAL 0 OR NOT output MATCHES ", ([0-9]+) kernels compiled")
    message(FATAL_ERROR "the ${start} start ends with ${result}:\n${output}")
  endif()
  set(${start} ${CMAKE_MATCH_1})
  file(GLOB_RECURSE objects RELATIVE "${FOLDER}" "${FOLDER}/pocl/*.so")
  list(SORT objects)
  set(${start}_objects "${objects}")
endforeach()
message(STATUS "kernels compiled: ${first}, then ${second}")
if(first EQUAL 0)
  message(FATAL_ERROR "the first start compiled nothing")
elseif(NOT second EQUAL 0)
  message(FATAL_ERROR "the second start compiled ${second} kernels")
elseif(NOT first_objects STREQUAL second_objects)
  message(FATAL_ERROR "the second start made the driver compile: ${second_objects}\nafter ${first_objects}")
endif()
