// SPDX-License-Identifier: Apache-2.0
// histogram with few bins, which core requests by name: the edges, then counts in local memory.
#include <algorithm>
#include <bit>
#include <limits>

#include "plugins/common/source/expressions/combination.hpp"
#include "plugins/common/source/order/ops.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/order/histogram.inc"

constexpr int64_t kEntries = 4096;  // of a group's table
constexpr int64_t kMostCopies = 8;
constexpr int64_t kSteps = 4;       // elements that an item has in flight
constexpr int64_t kLeastLoops = 2;  // of an item, so that groups are worth their tables

int64_t elements_of(const compute_plugin_tensor& tensor) {
  int64_t elements = 1;
  for (const int64_t extent : shape_of(tensor)) elements *= extent;
  return elements;
}

}  // namespace

std::optional<Refusal> refuse_histogram(const Op& op, const Dialect& dialect) {
  const auto refused = [](int32_t code, int32_t operand, const char* why) {
    return Refusal{code, operand, cat("histogram: ", why), ""};
  };
  if (dialect.is_host || !dialect.has_fp64 || !dialect.has_int64_atomics || dialect.local_memory_bytes < 32 << 10)
    return refused(COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "the generated kernel is one for other devices");
  const int64_t elements = elements_of(op.input(0));
  if (op.output(0).shape[0] + 2 > kEntries || elements == 0 || elements > std::numeric_limits<int32_t>::max())
    return refused(COMPUTE_PLUGIN_REFUSE_SHAPE, 0, "too many bins or elements, or none");
  if (row_major_step(op.input(0)) != 1) return refused(COMPUTE_PLUGIN_REFUSE_LAYOUT, 0, "x is not row-major");
  return std::nullopt;
}

BuiltKernels build_histogram(const Op& op, const Dialect& dialect, bool with_text) {
  const compute_plugin_tensor &x = op.input(0), &y = op.output(0);
  const bool is_wide = computed_in(x.dtype) != COMPUTE_DTYPE_FLOAT32;
  const compute_dtype real = is_wide ? COMPUTE_DTYPE_FLOAT64 : COMPUTE_DTYPE_FLOAT32,
                      rounded = is_float(x.dtype) ? x.dtype : compute_dtype{COMPUTE_DTYPE_FLOAT32};
  const int64_t bins = y.shape[0], elements = elements_of(x);
  const auto begin = [&](KernelBuilder& builder) {
    builder.sign(x.dtype);
    for (int32_t i = 0; i < 2; ++i) builder.sign(op.scalar_dtype(i));
  };
  const auto add_words = [&](KernelBuilder& builder, std::vector<Value>& values) {
    const int32_t bins_word = builder.word(bins), step_word = builder.word(y.strides[0]);
    values = {{"group", dialect.group_size},
              {"bins", KernelBuilder::index_word(bins_word)},
              {"step", KernelBuilder::index_word(step_word)},
              {"type", type_text(real).value},
              {"minimum", builder.scalar(0, COMPUTE_DTYPE_FLOAT64)},
              {"maximum", builder.scalar(1, COMPUTE_DTYPE_FLOAT64)}};
  };
  BuiltKernels built;
  built.workspace_bytes = (bins + 1) * dtype_size(real);
  std::vector<Value> values;

  KernelBuilder edges(dialect, "histogram_edges", with_text);
  begin(edges);
  edges.pointer(Pointer::kWorkspace, 0, 0);
  edges.pointer(Pointer::kTensor, 1, 0);
  add_words(edges, values);
  edges.declare(0, type_text(real).storage, false);
  edges.declare(1, "i64", false);
  if (with_text) {
    Functions& functions = edges.functions();
    const std::string edge = convert_text("edge", COMPUTE_DTYPE_FLOAT64, rounded, functions);
    values.emplace_back("rounded", convert_text(edge, rounded, real, functions));
    const std::string infinity = identity_text(Combination::min, real);
    values.emplace_back("next", call_text(COMPUTE_PLUGIN_INTRINSIC_NEXTAFTER, real, {"rounded", infinity}, functions));
    edges.body = fill(kHistogramEdges, values);
  }
  built.add(edges, divide_up(bins + 1, dialect.group_size));

  KernelBuilder counts(dialect, "histogram", with_text);
  const int64_t copies =
      std::min(kMostCopies, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(kEntries / (bins + 2)))));
  const int64_t groups = std::min(divide_up(elements, dialect.group_size * kSteps * kLeastLoops),
                                  int64_t{dialect.compute_units} * dialect.groups_per_unit);
  begin(counts);
  counts.sign(copies);
  counts.is_wide = elements > std::numeric_limits<int32_t>::max() / 4;
  counts.pointer(Pointer::kTensor, 0, 0);
  counts.pointer(Pointer::kWorkspace, 0, 0);
  counts.pointer(Pointer::kTensor, 1, 0);
  add_words(counts, values);
  const int32_t elements_word = counts.word(elements), stride_word = counts.word(groups * dialect.group_size);
  counts.declare(0, type_text(x.dtype).storage, true);
  counts.declare(1, type_text(real).storage, true);
  counts.declare(2, "i64", false);
  if (with_text) {
    values.insert(values.end(),
                  {{"entries", kEntries},
                   {"copies", copies},
                   {"steps", kSteps},
                   {"storage", type_text(x.dtype).storage},
                   {"elements", KernelBuilder::index_word(elements_word)},
                   {"stride", KernelBuilder::index_word(stride_word)},
                   {"value", convert_text(value_of_element(x.dtype, "values[s]"), x.dtype, real, counts.functions())}});
    counts.body = fill(kHistogram, values);
  }
  built.add(counts, groups);
  return built;
}

}  // namespace compute::common
