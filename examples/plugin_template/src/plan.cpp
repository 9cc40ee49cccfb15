// SPDX-License-Identifier: Apache-2.0
// The five required primitives as kernels: loops over the points of an index space, with expressions from the kernel
// kit. Each point is visited by itself. TODO: one work item per point, in place of the loop.
#include <compute_kit/combination.hpp>
#include <compute_kit/expression.hpp>
#include <compute_kit/prelude.hpp>

#include <algorithm>
#include <array>
#include <numeric>

#include "device.hpp"
#include "dialect.hpp"

namespace acme {
namespace {

using kit::cat;

// What precedes a kernel's own statements. The words of a launch: the axis that an index goes along and its extent, the
// points that a reduction combines, the axes of the index space, those that are kept, those that are reduced, and the
// strides of each tensor. So no size is part of the text.
constexpr std::string_view kKernel = R"(
typedef struct { i32 code, argument; i64 value, limit, position; } acme_fault;
static inline void place(i64 i, i64 count, const i64* axes, const i64* extents, i64* at) {
  for (i64 k = count - 1; k >= 0; --k) {
    at[axes[k]] = i % extents[axes[k]];
    i /= extents[axes[k]];
  }
}
static inline i64 offset(i64 rank, const i64* at, const i64* strides) {
  i64 sum = 0;
  for (i64 axis = 0; axis < rank; ++axis) sum += at[axis] * strides[axis];
  return sum;
}
static inline void report(acme_fault* fault, i32 argument, i64 value, i64 limit, i64 position) {
  if (fault->code != 0) return;
  fault->argument = argument;
  fault->value = value;
  fault->limit = limit;
  fault->position = position;
  fault->code = 1;
}
void kernel(i64 begin, i64 end, void* const* t, const i64* w, const i64* s, acme_fault* fault) {
  const i64 axis = w[0], limit = w[1], terms = w[2], rank = w[3];
  const i64 *extents = w + 4, *kept = extents + rank + 1, *reduced = kept + kept[-1] + 1;
  const i64* strides = reduced + reduced[-1];
  i64 at[33] = {0};
  for (i64 i = begin; i < end; ++i) {
    place(i, kept[-1], kept, extents, at);
)";

constexpr std::string_view kPrimitives[] = {"map", "copy", "reduce", "gather", "scatter"};

std::string element(const kit::Op& op, int32_t tensor) {
  return cat("((", kit::type_text(op.tensor(tensor).dtype).storage, "*)t[", tensor, "])[offset(rank, at, strides + ",
             tensor, " * rank)]");
}
std::string value(const kit::Op& op, int32_t tensor) {
  return kit::value_of_element(op.tensor(tensor).dtype, element(op, tensor));
}
std::string store(const kit::Op& op, int32_t tensor, const std::string& text) {
  return cat(element(op, tensor), " = ", kit::element_of_value(op.tensor(tensor).dtype, text), ";\n");
}

std::string scalar(const kit::Op& op, int32_t i) {
  return kit::scalar_text(op.scalar_dtype(i), cat("s[", 2 * i, "]"), cat("s[", 2 * i + 1, "]"));
}

// The statements of an expression over the op's inputs at a point, and then of each output.
std::string map_text(const kit::Op& op, kit::Functions& functions) {
  const kit::Leaves leaves = {[&](int32_t i) { return value(op, i); },
                              [](int32_t axis) { return cat("at[", axis, "]"); },
                              [&](int32_t i) { return scalar(op, i); }};
  std::string text;
  const auto outputs = kit::print_expression(op.expression(0), leaves, "w", functions, text);
  for (size_t i = 0; i < outputs.size(); ++i) text += store(op, op.input_count() + static_cast<int32_t>(i), outputs[i]);
  return text;
}

// Sums of floats keep what they have lost.
std::string reduce_text(const kit::Op& op, kit::Functions& functions) {
  const kit::Combination kind = kit::combination_of(op.text("kind"));
  const compute_dtype dtype = op.dtype("accumulator");
  const std::string type = kit::type_text(dtype).value, name = kit::type_text(dtype).name;
  const bool is_compensated = kit::is_compensated_sum(kind, dtype);
  const std::string identity = kit::identity_text(kind, dtype);
  std::string text = cat(type, " sum = ", identity, ";\n");
  if (is_compensated) text += cat(functions.need("two_sum", dtype).empty() ? "" : type, " lost = ", identity, ";\n");
  text += "for (i64 r = 0; r < terms; ++r) {\nplace(r, reduced[-1], reduced, extents, at);\n";
  const int32_t first = op.expression(0).scalar_count;
  kit::Leaves leaves = {[&](int32_t i) { return value(op, i); }, [](int32_t axis) { return cat("at[", axis, "]"); },
                        [&](int32_t i) { return scalar(op, i); }};
  const std::string term = kit::print_expression(op.expression(0), leaves, "w", functions, text).at(0);
  text += is_compensated ? cat("two_sum_", name, "(&sum, &lost, ", term, ");\n}\n")
                         : cat("sum = ", kit::combine_text(kind, dtype, "sum", term, functions), ";\n}\n");
  if (is_compensated) text += cat("sum = total_", name, "(sum, lost);\n");
  text += "for (i64 k = 0; k < reduced[-1]; ++k) at[reduced[k]] = 0;\n";
  leaves.input = [](int32_t) { return std::string("sum"); };
  leaves.scalar = [&](int32_t i) { return scalar(op, first + i); };
  const auto outputs = kit::print_expression(op.expression(1), leaves, "u", functions, text);
  for (size_t i = 0; i < outputs.size(); ++i) text += store(op, op.input_count() + static_cast<int32_t>(i), outputs[i]);
  return text;
}

// Puts an index in the place of its coordinate, or reports it.
std::string index_text(const kit::Op& op, int32_t tensor) {
  return cat("const i64 index = (i64)", element(op, tensor), ", own = at[axis];\n",
             "if (index < -limit || index >= limit) {\nreport(fault, ", tensor, ", index, limit, i);\ncontinue;\n}\n");
}

std::string gather_text(const kit::Op& op) {
  const std::string type = kit::type_text(op.tensor(0).dtype).storage;
  return cat(index_text(op, 1), type, "* const result = &", element(op, 2), ";\n",
             "at[axis] = index < 0 ? index + limit : index;\n*result = ", element(op, 0), ";\nat[axis] = own;\n");
}

// In row-major order, so that results repeat.
std::string scatter_text(const kit::Op& op, kit::Functions& functions) {
  const compute_dtype dtype = op.tensor(2).dtype, wide = kit::computed_in(dtype);
  const std::string_view name = op.text("reduction");
  std::string text = index_text(op, 0) + cat("const ", kit::type_text(dtype).value, " x = ", value(op, 1), ";\n",
                                             "at[axis] = index < 0 ? index + limit : index;\n");
  std::string result = "x";
  if (name != "set") {
    const kit::Combination kind = name == "add"   ? kit::Combination::sum
                                  : name == "mul" ? kit::Combination::prod
                                                  : kit::combination_of(name);
    text += cat("const ", kit::type_text(dtype).value, " old = ", value(op, 2), ";\n");
    result = kit::combine_text(kind, wide, kit::convert_text("old", dtype, wide, functions),
                               kit::convert_text("x", dtype, wide, functions), functions);
    result = kit::convert_text(result, wide, dtype, functions);
  }
  return text + store(op, 2, result) + "at[axis] = own;\n";
}

std::string copy_text(const kit::Op& op, kit::Functions& functions) {
  const compute_dtype from = op.input(0).dtype, to = op.output(0).dtype;
  if (from == to) return cat(element(op, 1), " = ", element(op, 0), ";\n");
  return store(op, 1, kit::convert_text(value(op, 0), from, to, functions));
}

std::string source_of(const kit::Op& op) {
  kit::Functions functions(dialect());
  const std::string_view name = op.name();
  const std::string body = name == "map"      ? map_text(op, functions)
                           : name == "copy"   ? copy_text(op, functions)
                           : name == "reduce" ? reduce_text(op, functions)
                           : name == "gather" ? gather_text(op)
                                              : scatter_text(op, functions);
  return cat(kit::portable_prelude(dialect()), functions.text(), kKernel, body, "}\n}\n");
}

// All that the text depends on.
std::string key_of(const kit::Op& op) {
  std::string key = cat(op.name(), " ", op.text("kind"), op.text("reduction"), " ", op.dtype("accumulator"));
  for (int32_t i = 0; i < op.tensor_count(); ++i) key += cat(" ", op.tensor(i).dtype);
  for (int32_t i = 0; i < op.expression_count(); ++i)
    key.append(reinterpret_cast<const char*>(op.expression(i).digest), sizeof op.expression(i).digest);
  return key;
}

// The tensor whose shape is the index space.
int32_t space_of(const kit::Op& op) {
  return op.name() == "scatter" ? 1 : op.name() == "reduce" ? 0 : op.tensor_count() - 1;
}

}  // namespace

std::optional<kit::Refusal> refuse(const kit::Op& op) {
  const std::string name(op.name());
  if (std::find(std::begin(kPrimitives), std::end(kPrimitives), name) == std::end(kPrimitives) || op.version() != 1)
    return kit::Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "acme does not implement " + name, ""};
  for (int32_t i = 0; i < op.expression_count(); ++i) {
    if (const int32_t id = kit::unknown_intrinsic(op.expression(i)); id != 0)
      return kit::Refusal{COMPUTE_PLUGIN_REFUSE_INTRINSIC, id, "intrinsic " + std::to_string(id) + " is unknown", ""};
  }
  return std::nullopt;
}

Plan::Plan(const kit::Op& op, Device& device) {
  kernel_ = device.kernels.find(
      key_of(op), [&] { return source_of(op); }, &kernels_compiled);
  const compute_plugin_tensor& space = op.tensor(space_of(op));
  const std::span<const int64_t> shape(space.shape, static_cast<size_t>(space.rank)), axes = op.integers("axes");
  const int64_t axis = op.integer("axis", 0);
  const bool is_gather = op.name() == "gather", is_scatter = op.name() == "scatter";
  std::vector<int64_t> kept, reduced(axes.begin(), axes.end());
  for (int64_t i = 0; i < space.rank; ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) kept.push_back(i);
  }
  const auto points = [&](const std::vector<int64_t>& of) {
    return std::accumulate(of.begin(), of.end(), int64_t{1},
                           [&](int64_t n, int64_t a) { return n * shape[static_cast<size_t>(a)]; });
  };
  points_ = points(kept);
  words_ = {axis,
            is_gather    ? op.tensor(0).shape[axis]
            : is_scatter ? op.tensor(2).shape[axis]
                         : 0,
            points(reduced), space.rank};
  words_.insert(words_.end(), shape.begin(), shape.end());
  for (const std::vector<int64_t>* list : {&kept, &reduced}) {
    words_.push_back(static_cast<int64_t>(list->size()));
    words_.insert(words_.end(), list->begin(), list->end());
  }
  for (int32_t i = 0; i < op.tensor_count(); ++i)
    words_.insert(words_.end(), op.tensor(i).strides, op.tensor(i).strides + space.rank);
  reports_faults = is_gather || is_scatter;
}

// TODO: launch in the driver's queue.
void Plan::run(const compute_plugin_run& run, Stream& stream) const {
  std::vector<void*> tensors;
  for (int32_t i = 0; i < run.tensor_count; ++i) tensors.push_back(address(run.tensors[i]));
  compute_plugin_fault own = {};
  auto* const fault = run.fault.buffer != 0 ? reinterpret_cast<compute_plugin_fault*>(address(run.fault)) : &own;
  kernel_(0, points_, tensors.data(), words_.data(), reinterpret_cast<const int64_t*>(run.scalars), fault);
  if (own.code != 0)
    stream.fail({COMPUTE_ERROR_KERNEL_FAILED, "index " + std::to_string(own.value) +
                                                  " is outside of an axis of extent " + std::to_string(own.limit)});
}

}  // namespace acme
