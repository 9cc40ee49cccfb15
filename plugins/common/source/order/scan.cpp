// SPDX-License-Identifier: Apache-2.0
// scan: a group processes each line in tiles, or an item each line if lines run across memory, and on processor cores.
// Where there are too few lines for the device they are split into parts: one kernel writes the parts' totals, and a
// second one reads the input again.
#include <algorithm>

#include "plugins/common/source/expressions/combination.hpp"
#include "plugins/common/source/order/ops.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/order/scan.inc"

class ScanBuilder {
 public:
  ScanBuilder(const Op& op, const Dialect& dialect, bool with_text)
      : op_(op),
        dialect_(dialect),
        with_text_(with_text),
        kind_(combination_of(op.text("kind"))),
        accumulator_(op.dtype("accumulator")),
        is_exclusive_(op.integer("exclusive", 0) != 0) {
    const compute_plugin_tensor &src = op.input(0), &dst = op.output(0);
    const auto axis = static_cast<size_t>(op.integer("axis", 0));
    terms_ = src.shape[axis];
    steps_[0] = src.strides[axis];
    steps_[1] = dst.strides[axis];
    std::vector<int64_t> shape(src.shape, src.shape + src.rank);
    std::vector<std::vector<int64_t>> strides = {strides_of(src), strides_of(dst)};
    shape[axis] = 1;
    nest_ = collapse_operands(shape, strides, 0);
    if (op.integer("reverse", 0) != 0) {
      for (size_t i = 0; i < 2; ++i) {
        nest_.offsets[i] += (terms_ - 1) * steps_[i];
        steps_[i] = -steps_[i];
      }
    }
    choose();
  }

  BuiltKernels build() const {
    BuiltKernels built;
    if (splits_ > 1) {
      built.workspace_bytes = divide_up(lines() * splits_ * dtype_size(accumulator_), 256) * 256;
      add(built, true);
    }
    add(built, false);
    return built;
  }

 private:
  int64_t lines() const { return nest_.points(); }

  void choose() {
    const int inner = nest_.rank - 1;
    const bool is_across = nest_.rank > 0 && std::abs(nest_.strides[0][inner]) < std::abs(steps_[0]);
    by_items_ = dialect_.is_host || dialect_.group_size < 32 || (is_across && lines() >= 32) || terms_ <= 32;
    items_ = dtype_size(accumulator_) > 8 ? 4 : 8;
    tile_ = by_items_ ? 1 : int64_t{items_} * dialect_.group_size;
    const int64_t wanted =
        int64_t{dialect_.compute_units} * dialect_.groups_per_unit * (by_items_ ? dialect_.group_size : 1);
    const int64_t least = by_items_ ? 64 : tile_;  // terms of a part
    splits_ = lines() >= wanted ? 1 : std::clamp<int64_t>(wanted / lines(), 1, by_items_ ? 64 : 1024);
    if (dialect_.is_host) splits_ = 1;
    splits_ = std::min(splits_, divide_up(terms_, least));
    span_ = divide_up(divide_up(terms_, splits_), tile_) * tile_;
    splits_ = divide_up(terms_, span_);
  }

  // The text has such a step as a number, so that the places of an item's elements differ by numbers.
  bool is_along_memory(int operand) const { return !by_items_ && std::abs(steps_[operand]) == 1; }
  bool keeps_loss() const { return kind_ == Combination::sum && is_float(accumulator_); }

  void add(BuiltKernels& built, bool totals) const {
    KernelBuilder builder(dialect_, totals ? "scan_totals" : "scan", with_text_);
    const compute_dtype from = op_.input(0).dtype, to = op_.output(0).dtype;
    const int32_t sizes[] = {dtype_size(from), dtype_size(to)};
    const int64_t along[] = {(std::abs(steps_[0]) + 1) * terms_, (std::abs(steps_[1]) + 1) * terms_};
    builder.is_wide = needs_wide(nest_, sizes, lines() * splits_, along);
    for (size_t i = 0; i < 2; ++i) builder.is_wide = builder.is_wide || along[i] * sizes[i] > INT32_MAX / 4;
    builder.sign(static_cast<int64_t>(kind_));
    builder.sign(from);
    builder.sign(to);
    builder.sign(accumulator_);
    builder.sign(nest_.rank);
    builder.sign(by_items_);
    builder.sign(is_exclusive_);
    builder.sign(splits_ > 1);
    for (const int operand : {0, 1}) builder.sign(is_along_memory(operand) ? steps_[operand] : 0);
    builder.pointer(Pointer::kTensor, 0, nest_.offsets[0] * sizes[0]);
    builder.pointer(Pointer::kTensor, 1, nest_.offsets[1] * sizes[1]);
    if (splits_ > 1) builder.pointer(Pointer::kWorkspace, 0, 0);
    const int32_t words[] = {builder.word(terms_),  builder.word(splits_),   builder.word(span_),
                             builder.word(lines()), builder.word(steps_[0]), builder.word(steps_[1])};
    Space space(nest_);
    space.add_words(builder, 1);
    builder.declare(0, type_text(from).storage, true);
    builder.declare(1, type_text(to).storage, false);
    if (splits_ > 1) builder.declare(2, type_text(accumulator_).storage, !totals);
    if (with_text_) write(builder, space, words, totals);
    built.add(builder, by_items_ ? divide_up(lines() * splits_, dialect_.group_size) : lines() * splits_);
  }

  // `x` as an element of the accumulator's memory.
  std::string stored(const char* x) const { return element_of_value(accumulator_, x); }
  std::string value(const std::string& element) const { return value_of_element(accumulator_, element); }

  void write(KernelBuilder& builder, const Space& space, const int32_t* words, bool totals) const {
    Functions& functions = builder.functions();
    const compute_dtype from = op_.input(0).dtype, to = op_.output(0).dtype;
    const char* type = type_text(accumulator_).value;
    const auto word = [&](int i) { return KernelBuilder::index_word(words[i]); };
    const auto step = [&](int operand) {
      return is_along_memory(operand) ? std::to_string(steps_[operand]) : word(4 + operand);
    };
    const auto converted = [&](const std::string& x) {
      return element_of_value(to, convert_text(x, accumulator_, to, functions));
    };
    if (keeps_loss()) builder.globals += fill(kAddKeepingLoss, {{"type", type}});
    const std::string add = keeps_loss()
                                ? std::string("compute_add_keeping_loss(&carry, &lost, x);")
                                : cat("carry = ", combine_text(kind_, accumulator_, "carry", "x", functions), ";");
    const std::string carried = keeps_loss() ? "carry + lost" : "carry";
    // An exclusive sum begins with 0, not with -0.
    const std::string identity = identity_text(kind_, accumulator_);
    const std::string start = is_exclusive_ && kind_ == Combination::sum && !totals ? zero_text() : identity;
    const std::string element =
        by_items_ ? "x0[from + r * source_step]" : cat("x0[source + j * (", dialect_.group_size, " * source_step)]");
    const std::string loaded = convert_text(value_of_element(from, element), from, accumulator_, functions);
    const bool continues = splits_ > 1 && !totals, writes = !totals;
    const bool has_lanes = !by_items_ && dialect_.has_warps && dialect_.group_size % kWarp == 0;
    if (has_lanes) define_lane_exchange(builder, type);
    // As many groups as have items on a multiprocessor. Registers suffice for that here, and else they do not.
    if (has_lanes && is_along_memory(0) && is_along_memory(1) && dtype_size(accumulator_) <= 4 && !builder.is_wide)
      builder.least_at_once = dialect_.groups_per_unit;
    const int32_t row = dialect_.group_size + dialect_.group_size / 32;
    std::vector<Value> values = {
        {"group", dialect_.group_size},
        {"half", dialect_.group_size / 2},
        {"items", items_},
        {"tile", tile_},
        {"padded", tile_ + tile_ / 32},
        {"row", row},
        {"terms", word(0)},
        {"splits", word(1)},
        {"span", word(2)},
        {"lines", word(3)},
        {"source_step", step(0)},
        {"target_step", step(1)},
        {"coordinates", space.coordinates(builder, "k", "line")},
        {"from", space.offset(0, "k")},
        {"to", space.offset(1, "k")},
        {"type", type},
        {"stored", type_text(accumulator_).storage},
        {"start", start},
        {"identity", identity},
        {"has_lanes", has_lanes},
        {"keeps_loss", keeps_loss()},
        {"continues", continues},
        {"writes", writes},
        {"totals", totals},
        {"is_exclusive", is_exclusive_ && writes},
        {"add", add},
        {"value", loaded},
        {"total", stored(carried.c_str())},
        {"total_at", value(by_items_ ? "x2[s * lines + line]" : "x2[line * splits + s]")},
        {"result", converted(carried)},
        {"combined", combine_text(kind_, accumulator_, "p", "q", functions)},
        {"combined_stored", stored(combine_text(kind_, accumulator_, "p", "q", functions).c_str())},
        {"carried", combine_text(kind_, accumulator_, keeps_loss() ? "(carry + lost)" : "carry", "q", functions)},
        {"before_stored", stored("before")},
        {"own_sum", value("sums[item]")},
        {"other_sum", value("sums[item + reach]")},
        {"first_sum", value("sums[0]")},
        {"earlier_sum", value("sums[item - reach]")},
        {"first_warp_sum", value("warp_sums[0]")},
        {"warp_sum", value("warp_sums[warp]")},
        {"previous_sum", value("sums[item - 1]")},
        {"last_sum", value(cat("sums[", dialect_.group_size - 1, "]"))},
        {"x_stored", stored("x")},
        {"q_stored", stored("q")},
        {"made_stored", stored("made")},
        {"together_value", value("tile[together + j]")},
        {"p_stored", stored("p")},
        {"first_own_sum", value("sums[item]")},
        {"own_warp_sum", value("sums[warp * 32 + item]")},
        {"tile_element", converted(value(cat("tile[apart + j * ", row, "]")))}};
    // A kernel uses some of them.
    const FindValue find = [&](std::string_view name) {
      const auto found = std::find_if(values.begin(), values.end(), [&](const Value& v) { return v.name == name; });
      return found == values.end() ? std::nullopt : std::optional<std::string_view>(found->text);
    };
    values.emplace_back("tree", fill(kScanTree, find));
    builder.body = fill(by_items_ ? kScanByItems : totals ? kScanTotals : kScanByGroups, find);
  }

  std::string zero_text() const {
    const uint8_t zero[16] = {};
    return constant_text(accumulator_, zero);
  }

  const Op& op_;
  const Dialect& dialect_;
  const bool with_text_;
  const Combination kind_;
  const compute_dtype accumulator_;
  const bool is_exclusive_;
  LoopNest nest_;  // the other axes; operands: input, output
  int64_t terms_ = 1, steps_[2] = {};
  bool by_items_ = false;
  int items_ = 8;
  int64_t tile_ = 1, splits_ = 1, span_ = 1;  // terms of a tile and of a part
};

}  // namespace

BuiltKernels build_scan(const Op& op, const Dialect& dialect, bool with_text) {
  return ScanBuilder(op, dialect, with_text).build();
}

}  // namespace compute::common
