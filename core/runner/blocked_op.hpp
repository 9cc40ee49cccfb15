// SPDX-License-Identifier: Apache-2.0
// Large matrices are decomposed and solved in blocks: narrow parts by the same op, and what is left by products, which
// devices compute on their own and cpu on all threads.
#pragma once

#include <compute/compute.h>

#include <span>

#include "core/memory/tensor.hpp"
#include "core/ops/schema.hpp"

namespace compute {

// Whether `op`, which may be NULL, has such a form, and the matrices are large enough for it.
bool has_blocks(const OpSchema* op, std::span<Tensor* const> inputs) noexcept;

// Runs it. `outputs` as in run_call.
void run_in_blocks(const OpSchema& op, const Attributes& attributes, compute_stream* stream,
                   std::span<Tensor* const> inputs, std::span<compute_tensor*> outputs);

}  // namespace compute
