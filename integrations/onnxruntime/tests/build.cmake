# SPDX-License-Identifier: Apache-2.0
# Builds the provider in WORK against the installed tree TREE. One file for the compiler: the headers are most of its work.
if(NOT EXISTS "${ENVIRONMENT}/requirements.txt")
  message(STATUS "without an environment: ${ENVIRONMENT} is not there; tools/test --only packages makes it")
  return()
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -S "${SOURCE}" -B "${WORK}" -G Ninja "-DCMAKE_PREFIX_PATH=${TREE}" "-DCMAKE_CXX_COMPILER=${CXX}"
                        "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON "-DCMAKE_CXX_FLAGS=-Werror"
                        COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build "${WORK}" COMMAND_ERROR_IS_FATAL ANY)
