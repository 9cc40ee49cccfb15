// SPDX-License-Identifier: Apache-2.0
// What each ISA's source file offers. fill() may be called on CPUs that have the ISA only; no file has initialisers
// that run at load.
#pragma once

#include "plugins/cpu/isa_table.hpp"

namespace compute::cpu {

namespace baseline {
void fill(IsaTable* table);
}
namespace avx2 {
void fill(IsaTable* table);
}
namespace avx512 {
void fill(IsaTable* table);
}

/// Entries that are the same on every ISA: complex numbers, and conversions between float16 and bfloat16.
void fill_scalar(IsaTable* table);

}  // namespace compute::cpu
