# SPDX-License-Identifier: Apache-2.0
# A compiled program keeps the ops that it was compiled against when they get a version 2: with a later library (next/) it prints the same. A look-up of the
# newest version, for comparison, does not.

function(run out)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env COMPUTE_DEVICE=cpu COMPUTE_PLUGIN_FILES=${PLUGIN} ${ARGN}
    OUTPUT_VARIABLE text
    ERROR_VARIABLE errors
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${status}\n${text}${errors}")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

run(now ${TWO_WAYS})
run(later LD_PRELOAD=${NEXT} ${TWO_WAYS})
if(NOT now STREQUAL "exp: typed 2.7183, version 1 2.7183, newest 2.7183\nsum: typed 7.0, version 1 7.0, newest 7.0\n")
  message(FATAL_ERROR "today: ${now}")
endif()
if(NOT later STREQUAL "exp: typed 2.7183, version 1 2.7183, newest 1.0000\nsum: typed 7.0, version 1 7.0, newest 3.5\n")
  message(FATAL_ERROR "with a version 2: ${later}")
endif()
foreach(example IN LISTS EXAMPLES)
  run(before ${example})
  run(after LD_PRELOAD=${NEXT} ${example})
  if(before STREQUAL "" OR NOT before STREQUAL after)
    message(FATAL_ERROR "${example} printed\n${before}\nand with a version 2 of every op\n${after}")
  endif()
endforeach()
message(STATUS "the same results")
