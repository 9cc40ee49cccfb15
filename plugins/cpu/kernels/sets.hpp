// SPDX-License-Identifier: Apache-2.0
// The functions of each instruction set's source files. fill() must be called only on processors that have the set. No
// file has initialisers that run at load.
#pragma once

#include "plugins/cpu/kernels/block_kernels.hpp"
#include "plugins/cpu/kernels/copy_kernel.hpp"
#include "plugins/cpu/kernels/gemm_kernel.hpp"
#include "plugins/cpu/kernels/reduce_kernel.hpp"

#define COMPUTE_CPU_SET(set)                 \
  namespace set {                            \
  void fill(BlockKernels* table);            \
  extern const ReduceKernels reduce_kernels; \
  extern const CopyKernels copy_kernels;     \
  extern const GemmKernels gemm_kernels;     \
  }

namespace compute::cpu {

COMPUTE_CPU_SET(baseline)
COMPUTE_CPU_SET(avx2)
COMPUTE_CPU_SET(avx512)

namespace amx {
extern const GemmKernel tile_kernel;
}

/// Entries that are the same for every set: complex numbers, and conversions between float16 and bfloat16.
void fill_scalar(BlockKernels* table);

}  // namespace compute::cpu

#undef COMPUTE_CPU_SET
