// SPDX-License-Identifier: Apache-2.0
// The tensors that are alive, for COMPUTE_LEAKS.
#pragma once

#include <compute/compute.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/observation/place.hpp"

namespace compute {

struct LiveTensor {
  const compute_device* device = nullptr;
  int32_t dtype = 0;
  std::vector<int64_t> shape;
  int64_t size_bytes = 0;       // of its elements
  const void* block = nullptr;  // of its buffer, which other tensors may share; NULL: memory of the program
  int64_t block_bytes = 0;
  std::string label;
  ProgramPlace place;
};

// `tensor` is its address. Without memory for it a tensor is not listed.
void note_tensor(const void* tensor, LiveTensor facts) noexcept;
void forget_tensor(const void* tensor) noexcept;
void label_tensor(const void* tensor, const char* label) noexcept;

// Memory that a device's pool holds and no tensor uses. Where its largest piece is much smaller than all of it, it is
// in fragments.
struct CachedMemory {
  const compute_device* device = nullptr;
  int64_t bytes = 0, largest_bytes = 0;
};

// Throws UNSUPPORTED if they are not tracked. `format` is a COMPUTE_FORMAT_.
std::string leak_report(int32_t format, const std::vector<CachedMemory>& cached);
// "" if none is alive.
std::string leaks_at_end(const std::vector<CachedMemory>& cached);

}  // namespace compute
