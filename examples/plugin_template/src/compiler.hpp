// SPDX-License-Identifier: Apache-2.0
// Kernels: compiled functions by their keys.
#pragma once

#include <compute/plugin.h>

#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

namespace acme {

/// A kernel for points [begin, end) of an index space. TODO: the driver's handle of a kernel.
using KernelFunction = void (*)(int64_t begin, int64_t end, void* const* tensors, const int64_t* words,
                                const int64_t* scalars, compute_plugin_fault* fault);

/// The kernels of a device; each is compiled once.
class Kernels {
 public:
  /// The kernel with this key. `text` makes its source, a function `kernel`, if the key is new. A key names everything
  /// that the text depends on, and never a size: a program with many shapes must not compile many kernels.
  KernelFunction find(const std::string& key, const std::function<std::string()>& text, int64_t* out_compiled);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, KernelFunction> by_key_;
};

/// The file of the compiler, or an empty string.
std::string find_compiler();

}  // namespace acme
