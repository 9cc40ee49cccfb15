# SPDX-License-Identifier: Apache-2.0
get_property(plugins_built GLOBAL PROPERTY COMPUTE_PLUGINS_BUILT)
get_property(plugins_without GLOBAL PROPERTY COMPUTE_PLUGINS_WITHOUT)
list(JOIN plugins_built ", " plugins_built)

message(STATUS "")
message(STATUS "compute ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
message(STATUS "  plugins    ${plugins_built}")
foreach(plugin IN LISTS plugins_without)
  message(STATUS "  without    ${plugin}")
endforeach()
message(STATUS "  sanitizer  ${COMPUTE_SANITIZE}")
message(STATUS "  tests ${COMPUTE_TESTS}, tools ${COMPUTE_TOOLS}, examples ${COMPUTE_EXAMPLES}, warnings as errors ${COMPUTE_WERROR}")
message(STATUS "")
