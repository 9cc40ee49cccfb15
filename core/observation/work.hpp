// SPDX-License-Identifier: Apache-2.0
// One submission as the observers see it.
#pragma once

#include <compute/compute.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/small_vector.hpp"
#include "core/observation/place.hpp"
#include "core/observation/ranges.hpp"
#include "core/observation/wall_time.hpp"

namespace compute {

// The op, or the ops of a graph, that a submission runs.
struct OpWork {
  const char* category = "op";  // op, graph or kernel
  int64_t ops = 1;              // as the device's statistics count them
  const char* how = "";         // native or decomposed
  int32_t dtype = COMPUTE_DTYPE_NONE;
  SmallVector<int64_t, 4> shape;  // of the largest operand
  std::string steps;              // for kListsOps: the primitives that it consists of, or the ops of a graph
  int64_t bytes = 0;              // of all operands
  int64_t flops = 0;              // 0: the op is not one that is counted in operations
};

struct TransferWork {
  const compute_device* from = nullptr;  // NULL: the host
  const compute_device* to = nullptr;
  int64_t size_bytes = 0;
  bool is_implicit = false;
  std::string tensor;      // its label, else its dtype and shape
  const char* cause = "";  // the op or the function that wanted it
  ProgramPlace place;
};

// Made before its submission and handed over when the times are known. `name` is immortal. The memory is used again for
// later work.
struct Work {
  const char* name = "";
  const compute_device* device = nullptr;
  uint32_t stream = 0;
  int32_t thread = 0;
  bool is_immediate = false;  // done when its submission returns
  bool is_timed = false;      // the device takes its times, between the marks `first` and `last`
  uint64_t first = 0;         // may be the `last` of the work before it on the stream
  uint64_t last = 0;
  int64_t begun = 0;   // when it was made: it counts for nothing before
  TimeSpan on_host;    // of its submission
  TimeSpan on_device;  // on the host's clock; empty unless `is_timed`
  std::optional<OpWork> op;
  std::optional<TransferWork> transfer;

  // Of the list of work that is not recorded yet.
  Work* before = nullptr;
  Work* after = nullptr;

  Work* next = nullptr;  // of the same stream, whose times are not known either
};

// Begins with the time now.
Work* begin_work(const char* name, const compute_device& device, uint32_t stream);
// Nothing was queued.
void abandon_work(Work* work) noexcept;
// Its times are known. Takes it.
void record_work(Work* work) noexcept;

struct AbandonWork {
  void operator()(Work* work) const noexcept { abandon_work(work); }
};
using WorkReference = std::unique_ptr<Work, AbandonWork>;

// A wait of the calling thread for a device.
class WatchedWait {
 public:
  // `device` may be NULL: then nothing is watched.
  explicit WatchedWait(const compute_device* device, uint32_t stream, bool is_timed) noexcept;
  WatchedWait(const WatchedWait&) = delete;
  WatchedWait& operator=(const WatchedWait&) = delete;
  ~WatchedWait();

 private:
  Work* work_;
  NamedRange range_;
};

// A plan was prepared, or a kernel compiled, since `begin`.
void record_preparation(std::string_view name, const compute_device& device, int64_t begin) noexcept;
// A block was allocated (`change` > 0) or freed.
void record_memory(std::string_view device, int64_t used, int64_t change) noexcept;

}  // namespace compute
