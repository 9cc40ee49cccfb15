// SPDX-License-Identifier: Apache-2.0
// reduce. The index space is two nests: loops that are kept and loops that are combined over. A group of work items is
// a table of `across` × `along`: `across` outputs, each combined over by `along` items; neighbouring items lie where
// memory runs. Where the outputs do not fill the device, the combined loops are split between groups, whose partial
// results a second kernel combines.
//
// Float sums: a work item adds the few numbers of a step as a tree and these with compensation, items of a group and
// groups are trees: the error stays below that of pairwise summation, and the form depends on layout and extents alone.
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "plugins/common/source/kernel_builder.hpp"
#include "plugins/common/source/ops.hpp"
#include "plugins/common/source/reduce_shape.hpp"

namespace compute::common {
namespace {

enum class Kind { sum, prod, min, max, all, any };

Kind kind_of(std::string_view name) {
  constexpr std::string_view names[] = {"sum", "prod", "min", "max", "all", "any"};
  return static_cast<Kind>(std::find(std::begin(names), std::end(names), name) - std::begin(names));
}

std::string identity_text(Kind kind, compute_dtype dtype) {
  const auto bits = [&](uint64_t word, uint64_t second = 0) {
    uint8_t bytes[16] = {};
    for (int i = 0; i < 16; ++i) bytes[i] = static_cast<uint8_t>((i < 8 ? word : second) >> (8 * (i % 8)));
    return constant_text(dtype, bytes);
  };
  const int size = dtype_size(dtype) * 8;
  const uint64_t all = size == 64 ? ~uint64_t{0} : (uint64_t{1} << size) - 1, top = uint64_t{1} << (size - 1);
  const bool is_double = dtype == COMPUTE_DTYPE_FLOAT64;
  switch (kind) {
    case Kind::sum:  // -0 changes nothing, +0 would change -0
      if (part_of(dtype) == COMPUTE_DTYPE_FLOAT64) return bits(uint64_t{1} << 63, uint64_t{1} << 63);
      if (is_float(part_of(dtype))) return bits(uint64_t{1} << 31 | (is_complex(dtype) ? uint64_t{1} << 63 : 0));
      return bits(0);
    case Kind::any:
      return bits(0);
    case Kind::prod:
      if (is_float(part_of(dtype))) {
        const bool wide = part_of(dtype) == COMPUTE_DTYPE_FLOAT64;
        return bits(wide ? 0x3ff0000000000000 : 0x3f800000);
      }
      return bits(1);
    case Kind::all:
      return bits(1);
    case Kind::min:
      if (is_float(dtype)) return bits(is_double ? 0x7ff0000000000000 : 0x7f800000);
      return bits(is_signed(dtype) ? all & ~top : all);
    default:
      if (is_float(dtype)) return bits(is_double ? 0xfff0000000000000 : 0xff800000);
      return bits(is_signed(dtype) ? top : 0);
  }
}

// What is combined, and how.
struct Reduction {
  explicit Reduction(const Op& op)
      : op(op),
        kind(kind_of(op.text("kind"))),
        before(op.expression(0)),
        after(op.expression(1)),
        accumulator(before.nodes[before.outputs[0]].dtype),
        output_dtype(op.output(0).dtype) {}

  bool is_compensated() const { return kind == Kind::sum && is_float(part_of(accumulator)); }
  // bool accumulators are u8 in local memory
  const char* stored() const { return type_text(accumulator).storage; }

  std::string combine(const std::string& x, const std::string& y, Functions& functions) const {
    switch (kind) {
      case Kind::sum:
        return call_text(COMPUTE_INTRINSIC_ADD, accumulator, {x, y}, functions);
      case Kind::prod:
        return call_text(COMPUTE_INTRINSIC_MUL, accumulator, {x, y}, functions);
      case Kind::min:
      case Kind::all:
        if (accumulator == COMPUTE_DTYPE_BOOL) return cat("(bool)(", x, " && ", y, ")");
        return call_text(COMPUTE_INTRINSIC_MIN, accumulator, {x, y}, functions);
      default:
        if (accumulator == COMPUTE_DTYPE_BOOL) return cat("(bool)(", x, " || ", y, ")");
        return call_text(COMPUTE_INTRINSIC_MAX, accumulator, {x, y}, functions);
    }
  }

  const Op& op;
  const Kind kind;
  const compute_plugin_expression& before;
  const compute_plugin_expression& after;
  const compute_dtype accumulator, output_dtype;
};

// A kernel and the words that it reads.
struct ReduceKernel {
  struct Words {
    int32_t columns, groups, vectors, chunk, along, across, terms, outputs, inner_output;
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
  int64_t columns() const { return divide_up(kept.points(), held()); }
  int64_t column_groups() const { return divide_up(columns(), shape.across); }

  const ReducePass& pass;
  const ReduceShape& shape;
  Space kept, combined;
  std::vector<int32_t> axes;
  std::vector<std::string> before_scalars, after_scalars;
  std::vector<int32_t> index_words;
  Words words{};
};

// A kernel's statements, after the declarations of its pointers.
class ReduceText {
 public:
  ReduceText(const Reduction& reduction, const ReduceKernel& kernel, KernelBuilder& builder)
      : reduction_(reduction),
        kernel_(kernel),
        pass_(kernel.pass),
        words_(kernel.words),
        builder_(builder),
        out_(builder.body),
        sources_(kernel.sources()),
        group_(builder.dialect().group_size),
        lanes_(kernel.shape.lanes),
        held_(kernel.held()),
        is_host_(builder.dialect().is_host),
        along_first_(kernel.shape.along_first),
        accumulator_(reduction.accumulator),
        type_(type_text(accumulator_).value),
        unroll_(is_host_ ? "" : "#pragma unroll\n"),
        stride_(is_host_ ? "1" : "along") {
    if (reduction.is_compensated()) {
      two_sum_ = builder.functions().need("two_sum", accumulator_);
      total_ = cat("total_", type_text(accumulator_).name);
    }
    for (int32_t i = 0; i < sources_; ++i) {
      const compute_dtype dtype = pass_.sources[static_cast<size_t>(i)];
      const char* storage = type_text(dtype).storage;
      vectors_.push_back(kernel.moves(i) ? vector_type(builder, storage, dtype_size(dtype), lanes_)
                                         : VectorText{storage, "", 0});
    }
  }

  void print() {
    print_place();
    print_sums();
    out_ += "  if (column < columns) {\n";
    print_bases();
    out_ += item_range_text(is_host_);
    print_steps();
    print_rest();
    if (along_first_ && lanes_ > 1 && kernel_.combined.rank() == 1) print_tail();
    out_ += "  }\n";
    print_group();
    print_result();
  }

 private:
  static std::string read(int32_t word) { return KernelBuilder::index_word(word); }
  bool is_compensated() const { return !two_sum_.empty(); }
  std::string combine(const std::string& x, const std::string& y) {
    return reduction_.combine(x, y, builder_.functions());
  }

  // The place of a work item in its group's table, and of the group.
  void print_place() {
    out_ += cat("  const int id = COMPUTE_LOCAL_ID(0);\n  const int along = (int)", read(words_.along),
                ", across = (int)", read(words_.across), ";\n");
    if (along_first_) {
      out_ += "  const int item = id & (along - 1), line = id / along;\n";
    } else {
      out_ += "  const int line = id & (across - 1), item = id / across;\n";
    }
    out_ += cat("  const ix columns = ", read(words_.columns), ", column_groups = ", read(words_.groups),
                ", chunk = ", read(words_.chunk), ";\n");
    out_ += "  const ix where = (ix)COMPUTE_GROUP_ID(0), split = where / column_groups;\n";
    out_ += "  const ix column = (where - split * column_groups) * across + line;\n";
    out_ += cat("  const ix end = (split + 1) * chunk < ", read(words_.vectors),
                " ? (split + 1) * chunk : ", read(words_.vectors), ";\n");
  }

  void print_sums() {
    const std::string identity = identity_text(reduction_.kind, accumulator_);
    out_ += cat("  COMPUTE_LOCAL ", reduction_.stored(), " shared[", group_ * held_, "];\n");
    out_ += cat("  ", type_, " sum[", held_, "];\n");
    if (is_compensated()) out_ += cat("  ", type_, " lost[", held_, "];\n");
    out_ += cat("  for (int v = 0; v < ", held_, "; ++v) {\n    sum[v] = ", identity, ";\n",
                is_compensated() ? cat("    lost[v] = ", identity, ";\n") : "", "  }\n");
  }

  // Where an output's operands begin.
  void print_bases() {
    kernel_.kept.decompose(builder_, "    ", "k", "column");
    for (int32_t i = 0; i < sources_ + static_cast<int32_t>(kernel_.axes.size()); ++i) {
      out_ += cat("    const ix b", i, " = ", kernel_.kept.offset(i, "k"), ";\n");
    }
  }

  void declare(const std::string& indent, const std::string& count) {
    for (int32_t i = 0; i < sources_; ++i) {
      out_ += cat(indent, vectors_[static_cast<size_t>(i)].type, " r", i, count, ";\n");
    }
  }

  void load(const std::string& indent, const std::string& step) {
    for (int32_t i = 0; i < sources_; ++i) {
      const VectorText& vector = vectors_[static_cast<size_t>(i)];
      const std::string at = cat("b", i, " + ", kernel_.combined.offset(i, "c"));
      if (!kernel_.moves(i)) out_ += cat(indent, "r", i, step, " = x", i, "[", at, "];\n");
      for (int w = 0; w < vector.words; ++w) {
        out_ += cat(indent, "r", i, step, ".v[", w, "] = ((COMPUTE_GLOBAL const ", vector.word, "*)(x", i, " + ", at,
                    "))[", w, "];\n");
      }
    }
  }

  // The position along `axis`, of lane v.
  std::string index(int32_t axis) const {
    const auto number = std::find(kernel_.axes.begin(), kernel_.axes.end(), axis) - kernel_.axes.begin();
    const int32_t operand = sources_ + static_cast<int32_t>(number);
    return cat("(", read(kernel_.index_words[static_cast<size_t>(number)]), " + b", operand, " + ",
               kernel_.combined.offset(operand, "c"), kernel_.moves(operand) ? " + v" : "", ")");
  }

  // `before` of what was loaded: of lane v, or of single elements; its result is the name returned.
  std::string evaluate(const std::string& indent, const std::string& step, bool by_lane) {
    const auto element = [&](int32_t i) {
      return value_of_element(pass_.sources[static_cast<size_t>(i)],
                              cat("r", i, step, kernel_.moves(i) && by_lane ? ".e[v]" : ""));
    };
    if (pass_.from_workspace) return element(0);
    Leaves leaves;
    leaves.input = element;
    leaves.index = [&](int32_t axis) { return index(axis); };
    leaves.scalar = [&](int32_t i) { return kernel_.before_scalars[static_cast<size_t>(i)]; };
    return print_expression(reduction_.before, leaves, indent, "w", builder_.functions(), out_)[0];
  }

  void accumulate(const std::string& indent, const std::string& place, const std::string& value) {
    if (is_compensated()) {
      out_ += cat(indent, two_sum_, "(&sum", place, ", &lost", place, ", ", value, ");\n");
    } else {
      out_ += cat(indent, "sum", place, " = ", combine("sum" + place, value), ";\n");
    }
  }

  // A tree over values[0 .. count), in place; `count` is a power of two.
  void print_tree(const std::string& indent, const std::string& place, int count) {
    for (int step = count / 2; step > 0; step /= 2) {
      for (int i = 0; i < step; ++i) {
        const std::string x = cat("values", place, "[", i, "]");
        out_ += cat(indent, x, " = ", combine(x, cat("values", place, "[", i + step, "]")), ";\n");
      }
    }
  }

  // Whole steps: several vectors at a time, all loaded before the first is used.
  void print_steps() {
    const int steps = is_host_ && lanes_ == 1 ? kReduceHostSteps : kReduceSteps;
    const int gathered = along_first_ ? steps * lanes_ : steps;
    out_ += cat("    for (; r + ", steps - 1, " * ", stride_, " < last; r += ", steps, " * ", stride_, ") {\n");
    declare("      ", cat("[", steps, "]"));
    out_ += cat("      ", type_, " values[", held_, "][", gathered, "];\n");
    out_ += cat("#pragma unroll\n      for (int s = 0; s < ", steps, "; ++s) {\n        const ix i = r + s * ", stride_,
                ";\n");
    kernel_.combined.decompose(builder_, "        ", "c", "i");
    load("        ", "[s]");
    out_ += "      }\n";
    out_ += cat("#pragma unroll\n      for (int s = 0; s < ", steps, "; ++s) {\n");
    if (!kernel_.axes.empty()) {
      out_ += cat("        const ix i = r + s * ", stride_, ";\n");
      kernel_.combined.decompose(builder_, "        ", "c", "i");
    }
    out_ += cat(unroll_, "        for (int v = 0; v < ", lanes_, "; ++v) {\n");
    const std::string value = evaluate("          ", "[s]", true);
    out_ +=
        cat("          values[", along_first_ ? "0" : "v", "][",
            along_first_ ? cat("s * ", lanes_, " + v") : std::string("s"), "] = ", value, ";\n        }\n      }\n");
    out_ += cat(unroll_, "      for (int v = 0; v < ", held_, "; ++v) {\n");
    print_tree("        ", "[v]", gathered);
    accumulate("        ", "[v]", "values[v][0]");
    out_ += "      }\n    }\n";
  }

  // The vectors that are left, one at a time.
  void print_rest() {
    out_ += cat("    for (; r < last; r += ", stride_, ") {\n");
    declare("      ", "");
    kernel_.combined.decompose(builder_, "      ", "c", "r");
    load("      ", "");
    if (lanes_ > 1) out_ += cat(unroll_, "      for (int v = 0; v < ", lanes_, "; ++v) {\n");
    accumulate("        ", along_first_ || lanes_ == 1 ? "[0]" : "[v]", evaluate("        ", "", true));
    if (lanes_ > 1) out_ += "      }\n";
    out_ += "    }\n";
  }

  // What is left after the last whole vector, element by element.
  void print_tail() {
    out_ += cat("    const ix whole = ", read(words_.vectors), " * ", lanes_, ";\n");
    out_ += "    if (split == 0) {\n";
    out_ += cat("      for (ix t = whole + item; t < ", read(words_.terms), "; t += along) {\n");
    for (int32_t i = 0; i < sources_; ++i) {
      out_ += cat("        const ", type_text(pass_.sources[static_cast<size_t>(i)]).storage, " r", i, " = x", i, "[b",
                  i, kernel_.moves(i) ? " + t" : "", "];\n");
    }
    // Coordinates count vectors: the expression's INDEX nodes read c0 and v.
    if (!kernel_.axes.empty()) out_ += cat("        const ix c0 = t / ", lanes_, ", v = t - c0 * ", lanes_, ";\n");
    accumulate("        ", "[0]", evaluate("        ", "", false));
    out_ += "      }\n    }\n";
  }

  std::string shared_value(const std::string& place) const {
    return value_of_element(accumulator_, cat("shared[v * ", group_, " + ", place, "]"));
  }

  // The items of an output.
  void print_group() {
    const std::string partner = along_first_ ? "reach" : "reach * across";
    out_ += cat("  for (int v = 0; v < ", held_, "; ++v) shared[v * ", group_, " + id] = ",
                element_of_value(accumulator_, is_compensated() ? total_ + "(sum[v], lost[v])" : std::string("sum[v]")),
                ";\n");
    out_ += "  COMPUTE_BARRIER();\n";
    out_ += "  for (int reach = along / 2; reach > 0; reach /= 2) {\n    if (item < reach) {\n";
    out_ += cat("      for (int v = 0; v < ", held_, "; ++v) {\n");
    out_ += cat("        const ", type_, " p = ", shared_value("id"), ", q = ", shared_value("id + " + partner), ";\n");
    out_ += cat("        shared[v * ", group_, " + id] = ", element_of_value(accumulator_, combine("p", "q")), ";\n");
    out_ += "      }\n    }\n    COMPUTE_BARRIER();\n  }\n";
  }

  // An output's first item stores it.
  void print_result() {
    out_ += "  if (item == 0 && column < columns) {\n";
    if (!pass_.to_workspace) kernel_.kept.decompose(builder_, "    ", "k", "column");
    out_ += cat("    for (int v = 0; v < ", held_, "; ++v) {\n");
    out_ += cat("      const ", type_, " result = ", shared_value("id"), ";\n");
    if (pass_.to_workspace) {
      out_ += cat("      x", sources_, "[split * ", read(words_.outputs), " + column * ", held_,
                  " + v] = ", element_of_value(accumulator_, "result"), ";\n");
    } else {
      print_output();
    }
    out_ += "    }\n  }\n";
  }

  void print_output() {
    Leaves leaves;
    leaves.input = [](int32_t) { return std::string("result"); };
    leaves.index = [](int32_t) { return std::string("0"); };
    leaves.scalar = [&](int32_t i) { return kernel_.after_scalars[static_cast<size_t>(i)]; };
    const std::string value = print_expression(reduction_.after, leaves, "      ", "z", builder_.functions(), out_)[0];
    const auto operand = static_cast<int>(kernel_.kept.nest().strides.size()) - 1;
    std::string at = kernel_.kept.offset(operand, "k");
    if (held_ > 1) at += cat(" + v * ", read(words_.inner_output));
    out_ += cat("      x", sources_, "[", at, "] = ", element_of_value(reduction_.output_dtype, value), ";\n");
  }

  const Reduction& reduction_;
  const ReduceKernel& kernel_;
  const ReducePass& pass_;
  const ReduceKernel::Words& words_;
  KernelBuilder& builder_;
  std::string& out_;
  const int32_t sources_;
  const int group_, lanes_, held_;
  const bool is_host_, along_first_;
  const compute_dtype accumulator_;
  const std::string type_, unroll_, stride_;
  std::string two_sum_, total_;      // empty where sums are not compensated
  std::vector<VectorText> vectors_;  // per source
};

class ReduceBuilder {
 public:
  ReduceBuilder(const Op& op, const Dialect& dialect, bool with_text)
      : reduction_(op), dialect_(dialect), with_text_(with_text) {}

  BuiltRecipe build() {
    const ReducePass pass = first_pass();
    const ReduceShape shape = choose_reduce_shape(pass, dialect_, true);
    BuiltRecipe recipe;
    if (shape.splits == 1) {
      add(recipe, pass, shape);
      return recipe;
    }
    ReducePass partial = pass;
    partial.to_workspace = true;
    add(recipe, partial, shape);
    const int64_t outputs = pass.kept.points();
    recipe.workspace_bytes = divide_up(outputs * shape.splits * dtype_size(reduction_.accumulator), 256) * 256;
    const ReducePass last = second_pass(pass, shape.splits);
    add(recipe, last, choose_reduce_shape(last, dialect_, false));
    return recipe;
  }

 private:
  ReducePass first_pass() const {
    const Op& op = reduction_.op;
    const auto axes = op.integers("axes");
    const compute_plugin_tensor& output = op.output(0);
    std::vector<int64_t> shape(static_cast<size_t>(output.rank), 1);
    std::vector<std::vector<int64_t>> strides;
    ReducePass pass;
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

  void add(BuiltRecipe& recipe, const ReducePass& pass, const ReduceShape& shape) const {
    KernelBuilder builder(dialect_,
                          pass.from_workspace ? "reduce_end"
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
    if (with_text_) ReduceText(reduction_, kernel, builder).print();
    recipe.add(builder, kernel.column_groups() * shape.splits);
  }

  void sign(KernelBuilder& builder, const ReduceKernel& kernel) const {
    const ReducePass& pass = kernel.pass;
    builder.sign(static_cast<int64_t>(reduction_.kind));
    builder.sign(reduction_.accumulator);
    builder.sign(kernel.shape.along_first);
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

  // The sources, then what is written.
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
    const char* storage = pass.to_workspace ? reduction_.stored() : type_text(dtype).storage;
    builder.declare(kernel.sources(), storage, false);
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
                    builder.word(kept.rank == 0 ? 0 : kept.strides.back()[kept.rank - 1])};
    kernel.kept.add_words(builder, kernel.held());
    kernel.combined.add_words(builder, shape.along_first ? shape.lanes : 1);
  }

  const Reduction reduction_;
  const Dialect& dialect_;
  const bool with_text_;
};

}  // namespace

BuiltRecipe build_reduce(const Op& op, const Dialect& dialect, bool with_text) {
  return ReduceBuilder(op, dialect, with_text).build();
}

}  // namespace compute::common
