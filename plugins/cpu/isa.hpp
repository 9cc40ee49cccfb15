// SPDX-License-Identifier: Apache-2.0
// The instruction set in force: one table per family of kernels, all chosen together when the plugin is opened.
#pragma once

#include "plugins/cpu/copy_kernel.hpp"
#include "plugins/cpu/isa_table.hpp"
#include "plugins/cpu/reduce_kernel.hpp"

namespace compute::cpu {

struct Isa {
  const IsaTable* blocks = nullptr;
  const ReduceKernels* reduce = nullptr;
  const CopyKernels* copy = nullptr;
};

// The best that the processor has, narrowed by COMPUTE_CPU_ISA.
void choose_isa();

const Isa& isa();

}  // namespace compute::cpu
