# SPDX-License-Identifier: Apache-2.0
# The constants in the headers match the rows of the tables, and both headers share one block of definitions.

# The "NAME=number" pairs of constants that start with `prefix`, of a header.
function(read_constants header prefix out)
  file(READ "${API}/compute/${header}" text)
  string(REGEX MATCHALL " ${prefix}[A-Z0-9_]+ = [0-9]+" found "${text}")
  list(TRANSFORM found REPLACE " ${prefix}([A-Z0-9_]+) = ([0-9]+)" "\\1=\\2")
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# The "NAME=number" pairs of a table's rows, which start with the number and the name.
function(read_rows table macro out)
  file(STRINGS "${API}/compute/${table}" lines REGEX "^${macro}\\([0-9]+, *[a-z0-9_]+,")
  set(found "")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^${macro}\\(([0-9]+), *([a-z0-9_]+)," row "${line}")
    string(TOUPPER "${CMAKE_MATCH_2}" name)
    list(APPEND found "${name}=${CMAKE_MATCH_1}")
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

function(expect_same what constants rows)
  list(LENGTH rows count)
  if(count EQUAL 0)
    message(SEND_ERROR "${what}: no rows were found")
  elseif(NOT constants STREQUAL rows)
    message(SEND_ERROR "${what} differ\n  header: ${constants}\n  table:  ${rows}")
  else()
    message(STATUS "${what}: ${count} agree")
  endif()
endfunction()

read_rows(dtypes.def COMPUTE_DTYPE dtypes)
read_rows(dtypes.def COMPUTE_STORED_DTYPE stored)
list(APPEND dtypes ${stored})
foreach(header compute.h plugin.h)
  read_constants(${header} COMPUTE_DTYPE_ constants)
  # NONE and the levels of support share the prefix but are not dtypes.
  list(REMOVE_ITEM constants NONE=0)
  list(FILTER constants EXCLUDE REGEX "^LEVEL_")
  expect_same("dtypes of ${header} and dtypes.def" "${constants}" "${dtypes}")
endforeach()

read_rows(intrinsics.def COMPUTE_INTRINSIC intrinsics)
read_constants(plugin.h COMPUTE_PLUGIN_INTRINSIC_ constants)
expect_same("intrinsics of plugin.h and intrinsics.def" "${constants}" "${intrinsics}")

foreach(header compute plugin)
  file(READ "${API}/compute/${header}.h" text)
  string(FIND "${text}" "#ifndef COMPUTE_SHARED_DEFINITIONS_" begin)
  string(FIND "${text}" "#endif /* COMPUTE_SHARED_DEFINITIONS_ */" end)
  math(EXPR size "${end} - ${begin}")
  string(SUBSTRING "${text}" ${begin} ${size} ${header}_shared)
endforeach()
if(NOT compute_shared STREQUAL plugin_shared)
  message(SEND_ERROR "compute.h and plugin.h differ in their shared definitions")
endif()
