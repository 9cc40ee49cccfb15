// SPDX-License-Identifier: Apache-2.0
// compute ops: asks a device how it would run every op for every dtype.
#include <fmt/format.h>
#include <compute/compute.hpp>

#include <nlohmann/json.hpp>

#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "commands.hpp"

namespace {

using compute::Attribute;
using compute::DType;
using compute::Support;
using compute::SupportLevel;
using compute::TensorSpec;

constexpr DType kDtypes[] = {
#define COMPUTE_DTYPE(id, name, NAME, size, category, computed_in, cuda, opencl) COMPUTE_DTYPE_##NAME,
#include <compute/dtypes.def>
#undef COMPUTE_DTYPE
};

const char* support_text(SupportLevel support) {
  switch (support) {
    case SupportLevel::native:
      return "native";
    case SupportLevel::decomposed:
      return "decomposed";
    case SupportLevel::host:
      return "host";
    default:
      return "-";
  }
}

// A plain call of the op: 4 x 4 operands of one dtype. Where an op wants others for some operand, it gets them.
Support ask(const compute::Device& device, const compute::OpInfo& info, DType dtype) {
  std::vector<TensorSpec> inputs;
  std::istringstream names{std::string(info.inputs)};
  for (std::string name; names >> name;) {
    inputs.push_back({.dtype = name == "indices" ? compute::int64 : dtype, .shape = {4, 4}});
  }
  if (info.name == "where") inputs[0].dtype = compute::bool_;
  if (info.name == "take") inputs[1].shape = {4};

  std::vector<Attribute> attributes;
  const auto add = [&](const char* name, const auto& value) {
    if (info.attributes.find(name) != info.attributes.npos) attributes.emplace_back(name, value);
  };
  if (info.inputs.empty()) {
    add("dtype", dtype);
    add("shape", compute::Shape{4, 4});
    add("size", 4);
    add("rows", 4);
    add("columns", 4);
    if (info.name == "linspace") {
      add("start", 1.0);
      add("stop", 1.0);
    }
  } else if (info.name == "cast") {
    add("dtype", dtype);
  }
  try {
    return compute::Op(std::string(info.name), info.version).query(device, inputs, attributes);
  } catch (const compute::Error& error) {
    return {.reason = error.what()};  // a dtype that the op does not take
  }
}

}  // namespace

int show_ops(const std::string& selector, bool json) {
  const compute::Device device = selector.empty() ? compute::Device::open() : compute::Device::open(selector);

  nlohmann::json all = nlohmann::json::array();
  if (!json) fmt::print("{} on {}\n", "Ops", device.name());
  for (const compute::OpInfo& info : compute::Op::list()) {
    std::map<std::string, std::string> by_support;  // how -> dtypes
    std::map<std::string, std::string> refusals;    // reason -> dtypes
    for (const DType dtype : kDtypes) {
      const Support answer = ask(device, info, dtype);
      const std::string_view name = dtype.name();
      if (json) {
        all.push_back({{"op", info.name},
                       {"version", info.version},
                       {"dtype", name},
                       {"support", answer.level == SupportLevel::unsupported ? "refused" : support_text(answer.level)},
                       {"reason", answer.reason},
                       {"workspace_bytes", answer.workspace_bytes}});
        continue;
      }
      std::string& list =
          answer.level != SupportLevel::unsupported ? by_support[support_text(answer.level)] : refusals[answer.reason];
      list += (list.empty() ? "" : " ") + std::string(name);
    }
    if (json) continue;
    for (const auto& [how, dtypes] : by_support) fmt::print("{:<22} {:<12} {}\n", info.name, how, dtypes);
    for (const auto& [reason, dtypes] : refusals) fmt::print("{:<22} {:<12} {}\n", info.name, "refused", reason);
  }
  if (json) fmt::print("{}\n", all.dump(1, ' ', false, decltype(all)::error_handler_t::replace));
  return 0;
}
