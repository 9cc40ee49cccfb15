# SPDX-License-Identifier: Apache-2.0
# Reports at exit of a program that does not use observation itself, enabled by settings.
set(ENV{COMPUTE_PLUGIN_PATH} "${PLUGINS}")
set(ENV{COMPUTE_CONFIG} /dev/null)
set(ENV{COMPUTE_DEVICE} minimal0)
set(ENV{COMPUTE_LOG} off)
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
set(size --rows 64 --columns 8 --iterations 20 --mode explicit)

# run("settings" expression…): with these settings stderr matches each expression.
function(run settings)
  separate_arguments(settings UNIX_COMMAND "${settings}")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env ${settings} "${PROGRAM}" ${size}
    RESULT_VARIABLE result
    OUTPUT_VARIABLE output
    ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "${settings}: the program ends with ${result}:\n${output}${errors}")
  endif()
  foreach(expression IN LISTS ARGN)
    if(NOT errors MATCHES "${expression}")
      message(SEND_ERROR "${settings}: stderr does not match ${expression}:\n${errors}")
    endif()
  endforeach()
endfunction()

run("" "^$")
run("COMPUTE_PROFILE=1"
    "\ngemm +minimal0 +float32 +.64,8. +21 "
    "\nm +host→minimal0 +to_device +20 +41.0 kB "
    "\nSpent [0-9.]+s.[0-9.]+%. in cpu Op, [0-9.]+s.[0-9.]+%. in gpu Op and [0-9.]+s.[0-9.]+%. in transfer Op\n$")
run("COMPUTE_PROFILE=${WORK}/profile.json" "^$")
file(READ "${WORK}/profile.json" profile)
string(JSON wall GET "${profile}" wall_ns)
if(NOT wall GREATER 0)
  message(SEND_ERROR "the profile has no wall time:\n${profile}")
endif()
run("COMPUTE_LOG=error COMPUTE_PROFILE=/dev/full" "error: the profile /dev/full was not written completely: No space left on device\n$")
run("COMPUTE_LOG=error COMPUTE_TRACE=/dev/full" "error: the trace /dev/full was not written completely: No space left on device\n$")
run("COMPUTE_LOG=error COMPUTE_TRACE_OPS=/dev/full" "error: the list of ops /dev/full was not written completely: No space left on device\n$")
run("COMPUTE_TRACE=${WORK}/trace.json" "^$")
file(READ "${WORK}/trace.json" trace)
string(JSON events LENGTH "${trace}")
if(events LESS 80)
  message(SEND_ERROR "the trace has ${events} events")
endif()
run("COMPUTE_TRACE_OPS=-" "\nminimal0 +transfer +m  host→minimal0 " "\nminimal0 +gemm +float32 .64,8.  [a-z]+ .[a-z ]+.  ")
run("COMPUTE_PLACEMENT=1" "\nminimal0 +gemm +[a-z]+ +21\n" "\nminimal0 +gemm +0  there +21\n")
run("COMPUTE_LEAKS=1" "^$")

# Ranges for an attached profiler are nested and balanced.
set(ranges FAKE_PROFILER_OUTPUT=${WORK}/ranges.txt NVTX_INJECTION64_PATH)
list(JOIN ranges " " ranges)
run("${ranges}=${PROFILER}" "^$")
file(STRINGS "${WORK}/ranges.txt" lines)
set(pushes ${lines})
list(FILTER pushes INCLUDE REGEX "^push ")
set(pops ${lines})
list(FILTER pops INCLUDE REGEX "^pop$")
list(LENGTH lines count)
list(LENGTH pushes opened)
list(LENGTH pops closed)
math(EXPR both "${opened} + ${closed}")
set(products ${pushes})
list(FILTER products INCLUDE REGEX "^push gemm$")
list(LENGTH products products)
if(NOT opened EQUAL closed OR NOT both EQUAL count OR NOT products EQUAL 21)
  message(SEND_ERROR "${opened} ranges opened, ${closed} closed, ${products} of gemm, in ${count} lines")
endif()
file(REMOVE "${WORK}/ranges.txt")
run("FAKE_PROFILER_REFUSES=1 ${ranges}=${PROFILER}" "^$")
run("${ranges}=${WORK}/none.so" "^$") # reported in the log, which is off
run("COMPUTE_LOG=warn ${ranges}=${WORK}/none.so" "no ranges for the profiler of NVTX_INJECTION64_PATH: .*none.so")
if(EXISTS "${WORK}/ranges.txt")
  message(SEND_ERROR "a profiler that refused was told of ranges")
endif()
