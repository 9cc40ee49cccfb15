// SPDX-License-Identifier: Apache-2.0
// searchsorted, which core requests by name.
#include <array>

#include "plugins/common/source/order/ops.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/order/search.inc"

}  // namespace

std::optional<Refusal> refuse_search(const Op& op) {
  if (op.input_count() > 2 && op.input(2).rank >= 0)
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, 2, "searchsorted: a sorter is not supported", ""};
  if (op.input(0).dtype != op.input(1).dtype)
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 1, "searchsorted: the dtypes differ", ""};
  return std::nullopt;
}

BuiltKernels build_search(const Op& op, const Dialect& dialect, bool with_text) {
  const compute_plugin_tensor &sorted = op.input(0), &values = op.input(1), &output = op.output(0);
  const compute_dtype dtype = sorted.dtype, computed = computed_in(dtype);
  KernelBuilder builder(dialect, "searchsorted", with_text);
  const LoopNest nest = collapse_operands(shape_of(values), std::vector{strides_of(values), strides_of(output)}, 0);
  const std::array<int32_t, 2> sizes = {dtype_size(dtype), dtype_size(output.dtype)};
  const int64_t terms = sorted.shape[0], step = sorted.strides[0];
  builder.is_wide = needs_wide(nest, sizes, nest.points()) || (std::abs(step) + 1) * terms * sizes[0] > INT32_MAX / 4;
  const bool is_right = op.text("side") == "right";
  builder.sign(dtype);
  builder.sign(is_right);
  builder.sign(nest.rank);
  builder.pointer(Pointer::kTensor, 0, 0);
  builder.pointer(Pointer::kTensor, 1, nest.offsets[0] * sizes[0]);
  builder.pointer(Pointer::kTensor, op.input_count(), nest.offsets[1] * sizes[1]);
  const int32_t points_word = builder.word(nest.points()), terms_word = builder.word(terms),
                step_word = builder.word(step);
  Space space(nest);
  space.add_words(builder, 1);
  builder.declare(0, type_text(dtype).storage, true);
  builder.declare(1, type_text(dtype).storage, true);
  builder.declare(2, "i64", false);
  if (with_text) {
    Functions& functions = builder.functions();
    const auto value = [&](const std::string& element) {
      return convert_text(value_of_element(dtype, element), dtype, computed, functions);
    };
    const bool has_nan = is_float(dtype);
    const auto less = [&](const char* a, const char* b) {
      return has_nan ? cat("(", a, " < ", b, " || (", b, " != ", b, " && ", a, " == ", a, "))")
                     : cat("(", a, " < ", b, ")");
    };
    // Of bools the first true one is looked for: Intel's compiler for CPUs gets an order of two bools wrong here.
    const bool has_order = dtype != COMPUTE_DTYPE_BOOL;
    const std::string is_before = !has_order ? "!found"
                                  : is_right ? cat("!", less("wanted", "found"))
                                             : less("found", "wanted");
    const char* const position = has_order ? "low" : is_right ? "wanted ? terms : low" : "wanted ? low : 0";
    builder.body = fill(kSearch, {{"group", dialect.group_size},
                                  {"points", KernelBuilder::index_word(points_word)},
                                  {"coordinates", space.coordinates(builder, "c", "i")},
                                  {"step", KernelBuilder::index_word(step_word)},
                                  {"type", type_text(computed).value},
                                  {"wanted", value(cat("x1[", space.offset(0, "c"), "]"))},
                                  {"terms", KernelBuilder::index_word(terms_word)},
                                  {"found", value("x0[(low + half_count) * step]")},
                                  {"is_before", is_before},
                                  {"position", position},
                                  {"to", space.offset(1, "c")}});
  }
  BuiltKernels built;
  built.add(builder, divide_up(nest.points(), dialect.group_size));
  return built;
}

}  // namespace compute::common
