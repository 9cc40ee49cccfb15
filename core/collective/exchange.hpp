// SPDX-License-Identifier: Apache-2.0
// Core's own algorithms of collectives, for any devices: in chunks through host memory.
#pragma once

#include <compute/compute.h>
#include <compute/plugin.h>

#include <cstdint>

#include "core/collective/transport.hpp"
#include "core/memory/tensor.hpp"

namespace compute {

// One call of one rank, checked. `src` and `dst` are row-major.
struct Collective {
  int32_t kind = 0;  // COMPUTE_PLUGIN_COLLECTIVE_
  const char* name = "";
  compute_dtype dtype = COMPUTE_DTYPE_NONE;
  int32_t reduction = 0;
  int32_t peer = -1;
  int64_t count = 0;  // elements of one part
  Tensor* src = nullptr;
  Tensor* dst = nullptr;

  int64_t parts_of_src(int32_t ranks) const noexcept {
    return kind == COMPUTE_PLUGIN_COLLECTIVE_REDUCE_SCATTER || kind == COMPUTE_PLUGIN_COLLECTIVE_ALL_TO_ALL ? ranks : 1;
  }
  int64_t parts_of_dst(int32_t ranks) const noexcept {
    return kind == COMPUTE_PLUGIN_COLLECTIVE_ALL_GATHER || kind == COMPUTE_PLUGIN_COLLECTIVE_ALL_TO_ALL ? ranks : 1;
  }
};

// Runs it. No work may use the tensors meanwhile. `copies` is a stream for copies between the device and the host,
// NULL if the host can address the memory. If the transport still uses host memory after a failure, that memory is
// never freed; then *out_keeps_tensors says whether the tensors own it.
void exchange(const Collective& call, Transport& transport, Timeline* copies, bool* out_keeps_tensors);

}  // namespace compute
