// SPDX-License-Identifier: Apache-2.0
// Ops and a dtype of the plugin's own: two numbers of 4 bits in a byte, and the ops that pack and unpack them.
#include <cstring>
#include <string_view>

#include "index_space.hpp"
#include "minimal.hpp"
#include "plan.hpp"

namespace minimal {
namespace {

constexpr std::string_view kDtypeName = "minimal_u4x2";  // in which a byte is an element

std::atomic<int32_t> dtype_number{0};

bool low_first(const compute_plugin_op& op) {
  const auto given = attribute<int64_t>(op, "low_first");
  return given.empty() || given[0] != 0;
}

void require(bool is_so, const char* what) {
  if (!is_so) throw Refused{COMPUTE_PLUGIN_REFUSE_DTYPE, -1, what};
}

// `axis` of the plan is the first half of a byte: 0 for the low one.
void prepare_pack(Plan& plan, const compute_plugin_op& op) {
  require(plan.tensors[0].dtype == COMPUTE_DTYPE_UINT8, "only uint8 is packed");
  plan.axis = low_first(op) ? 0 : 1;
}

compute_plugin_fault run_pack(const Plan& plan, const Operands& operands) {
  const Tensor &input = plan.tensors[0], &output = plan.tensors[1];
  const int first = plan.axis == 0 ? 0 : 4;
  Position position(input.shape);
  const auto half = [&] {
    const auto value = std::to_integer<int>(operands.tensors[0][input.offset(position.data())]) & 15;
    position.step(plan.kept);
    return value;
  };
  for (int64_t i = 0; i < output.shape[0]; ++i) {
    const int a = half(), b = half();
    operands.tensors[1][output.offset(&i)] = static_cast<std::byte>(a << first | b << (4 - first));
  }
  return kNoFault;
}

void prepare_unpack(Plan& plan, const compute_plugin_op& op) {
  require(plan.tensors[0].dtype == packed_dtype() && plan.tensors[0].rank() == 1, "only rows of packed numbers");
  plan.axis = low_first(op) ? 0 : 1;
}

compute_plugin_fault run_unpack(const Plan& plan, const Operands& operands) {
  const Tensor &input = plan.tensors[0], &output = plan.tensors[1];
  double scale = 0;
  std::memcpy(&scale, operands.scalars[0].bits, sizeof scale);
  for (int64_t i = 0; i < output.shape[0]; ++i) {
    const int64_t from = i / 2;
    const int byte = std::to_integer<int>(operands.tensors[0][input.offset(&from)]);
    const bool is_low = (i % 2 == 0) == (plan.axis == 0);
    const auto value = static_cast<float>(scale * (is_low ? byte & 15 : byte >> 4));
    std::memcpy(operands.tensors[1] + output.offset(&i), &value, sizeof value);
  }
  return kNoFault;
}

compute_plugin_vendor_op describe(std::string_view name, std::string_view summary, std::string_view attributes,
                                  std::string_view dtypes, std::string_view shapes, std::string_view result_dtypes) {
  compute_plugin_vendor_op op = {};
  op.struct_size = sizeof op;
  op.struct_type = COMPUTE_PLUGIN_STRUCT_VENDOR_OP;
  op.name = text(name);
  op.summary = text(summary);
  op.inputs = text("x");
  op.outputs = text("y");
  op.attributes = text(attributes);
  op.dtypes = text(dtypes);
  op.shapes = text(shapes);
  op.result_dtypes = text(result_dtypes);
  op.version = 1;
  return op;
}

compute_error* list(const compute_plugin_ops_sink* sink) {
  return guard([&] {
    compute_plugin_vendor_dtype dtype = {};
    dtype.struct_size = sizeof dtype;
    dtype.struct_type = COMPUTE_PLUGIN_STRUCT_VENDOR_DTYPE;
    dtype.name = text(kDtypeName);
    dtype.size_bits = 8;
    dtype_number = sink->dtype(sink->context, &dtype);
    if (dtype_number == 0) return;  // core has no place for it
    const compute_plugin_vendor_op pack = describe("minimal.pack", "pairs of numbers below 16, in a byte each",
                                                   "low_first: int64 = 1", "INTEGER", "[x.size / 2]", kDtypeName);
    const compute_plugin_vendor_op unpack =
        describe("minimal.unpack", "the numbers of packed pairs, times scale",
                 "low_first: int64 = 1; scale: float64 = 1!", "", "[x.size * 2]", "float32");
    if (sink->op(sink->context, &pack) != 1 || sink->op(sink->context, &unpack) != 1)
      throw Failure(COMPUTE_ERROR_INTERNAL, "minimal: core does not take the ops");
    // Core goes on without what it cannot take.
    const compute_plugin_vendor_op broken = describe("minimal.broken", "", "", "", "[x.size / ]", kDtypeName);
    if (sink->op(sink->context, &broken) != 0)
      throw Failure(COMPUTE_ERROR_INTERNAL, "minimal: core takes an op that it cannot parse");
    dtype.name = text("minimal_u4");
    dtype.size_bits = 4;
    if (sink->dtype(sink->context, &dtype) != 0)
      throw Failure(COMPUTE_ERROR_INTERNAL, "minimal: core takes a dtype of half a byte");
  });
}

constexpr Primitive kPack = {"minimal.pack", prepare_pack, run_pack, false, 2, 0, " low_first "};
constexpr Primitive kUnpack = {"minimal.unpack", prepare_unpack, run_unpack, false, 2, 0, " low_first "};

}  // namespace

int32_t packed_dtype() { return dtype_number; }

const Primitive* find_vendor_op(std::string_view name) {
  if (!offers_ops()) return nullptr;
  return name == kPack.name ? &kPack : name == kUnpack.name ? &kUnpack : nullptr;
}

const compute_plugin_ops_table& ops_table() {
  static constexpr compute_plugin_ops_table kTable = {sizeof(compute_plugin_ops_table), list};
  return kTable;
}

}  // namespace minimal
