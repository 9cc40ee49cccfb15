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

class ArgReduceBuilder {
 public:
  ArgReduceBuilder(const Op& op, const Dialect& dialect, bool with_text)
      : dialect_(dialect),
        with_text_(with_text),
        finds_max_(op.text("kind") == "max"),
        dtype_(op.input(0).dtype),
        value_dtype_(computed_in(dtype_)),
        output_dtype_(op.output(0).dtype),
        axis_(static_cast<size_t>(op.integer("axis", 0))) {
    const compute_plugin_tensor& input = op.input(0);
    stride_ = input.strides[axis_];
    // Positions count along the axis as it is: its loop is not turned around.
    pass_.combined.rank = 1;
    pass_.combined.extents[0] = input.shape[axis_];
    pass_.combined.strides.resize(1);
    pass_.combined.strides[0][0] = stride_;
    pass_.combined.offsets = {0};
    std::vector<int64_t> kept_shape(input.shape, input.shape + input.rank);
    kept_shape[axis_] = 1;
    pass_.kept = collapse_operands(kept_shape, std::vector{strides_of(input), strides_of(op.output(0))}, 0);
    pass_.sources = {dtype_};
    pass_.alignments = {input.alignment};
  }

  BuiltRecipe build() {
    const ReduceShape shape = choose_reduce_shape(pass_, dialect_, true);
    const int32_t size = dtype_size(dtype_);
    is_wide_ = needs_wide(pass_, std::span(&size, 1), dtype_size(output_dtype_), shape.splits);
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
    builder.sign(finds_max_);
    builder.sign(dtype_);
    builder.sign(output_dtype_);
    builder.sign(along_first);
    builder.sign(lanes);
    builder.sign(pass_.kept.rank);
    return builder;
  }

  void take_input(KernelBuilder& builder) const {
    builder.pointer(Pointer::kTensor, 0, pass_.kept.offsets[0] * dtype_size(dtype_));
    if (with_text_) builder.body += builder.declare(0, type_text(dtype_).storage, true);
  }
  void take_output(KernelBuilder& builder, int32_t number) const {
    builder.pointer(Pointer::kTensor, 1, pass_.kept.offsets[1] * dtype_size(output_dtype_));
    if (with_text_) builder.body += builder.declare(number, type_text(output_dtype_).storage, false);
  }
  static void take_workspace(KernelBuilder& builder, int32_t number, bool is_const, bool with_text) {
    builder.pointer(Pointer::kWorkspace, 0, 0);
    if (with_text) builder.body += builder.declare(number, "ix", is_const);
  }

  std::string value_of(const std::string& element, Functions& functions) const {
    return convert_text(value_of_element(dtype_, element), dtype_, value_dtype_, functions);
  }

  void print_functions(KernelBuilder& builder) const {
    const char* type = type_text(value_dtype_).value;
    const char* worse = finds_max_ ? "<=" : ">=";
    // A NaN is no worse than anything.
    const std::string better = is_float(value_dtype_) ? cat("!(x ", worse, " y) && y == y") : cat("!(x ", worse, " y)");
    builder.globals += cat("COMPUTE_FUNCTION bool is_better(", type, " x, ", type, " y) { return ", better, "; }\n");
    builder.globals += cat("COMPUTE_FUNCTION bool goes_before(", type, " x, ix px, ", type,
                           " y, ix py) {\n  return is_better(x, y) || (!is_better(y, x) && px < py);\n}\n");
  }

  static std::string read(int32_t word) { return KernelBuilder::index_word(word); }

  // The place of a work item in its group's table.
  static void print_place(std::string& out, bool along_first, int32_t along_word, int32_t across_word) {
    out += cat("  const int id = COMPUTE_LOCAL_ID(0);\n  const int along = (int)", read(along_word), ", across = (int)",
               read(across_word), ";\n");
    out += along_first ? "  const int item = id & (along - 1), line = id / along;\n"
                       : "  const int line = id & (across - 1), item = id / across;\n";
  }

  // The items of an output choose; `store` prints what the first of them does with place `name`.
  template <class Store>
  void print_choice(KernelBuilder& builder, bool along_first, int held, const Store& store) const {
    std::string& out = builder.body;
    const int group = dialect_.group_size;
    const std::string element = cat("v * ", group, " + id"), partner = along_first ? "reach" : "reach * across";
    out += cat("  COMPUTE_LOCAL ", type_text(value_dtype_).storage, " values[", group * held,
               "];\n  COMPUTE_LOCAL ix places[", group * held, "];\n");
    out += cat("  for (int v = 0; v < ", held, "; ++v) {\n    values[", element,
               "] = ", element_of_value(value_dtype_, "best[v]"), ";\n    places[", element,
               "] = place[v];\n  }\n  COMPUTE_BARRIER();\n");
    out += "  for (int reach = along / 2; reach > 0; reach /= 2) {\n    if (item < reach) {\n";
    out += cat("      for (int v = 0; v < ", held, "; ++v) {\n        const int at = ", element, ", from = at + ",
               partner, ";\n");
    out += cat(
        "        if (goes_before(", value_of_element(value_dtype_, "values[from]"), ", places[from], ",
        value_of_element(value_dtype_, "values[at]"),
        ", places[at])) {\n          values[at] = values[from];\n          places[at] = places[from];\n        }\n");
    out += "      }\n    }\n    COMPUTE_BARRIER();\n  }\n";
    out += cat("  if (item == 0 && column < columns) {\n    for (int v = 0; v < ", held,
               "; ++v) {\n      const ix found = places[", element, "];\n");
    store();
    out += "    }\n  }\n";
  }

  void add(BuiltRecipe& recipe, const ReduceShape& shape) const {
    const bool to_workspace = shape.splits > 1;
    const LoopNest& kept = pass_.kept;
    KernelBuilder builder = begin(to_workspace ? "arg_reduce_begin" : "arg_reduce", shape.along_first, shape.lanes);
    take_input(builder);
    if (to_workspace) {
      take_workspace(builder, 1, false, with_text_);
    } else {
      take_output(builder, 1);
    }
    const int64_t outputs = kept.points(), terms = pass_.combined.extents[0];
    const int64_t vectors = shape.along_first ? terms / shape.lanes : terms;
    const int64_t columns = shape.along_first ? outputs : divide_up(outputs, shape.lanes);
    const int64_t column_groups = divide_up(columns, shape.across);
    const Words words = {builder.word(columns),     builder.word(column_groups),
                         builder.word(vectors),     builder.word(divide_up(vectors, shape.splits)),
                         builder.word(shape.along), builder.word(shape.across),
                         builder.word(terms),       builder.word(outputs),
                         builder.word(stride_),     builder.word(kept.rank == 0 ? 0 : kept.strides[1][kept.rank - 1])};
    Space space(kept);
    space.add_words(builder, shape.along_first ? 1 : shape.lanes);
    if (with_text_) print(builder, shape, space, words);
    recipe.add(builder, column_groups * shape.splits);
  }

  struct Words {
    int32_t columns, groups, vectors, chunk, along, across, terms, outputs, stride, inner_output;
  };

  void print(KernelBuilder& builder, const ReduceShape& shape, const Space& space, const Words& words) const {
    std::string& out = builder.body;
    Functions& functions = builder.functions();
    const int lanes = shape.lanes, held = shape.along_first ? 1 : lanes;
    const std::string type = type_text(value_dtype_).value, storage = type_text(dtype_).storage;
    const VectorText vector =
        lanes > 1 ? vector_type(builder, storage.c_str(), dtype_size(dtype_), lanes) : VectorText{storage, "", 0};
    print_functions(builder);
    print_place(out, shape.along_first, words.along, words.across);
    out += cat("  const ix columns = ", read(words.columns), ", column_groups = ", read(words.groups),
               ", chunk = ", read(words.chunk), ", stride = ", read(words.stride), ";\n");
    out += "  const ix where = (ix)COMPUTE_GROUP_ID(0), split = where / column_groups;\n";
    out += "  const ix column = (where - split * column_groups) * across + line;\n";
    out += cat("  const ix end = (split + 1) * chunk < ", read(words.vectors),
               " ? (split + 1) * chunk : ", read(words.vectors), ";\n");
    out += cat("  ", type, " best[", lanes, "];\n  ix place[", lanes, "];\n");
    out += cat("  for (int v = 0; v < ", lanes, "; ++v) {\n    best[v] = 0;\n    place[v] = 0;\n  }\n");
    out += "  if (column < columns) {\n";
    space.decompose(builder, "    ", "k", "column");
    out += cat("    const ix base = ", space.offset(0, "k"), ";\n");
    out += cat("    for (int v = 0; v < ", lanes,
               "; ++v) best[v] = ", value_of(lanes > 1 ? "x0[base + v]" : "x0[base]", functions), ";\n");
    // Several vectors at a time, all loaded before the first is used. On a CPU core an item goes along memory by
    // itself.
    const int steps = dialect_.is_host && lanes == 1 ? kReduceHostSteps : kReduceSteps;
    const char* along = dialect_.is_host ? "1" : "along";
    const char* unroll = dialect_.is_host ? "" : "#pragma unroll\n";
    if (dialect_.is_host) {
      out += "    const ix span = (chunk + along - 1) / along;\n    ix r = split * chunk + item * span;\n";
      out += "    const ix last = r + span < end ? r + span : end;\n";
    } else {
      out += "    const ix last = end;\n    ix r = split * chunk + item;\n";
    }
    const auto load = [&](const std::string& indent, const std::string& into, const std::string& i) {
      const std::string at =
          cat("base + ", i, shape.along_first && lanes > 1 ? cat(" * ", lanes) : std::string(" * stride"));
      if (lanes == 1) out += cat(indent, into, " = x0[", at, "];\n");
      for (int w = 0; w < vector.words; ++w)
        out +=
            cat(indent, into, ".v[", w, "] = ((COMPUTE_GLOBAL const ", vector.word, "*)(x0 + ", at, "))[", w, "];\n");
    };
    const auto take = [&](const std::string& indent, const std::string& from, const std::string& i) {
      out += cat(unroll, indent, "for (int v = 0; v < ", lanes, "; ++v) {\n");
      out += cat(indent, "  const ", type, " x = ", value_of(lanes > 1 ? from + ".e[v]" : from, functions), ";\n");
      out += cat(indent, "  const bool better = is_better(x, best[v]);\n");
      out += cat(indent, "  best[v] = better ? x : best[v];\n", indent, "  place[v] = better ? ", i, " : place[v];\n",
                 indent, "}\n");
    };
    out += cat("    for (; r + ", steps - 1, " * ", along, " < last; r += ", steps, " * ", along, ") {\n      ",
               vector.type, " row[", steps, "];\n");
    out += cat("#pragma unroll\n      for (int s = 0; s < ", steps, "; ++s) {\n        const ix i = r + s * ", along,
               ";\n");
    load("        ", "row[s]", "i");
    out += cat("      }\n#pragma unroll\n      for (int s = 0; s < ", steps, "; ++s) {\n        const ix i = r + s * ",
               along, ";\n");
    take("        ", "row[s]", "i");
    out += cat("      }\n    }\n    for (; r < last; r += ", along, ") {\n      ", vector.type, " row;\n");
    load("      ", "row", "r");
    take("      ", "row", "r");
    out += "    }\n";
    if (shape.along_first && lanes > 1) {
      // From vectors to elements; then what is left after the last whole vector, and the lanes among themselves.
      out += cat("    for (int v = 0; v < ", lanes, "; ++v) place[v] = place[v] * ", lanes, " + v;\n");
      const auto merge = [&](const char* indent, const std::string& value, const std::string& position) {
        out += cat(indent, "if (goes_before(", value, ", ", position, ", best[0], place[0])) {\n", indent,
                   "  best[0] = ", value, ";\n", indent, "  place[0] = ", position, ";\n", indent, "}\n");
      };
      out += cat("    if (split == 0) {\n      for (ix t = ", read(words.vectors), " * ", lanes, " + item; t < ",
                 read(words.terms), "; t += along) {\n");
      out += cat("        const ", type, " x = ", value_of("x0[base + t]", functions), ";\n");
      merge("        ", "x", "t");
      out += cat("      }\n    }\n", unroll, "    for (int v = 1; v < ", lanes, "; ++v) {\n");
      merge("      ", "best[v]", "place[v]");
      out += "    }\n";
    }
    out += "  }\n";
    print_choice(builder, shape.along_first, held, [&] {
      if (shape.splits > 1) {
        out += cat("      x1[split * ", read(words.outputs), " + column * ", held, " + v] = found;\n");
        return;
      }
      space.decompose(builder, "      ", "k", "column");
      out += cat("      x1[", space.offset(1, "k"), held > 1 ? cat(" + v * ", read(words.inner_output)) : std::string(),
                 "] = (", type_text(output_dtype_).storage, ")found;\n");
    });
  }

  // Among the positions that the groups of an output found: a table of splits × outputs.
  void add_end(BuiltRecipe& recipe, int64_t splits) const {
    const int64_t outputs = pass_.kept.points(), group = dialect_.group_size;
    int64_t along = 1;
    while (along < group && along < splits) along *= 2;
    KernelBuilder builder = begin("arg_reduce_end", false, 1);
    take_input(builder);
    take_workspace(builder, 1, true, with_text_);
    take_output(builder, 2);
    const int32_t columns_word = builder.word(outputs), splits_word = builder.word(splits),
                  along_word = builder.word(along), across_word = builder.word(group / along),
                  stride_word = builder.word(stride_);
    Space space(pass_.kept);
    space.add_words(builder, 1);
    if (with_text_) {
      std::string& out = builder.body;
      Functions& functions = builder.functions();
      const std::string type = type_text(value_dtype_).value;
      print_functions(builder);
      print_place(out, false, along_word, across_word);
      out += cat("  const ix columns = ", read(columns_word), ", splits = ", read(splits_word),
                 ", stride = ", read(stride_word), ";\n");
      out += "  const ix column = (ix)COMPUTE_GROUP_ID(0) * across + line;\n";
      out += cat("  ", type, " best[1];\n  ix place[1];\n  best[0] = 0;\n  place[0] = 0;\n  if (column < columns) {\n");
      space.decompose(builder, "    ", "k", "column");
      out += cat("    const ix base = ", space.offset(0, "k"), ";\n    place[0] = x1[column];\n");
      out += cat("    best[0] = ", value_of("x0[base + place[0] * stride]", functions), ";\n");
      out += "    for (ix r = item; r < splits; r += along) {\n      const ix p = x1[r * columns + column];\n";
      out += cat("      const ", type, " x = ", value_of("x0[base + p * stride]", functions), ";\n");
      out +=
          "      if (goes_before(x, p, best[0], place[0])) {\n        best[0] = x;\n        place[0] = p;\n      }\n   "
          " }\n  }\n";
      print_choice(builder, false, 1, [&] {
        space.decompose(builder, "      ", "k", "column");
        out += cat("      x2[", space.offset(1, "k"), "] = (", type_text(output_dtype_).storage, ")found;\n");
      });
    }
    recipe.add(builder, divide_up(outputs, group / along));
  }

  const Dialect& dialect_;
  const bool with_text_, finds_max_;
  const compute_dtype dtype_, value_dtype_, output_dtype_;
  const size_t axis_;
  int64_t stride_ = 0;
  ReducePass pass_;
  bool is_wide_ = false;
};

}  // namespace

BuiltRecipe build_arg_reduce(const Op& op, const Dialect& dialect, bool with_text) {
  return ArgReduceBuilder(op, dialect, with_text).build();
}

}  // namespace compute::common
