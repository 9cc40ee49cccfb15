// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/source/products/few_lines.hpp"

#include <algorithm>

#include "plugins/common/source/builder/ptx_functions.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/products/few_lines.inc"

constexpr int kMostRowsOfUnits = 16;
constexpr int64_t kMostOfUnits = int64_t{1} << 25;  // elements of the matrix; with more cuBLASLt is faster
constexpr int kUnitTerms = 32;                      // of two products of matrix units

// Whether matrix units and asynchronous copies serve more than four lines of float32, and three of halves.
bool has_copies(const Dialect& dialect) { return dialect.has_matrix_units && dialect.group_size == 256; }

// Of a few.
int most_lines(const Dialect& dialect, compute_dtype dtype) {
  if (is_half(dtype) && has_copies(dialect)) return kMostRowsOfUnits;
  if (is_half(dtype)) return dialect.few_rows_of_halves;
  return dtype == COMPUTE_DTYPE_FLOAT64 ? dialect.few_rows_of_float64 : dialect.few_rows;
}

// Of 5 rows of float32 and more.
FewLines choose_staged(const Dialect& dialect, int side, int few, int64_t many, int64_t words) {
  constexpr int kMostStages = 4;
  constexpr int64_t kBytesOfSums = 2 << 10;
  FewLines form;
  form.side = side;
  form.few = few;
  form.how = dialect.has_tile_units ? FewLines::How::kStaged : FewLines::How::kStagedRows;
  form.lines = 4;
  form.at_once = 2;
  form.along = kWarp;
  while (form.along < 4 * kWarp && words > form.along &&
         4 * form.groups(many, dialect.group_size) < 3 * dialect.compute_units)
    form.along *= 2;
  const int64_t most_bytes = (dialect.has_tile_units ? 100 << 10 : dialect.local_memory_bytes) - kBytesOfSums;
  const auto stages = [&] { return most_bytes / form.stage_bytes(dialect.group_size); };
  while (form.along > kWarp && stages() < 2) form.along /= 2;
  form.stages = static_cast<int>(std::min<int64_t>(stages(), kMostStages));
  return form;
}

// Of 3 rows of halves and more.
FewLines choose_units(const Dialect& dialect, int side, int few, int64_t many) {
  FewLines form;
  form.side = side;
  form.few = few;
  form.how = FewLines::How::kUnits;
  form.lines = 16;
  form.steps = 2;
  form.along = dialect.group_size;
  form.at_once = few <= 8 && form.groups(many, dialect.group_size) > 2 * dialect.compute_units ? 3 : 2;
  return form;
}

class TextBuilder {
 public:
  TextBuilder(const FewLinesText& given, KernelBuilder& builder)
      : given_(given),
        form_(given.form),
        builder_(builder),
        dialect_(builder.dialect()),
        size_(dtype_size(given.dtype)) {}

  std::string text() {
    if (form_.how == FewLines::How::kUnits) return line_units_text();
    const VectorText vector = vector_type(builder_, type_text(given_.dtype).storage, size_, kWordBytes / size_);
    if (form_.how != FewLines::How::kWords) return staged_text(vector);
    const bool exchanges = dialect_.has_warps;
    if (exchanges) define_lane_exchange(builder_, given_.value);
    return fill(kContractionLines, {{"along", form_.along},
                                    {"lines", form_.lines},
                                    {"loop", words_text(vector)},
                                    {"type", given_.value},
                                    {"item_rows", form_.of_item(0)},
                                    {"item_columns", form_.of_item(1)},
                                    {"exchanges", exchanges},
                                    {"warp", kWarp},
                                    {"group_size", dialect_.group_size},
                                    {"warps", form_.along / kWarp},
                                    {"has_warps", form_.along > kWarp},
                                    {"at_once", sums_at_once()}});
  }

 private:
  // Where a line begins.
  std::string place_of_line(int side, std::string_view line) const {
    return cat("x", side, " + ", offset_of_line(side, line));
  }
  std::string offset_of_line(int side, std::string_view line) const {
    return cat("b", side, " + ", line, " * ", given_.line_strides[static_cast<size_t>(side)]);
  }
  int few_side() const { return 1 - form_.side; }

  std::string words_text(const VectorText& vector) {
    const int32_t lanes = kWordBytes / size_;
    const auto load = [&](int side) {
      const std::string line = side == form_.side ? "line" : side == 0 ? "(row0 + i)" : "(column0 + j)";
      return cat("*(COMPUTE_GLOBAL const ", vector.word, "*)(", place_of_line(side, line), " + at)");
    };
    const auto clamped = [&](int side) {
      const char* const first = side == 0 ? "row0" : "column0";
      const char* const extent = side == 0 ? "m" : "n";
      const char* const number = side == 0 ? "i" : "j";
      return side != form_.side ? std::string()
                                : cat("const ix wanted = ", first, " + line0 + ", number, ", line = wanted < ", extent,
                                      " ? wanted : ", extent, " - 1;\n");
    };
    return fill(kContractionWords, {{"lanes", lanes},
                                    {"steps", form_.steps},
                                    {"pace", form_.along * lanes},
                                    {"vector", vector.type},
                                    {"type", given_.value},
                                    {"item_rows", form_.of_item(0)},
                                    {"item_columns", form_.of_item(1)},
                                    {"left_line", clamped(0)},
                                    {"left_word", load(0)},
                                    {"right_line", clamped(1)},
                                    {"right_word", load(1)},
                                    {"left", given_.left},
                                    {"right", given_.right}});
  }

  const char* line_first() const { return form_.side == 0 ? "row0" : "column0"; }
  const char* line_count() const { return form_.side == 0 ? "m" : "n"; }

  std::string staged_text(const VectorText& vector) {
    define_lane_exchange(builder_, given_.value);
    builder_.globals += kCopyFunctions;
    const int lanes = kWordBytes / size_;
    const bool is_in_registers = form_.how == FewLines::How::kStagedRows;
    const auto copy = [&](const std::string& to, const std::string& from, const char* at) {
      return given_.has_end ? cat("compute_copy_async(COMPUTE_LOCAL_ADDRESS(", to, "), ", from, " + (", at,
                                  " < depth ? ", at, " : 0), ", at, " < depth);")
                            : cat("compute_copy_word_async(COMPUTE_LOCAL_ADDRESS(", to, "), ", from, " + ", at, ");");
    };
    const std::string line = cat("x", form_.side, " + line_at[l]");
    const std::string fetch = fill(
        kContractionFetchStage,
        {{"stages", form_.stages},
         {"pace", form_.pace(size_)},
         {"copies_matrix", !is_in_registers},
         {"lines", form_.lines},
         {"lanes", lanes},
         {"copy_matrix",
          copy(cat("staged + (stage * ", form_.lines, " + l) * ", dialect_.group_size, " + id"), line, "own")},
         {"few", form_.few},
         {"along", form_.along},
         {"group_size", dialect_.group_size},
         {"copy_row",
          copy(cat("staged_rows + stage * ", form_.few * form_.along, " + w"), place_of_line(few_side(), "f"), "at")}});
    const int64_t line_words = int64_t{form_.stages} * form_.lines * dialect_.group_size;
    const int64_t row_words = int64_t{form_.stages} * form_.few * form_.along;
    const std::string memory = is_in_registers ? cat("COMPUTE_LOCAL compute_w16 staged_rows[", row_words, "];\n")
                                               : cat("extern __shared__ compute_w16 staged[];\n",
                                                     "compute_w16* const staged_rows = staged + ", line_words, ";\n");
    const std::string load = cat("compute_load_once(", line, " + own)");
    std::string halve;
    for (int reach = kWarp / 2; reach > 0; reach /= 2)
      halve += fill(kContractionHalve, {{"reach", reach}, {"half", reach * form_.of_item(1)}, {"warp", kWarp}});
    return fill(kContractionStaged,
                {
                    {"stage_memory", memory},
                    {"lines", form_.lines},
                    {"line_first", line_first()},
                    {"line_count", line_count()},
                    {"line_offset", offset_of_line(form_.side, "line")},
                    {"pace", form_.pace(size_)},
                    {"is_in_registers", is_in_registers},
                    {"vector", vector.type},
                    {"lanes", lanes},
                    {"matrix_word", given_.has_end ? cat("own < depth ? ", load, " : compute_no_word()") : load},
                    {"stages", form_.stages},
                    {"fetch", fetch},
                    {"unroll", form_.few > 8 ? 2 : 4},  // more needs more registers
                    {"warp", kWarp},
                    {"per", form_.of_item(1)},
                    {"halve", halve},
                    {"has_warps", form_.along > kWarp},
                    {"group_size", dialect_.group_size},
                    {"few", form_.few},
                    {"along", form_.along},
                });
  }

  std::string line_units_text() {
    builder_.globals += kCopyFunctions;
    builder_.globals += fill(kHalfProduct, {{"half_type", given_.dtype == COMPUTE_DTYPE_FLOAT16 ? "f16" : "bf16"}});
    const int halves = form_.few > 8 ? 2 : 1;
    const auto word = [&](const std::string& load) {
      return given_.has_end ? cat("own + at < depth ? ", load, " : compute_no_word()") : load;
    };
    const std::string load_next =
        fill(kContractionUnitLoads, {{"steps", form_.steps},
                                     {"terms", kUnitTerms},
                                     {"halves", halves},
                                     {"line_word", word("compute_load_once(line_at[l] + at)")},
                                     {"row_word", word("compute_load_word(row_at[h] + at)")}});
    return fill(kContractionUnits, {{"warp", kWarp},
                                    {"lanes", kWordBytes / size_},
                                    {"span", form_.pace(size_) / (dialect_.group_size / kWarp)},
                                    {"line_first", line_first()},
                                    {"line_count", line_count()},
                                    {"line_place", place_of_line(form_.side, "line")},
                                    {"halves", halves},
                                    {"few", form_.few},
                                    {"row_place", place_of_line(few_side(), "f")},
                                    {"steps", form_.steps},
                                    {"load_next", load_next},
                                    {"pace", form_.pace(size_)},
                                    {"group_size", dialect_.group_size}});
  }

  // Of the results of a work item, how many are added up at once in local memory: a divisor of their number.
  int sums_at_once() const {
    const int all = form_.of_item(0) * form_.of_item(1);
    const int64_t bytes = std::min<int64_t>(16 << 10, dialect_.local_memory_bytes);
    const int64_t most =
        std::max<int64_t>(bytes / (int64_t{dialect_.group_size} * dtype_size(computed_in(given_.dtype))), 1);
    int at_once = all;
    while (at_once > most || all % at_once != 0) --at_once;
    return at_once;
  }

  const FewLinesText& given_;
  const FewLines& form_;
  KernelBuilder& builder_;
  const Dialect& dialect_;
  const int32_t size_;
};

}  // namespace

bool lies_in_words(const compute_plugin_tensor& tensor, int32_t along, int64_t size) {
  const int64_t elements = kWordBytes / size;
  if (tensor.strides[along] != 1 || tensor.shape[along] % elements != 0 || tensor.alignment % kWordBytes != 0)
    return false;
  for (int32_t axis = 0; axis < tensor.rank; ++axis) {
    if (axis != along && tensor.shape[axis] > 1 && tensor.strides[axis] % elements != 0) return false;
  }
  return true;
}

int FewLines::pace(int32_t size) const {
  return how == How::kUnits ? along / kWarp * steps * kUnitTerms : along * (kWordBytes / size);
}

int64_t FewLines::stage_bytes(int64_t group_size) const {
  return ((how == How::kStaged ? lines * group_size : 0) + int64_t{few} * along) * kWordBytes;
}

int64_t FewLines::groups(int64_t many, int64_t group_size) const {
  return divide_up(many, how == How::kUnits ? lines : group_size / along * lines);
}

int FewLines::of_item(int of_side) const {
  if (is_of_words()) return of_side == side ? lines : few;
  if (how == How::kUnits || of_side == 0) return 1;
  return static_cast<int>(divide_up(few * lines, kWarp));
}

std::string FewLines::place(int of_side) const {
  if (is_of_words()) return cat(of_side == side ? "line0 + " : "", of_side == 0 ? "i" : "j");
  if (how == How::kUnits) return of_side == side ? "l" : "f";
  const std::string number = cat("(item * ", of_item(1), " + j)");
  return of_side == side ? cat("line0 + ", number, " % ", lines) : cat(number, " / ", lines);
}

// Chosen on an H100 from 1 to 4 lines of float32, float16 and bfloat16 and matrices of 2048 to 6144: each work item has
// about 64 bytes of the matrix on the way, and few groups of items end with nothing to do. More lines, for which the
// form was chosen on an H200, are read from the caches once for each 4 or 8 lines of the matrix.
FewLines choose_few_lines(const Op& op, const Dialect& dialect) {
  const compute_plugin_tensor& c = op.output(0);
  const compute_dtype dtype = op.input(0).dtype;
  const int32_t rank = c.rank, size = dtype_size(dtype);
  FewLines form;
  if (dialect.is_host || rank < 2 || dtype != op.input(1).dtype || dtype != c.dtype || !is_float(computed_in(dtype)))
    return form;
  if (dialect.group_size < kWarp) return form;
  const int64_t m = c.shape[rank - 2], n = c.shape[rank - 1], k = op.input(0).shape[rank - 1];
  if (std::min(m, n) > most_lines(dialect, dtype) || std::max(m, n) < 64 || k < 128) return form;
  if (!lies_in_words(op.input(0), rank - 1, size) || !lies_in_words(op.input(1), rank - 2, size)) return form;
  const int few = static_cast<int>(std::min(m, n));
  const int64_t many = std::max(m, n), words = k / (kWordBytes / size);
  const int side = m <= n ? 1 : 0;
  const bool has_many_rows = few > (is_half(dtype) ? 2 : 4);
  if (has_many_rows && dialect.has_vendor_products) {
    // Libraries are faster with more rows in batches, and with the units of TF32.
    const bool is_batch = std::any_of(c.shape, c.shape + rank - 2, [](int64_t extent) { return extent > 1; });
    if (is_batch || (dtype == COMPUTE_DTYPE_FLOAT32 && op.allows_tf32())) return form;
  }
  if (has_many_rows && has_copies(dialect)) {
    if (dtype == COMPUTE_DTYPE_FLOAT32) return choose_staged(dialect, side, few, many, words);
    if (is_half(dtype)) {
      const FewLines units = choose_units(dialect, side, few, many);
      const int64_t most_groups = int64_t{units.at_once} * dialect.compute_units;
      const bool is_for_library = units.groups(many, dialect.group_size) > most_groups || many * k > kMostOfUnits;
      return dialect.has_vendor_products && is_for_library ? form : units;
    }
  }
  form.side = side;
  form.few = few;
  form.lines = few == 1 ? 1 : 2;
  form.steps = few == 1 ? 4 : few <= 4 ? 2 : 1;
  form.along = kWarp;
  const bool is_whole = few == 1 && dialect.has_warps;  // group; else adding up its sums takes too long
  int first = is_whole ? dialect.group_size : std::max(dialect.group_size / 2, kWarp), widest = first;
  int64_t least_groups = 2 * dialect.compute_units;
  if (few > 4) {
    const bool is_large = many >= int64_t{32} * dialect.compute_units;
    form.lines = few > 8 && is_large ? 8 : 4;
    // Without warps sums are added up in local memory, which takes long beside a small matrix.
    if (!dialect.has_warps && (few < 6 || !is_large)) form.lines = 2;
    first = std::min(2 * kWarp, dialect.group_size);
    widest = dialect.group_size;
    least_groups = dialect.compute_units;
  }
  const auto groups = [&] { return form.groups(many, dialect.group_size); };
  while (form.along < first && words > int64_t{form.along} * form.steps) form.along *= 2;
  while (form.along < widest && words > form.along && groups() < least_groups) form.along *= 2;
  return form;
}

std::string few_lines_text(const FewLinesText& given, KernelBuilder& builder) {
  return TextBuilder(given, builder).text();
}

}  // namespace compute::common
