# SPDX-License-Identifier: Apache-2.0
# compute-bench measures, writes the requested files, and compares with an earlier run. The test ignores the times.
set(ENV{COMPUTE_CONFIG} /dev/null)
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")

# expect(code "arguments" expression…)
function(expect code arguments)
  separate_arguments(list UNIX_COMMAND "${arguments}")
  execute_process(COMMAND "${PYTHON}" "${PROGRAM}" --library "${LIBRARY}" --machine "${MACHINE}" --start "${START}" ${list}
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT result EQUAL code)
    message(SEND_ERROR "compute-bench ${arguments} ends with ${result}, not ${code}:\n${output}${errors}")
  endif()
  set(printed "${output}" PARENT_SCOPE)
  foreach(expression IN LISTS ARGN)
    if(NOT "${output}${errors}" MATCHES "${expression}")
      message(SEND_ERROR "compute-bench ${arguments} does not print ${expression}:\n${output}${errors}")
    endif()
  endforeach()
endfunction()

set(few "--quick --threads 1 --only 'add 100000,matmul 64,sum of rows,layer_norm,copy permuted")
expect(0 "${few}' --json ${WORK}/old.json" "^cpu: " "\n  1 threads: copy [0-9.]+ GB/s" "\nadd 100000 +[0-9.]+ " "\nmatmul 64 +[0-9.]+ "
       "\nsum of rows +[0-9.]+ " "\nlayer_norm 4096x1024 +[0-9.]+ ")
# The unit depends on what limits a row.
string(REGEX MATCH "\nmatmul 64 +[0-9.]+ +[0-9.]+ G(FLOP|B)/s" unit "${printed}")
if(NOT unit)
  message(SEND_ERROR "the row of matmul has no rate:\n${printed}")
endif()
file(READ "${WORK}/old.json" old)
string(JSON rows LENGTH "${old}" runs 0 rows)
string(JSON seconds GET "${old}" runs 0 rows 0 times ours seconds)
if(NOT rows EQUAL 12 OR NOT seconds GREATER 0 OR old MATCHES "differs|ends early")
  message(SEND_ERROR "the results have ${rows} rows, the first of ${seconds} s, or differ:\n${old}")
endif()

# The sections that a run without --only does not have. Peers are as far as they are installed.
expect(0 "--quick --threads 1 --only start --peers=" "\n  first add, warm cache: ")
set(words "clip/float32,cast_to_uint8,add/float32/1000,sum_all/float32/100x,8x8x8, 1 MiB,2x2 of,text width")
expect(0 "--quick --threads 1 --only 'ops,bandwidth,matrices,transfers,layers,${words}' --peers openblas,onednn"
       "\nclip/float32/10000 +[0-9.]+ " "\ncast_to_uint8/float32/10000 " "\nadd/float32/1000 [^\n]*memcpy [0-9.]+" "\nsum_all/float32/100x100 [^\n]*read [0-9.]+"
       "\nmatmul/float32/8x8x8 +[0-9.]+ " "\nmatmul/float64/8x8x8 " "\npageable host to device, 1 MiB +[0-9.]+ "
       "\nconvolution_grad_weight text width 3 +[0-9.]+ " "\nmax_pool_grad 2x2 of ")
set(ENV{COMPUTE_PLUGIN_PATH} "${NULL}")
expect(0 "--quick --device null --only calls --peers=" "\ncall/add_into +[0-9.]+ " "\ncall/tensor_empty ")
# An earlier run that took a thousandth and one that took a thousand times as long.
string(REGEX REPLACE "\"seconds\": [0-9.e-]+" "\"seconds\": 1e-9" fast "${old}")
file(WRITE "${WORK}/fast.json" "${fast}")
expect(1 "--quick --threads 1 --only 'add 100000' --compare ${WORK}/fast.json" "\nadd 100000 .* times as long\n2 rows are slower")
string(REGEX REPLACE "\"seconds\": [0-9.e-]+" "\"seconds\": 10" slow "${old}")
file(WRITE "${WORK}/slow.json" "${slow}")
expect(0 "--quick --threads 1 --only 'add 100000' --compare ${WORK}/slow.json" "\n0 rows are slower")
get_filename_component(folder "${PROGRAM}" DIRECTORY)
execute_process(
  COMMAND "${PYTHON}" -c "
from compute_bench.report import rate_of
limits = {'multiply_add': 1e11, 'copy': 1e10}
assert rate_of({'flops': 2e9, 'bytes': 1e6}, 1e-2, limits) == (200.0, 'GFLOP/s')
assert rate_of({'flops': 1e6, 'bytes': 8e6}, 1e-3, limits) == (8.0, 'GB/s')
"
  WORKING_DIRECTORY "${folder}"
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(SEND_ERROR "a rate is in the wrong unit")
endif()
expect(2 "--quick --threads 1 --peers= --only nosuchrow" "no row or section fits --only nosuchrow")
expect(1 "--device nothing0" "nothing0")
expect(2 "--nothing" "--nothing")
