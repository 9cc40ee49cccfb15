# SPDX-License-Identifier: Apache-2.0
# The assertions of layout.c hold, and they name every struct of the headers.
execute_process(COMMAND ${CC} -std=c11 -pedantic -Wall -Wextra -Werror "-I${API}" -fsyntax-only "${HERE}/layout.c" RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(SEND_ERROR "a struct changed: see the top of layout.c")
endif()

file(READ "${HERE}/layout.c" layout)
foreach(header compute ops plugin)
  file(STRINGS "${API}/compute/${header}.h" lines REGEX "^typedef struct [a-z0-9_]+ {")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^typedef struct ([a-z0-9_]+) {.*" "\\1" struct "${line}")
    if(NOT layout MATCHES "SIZE\\(${struct}, ")
      message(SEND_ERROR "layout.c says nothing of ${struct}")
    endif()
  endforeach()
endforeach()
