# SPDX-License-Identifier: Apache-2.0
# Code that runs on every CPU contains no newer instructions, and vector objects share no symbols that the linker could merge.
#   BASELINE, AVX2, AVX512: object files; OBJDUMP, NM
function(disassemble out)
  execute_process(COMMAND ${OBJDUMP} -d --no-show-raw-insn ${ARGN} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  if(NOT text MATCHES "%xmm")
    message(SEND_ERROR "no vector code in ${ARGN}")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

disassemble(text ${BASELINE})
if(text MATCHES "%[yz]mm|%k[0-7]|[ \t]v[a-z]+[0-9a-z]*[ \t]+[^\n]*%xmm")
  message(SEND_ERROR "baseline code holds AVX: ${CMAKE_MATCH_0}")
endif()
disassemble(text ${AVX2})
if(text MATCHES "%zmm|%k[0-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])")
  message(SEND_ERROR "AVX2 code holds AVX-512: ${CMAKE_MATCH_0}")
endif()

foreach(object IN LISTS BASELINE AVX2 AVX512)
  execute_process(COMMAND ${NM} -C --defined-only --extern-only --format=posix "${object}" OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" symbols "${text}")
  list(FILTER symbols EXCLUDE REGEX "^compute::cpu::(baseline|avx2|avx512)::(fill\\(|[a-z]+_kernels )|^compute::cpu::amx::tile_kernel |^DW\\.ref\\.|^__(asan|ubsan|tsan)")
  if(symbols)
    message(SEND_ERROR "${object} also defines ${symbols}")
  endif()
endforeach()
