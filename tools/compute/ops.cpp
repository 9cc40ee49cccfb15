// SPDX-License-Identifier: Apache-2.0
// compute ops: asks a device how it would run every op for every dtype.
#include <fmt/format.h>
#include <compute/compute.hpp>

#include <nlohmann/json.hpp>

#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "commands.hpp"

namespace {

using compute::check;

constexpr compute_dtype kDtypes[] = {
#define COMPUTE_DTYPE(id, name, NAME, size, category, computed_in, cuda, opencl) COMPUTE_DTYPE_##NAME,
#include <compute/dtypes.def>
#undef COMPUTE_DTYPE
};

struct Answer {
  int32_t support = COMPUTE_SUPPORT_NONE;
  std::string reason;  // why not
  int64_t workspace_bytes = 0;
};

const char* support_text(int32_t support) {
  switch (support) {
    case COMPUTE_SUPPORT_NATIVE:
      return "native";
    case COMPUTE_SUPPORT_DECOMPOSED:
      return "decomposed";
    case COMPUTE_SUPPORT_HOST:
      return "host";
    default:
      return "-";
  }
}

// A plain call of the op: 4 x 4 operands of one dtype. Where an op wants others for some operand, it gets them.
Answer ask(compute_device* device, const compute_op_info& info, compute_dtype dtype) {
  static constexpr int64_t kShape[] = {4, 4};
  const compute_op* op = nullptr;
  check(compute_op_find(info.name, info.version, &op));
  std::vector<compute_tensor_spec> inputs;
  std::istringstream names(info.inputs);
  for (std::string name; names >> name;) {
    compute_tensor_spec spec{};
    spec.struct_size = sizeof spec;
    spec.dtype = name == "indices" ? COMPUTE_DTYPE_INT64 : dtype;
    spec.rank = 2;
    spec.shape = kShape;
    inputs.push_back(spec);
  }
  if (std::strcmp(info.name, "where") == 0) inputs[0].dtype = COMPUTE_DTYPE_BOOL;
  if (std::strcmp(info.name, "take") == 0) inputs[1].rank = 1;

  std::vector<compute_attribute> attributes;
  const int64_t four = 4;
  const double one = 1;
  const auto add = [&](const char* name, int32_t kind, int64_t count, const void* values) {
    if (std::strstr(info.attributes, name) != nullptr) {
      attributes.push_back(compute::detail::attribute(name, kind, count, values));
    }
  };
  if (info.inputs[0] == 0) {
    add("dtype", COMPUTE_KIND_DTYPE, 1, &dtype);
    add("shape", COMPUTE_KIND_INT64, 2, kShape);
    add("size", COMPUTE_KIND_INT64, 1, &four);
    add("rows", COMPUTE_KIND_INT64, 1, &four);
    add("columns", COMPUTE_KIND_INT64, 1, &four);
    if (std::strcmp(info.name, "linspace") == 0) {
      add("start", COMPUTE_KIND_FLOAT64, 1, &one);
      add("stop", COMPUTE_KIND_FLOAT64, 1, &one);
    }
  } else if (std::strcmp(info.name, "cast") == 0) {
    add("dtype", COMPUTE_KIND_DTYPE, 1, &dtype);
  }

  Answer answer;
  compute::detail::TextFree reason;
  try {
    check(compute_op_query(device, op, attributes.data(), static_cast<int64_t>(attributes.size()), inputs.data(),
                           static_cast<int64_t>(inputs.size()), &answer.support, &reason.text,
                           &answer.workspace_bytes));
    answer.reason = reason.str();
  } catch (const compute::Error& error) {
    answer.reason = error.what();  // a dtype that the op does not take
  }
  return answer;
}

}  // namespace

int show_ops(const std::string& selector, bool json) {
  const compute::Device device = selector.empty() ? compute::Device::open() : compute::Device::open(selector);
  int64_t count = 0;
  check(compute_op_list(nullptr, 0, &count));
  std::vector<compute_op_info> ops(static_cast<size_t>(count));
  ops[0].struct_size = sizeof(compute_op_info);
  check(compute_op_list(ops.data(), count, &count));

  nlohmann::json all = nlohmann::json::array();
  if (!json) fmt::print("{} on {}\n", "Ops", device.name());
  for (const compute_op_info& info : ops) {
    std::map<std::string, std::string> by_support;  // how -> dtypes
    std::map<std::string, std::string> refusals;    // reason -> dtypes
    for (const compute_dtype dtype : kDtypes) {
      const Answer answer = ask(device.get(), info, dtype);
      const char* name = compute_dtype_name(dtype);
      if (json) {
        all.push_back({{"op", info.name},
                       {"version", info.version},
                       {"dtype", name},
                       {"support", answer.support == COMPUTE_SUPPORT_NONE ? "refused" : support_text(answer.support)},
                       {"reason", answer.reason},
                       {"workspace_bytes", answer.workspace_bytes}});
        continue;
      }
      std::string& list =
          answer.support != COMPUTE_SUPPORT_NONE ? by_support[support_text(answer.support)] : refusals[answer.reason];
      list += (list.empty() ? "" : " ") + std::string(name);
    }
    if (json) continue;
    for (const auto& [how, dtypes] : by_support) fmt::print("{:<22} {:<12} {}\n", info.name, how, dtypes);
    for (const auto& [reason, dtypes] : refusals) fmt::print("{:<22} {:<12} {}\n", info.name, "refused", reason);
  }
  if (json) fmt::print("{}\n", all.dump(1, ' ', false, decltype(all)::error_handler_t::replace));
  return 0;
}
