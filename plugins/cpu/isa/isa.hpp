// SPDX-License-Identifier: Apache-2.0
// The selected instruction set: one table per family of kernels, all selected together when the plugin is opened.
#pragma once

#include <cstdint>

namespace compute::cpu {

struct BlockKernels;
struct CopyKernels;
struct FourierKernels;
struct GemmKernel;
struct GemmKernels;
struct JacobiKernels;
struct NetworkKernels;
struct PoolKernels;
struct QuantizedKernels;
struct RecurrentGateKernels;
struct RecurrentProducts;
struct ReduceKernels;
struct OrderKernels;
struct TriangleKernels;
struct WindowKernels;

/// The instruction sets for which the kernels are compiled, in ascending order. On processors other than x86-64 only
/// `baseline` exists, which is compiled with the compiler's own target options. `amx` is `avx512` with tile_kernel().
enum class InstructionSet : int32_t { baseline = 0, avx2 = 1, avx512 = 2, amx = 3 };

struct Isa {
  InstructionSet set;
  const char* name;
  const BlockKernels* blocks;
  const ReduceKernels* reduce;
  const CopyKernels* copy;
  const GemmKernels* gemm;
  const WindowKernels* windows;
  const NetworkKernels* network;
  const PoolKernels* pool;
  const OrderKernels* order;
  const FourierKernels* fourier;
  const JacobiKernels* jacobi;
  const TriangleKernels* triangles;
  const QuantizedKernels* quantized;
  const RecurrentProducts* recurrent_products;
  const RecurrentGateKernels* recurrent_gates;
};

/// The best instruction set of this processor.
InstructionSet widest_instruction_set();

/// The kernels of `set`, or of the best instruction set if this processor does not have `set`.
const Isa& isa_of(InstructionSet set);

/// The kernel for products of bfloat16 by tiles, or null if `set` or the system does not have them. Asks the system for
/// permission at the first call.
const GemmKernel* tile_kernel(InstructionSet set);

/// The kernels for this processor. `narrow` is the setting COMPUTE_CPU_ISA, or null: "baseline" (also "sse2"), "avx2",
/// "avx512" or "amx" limits the choice. An instruction set that the processor lacks is never chosen. Returns null if
/// `narrow` is none of these.
const Isa* select_isa(const char* narrow);

/// Fixes the result of isa(): the best instruction set of the processor, limited by COMPUTE_CPU_ISA. Called when the
/// plugin is opened.
void choose_isa();

const Isa& isa();

}  // namespace compute::cpu
