# SPDX-License-Identifier: Apache-2.0
# Runs PROGRAM twice with one new cache in FOLDER: the second process must find the first one's trial there.
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}/pocl")
foreach(filter "OpenclUnknownGpu.Multiplies*:OpenclUnknownGpu.Tries*" "OpenclUnknownGpu.Keeps*")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env "COMPUTE_CACHE_DIR=${FOLDER}/compute" "POCL_CACHE_DIR=${FOLDER}/pocl" "${PROGRAM}" --gtest_filter=${filter}
            COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endforeach()
