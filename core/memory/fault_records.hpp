// SPDX-License-Identifier: Apache-2.0
// Memory in which kernels report checked faults, such as an index that is out of range.
#pragma once

#include <compute/plugin.h>

#include <cstddef>
#include <memory>

#include "core/memory/pool.hpp"

struct compute_device;

namespace compute {

// `count` zeroed records that a device writes and the host reads.
class FaultRecords {
 public:
  // NULL if the device has no memory that both can access; then its plugin reports faults itself.
  static std::shared_ptr<FaultRecords> make(compute_device& device, size_t count);

  FaultRecords(MemoryPool& pool, size_t count);
  FaultRecords(const FaultRecords&) = delete;
  FaultRecords& operator=(const FaultRecords&) = delete;

  // Called before submission `number` of `timeline` uses the records: their memory is kept until it has been reached.
  void used_by(Timeline& timeline, uint64_t number) { owned_.used_by(timeline, number); }

  compute_plugin_fault* at(size_t i) const noexcept;
  compute_plugin_operand operand(size_t i) const noexcept;

 private:
  OwnedBlock owned_;
};

}  // namespace compute
