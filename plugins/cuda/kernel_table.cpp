// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/kernel_table.hpp"

#include "plugins/cuda/compiler.hpp"
#include "plugins/cuda/libraries.hpp"
#include "plugins/cuda/module.hpp"

namespace compute::cuda {
namespace {

constexpr int kFirstThatWaits = 90;  // as COMPUTE_WAIT_FOR_KERNELS of the generated texts

}  // namespace

void KernelTable::clear() noexcept {
  for (const auto& [key, entry] : entries_) {
    if (entry->kernel.module != nullptr) cu.module_unload(entry->kernel.module);
  }
  entries_.clear();
}

KernelTable::Entry& KernelTable::entry_of(const common::KernelKey& key) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Entry>& entry = entries_[key];
  if (!entry) entry = std::make_unique<Entry>();
  return *entry;
}

void KernelTable::make(Entry& entry, const std::string& name, const std::string& text,
                       const std::vector<std::string>& options, int64_t* out_compiled) {
  const Program program = compile(text, name, compute_capability_, options);
  if (program.was_compiled && out_compiled != nullptr) ++*out_compiled;
  entry.kernel = load(program);
  entry.kernel.name = name;
  entry.kernel.waits = target_architecture(compute_capability_) >= kFirstThatWaits;
  entry.is_ready.store(true, std::memory_order_release);
}

}  // namespace compute::cuda
