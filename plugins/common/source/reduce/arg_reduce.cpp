// SPDX-License-Identifier: Apache-2.0
// arg_reduce: one pass over the input, in the shapes of reduce. A work item holds the best element that it has seen and
// its position; the items of an output, and the groups that share one, then choose among theirs. Every item begins with
// an element of the input, so no worst initial value is needed. The first of equal elements wins, and a NaN is better
// than all numbers.
#include <algorithm>

#include "plugins/common/source/reduce/ops.hpp"
#include "plugins/common/source/reduce/reduce_shape.hpp"

namespace compute::common {
namespace {

std::string read(int32_t word) { return KernelBuilder::index_word(word); }

#include "plugins/common/source/reduce/arg_reduce.inc"

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

  std::string order_text() const {
    return fill(kArgReduceOrder, {{"has_nan", is_float(value_dtype)},
                                  {"type", type_text(value_dtype).value},
                                  {"worse", finds_max ? "<=" : ">="}});
  }

  // The items of an output choose; the first of them runs `store` for the position `found`.
  std::string choice_text(int group, bool along_first, int held, std::string_view store) const {
    return fill(kArgReduceChoice, {{"held", held},
                                   {"group", group},
                                   {"best", element_of_value(value_dtype, "best[v]")},
                                   {"partner", along_first ? "reach" : "reach * across"},
                                   {"value_from", value_of_element(value_dtype, "values[from]")},
                                   {"value_at", value_of_element(value_dtype, "values[at]")},
                                   {"store", store}});
  }

  const bool finds_max;
  const compute_dtype dtype, value_dtype, output_dtype;
};

struct ArgReduceWords {
  int32_t columns, groups, vectors, chunk, along, across, terms, outputs, stride, inner_output, splits;
};

std::string arg_reduce_text(const ArgReduction& reduction, const ReduceShape& shape, const Space& space,
                            const ArgReduceWords& words, bool is_shared, KernelBuilder& builder) {
  const int lanes = shape.lanes, held = shape.along_first ? 1 : lanes, group = builder.dialect().group_size;
  const bool is_host = builder.dialect().is_host, has_lanes = lanes > 1;
  const int steps = is_host && !has_lanes ? kReduceHostSteps : kReduceSteps;
  const char* storage = type_text(reduction.dtype).storage;
  const VectorText vector =
      has_lanes ? vector_type(builder, storage, dtype_size(reduction.dtype), lanes) : VectorText{storage, "", 0};
  const auto value_of = [&](const std::string& element) { return reduction.value_of(element, builder.functions()); };
  const auto load = [&](const char* row, const char* i) {
    const std::string at =
        cat("base + ", i, shape.along_first && has_lanes ? cat(" * ", lanes) : std::string(" * stride"));
    std::string out = has_lanes ? "" : cat(row, " = x0[", at, "];\n");
    for (int w = 0; w < vector.words; ++w)
      out += cat(row, ".v[", w, "] = ((COMPUTE_GLOBAL const ", vector.word, "*)(x0 + ", at, "))[", w, "];\n");
    return out;
  };
  const auto place = [&](const char* split) {
    return cat("x1[", split, " * ", read(words.outputs), " + column * ", held, " + v]");
  };
  const auto store = [&](const char* output) {
    return cat(space.coordinates(builder, "k", "column"), output, "[", space.offset(1, "k"),
               held > 1 ? cat(" + v * ", read(words.inner_output)) : std::string(), "] = (",
               type_text(reduction.output_dtype).storage, ")found;\n");
  };
  const auto choice = [&](const std::string& stored) {
    return reduction.choice_text(group, shape.along_first, held, stored);
  };
  std::string shared;
  if (is_shared) {
    shared =
        fill(kArgReduceShared, {{"last_group", fill(kLastGroup, {{"splits", read(words.splits)}, {"counters", 3}})},
                                {"coordinates", space.coordinates(builder, "k", "column")},
                                {"held", held},
                                {"base", space.offset(0, "k")},
                                {"first_place", place("0")},
                                {"first", value_of("x0[base + place[v] * stride]")},
                                {"place", place("r")},
                                {"type", type_text(reduction.value_dtype).value},
                                {"value", value_of("x0[base + p * stride]")},
                                {"choice", choice(store("x2"))}});
  }
  return fill(kArgReduce, {{"item_place", fill(kItemPlace, {{"along", read(words.along)},
                                                            {"across", read(words.across)},
                                                            {"along_first", shape.along_first}})},
                           {"columns", read(words.columns)},
                           {"column_groups", read(words.groups)},
                           {"chunk", read(words.chunk)},
                           {"stride", read(words.stride)},
                           {"vectors", read(words.vectors)},
                           {"type", type_text(reduction.value_dtype).value},
                           {"lanes", lanes},
                           {"coordinates", space.coordinates(builder, "k", "column")},
                           {"base", space.offset(0, "k")},
                           {"first", value_of(has_lanes ? "x0[base + v]" : "x0[base]")},
                           {"item_range", fill(kItemRange, {{"is_host", is_host}})},
                           {"steps", steps},
                           {"last_step", steps - 1},
                           {"pace", is_host ? "1" : "along"},
                           {"vector", vector.type},
                           {"load_step", load("row[s]", "i")},
                           {"unroll", is_host ? "" : "#pragma unroll"},
                           {"step_value", value_of(has_lanes ? "row[s].e[v]" : "row[s]")},
                           {"load", load("row", "r")},
                           {"value", value_of(has_lanes ? "row.e[v]" : "row")},
                           {"ends_in_elements", shape.along_first && has_lanes},
                           {"terms", read(words.terms)},
                           {"element", value_of("x0[base + t]")},
                           {"storage", type_text(reduction.value_dtype).storage},
                           {"group_held", group * held},
                           {"choice", choice(shape.splits > 1 ? place("split") + " = found;\n" : store("x1"))},
                           {"is_shared", is_shared},
                           {"shared", shared}});
}

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
    pass_.loads_vectors = true;
  }

  BuiltKernels build() {
    const ReduceShape shape = choose_reduce_shape(pass_, dialect_, true);
    const int32_t size = dtype_size(reduction_.dtype);
    is_wide_ = needs_wide(pass_, std::span(&size, 1), dtype_size(reduction_.output_dtype), shape.splits);
    BuiltKernels built;
    add(built, shape);
    if (shape.splits > 1) {
      built.workspace_bytes =
          divide_up(pass_.kept.points() * shape.splits * static_cast<int64_t>(sizeof(int64_t)), 256) * 256;
      if (!is_shared(shape)) add_end(built, shape.splits);
    }
    return built;
  }

 private:
  int64_t columns(const ReduceShape& shape) const {
    return shape.along_first ? pass_.kept.points() : divide_up(pass_.kept.points(), shape.lanes);
  }
  int64_t column_groups(const ReduceShape& shape) const { return divide_up(columns(shape), shape.across); }
  // Whether the last of an output's groups chooses among theirs.
  bool is_shared(const ReduceShape& shape) const {
    return shape.splits > 1 && column_groups(shape) <= dialect_.counters;
  }

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

  void add(BuiltKernels& built, const ReduceShape& shape) const {
    const bool to_workspace = shape.splits > 1;
    const LoopNest& kept = pass_.kept;
    KernelBuilder builder = begin(is_shared(shape) ? "arg_reduce_shared"
                                  : to_workspace   ? "arg_reduce_begin"
                                                   : "arg_reduce",
                                  shape.along_first, shape.lanes);
    take_input(builder);
    if (to_workspace) {
      take_workspace(builder, 1, false);
    } else {
      take_output(builder, 1);
    }
    if (is_shared(shape)) {
      take_output(builder, 2);
      builder.declare(builder.pointer(Pointer::kCounters, 0, 0), "i32", false);
    }
    const int64_t outputs = kept.points(), terms = pass_.combined.extents[0];
    const int64_t vectors = shape.along_first ? terms / shape.lanes : terms;
    const ArgReduceWords words = {
        builder.word(columns(shape)), builder.word(column_groups(shape)),
        builder.word(vectors),        builder.word(divide_up(vectors, shape.splits)),
        builder.word(shape.along),    builder.word(shape.across),
        builder.word(terms),          builder.word(outputs),
        builder.word(stride_),        builder.word(kept.rank == 0 ? 0 : kept.strides[1][kept.rank - 1]),
        builder.word(shape.splits)};
    Space space(kept);
    space.add_words(builder, shape.along_first ? 1 : shape.lanes);
    if (with_text_) {
      // Vectors are defined before the functions that compare.
      builder.body = arg_reduce_text(reduction_, shape, space, words, is_shared(shape), builder);
      builder.globals += reduction_.order_text();
    }
    built.add(builder, column_groups(shape) * shape.splits);
  }

  // Among the positions that the groups of an output found: a table of splits × outputs.
  void add_end(BuiltKernels& built, int64_t splits) const {
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
      Functions& functions = builder.functions();
      const std::string store = cat(space.coordinates(builder, "k", "column"), "x2[", space.offset(1, "k"), "] = (",
                                    type_text(reduction_.output_dtype).storage, ")found;\n");
      builder.globals += reduction_.order_text();
      builder.body = fill(
          kArgReduceEnd,
          {{"item_place",
            fill(kItemPlace, {{"along", read(along_word)}, {"across", read(across_word)}, {"along_first", false}})},
           {"columns", read(columns_word)},
           {"splits", read(splits_word)},
           {"stride", read(stride_word)},
           {"type", type_text(reduction_.value_dtype).value},
           {"storage", type_text(reduction_.value_dtype).storage},
           {"group", dialect_.group_size},
           {"coordinates", space.coordinates(builder, "k", "column")},
           {"base", space.offset(0, "k")},
           {"first", reduction_.value_of("x0[base + place[0] * stride]", functions)},
           {"value", reduction_.value_of("x0[base + p * stride]", functions)},
           {"choice", reduction_.choice_text(dialect_.group_size, false, 1, store)}});
    }
    built.add(builder, divide_up(outputs, group / along));
  }

  const ArgReduction reduction_;
  const Dialect& dialect_;
  const bool with_text_;
  int64_t stride_ = 0;
  ReducePass pass_;
  bool is_wide_ = false;
};

}  // namespace

BuiltKernels build_arg_reduce(const Op& op, const Dialect& dialect, bool with_text) {
  return ArgReduceBuilder(op, dialect, with_text).build();
}

}  // namespace compute::common
