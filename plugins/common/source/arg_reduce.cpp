// SPDX-License-Identifier: Apache-2.0
// arg_reduce: one pass over the input, in the shapes of reduce. A work item holds the best element that it has seen and
// its position; the items of an output, and the groups that share one, then choose among theirs. Everyone begins with
// an element of the input, so that there is no value worse than all. The first of equal elements wins, and a NaN is
// better than all numbers.
#include <algorithm>

#include "plugins/common/source/ops.hpp"
#include "plugins/common/source/reduce_shape.hpp"

namespace compute::common {
namespace {

std::string read(int32_t word) { return KernelBuilder::index_word(word); }

// The place of a work item in its group's table.
void print_place(std::string& out, bool along_first, int32_t along_word, int32_t across_word) {
  out += cat("  const int id = COMPUTE_LOCAL_ID(0);\n  const int along = (int)", read(along_word), ", across = (int)",
             read(across_word), ";\n");
  out += along_first ? "  const int item = id & (along - 1), line = id / along;\n"
                     : "  const int line = id & (across - 1), item = id / across;\n";
}

// What is sought.
struct ArgReduction {
  explicit ArgReduction(const Op& op)
      : finds_max(op.text("kind") == "max"),
        dtype(op.input(0).dtype),
        value_dtype(computed_in(dtype)),
        output_dtype(op.output(0).dtype) {}

  std::string value_of(const std::string& element, Functions& functions) const {
    return convert_text(value_of_element(dtype, element), dtype, value_dtype, functions);
  }

  void print_functions(KernelBuilder& builder) const {
    const char* type = type_text(value_dtype).value;
    const char* worse = finds_max ? "<=" : ">=";
    // A NaN is no worse than anything.
    const std::string better = is_float(value_dtype) ? cat("!(x ", worse, " y) && y == y") : cat("!(x ", worse, " y)");
    builder.globals += cat("COMPUTE_FUNCTION bool is_better(", type, " x, ", type, " y) { return ", better, "; }\n");
    builder.globals += cat("COMPUTE_FUNCTION bool goes_before(", type, " x, ix px, ", type,
                           " y, ix py) {\n  return is_better(x, y) || (!is_better(y, x) && px < py);\n}\n");
  }

  // The items of an output choose; `store` prints what the first of them does with place `name`.
  template <class Store>
  void print_choice(KernelBuilder& builder, bool along_first, int held, const Store& store) const {
    std::string& out = builder.body;
    const int group = builder.dialect().group_size;
    const std::string element = cat("v * ", group, " + id"), partner = along_first ? "reach" : "reach * across";
    out += cat("  COMPUTE_LOCAL ", type_text(value_dtype).storage, " values[", group * held,
               "];\n  COMPUTE_LOCAL ix places[", group * held, "];\n");
    out += cat("  for (int v = 0; v < ", held, "; ++v) {\n    values[", element,
               "] = ", element_of_value(value_dtype, "best[v]"), ";\n    places[", element,
               "] = place[v];\n  }\n  COMPUTE_BARRIER();\n");
    out += "  for (int reach = along / 2; reach > 0; reach /= 2) {\n    if (item < reach) {\n";
    out += cat("      for (int v = 0; v < ", held, "; ++v) {\n        const int at = ", element, ", from = at + ",
               partner, ";\n");
    out += cat(
        "        if (goes_before(", value_of_element(value_dtype, "values[from]"), ", places[from], ",
        value_of_element(value_dtype, "values[at]"),
        ", places[at])) {\n          values[at] = values[from];\n          places[at] = places[from];\n        }\n");
    out += "      }\n    }\n    COMPUTE_BARRIER();\n  }\n";
    out += cat("  if (item == 0 && column < columns) {\n    for (int v = 0; v < ", held,
               "; ++v) {\n      const ix found = places[", element, "];\n");
    store();
    out += "    }\n  }\n";
  }

  const bool finds_max;
  const compute_dtype dtype, value_dtype, output_dtype;
};

struct ArgReduceWords {
  int32_t columns, groups, vectors, chunk, along, across, terms, outputs, stride, inner_output;
};

// The statements of the kernel that goes over the input.
class ArgReduceText {
 public:
  ArgReduceText(const ArgReduction& reduction, const ReduceShape& shape, const Space& space,
                const ArgReduceWords& words, KernelBuilder& builder)
      : reduction_(reduction),
        shape_(shape),
        space_(space),
        words_(words),
        builder_(builder),
        out_(builder.body),
        lanes_(shape.lanes),
        is_host_(builder.dialect().is_host),
        type_(type_text(reduction.value_dtype).value),
        unroll_(is_host_ ? "" : "#pragma unroll\n"),
        along_(is_host_ ? "1" : "along") {
    const char* storage = type_text(reduction.dtype).storage;
    vector_ =
        lanes_ > 1 ? vector_type(builder, storage, dtype_size(reduction.dtype), lanes_) : VectorText{storage, "", 0};
  }

  void print() {
    reduction_.print_functions(builder_);
    print_place(out_, shape_.along_first, words_.along, words_.across);
    print_part();
    print_first();
    out_ += item_range_text(is_host_);
    print_steps();
    if (shape_.along_first && lanes_ > 1) print_tail();
    out_ += "  }\n";
    const int held = shape_.along_first ? 1 : lanes_;
    reduction_.print_choice(builder_, shape_.along_first, held, [&] { print_store(held); });
  }

 private:
  std::string value_of(const std::string& element) { return reduction_.value_of(element, builder_.functions()); }

  // The outputs of a work item, and the part of the input that its group goes over.
  void print_part() {
    out_ += cat("  const ix columns = ", read(words_.columns), ", column_groups = ", read(words_.groups),
                ", chunk = ", read(words_.chunk), ", stride = ", read(words_.stride), ";\n");
    out_ += "  const ix where = (ix)COMPUTE_GROUP_ID(0), split = where / column_groups;\n";
    out_ += "  const ix column = (where - split * column_groups) * across + line;\n";
    out_ += cat("  const ix end = (split + 1) * chunk < ", read(words_.vectors),
                " ? (split + 1) * chunk : ", read(words_.vectors), ";\n");
  }

  void print_first() {
    out_ += cat("  ", type_, " best[", lanes_, "];\n  ix place[", lanes_, "];\n");
    out_ += cat("  for (int v = 0; v < ", lanes_, "; ++v) {\n    best[v] = 0;\n    place[v] = 0;\n  }\n");
    out_ += "  if (column < columns) {\n";
    space_.decompose(builder_, "    ", "k", "column");
    out_ += cat("    const ix base = ", space_.offset(0, "k"), ";\n");
    out_ += cat("    for (int v = 0; v < ", lanes_,
                "; ++v) best[v] = ", value_of(lanes_ > 1 ? "x0[base + v]" : "x0[base]"), ";\n");
  }

  void load(const std::string& indent, const std::string& into, const std::string& i) {
    const std::string at =
        cat("base + ", i, shape_.along_first && lanes_ > 1 ? cat(" * ", lanes_) : std::string(" * stride"));
    if (lanes_ == 1) out_ += cat(indent, into, " = x0[", at, "];\n");
    for (int w = 0; w < vector_.words; ++w)
      out_ +=
          cat(indent, into, ".v[", w, "] = ((COMPUTE_GLOBAL const ", vector_.word, "*)(x0 + ", at, "))[", w, "];\n");
  }

  void take(const std::string& indent, const std::string& from, const std::string& i) {
    out_ += cat(unroll_, indent, "for (int v = 0; v < ", lanes_, "; ++v) {\n");
    out_ += cat(indent, "  const ", type_, " x = ", value_of(lanes_ > 1 ? from + ".e[v]" : from), ";\n");
    out_ += cat(indent, "  const bool better = is_better(x, best[v]);\n");
    out_ += cat(indent, "  best[v] = better ? x : best[v];\n", indent, "  place[v] = better ? ", i, " : place[v];\n",
                indent, "}\n");
  }

  // Several vectors at a time, all loaded before the first is used; then one at a time.
  void print_steps() {
    const int steps = is_host_ && lanes_ == 1 ? kReduceHostSteps : kReduceSteps;
    out_ += cat("    for (; r + ", steps - 1, " * ", along_, " < last; r += ", steps, " * ", along_, ") {\n      ",
                vector_.type, " row[", steps, "];\n");
    out_ += cat("#pragma unroll\n      for (int s = 0; s < ", steps, "; ++s) {\n        const ix i = r + s * ", along_,
                ";\n");
    load("        ", "row[s]", "i");
    out_ += cat("      }\n#pragma unroll\n      for (int s = 0; s < ", steps, "; ++s) {\n        const ix i = r + s * ",
                along_, ";\n");
    take("        ", "row[s]", "i");
    out_ += cat("      }\n    }\n    for (; r < last; r += ", along_, ") {\n      ", vector_.type, " row;\n");
    load("      ", "row", "r");
    take("      ", "row", "r");
    out_ += "    }\n";
  }

  void merge(const std::string& indent, const std::string& value, const std::string& position) {
    out_ += cat(indent, "if (goes_before(", value, ", ", position, ", best[0], place[0])) {\n", indent,
                "  best[0] = ", value, ";\n", indent, "  place[0] = ", position, ";\n", indent, "}\n");
  }

  // From vectors to elements; then what is left after the last whole vector, and the lanes among themselves.
  void print_tail() {
    out_ += cat("    for (int v = 0; v < ", lanes_, "; ++v) place[v] = place[v] * ", lanes_, " + v;\n");
    out_ += cat("    if (split == 0) {\n      for (ix t = ", read(words_.vectors), " * ", lanes_, " + item; t < ",
                read(words_.terms), "; t += along) {\n");
    out_ += cat("        const ", type_, " x = ", value_of("x0[base + t]"), ";\n");
    merge("        ", "x", "t");
    out_ += cat("      }\n    }\n", unroll_, "    for (int v = 1; v < ", lanes_, "; ++v) {\n");
    merge("      ", "best[v]", "place[v]");
    out_ += "    }\n";
  }

  void print_store(int held) {
    if (shape_.splits > 1) {
      out_ += cat("      x1[split * ", read(words_.outputs), " + column * ", held, " + v] = found;\n");
      return;
    }
    space_.decompose(builder_, "      ", "k", "column");
    out_ +=
        cat("      x1[", space_.offset(1, "k"), held > 1 ? cat(" + v * ", read(words_.inner_output)) : std::string(),
            "] = (", type_text(reduction_.output_dtype).storage, ")found;\n");
  }

  const ArgReduction& reduction_;
  const ReduceShape& shape_;
  const Space& space_;
  const ArgReduceWords& words_;
  KernelBuilder& builder_;
  std::string& out_;
  const int lanes_;
  const bool is_host_;
  const std::string type_, unroll_, along_;
  VectorText vector_;
};

class ArgReduceBuilder {
 public:
  ArgReduceBuilder(const Op& op, const Dialect& dialect, bool with_text)
      : reduction_(op), dialect_(dialect), with_text_(with_text) {
    const compute_plugin_tensor& input = op.input(0);
    const auto axis = static_cast<size_t>(op.integer("axis", 0));
    stride_ = input.strides[axis];
    // Positions count along the axis as it is: its loop is not turned around.
    pass_.combined.rank = 1;
    pass_.combined.extents[0] = input.shape[axis];
    pass_.combined.strides.resize(1);
    pass_.combined.strides[0][0] = stride_;
    pass_.combined.offsets = {0};
    std::vector<int64_t> kept_shape(input.shape, input.shape + input.rank);
    kept_shape[axis] = 1;
    pass_.kept = collapse_operands(kept_shape, std::vector{strides_of(input), strides_of(op.output(0))}, 0);
    pass_.sources = {reduction_.dtype};
    pass_.alignments = {input.alignment};
  }

  BuiltRecipe build() {
    const ReduceShape shape = choose_reduce_shape(pass_, dialect_, true);
    const int32_t size = dtype_size(reduction_.dtype);
    is_wide_ = needs_wide(pass_, std::span(&size, 1), dtype_size(reduction_.output_dtype), shape.splits);
    BuiltRecipe recipe;
    add(recipe, shape);
    if (shape.splits > 1) {
      recipe.workspace_bytes =
          divide_up(pass_.kept.points() * shape.splits * static_cast<int64_t>(sizeof(int64_t)), 256) * 256;
      add_end(recipe, shape.splits);
    }
    return recipe;
  }

 private:
  KernelBuilder begin(const char* what, bool along_first, int lanes) const {
    KernelBuilder builder(dialect_, what, with_text_);
    builder.is_wide = is_wide_;
    builder.sign(reduction_.finds_max);
    builder.sign(reduction_.dtype);
    builder.sign(reduction_.output_dtype);
    builder.sign(along_first);
    builder.sign(lanes);
    builder.sign(pass_.kept.rank);
    return builder;
  }

  void take_input(KernelBuilder& builder) const {
    builder.pointer(Pointer::kTensor, 0, pass_.kept.offsets[0] * dtype_size(reduction_.dtype));
    builder.declare(0, type_text(reduction_.dtype).storage, true);
  }
  void take_output(KernelBuilder& builder, int32_t number) const {
    builder.pointer(Pointer::kTensor, 1, pass_.kept.offsets[1] * dtype_size(reduction_.output_dtype));
    builder.declare(number, type_text(reduction_.output_dtype).storage, false);
  }
  static void take_workspace(KernelBuilder& builder, int32_t number, bool is_const) {
    builder.pointer(Pointer::kWorkspace, 0, 0);
    builder.declare(number, "ix", is_const);
  }

  void add(BuiltRecipe& recipe, const ReduceShape& shape) const {
    const bool to_workspace = shape.splits > 1;
    const LoopNest& kept = pass_.kept;
    KernelBuilder builder = begin(to_workspace ? "arg_reduce_begin" : "arg_reduce", shape.along_first, shape.lanes);
    take_input(builder);
    if (to_workspace) {
      take_workspace(builder, 1, false);
    } else {
      take_output(builder, 1);
    }
    const int64_t outputs = kept.points(), terms = pass_.combined.extents[0];
    const int64_t vectors = shape.along_first ? terms / shape.lanes : terms;
    const int64_t columns = shape.along_first ? outputs : divide_up(outputs, shape.lanes);
    const int64_t column_groups = divide_up(columns, shape.across);
    const ArgReduceWords words = {
        builder.word(columns),     builder.word(column_groups),
        builder.word(vectors),     builder.word(divide_up(vectors, shape.splits)),
        builder.word(shape.along), builder.word(shape.across),
        builder.word(terms),       builder.word(outputs),
        builder.word(stride_),     builder.word(kept.rank == 0 ? 0 : kept.strides[1][kept.rank - 1])};
    Space space(kept);
    space.add_words(builder, shape.along_first ? 1 : shape.lanes);
    if (with_text_) ArgReduceText(reduction_, shape, space, words, builder).print();
    recipe.add(builder, column_groups * shape.splits);
  }

  // Among the positions that the groups of an output found: a table of splits × outputs.
  void add_end(BuiltRecipe& recipe, int64_t splits) const {
    const int64_t outputs = pass_.kept.points(), group = dialect_.group_size;
    int64_t along = 1;
    while (along < group && along < splits) along *= 2;
    KernelBuilder builder = begin("arg_reduce_end", false, 1);
    take_input(builder);
    take_workspace(builder, 1, true);
    take_output(builder, 2);
    const int32_t columns_word = builder.word(outputs), splits_word = builder.word(splits),
                  along_word = builder.word(along), across_word = builder.word(group / along),
                  stride_word = builder.word(stride_);
    Space space(pass_.kept);
    space.add_words(builder, 1);
    if (with_text_) {
      std::string& out = builder.body;
      Functions& functions = builder.functions();
      const std::string type = type_text(reduction_.value_dtype).value;
      reduction_.print_functions(builder);
      print_place(out, false, along_word, across_word);
      out += cat("  const ix columns = ", read(columns_word), ", splits = ", read(splits_word),
                 ", stride = ", read(stride_word), ";\n");
      out += "  const ix column = (ix)COMPUTE_GROUP_ID(0) * across + line;\n";
      out += cat("  ", type, " best[1];\n  ix place[1];\n  best[0] = 0;\n  place[0] = 0;\n  if (column < columns) {\n");
      space.decompose(builder, "    ", "k", "column");
      out += cat("    const ix base = ", space.offset(0, "k"), ";\n    place[0] = x1[column];\n");
      out += cat("    best[0] = ", reduction_.value_of("x0[base + place[0] * stride]", functions), ";\n");
      out += "    for (ix r = item; r < splits; r += along) {\n      const ix p = x1[r * columns + column];\n";
      out += cat("      const ", type, " x = ", reduction_.value_of("x0[base + p * stride]", functions), ";\n");
      out +=
          "      if (goes_before(x, p, best[0], place[0])) {\n        best[0] = x;\n        place[0] = p;\n      }\n   "
          " }\n  }\n";
      reduction_.print_choice(builder, false, 1, [&] {
        space.decompose(builder, "      ", "k", "column");
        out += cat("      x2[", space.offset(1, "k"), "] = (", type_text(reduction_.output_dtype).storage, ")found;\n");
      });
    }
    recipe.add(builder, divide_up(outputs, group / along));
  }

  const ArgReduction reduction_;
  const Dialect& dialect_;
  const bool with_text_;
  int64_t stride_ = 0;
  ReducePass pass_;
  bool is_wide_ = false;
};

}  // namespace

BuiltRecipe build_arg_reduce(const Op& op, const Dialect& dialect, bool with_text) {
  return ArgReduceBuilder(op, dialect, with_text).build();
}

}  // namespace compute::common
