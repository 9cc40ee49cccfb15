// SPDX-License-Identifier: Apache-2.0
// How the memory of tensors is shared.
#pragma once

#include "core/memory/tensor.hpp"

namespace compute {

// Whether both are the same elements of one buffer, with the same dtype and layout.
bool same_view(const Tensor& a, const Tensor& b);

// Whether two layouts over one buffer may share a byte. Exact for ranges and for interleaved grids, careful otherwise.
bool may_overlap(const Tensor& a, const Tensor& b);

bool is_whole_buffer(const Tensor& tensor);

}  // namespace compute
