// SPDX-License-Identifier: Apache-2.0
#include "op_table.hpp"

#include <algorithm>
#include <unordered_map>

namespace onnxruntime_compute {
namespace {

using Table = std::unordered_multimap<std::string, OpEntry>;

const Table& table() {
  static const Table all = [] {
    std::vector<OpEntry> entries;
    add_elementwise(entries);
    add_arrays(entries);
    add_indices(entries);
    add_reductions(entries);
    add_networks(entries);
    add_resampling(entries);
    add_attention(entries);
    add_signals(entries);
    add_sampling(entries);
    Table made;
    for (const OpEntry& entry : entries) made.emplace(entry.name, entry);
    return made;
  }();
  return all;
}

}  // namespace

bool is_unsigned(DType dtype) {
  return dtype == compute::uint8 || dtype == compute::uint16 || dtype == compute::uint32 || dtype == compute::uint64;
}

bool is_float8(DType dtype) { return dtype == compute::float8_e4m3fn || dtype == compute::float8_e5m2; }

bool is_in(DType dtype, uint32_t dtypes) {
  if (dtype == DType() || dtype == compute::complex64 || dtype == compute::complex128) return false;
  if (dtype == compute::bool_) return (dtypes & kBool) != 0;
  if (is_float8(dtype)) return (dtypes & kFloat8) != 0;
  return (dtypes & (is_real(dtype) ? kReal : kIntegers)) != 0;
}

const OpEntry* find_op(const Claim& claim, const compute::Device& device, std::string* reason) {
  const Node& node = claim.node;
  if (!node.domain.empty()) {
    *reason = "the domain " + node.domain;
    return nullptr;
  }
  const auto [begin, end] = table().equal_range(node.type);
  const OpEntry* entry = nullptr;
  for (auto at = begin; at != end; ++at) {
    if (node.version >= at->second.since && node.version <= at->second.until) entry = &at->second;
  }
  if (entry == nullptr) {
    *reason = begin == end ? "no such op" : "its version " + std::to_string(node.version);
    return nullptr;
  }
  const compute::DeviceInfo info = device.info();
  const auto require = [&](DType dtype) {
    const bool is_known = is_in(dtype, kAny | (entry->dtypes & kFloat8));
    const auto level = is_float8(dtype) ? compute::DTypeSupport::convert : compute::DTypeSupport::arithmetic;
    if (is_known && info.supports(dtype, level)) return true;
    *reason = is_known ? "the dtype " + std::string(dtype.name()) : "its element type";
    return false;
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.has_input(i) && !require(claim.dtype(i))) return nullptr;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.has_output(i) && !require(claim.output_dtype(i))) return nullptr;
  }
  if (!node.inputs.empty() && node.has_input(0) && !is_in(claim.dtype(0), entry->dtypes)) {
    *reason = "the dtype " + std::string(claim.dtype(0).name());
    return nullptr;
  }
  if (entry->refusal != nullptr) {
    *reason = entry->refusal(claim);
    if (!reason->empty()) return nullptr;
  }
  return entry;
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : table()) names.push_back(name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace onnxruntime_compute
