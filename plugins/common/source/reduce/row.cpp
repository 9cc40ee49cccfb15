// SPDX-License-Identifier: Apache-2.0
// row: one kernel. A group of work items is a table of `across` × `along`, as in reduce: `across` rows, each of `along`
// items; neighbouring items follow memory. An item keeps its elements of a short row in registers from stage to stage,
// and reads those of a long one again. Few rows have larger groups, whose registers hold longer rows. No row is shared
// by groups: few even longer rows are refused, and core decomposes them into reductions that share them. The items of a
// row that share a warp exchange registers.
//
// Float sums: the terms of an item are a tree if it holds few, else it adds with compensation; the items of a row are a
// tree.
#include <algorithm>
#include <cstdlib>

#include "plugins/common/op/core.hpp"
#include "plugins/common/source/expressions/combination.hpp"
#include "plugins/common/source/reduce/ops.hpp"
#include "plugins/common/source/reduce/reduce_shape.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/reduce/row.inc"

constexpr int64_t kMostHeld = 16;            // elements of an input that an item keeps in registers
constexpr int64_t kMostHeldOfFew = 32;       // the same if there are few rows
constexpr int64_t kMostHeldBytes = 128;      // of all inputs
constexpr int64_t kNarrow = 32;              // items of a row up to kMostHeld / 2 times as long
constexpr int64_t kMostOfGroup = 256 * 256;  // elements: from here on worth several groups per row, if there are few
constexpr int64_t kSector = 8;               // neighbouring items that read memory in whole parts

std::string read(int32_t word) { return KernelBuilder::index_word(word); }

// Loops over rows and along them. Operands: inputs, positions, outputs of the map; in `kept` also stored outputs.
struct RowNests {
  explicit RowNests(const Op& op) {
    const auto rank = static_cast<size_t>(op.input(0).rank);
    std::vector<std::vector<int64_t>> strides;
    for (int32_t i = 0; i < op.input_count(); ++i) {
      strides.push_back(strides_of(op.input(i)));
      sizes.push_back(dtype_size(op.input(i).dtype));
    }
    for (int32_t i = 0; i < op.expression_count(); i += 2) {
      for (const int32_t axis : index_axes(op.expression(i))) {
        if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
      }
    }
    for (const int32_t axis : axes) {
      strides.push_back(index_strides(op.input(0).rank, axis));
      sizes.push_back(1);
    }
    const auto stored = static_cast<int32_t>(op.integers("stored").size());
    map_outputs = op.output_count() - stored;
    std::vector<int64_t> kept_shape(op.input(0).shape, op.input(0).shape + rank), combined_shape(rank, 1);
    for (const int64_t axis : op.integers("axes"))
      std::swap(kept_shape[static_cast<size_t>(axis)], combined_shape[static_cast<size_t>(axis)]);
    for (int32_t i = 0; i < op.output_count(); ++i) {
      if (i == map_outputs) combined = collapse_operands(combined_shape, strides, 0);
      strides.push_back(strides_of(op.output(i)));
      sizes.push_back(dtype_size(op.output(i).dtype));
    }
    if (stored == 0) combined = collapse_operands(combined_shape, strides, 0);
    kept = collapse_operands(kept_shape, strides, 0);
  }

  bool is_wide() const {
    constexpr int64_t kLimit = INT32_MAX - (1 << 20);  // what rounding up to groups may add
    if (kept.points() > kLimit || combined.points() > kLimit) return true;
    for (size_t i = 0; i < sizes.size(); ++i) {
      int64_t span = 1;
      for (const LoopNest* nest : {&kept, &combined}) {
        if (i >= nest->strides.size()) continue;
        for (int axis = 0; axis < nest->rank; ++axis)
          span +=
              std::llabs(nest->strides[i][static_cast<size_t>(axis)]) * (nest->extents[static_cast<size_t>(axis)] - 1);
      }
      if (span * sizes[i] > kLimit) return true;
    }
    return false;
  }

  int64_t offset(size_t operand) const {
    return kept.offsets[operand] + (operand < combined.offsets.size() ? combined.offsets[operand] : 0);
  }

  LoopNest kept, combined;
  std::vector<int32_t> axes;   // of INDEX nodes
  std::vector<int32_t> sizes;  // of an operand's elements
  int32_t map_outputs = 0;
};

struct RowShape {
  bool along_first = true;  // neighbouring items are along the row
  int lanes = 1;            // elements an access along the row, a word
  int64_t along = 1, across = 1;
  int64_t held = 0;  // words in registers; 0: elements are read again
  int64_t group() const { return along * across; }
};

// 16 bytes an access along the innermost loop, if every tensor allows it, else one element.
int choose_row_lanes(const Op& op, const RowNests& nests) {
  const LoopNest &kept = nests.kept, &combined = nests.combined;
  if (combined.rank == 0) return 1;
  const auto inner = static_cast<size_t>(combined.rank - 1);
  const auto is_tensor = [&](size_t operand) {
    const auto inputs = static_cast<size_t>(op.input_count());
    return operand < inputs || operand >= inputs + nests.axes.size();
  };
  int32_t greatest = 1;
  for (size_t i = 0; i < combined.strides.size(); ++i) {
    const int64_t stride = combined.strides[i][inner];
    if (is_tensor(i) && stride != 0 && stride != 1) return 1;
    if (is_tensor(i) && stride == 1) greatest = std::max(greatest, nests.sizes[i]);
  }
  const int lanes = 16 / greatest;
  if (combined.extents[inner] % lanes != 0) return 1;
  for (size_t i = 0; i < combined.strides.size(); ++i) {
    if (!is_tensor(i) || combined.strides[i][inner] == 0) continue;
    const int32_t size = nests.sizes[i], alignment = vector_alignment(size, lanes);
    const auto number = static_cast<int32_t>(i < static_cast<size_t>(op.input_count()) ? i : i - nests.axes.size());
    if (op.tensor(number).alignment < alignment || nests.offset(i) * size % alignment != 0) return 1;
    for (size_t axis = 0; axis < static_cast<size_t>(kept.rank); ++axis) {
      if (kept.strides[i][axis] * size % alignment != 0) return 1;
    }
    for (size_t axis = 0; axis < inner; ++axis) {
      if (combined.strides[i][axis] * size % alignment != 0) return 1;
    }
  }
  return lanes;
}

RowShape choose_row_shape(const Op& op, const RowNests& nests, const Dialect& dialect, int64_t group) {
  RowShape shape;
  const LoopNest &kept = nests.kept, &combined = nests.combined;
  const int64_t rows = kept.points(), terms = combined.points();
  // Memory runs along the nest whose innermost stride is less in the first input that moves differently along both.
  for (size_t i = 0; i < static_cast<size_t>(op.input_count()); ++i) {
    const int64_t k = kept.rank == 0 ? 0 : std::llabs(kept.strides[i][static_cast<size_t>(kept.rank - 1)]);
    const int64_t c = combined.rank == 0 ? 0 : std::llabs(combined.strides[i][static_cast<size_t>(combined.rank - 1)]);
    if (k == c) continue;
    shape.along_first = k == 0 || (c != 0 && c < k);
    break;
  }
  if (terms == 1) shape.along_first = false;
  int64_t bytes = 0;  // of a term's inputs, without those of a whole row
  for (int32_t i = 0; i < op.input_count(); ++i) {
    const auto& strides = combined.strides[static_cast<size_t>(i)];
    if (std::any_of(strides.begin(), strides.begin() + combined.rank, [](int64_t stride) { return stride != 0; }))
      bytes += dtype_size(op.input(i).dtype);
  }
  bytes = std::max<int64_t>(bytes, 1);
  if (!dialect.is_host && shape.along_first) shape.lanes = choose_row_lanes(op, nests);
  const int64_t words = divide_up(terms, shape.lanes);
  const int64_t wanted = static_cast<int64_t>(dialect.compute_units) * dialect.groups_per_unit;
  const int64_t most = std::min(group, power_above(words));
  if (dialect.is_host) {
    shape.along = rows >= group ? 1 : std::min(group / power_above(rows), most);
  } else if (shape.along_first) {
    const int64_t narrow = std::min(kNarrow, power_above(divide_up(words, 2)));
    const int64_t most_held = std::clamp(kMostHeldBytes / bytes, kMostHeld / 4, kMostHeld);
    shape.along = std::min(group, std::max(narrow, power_above(divide_up(terms, most_held))));
    while (shape.along < most && divide_up(rows, group / shape.along) < wanted / 2) shape.along *= 2;
  } else {
    shape.along = rows >= wanted * group ? 1 : std::min(group / std::min({group, kNarrow, power_above(rows)}), most);
    while (shape.along < most && group / shape.along > kSector &&
           divide_up(rows, group / shape.along) < dialect.compute_units)
      shape.along *= 2;
  }
  shape.across = group / shape.along;
  const int64_t held = power_above(divide_up(words, shape.along)), elements = held * shape.lanes;
  const int64_t most_held = group > dialect.group_size ? kMostHeldOfFew : kMostHeld;
  if (terms > 0 && elements <= most_held && elements * bytes <= kMostHeldBytes) shape.held = held;
  return shape;
}

// Groups are larger than the dialect's while each has a compute unit for itself and reads elements again.
RowShape choose_row_shape(const Op& op, const RowNests& nests, const Dialect& dialect) {
  RowShape shape = choose_row_shape(op, nests, dialect, dialect.group_size);
  for (int64_t group = dialect.group_size * 2; group <= dialect.largest_group && shape.held == 0; group *= 2) {
    if (divide_up(nests.kept.points(), shape.across) > dialect.compute_units) break;
    shape = choose_row_shape(op, nests, dialect, group);
  }
  return shape;
}

Dialect with_group(Dialect dialect, int64_t group) {
  dialect.group_size = static_cast<int32_t>(group);
  return dialect;
}

// The stages as the attributes and expressions describe them.
struct RowStage {
  Combination kind;
  const compute_plugin_expression &before, &after;
  compute_dtype accumulator() const { return before.nodes[before.outputs[0]].dtype; }
  compute_dtype result() const { return after.nodes[after.outputs[0]].dtype; }
};

std::vector<RowStage> row_stages(const Op& op) {
  std::vector<RowStage> stages;
  const std::vector<std::string_view> kinds = op.texts("kinds");
  for (size_t i = 0; i < kinds.size() && 2 * i + 1 < static_cast<size_t>(op.expression_count()); ++i) {
    const auto before = static_cast<int32_t>(2 * i);
    stages.push_back({combination_of(kinds[i]), op.expression(before), op.expression(before + 1)});
  }
  return stages;
}

class RowBuilder {
 public:
  RowBuilder(const Op& op, const Dialect& dialect, bool with_text)
      : op_(op),
        nests_(op),
        shape_(choose_row_shape(op, nests_, dialect)),
        stages_(row_stages(op)),
        inputs_(op.input_count()),
        dialect_(with_group(dialect, shape_.group())),
        builder_(dialect_, "row", with_text),
        kept_(nests_.kept),
        combined_(nests_.combined) {}

  BuiltKernels build() {
    builder_.is_wide = nests_.is_wide();
    sign();
    take_arguments();
    if (builder_.with_text()) builder_.body = text();
    BuiltKernels built;
    built.add(builder_, divide_up(kept_.points(), shape_.across));
    return built;
  }

 private:
  void sign() {
    builder_.sign(shape_.group());
    builder_.sign(shape_.along_first);
    builder_.sign(shape_.lanes);
    builder_.sign(shape_.held);
    builder_.sign(kept_.rank());
    builder_.sign(combined_.rank());
    builder_.sign(inputs_);
    builder_.sign(nests_.map_outputs);
    builder_.sign(static_cast<int64_t>(stages_.size()));
    for (const RowStage& stage : stages_) builder_.sign(static_cast<int64_t>(stage.kind));
    for (int32_t i = 0; i < op_.expression_count(); ++i) builder_.sign(op_.expression(i));
    for (int32_t i = 0; i < op_.tensor_count(); ++i) builder_.sign(op_.tensor(i).dtype);
    for (int i = 0; shape_.lanes > 1 && i < output_operand(nests_.map_outputs); ++i) builder_.sign(moves(i));
    for (const int64_t stage : op_.integers("stored")) builder_.sign(stage);
  }

  // The operand of output i in the nests.
  int output_operand(int32_t i) const { return inputs_ + static_cast<int>(nests_.axes.size()) + i; }

  void take_arguments() {
    for (int32_t i = 0; i < op_.tensor_count(); ++i) {
      const compute_dtype dtype = op_.tensor(i).dtype;
      const int operand = i < inputs_ ? i : output_operand(i - inputs_);
      builder_.pointer(Pointer::kTensor, i, nests_.offset(static_cast<size_t>(operand)) * dtype_size(dtype));
      builder_.declare(i, type_text(dtype).storage, i < inputs_);
    }
    for (int32_t i = 0; i < op_.scalar_count(); ++i) scalars_.push_back(builder_.scalar(i, op_.scalar_dtype(i)));
    for (size_t i = 0; i < nests_.axes.size(); ++i)
      index_words_.push_back(builder_.word(nests_.offset(static_cast<size_t>(inputs_) + i)));
    along_ = builder_.word(shape_.along);
    across_ = builder_.word(shape_.across);
    columns_ = builder_.word(kept_.points());
    terms_ = builder_.word(combined_.points());
    kept_.add_words(builder_, 1);
    combined_.add_words(builder_, 1);
  }

  std::string pace() const { return builder_.dialect().is_host ? "1" : "along"; }

  // Whether adjacent elements of a row are adjacent in this operand, so that a word is accessed at once.
  bool moves(int operand) const {
    const LoopNest& combined = nests_.combined;
    return shape_.lanes > 1 &&
           combined.strides[static_cast<size_t>(operand)][static_cast<size_t>(combined.rank - 1)] != 0;
  }
  VectorText word_of(compute_dtype dtype) {
    return vector_type(builder_, type_text(dtype).storage, dtype_size(dtype), shape_.lanes);
  }

  std::string text() {
    std::string bases, registers, stages;
    for (int i = 0; i < output_operand(nests_.map_outputs); ++i)
      bases += cat("const ix b", i, " = ", kept_.offset(i, "k"), ";\n");
    for (int32_t i = 0; i < inputs_; ++i) {
      const compute_dtype dtype = op_.input(i).dtype;
      registers += cat(moves(i) ? word_of(dtype).type : type_text(dtype).storage, " e", i, "[", shape_.held, "];\n");
    }
    for (size_t i = 0; i < stages_.size(); ++i) stages += stage_text(i);
    const std::string map = map_text();
    return fill(
        kRow,
        {{"item_place",
          fill(kItemPlace, {{"along", read(along_)}, {"across", read(across_)}, {"along_first", shape_.along_first}})},
         {"terms", read(terms_)},
         {"columns", read(columns_)},
         {"lanes", shape_.lanes},
         {"is_host", builder_.dialect().is_host},
         {"kept_coordinates", kept_.coordinates(builder_, "k", "column")},
         {"bases", bases},
         {"is_held", shape_.held > 0},
         {"registers", registers},
         {"held", shape_.held},
         {"pace", pace()},
         {"coordinates", combined_.coordinates(builder_, "c", "r")},
         {"loads", loads()},
         {"stages", stages},
         {"map", map},
         {"stored", stored_text()}});
  }

  // The elements at r, or the words that begin there.
  std::string loads() {
    std::string out;
    for (int32_t i = 0; i < inputs_; ++i) {
      const compute_dtype dtype = op_.input(i).dtype;
      const std::string at = cat("x", i, " + b", i, " + ", combined_.offset(i, "c"));
      const std::string name = cat("e", i, shape_.held > 0 ? "[s]" : "");
      if (moves(i)) {
        const VectorText vector = word_of(dtype);
        if (shape_.held == 0) out += cat(vector.type, " ", name, ";\n");
        for (int w = 0; w < vector.words; ++w)
          out += cat(name, ".v[", w, "] = ((COMPUTE_GLOBAL const ", vector.word, "*)(", at, "))[", w, "];\n");
      } else {
        out += cat(shape_.held > 0 ? "" : cat("const ", type_text(dtype).storage, " "), name, " = *(", at, ");\n");
      }
    }
    return out;
  }

  std::string terms_text(const std::string& before, const std::string& term, const std::string& behind) {
    return fill(kRowTerms, {{"is_held", shape_.held > 0},
                            {"held", shape_.held},
                            {"lanes", shape_.lanes},
                            {"has_lanes", shape_.lanes > 1},
                            {"pace", pace()},
                            {"first_coordinates", combined_.coordinates(builder_, "c", "r")},
                            {"coordinates", combined_.coordinates(builder_, "c", "r")},
                            {"unroll", builder_.dialect().is_host ? "" : "#pragma unroll 4"},
                            {"loads", loads()},
                            {"before", before},
                            {"term", term},
                            {"behind", behind}});
  }

  // Whether the items of a row exchange registers, as items of a warp can.
  bool exchanges_lanes() const { return builder_.dialect().has_warps && shape_.along_first; }

  // Where expression `number` finds its values, but for its inputs.
  Leaves leaves(int32_t number) {
    int32_t first = 0;
    for (int32_t i = 0; i < number; ++i) first += op_.expression(i).scalar_count;
    Leaves leaves;
    leaves.scalar = [this, first](int32_t i) { return scalars_[static_cast<size_t>(first + i)]; };
    leaves.index = [this](int32_t axis) {
      const auto i = static_cast<int>(std::find(nests_.axes.begin(), nests_.axes.end(), axis) - nests_.axes.begin());
      return cat("(", read(index_words_[static_cast<size_t>(i)]), " + b", inputs_ + i, " + ",
                 combined_.offset(inputs_ + i, "c"), ")");
    };
    return leaves;
  }

  // The outputs of an expression over inputs and results.
  std::vector<std::string> at_point(int32_t number, std::string& out) {
    Leaves point = leaves(number);
    point.input = [this](int32_t i) {
      if (i >= inputs_) return cat("result", i - inputs_);
      return value_of_element(op_.input(i).dtype, cat("e", i, shape_.held > 0 ? "[s]" : "", moves(i) ? ".e[v]" : ""));
    };
    return print_expression(op_.expression(number), point, "w", builder_.functions(), out);
  }

  std::string stage_text(size_t number) {
    const RowStage& stage = stages_[number];
    const compute_dtype dtype = stage.accumulator();
    const bool is_held = shape_.held > 0, is_tree = is_held && shape_.held * shape_.lanes <= kMostHeld;
    const bool is_compensated = !is_tree && is_compensated_sum(stage.kind, dtype);
    Functions& functions = builder_.functions();
    const std::string sum = cat("sum", number), lost = cat("lost", number);
    std::string term, after, tree, total = sum;
    const auto index = static_cast<int32_t>(2 * number);
    const std::string identity = identity_text(stage.kind, dtype);
    std::string value = at_point(index, term)[0];
    if (is_held) value = cat("(is_term ? ", value, " : ", identity, ")");
    const std::string combined = combine_text(stage.kind, dtype, "p", "q", functions);
    if (is_tree) {
      term += cat("values[s * ", shape_.lanes, shape_.lanes > 1 ? " + v" : "", "] = ", value, ";\n");
      for (int64_t half = shape_.held * shape_.lanes / 2; half > 0; half /= 2)
        tree += fill(kRowLevel, {{"half", half}, {"type", type_text(dtype).value}, {"combined", combined}});
    } else if (is_compensated) {
      term += cat(functions.need("two_sum", dtype), "(&", sum, ", &", lost, ", ", value, ");\n");
      total = cat("total_", type_text(dtype).name, "(", sum, ", ", lost, ")");
    } else {
      term += cat(sum, " = ", combine_text(stage.kind, dtype, sum, value, functions), ";\n");
    }
    Leaves results = leaves(index + 1);
    results.input = [](int32_t i) { return i == 0 ? std::string("reduced") : cat("result", i - 1); };
    const std::string result = print_expression(stage.after, results, "z", functions, after)[0];
    const auto shared = [&](const char* place) {
      return value_of_element(dtype, cat("shared", number, "[", place, "]"));
    };
    const bool exchanges = exchanges_lanes();
    if (exchanges) define_lane_exchange(builder_, type_text(dtype).value);
    const int32_t group = builder_.dialect().group_size;
    return fill(kRowStage, {{"stage", number},
                            {"stored", type_text(dtype).storage},
                            {"shared", exchanges ? std::max(group / 32, 1) : group},
                            {"type", type_text(dtype).value},
                            {"identity", identity},
                            {"is_compensated", is_compensated},
                            {"is_tree", is_tree},
                            {"values", shape_.held * shape_.lanes},
                            {"terms", terms_text("", term, "")},
                            {"tree", tree},
                            {"has_lane_exchange", exchanges},
                            {"total", total},
                            {"combined", combined},
                            {"stored_total", element_of_value(dtype, "p")},
                            {"one_of_warps", shared("row_warp + (id & (warps - 1))")},
                            {"total_stored", element_of_value(dtype, total)},
                            {"own", shared("id")},
                            {"partner", shared(shape_.along_first ? "id + reach" : "id + reach * across")},
                            {"combined_stored", element_of_value(dtype, combined)},
                            {"reduced", shared(shape_.along_first ? "id - item" : "line")},
                            {"result_type", type_text(stage.result()).value},
                            {"after", after},
                            {"value", result}});
  }

  std::string map_text() {
    if (op_.expression_count() % 2 == 0) return "";
    std::string before, out, behind;
    const std::vector<std::string> values = at_point(op_.expression_count() - 1, out);
    for (int32_t i = 0; i < nests_.map_outputs; ++i) {
      const int operand = output_operand(i);
      const compute_dtype dtype = op_.output(i).dtype;
      const std::string value = element_of_value(dtype, values[static_cast<size_t>(i)]);
      const std::string at = cat("x", inputs_ + i, " + b", operand, " + ", combined_.offset(operand, "c"));
      if (moves(operand)) {
        const VectorText vector = word_of(dtype);
        before += cat(vector.type, " o", i, ";\n");
        out += cat("o", i, ".e[v] = ", value, ";\n");
        for (int w = 0; w < vector.words; ++w)
          behind += cat("((COMPUTE_GLOBAL ", vector.word, "*)(", at, "))[", w, "] = o", i, ".v[", w, "];\n");
      } else {
        out += cat("if (is_term && is_active) *(", at, ") = ", value, ";\n");
      }
    }
    if (!behind.empty())
      behind = fill(
          kRowStores,
          {{"lanes", shape_.lanes}, {"coordinates", combined_.coordinates(builder_, "c", "r")}, {"stores", behind}});
    return terms_text(before, out, behind);
  }

  std::string stored_text() {
    std::string out;
    int32_t i = nests_.map_outputs;
    for (const int64_t stage : op_.integers("stored")) {
      const compute_dtype to = op_.output(i).dtype;
      const std::string value =
          convert_text(cat("result", stage), stages_[static_cast<size_t>(stage)].result(), to, builder_.functions());
      out +=
          cat("x", inputs_ + i, "[", kept_.offset(output_operand(i), "k"), "] = ", element_of_value(to, value), ";\n");
      ++i;
    }
    return out;
  }

  const Op& op_;
  const RowNests nests_;
  const RowShape shape_;
  const std::vector<RowStage> stages_;
  const int32_t inputs_;
  const Dialect dialect_;  // with the group's size
  KernelBuilder builder_;
  Space kept_, combined_;
  std::vector<std::string> scalars_;
  std::vector<int32_t> index_words_;
  int32_t along_ = 0, across_ = 0, columns_ = 0, terms_ = 0;
};

}  // namespace

std::optional<Refusal> refuse_row_shape(const Op& op, const Dialect& dialect) {
  const std::vector<RowStage> stages = row_stages(op);
  const RowNests nests(op);
  const RowShape shape = choose_row_shape(op, nests, dialect);
  int64_t local_bytes = 0;
  for (const RowStage& stage : stages) {
    if (stage.kind == Combination::unknown)
      return Refusal{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1, "row: a kind is unknown", ""};
    local_bytes += shape.group() * dtype_size(stage.accumulator());
  }
  if (local_bytes > dialect.local_memory_bytes)
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1, "row: local memory is too small", ""};
  const bool has_few = divide_up(nests.kept.points(), shape.across) < dialect.compute_units;
  if (has_few && nests.combined.points() * shape.across >= kMostOfGroup)
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, -1, "row: few long rows are faster as reductions", ""};
  return std::nullopt;
}

BuiltKernels build_row(const Op& op, const Dialect& dialect, bool with_text) {
  return RowBuilder(op, dialect, with_text).build();
}

}  // namespace compute::common
