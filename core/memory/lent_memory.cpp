// SPDX-License-Identifier: Apache-2.0
#include "core/memory/lent_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/lock.hpp"

namespace compute {
namespace {

// Of DLPack: the types of devices whose memory is named by objects.
constexpr int32_t kNamedByObjects[] = {4, 7, 8, 15};  // OpenCL, Vulkan, Metal, WebGPU

constexpr int64_t kHostAlignment = 64, kDeviceAlignment = 256;  // the latter also serves workspaces

class LentMemory final : public RawMemory {
 public:
  LentMemory(Device& device, const compute_allocator& allocator) : device_(device), allocator_(allocator) {
    if (device.is_host) return;
    const compute_plugin_heap& heap = device.heaps[0];
    alignment_ = std::max({kDeviceAlignment, heap.base_alignment, heap.offset_alignment});
    const compute_native_dlpack named = device.native.dlpack();
    dlpack_type_ = named.device_type;
    dlpack_id_ = named.device_id;
  }

  int32_t dlpack_type() const { return dlpack_type_; }

  bool allocate(int64_t size_bytes, RawBlock* out_block) override {
    void* address = nullptr;
    try {
      address = allocator_.allocate(size_bytes, alignment_, allocator_.user_data);
    } catch (...) {
      // Callbacks throw nothing; one that does has no memory.
    }
    if (address == nullptr) return false;
    try {
      *out_block = {buffer_at(address, size_bytes), device_.is_host ? address : nullptr};
    } catch (...) {
      give_back(address, size_bytes);
      throw;
    }
    return true;
  }

  void free(uint64_t buffer, int64_t size_bytes) noexcept override {
    const CallerWorld world;
    if (device_.health.load() == COMPUTE_HEALTH_FORKED) return;  // the memory is the parent's
    if (device_.is_host) {
      give_back(reinterpret_cast<void*>(buffer), size_bytes);
      return;
    }
    device_.table.memory_free(-1, buffer);
    void* address = nullptr;
    {
      const std::lock_guard guard(lock_);
      const auto found = addresses_.find(buffer);
      address = found->second;
      addresses_.erase(found);
    }
    give_back(address, size_bytes);
  }

 private:
  uint64_t buffer_at(void* address, int64_t size_bytes) {
    const auto value = reinterpret_cast<uintptr_t>(address);
    if (value % static_cast<uintptr_t>(alignment_) != 0) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: the program's allocator returned {} for {} bytes, which is not aligned to {} bytes",
                              device_.name, fmt::ptr(address), size_bytes, alignment_))
          .on_device(device_.name);
    }
    if (device_.is_host) return value;
    compute_plugin_import import{};
    import.struct_size = sizeof import;
    import.struct_type = COMPUTE_PLUGIN_STRUCT_IMPORT;
    import.dlpack_device_type = dlpack_type_;
    import.dlpack_device_id = dlpack_id_;
    import.data = address;
    import.size_bytes = size_bytes;
    const std::lock_guard guard(lock_);
    addresses_.reserve(addresses_.size() + 1);
    uint64_t buffer = 0;
    if (compute_error* refused = device_.table.memory_import(import, &buffer)) {
      Error error = Error::adopt(refused);
      error.message = fmt::format("{}: the memory at {} from the program's allocator cannot be used: {}", device_.name,
                                  fmt::ptr(address), error.message);
      throw std::move(error).on_device(device_.name);
    }
    try {
      addresses_.emplace(buffer, address);
    } catch (...) {
      device_.table.memory_free(-1, buffer);
      throw;
    }
    return buffer;
  }

  void give_back(void* address, int64_t size_bytes) noexcept {
    try {
      allocator_.release(address, size_bytes, allocator_.user_data);
    } catch (...) {
      // As above: no caller is left to receive the error.
    }
  }

  Device& device_;
  const compute_allocator allocator_;
  int64_t alignment_ = kHostAlignment;
  int32_t dlpack_type_ = 0, dlpack_id_ = 0;
  Lock lock_;
  std::unordered_map<uint64_t, void*> addresses_;  // (lock_) by the plugin's buffer; of devices
};

}  // namespace

std::unique_ptr<RawMemory> make_lent_memory(Device& device, const compute_allocator& allocator) {
  const auto refuse = [&](const char* why) {
    throw Error(COMPUTE_ERROR_UNSUPPORTED,
                fmt::format("{} cannot use memory of a program's allocator: {}", device.name, why))
        .on_device(device.name);
  };
  if (!device.is_host && !device.table.has_memory_import()) refuse("its plugin does not import memory");
  if (!device.is_host && !device.native.has_dlpack()) refuse("its plugin reports no DLPack device");
  auto memory = std::make_unique<LentMemory>(device, allocator);
  const int32_t type = memory->dlpack_type();
  if (std::find(std::begin(kNamedByObjects), std::end(kNamedByObjects), type) != std::end(kNamedByObjects))
    refuse("its memory consists of objects, which have no addresses");
  return memory;
}

}  // namespace compute
