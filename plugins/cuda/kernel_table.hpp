// SPDX-License-Identifier: Apache-2.0
// Kernels that are loaded on one device, each made once, whichever caller needs it first.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "plugins/common/source/generator.hpp"
#include "plugins/cuda/compiler.hpp"
#include "plugins/cuda/driver_api.hpp"

namespace compute::cuda {

/// A function of a loaded module. `name` lives as long as the device.
struct Kernel {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  /// Its code begins by waiting for earlier kernels, so the device may set it up while they still run.
  bool waits = false;
  std::string name;
};

/// Loads the whole program on the device whose context is current, so its first launch loads nothing. Throws
/// COMPILE_FAILED with the driver's log.
Kernel load(const Program& program);

/// The extents of a launch.
struct Grid {
  unsigned groups = 0, group_size = 0;
  unsigned local_bytes = 0;  // in addition to those that the kernel declares
};

class KernelTable {
 public:
  explicit KernelTable(int compute_capability) : compute_capability_(compute_capability) {}
  KernelTable(const KernelTable&) = delete;
  KernelTable& operator=(const KernelTable&) = delete;

  /// Unloads everything. The context must be current.
  void clear() noexcept;

  /// The kernel with this key. Only if there is none yet, `make_source` is called, without holding a lock of other
  /// kernels. *out_compiled is incremented if it was compiled, but not if it came from the disk.
  ///
  /// The context must be current. Throws COMPILE_FAILED with the compiler's log.
  template <class MakeSource>
  const Kernel& get(const common::KernelKey& key, const std::vector<std::string>& options,
                    const MakeSource& make_source, int64_t* out_compiled) {
    Entry& entry = entry_of(key);
    if (!entry.is_ready.load(std::memory_order_acquire)) {
      const std::lock_guard lock(entry.mutex);
      if (!entry.is_ready.load(std::memory_order_relaxed)) {
        const common::KernelSource source = make_source();
        make(entry, source.name, source.text, options, out_compiled);
      }
    }
    return entry.kernel;
  }

 private:
  struct Entry {
    std::mutex mutex;  // one compilation at a time
    std::atomic<bool> is_ready{false};
    Kernel kernel;
  };

  Entry& entry_of(const common::KernelKey& key);
  void make(Entry& entry, const std::string& name, const std::string& text, const std::vector<std::string>& options,
            int64_t* out_compiled);

  const int compute_capability_;
  std::mutex mutex_;
  std::unordered_map<common::KernelKey, std::unique_ptr<Entry>, common::KernelKeyHash> entries_;
};

}  // namespace compute::cuda
