// SPDX-License-Identifier: Apache-2.0
// convolution, convolution_grad_input and convolution_grad_weight. Forms:
//
//   item     a work item computes one result: for little work, and on a CPU core one channel
//   block    on a CPU core a work item computes a block of results
//   group    a group adds up the terms of one result: few results of many terms each
//   row      a group adds up a part of the terms of all results of a row: few columns of many terms each
//   columns  a work item computes all results of some columns: few rows
//   phases   the same for all products of a strided gradient together, because they read the same elements of b
//   tiles    on a GPU a group computes a tile of results through local memory. Where this keeps more of the device
//            busy, the depth is divided, and a second kernel adds up the parts
#include <algorithm>
#include <cstdlib>

#include "plugins/common/op/windows.hpp"
#include "plugins/common/source/convolution/convolution_forms.hpp"
#include "plugins/common/source/convolution/ops.hpp"

namespace compute::common {
namespace convolutions {
namespace {

#include "plugins/common/source/convolution/convolution.inc"

// The b stride along the innermost axis of an index space that has points, and its extent.
struct Run {
  int64_t stride = 1, extent = 1;
};
Run run_of(const std::array<int64_t, kWindowAxes>& extents, const std::array<int64_t, kMaxSpatial>& strides,
           const std::array<int64_t, kMaxSpatial>& steps, int64_t outer) {
  for (size_t i = kMaxSpatial; i-- > 0;) {
    if (extents[1 + i] != 1) return {std::max<int64_t>(std::llabs(strides[i] * steps[i]), 1), extents[1 + i]};
  }
  return {std::max<int64_t>(std::llabs(outer), 1), extents[0]};
}

class ConvolutionBuilder {
 public:
  ConvolutionBuilder(const Op& op, const WindowProduct& p, const Dialect& dialect, Form form, const Tiles& tiles,
                     bool with_text, const Phases* phases = nullptr)
      : op_(op),
        p_(p),
        phases_(phases),
        dialect_(dialect),
        form_(form),
        tiles_(tiles),
        builder_(dialect, "convolution", with_text),
        operands_(window_operands(op)),
        dtype_(op.output(0).dtype),
        wide_(computed_in(dtype_)),
        size_(dtype_size(dtype_)),
        results_(p.groups * p.rows * p.columns()) {}

  void add_to(BuiltKernels& built) {
    builder_.is_wide = is_wide(op_, p_, tiles_.parts);
    builder_.sign(static_cast<int64_t>(form_));
    builder_.sign(dtype_);
    builder_.sign(operands_.bias >= 0);
    add_operands();
    add_words();
    if (form_ == Form::kTiles && tiles_.units) builder_.local_bytes = tiles_.units->tile.local_bytes();
    if (builder_.with_text()) builder_.body = text();
    built.add(builder_, groups());
  }

 private:
  int64_t groups() const {
    if (form_ == Form::kTiles) return p_.groups * tiles_.rows * tiles_.columns * tiles_.parts;
    if (form_ == Form::kColumns || form_ == Form::kPhases) return p_.groups * tiles_.columns;
    if (form_ == Form::kRow) return p_.groups * p_.rows * tiles_.parts;
    if (form_ == Form::kBlock)
      return divide_up(p_.groups * tiles_.rows * tiles_.columns * tiles_.parts, dialect_.group_size);
    return form_ == Form::kGroup ? results_ : divide_up(results_, dialect_.group_size);
  }

  // ---- parameters

  void add_operands() {
    const auto add = [&](int32_t tensor, int64_t offset, bool is_const) {
      const int32_t number = builder_.pointer(Pointer::kTensor, tensor, offset * size_);
      builder_.declare(number, type_text(dtype_).storage, is_const);
    };
    add(operands_.a, p_.a_offset, true);
    add(operands_.b, 0, true);
    add(operands_.c, p_.c_offset, false);
    if (operands_.bias >= 0) add(operands_.bias, 0, true);
    is_divided_ = tiles_.parts > 1;
    builder_.sign(is_divided_);
    if (!is_divided_) return;
    partials_ = builder_.pointer(Pointer::kWorkspace, 0, 0);
    builder_.declare(partials_, type_text(wide_).storage, form_ == Form::kJoin);
  }

  // An index space: its axes that have more than one point, with the words of their extents and divisors.
  struct Side {
    std::array<bool, kWindowAxes> has{};
    std::array<int32_t, kWindowAxes> extents{}, divisors{};
  };

  Side add_side(const std::array<int64_t, kWindowAxes>& extents) {
    Side side;
    for (size_t i = 0; i < kWindowAxes; ++i) {
      side.has[i] = extents[i] != 1;
      builder_.sign(side.has[i]);
      if (!side.has[i]) continue;
      side.extents[i] = builder_.word(extents[i]);
      side.divisors[i] = builder_.word(divisor_word(std::max<int64_t>(extents[i], 1)));
    }
    return side;
  }

  template <size_t kCount>
  std::array<int32_t, kCount> words_of(const std::array<int64_t, kCount>& values) {
    std::array<int32_t, kCount> words;
    for (size_t i = 0; i < kCount; ++i) words[i] = builder_.word(values[i]);
    return words;
  }

  void add_words() {
    builder_.sign(form_ == Form::kTiles ? (tiles_.m * 1024 + tiles_.n) * 1024 + tiles_.depth : 0);
    builder_.sign(form_ == Form::kTiles && tiles_.units ? 1 + tiles_.units->is_swapped : 0);
    builder_.sign(form_ == Form::kColumns || form_ == Form::kPhases || form_ == Form::kBlock
                      ? tiles_.item_rows * 8 + tiles_.item_columns
                      : 0);
    for (const int64_t extent : p_.column) builder_.sign(form_ == Form::kRow ? extent : 0);
    size_t inner = kMaxSpatial;
    while (inner > 0 && p_.depth[inner] == 1) --inner;
    a_along_depth_ = std::llabs(p_.a_depth[inner]) <= std::llabs(p_.a_row);
    builder_.sign(a_along_depth_);
    const Run along_depth = run_of(p_.depth, p_.stride, p_.depth_step, p_.b_depth);
    const Run along_column = run_of(p_.column, p_.stride, p_.column_step, p_.b_column);
    b_along_depth_ = static_cast<double>(along_depth.extent) * static_cast<double>(along_column.stride) >
                     static_cast<double>(along_column.extent) * static_cast<double>(along_depth.stride);
    builder_.sign(b_along_depth_);
    depth_ = add_side(p_.depth);
    column_ = add_side(p_.column);
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      is_single_[i] = is_single(p_, i);
      builder_.sign(is_single_[i]);
    }
    add_taps();
    const int64_t even = even_stride();
    is_a_even_ = even != 0;
    builder_.sign(is_a_even_);
    has_quads_ = has_quads(even);
    builder_.sign(has_quads_);
    scalars_ = words_of(std::array{p_.groups, p_.rows, p_.columns(), p_.depth_points(), results_, p_.a_group, p_.a_row,
                                   p_.b_group, p_.c_group, p_.c_row, p_.b_depth, p_.b_column, p_.bias_group,
                                   p_.bias_row, tiles_.rows, tiles_.columns, tiles_.parts, tiles_.part_depth, even});
    a_depth_ = words_of(p_.a_depth);
    c_column_ = words_of(p_.c_column);
    extent_ = words_of(p_.extent);
    stride_ = words_of(p_.stride);
    start_ = words_of(p_.start);
    depth_step_ = words_of(p_.depth_step);
    column_step_ = words_of(p_.column_step);
    taps_ = words_of(taps_extents_);
    first_bit_ = words_of(first_bits_);
    if (phases_ != nullptr) add_phases();
  }

  void add_phases() {
    builder_.sign(p_.rows);
    for (size_t i = 0; i < kMaxSpatial; ++i) builder_.sign(p_.depth[1 + i]);
    builder_.sign(static_cast<int64_t>(phases_->all.size()));
    for (const Phase& phase : phases_->all) {
      for (size_t i = 0; i < kMaxSpatial; ++i) {
        builder_.sign(phase.first[i]);
        builder_.sign(phase.taps[i]);
        builder_.sign(p_.column[1 + i] - phase.columns[i]);
      }
      a_offsets_.push_back(builder_.word(phase.a_offset));
      c_offsets_.push_back(builder_.word(phase.c_offset));
    }
  }

  void add_taps() {
    taps_side_ = choose_taps(p_);
    builder_.sign(static_cast<int64_t>(taps_side_));
    int64_t bit = 0;
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      taps_extents_[i] = taps_side_ == Taps::kOfTerms ? p_.depth[1 + i] : p_.column[1 + i];
      first_bits_[i] = bit;
      if (!is_single_[i]) bit += taps_extents_[i];
      const int64_t tap_step = taps_side_ == Taps::kOfTerms ? p_.depth_step[i] : p_.column_step[i];
      unit_steps_[i] = std::llabs(tap_step) == 1 ? static_cast<int>(tap_step) : 0;
      builder_.sign(unit_steps_[i]);
    }
  }

  // Whether four elements of a along the depth are a word.
  bool has_quads(int64_t even) const {
    return even == 1 && a_along_depth_ && p_.a_row % 4 == 0 && p_.a_group % 4 == 0 && p_.a_offset % 4 == 0 &&
           p_.depth_points() % 4 == 0 && op_.tensor(operands_.a).alignment % 16 == 0;
  }

  // The stride of a along all of the depth, or 0.
  int64_t even_stride() const {
    int64_t stride = 0, points = 1;
    for (size_t axis = kWindowAxes; axis-- > 0;) {
      if (p_.depth[axis] == 1) continue;
      if (points == 1) stride = p_.a_depth[axis];
      if (p_.a_depth[axis] != stride * points) return 0;
      points *= p_.depth[axis];
    }
    return stride;
  }

  enum Scalar : size_t {
    kGroups,
    kRows,
    kColumns,
    kDepth,
    kResults,
    kAGroup,
    kARow,
    kBGroup,
    kCGroup,
    kCRow,
    kBDepth,
    kBColumn,
    kBiasGroup,
    kBiasRow,
    kTileRows,
    kTileColumns,
    kParts,
    kPartDepth,
    kEven,
    kScalars
  };

  // ---- text

  static std::string word(int32_t number) { return KernelBuilder::index_word(number); }
  std::string scalar(Scalar which) const { return word(scalars_[which]); }
  const char* value() const { return type_text(wide_).value; }
  std::string zero() const {
    uint8_t zero_bits[16] = {};
    return constant_text(wide_, zero_bits);
  }
  std::string loaded(const std::string& element) {
    return convert_text(value_of_element(dtype_, element), dtype_, wide_, builder_.functions());
  }
  std::string add(const std::string& x, const std::string& y) {
    return call_text(COMPUTE_PLUGIN_INTRINSIC_ADD, wide_, {x, y}, builder_.functions());
  }

  std::string step(const std::string& p, const std::string& q, const std::string& sum) {
    if (is_float(wide_)) return cat("fma(", p, ", ", q, ", ", sum, ")");
    if (is_complex(wide_)) {
      return cat(wide_ == COMPUTE_DTYPE_COMPLEX64 ? "COMPUTE_C64" : "COMPUTE_C128", "(fma(", p, ".x, ", q, ".x, fma(-",
                 p, ".y, ", q, ".y, ", sum, ".x)), fma(", p, ".x, ", q, ".y, fma(", p, ".y, ", q, ".x, ", sum, ".y)))");
    }
    return add(sum, call_text(COMPUTE_PLUGIN_INTRINSIC_MUL, wide_, {p, q}, builder_.functions()));
  }

  // Declares the coordinates prefix0 to prefix3 of a linear index; coordinates of single points are 0.
  std::string coordinates(const Side& side, const std::string& prefix, std::string rest) const {
    std::string out;
    for (size_t axis = kWindowAxes; axis-- > 0;) {
      const std::string name = cat(prefix, axis);
      const bool is_first = std::none_of(side.has.begin(), side.has.begin() + static_cast<std::ptrdiff_t>(axis),
                                         [](bool has) { return has; });
      if (!side.has[axis]) {
        out += cat("const ix ", name, " = 0;\n");
      } else if (is_first) {
        out += cat("const ix ", name, " = ", rest, ";\n");
      } else {
        const std::string quotient = cat(prefix, "q", axis);
        out += builder_.is_wide ? cat("const ix ", quotient, " = ", rest, " / ", word(side.extents[axis]), ";\n")
                                : cat("const ix ", quotient, " = compute_divide(", rest, ", ",
                                      KernelBuilder::word_text(side.divisors[axis]), ");\n");
        out += cat("const ix ", name, " = ", rest, " - ", quotient, " * ", word(side.extents[axis]), ";\n");
        rest = quotient;
      }
    }
    return out;
  }

  // group, row and column of a result's number.
  std::string result_place() const {
    return cat("const ix over = item / ", scalar(kColumns), ", column = item - over * ", scalar(kColumns),
               ", group = over / ", scalar(kRows), ", row = over - group * ", scalar(kRows), ";\n");
  }

  std::string column_place() const {
    std::string out = coordinates(column_, "j", "column");
    for (size_t i = 0; i < kMaxSpatial; ++i)
      out += cat("const ix s", i + 1, " = ", word(start_[i]), " + j", i + 1, " * ", word(column_step_[i]), ";\n");
    return out + cat("const ix bj = group * ", scalar(kBGroup), " + j0 * ", scalar(kBColumn), ";\n");
  }

  std::string depth_place() const {
    std::string out = coordinates(depth_, "d", "l");
    for (size_t i = 0; i < kMaxSpatial; ++i)
      out += cat("const ix p", i + 1, " = s", i + 1, " + d", i + 1, " * ", word(depth_step_[i]), ";\n");
    return out;
  }
  std::string inside() const {
    std::string out;
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      if (!is_single_[i])
        out += cat(out.empty() ? "" : " && ", "p", i + 1, " >= 0 && p", i + 1, " < ", word(extent_[i]));
    }
    return out.empty() ? "1" : out;
  }

  // What a tile's kernel keeps of a column and of a term: their parts of the offset in b and of the positions along its
  // spatial axes. With taps, instead of positions, bits: the one has those of its taps, the other has those of all taps
  // with which it is outside. A term beyond the depth is never inside.
  static constexpr const char* kExists = "((ix)1 << 30)";

  // Declares the bits of taps that are inside for the positions start + tap * step.
  std::string inside_taps(const std::array<std::string, kMaxSpatial>& starts,
                          const std::array<int32_t, kMaxSpatial>& steps, const char* otherwise) const {
    std::string out = cat("ix taps = ", otherwise, ";\n");
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      if (is_single_[i]) continue;
      const std::string count = word(taps_[i]), extent = word(extent_[i]), first = word(first_bit_[i]);
      if (unit_steps_[i] == 0) {
        out += cat("for (int tap = 0; tap < ", count, "; ++tap) {\n  const ix p = ", starts[i], " + tap * ",
                   word(steps[i]), ";\n  if (p >= 0 && p < ", extent, ") taps |= (ix)1 << (", first, " + tap);\n}\n");
        continue;
      }
      // Those from one tap up to another.
      const bool is_forward = unit_steps_[i] > 0;
      out += cat("{\n  const ix from = ", is_forward ? cat("-", starts[i]) : cat(starts[i], " + 1 - ", extent),
                 ", to = ", is_forward ? cat(extent, " - ", starts[i]) : cat(starts[i], " + 1"),
                 ";\n  const ix last = to < ", count, " ? to : ", count,
                 ";\n  const ix begin = from > 0 ? from : 0;\n  if (begin < last) taps |= (((ix)1 << (last - begin)) - "
                 "1) << (",
                 first, " + begin);\n}\n");
    }
    return out;
  }
  std::string own_taps(const char* prefix) const {
    std::string out;
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      if (!is_single_[i])
        out += cat(out.empty() ? "" : " | ", "(ix)1 << (", word(first_bit_[i]), " + ", prefix, i + 1, ")");
    }
    return out.empty() ? "0" : out;
  }

  std::string store_window() const {
    std::array<std::string, kMaxSpatial> starts;
    for (size_t i = 0; i < kMaxSpatial; ++i) starts[i] = cat("s", i + 1);
    std::string out, base = "bj";
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      if (!is_single_[i]) base += cat(" + ", starts[i], " * ", word(stride_[i]));
    }
    switch (taps_side_) {
      case Taps::kOfTerms:
        return inside_taps(starts, depth_step_, "0") + cat("windows[t][0] = ", base, ";\nwindows[t][1] = ~taps;\n");
      case Taps::kOfWindows:
        return cat("windows[t][0] = ", base, ";\nwindows[t][1] = ", own_taps("j"), " | ", kExists, ";\n");
      case Taps::kNone:
        break;
    }
    for (size_t i = 0; i < kMaxSpatial; ++i) out += cat("windows[t][", i + 1, "] = s", i + 1, ";\n");
    return out + cat("windows[t][0] = ", base, ";\n");
  }

  std::string store_term() const {
    std::string out = coordinates(depth_, "d", "l");
    std::string a_offset = "0", offset = cat("d0 * ", scalar(kBDepth));
    std::array<std::string, kMaxSpatial> moves, starts;
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      moves[i] = cat("d", i + 1, " * ", word(depth_step_[i]));
      starts[i] = cat("(", word(start_[i]), " + ", moves[i], ")");
      if (!is_single_[i]) offset += cat(" + ", moves[i], " * ", word(stride_[i]));
    }
    for (size_t i = 0; i < kWindowAxes; ++i) {
      if (depth_.has[i]) a_offset += cat(" + d", i, " * ", word(a_depth_[i]));
    }
    out += cat("terms[turn][id][0] = ", offset, ";\n");
    if (form_ == Form::kColumns || form_ == Form::kBlock) {
      out += cat("const ix left_place = ", a_offset, ";\n");
    } else if (!is_a_even_) {
      out += cat("left_terms[turn][id] = ", a_offset, ";\n");
    }
    switch (taps_side_) {
      case Taps::kOfTerms:
        return out + cat("terms[turn][id][1] = l < depth_end ? ", own_taps("d"), " : ", kExists, ";\n");
      case Taps::kOfWindows:
        return out + inside_taps(starts, column_step_, kExists) +
               "terms[turn][id][1] = l < depth_end ? ~taps : ~(ix)0;\n";
      case Taps::kNone:
        break;
    }
    for (size_t i = 0; i < kMaxSpatial; ++i) out += cat("terms[turn][id][", i + 1, "] = ", moves[i], ";\n");
    return out;
  }

  std::string load_words(const char* name, const std::string& from) const {
    std::string out;
    for (size_t i = 0; i < static_cast<size_t>(place_words(taps_side_)); ++i)
      out += cat("const ix ", name, i, " = ", from, "[", i, "];\n");
    return out;
  }
  std::string load_window(const char* t) const { return load_words("w", cat("windows[", t, "]")); }
  std::string load_term(const char* d) const { return load_words("v", cat("terms[turn][first + ", d, "]")); }

  std::string tile_inside() const {
    if (taps_side_ != Taps::kNone) return "(w1 & v1) == 0";
    std::string out = "k + d < depth_end";
    for (size_t i = 1; i <= kMaxSpatial; ++i) {
      if (!is_single_[i - 1])
        out += cat(" && w", i, " + v", i, " >= 0 && w", i, " + v", i, " < ", word(extent_[i - 1]));
    }
    return out;
  }
  std::string tile_left() {
    if (!is_a_even_) {
      return loaded(
          cat("x0[left_place + e * ", left_skip_t(), " * ", scalar(kARow), " + left_terms[turn][first + d]]"));
    }
    return loaded(
        cat("x0[left_place + k * ", scalar(kEven), " + e * ",
            a_along_depth_ ? cat(left_skip_t(), " * ", scalar(kARow)) : cat(left_skip_d(), " * ", scalar(kEven)), "]"));
  }

  int left_skip_t() const { return a_along_depth_ ? dialect_.group_size / tiles_.depth : 0; }
  int left_skip_d() const { return a_along_depth_ ? 0 : dialect_.group_size / tiles_.m; }
  // The first of the elements of a tile that a work item loads.
  std::string first_t(bool along_depth, int side) const {
    return along_depth ? cat("id / ", tiles_.depth) : cat("id % ", side);
  }
  std::string first_d(bool along_depth, int side) const {
    return along_depth ? cat("id % ", tiles_.depth) : cat("id / ", side);
  }

  std::string left() {
    std::string at = cat("group * ", scalar(kAGroup), " + row * ", scalar(kARow));
    for (size_t i = 0; i < kWindowAxes; ++i) {
      if (depth_.has[i]) at += cat(" + d", i, " * ", word(a_depth_[i]));
    }
    return loaded(cat("x0[", at, "]"));
  }
  std::string right() {
    std::string at = cat("bj + d0 * ", scalar(kBDepth));
    for (size_t i = 0; i < kMaxSpatial; ++i) at += cat(" + p", i + 1, " * ", word(stride_[i]));
    return loaded(cat("x1[", at, "]"));
  }

  // Stores `sum` of the result whose column has the coordinates with that prefix, `offset` elements further on.
  std::string store(const std::string& sum, const std::string& prefix, const std::string& offset = "") {
    std::string at = cat("group * ", scalar(kCGroup), " + row * ", scalar(kCRow), offset), result = sum;
    for (size_t i = 0; i < kWindowAxes; ++i) {
      if (column_.has[i]) at += cat(" + ", prefix, i, " * ", word(c_column_[i]));
    }
    std::string out;
    if (operands_.bias >= 0) {
      out = cat("const ", value(),
                " bias = ", loaded(cat("x3[group * ", scalar(kBiasGroup), " + row * ", scalar(kBiasRow), "]")),
                ", total = ", add(sum, "bias"), ";\n");
      result = "total";
    }
    return cat(out, "x2[", at,
               "] = ", element_of_value(dtype_, convert_text(result, wide_, dtype_, builder_.functions())), ";\n");
  }

  std::string partial(const std::string& column) const {
    return cat("x", partials_, "[((part * ", scalar(kGroups), " + group) * ", scalar(kRows), " + row) * ",
               scalar(kColumns), " + ", column, "]");
  }

  std::string text() {
    switch (form_) {
      case Form::kItem:
        return item_text();
      case Form::kBlock:
        return block_text();
      case Form::kGroup:
        return group_text();
      case Form::kRow:
        return row_text();
      case Form::kColumns:
        return columns_text();
      case Form::kPhases:
        return phases_text();
      case Form::kTiles:
        return tiles_.units ? units_text() : tile_text();
      case Form::kJoin:
        break;
    }
    return fill(kConvolutionJoin, {{"group_size", dialect_.group_size},
                                   {"results", scalar(kResults)},
                                   {"result_place", result_place()},
                                   {"result_column_place", coordinates(column_, "j", "column")},
                                   {"type", value()},
                                   {"zero", zero()},
                                   {"parts", scalar(kParts)},
                                   {"partial", partial("column")},
                                   {"joined", add("x", "y")},
                                   {"store", store("sum", "j")}});
  }

  std::string item_text() {
    std::vector<Value> values = {{"group_size", dialect_.group_size},
                                 {"results", scalar(kResults)},
                                 {"result_place", result_place()},
                                 {"column_place", column_place()},
                                 {"type", value()},
                                 {"zero", zero()},
                                 {"left", left()},
                                 {"right", right()},
                                 {"step", step("p", "q", "sum")},
                                 {"store", store("sum", "j")}};
    static constexpr const char* kDepths[] = {"depth0", "depth1", "depth2", "depth3"};
    static constexpr const char* kSteps[] = {"step1", "step2", "step3"};
    static constexpr const char* kExtents[] = {"extent1", "extent2", "extent3"};
    for (size_t i = 0; i < kWindowAxes; ++i)
      values.emplace_back(kDepths[i], depth_.has[i] ? word(depth_.extents[i]) : std::string("1"));
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      values.emplace_back(kSteps[i], word(depth_step_[i]));
      values.emplace_back(kExtents[i], word(extent_[i]));
    }
    return fill(kConvolutionItem, values);
  }

  std::string block_text() {
    return fill(kConvolutionBlock,
                {{"group_size", dialect_.group_size},
                 {"type", value()},
                 {"zero", zero()},
                 {"rows", scalar(kRows)},
                 {"columns", scalar(kColumns)},
                 {"depth", scalar(kDepth)},
                 {"groups", scalar(kGroups)},
                 {"tile_rows", scalar(kTileRows)},
                 {"tile_columns", scalar(kTileColumns)},
                 {"parts", scalar(kParts)},
                 {"part_depth", scalar(kPartDepth)},
                 {"most_rows", tiles_.m},
                 {"item_rows", tiles_.item_rows},
                 {"item_columns", tiles_.item_columns},
                 {"terms", kBlockTerms},
                 {"place_words", place_words(taps_side_)},
                 {"has_taps", taps_side_ != Taps::kNone},
                 {"column_place", column_place()},
                 {"store_window", store_window()},
                 {"store_term", store_term()},
                 {"load_term", load_words("v", "terms[0][0]")},
                 {"load_window", load_window("t")},
                 {"inside", tile_inside()},
                 {"right", loaded("x1[w0 + v0]")},
                 {"right_of_run", loaded("x1[w0 + v0 + t]")},
                 {"a_group", scalar(kAGroup)},
                 {"a_row", scalar(kARow)},
                 {"left", loaded("x0[lefts[i] + left_places[d]]")},
                 {"block_step", step("p[i]", "q[d][j]", "sum[i][j]")},
                 {"result_column_place", is_divided_ ? std::string() : coordinates(column_, "c", "result_column")},
                 {"store_block", is_divided_ ? cat(partial("result_column"), " = sums[row - row0][j];")
                                             : store("sums[row - row0][j]", "c")}});
  }

  std::string group_text() {
    return fill(kConvolutionGroup, {{"group_size", dialect_.group_size},
                                    {"result_place", result_place()},
                                    {"column_place", column_place()},
                                    {"type", value()},
                                    {"zero", zero()},
                                    {"depth", scalar(kDepth)},
                                    {"depth_place", depth_place()},
                                    {"inside", inside()},
                                    {"left", left()},
                                    {"right", right()},
                                    {"step", step("p", "q", "sum")},
                                    {"joined", add("x", "y")},
                                    {"store", store("sum", "j")}});
  }

  std::string row_text() {
    std::string depth_place = coordinates(depth_, "d", "l");
    std::string left_at = cat("group * ", scalar(kAGroup), " + row * ", scalar(kARow));
    std::string right_at = cat("group * ", scalar(kBGroup), " + d0 * ", scalar(kBDepth), " + j0 * ", scalar(kBColumn));
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      depth_place +=
          cat("const ix s", i + 1, " = ", word(start_[i]), " + d", i + 1, " * ", word(depth_step_[i]), ";\n");
      right_at += cat(" + p", i + 1, " * ", word(stride_[i]));
    }
    for (size_t i = 0; i < kWindowAxes; ++i) {
      if (depth_.has[i]) left_at += cat(" + d", i, " * ", word(a_depth_[i]));
    }
    return fill(
        kConvolutionRow,
        {{"group_size", dialect_.group_size},
         {"type", value()},
         {"zero", zero()},
         {"rows", scalar(kRows)},
         {"groups", scalar(kGroups)},
         {"depth", scalar(kDepth)},
         {"part_depth", scalar(kPartDepth)},
         {"row_columns", p_.columns()},
         {"depth_place", depth_place},
         {"left", loaded(cat("x0[", left_at, "]"))},
         {"right", loaded(cat("x1[", right_at, "]"))},
         {"extent0", p_.column[0]},
         {"extent1", p_.column[1]},
         {"extent2", p_.column[2]},
         {"extent3", p_.column[3]},
         {"step1", word(column_step_[0])},
         {"step2", word(column_step_[1])},
         {"step3", word(column_step_[2])},
         {"inside", inside()},
         {"row_step", step("p", "q", "sum[j]")},
         {"joined", add("x", "y")},
         {"result_column_place", is_divided_ ? std::string() : coordinates(column_, "c", "result_column")},
         {"store_row", is_divided_ ? cat(partial("result_column"), " = total_sum;") : store("total_sum", "c")}});
  }

  std::string columns_text() {
    return fill(kConvolutionColumns,
                {{"group_size", dialect_.group_size},
                 {"type", value()},
                 {"zero", zero()},
                 {"terms", std::min(dialect_.group_size, kMostTerms)},
                 {"place_words", place_words(taps_side_)},
                 {"left_words", left_words(tiles_.item_rows)},
                 {"columns", scalar(kColumns)},
                 {"depth", scalar(kDepth)},
                 {"tile_columns", scalar(kTileColumns)},
                 {"tile_n", tiles_.n},
                 {"item_rows", tiles_.item_rows},
                 {"item_columns", tiles_.item_columns},
                 {"column_place", column_place()},
                 {"store_window", store_window()},
                 {"store_term", store_term()},
                 {"left", loaded(cat("x0[group * ", scalar(kAGroup), " + row * ", scalar(kARow), " + left_place]"))},
                 {"load_term", load_term("d")},
                 {"load_window", load_window("t")},
                 {"inside", tile_inside()},
                 {"right", loaded("x1[w0 + v0]")},
                 {"columns_step", step("p", "q", "sum[row][t]")},
                 {"result_column_place", coordinates(column_, "c", "result_column")},
                 {"store_columns", store("sum[row][t]", "c")}});
  }

  std::string phases_text() {
    builder_.least_at_once = dtype_size(wide_) == 4 ? kPhaseGroups : 0;
    const int64_t steps = phases_->steps(), rows = p_.rows;
    std::string loads, taps, stores;
    std::vector<int64_t> first_steps;
    int64_t step_count = 0;
    for (size_t which = 0; which < phases_->all.size(); ++which) {
      const Phase& phase = phases_->all[which];
      const int64_t count = phase.taps[0] * phase.taps[1] * phase.taps[2];
      first_steps.push_back(step_count);
      if (count > 0) loads += phase_load(which, step_count, count);
      step_count += count;
    }
    std::array<int64_t, kMaxSpatial> tap{};
    for (tap[0] = 0; tap[0] < p_.depth[1]; ++tap[0]) {
      for (tap[1] = 0; tap[1] < p_.depth[2]; ++tap[1]) {
        for (tap[2] = 0; tap[2] < p_.depth[3]; ++tap[2]) taps += phase_tap(tap, first_steps);
      }
    }
    for (size_t which = 0; which < phases_->all.size(); ++which) {
      std::string is_there;
      for (size_t i = 0; i < kMaxSpatial; ++i) {
        const int64_t missing = p_.column[1 + i] - phases_->all[which].columns[i];
        if (missing > 0) {
          is_there +=
              cat(is_there.empty() ? "" : " && ", "c", 1 + i, " < ", word(column_.extents[1 + i]), " - ", missing);
        }
      }
      const std::string sum = cat("sum[", static_cast<int64_t>(which) * rows, " + row][t]");
      stores += fill(kConvolutionPhaseStore, {{"is_there", is_there.empty() ? "1" : is_there},
                                              {"rows", rows},
                                              {"store", store(sum, "c", cat(" + ", word(c_offsets_[which])))}});
    }
    return fill(kConvolutionPhases, {{"group_size", dialect_.group_size},
                                     {"type", value()},
                                     {"zero", zero()},
                                     {"channels", phase_channels(*phases_, dtype_size(wide_))},
                                     {"steps", std::max<int64_t>(steps, 1)},
                                     {"left_words", left_words(rows)},
                                     {"place_words", place_words(taps_side_)},
                                     {"columns", scalar(kColumns)},
                                     {"all_channels", depth_.has[0] ? word(depth_.extents[0]) : std::string("1")},
                                     {"b_channel", scalar(kBDepth)},
                                     {"tile_columns", scalar(kTileColumns)},
                                     {"tile_n", tiles_.n},
                                     {"sums", tiles_.item_rows},
                                     {"item_columns", tiles_.item_columns},
                                     {"column_place", column_place()},
                                     {"store_window", store_window()},
                                     {"loads", loads},
                                     {"taps", taps},
                                     {"result_column_place", coordinates(column_, "c", "result_column")},
                                     {"stores", stores}});
  }

  // The elements of a of one product, of `count` taps.
  std::string phase_load(size_t which, int64_t first_step, int64_t count) {
    std::string at = cat("group * ", scalar(kAGroup), " + ", word(a_offsets_[which]), " + row * ", scalar(kARow),
                         " + (channel0 + channel) * ", word(a_depth_[0]));
    for (size_t i = 0; i < kMaxSpatial; ++i) at += cat(" + t", i + 1, " * ", word(a_depth_[1 + i]));
    return fill(kConvolutionPhaseLoad, {{"count", count},
                                        {"rows", p_.rows},
                                        {"taps2", phases_->all[which].taps[1]},
                                        {"taps3", phases_->all[which].taps[2]},
                                        {"first_step", first_step},
                                        {"group_size", dialect_.group_size},
                                        {"left", loaded(cat("x0[", at, "]"))}});
  }

  // The products of one element of b of every column.
  std::string phase_tap(const std::array<int64_t, kMaxSpatial>& tap, const std::vector<int64_t>& first_steps) {
    int64_t bits = 0;
    std::string offset, steps;
    for (size_t i = 0; i < kMaxSpatial; ++i) {
      if (is_single_[i]) continue;
      bits |= int64_t{1} << (first_bits_[i] + tap[i]);
      if (tap[i] != 0) offset += cat(" + ", tap[i], " * ", word(depth_step_[i]), " * ", word(stride_[i]));
    }
    for (size_t which = 0; which < phases_->all.size(); ++which) {
      const Phase& phase = phases_->all[which];
      if (!phases_->has(phase, tap)) continue;
      int64_t step_number = 0;
      for (size_t i = 0; i < kMaxSpatial; ++i) step_number = step_number * phase.taps[i] + tap[i] - phase.first[i];
      const std::string sum = cat("sum[", static_cast<int64_t>(which) * p_.rows, " + row][t]");
      steps += fill(kConvolutionPhaseStep, {{"rows", p_.rows},
                                            {"item_columns", tiles_.item_columns},
                                            {"type", value()},
                                            {"step_number", first_steps[which] + step_number},
                                            {"sum", sum},
                                            {"step", step("p", "q[t]", sum)}});
    }
    if (steps.empty()) return steps;
    return fill(kConvolutionPhaseTap, {{"type", value()},
                                       {"zero", zero()},
                                       {"item_columns", tiles_.item_columns},
                                       {"bits", bits},
                                       {"offset", offset},
                                       {"right", loaded("x1[windows[t][0] + at]")},
                                       {"steps", steps}});
  }

  // Rows and columns of a work item: runs of up to four that follow one another, so that they are loaded at once.
  static std::string place_of(const std::string& id, const std::string& i, int side, int lanes) {
    const int run = std::min(side, 4);
    return cat(id, " * ", run, " + ", i, " % ", run, " + ", i, " / ", run, " * ", lanes * run);
  }

  std::string tile_text() {
    const int lanes_n = tiles_.n / tiles_.item_columns, lanes_m = tiles_.m / tiles_.item_rows;
    const int terms = std::min(dialect_.group_size, kMostTerms);
    const int results = tiles_.item_rows * tiles_.item_columns;
    if (results >= 32 && dtype_size(wide_) == 4) builder_.least_at_once = results >= 64 ? 2 : 3;
    const int left_loads = tiles_.m * tiles_.depth / dialect_.group_size;
    const int right_loads = tiles_.n * tiles_.depth / dialect_.group_size;
    // With more loads on their way there are not enough registers for the factors of many terms.
    const bool unrolls_some = !is_a_even_ && left_loads + right_loads > 16;
    return fill(kConvolutionTile,
                {{"type", value()},
                 {"zero", zero()},
                 {"place", tile_place()},
                 {"tile_depth", tiles_.depth},
                 {"unroll", unrolls_some ? " 4" : ""},
                 {"tile_m", tiles_.m},
                 {"tile_n", tiles_.n},
                 {"lanes_n", lanes_n},
                 {"terms", terms},
                 {"term_steps", terms / tiles_.depth},
                 {"a_group", scalar(kAGroup)},
                 {"a_row", scalar(kARow)},
                 {"left_even", is_a_even_ ? cat(" + left_d * ", scalar(kEven)) : std::string()},
                 {"first_terms", fill(kConvolutionFirstTerms, {{"terms", terms}, {"store_term", store_term()}})},
                 {"store_term", store_term()},
                 {"item_rows", tiles_.item_rows},
                 {"item_columns", tiles_.item_columns},
                 {"left_loads", left_loads},
                 {"right_loads", right_loads},
                 {"left_t", first_t(a_along_depth_, tiles_.m)},
                 {"left_d", first_d(a_along_depth_, tiles_.m)},
                 {"right_t", first_t(b_along_depth_, tiles_.n)},
                 {"right_d", first_d(b_along_depth_, tiles_.n)},
                 {"left_skip_t", left_skip_t()},
                 {"left_skip_d", left_skip_d()},
                 {"right_skip_t", b_along_depth_ ? dialect_.group_size / tiles_.depth : 0},
                 {"right_skip_d", b_along_depth_ ? 0 : dialect_.group_size / tiles_.n},
                 {"load_fixed_window", b_along_depth_ ? std::string() : load_window("right_t")},
                 {"load_fixed_term", b_along_depth_ ? load_term("right_d") : std::string()},
                 {"load_place", b_along_depth_ ? load_window("t") : load_term("d")},
                 {"left", tile_left()},
                 {"inside", tile_inside()},
                 {"right", loaded("x1[w0 + v0]")},
                 {"row_of_i", place_of("row_id", "i", tiles_.item_rows, lanes_m)},
                 {"column_of_j", place_of("column_id", "j", tiles_.item_columns, lanes_n)},
                 {"tile_step", step("p[i]", "q[j]", "sum[i][j]")},
                 {"store", tile_store(place_of("row_id", "i", tiles_.item_rows, lanes_m),
                                      place_of("column_id", "j", tiles_.item_columns, lanes_n), false)}});
  }

  static int most_terms(const Dialect& dialect) { return std::min(dialect.group_size, kMostTerms); }

  std::string tile_place() {
    return fill(kConvolutionTilePlace, {{"group_size", dialect_.group_size},
                                        {"tile_m", tiles_.m},
                                        {"tile_n", tiles_.n},
                                        {"terms", most_terms(dialect_)},
                                        {"place_words", place_words(taps_side_)},
                                        {"has_left_terms", !is_a_even_},
                                        {"rows", scalar(kRows)},
                                        {"columns", scalar(kColumns)},
                                        {"tile_rows", scalar(kTileRows)},
                                        {"tile_columns", scalar(kTileColumns)},
                                        {"groups", scalar(kGroups)},
                                        {"depth", scalar(kDepth)},
                                        {"part_depth", scalar(kPartDepth)},
                                        {"column_place", column_place()},
                                        {"store_window", store_window()}});
  }

  // The results of a work item are sum[i][j]; the texts say which row and column of the tile they are.
  std::string tile_store(const std::string& row, const std::string& column, bool is_swapped) {
    return fill(
        kConvolutionTileStore,
        {{"over_columns", is_swapped ? "i" : "j"},
         {"over_rows", is_swapped ? "j" : "i"},
         {"item_rows", tiles_.item_rows},
         {"item_columns", tiles_.item_columns},
         {"row", row},
         {"column", column},
         {"result_column_place", is_divided_ ? std::string() : coordinates(column_, "c", "result_column")},
         {"store_tile", is_divided_ ? cat(partial("result_column"), " = sum[i][j];") : store("sum[i][j]", "c")}});
  }

  std::string units_text() {
    const int terms = most_terms(dialect_), term_steps = terms / kUnitDepth;
    const std::string of_step = cat("const int turn = next / ", term_steps, " % 2, first = next % ", term_steps, " * ",
                                    kUnitDepth, ";\nconst ix k = depth_begin + next * ", kUnitDepth, ";\n");
    UnitSide elements, windows;  // of a and of b
    elements.loads = has_quads_       ? UnitLoads::kQuadsAlongDepth
                     : a_along_depth_ ? UnitLoads::kAlongDepth
                                      : UnitLoads::kAlongSide;
    const std::string element = cat("x0[group * ", scalar(kAGroup), " + (row0 + t) * ", scalar(kARow), " + term]");
    elements.load = cat(of_step, "const ix term = ",
                        has_quads_   ? std::string("k + d")
                        : is_a_even_ ? cat("(k + d) * ", scalar(kEven))
                                     : std::string("left_terms[turn][first + d]"),
                        ";\nif (row0 + t < rows && k + d < depth_end) loaded = ",
                        has_quads_ ? cat("*(const float4*)&", element) : element, ";\n");
    windows.loads = b_along_depth_ ? UnitLoads::kAlongDepth : UnitLoads::kAlongSide;
    windows.load = cat(of_step, load_window("t"), load_term("d"), "if (", tile_inside(), ") loaded = x1[w0 + v0];\n");
    const UnitTile& tile = tiles_.units->tile;
    const bool is_swapped = tiles_.units->is_swapped;
    const UnitLoop loop = {
        .tile = tile,
        .left = is_swapped ? windows : elements,
        .right = is_swapped ? elements : windows,
        .begin = fill(kConvolutionFirstTerms, {{"terms", terms}, {"store_term", store_term()}}),
        .each_step = fill(
            kConvolutionNextTerms,
            {{"terms", terms}, {"term_steps", term_steps}, {"tile_depth", kUnitDepth}, {"store_term", store_term()}})};
    const std::string row = tile.row_of_i(), column = tile.column_of_j();
    return fill(kConvolutionUnits,
                {{"place", tile_place()},
                 {"sums", unit_text(loop, builder_)},
                 {"store", tile_store(is_swapped ? column : row, is_swapped ? row : column, is_swapped)}});
  }

  const Op& op_;
  const WindowProduct& p_;
  const Phases* const phases_;  // of Form::kPhases
  const Dialect& dialect_;
  const Form form_;
  const Tiles tiles_;
  KernelBuilder builder_;
  const WindowOperands operands_;
  const compute_dtype dtype_, wide_;
  const int32_t size_;
  const int64_t results_;
  bool is_divided_ = false;     // the depth
  bool a_along_depth_ = false;  // neighbours in memory
  bool b_along_depth_ = false;
  bool is_a_even_ = false;  // one stride along all of the depth
  bool has_quads_ = false;  // four elements of a along the depth are a word
  Taps taps_side_ = Taps::kNone;
  std::array<int64_t, kMaxSpatial> taps_extents_{}, first_bits_{};
  std::array<int, kMaxSpatial> unit_steps_{};  // 1 or -1 between taps; 0: another step
  std::array<bool, kMaxSpatial> is_single_{};  // spatial axes with one position
  int32_t partials_ = 0;
  std::vector<int32_t> a_offsets_, c_offsets_;  // of phases
  Side depth_, column_;
  std::array<int32_t, kScalars> scalars_{};
  std::array<int32_t, kWindowAxes> a_depth_{}, c_column_{};
  std::array<int32_t, kMaxSpatial> extent_{}, stride_{}, start_{}, depth_step_{}, column_step_{}, taps_{}, first_bit_{};
};

BuiltKernels build(const Op& op, const Dialect& dialect, bool with_text) {
  BuiltKernels built;
  const int32_t value_size = dtype_size(computed_in(op.output(0).dtype));
  const std::vector<WindowProduct> products = read_windows(op);
  if (const std::optional<Phases> phases = choose_phases(op, products, dialect)) {
    const WindowProduct& p = phases->product;
    const Tiles tiles = choose_phase_columns(*phases, dialect);
    ConvolutionBuilder(op, p, dialect, Form::kPhases, tiles, with_text, &*phases).add_to(built);
    return built;
  }
  for (const WindowProduct& p : products) {
    const Form form = choose_form(p, dialect);
    const Tiles tiles = form == Form::kTiles     ? choose_tiles(op, p, dialect)
                        : form == Form::kRow     ? choose_row_parts(p, dialect)
                        : form == Form::kColumns ? choose_columns(p, dialect)
                        : form == Form::kBlock   ? choose_blocks(p, dialect)
                                                 : Tiles{};
    // A block is worth a group.
    Dialect own = dialect;
    if (form == Form::kBlock) own.group_size = 1;
    ConvolutionBuilder(op, p, own, form, tiles, with_text).add_to(built);
    if (tiles.parts == 1) continue;
    built.workspace_bytes = std::max(built.workspace_bytes, tiles.parts * p.groups * p.rows * p.columns() * value_size);
    ConvolutionBuilder(op, p, dialect, Form::kJoin, tiles, with_text).add_to(built);
  }
  return built;
}

}  // namespace
}  // namespace convolutions

BuiltKernels build_convolution(const Op& op, const Dialect& dialect, bool with_text) {
  return convolutions::build(op, dialect, with_text);
}

}  // namespace compute::common
