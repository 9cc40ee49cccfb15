// SPDX-License-Identifier: Apache-2.0
// The instruction set in force: one table per family of kernels, all chosen together when the plugin is opened.
#pragma once

#include <cstdint>

namespace compute::cpu {

struct BlockKernels;
struct CopyKernels;
struct GemmKernels;
struct ReduceKernels;

/// The instruction sets that the kernels are compiled for, in rising order. On other processors than x86-64 only
/// `baseline` exists, and it is compiled for what the compiler was told.
enum class InstructionSet : int32_t { baseline = 0, avx2 = 1, avx512 = 2 };

struct Isa {
  InstructionSet set;
  const char* name;
  const BlockKernels* blocks;
  const ReduceKernels* reduce;
  const CopyKernels* copy;
  const GemmKernels* gemm;
};

/// The best instruction set of this processor.
InstructionSet widest_instruction_set();

/// The kernels of `set`, or of the best one where this processor has less.
const Isa& isa_of(InstructionSet set);

/// The kernels for this processor. `narrow` is the setting COMPUTE_CPU_ISA, or null: "baseline" (also "sse2"), "avx2"
/// or "avx512" limits the choice; what the processor does not have is never chosen. Returns null where `narrow` is none
/// of these.
const Isa* select_isa(const char* narrow);

/// Fixes what isa() is: the best that the processor has, narrowed by COMPUTE_CPU_ISA. Called when the plugin is opened.
void choose_isa();

const Isa& isa();

}  // namespace compute::cpu
