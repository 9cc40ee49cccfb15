// SPDX-License-Identifier: Apache-2.0
// What the plan of a convolution consists of: one part per WindowProduct, in one of three forms, or one part that hands
// the whole of it to oneDNN.
#pragma once

#include <compute/plugin.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "plugins/common/op/windows.hpp"

namespace compute::cpu {

struct GemmKernel;

/// What a task has in memory.
struct WindowMemory {
  const void* a;
  const void* b;
  void* c;
  const void* bias;               // NULL: none
  char* shared;                   // shared_bytes, of the part
  char* scratch;                  // scratch_bytes, of one thread
  std::atomic<bool>* failed;      // set where a library could not do its work, for want of memory
  std::atomic<uint16_t>* leasts;  // by tiles: the least magnitudes of a and b, which packing finds
};

/// Tasks of one kind may run concurrently on any threads. Tasks of a later kind begin when all earlier ones have ended.
class WindowPart {
 public:
  virtual ~WindowPart() = default;
  virtual int64_t packing_tasks() const { return 0; }
  virtual int64_t tasks() const = 0;
  virtual int64_t joining_tasks() const { return 0; }
  virtual void pack(const WindowMemory&, int64_t) const {}
  virtual void run(const WindowMemory& memory, int64_t task) const = 0;
  virtual void join(const WindowMemory&, int64_t) const {}

  int64_t shared_bytes() const { return shared_bytes_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }

 protected:
  int64_t shared_bytes_ = 0, scratch_bytes_ = 0;
};

/// Sums of shifted rows of a padded plane, where a group has so few rows that a product of matrices would waste most of
/// its tile; NULL if this form does not suit the product.
std::unique_ptr<WindowPart> make_shifted_part(const common::WindowProduct& product, compute_dtype dtype, bool has_bias,
                                              int32_t threads);

/// Products of matrices, one per kernel element, that read a padded plane in place; NULL if this form does not suit
/// the product.
std::unique_ptr<WindowPart> make_plane_part(const common::WindowProduct& product, compute_dtype dtype, bool has_bias,
                                            int32_t threads);

/// The whole op through oneDNN; NULL if that is not installed, or no faster. By tiles, bfloat16 is multiplied by AMX,
/// which flushes subnormal numbers: the tasks may run if the least magnitudes rule them out.
std::unique_ptr<WindowPart> make_onednn_part(const common::Op& op, int32_t threads, const GemmKernel* tiles);

}  // namespace compute::cpu
