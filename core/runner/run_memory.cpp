// SPDX-License-Identifier: Apache-2.0
#include "core/runner/run_memory.hpp"

namespace compute {
namespace {

// Where the device's arguments are written; NULL if the host cannot address any memory of the device.
MemoryPool* argument_pool(Device& device) { return device.is_host ? device.memory.get() : device.upload_pool(); }

OwnedBlock block_of(MemoryPool* pool, int64_t size_bytes) {
  if (pool == nullptr || size_bytes == 0) return {};
  return {*pool, size_bytes, MemoryUse::kTemporary};
}

}  // namespace

std::shared_ptr<RunMemory> RunMemory::make(Device& device, const RunNeeds& all) {
  return all ? std::make_shared<RunMemory>(device, all) : nullptr;
}

RunMemory::RunMemory(Device& device, const RunNeeds& all)
    : is_host_(device.is_host), arguments_(block_of(argument_pool(device), all.argument_bytes)) {}

void RunMemory::used_by(Timeline& timeline, uint64_t number) {
  if (arguments_) arguments_.used_by(timeline, number);
}

void RunMemory::give(compute_plugin_run& run, const RunNeeds& own, const RunNeeds& place) const noexcept {
  if (own.argument_bytes > 0 && arguments_) {
    const Block& block = arguments_.block();
    const int64_t offset = block.offset_bytes + place.argument_bytes;
    run.arguments = is_host_ ? compute_plugin_operand{block.buffer + static_cast<uint64_t>(offset), 0}
                             : compute_plugin_operand{block.buffer, offset};
  }
}

}  // namespace compute
