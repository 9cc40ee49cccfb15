// SPDX-License-Identifier: Apache-2.0
// Where the temporaries of a lowering are.
#pragma once

#include <cstdint>

#include "core/ops/lowering.hpp"

namespace compute {

// Places temporaries into one block. Temporaries share memory unless their lifetimes overlap; a lifetime goes from the
// first step that uses the temporary to the last. Offsets are multiples of `alignment`.
void layout_temporaries(Lowering& lowering, int64_t alignment = 256);

}  // namespace compute
