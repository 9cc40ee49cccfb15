# SPDX-License-Identifier: Apache-2.0
# Installs the build tree BUILD into a folder and moves it to TREE.
unset(ENV{DESTDIR})
file(REMOVE_RECURSE "${TREE}" "${TREE}.first")
execute_process(COMMAND ${CMAKE_COMMAND} --install "${BUILD}" --prefix "${TREE}.first" COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
file(RENAME "${TREE}.first" "${TREE}")
