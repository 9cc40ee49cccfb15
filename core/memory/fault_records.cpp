// SPDX-License-Identifier: Apache-2.0
#include "core/memory/fault_records.hpp"

#include <algorithm>

#include "core/devices/device.hpp"

namespace compute {

std::shared_ptr<FaultRecords> FaultRecords::make(compute_device& device, size_t count) {
  MemoryPool* pool = device.pinned ? device.pinned.get() : device.is_host ? device.memory.get() : nullptr;
  return pool != nullptr ? std::make_shared<FaultRecords>(*pool, count) : nullptr;
}

FaultRecords::FaultRecords(MemoryPool& pool, size_t count)
    : owned_(pool, static_cast<int64_t>(count * sizeof(compute_plugin_fault)), MemoryUse::kTemporary) {
  std::fill_n(at(0), count, compute_plugin_fault{});
}

compute_plugin_fault* FaultRecords::at(size_t i) const noexcept {
  return reinterpret_cast<compute_plugin_fault*>(owned_.block().host()) + i;
}

compute_plugin_operand FaultRecords::operand(size_t i) const noexcept {
  return {owned_.block().buffer, owned_.block().offset_bytes + static_cast<int64_t>(i * sizeof(compute_plugin_fault))};
}

}  // namespace compute
