// SPDX-License-Identifier: Apache-2.0
// Pools with padding, and gradients of pools whose windows overlap or have padding. Plugins are offered them by the
// names of the ops.
#include "plugins/common/op/pooling.hpp"

#include <algorithm>
#include <cstdlib>

#include "plugins/common/source/expressions/combination.hpp"
#include "plugins/common/source/reduce/ops.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/reduce/pooling.inc"

// The loops over the result, and the strides of operands along them: of all axes, or of n and c.
LoopNest loops_over(const compute_plugin_tensor& result) {
  LoopNest nest;
  nest.rank = result.rank;
  std::copy_n(result.shape, result.rank, nest.extents.begin());
  return nest;
}

void add_operand(LoopNest& nest, const compute_plugin_tensor& tensor, bool has_spatial) {
  auto& strides = nest.strides.emplace_back();
  std::copy_n(tensor.strides, has_spatial ? static_cast<size_t>(tensor.rank) : kPoolLead, strides.begin());
  nest.offsets.push_back(0);
}

bool is_long(const compute_plugin_tensor& tensor) {
  int64_t span = 1;
  for (int32_t axis = 0; axis < tensor.rank; ++axis)
    span += std::llabs(tensor.strides[axis]) * (tensor.shape[axis] - 1);
  return span * dtype_size(tensor.dtype) > INT32_MAX / 4;
}

class PoolingBuilder {
 public:
  PoolingBuilder(const Op& op, const Dialect& dialect, bool with_text)
      : op_(op),
        dialect_(dialect),
        pooling_(op),
        builder_(dialect, op.name(), with_text),
        dtype_(op.output(0).dtype),
        wide_(computed_in(dtype_)) {}

  BuiltKernels build() {
    const compute_plugin_tensor& result = op_.output(0);
    LoopNest nest = loops_over(result);
    for (int32_t i = 0; i < op_.tensor_count(); ++i)
      add_operand(nest, op_.tensor(i), i == op_.input_count() || is_x_of_grad(i));
    const int64_t points = nest.points();
    builder_.is_wide = is_wide(points);
    const bool uses_filled = !pooling_.is_max && pooling_.is_padded && !pooling_.counts_padding;
    builder_.sign(dtype_);
    builder_.sign(nest.rank);
    builder_.sign(uses_filled);
    for (const PoolWindow& w : pooling_.windows) builder_.sign(w.dilation > 1);
    for (int32_t i = 0; i < op_.tensor_count(); ++i) {
      builder_.pointer(Pointer::kTensor, i, 0);
      builder_.declare(i, type_text(dtype_).storage, i < op_.input_count());
    }
    const int32_t points_word = builder_.word(points), taps_word = builder_.word(pooling_.taps());
    for (size_t i = missing(); i < kPoolSpatial; ++i) {
      const PoolWindow& w = pooling_.windows[i];
      words_[i] = {builder_.word(w.extent), builder_.word(w.size),  builder_.word(w.stride), builder_.word(w.dilation),
                   builder_.word(w.before), builder_.word(w.count), builder_.word(w.reach())};
    }
    for (int32_t i = 0; i < op_.input_count(); ++i) {
      const PoolStrides strides = pool_strides(op_.input(i));
      for (size_t axis = missing(); axis < kPoolSpatial; ++axis)
        stride_words_[static_cast<size_t>(i)][axis] = builder_.word(strides[kPoolLead + axis]);
    }
    Space space(nest);
    space.add_words(builder_, 1);
    if (builder_.with_text()) {
      values_ = {{"group", dialect_.group_size},
                 {"points", KernelBuilder::index_word(points_word)},
                 {"coordinates", space.coordinates(builder_, "c", "item")},
                 {"type", type_text(wide_).value}};
      const std::string taps = uses_filled ? "" : KernelBuilder::index_word(taps_word);
      builder_.body = !pooling_.is_grad ? pool_text(space, taps)
                      : pooling_.is_max ? max_grad_text(space)
                                        : average_grad_text(space, taps);
    }
    BuiltKernels built;
    built.add(builder_, divide_up(points, dialect_.group_size));
    return built;
  }

 private:
  enum Word : size_t { kExtent, kSize, kStride, kDilation, kBefore, kCount, kReach, kWords };

  size_t missing() const { return kPoolLead + kPoolSpatial - static_cast<size_t>(op_.output(0).rank); }
  bool is_x_of_grad(int32_t i) const { return pooling_.is_grad && pooling_.is_max && i == 1; }

  bool is_wide(int64_t points) const {
    if (points > INT32_MAX / 2) return true;
    for (int32_t i = 0; i < op_.tensor_count(); ++i)
      if (is_long(op_.tensor(i))) return true;
    return std::any_of(pooling_.windows.begin(), pooling_.windows.end(),
                       [](const PoolWindow& w) {
                         return w.extent + w.before + w.after > INT32_MAX / 4 || w.count * w.stride > INT32_MAX / 4 ||
                                w.reach() > INT32_MAX / 4;
                       }) ||
           pooling_.taps() > INT32_MAX / 4;
  }

  // ---- text

  std::string word(size_t axis, Word which) const {
    if (axis < missing()) return which == kBefore ? "0" : "1";
    if (which == kDilation && pooling_.windows[axis].dilation == 1) return "1";
    return KernelBuilder::index_word(words_[axis][which]);
  }
  std::string coordinate(size_t axis) const { return axis < missing() ? "0" : cat("c", kPoolLead + axis - missing()); }
  // The sum of the places along the spatial axes times the input's strides.
  template <class Place>
  std::string spatial_offset(int32_t input, const Place& place) const {
    std::string text;
    for (size_t axis = missing(); axis < kPoolSpatial; ++axis) {
      text += cat(" + ", place(axis + 1), " * ",
                  KernelBuilder::index_word(stride_words_[static_cast<size_t>(input)][axis]));
    }
    return text;
  }
  std::string loaded(int32_t input, const std::string& offset) {
    return convert_text(value_of_element(dtype_, cat("x", input, "[", offset, "]")), dtype_, wide_,
                        builder_.functions());
  }
  std::string stored() { return element_of_value(dtype_, convert_text("result", wide_, dtype_, builder_.functions())); }
  std::string joined() {
    const bool takes_most = pooling_.is_max && !pooling_.is_grad;
    return combine_text(takes_most ? Combination::max : Combination::sum, wide_, "result", "x", builder_.functions());
  }
  std::string start() const {
    const bool takes_most = pooling_.is_max && !pooling_.is_grad;
    return takes_most ? identity_text(Combination::max, wide_) : cat("(", type_text(wide_).value, ")0");
  }
  std::string divided(const std::string& x) {
    return call_text(COMPUTE_PLUGIN_INTRINSIC_DIV, wide_, {x, "n"}, builder_.functions());
  }
  static std::string window_place(size_t i) { return cat("w", i); }

  void add(std::string_view name, const std::string& text) { values_.emplace_back(name, text); }

  std::string pool_text(const Space& space, const std::string& taps) {
    std::string windows, count = pooling_.is_max ? "" : taps;
    for (size_t i = 1; i <= kPoolSpatial; ++i) {
      windows += fill(kPoolWindow, {{"i", i},
                                    {"c", coordinate(i - 1)},
                                    {"stride", word(i - 1, kStride)},
                                    {"before", word(i - 1, kBefore)},
                                    {"dilation", word(i - 1, kDilation)},
                                    {"extent", word(i - 1, kExtent)},
                                    {"size", word(i - 1, kSize)}});
      if (!pooling_.is_max && taps.empty())
        count += cat(i > 1 ? " * " : "", "(high", i, " > low", i, " ? high", i, " - low", i, " : 1)");
    }
    add("windows", windows);
    add("from", space.offset(0, "c"));
    add("start", start());
    add("element", loaded(0, cat("from", spatial_offset(0, [&](size_t i) {
                                   return cat("(s", i, " + t", i, " * ", word(i - 1, kDilation), ")");
                                 }))));
    add("joined", joined());
    add("count", count);
    if (!pooling_.is_max) add("average", divided("result"));
    add("to", space.offset(1, "c"));
    add("result", stored());
    return fill(kPool, values_);
  }

  void add_elements() {
    std::string elements;
    for (size_t i = 1; i <= kPoolSpatial; ++i) {
      elements += fill(kPoolElement, {{"i", i},
                                      {"c", coordinate(i - 1)},
                                      {"before", word(i - 1, kBefore)},
                                      {"reach", word(i - 1, kReach)},
                                      {"stride", word(i - 1, kStride)},
                                      {"windows", word(i - 1, kCount)}});
    }
    add("elements", elements);
  }

  std::string average_grad_text(const Space& space, const std::string& taps) {
    static constexpr const char* kFilled[] = {"filled1", "filled2", "filled3"};
    add_elements();
    for (size_t i = 1; i <= kPoolSpatial; ++i) {
      add(kFilled[i - 1], !taps.empty() ? ""
                                        : fill(kPoolFilled, {{"i", i},
                                                             {"stride", word(i - 1, kStride)},
                                                             {"before", word(i - 1, kBefore)},
                                                             {"size", word(i - 1, kSize)},
                                                             {"extent", word(i - 1, kExtent)}}));
    }
    add("from", space.offset(0, "c"));
    add("start", start());
    add("count", taps.empty() ? "n1 * n2 * n3" : taps);
    add("share", divided(loaded(0, cat("from", spatial_offset(0, window_place)))));
    add("joined", joined());
    add("to", space.offset(1, "c"));
    add("result", stored());
    return fill(kAveragePoolGrad, values_);
  }

  // The element's number in the window, along an axis.
  std::string tap(size_t i) const {
    const std::string dilation = word(i - 1, kDilation);
    const std::string offset = cat("place", i, " - w", i, " * ", word(i - 1, kStride));
    if (dilation == "1") return cat("const ix t", i, " = ", offset, ";\n");
    return cat("const ix o", i, " = ", offset, ", t", i, " = o", i, " / ", dilation, ";\nif (t", i, " * ", dilation,
               " != o", i, ") continue;\n");
  }

  std::string max_grad_text(const Space& space) {
    static constexpr const char* kTaps[] = {"tap1", "tap2", "tap3"};
    static constexpr const char* kStrides[] = {"stride1", "stride2", "stride3"};
    static constexpr const char* kDilations[] = {"dilation1", "dilation2", "dilation3"};
    static constexpr const char* kBefores[] = {"before1", "before2", "before3"};
    static constexpr const char* kSizes[] = {"", "size2", "size3"};
    static constexpr const char* kExtents[] = {"", "extent2", "extent3"};
    add_elements();
    for (size_t i = 0; i < kPoolSpatial; ++i) {
      add(kTaps[i], tap(i + 1));
      add(kStrides[i], word(i, kStride));
      add(kDilations[i], word(i, kDilation));
      add(kBefores[i], word(i, kBefore));
      if (i > 0) add(kSizes[i], word(i, kSize));
      if (i > 0) add(kExtents[i], word(i, kExtent));
    }
    add("from_dy", space.offset(0, "c"));
    add("from_x", cat(space.offset(1, "c"), spatial_offset(1, [&](size_t i) { return cat("-", coordinate(i - 1)); })));
    add("from_y", space.offset(2, "c"));
    add("here", loaded(1, space.offset(1, "c")));
    add("start", start());
    add("most", loaded(2, cat("from_y", spatial_offset(2, window_place))));
    add("other", loaded(1, cat("from_x", spatial_offset(1, [](size_t i) { return cat("q", i); }))));
    add("given", loaded(0, cat("from_dy", spatial_offset(0, window_place))));
    add("joined", joined());
    add("to", space.offset(3, "c"));
    add("result", stored());
    return fill(kMaxPoolGrad, values_);
  }

  const Op& op_;
  const Dialect& dialect_;
  const Pooling pooling_;
  KernelBuilder builder_;
  const compute_dtype dtype_, wide_;
  std::array<std::array<int32_t, kWords>, kPoolSpatial> words_{};
  std::array<std::array<int32_t, kPoolSpatial>, 3> stride_words_{};  // per input
  std::vector<Value> values_;
};

}  // namespace

BuiltKernels build_pooling(const Op& op, const Dialect& dialect, bool with_text) {
  return PoolingBuilder(op, dialect, with_text).build();
}

}  // namespace compute::common
