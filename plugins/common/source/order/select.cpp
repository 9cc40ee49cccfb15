// SPDX-License-Identifier: Apache-2.0
// nonzero and unique, which core requests by name. unique selects from sorted keys, each with its original
// position.
#include <algorithm>

#include "plugins/common/source/order/ops.hpp"
#include "plugins/common/source/order/sort.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/order/select.inc"

constexpr int kItems = 16;  // elements of a tile for each work item

int64_t element_count(const compute_plugin_tensor& tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.rank; ++i) count *= tensor.shape[i];
  return count;
}

// The loops over a tensor in row-major order, with as few as that order allows.
LoopNest row_major_nest(const compute_plugin_tensor& tensor) {
  LoopNest nest;
  nest.strides.resize(1);
  nest.offsets = {0};
  for (int32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] == 1) continue;
    const auto last = static_cast<size_t>(nest.rank - 1);
    if (nest.rank > 0 && nest.strides[0][last] == tensor.strides[i] * tensor.shape[i]) {
      nest.extents[last] *= tensor.shape[i];
      nest.strides[0][last] = tensor.strides[i];
    } else {
      nest.extents[last + 1] = tensor.shape[i];
      nest.strides[0][last + 1] = tensor.strides[i];
      ++nest.rank;
    }
  }
  return nest;
}

class SelectBuilder {
 public:
  SelectBuilder(const Op& op, const Dialect& dialect, bool with_text)
      : op_(op),
        dialect_(dialect),
        with_text_(with_text),
        is_unique_(op.name() == "unique"),
        n_(element_count(op.input(0))) {
    tile_ = int64_t{kItems} * dialect.group_size;
    const int64_t wanted = int64_t{dialect.compute_units} * (dialect.is_host ? 4 : dialect.groups_per_unit);
    span_ = divide_up(divide_up(n_, wanted), tile_) * tile_;
    parts_ = divide_up(n_, span_);
    for (int32_t i = 0; i < op.tensor_count(); ++i) {
      const compute_plugin_tensor& tensor = op.tensor(i);
      const LoopNest nest = row_major_nest(tensor);
      const int32_t size = dtype_size(tensor.dtype);
      is_wide_ = is_wide_ || needs_wide(nest, std::span(&size, 1), nest.points());
    }
  }

  BuiltKernels build() {
    BuiltKernels built;
    if (is_unique_) sorted_ = add_sorted_keys(built, op_, dialect_, with_text_);
    counts_at_ = built.workspace_bytes;
    lasts_at_ = counts_at_ + divide_up(parts_ * 8, 256) * 256;
    built.workspace_bytes = lasts_at_ + (is_unique_ ? divide_up(parts_ * 8, 256) * 256 : 0);
    add(built, false);
    add(built, true);
    return built;
  }

 private:
  // Parameters: the input, the tables of parts, the sorted keys and their positions, and the outputs.
  static constexpr int32_t kInput = 0, kCounts = 1, kLasts = 2, kKeys = 3, kPositions = 4, kOutputs = 5;

  compute_dtype dtype() const { return op_.input(0).dtype; }

  void add(BuiltKernels& built, bool writes) const {
    KernelBuilder builder(dialect_, cat(op_.name(), writes ? "_write" : "_count"), with_text_);
    builder.is_wide = is_wide_;
    const compute_plugin_tensor& input = op_.input(0);
    Space source(row_major_nest(input)), inverse(is_unique_ ? row_major_nest(op_.output(2)) : LoopNest{});
    builder.sign(dtype());
    builder.sign(input.rank);
    builder.sign(source.rank());
    builder.sign(inverse.rank());
    builder.pointer(Pointer::kTensor, 0, 0);
    builder.declare(kInput, bits_type(), true);
    builder.pointer(Pointer::kWorkspace, 0, counts_at_);
    builder.declare(kCounts, "ix", writes);
    builder.pointer(Pointer::kWorkspace, 0, lasts_at_);
    builder.declare(kLasts, "ix", writes);
    builder.pointer(Pointer::kWorkspace, 0, sorted_.keys_at);
    if (is_unique_) builder.declare(kKeys, sorted_.key_type, true);
    builder.pointer(Pointer::kWorkspace, 0, sorted_.positions_at);
    builder.declare(kPositions, "u32", true);
    for (int32_t i = 0; writes && i < op_.output_count(); ++i) {
      builder.pointer(Pointer::kTensor, op_.input_count() + i, 0);
      builder.declare(kOutputs + i, is_unique_ && i == 0 ? bits_type() : "i64", false);
    }
    const int32_t n_word = builder.word(n_), span_word = builder.word(span_), parts_word = builder.word(parts_);
    source.add_words(builder, 1);
    inverse.add_words(builder, 1);
    std::vector<Value> values = {{"group", dialect_.group_size},
                                 {"half", dialect_.group_size / 2},
                                 {"items", kItems},
                                 {"tile", tile_},
                                 {"n", KernelBuilder::index_word(n_word)},
                                 {"span", KernelBuilder::index_word(span_word)},
                                 {"parts", KernelBuilder::index_word(parts_word)},
                                 {"counts", kCounts},
                                 {"lasts", kLasts},
                                 {"positions", kPositions},
                                 {"is_unique", is_unique_},
                                 {"coordinates", is_unique_ ? "" : source.coordinates(builder, "k", "e")},
                                 {"flag", is_unique_ ? is_new_text() : is_set_text(source.offset(0, "k"))},
                                 {"total", kOutputs + op_.output_count() - 1},
                                 {"inverse", kOutputs + 2},
                                 {"inverse_coordinates", inverse.coordinates(builder, "c", "position")},
                                 {"inverse_at", inverse.offset(0, "c")}};
    if (writes) {
      is_unique_ ? add_values(builder, source, values) : add_indices(builder, values);
    }
    if (with_text_) {
      const std::string_view text =
          dialect_.is_host ? (writes ? kSelectWriteHost : kSelectCountHost) : (writes ? kSelectWrite : kSelectCount);
      builder.body = fill(text, [&](std::string_view name) -> std::optional<std::string_view> {
        const auto found =
            std::find_if(values.begin(), values.end(), [&](const Value& value) { return value.name == name; });
        if (found == values.end()) return std::nullopt;
        return found->text;
      });
    }
    built.add(builder, parts_);
  }

  // Row i of the output has the indices along axis i.
  void add_indices(KernelBuilder& builder, std::vector<Value>& values) const {
    const compute_plugin_tensor &input = op_.input(0), &output = op_.output(0);
    LoopNest axes;
    axes.rank = input.rank;
    std::copy_n(input.shape, input.rank, axes.extents.begin());
    Space space(axes);
    space.add_words(builder, 1);
    const int32_t row_word = builder.word(output.strides[0]), column_word = builder.word(output.strides[1]);
    const auto store = [&](int32_t axis, const std::string& value) {
      return cat("x", kOutputs, "[row_step * ", axis, " + to * column_step] = ", value, ";\n");
    };
    std::string stores = space.coordinates(builder, "c", "e"), clear;
    for (int32_t i = 0; i < input.rank; ++i) {
      stores += store(i, cat("(i64)c", i));
      clear += store(i, "0");
    }
    values.emplace_back("steps", cat("const ix row_step = ", KernelBuilder::index_word(row_word),
                                     ", column_step = ", KernelBuilder::index_word(column_word), ";\n"));
    values.emplace_back("store", stores);
    values.emplace_back("clear", clear);
  }

  void add_values(KernelBuilder& builder, const Space& source, std::vector<Value>& values) const {
    std::string steps;
    for (const int32_t i : {0, 1, 3})
      steps += cat("const ix step", i, " = ", KernelBuilder::index_word(builder.word(op_.output(i).strides[0])), ";\n");
    const auto at = [](int32_t output, const char* place) {
      return cat("x", kOutputs + output, "[", place, " * step", output, "]");
    };
    values.emplace_back("steps", steps);
    values.emplace_back("store", cat("const ix position = (ix)x", kPositions, "[e];\n",
                                     source.coordinates(builder, "k", "position"), at(0, "to"), " = x", kInput, "[",
                                     source.offset(0, "k"), "];\n", at(1, "to"), " = (i64)position;\n"));
    values.emplace_back("store_count", cat(at(3, "(to - 1)"), " = (i64)(e - earlier);"));
    values.emplace_back("store_last_count", cat(at(3, "(total - 1)"), " = (i64)(n - start);"));
    values.emplace_back("clear", cat(at(0, "to"), " = 0;\n", at(1, "to"), " = 0;\n", at(3, "to"), " = 0;\n"));
  }

  // Elements as bits; a complex128 is two words.
  const char* bits_type() const { return bits_storage(std::min(dtype_size(dtype()), 8)); }

  // Whether the element at `at` is not zero; -0 is.
  std::string is_set_text(const std::string& at) const {
    switch (dtype()) {
      case COMPUTE_DTYPE_FLOAT16:
      case COMPUTE_DTYPE_BFLOAT16:
        return cat("(x0[", at, "] & 0x7fff) != 0");
      case COMPUTE_DTYPE_FLOAT32:
        return cat("(x0[", at, "] & 0x7fffffffu) != 0");
      case COMPUTE_DTYPE_FLOAT64:
        return cat("(x0[", at, "] & COMPUTE_U64(0x7fffffffffffffff)) != 0");
      case COMPUTE_DTYPE_COMPLEX64:
        return cat("(x0[", at, "] & COMPUTE_U64(0x7fffffff7fffffff)) != 0");
      case COMPUTE_DTYPE_COMPLEX128:
        return cat("((x0[", at, " * 2] | x0[", at, " * 2 + 1]) & COMPUTE_U64(0x7fffffffffffffff)) != 0");
      default:
        return cat("x0[", at, "] != 0");
    }
  }

  // Whether a key differs from the one before it. A NaN differs from a NaN.
  std::string is_new_text() const {
    const std::string key = cat("x", kKeys, "[e]");
    return cat("e == 0 || ", key, " != x", kKeys, "[e > 0 ? e - 1 : 0]",
               is_float(dtype()) ? cat(" || ", key, " == ", sorted_.key_of_nan) : std::string());
  }

  const Op& op_;
  const Dialect& dialect_;
  const bool with_text_, is_unique_;
  const int64_t n_;
  int64_t tile_ = 1, span_ = 1, parts_ = 1;  // elements of a tile and of a part
  bool is_wide_ = false;
  SortedKeys sorted_;
  int64_t counts_at_ = 0, lasts_at_ = 0;  // bytes in the workspace
};

}  // namespace

std::optional<Refusal> refuse_select(const Op& op, const Dialect& dialect) {
  const bool is_unique = op.name() == "unique";
  if (element_count(op.input(0)) == 0)
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, cat(op.name(), ": there are no elements"), ""};
  const int64_t local = dialect.group_size * int64_t{kItems * 5 + 4 + 3 * 8};
  if (dialect.group_size > 4096 || dialect.local_memory_bytes < local) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1,
                   cat(op.name(), ": work groups or local memory are too small"), ""};
  }
  return is_unique ? refuse_sorted_keys(op, dialect) : std::nullopt;
}

BuiltKernels build_select(const Op& op, const Dialect& dialect, bool with_text) {
  return SelectBuilder(op, dialect, with_text).build();
}

}  // namespace compute::common
