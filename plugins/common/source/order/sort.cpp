// SPDX-License-Identifier: Apache-2.0
// sort, top_k and random_permutation, whose keys are drawn where they are first read; and the sorted keys of unique
// and take_grad, which stay in the workspace. A line that fits in local memory is sorted there by one group. Longer
// ones are sorted by their keys' digits of 8 bits, from the last on: tiles count their digits, the counts become the
// places where digits begin, and each tile, sorted by the digit, moves its elements there. All passes are stable. See
// N. Satish, M. Harris and M. Garland, "Designing efficient sorting algorithms for manycore GPUs" (2009). Passes other
// than the first and the last do nothing if all elements have the same digit, as small integers do. Random keys fall
// into buckets of about the same size, so that one pass by the highest digit leaves lines that groups sort.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "plugins/common/source/builder/ptx_functions.hpp"
#include "plugins/common/source/builder/report_index.hpp"
#include "plugins/common/source/order/ops.hpp"
#include "plugins/common/source/order/sort.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/order/sort.inc"

constexpr int kCountsPerItem = 16;
constexpr int64_t kBuckets = 256;           // one for each value of a digit
constexpr int64_t kFewBlocks = 4;           // of counts, whose groups add up what is before them
constexpr int kFewestItems = 4;             // elements of a short line for each work item
constexpr int kSelectSteps = 4;             // elements that an item has in flight
constexpr int64_t kSelectLimit = 8 * 2048;  // of a line that one group goes along while others may be idle

// How a dtype's elements become keys.
struct KeyTexts {
  explicit KeyTexts(compute_dtype dtype) {
    const int bits = dtype_size(dtype) * 8;
    is_wide = bits == 64;
    bits_type = bits == 8 ? "u8" : bits == 16 ? "u16" : bits == 32 ? "u32" : "u64";
    key_type = is_wide ? "u64" : "u32";
    passes = bits / 8;
    const auto number = [&](uint64_t value) { return is_wide ? cat("COMPUTE_U64(", value, ")") : cat(value, "u"); };
    const uint64_t all = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1, top = uint64_t{1} << (bits - 1);
    greatest = number(is_wide ? all : uint64_t{UINT32_MAX});
    sign = number(top);
    magnitude = number(top - 1);
    const int fraction = dtype == COMPUTE_DTYPE_FLOAT16    ? 10
                         : dtype == COMPUTE_DTYPE_BFLOAT16 ? 7
                         : dtype == COMPUTE_DTYPE_FLOAT32  ? 23
                                                           : 52;
    infinity = number(top - (uint64_t{1} << fraction));
    if (is_signed(dtype)) flipped = cat(" ^ ", sign);
    if (dtype == COMPUTE_DTYPE_BOOL) flipped = " != 0";
  }

  // Of rows: numbers below `limit`.
  static KeyTexts of_rows(int64_t limit) {
    KeyTexts texts(COMPUTE_DTYPE_UINT32);
    texts.passes = std::max(static_cast<int>(divide_up(std::bit_width(static_cast<uint64_t>(limit - 1)), 8)), 1);
    return texts;
  }

  bool is_wide = false;
  int passes = 1;
  const char *bits_type, *key_type;
  std::string greatest, sign, magnitude, infinity, flipped;
};

class SortBuilder {
 public:
  SortBuilder(const Op& op, const Dialect& dialect, bool with_text)
      : dialect_(dialect),
        with_text_(with_text),
        draws_(op.name() == "random_permutation"),
        has_rows_(op.name() == "take_grad"),
        keeps_(has_rows_ || op.name() == "unique"),
        source_(has_rows_ ? 1 : 0),
        dtype_(draws_ ? compute_dtype{COMPUTE_DTYPE_UINT64} : op.input(source_).dtype),
        row_limit_(has_rows_ ? op.integer("size", 0) : 0),
        texts_(has_rows_ ? KeyTexts::of_rows(row_limit_) : KeyTexts(dtype_)),
        first_output_(op.input_count()) {
    if (keeps_) {
      take_all(op.input(source_));
      return;
    }
    const bool selects = op.name() == "top_k";
    const compute_plugin_tensor& src = op.tensor(0);  // the output has the shape of the keys
    const int64_t given = draws_ ? 0 : op.integer("axis", selects ? -1 : 0);
    const auto axis = static_cast<size_t>(given < 0 ? given + src.rank : given);
    descending_ = selects ? op.integer("largest", 1) != 0 : op.integer("descending", 0) != 0;
    terms_ = src.shape[axis];
    stored_ = op.output(0).shape[axis];
    std::vector<int64_t> shape(src.shape, src.shape + src.rank);
    shape[axis] = 1;
    std::vector<std::vector<int64_t>> strides = {strides_of(src)};
    steps_.push_back(src.strides[axis]);
    sizes_.push_back(dtype_size(dtype_));
    const std::string_view wanted = draws_ ? "indices" : selects ? "both" : op.text("outputs");
    has_values_ = wanted != "indices";
    has_indices_ = wanted != "values";
    index_dtype_ = op.output(op.output_count() - 1).dtype;
    for (int32_t i = 0; i < op.output_count(); ++i) {
      strides.push_back(strides_of(op.output(i)));
      steps_.push_back(op.output(i).strides[axis]);
      sizes_.push_back(dtype_size(op.output(i).dtype));
    }
    nest_ = collapse_operands(shape, strides, 0);
  }

  BuiltKernels build() {
    BuiltKernels built;
    add_to(built);
    return built;
  }

  void add_to(BuiltKernels& built) {
    const auto aligned = [](int64_t bytes) { return divide_up(bytes, 256) * 256; };
    const int64_t elements = lines() * terms_;
    const int64_t key_bytes = aligned(elements * (texts_.is_wide ? 8 : 4)), position_bytes = aligned(elements * 4);
    if (selects(dialect_, terms_, stored_, lines())) return add_selection(built);
    if (terms_ <= line_limit()) {
      positions_at_[0] = key_bytes;
      built.workspace_bytes = keeps_ ? key_bytes + position_bytes : 0;
      return add_line(built);
    }
    tile_ = int64_t{items()} * dialect_.group_size;
    tiles_ = divide_up(terms_, tile_);
    const int64_t counts = lines() * 256 * tiles_;
    const int64_t blocks = divide_up(counts, int64_t{kCountsPerItem} * dialect_.group_size);
    // Two arrays of keys and positions, between which the passes go; the counts, where digits begin, and the counts'
    // sums; and the bits in which keys differ: of all of them, then of each tile.
    int64_t offset = 0;
    for (int i = 0; i < 2; ++i) {
      keys_at_[i] = offset;
      positions_at_[i] = offset + key_bytes;
      offset += texts_.passes > 1 || keeps_ ? key_bytes + position_bytes : 0;
    }
    counts_at_ = offset;
    starts_at_ = counts_at_ + aligned(counts * 4);
    sums_at_ = starts_at_ + aligned(counts * 4);
    differing_at_ = sums_at_ + aligned(blocks * 4);
    built.workspace_bytes = differing_at_ + aligned((1 + lines() * tiles_) * (texts_.is_wide ? 8 : 4));
    for (int pass = first_pass(); pass < texts_.passes; ++pass) {
      add_tiles(built, pass, true);
      if (blocks > kFewBlocks) add_offsets(built, pass, counts, blocks, true);
      add_offsets(built, pass, counts, blocks, false);
      add_tiles(built, pass, false);
    }
    if (has_buckets()) add_line(built);
  }

  // With add_to().
  SortedKeys kept() const {
    const int last = terms_ <= line_limit() ? 0 : (texts_.passes - 1) % 2;
    return {keys_at_[last], positions_at_[last], texts_.key_type, texts_.greatest};
  }

  /// Whether a group selects the first `stored` elements of a line rather than sort them all. Core divides a line that
  /// is longer still, unless the lines are enough for the device.
  static bool selects(const Dialect& dialect, int64_t terms, int64_t stored, int64_t lines) {
    const int64_t first = selected_first(dialect, stored), chunk = kSelectSteps * dialect.group_size;
    const bool fits = first <= chunk && 2 * chunk * 12 + 4 <= dialect.local_memory_bytes;
    const bool is_filled = lines >= int64_t{dialect.compute_units} * 4;
    return !dialect.is_host && stored > 0 && fits && terms >= first * 8 && (terms <= kSelectLimit || is_filled);
  }

  /// Elements that a group sorts in local memory.
  static int64_t line_limit(const Dialect& dialect, bool is_wide) {
    return dialect.local_memory_bytes >= 40 << 10 ? (is_wide ? 2048 : 4096) : 1024;
  }

 private:
  // All elements as one line, which have a row-major step.
  void take_all(const compute_plugin_tensor& src) {
    for (const int64_t extent : shape_of(src)) terms_ *= extent;
    stored_ = terms_;
    steps_ = {row_major_step(src).value()};
    sizes_ = {dtype_size(dtype_)};
    nest_.strides.resize(1);
    nest_.offsets = {0};
  }

  int64_t lines() const { return nest_.points(); }
  int64_t line_limit() const { return line_limit(dialect_, texts_.is_wide); }
  // Whether work items exchange registers and vote, in warps.
  bool has_lanes() const { return dialect_.has_warps && dialect_.group_size == 256; }
  // Elements of a tile for each work item.
  int items() const {
    const bool is_large = dialect_.local_memory_bytes >= 46 << 10;
    if (!texts_.is_wide) return is_large ? 16 : 8;
    return !is_large ? 4 : has_lanes() ? 12 : 8;
  }

  KernelBuilder begin(const char* what) const {
    KernelBuilder builder(dialect_, what, with_text_);
    std::array<int64_t, 3> along{};
    for (size_t i = 0; i < steps_.size(); ++i) {
      along[i] = (std::abs(steps_[i]) + 1) * terms_;
      builder.is_wide = builder.is_wide || along[i] * sizes_[i] > INT32_MAX / 4;
    }
    builder.is_wide =
        builder.is_wide || needs_wide(nest_, sizes_, std::max(lines() * terms_, lines() * 256 * tiles_) * 2, along);
    builder.sign(dtype_);
    builder.sign(descending_);
    builder.sign(nest_.rank);
    builder.sign(has_values_);
    builder.sign(has_indices_);
    builder.sign(draws_);
    builder.sign(keeps_);
    builder.sign(has_rows_);
    builder.sign(is_part());
    builder.sign(index_dtype_);
    return builder;
  }

  // Whether passes check that they have anything to do. All bits of drawn keys and of rows differ.
  bool skips() const { return texts_.passes > 2 && !draws_ && !has_rows_; }

  // Whether the highest digit of drawn keys divides them into buckets that fit in local memory. A bucket has room for
  // 12 standard deviations more than the mean.
  bool has_buckets() const {
    return draws_ && !dialect_.is_host && lines() == 1 && terms_ > line_limit() && bucket_room() <= line_limit();
  }
  int64_t bucket_room() const {
    const double mean = static_cast<double>(terms_) / kBuckets;
    return static_cast<int64_t>(mean + 12 * std::sqrt(mean));
  }
  int first_pass() const { return has_buckets() ? texts_.passes - 1 : 0; }

  // Whether the first elements alone are stored.
  bool is_part() const { return stored_ < terms_; }

  void define_key(KernelBuilder& builder) const {
    if (has_rows_) {
      builder.globals += kReportIndex;
      builder.globals += kRowKey;
      return;
    }
    if (draws_) builder.globals += kRandomKey;
    builder.globals += fill(kSortKey, {{"key_type", texts_.key_type},
                                       {"bits_type", texts_.bits_type},
                                       {"is_float", is_float(dtype_)},
                                       {"magnitude", texts_.magnitude},
                                       {"infinity", texts_.infinity},
                                       {"greatest", texts_.greatest},
                                       {"sign", texts_.sign},
                                       {"flipped", texts_.flipped},
                                       {"descending", descending_}});
  }

  // Words of the kernel's arguments: the operands' steps along the axis, how many elements are stored, and how many
  // rows there are.
  struct StepWords {
    std::vector<int32_t> steps;
    int32_t stored = 0, row_limit = 0;
  };

  // The key of the element at the position `e`.
  std::string key_text(const StepWords& step_words, const char* e) const {
    if (has_rows_) {
      return cat("compute_row_key((i64)x0[from + (", e, ") * source_step], ",
                 KernelBuilder::word_text(step_words.row_limit), ", (i64)(", e, "), p1 + a.w[1])");
    }
    return draws_ ? cat("compute_sort_key(compute_random_key(", seed_, ", ", offset_, ", (u64)(", e, ")))")
                  : cat("compute_sort_key(x0[from + (", e, ") * source_step])");
  }

  // The input as bits, and the outputs: pointers 0 to 2. The scalars of random keys. Faults of rows are pointer 1.
  void take_tensors(KernelBuilder& builder) {
    builder.pointer(Pointer::kTensor, source_, draws_ ? 0 : nest_.offsets[0] * sizes_[0]);
    if (draws_) {  // has no input
      seed_ = cat("(u64)", builder.scalar(0, COMPUTE_DTYPE_INT64));
      offset_ = cat("(u64)", builder.scalar(1, COMPUTE_DTYPE_INT64));
    } else {
      builder.declare(0, has_rows_ ? type_text(dtype_).storage : texts_.bits_type, true);
    }
    int32_t operand = 1;
    for (int32_t number = 1; number <= 2; ++number) {
      const bool exists = number == 1 ? has_values_ : has_indices_;
      if (!exists) {  // a place holder
        builder.pointer(has_rows_ && number == 1 ? Pointer::kFault : Pointer::kTensor, 0, 0);
        continue;
      }
      const auto at = static_cast<size_t>(operand);
      builder.pointer(Pointer::kTensor, first_output_ + operand - 1, nest_.offsets[at] * sizes_[at]);
      builder.declare(number, number == 1 ? texts_.bits_type : type_text(index_dtype_).storage, false);
      ++operand;
    }
  }

  // The keys and positions that stay in the workspace: pointers 3 and 4.
  void take_kept(KernelBuilder& builder) const {
    builder.declare(builder.pointer(Pointer::kWorkspace, 0, keys_at_[0]), texts_.key_type, false);
    builder.declare(builder.pointer(Pointer::kWorkspace, 0, positions_at_[0]), "u32", false);
  }

  // Statements that write element `e` of the line, which was at `position`.
  std::string outputs_text(const Space& space, const StepWords& step_words, const char* e) const {
    std::string text;
    if (keeps_) return cat("x3[", e, "] = ", key_text(step_words, "(ix)position"), ";\nx4[", e, "] = position;\n");
    int operand = 1;
    const auto at = [&] {
      return cat(space.offset(operand, "k"), " + ", e, " * ",
                 KernelBuilder::index_word(step_words.steps[static_cast<size_t>(operand)]));
    };
    if (has_values_) {
      text += cat("x1[", at(), "] = x0[from + (ix)position * source_step];\n");
      ++operand;
    }
    if (has_indices_) text += cat("x2[", at(), "] = (", type_text(index_dtype_).storage, ")position;\n");
    return is_part() ? cat("if (", e, " < ", KernelBuilder::index_word(step_words.stored), ") {\n", text, "}\n") : text;
  }

  // Elements that a group sorts for its first bound.
  static int64_t selected_first(const Dialect& dialect, int64_t stored) {
    return std::max<int64_t>(dialect.group_size, stored * 2);
  }

  StepWords add_step_words(KernelBuilder& builder) const {
    StepWords words;
    for (const int64_t step : steps_) words.steps.push_back(builder.word(step));
    words.stored = builder.word(stored_);
    if (has_rows_) words.row_limit = builder.word(row_limit_);
    return words;
  }

  void add_selection(BuiltKernels& built) {
    KernelBuilder builder = begin("select_line");
    take_tensors(builder);
    const int32_t terms_word = builder.word(terms_), first_word = builder.word(selected_first(dialect_, stored_));
    const StepWords steps = add_step_words(builder);
    Space space(nest_);
    space.add_words(builder, 1);
    if (with_text_) {
      define_key(builder);
      builder.globals += fill(kSortPair, {{"key_type", texts_.key_type}});
      builder.body = fill(kSelectLine, {{"key_type", texts_.key_type},
                                        {"size", 2 * kSelectSteps * dialect_.group_size},
                                        {"steps", kSelectSteps},
                                        {"group", dialect_.group_size},
                                        {"terms", KernelBuilder::index_word(terms_word)},
                                        {"first", KernelBuilder::index_word(first_word)},
                                        {"stored", KernelBuilder::index_word(steps.stored)},
                                        {"coordinates", space.coordinates(builder, "k", "line")},
                                        {"from", space.offset(0, "k")},
                                        {"source_step", KernelBuilder::index_word(steps.steps[0])},
                                        {"greatest", texts_.greatest},
                                        {"key", key_text(steps, "e")},
                                        {"outputs", outputs_text(space, steps, "e")}});
    }
    built.add(builder, lines());
  }

  // The lines that groups sort: those of the op, or buckets.
  int64_t short_lines() const { return has_buckets() ? kBuckets : lines(); }

  void add_line(BuiltKernels& built) {
    const int64_t room = has_buckets() ? bucket_room() : std::max<int64_t>(terms_, 2);
    const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(room)));
    int64_t items = std::min<int64_t>(size, texts_.is_wide ? 8 : 16), threads = size / items;
    // Few lines have more work items each, up to a group for each compute unit.
    while (items > kFewestItems && threads < dialect_.group_size &&
           short_lines() * threads < int64_t{dialect_.compute_units} * dialect_.group_size) {
      items /= 2;
      threads *= 2;
    }
    if (has_lanes() && threads <= dialect_.group_size) return add_lanes(built, items, threads);
    KernelBuilder builder = begin("sort_line");
    builder.sign(size);
    take_tensors(builder);
    const LineWords words = add_line_words(builder);
    const StepWords steps = add_step_words(builder);
    Space space(nest_);
    space.add_words(builder, 1);
    if (with_text_) {
      define_key(builder);
      builder.globals += fill(kSortPair, {{"key_type", texts_.key_type}});
      builder.body = fill(kSortLine, {{"key_type", texts_.key_type},
                                      {"size", size},
                                      {"half", size / 2},
                                      {"group", dialect_.group_size},
                                      {"bucket", bucket_text(words)},
                                      {"terms", line_terms_text(words, size)},
                                      {"coordinates", space.coordinates(builder, "k", "line")},
                                      {"from", space.offset(0, "k")},
                                      {"source_step", KernelBuilder::index_word(steps.steps[0])},
                                      {"greatest", texts_.greatest},
                                      {"key", line_key_text(steps)},
                                      {"outputs", line_outputs_text(space, steps)}});
    }
    built.add(builder, short_lines());
  }

  struct LineWords {
    int32_t terms = 0, tiles = 0;
  };
  // Also the arrays in the workspace: pointers 3 to 5.
  LineWords add_line_words(KernelBuilder& builder) const {
    builder.sign(has_buckets());
    if (keeps_) take_kept(builder);
    if (has_buckets()) {
      builder.declare(builder.pointer(Pointer::kWorkspace, 0, starts_at_), "u32", true);
      builder.declare(builder.pointer(Pointer::kWorkspace, 0, keys_at_[first_pass() % 2]), texts_.key_type, true);
      builder.declare(builder.pointer(Pointer::kWorkspace, 0, positions_at_[first_pass() % 2]), "u32", true);
    }
    return {builder.word(terms_), builder.word(tiles_)};
  }
  std::string bucket_text(const LineWords& words) const {
    if (!has_buckets()) return "";
    return fill(kSortBucket, {{"tiles", KernelBuilder::index_word(words.tiles)},
                              {"last", kBuckets - 1},
                              {"terms", KernelBuilder::index_word(words.terms)}});
  }
  std::string line_terms_text(const LineWords& words, int64_t size) const {
    if (!has_buckets()) return KernelBuilder::index_word(words.terms);
    return cat("(bucket_end - bucket < ", size, " ? bucket_end - bucket : ", size, ")");
  }
  std::string line_key_text(const StepWords& steps) const {
    return has_buckets() ? std::string("x4[bucket + e]") : key_text(steps, "e");
  }
  std::string line_outputs_text(const Space& space, const StepWords& steps) const {
    if (!has_buckets()) return outputs_text(space, steps, "e");
    return fill(kSortBucketOutputs, {{"outputs", outputs_text(space, steps, "e_to")}});
  }

  // Lines of up to `items` × `threads` elements.
  void add_lanes(BuiltKernels& built, int64_t items, int64_t threads) {
    KernelBuilder builder = begin("sort_lanes");
    builder.sign(items);
    builder.sign(threads);
    take_tensors(builder);
    const LineWords words = add_line_words(builder);
    const int32_t lines_word = builder.word(short_lines());
    const StepWords steps = add_step_words(builder);
    Space space(nest_);
    space.add_words(builder, 1);
    if (with_text_) {
      define_key(builder);
      builder.globals +=
          fill(kSortSteps, {{"key_type", texts_.key_type}, {"items", items}, {"is_wide", texts_.is_wide}});
      define_lane_exchange(builder, texts_.key_type);
      builder.body = fill(kSortLanes, {{"key_type", texts_.key_type},
                                       {"items", items},
                                       {"threads", threads},
                                       {"has_warps", threads > kWarp},
                                       {"group", dialect_.group_size},
                                       {"lines", KernelBuilder::index_word(lines_word)},
                                       {"bucket", bucket_text(words)},
                                       {"terms", line_terms_text(words, items * threads)},
                                       {"coordinates", space.coordinates(builder, "k", "line")},
                                       {"from", space.offset(0, "k")},
                                       {"source_step", KernelBuilder::index_word(steps.steps[0])},
                                       {"greatest", texts_.greatest},
                                       {"key", line_key_text(steps)},
                                       {"outputs", line_outputs_text(space, steps)}});
    }
    built.add(builder, divide_up(short_lines(), dialect_.group_size / threads));
  }

  // Ends a kernel whose pass has nothing to do; `differing` is the pointer with this name's number.
  std::string skip_text(KernelBuilder& builder, int32_t differing, const std::string& pass) const {
    if (!skips()) return "";
    builder.globals += fill(kSortTurns, {{"key_type", texts_.key_type}});
    return fill(kSortSkip, {{"key_type", texts_.key_type},
                            {"differing", cat("x", differing)},
                            {"pass", pass},
                            {"last", texts_.passes - 1}});
  }

  // Counts a pass's digits, or moves the elements.
  void add_tiles(BuiltKernels& built, int pass, bool counts) {
    const bool is_first = pass == first_pass(), is_last = !keeps_ && !has_buckets() && pass + 1 == texts_.passes;
    KernelBuilder builder = begin(counts ? "sort_count" : "sort_move");
    builder.sign(is_first);
    builder.sign(is_last);
    take_tensors(builder);
    // Where passes may be skipped, the kernel chooses which array it reads.
    const int from = skips() ? 0 : (pass + 1) % 2, to = 1 - from;
    builder.pointer(Pointer::kWorkspace, 0, counts ? counts_at_ : starts_at_);
    builder.declare(3, "u32", !counts);
    builder.pointer(Pointer::kWorkspace, 0, keys_at_[from]);
    builder.declare(4, texts_.key_type, false);
    builder.pointer(Pointer::kWorkspace, 0, positions_at_[from]);
    builder.declare(5, "u32", false);
    builder.pointer(Pointer::kWorkspace, 0, keys_at_[to]);
    builder.declare(6, texts_.key_type, false);
    builder.pointer(Pointer::kWorkspace, 0, positions_at_[to]);
    builder.declare(7, "u32", false);
    builder.pointer(Pointer::kWorkspace, 0, differing_at_);
    builder.declare(8, texts_.key_type, false);
    const int32_t terms_word = builder.word(terms_), tiles_word = builder.word(tiles_),
                  shift_word = builder.word(pass * 8);
    const StepWords steps = add_step_words(builder);
    Space space(nest_);
    space.add_words(builder, 1);
    if (with_text_) {
      define_key(builder);
      const std::string shift = cat("(int)", KernelBuilder::index_word(shift_word));
      const bool finds = counts && is_first && skips();
      const std::string prologue =
          (finds ? "" : skip_text(builder, 8, cat(shift, " / 8"))) +
          fill(kSortTile,
               {{"tiles", KernelBuilder::index_word(tiles_word)},
                {"terms", KernelBuilder::index_word(terms_word)},
                {"tile", tile_},
                {"key_type", texts_.key_type},
                {"swapped", skips() && !finds ? cat("(", is_first ? 1 : 0, " + compute_sort_turns(differing, ",
                                                    "pass) + compute_sort_turns(differing, ", texts_.passes - 1, ") + ",
                                                    texts_.passes, ") & 1")
                                              : "0"},
                {"from_input", is_first || is_last},
                {"coordinates", space.coordinates(builder, "k", "line")},
                {"from", space.offset(0, "k")},
                {"source_step", KernelBuilder::index_word(steps.steps[0])}});
      const std::string key =
          is_first ? key_text(steps, "begin + e") : std::string("keys_from[line * terms + begin + e]");
      if (counts) {
        builder.body = fill(kSortCount, {{"prologue", prologue},
                                         {"group", dialect_.group_size},
                                         {"half", dialect_.group_size / 2},
                                         {"items", items()},
                                         {"key_type", texts_.key_type},
                                         {"key", key},
                                         {"shift", shift},
                                         {"finds_differing", finds},
                                         {"any_key", "compute_sort_key(x0[0])"}});
      } else {
        const std::string moved = is_last
                                      ? cat("const ix e_to = to - line * terms;\n", outputs_text(space, steps, "e_to"))
                                      : std::string("keys_to[to] = key;\npositions_to[to] = position;");
        std::vector<Value> values = {
            {"prologue", prologue},
            {"group", dialect_.group_size},
            {"tile", tile_},
            {"items", items()},
            {"key_type", texts_.key_type},
            {"greatest", texts_.greatest},
            {"key", key},
            {"position", is_first ? "(u32)(begin + e)" : "positions_from[line * terms + begin + e]"},
            {"shift", shift},
            {"moved", moved}};
        if (has_lanes()) {
          builder.least_at_once = 3;
          builder.globals += kWarpFunctions;
          values.emplace_back("warps", dialect_.group_size / kWarp);
          builder.body = fill(kSortMoveLanes, values);
        } else {
          builder.globals += kSortPlaces;
          builder.body = fill(kSortMove, values);
        }
      }
    }
    built.add(builder, lines() * tiles_);
  }

  // Of a pass: adds up blocks of counts, or finds where digits begin in tiles.
  void add_offsets(BuiltKernels& built, int pass, int64_t counts, int64_t blocks, bool sums) const {
    KernelBuilder builder(dialect_, sums ? "sort_sums" : "sort_starts", with_text_);
    const bool has_sums = blocks > kFewBlocks, finds = skips() && pass == 0 && !sums;
    builder.is_wide = counts > INT32_MAX / 4;
    builder.sign(has_sums);
    builder.sign(finds);
    builder.sign(skips());
    builder.sign(texts_.passes);
    for (int32_t i = 0; i < 3; ++i) builder.pointer(Pointer::kTensor, 0, 0);  // numbers as in the other kernels
    builder.pointer(Pointer::kWorkspace, 0, counts_at_);
    builder.declare(3, "u32", true);
    builder.pointer(Pointer::kWorkspace, 0, sums_at_);
    builder.declare(4, "u32", !sums);
    builder.pointer(Pointer::kWorkspace, 0, starts_at_);
    builder.declare(5, "u32", false);
    builder.pointer(Pointer::kWorkspace, 0, differing_at_);
    builder.declare(6, texts_.key_type, false);
    const int32_t count_word = builder.word(counts), pass_word = builder.word(pass),
                  tiles_word = builder.word(lines() * tiles_);
    const int64_t block = int64_t{kCountsPerItem} * dialect_.group_size;
    if (with_text_) {
      std::vector<Value> values = {
          {"group", dialect_.group_size},
          {"half", dialect_.group_size / 2},
          {"count", KernelBuilder::index_word(count_word)},
          {"block", block},
          {"skip", pass == 0 ? "" : skip_text(builder, 6, cat("(int)", KernelBuilder::index_word(pass_word)))}};
      if (!sums) {
        values.emplace_back("padded", block + block / 32);
        values.emplace_back("has_sums", has_sums);
        values.emplace_back("finds_differing", finds);
        values.emplace_back("key_type", texts_.key_type);
        values.emplace_back("tiles", KernelBuilder::index_word(tiles_word));
      }
      builder.body = fill(sums ? kSortSums : kSortStarts, values);
    }
    built.add(builder, blocks);
  }

  const Dialect& dialect_;
  const bool with_text_;
  const bool draws_;           // random keys; there is no input
  const bool has_rows_;        // keys are rows that the elements mean
  const bool keeps_;           // keys and positions stay in the workspace; there is no output
  const int32_t source_;       // among the tensors
  const compute_dtype dtype_;  // of the keys' elements
  const int64_t row_limit_;
  const KeyTexts texts_;
  const int32_t first_output_;  // among the tensors
  bool descending_ = false, has_values_ = false, has_indices_ = false;
  compute_dtype index_dtype_ = COMPUTE_DTYPE_INT64;
  int64_t terms_ = 1, stored_ = 1;  // along the axis
  std::string seed_, offset_;
  LoopNest nest_;               // the other axes; operands: input, outputs
  std::vector<int64_t> steps_;  // along the axis, of the same operands
  std::vector<int32_t> sizes_;
  int64_t tile_ = 1, tiles_ = 1;
  int64_t keys_at_[2] = {}, positions_at_[2] = {}, counts_at_ = 0, starts_at_ = 0, sums_at_ = 0, differing_at_ = 0;
};

std::optional<Refusal> refuse_elements(const Op& op, const compute_plugin_tensor& src, const Dialect& dialect) {
  int64_t elements = 1;
  for (int32_t i = 0; i < src.rank; ++i) elements *= src.shape[i];
  // Places are counted in 32 bits.
  if (elements > int64_t{UINT32_MAX} / 2)
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, cat(op.name(), ": more than 2^31 elements"), ""};
  const int64_t least = SortBuilder::line_limit(dialect, true) * 12 + (16 << 10);
  if (dialect.group_size < 16 || dialect.group_size > 256 || dialect.local_memory_bytes < least)
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1,
                   cat(op.name(), ": work groups or local memory are too small"), ""};
  return std::nullopt;
}

}  // namespace

BuiltKernels build_sort(const Op& op, const Dialect& dialect, bool with_text) {
  return SortBuilder(op, dialect, with_text).build();
}

SortedKeys add_sorted_keys(BuiltKernels& built, const Op& op, const Dialect& dialect, bool with_text) {
  SortBuilder builder(op, dialect, with_text);
  builder.add_to(built);
  return builder.kept();
}

std::optional<Refusal> refuse_sorted_keys(const Op& op, const Dialect& dialect) {
  if (!row_major_step(op.input(0)))
    return Refusal{COMPUTE_PLUGIN_REFUSE_LAYOUT, 0, cat(op.name(), ": the input is not row-major"), ""};
  return refuse_sort_shape(op, dialect);
}

std::optional<Refusal> refuse_sorted_rows(const Op& op, const Dialect& dialect) {
  const compute_plugin_tensor& indices = op.input(1);
  if (indices.dtype == COMPUTE_DTYPE_UINT64)
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 1, cat(op.name(), ": indices of uint64 are not supported"), ""};
  if (!row_major_step(indices))
    return Refusal{COMPUTE_PLUGIN_REFUSE_LAYOUT, 1, cat(op.name(), ": the indices are not row-major"), ""};
  if (op.integer("size", 0) > INT32_MAX)
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, -1, cat(op.name(), ": 2^31 rows or more"), ""};
  return refuse_elements(op, indices, dialect);
}

std::optional<Refusal> refuse_sort_shape(const Op& op, const Dialect& dialect) {
  if (is_complex(op.input(0).dtype))
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, cat(op.name(), ": complex numbers are not ordered"), ""};
  return refuse_permutation(op, dialect);
}

// Of a line that one group does not sort, core decides whether it is sorted whole or selected from in parts.
std::optional<Refusal> refuse_top_k(const Op& op, const Dialect& dialect) {
  const compute_plugin_tensor& src = op.input(0);
  const int64_t given = op.integer("axis", -1), axis = given < 0 ? given + src.rank : given;
  const int64_t terms = src.shape[axis], stored = op.output(0).shape[axis];
  int64_t lines = 1;
  for (int32_t i = 0; i < src.rank; ++i) lines *= i == axis ? 1 : src.shape[i];
  if (terms > SortBuilder::line_limit(dialect, dtype_size(src.dtype) == 8) &&
      !SortBuilder::selects(dialect, terms, stored, lines))
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, "top_k: a line is too long for one work group", ""};
  return refuse_sort_shape(op, dialect);
}

std::optional<Refusal> refuse_permutation(const Op& op, const Dialect& dialect) {
  return refuse_elements(op, op.tensor(0), dialect);
}

}  // namespace compute::common
