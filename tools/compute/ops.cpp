// SPDX-License-Identifier: Apache-2.0
// compute ops: asks a device how it would run a plain call of every op for every dtype.
#include <fmt/format.h>
#include <compute/compute.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "commands.hpp"
#include "plain_call.hpp"
#include "print_json.hpp"
#include "table.hpp"

namespace {

using compute::DType;
using compute::Support;
using compute::SupportLevel;

const char* support_text(SupportLevel support) {
  switch (support) {
    case SupportLevel::native:
      return "native";
    case SupportLevel::decomposed:
      return "decomposed";
    case SupportLevel::host:
      return "host";
    default:
      return "refused";
  }
}

struct Answer {
  Support support;
  bool op_takes_dtype = true;  // false: no device runs it
};

Answer ask(const compute::Device& device, const compute::OpInfo& info, DType dtype) {
  const auto [inputs, attributes] = plain_call(info, dtype, true);
  try {
    return {.support = compute::Op(std::string(info.name), info.version).query(device, inputs, attributes)};
  } catch (const compute::Error& error) {
    return {.support = {.reason = error.what()}, .op_takes_dtype = error.code() != COMPUTE_ERROR_INVALID_ARGUMENT};
  }
}

// The plain form of a call, as docs/ops.md shows it.
std::string signature_of(const compute::OpInfo& info) {
  std::string text = fmt::format("{}(", info.name);
  std::istringstream names{std::string(info.inputs)};
  bool is_first = true;
  for (std::string name; names >> name; is_first = false) text += (is_first ? "" : ", ") + name;
  if (!info.attributes.empty()) text += fmt::format("{}{}", is_first ? "" : "; ", info.attributes);
  return text + fmt::format(") -> {}", info.outputs);
}

void print_signature(const compute::OpInfo& info) {
  fmt::print("{}\n  {}\n  version {}; dtypes: {}; error bound: {}\n", signature_of(info), info.summary, info.version,
             info.dtypes, info.bound);
  if (!info.expression.empty()) fmt::print("  expression: {}\n", info.expression);
}

// How a device runs an op, and why not better: the dtypes for each.
using Rows = std::map<std::pair<std::string_view, std::string>, std::string>;

Rows rows_of(const compute::Device& device, const compute::OpInfo& info, nlohmann::json& out) {
  Rows rows;
  for (const DType dtype : dtypes_of(device.info())) {
    const auto [answer, op_takes_dtype] = ask(device, info, dtype);
    out.push_back({{"op", info.name},
                   {"version", info.version},
                   {"dtype", dtype.name()},
                   {"support", support_text(answer.level)},
                   {"reason", answer.reason},
                   {"workspace_bytes", answer.workspace_bytes}});
    if (!op_takes_dtype) continue;
    std::string& list = rows[{support_text(answer.level), answer.reason}];
    list += (list.empty() ? "" : " ") + std::string(dtype.name());
  }
  return rows;
}

// "native 12, decomposed 2": the numbers of dtypes.
std::string summary_of(const Rows& rows) {
  std::map<std::string_view, int64_t> counts;
  for (const auto& [how, dtypes] : rows) counts[how.first] += 1 + std::count(dtypes.begin(), dtypes.end(), ' ');
  std::string text;
  for (const auto& [how, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", how, count);
  return text;
}

}  // namespace

int show_ops(const std::string& selector, const std::string& op, bool json) {
  if (!op.empty()) static_cast<void>(compute::Op(op));  // of an unknown one the error names the nearest
  if (!selector.empty()) log_no_choice();
  const compute::Device device = selector.empty() ? compute::Device::open() : compute::Device::open(selector);
  nlohmann::json all = nlohmann::json::array();
  using enum Table::Column;
  Table table{{"", kText}, {"", kText}, {"", kElastic}};
  if (!json && op.empty()) fmt::print("Ops on {}, by the number of dtypes\n", device.name());
  for (const compute::OpInfo& info : compute::Op::list()) {
    if (!op.empty() && info.name != op) continue;
    const Rows rows = rows_of(device, info, all);
    if (json) continue;
    if (op.empty()) {
      table.add({std::string(info.name), summary_of(rows), std::string(info.summary)});
      continue;
    }
    print_signature(info);
    fmt::print("  on {}:\n", device.name());
    for (const auto& [how, dtypes] : rows) {
      fmt::print("    {:<12} {}\n", how.first, dtypes);
      if (!how.second.empty()) fmt::print("{:<17}{}\n", "", how.second);
    }
  }
  if (json) print_json(all);
  if (!json && op.empty()) fmt::print("{}", table.text());
  return 0;
}
