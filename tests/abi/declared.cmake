# SPDX-License-Identifier: Apache-2.0

# The names of the functions that compute.h and ops.h declare.
function(read_declared out)
  set(names "")
  foreach(header compute ops)
    file(READ "${API}/compute/${header}.h" text)
    string(REGEX MATCHALL "COMPUTE_API [a-z0-9_* \n]*[ *\n]compute_[a-z0-9_]+\\(" found "${text}")
    list(TRANSFORM found REPLACE ".*[ *\n](compute_[a-z0-9_]+)\\($" "\\1")
    list(APPEND names ${found})
  endforeach()
  set(${out} "${names}" PARENT_SCOPE)
endfunction()
