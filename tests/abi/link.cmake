# SPDX-License-Identifier: Apache-2.0
# Every function that the headers declare can be linked and has an address: a C program that names them all.
include("${HERE}/declared.cmake")
read_declared(functions)
list(LENGTH functions count)
list(JOIN functions ",\n    (function)" addresses)
file(MAKE_DIRECTORY "${WORK}")
file(WRITE "${WORK}/link.c" "#include <stdio.h>
#include \"compute/compute.h\"
typedef void (*function)(void);
static const function functions[] = {
    (function)${addresses}};
int main(void) {
  int count = 0;
  for (unsigned i = 0; i < sizeof functions / sizeof *functions; ++i) count += functions[i] != 0;
  printf(\"%d of ${count} functions\\n\", count);
  return count == ${count} ? 0 : 1;
}
")
cmake_path(GET LIBRARY PARENT_PATH directory)
execute_process(COMMAND ${CC} -std=c11 ${SANITIZE} "-I${API}" "${WORK}/link.c" "${LIBRARY}" "-Wl,-rpath,${directory}" -o "${WORK}/link"
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${WORK}/link" COMMAND_ERROR_IS_FATAL ANY)
