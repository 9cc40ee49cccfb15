# SPDX-License-Identifier: Apache-2.0
# Compares the interfaces with those of interface.abi, as abidiff sees them.
#
# What is compared is a C library made of the headers alone: every declared function with an empty body, and a pointer to
# every struct of plugin.h. So core's inner types take no part; that libcompute has just these functions is seen by `exports`.
# While plugin.h is a draft the differences are reported; afterwards they fail. To accept them copy the new file over
# interface.abi and write what changed into CHANGELOG.md under ABI.
find_program(ABIDW abidw)
find_program(ABIDIFF abidiff)
if(NOT ABIDW OR NOT ABIDIFF)
  message(STATUS "skipped: abigail-tools is not installed")
  return()
endif()

set(source "#include \"compute/compute.h\"\n#include \"compute/plugin.h\"\n")
foreach(header compute ops)
  file(READ "${API}/compute/${header}.h" text)
  string(REGEX REPLACE "/\\*[^*]*\\*+([^/*][^*]*\\*+)*/" "" text "${text}")
  string(REGEX MATCHALL "\nCOMPUTE_API [^;]*" prototypes "${text}")
  foreach(prototype IN LISTS prototypes)
    if(prototype MATCHES "COMPUTE_API void compute_")
      string(APPEND source "${prototype} {}\n")
    else()
      string(APPEND source "${prototype} { return 0; }\n")
    endif()
  endforeach()
endforeach()
file(STRINGS "${API}/compute/plugin.h" lines REGEX "^typedef struct [a-z0-9_]+ {")
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^typedef struct ([a-z0-9_]+) {.*" "\\1" struct "${line}")
  string(APPEND source "COMPUTE_API ${struct}* the_${struct};\n")
endforeach()
file(MAKE_DIRECTORY "${WORK}")
file(WRITE "${WORK}/interface.c" "${source}")

execute_process(COMMAND ${CC} -std=c11 -g -fPIC -shared -w "-I${API}" interface.c -o interface.so WORKING_DIRECTORY "${WORK}"
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${ABIDW} --no-corpus-path --no-show-locs --no-comp-dir-path --no-elf-needed --out-file interface.abi interface.so
                WORKING_DIRECTORY "${WORK}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${ABIDIFF} "${HERE}/interface.abi" "${WORK}/interface.abi" RESULT_VARIABLE result OUTPUT_VARIABLE differences)

file(STRINGS "${API}/compute/plugin.h" draft REGEX "^#define COMPUTE_PLUGIN_DRAFT ")
if(result EQUAL 0)
  message(STATUS "the interfaces are those of interface.abi")
elseif(draft MATCHES " 0u$")
  message(FATAL_ERROR "the interfaces changed:\n${differences}")
else()
  message(STATUS "the interfaces changed (they are drafts, so this is no failure); the new dump is ${WORK}/interface.abi\n${differences}")
endif()
