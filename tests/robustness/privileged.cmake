# SPDX-License-Identifier: Apache-2.0
# A set-user-id copy of the program `compute`, started by another user, runs no code that this user names. Variables: COMPUTE, FAULTY, SCRATCH. The
# faulty plugin ends a process that loads it with status 42, as a plugin and as an OpenCL driver.
cmake_minimum_required(VERSION 3.25)

macro(skip_test reason)
  message("SKIPPED: ${reason}")
  return()
endmacro()

execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT user EQUAL 0)
  skip_test("only root can make a set-user-id program for this test")
endif()
find_program(setpriv setpriv)
if(NOT setpriv)
  skip_test("there is no setpriv")
endif()

file(REMOVE_RECURSE "${SCRATCH}")
file(MAKE_DIRECTORY "${SCRATCH}/plugins" "${SCRATCH}/vendors")
file(COPY_FILE "${COMPUTE}" "${SCRATCH}/compute")
file(COPY_FILE "${FAULTY}" "${SCRATCH}/plugins/compute_plugin_faulty.so")
file(WRITE "${SCRATCH}/vendors/evil.icd" "${SCRATCH}/plugins/compute_plugin_faulty.so\n")
file(WRITE "${SCRATCH}/config.toml" "[plugins]\npath = \"${SCRATCH}/plugins\"\n")
execute_process(COMMAND chmod -R a+rX "${SCRATCH}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND chmod 4755 "${SCRATCH}/compute" COMMAND_ERROR_IS_FATAL ANY)

set(as_nobody "${setpriv}" --reuid=65534 --regid=65534 --clear-groups --)
set(hostile
    "COMPUTE_FAULTY=load=exit:42"
    "COMPUTE_PLUGIN_PATH=${SCRATCH}/plugins"
    "COMPUTE_PLUGIN_FILES=${SCRATCH}/plugins/compute_plugin_faulty.so"
    "COMPUTE_CONFIG=${SCRATCH}/config.toml"
    "COMPUTE_TRUST_ALL=1"
    "XDG_DATA_HOME=${SCRATCH}"
    "XDG_CONFIG_HOME=${SCRATCH}"
    "OCL_ICD_VENDORS=${SCRATCH}/vendors")

# Without set-user-id the same call runs the code, so the test can detect it.
execute_process(COMMAND ${as_nobody} env ${hostile} COMPUTE_PROBE=0 "${COMPUTE}" devices RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
if(NOT status EQUAL 42)
  skip_test("user 65534 cannot run ${COMPUTE} (status ${status})")
endif()
find_program(id id REQUIRED)
file(COPY_FILE "${id}" "${SCRATCH}/id")
execute_process(COMMAND chmod 4755 "${SCRATCH}/id" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${as_nobody} "${SCRATCH}/id" -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT user EQUAL 0)
  skip_test("set-user-id programs are not honoured in ${SCRATCH}")
endif()

function(expect wanted part)
  execute_process(COMMAND ${as_nobody} env ${hostile} "${SCRATCH}/compute" ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  string(FIND "${output}" "${part}" at)
  if(NOT status EQUAL wanted OR at EQUAL -1)
    message(SEND_ERROR "compute ${ARGN}: status ${status}, not ${wanted}, or no \"${part}\" in\n${output}")
  endif()
endfunction()

expect(0 "COMPUTE_PLUGIN_PATH is ignored: the process is privileged" devices -v)
expect(0 "the process is privileged, and the library takes file names from the environment" doctor)
expect(0 "Plugins are not probed in a separate process: the process is privileged" doctor)
expect(0 "cpu" which cpu)
expect(2 "--compute-plugin-path is not allowed: the process is privileged" "--compute-plugin-path=${SCRATCH}/plugins" devices)
expect(2 "--compute-plugin-files is not allowed: the process is privileged"
       "--compute-plugin-files=${SCRATCH}/plugins/compute_plugin_faulty.so" devices)
expect(2 "--compute-config is not allowed: the process is privileged" "--compute-config=${SCRATCH}/config.toml" devices)
expect(2 "--compute-trust-all is not allowed: the process is privileged" "--compute-trust-all" devices)
file(REMOVE_RECURSE "${SCRATCH}")
