// SPDX-License-Identifier: Apache-2.0
// A plan, which is a prepared op, and what the plans of all primitives use.
#pragma once

#include <compute/plugin.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "plugins/common/table/slots.hpp"
#include "plugins/cpu/base/host.hpp"

namespace compute::cpu {

// A prepared op. Immutable: any number of threads may run it at once.
class Plan : public common::PlanAnswer {
 public:
  Plan() = default;
  virtual ~Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // A plan lives until its owner and every queued run have released it.
  void retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // Computes on the calling thread and the pool, and returns when everything is done. Allocates nothing
  // but scratch memory of threads. Throws Error if a fault is found and `run` has no fault record, and std::bad_alloc.
  virtual void run(const compute_plugin_run& run) const = 0;

  int32_t tensor_count = 0;
  int32_t scalar_count = 0;

 private:
  mutable std::atomic<int32_t> references_{1};
};

inline char* address(const compute_plugin_operand& operand) {
  return reinterpret_cast<char*>(static_cast<uintptr_t>(operand.buffer)) + operand.offset_bytes;
}

// Reports an index that is out of range: writes the fault record, or throws KERNEL_FAILED if the run has none.
void report_index_fault(const compute_plugin_run& run, std::string_view op, int32_t argument, int64_t value,
                        int64_t limit, int64_t position);

}  // namespace compute::cpu
