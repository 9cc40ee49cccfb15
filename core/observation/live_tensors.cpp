// SPDX-License-Identifier: Apache-2.0
#include "core/observation/live_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "core/base/error.hpp"
#include "core/base/lock.hpp"
#include "core/devices/device.hpp"
#include "core/expressions/dtype.hpp"
#include "core/observation/observed.hpp"
#include "core/text/json_writer.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

// Never destroyed.
struct Live {
  Lock lock;
  int64_t next = 0;
  std::unordered_map<const void*, std::pair<int64_t, LiveTensor>> tensors;  // with the order of their creation
};

Live& live() {
  static auto* const immortal = new Live;
  return *immortal;
}

// In the order of creation.
std::vector<LiveTensor> all_alive() {
  std::vector<std::pair<int64_t, LiveTensor>> found;
  {
    Live& all = live();
    const std::lock_guard guard(all.lock);
    for (const auto& [address, entry] : all.tensors) found.push_back(entry);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<LiveTensor> tensors;
  for (auto& [order, tensor] : found) tensors.push_back(std::move(tensor));
  return tensors;
}

struct Sum {
  int64_t tensors = 0, bytes = 0;
  std::set<const void*> blocks;
};

// Each block counts once.
std::map<const Device*, Sum> by_device(const std::vector<LiveTensor>& tensors) {
  std::map<const Device*, Sum> sums;
  for (const LiveTensor& tensor : tensors) {
    Sum& sum = sums[tensor.device];
    ++sum.tensors;
    if (tensor.block != nullptr && sum.blocks.insert(tensor.block).second) sum.bytes += tensor.block_bytes;
  }
  return sums;
}

std::string text_of(const std::vector<LiveTensor>& tensors, const std::vector<CachedMemory>& cached) {
  constexpr size_t kShown = 100;
  std::string text;
  for (size_t i = 0; i < std::min(tensors.size(), kShown); ++i) {
    const LiveTensor& tensor = tensors[i];
    text += fmt::format("  {:<12}{:>14} bytes  {} [{}]", tensor.device->name, tensor.size_bytes,
                        dtype_name(tensor.dtype), fmt::join(tensor.shape, ","));
    if (!tensor.label.empty()) text += "  " + in_quotes(tensor.label);
    const std::string place = place_text(tensor.place);
    text += place.empty() ? "\n" : fmt::format("  from {}\n", printable(place));
  }
  if (tensors.size() > kShown) text += fmt::format("  and {} more\n", tensors.size() - kShown);
  for (const auto& [device, sum] : by_device(tensors)) {
    text += fmt::format("  {}: {} tensors in {} blocks of {} bytes\n", device->name, sum.tensors, sum.blocks.size(),
                        sum.bytes);
  }
  for (const CachedMemory& one : cached) {
    if (one.bytes == 0) continue;
    text +=
        fmt::format("  {}: {} bytes cached and free, the largest piece {} bytes ({} % in fragments)\n",
                    one.device->name, one.bytes, one.largest_bytes, (one.bytes - one.largest_bytes) * 100 / one.bytes);
  }
  return text;
}

std::string json_of(const std::vector<LiveTensor>& tensors, const std::vector<CachedMemory>& cached) {
  JsonWriter out;
  out.begin_object().key("tensors").begin_array();
  for (const LiveTensor& tensor : tensors) {
    out.begin_object().field("device", tensor.device->name).field("dtype", dtype_name(tensor.dtype));
    out.key("shape").begin_array();
    for (const int64_t extent : tensor.shape) out.value(extent);
    out.end_array().field("bytes", tensor.size_bytes).field("label", tensor.label);
    out.field("place", place_text(tensor.place)).end_object();
  }
  out.end_array().key("devices").begin_array();
  for (const auto& [device, sum] : by_device(tensors)) {
    out.begin_object().field("device", device->name).field("tensors", sum.tensors);
    out.field("blocks", static_cast<int64_t>(sum.blocks.size())).field("bytes", sum.bytes).end_object();
  }
  out.end_array().key("cached").begin_array();
  for (const CachedMemory& one : cached) {
    out.begin_object().field("device", one.device->name).field("bytes", one.bytes);
    out.field("largest_bytes", one.largest_bytes).end_object();
  }
  out.end_array().end_object();
  return out.take() + "\n";
}

}  // namespace

void note_tensor(const void* tensor, LiveTensor facts) noexcept {
  Live& all = live();
  const std::lock_guard guard(all.lock);
  try {
    all.tensors.insert_or_assign(tensor, std::make_pair(all.next++, std::move(facts)));
  } catch (...) {
    // It is missing, then.
  }
}

void forget_tensor(const void* tensor) noexcept {
  Live& all = live();
  const std::lock_guard guard(all.lock);
  all.tensors.erase(tensor);
}

void label_tensor(const void* tensor, const char* label) noexcept {
  Live& all = live();
  const std::lock_guard guard(all.lock);
  const auto found = all.tensors.find(tensor);
  if (found == all.tensors.end()) return;
  try {
    found->second.second.label = label;
  } catch (...) {
    // It keeps the old one.
  }
}

std::string leak_report(int32_t format, const std::vector<CachedMemory>& cached) {
  if (!observes(kTracksLeaks))
    throw Error(COMPUTE_ERROR_UNSUPPORTED, "compute_leak_report: tensors are not tracked; set COMPUTE_LEAKS=1");
  const std::vector<LiveTensor> tensors = all_alive();
  if (format == COMPUTE_FORMAT_JSON) return json_of(tensors, cached);
  return fmt::format("{} tensors are alive\n{}", tensors.size(), text_of(tensors, cached));
}

std::string leaks_at_end(const std::vector<CachedMemory>& cached) {
  if (!observes(kTracksLeaks)) return "";
  const std::vector<LiveTensor> tensors = all_alive();
  if (tensors.empty()) return "";
  return fmt::format("compute: {} tensors were never released:\n{}", tensors.size(), text_of(tensors, cached));
}

}  // namespace compute
