// SPDX-License-Identifier: Apache-2.0
// The primitive `copy`, and copies and fills of bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "plugins/cpu/base/plan.hpp"

namespace compute::cpu {

std::optional<Refusal> refuse_copy(const Op& op);
std::unique_ptr<Plan> prepare_copy(const Op& op);

// The plan of a copy between tensors of one dtype: of tensor 0 of a run to tensor 1.
std::unique_ptr<Plan> plan_copy(const compute_plugin_tensor& src, const compute_plugin_tensor& dst);

// Uses all threads if that is faster. The ranges must not overlap.
void copy_bytes(void* dst, const void* src, int64_t size_bytes);

// `pattern_size` is 1, 2, 4, 8 or 16 and divides size_bytes.
void fill_bytes(void* dst, int64_t size_bytes, const void* pattern, int64_t pattern_size);

}  // namespace compute::cpu
