// SPDX-License-Identifier: Apache-2.0
// reduce. The index space has two loop nests: kept loops and combined loops. A group of work items is a table of
// `across` × `along`: `across` outputs, each combined over by `along` items; neighbouring items follow memory. Where
// the outputs do not fill the device, the combined loops are split between groups, whose partial results the last of
// them combines, or a second kernel where groups cannot count each other. On a CPU core an item that combines over rows
// of memory is a group by itself, and goes down them with a block of neighbouring outputs.
//
// Float sums: a work item adds the few numbers of a step as a tree and these with compensation, items of a group and
// groups are trees: the error stays below that of pairwise summation, and the form depends on layout and extents alone.
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "plugins/common/source/builder/kernel_builder.hpp"
#include "plugins/common/source/expressions/combination.hpp"
#include "plugins/common/source/reduce/ops.hpp"
#include "plugins/common/source/reduce/reduce_shape.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/reduce/reduce.inc"

// What is combined, and how.
struct Reduction {
  explicit Reduction(const Op& op)
      : op(op),
        kind(combination_of(op.text("kind"))),
        before(op.expression(0)),
        after(op.expression(1)),
        accumulator(before.nodes[before.outputs[0]].dtype),
        output_dtype(op.output(0).dtype) {}

  bool is_compensated() const { return is_compensated_sum(kind, accumulator); }
  // bool accumulators are u8 in local memory
  const char* stored() const { return type_text(accumulator).storage; }

  std::string combine(const std::string& x, const std::string& y, Functions& functions) const {
    return combine_text(kind, accumulator, x, y, functions);
  }

  const Op& op;
  const Combination kind;
  const compute_plugin_expression& before;
  const compute_plugin_expression& after;
  const compute_dtype accumulator, output_dtype;
};

// A kernel and the words that it reads.
struct ReduceKernel {
  struct Words {
    int32_t columns, groups, vectors, chunk, along, across, terms, outputs, inner_output, splits, inner_extent;
  };

  ReduceKernel(const Reduction& reduction, const ReducePass& pass, const ReduceShape& shape)
      : pass(pass), shape(shape), kept(pass.kept), combined(pass.combined) {
    if (!pass.from_workspace) axes = index_axes(reduction.before);
  }

  int32_t sources() const { return static_cast<int32_t>(pass.sources.size()); }
  // Whether neighbouring lanes read different elements, or positions.
  bool moves(int32_t operand) const {
    const LoopNest& fast = shape.along_first ? pass.combined : pass.kept;
    return shape.lanes > 1 && fast.strides[static_cast<size_t>(operand)][fast.rank - 1] != 0;
  }
  int64_t offset(int32_t operand) const {
    return pass.kept.offsets[static_cast<size_t>(operand)] + pass.combined.offsets[static_cast<size_t>(operand)];
  }
  // Outputs of a work item.
  int held() const { return shape.along_first ? 1 : shape.lanes; }
  int64_t vectors() const { return shape.along_first ? combined.points() / shape.lanes : combined.points(); }
  int64_t columns() const { return count_columns(kept.nest(), held()); }
  int64_t column_groups() const { return divide_up(columns(), shape.across); }

  const ReducePass& pass;
  const ReduceShape& shape;
  Space kept, combined;
  std::vector<int32_t> axes;
  std::vector<std::string> before_scalars, after_scalars;
  std::vector<int32_t> index_words;
  Words words{};
};

// A kernel's statements.
class ReduceText {
 public:
  ReduceText(const Reduction& reduction, const ReduceKernel& kernel, KernelBuilder& builder)
      : reduction_(reduction),
        kernel_(kernel),
        pass_(kernel.pass),
        words_(kernel.words),
        builder_(builder),
        sources_(kernel.sources()),
        group_(builder.dialect().group_size),
        lanes_(kernel.shape.lanes),
        held_(kernel.held()),
        is_host_(builder.dialect().is_host),
        along_first_(kernel.shape.along_first),
        accumulator_(reduction.accumulator) {
    if (reduction.is_compensated()) {
      two_sum_ = builder.functions().need("two_sum", accumulator_);
      total_ = cat("total_", type_text(accumulator_).name);
    }
    for (int32_t i = 0; i < sources_; ++i) {
      const compute_dtype dtype = pass_.sources[static_cast<size_t>(i)];
      const char* storage = type_text(dtype).storage;
      vectors_.push_back(kernel.moves(i) && !kernel.shape.is_block
                             ? vector_type(builder, storage, dtype_size(dtype), lanes_)
                             : VectorText{storage, "", 0});
    }
  }

  std::string text() {
    if (kernel_.shape.is_block) return block_text();
    std::vector<Value> values = place_values();
    for (auto part : {step_values(), rest_values(), group_values()})
      values.insert(values.end(), part.begin(), part.end());
    return fill(kReduce, values);
  }

 private:
  static std::string read(int32_t word) { return KernelBuilder::index_word(word); }
  std::string combine(const std::string& x, const std::string& y) {
    return reduction_.combine(x, y, builder_.functions());
  }

  // The position of a work item and its initial values.
  std::vector<Value> place_values() const {
    std::string bases;
    for (int32_t i = 0; i < sources_ + static_cast<int32_t>(kernel_.axes.size()); ++i)
      bases += cat("const ix b", i, " = ", kernel_.kept.offset(i, "k"), ";\n");
    return {{"item_place",
             fill(kItemPlace,
                  {{"along", read(words_.along)}, {"across", read(words_.across)}, {"along_first", along_first_}})},
            {"columns", read(words_.columns)},
            {"column_groups", read(words_.groups)},
            {"chunk", read(words_.chunk)},
            {"vectors", read(words_.vectors)},
            {"stored", reduction_.stored()},
            {"group_held", group_ * held_},
            {"type", type_text(accumulator_).value},
            {"held", held_},
            {"is_compensated", reduction_.is_compensated()},
            {"identity", identity_text(reduction_.kind, accumulator_)},
            {"kept_coordinates", kernel_.kept.coordinates(builder_, "k", "column")},
            {"bases", bases},
            {"item_range", fill(kItemRange, {{"is_host", is_host_}})},
            {"pace", is_host_ ? "1" : "along"},
            {"unroll", is_host_ ? "" : "#pragma unroll"},
            {"lanes", lanes_},
            {"has_lanes", lanes_ > 1},
            {"has_positions", !kernel_.axes.empty()}};
  }

  // The sources' registers, `count` of each.
  std::string registers(const std::string& count) const {
    std::string out;
    for (int32_t i = 0; i < sources_; ++i) out += cat(vectors_[static_cast<size_t>(i)].type, " r", i, count, ";\n");
    return out;
  }

  std::string loads(const std::string& step) const {
    std::string out;
    for (int32_t i = 0; i < sources_; ++i) {
      const VectorText& vector = vectors_[static_cast<size_t>(i)];
      const std::string at = cat("b", i, " + ", kernel_.combined.offset(i, "c"));
      if (!kernel_.moves(i)) out += cat("r", i, step, " = x", i, "[", at, "];\n");
      for (int w = 0; w < vector.words; ++w) {
        out += cat("r", i, step, ".v[", w, "] = ((COMPUTE_GLOBAL const ", vector.word, "*)(x", i, " + ", at, "))[", w,
                   "];\n");
      }
    }
    return out;
  }

  // The position along `axis`, of lane v.
  std::string index(int32_t axis) const {
    const auto number = std::find(kernel_.axes.begin(), kernel_.axes.end(), axis) - kernel_.axes.begin();
    const int32_t operand = sources_ + static_cast<int32_t>(number);
    return cat("(", read(kernel_.index_words[static_cast<size_t>(number)]), " + b", operand, " + ",
               kernel_.combined.offset(operand, "c"), kernel_.moves(operand) ? " + v" : "", ")");
  }

  // `before` of the loaded elements: of lane v, or of single elements.
  struct Term {
    std::string statements, value;
  };
  Term term(const std::string& step, bool by_lane) {
    const auto element = [&](int32_t i) {
      return value_of_element(pass_.sources[static_cast<size_t>(i)],
                              cat("r", i, step, kernel_.moves(i) && by_lane ? ".e[v]" : ""));
    };
    if (pass_.from_workspace) return {"", element(0)};
    Leaves leaves;
    leaves.input = element;
    leaves.index = [&](int32_t axis) { return index(axis); };
    leaves.scalar = [&](int32_t i) { return kernel_.before_scalars[static_cast<size_t>(i)]; };
    Term term;
    term.value = print_expression(reduction_.before, leaves, "w", builder_.functions(), term.statements)[0];
    return term;
  }

  std::string accumulate(const std::string& place, const std::string& value) {
    if (reduction_.is_compensated()) return cat(two_sum_, "(&sum", place, ", &lost", place, ", ", value, ");");
    return cat("sum", place, " = ", combine("sum" + place, value), ";");
  }

  // A tree over values[0 .. count), in place; `count` is a power of two.
  std::string tree(int count, std::string_view values) {
    std::string out;
    for (int step = count / 2; step > 0; step /= 2) {
      for (int i = 0; i < step; ++i) {
        const std::string x = cat(values, "[", i, "]");
        out += cat(x, " = ", combine(x, cat(values, "[", i + step, "]")), ";\n");
      }
    }
    return out;
  }

  std::vector<Value> step_values() {
    const int steps = is_host_ && lanes_ == 1 ? kReduceHostSteps : kReduceSteps;
    const int gathered = along_first_ ? steps * lanes_ : steps;
    const Term step_term = term("[s]", true);
    return {{"steps", steps},
            {"last_step", steps - 1},
            {"step_registers", registers(cat("[", steps, "]"))},
            {"gathered", gathered},
            {"step_coordinates", kernel_.combined.coordinates(builder_, "c", "i")},
            {"step_loads", loads("[s]")},
            {"step_term", step_term.statements},
            {"gathered_row", along_first_ ? "0" : "v"},
            {"gathered_column", along_first_ ? cat("s * ", lanes_, " + v") : std::string("s")},
            {"step_value", step_term.value},
            {"tree", tree(gathered, "values[v]")},
            {"add_tree", accumulate("[v]", "values[v][0]")}};
  }

  std::vector<Value> rest_values() {
    const Term vector_term = term("", true);
    std::vector<Value> values = {
        {"registers", registers("")},
        {"coordinates", kernel_.combined.coordinates(builder_, "c", "r")},
        {"loads", loads("")},
        {"term", vector_term.statements},
        {"add_term", accumulate(along_first_ || lanes_ == 1 ? "[0]" : "[v]", vector_term.value)}};
    const bool ends_in_elements = along_first_ && lanes_ > 1 && kernel_.combined.rank() == 1;
    values.emplace_back("ends_in_elements", ends_in_elements);
    if (!ends_in_elements) return values;
    std::string elements;
    for (int32_t i = 0; i < sources_; ++i) {
      elements += cat("const ", type_text(pass_.sources[static_cast<size_t>(i)]).storage, " r", i, " = x", i, "[b", i,
                      kernel_.moves(i) ? " + t" : "", "];\n");
    }
    const Term element_term = term("", false);
    values.insert(values.end(), {{"terms", read(words_.terms)},
                                 {"elements", elements},
                                 {"element_term", element_term.statements},
                                 {"add_element", accumulate("[0]", element_term.value)}});
    return values;
  }

  std::string shared_value(const std::string& place) const {
    return value_of_element(accumulator_, cat("shared[v * ", group_, " + ", place, "]"));
  }

  std::vector<Value> group_values() {
    const std::string total = reduction_.is_compensated() ? total_ + "(sum[v], lost[v])" : std::string("sum[v]");
    const std::string group_total =
        fill(kReduceGroup, {{"held", held_},
                            {"group", group_},
                            {"type", type_text(accumulator_).value},
                            {"total", element_of_value(accumulator_, total)},
                            {"shared_own", shared_value("id")},
                            {"shared_partner", shared_value(along_first_ ? "id + reach" : "id + reach * across")},
                            {"combined", element_of_value(accumulator_, combine("p", "q"))}});
    std::vector<Value> values = {
        {"group", group_},
        {"group_total", group_total},
        {"is_shared", pass_.is_shared},
        {"shared_own", shared_value("id")},
        {"output_coordinates", pass_.to_workspace ? "" : kernel_.kept.coordinates(builder_, "k", "column")},
        {"store", pass_.to_workspace ? store_partial() : store_output()}};
    if (pass_.is_shared) {
      values.insert(values.end(),
                    {{"parts", sources_ + 1},
                     {"part_place", part_place("split")},
                     {"last_group", fill(kLastGroup, {{"splits", read(words_.splits)}, {"counters", sources_ + 2}})},
                     {"part", value_of_element(accumulator_, cat("x", sources_ + 1, "[", part_place("s"), "]"))},
                     {"add_part", accumulate("[v]", "part")}});
    }
    return values;
  }

  std::string part_place(const char* split) const {
    if (kernel_.shape.is_block)
      return cat(split, " * ", read(words_.outputs), " + row * ", read(words_.inner_extent), " + first + v");
    return cat(split, " * ", read(words_.outputs), " + column * ", held_, " + v");
  }
  std::string store_partial() const {
    return cat("x", sources_, "[", part_place("split"), "] = ", element_of_value(accumulator_, "result"), ";\n");
  }

  // ---- blocks

  std::string block_text() {
    std::string bases;
    for (int32_t i = 0; i < operands(); ++i) bases += cat("const ix b", i, " = ", kernel_.kept.offset(i, "k"), ";\n");
    return fill(kReduceBlock,
                {{"columns", read(words_.columns)},
                 {"chunk", read(words_.chunk)},
                 {"vectors", read(words_.vectors)},
                 {"inner_extent", read(words_.inner_extent)},
                 {"lanes", lanes_},
                 {"kept_coordinates", kernel_.kept.coordinates(builder_, "k", "column")},
                 {"bases", bases},
                 {"type", type_text(accumulator_).value},
                 {"is_compensated", reduction_.is_compensated()},
                 {"identity", identity_text(reduction_.kind, accumulator_)},
                 {"steps", kReduceSteps},
                 {"last_step", kReduceSteps - 1},
                 {"steps_text", block_steps(kReduceSteps)},
                 {"rest_text", block_steps(1)},
                 {"total", reduction_.is_compensated() ? total_ + "(sum[v], lost[v])" : std::string("sum[v]")},
                 {"store", pass_.to_workspace ? store_partial() : store_output()}});
  }

  // Sources and positions.
  int32_t operands() const { return sources_ + static_cast<int32_t>(kernel_.axes.size()); }

  std::string block_steps(int steps) {
    std::string places, set_places, elements;
    for (int32_t i = 0; i < operands(); ++i) {
      places += cat("ix at", i, "[", steps, "];\n");
      set_places += cat("at", i, "[s] = b", i, " + ", kernel_.combined.offset(i, "c"), ";\n");
    }
    const auto place = [&](int32_t i) { return cat("at", i, "[s]", kernel_.moves(i) ? " + v" : ""); };
    for (int32_t i = 0; i < sources_; ++i) {
      elements += cat("const ", type_text(pass_.sources[static_cast<size_t>(i)]).storage, " r", i, " = x", i, "[",
                      place(i), "];\n");
    }
    const auto element = [&](int32_t i) {
      return value_of_element(pass_.sources[static_cast<size_t>(i)], cat("r", i));
    };
    Term term;
    if (pass_.from_workspace) {
      term.value = element(0);
    } else {
      Leaves leaves;
      leaves.input = element;
      leaves.index = [&](int32_t axis) {
        const auto number = std::find(kernel_.axes.begin(), kernel_.axes.end(), axis) - kernel_.axes.begin();
        return cat("(", read(kernel_.index_words[static_cast<size_t>(number)]), " + ",
                   place(sources_ + static_cast<int32_t>(number)), ")");
      };
      leaves.scalar = [&](int32_t i) { return kernel_.before_scalars[static_cast<size_t>(i)]; };
      term.value = print_expression(reduction_.before, leaves, "w", builder_.functions(), term.statements)[0];
    }
    return fill(kReduceBlockSteps, {{"steps", steps},
                                    {"places", places},
                                    {"step_coordinates", kernel_.combined.coordinates(builder_, "c", "i")},
                                    {"set_places", set_places},
                                    {"type", type_text(accumulator_).value},
                                    {"elements", elements},
                                    {"step_term", term.statements},
                                    {"step_value", term.value},
                                    {"tree", tree(steps, "values")},
                                    {"add_tree", accumulate("[v]", "values[0]")}});
  }

  // `after` of the result.
  std::string store_output() {
    Leaves leaves;
    leaves.input = [](int32_t) { return std::string("result"); };
    leaves.index = [](int32_t) { return std::string("0"); };
    leaves.scalar = [&](int32_t i) { return kernel_.after_scalars[static_cast<size_t>(i)]; };
    std::string out;
    const std::string value = print_expression(reduction_.after, leaves, "z", builder_.functions(), out)[0];
    const auto operand = static_cast<int>(kernel_.kept.nest().strides.size()) - 1;
    std::string at = kernel_.kept.offset(operand, "k");
    if (held_ > 1) at += cat(" + v * ", read(words_.inner_output));
    return out + cat("x", sources_, "[", at, "] = ", element_of_value(reduction_.output_dtype, value), ";\n");
  }

  const Reduction& reduction_;
  const ReduceKernel& kernel_;
  const ReducePass& pass_;
  const ReduceKernel::Words& words_;
  KernelBuilder& builder_;
  const int32_t sources_;
  const int group_, lanes_, held_;
  const bool is_host_, along_first_;
  const compute_dtype accumulator_;
  std::string two_sum_, total_;      // empty where sums are not compensated
  std::vector<VectorText> vectors_;  // per source
};

class ReduceBuilder {
 public:
  ReduceBuilder(const Op& op, const Dialect& dialect, bool with_text)
      : reduction_(op), dialect_(dialect), with_text_(with_text) {}

  BuiltKernels build() {
    const ReducePass pass = first_pass();
    const ReduceShape shape = choose_reduce_shape(pass, dialect_, true);
    BuiltKernels built;
    if (shape.splits == 1) {
      add(built, pass, shape);
      return built;
    }
    const int64_t outputs = pass.kept.points();
    built.workspace_bytes = divide_up(outputs * shape.splits * dtype_size(reduction_.accumulator), 256) * 256;
    ReducePass partial = pass;
    if (ReduceKernel(reduction_, pass, shape).column_groups() <= dialect_.counters) {
      partial.is_shared = true;
      add(built, partial, shape);
      return built;
    }
    partial.to_workspace = true;
    add(built, partial, shape);
    const ReducePass last = second_pass(pass, shape.splits);
    add(built, last, choose_reduce_shape(last, dialect_, false));
    return built;
  }

 private:
  ReducePass first_pass() const {
    const Op& op = reduction_.op;
    const auto axes = op.integers("axes");
    const compute_plugin_tensor& output = op.output(0);
    std::vector<int64_t> shape(static_cast<size_t>(output.rank), 1);
    std::vector<std::vector<int64_t>> strides;
    ReducePass pass;
    pass.has_blocks = true;
    for (int32_t i = 0; i < op.input_count(); ++i) {
      strides.push_back(strides_of(op.input(i)));
      pass.sources.push_back(op.input(i).dtype);
      pass.alignments.push_back(op.input(i).alignment);
      if (i == 0) shape.assign(op.input(0).shape, op.input(0).shape + op.input(0).rank);
    }
    for (const int32_t axis : index_axes(reduction_.before)) strides.push_back(index_strides(output.rank, axis));
    std::vector<int64_t> kept_shape = shape, combined_shape(shape.size(), 1);
    for (const int64_t axis : axes)
      std::swap(kept_shape[static_cast<size_t>(axis)], combined_shape[static_cast<size_t>(axis)]);
    if (strides.empty()) strides.push_back(std::vector<int64_t>(shape.size(), 0));
    pass.combined = collapse_operands(combined_shape, strides, 0);
    strides.push_back(strides_of(output));
    pass.kept = collapse_operands(kept_shape, strides, 0);
    return pass;
  }

  // Partial results lie as a table of splits × outputs.
  ReducePass second_pass(const ReducePass& first, int64_t splits) const {
    ReducePass pass;
    pass.sources = {reduction_.accumulator};
    pass.alignments = {16};
    pass.from_workspace = true;
    pass.has_blocks = true;
    const int64_t outputs = first.kept.points();
    pass.combined.rank = 1;
    pass.combined.extents[0] = splits;
    pass.combined.strides.resize(1);
    pass.combined.strides[0][0] = outputs;
    pass.combined.offsets = {0};
    pass.kept = first.kept;
    std::array<int64_t, kMaxRank> table{};
    int64_t stride = 1;
    for (int axis = first.kept.rank - 1; axis >= 0; --axis) {
      table[static_cast<size_t>(axis)] = stride;
      stride *= first.kept.extents[axis];
    }
    pass.kept.strides = {table, first.kept.strides.back()};
    pass.kept.offsets = {0, first.kept.offsets.back()};
    return pass;
  }

  void add(BuiltKernels& built, const ReducePass& pass, const ReduceShape& shape) const {
    Dialect own = dialect_;
    if (shape.is_block) own.group_size = 1;
    KernelBuilder builder(own,
                          pass.from_workspace ? "reduce_end"
                          : pass.is_shared    ? "reduce_shared"
                          : pass.to_workspace ? "reduce_begin"
                                              : "reduce",
                          with_text_);
    std::vector<int32_t> sizes;
    for (const compute_dtype dtype : pass.sources) sizes.push_back(dtype_size(dtype));
    builder.is_wide = needs_wide(pass, sizes, dtype_size(reduction_.output_dtype), shape.splits);
    ReduceKernel kernel(reduction_, pass, shape);
    sign(builder, kernel);
    take_pointers(builder, kernel);
    take_scalars(builder, kernel);
    take_words(builder, kernel);
    if (with_text_) builder.body = ReduceText(reduction_, kernel, builder).text();
    built.add(builder, kernel.column_groups() * shape.splits);
  }

  void sign(KernelBuilder& builder, const ReduceKernel& kernel) const {
    const ReducePass& pass = kernel.pass;
    builder.sign(static_cast<int64_t>(reduction_.kind));
    builder.sign(reduction_.accumulator);
    builder.sign(kernel.shape.along_first);
    builder.sign(kernel.shape.is_block);
    builder.sign(kernel.shape.lanes);
    builder.sign(kernel.kept.rank());
    builder.sign(kernel.combined.rank());
    if (!pass.from_workspace) builder.sign(reduction_.before);
    if (!pass.to_workspace) builder.sign(reduction_.after);
    for (int32_t i = 0; i < kernel.sources(); ++i) {
      builder.sign(kernel.moves(i));
      builder.sign(pass.sources[static_cast<size_t>(i)]);
    }
    for (size_t i = 0; i < kernel.axes.size(); ++i) {
      builder.sign(kernel.axes[i]);
      builder.sign(kernel.moves(kernel.sources() + static_cast<int32_t>(i)));
    }
    builder.sign(reduction_.output_dtype);
  }

  // The sources, then the outputs.
  void take_pointers(KernelBuilder& builder, const ReduceKernel& kernel) const {
    const ReducePass& pass = kernel.pass;
    for (int32_t i = 0; i < kernel.sources(); ++i) {
      const compute_dtype dtype = pass.sources[static_cast<size_t>(i)];
      if (pass.from_workspace) {
        builder.pointer(Pointer::kWorkspace, 0, 0);
      } else {
        builder.pointer(Pointer::kTensor, i, kernel.offset(i) * dtype_size(dtype));
      }
      builder.declare(i, type_text(dtype).storage, true);
    }
    const compute_dtype dtype = reduction_.output_dtype;
    if (pass.to_workspace) {
      builder.pointer(Pointer::kWorkspace, 0, 0);
    } else {
      builder.pointer(Pointer::kTensor, reduction_.op.input_count(), pass.kept.offsets.back() * dtype_size(dtype));
    }
    builder.declare(kernel.sources(), pass.to_workspace ? reduction_.stored() : type_text(dtype).storage, false);
    if (!pass.is_shared) return;
    builder.declare(builder.pointer(Pointer::kWorkspace, 0, 0), reduction_.stored(), false);
    builder.declare(builder.pointer(Pointer::kCounters, 0, 0), "i32", false);
  }

  void take_scalars(KernelBuilder& builder, ReduceKernel& kernel) const {
    const Op& op = reduction_.op;
    const int32_t before = reduction_.before.scalar_count;
    if (!kernel.pass.from_workspace) {
      for (int32_t i = 0; i < before; ++i) kernel.before_scalars.push_back(builder.scalar(i, op.scalar_dtype(i)));
    }
    if (!kernel.pass.to_workspace) {
      for (int32_t i = before; i < op.scalar_count(); ++i)
        kernel.after_scalars.push_back(builder.scalar(i, op.scalar_dtype(i)));
    }
  }

  static void take_words(KernelBuilder& builder, ReduceKernel& kernel) {
    const ReduceShape& shape = kernel.shape;
    const LoopNest& kept = kernel.pass.kept;
    for (size_t i = 0; i < kernel.axes.size(); ++i) {
      kernel.index_words.push_back(builder.word(kernel.offset(kernel.sources() + static_cast<int32_t>(i))));
    }
    kernel.words = {builder.word(kernel.columns()),
                    builder.word(kernel.column_groups()),
                    builder.word(kernel.vectors()),
                    builder.word(divide_up(kernel.vectors(), shape.splits)),
                    builder.word(shape.along),
                    builder.word(shape.across),
                    builder.word(kernel.combined.points()),
                    builder.word(kept.points()),
                    builder.word(kept.rank == 0 ? 0 : kept.strides.back()[kept.rank - 1]),
                    builder.word(shape.splits),
                    shape.is_block ? builder.word(kernel.kept.inner_extent()) : 0};
    kernel.kept.add_words(builder, kernel.held());
    kernel.combined.add_words(builder, shape.along_first ? shape.lanes : 1);
  }

  const Reduction reduction_;
  const Dialect& dialect_;
  const bool with_text_;
};

}  // namespace

BuiltKernels build_reduce(const Op& op, const Dialect& dialect, bool with_text) {
  return ReduceBuilder(op, dialect, with_text).build();
}

}  // namespace compute::common
