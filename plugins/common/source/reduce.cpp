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

class ReduceBuilder {
 public:
  ReduceBuilder(const Op& op, const Dialect& dialect, bool with_text)
      : op_(op),
        dialect_(dialect),
        with_text_(with_text),
        kind_(kind_of(op.text("kind"))),
        before_(op.expression(0)),
        after_(op.expression(1)),
        accumulator_(before_.nodes[before_.outputs[0]].dtype) {}

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
    recipe.workspace_bytes = divide_up(outputs * shape.splits * dtype_size(accumulator_), 256) * 256;
    const ReducePass last = second_pass(pass, shape.splits);
    add(recipe, last, choose_reduce_shape(last, dialect_, false));
    return recipe;
  }

 private:
  ReducePass first_pass() const {
    const auto axes = op_.integers("axes");
    const compute_plugin_tensor& output = op_.output(0);
    std::vector<int64_t> shape(static_cast<size_t>(output.rank), 1);
    std::vector<std::vector<int64_t>> strides;
    ReducePass pass;
    for (int32_t i = 0; i < op_.input_count(); ++i) {
      strides.push_back(strides_of(op_.input(i)));
      pass.sources.push_back(op_.input(i).dtype);
      pass.alignments.push_back(op_.input(i).alignment);
      if (i == 0) shape.assign(op_.input(0).shape, op_.input(0).shape + op_.input(0).rank);
    }
    for (const int32_t axis : index_axes(before_)) strides.push_back(index_strides(output.rank, axis));
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
    pass.sources = {accumulator_};
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

  bool is_compensated() const { return kind_ == Kind::sum && is_float(part_of(accumulator_)); }
  // bool accumulators are u8 in local memory
  const char* stored() const { return type_text(accumulator_).storage; }

  std::string combine(KernelBuilder& builder, const std::string& x, const std::string& y) const {
    switch (kind_) {
      case Kind::sum:
        return call_text(COMPUTE_INTRINSIC_ADD, accumulator_, {x, y}, builder.functions());
      case Kind::prod:
        return call_text(COMPUTE_INTRINSIC_MUL, accumulator_, {x, y}, builder.functions());
      case Kind::min:
      case Kind::all:
        if (accumulator_ == COMPUTE_DTYPE_BOOL) return cat("(bool)(", x, " && ", y, ")");
        return call_text(COMPUTE_INTRINSIC_MIN, accumulator_, {x, y}, builder.functions());
      default:
        if (accumulator_ == COMPUTE_DTYPE_BOOL) return cat("(bool)(", x, " || ", y, ")");
        return call_text(COMPUTE_INTRINSIC_MAX, accumulator_, {x, y}, builder.functions());
    }
  }

  void add(BuiltRecipe& recipe, const ReducePass& pass, const ReduceShape& shape) {
    KernelBuilder builder(dialect_,
                          pass.from_workspace ? "reduce_end"
                          : pass.to_workspace ? "reduce_begin"
                                              : "reduce",
                          with_text_);
    const auto sources = static_cast<int32_t>(pass.sources.size());
    const LoopNest &kept = pass.kept, &combined = pass.combined;
    std::vector<int32_t> sizes;
    for (const compute_dtype dtype : pass.sources) sizes.push_back(dtype_size(dtype));
    const int64_t outputs = kept.points(), terms = combined.points();
    builder.is_wide = needs_wide(pass, sizes, dtype_size(op_.output(0).dtype), shape.splits);
    builder.sign(static_cast<int64_t>(kind_));
    builder.sign(accumulator_);
    builder.sign(shape.along_first);
    builder.sign(shape.lanes);
    builder.sign(kept.rank);
    builder.sign(combined.rank);
    const std::vector<int32_t> axes = pass.from_workspace ? std::vector<int32_t>() : index_axes(before_);
    if (!pass.from_workspace) builder.sign(before_);
    if (!pass.to_workspace) builder.sign(after_);
    const LoopNest& fast = shape.along_first ? combined : kept;
    std::vector<bool> vector(static_cast<size_t>(sources), false);
    for (int32_t i = 0; i < sources; ++i) {
      vector[static_cast<size_t>(i)] = shape.lanes > 1 && fast.strides[static_cast<size_t>(i)][fast.rank - 1] != 0;
      builder.sign(vector[static_cast<size_t>(i)]);
      builder.sign(pass.sources[static_cast<size_t>(i)]);
    }
    for (size_t i = 0; i < axes.size(); ++i) {
      builder.sign(axes[i]);
      builder.sign(shape.lanes > 1 && fast.strides[static_cast<size_t>(sources) + i][fast.rank - 1] != 0);
    }

    // ---- parameters
    std::string& out = builder.body;
    for (int32_t i = 0; i < sources; ++i) {
      const auto place = static_cast<size_t>(i);
      const int64_t offset = (kept.offsets[place] + combined.offsets[place]) * sizes[place];
      if (pass.from_workspace) {
        builder.pointer(Pointer::kWorkspace, 0, 0);
      } else {
        builder.pointer(Pointer::kTensor, i, offset);
      }
      if (with_text_) out += builder.declare(i, type_text(pass.sources[place]).storage, true);
    }
    const compute_dtype output_dtype = op_.output(0).dtype;
    builder.sign(output_dtype);
    if (pass.to_workspace) {
      builder.pointer(Pointer::kWorkspace, 0, 0);
    } else {
      builder.pointer(Pointer::kTensor, op_.input_count(), kept.offsets.back() * dtype_size(output_dtype));
    }
    if (with_text_)
      out += builder.declare(sources, pass.to_workspace ? stored() : type_text(output_dtype).storage, false);
    std::vector<std::string> before_scalars, after_scalars;
    if (!pass.from_workspace) {
      for (int32_t i = 0; i < before_.scalar_count; ++i)
        before_scalars.push_back(builder.scalar(i, op_.scalar_dtype(i)));
    }
    if (!pass.to_workspace) {
      for (int32_t i = before_.scalar_count; i < op_.scalar_count(); ++i)
        after_scalars.push_back(builder.scalar(i, op_.scalar_dtype(i)));
    }
    std::vector<int32_t> index_words;
    for (size_t i = 0; i < axes.size(); ++i) {
      const size_t operand = static_cast<size_t>(sources) + i;
      index_words.push_back(builder.word(kept.offsets[operand] + combined.offsets[operand]));
    }
    const int64_t vectors = shape.along_first ? terms / shape.lanes : terms;
    const int64_t columns = shape.along_first ? outputs : divide_up(outputs, shape.lanes);
    const int64_t column_groups = divide_up(columns, shape.across);
    const int32_t columns_word = builder.word(columns), groups_word = builder.word(column_groups),
                  vectors_word = builder.word(vectors), chunk_word = builder.word(divide_up(vectors, shape.splits)),
                  along_word = builder.word(shape.along), across_word = builder.word(shape.across),
                  terms_word = builder.word(terms), outputs_word = builder.word(outputs);
    inner_output_word_ = builder.word(kept.rank == 0 ? 0 : kept.strides.back()[kept.rank - 1]);
    Space kept_space(kept), combined_space(combined);
    kept_space.add_words(builder, shape.along_first ? 1 : shape.lanes);
    combined_space.add_words(builder, shape.along_first ? shape.lanes : 1);

    if (with_text_) {
      print(builder, pass, shape, kept_space, combined_space, vector, axes, before_scalars, after_scalars, index_words,
            {columns_word, groups_word, vectors_word, chunk_word, along_word, across_word, terms_word, outputs_word});
    }
    recipe.add(builder, column_groups * shape.splits);
  }

  struct Words {
    int32_t columns, groups, vectors, chunk, along, across, terms, outputs;
  };

  void print(KernelBuilder& builder, const ReducePass& pass, const ReduceShape& shape, const Space& kept_space,
             const Space& combined_space, const std::vector<bool>& vector, const std::vector<int32_t>& axes,
             const std::vector<std::string>& before_scalars, const std::vector<std::string>& after_scalars,
             const std::vector<int32_t>& index_words, const Words& words) {
    std::string& out = builder.body;
    const auto sources = static_cast<int32_t>(pass.sources.size());
    const int group = dialect_.group_size, lanes = shape.lanes;
    const int held = shape.along_first ? 1 : lanes;  // outputs of a work item
    const bool compensated = is_compensated();
    const std::string type = type_text(accumulator_).value, identity = identity_text(kind_, accumulator_);
    const auto read = [&](int32_t word) { return KernelBuilder::index_word(word); };
    std::string two_sum, total;
    if (compensated) {
      two_sum = builder.functions().need("two_sum", accumulator_);
      total = cat("total_", type_text(accumulator_).name);
    }

    out += cat("  const int id = COMPUTE_LOCAL_ID(0);\n  const int along = (int)", read(words.along),
               ", across = (int)", read(words.across), ";\n");
    if (shape.along_first) {
      out += "  const int item = id & (along - 1), line = id / along;\n";
    } else {
      out += "  const int line = id & (across - 1), item = id / across;\n";
    }
    out += cat("  const ix columns = ", read(words.columns), ", column_groups = ", read(words.groups),
               ", chunk = ", read(words.chunk), ";\n");
    out += "  const ix where = (ix)COMPUTE_GROUP_ID(0), split = where / column_groups;\n";
    out += "  const ix column = (where - split * column_groups) * across + line;\n";
    out += cat("  const ix end = (split + 1) * chunk < ", read(words.vectors),
               " ? (split + 1) * chunk : ", read(words.vectors), ";\n");
    out += cat("  COMPUTE_LOCAL ", stored(), " shared[", group * held, "];\n");
    out += cat("  ", type, " sum[", held, "];\n");
    if (compensated) out += cat("  ", type, " lost[", held, "];\n");
    out += cat("  for (int v = 0; v < ", held, "; ++v) {\n    sum[v] = ", identity, ";\n",
               compensated ? cat("    lost[v] = ", identity, ";\n") : "", "  }\n");
    out += "  if (column < columns) {\n";
    kept_space.decompose(builder, "    ", "k", "column");
    const auto index_operand = [&](int32_t axis) {
      return sources + static_cast<int32_t>(std::find(axes.begin(), axes.end(), axis) - axes.begin());
    };
    for (int32_t i = 0; i < sources + static_cast<int32_t>(axes.size()); ++i) {
      out += cat("    const ix b", i, " = ", kept_space.offset(i, "k"), ";\n");
    }
    const LoopNest& fast = shape.along_first ? combined_space.nest() : kept_space.nest();
    const auto index_moves = [&](int32_t operand) {
      return lanes > 1 && fast.strides[static_cast<size_t>(operand)][fast.rank - 1] != 0;
    };

    std::vector<VectorText> vectors(static_cast<size_t>(sources));
    for (int32_t i = 0; i < sources; ++i) {
      const auto place = static_cast<size_t>(i);
      if (vector[place]) {
        vectors[place] =
            vector_type(builder, type_text(pass.sources[place]).storage, dtype_size(pass.sources[place]), lanes);
      }
    }
    const auto load = [&](const std::string& indent, int32_t i, const std::string& step) {
      const auto place = static_cast<size_t>(i);
      const std::string at = cat("b", i, " + ", combined_space.offset(i, "c"));
      if (!vector[place]) {
        out += cat(indent, "r", i, step, " = x", i, "[", at, "];\n");
        return;
      }
      for (int w = 0; w < vectors[place].words; ++w) {
        out += cat(indent, "r", i, step, ".v[", w, "] = ((COMPUTE_GLOBAL const ", vectors[place].word, "*)(x", i, " + ",
                   at, "))[", w, "];\n");
      }
    };
    const auto declare = [&](const std::string& indent, const std::string& count) {
      for (int32_t i = 0; i < sources; ++i) {
        const auto place = static_cast<size_t>(i);
        out += cat(indent, vector[place] ? vectors[place].type : std::string(type_text(pass.sources[place]).storage),
                   " r", i, count, ";\n");
      }
    };
    // `before` of lane v; its result is the name returned.
    const auto evaluate = [&](const std::string& indent, const std::string& step, bool by_lane) {
      const auto element = [&](int32_t i) {
        const auto place = static_cast<size_t>(i);
        return value_of_element(pass.sources[place], cat("r", i, step, vector[place] && by_lane ? ".e[v]" : ""));
      };
      if (pass.from_workspace) return element(0);
      Leaves leaves;
      leaves.input = element;
      leaves.index = [&](int32_t axis) {
        const int32_t operand = index_operand(axis);
        return cat("(", read(index_words[static_cast<size_t>(operand - sources)]), " + b", operand, " + ",
                   combined_space.offset(operand, "c"), by_lane && index_moves(operand) ? " + v" : "", ")");
      };
      leaves.scalar = [&](int32_t i) { return before_scalars[static_cast<size_t>(i)]; };
      return print_expression(before_, leaves, indent, "w", builder.functions(), out)[0];
    };
    const auto accumulate = [&](const std::string& indent, const std::string& place, const std::string& value) {
      if (compensated) {
        out += cat(indent, two_sum, "(&sum", place, ", &lost", place, ", ", value, ");\n");
      } else {
        out += cat(indent, "sum", place, " = ", combine(builder, "sum" + place, value), ";\n");
      }
    };
    // A tree over values[0 .. count), in place; `count` is a power of two.
    const auto tree = [&](const std::string& indent, const std::string& place, int count) {
      for (int step = count / 2; step > 0; step /= 2) {
        for (int i = 0; i < step; ++i) {
          const std::string x = cat("values", place, "[", i, "]");
          out += cat(indent, x, " = ", combine(builder, x, cat("values", place, "[", i + step, "]")), ";\n");
        }
      }
    };

    // Whole steps: several vectors at a time, all loaded before the first is used. On a CPU core an item goes along
    // memory by itself.
    const int steps = dialect_.is_host && lanes == 1 ? kReduceHostSteps : kReduceSteps;
    const char* unroll = dialect_.is_host ? "" : "#pragma unroll\n";
    const char* stride = dialect_.is_host ? "1" : "along";
    if (dialect_.is_host) {
      out += "    const ix span = (chunk + along - 1) / along;\n    ix r = split * chunk + item * span;\n";
      out += "    const ix last = r + span < end ? r + span : end;\n";
    } else {
      out += "    const ix last = end;\n    ix r = split * chunk + item;\n";
    }
    {
      const int gathered = shape.along_first ? steps * lanes : steps;
      out += cat("    for (; r + ", steps - 1, " * ", stride, " < last; r += ", steps, " * ", stride, ") {\n");
      declare("      ", cat("[", steps, "]"));
      out += cat("      ", type, " values[", held, "][", gathered, "];\n");
      out += cat("#pragma unroll\n      for (int s = 0; s < ", steps, "; ++s) {\n        const ix i = r + s * ", stride,
                 ";\n");
      combined_space.decompose(builder, "        ", "c", "i");
      for (int32_t i = 0; i < sources; ++i) load("        ", i, "[s]");
      out += "      }\n";
      out += cat("#pragma unroll\n      for (int s = 0; s < ", steps, "; ++s) {\n");
      if (!axes.empty()) {
        out += cat("        const ix i = r + s * ", stride, ";\n");
        combined_space.decompose(builder, "        ", "c", "i");
      }
      out += cat(unroll, "        for (int v = 0; v < ", lanes, "; ++v) {\n");
      const std::string value = evaluate("          ", "[s]", true);
      out += cat("          values[", shape.along_first ? "0" : "v", "][",
                 shape.along_first ? cat("s * ", lanes, " + v") : std::string("s"), "] = ", value,
                 ";\n        }\n      }\n");
      out += cat(unroll, "      for (int v = 0; v < ", held, "; ++v) {\n");
      tree("        ", "[v]", gathered);
      accumulate("        ", "[v]", "values[v][0]");
      out += "      }\n    }\n";
    }
    out += cat("    for (; r < last; r += ", stride, ") {\n");
    declare("      ", "");
    combined_space.decompose(builder, "      ", "c", "r");
    for (int32_t i = 0; i < sources; ++i) load("      ", i, "");
    if (lanes > 1) out += cat(unroll, "      for (int v = 0; v < ", lanes, "; ++v) {\n");
    {
      const std::string value = evaluate("        ", "", true);
      accumulate("        ", shape.along_first || lanes == 1 ? "[0]" : "[v]", value);
    }
    if (lanes > 1) out += "      }\n";
    out += "    }\n";
    if (shape.along_first && lanes > 1 && combined_space.rank() == 1) {
      // What is left after the last whole vector, element by element.
      out += cat("    const ix whole = ", read(words.vectors), " * ", lanes, ";\n");
      out += "    if (split == 0) {\n";
      out += cat("      for (ix t = whole + item; t < ", read(words.terms), "; t += along) {\n");
      for (int32_t i = 0; i < sources; ++i) {
        const auto place = static_cast<size_t>(i);
        out += cat("        const ", type_text(pass.sources[place]).storage, " r", i, " = x", i, "[b", i,
                   vector[place] ? " + t" : "", "];\n");
      }
      // Coordinates count vectors: the expression's INDEX nodes read c0 and v.
      if (!axes.empty()) out += cat("        const ix c0 = t / ", lanes, ", v = t - c0 * ", lanes, ";\n");
      const auto element = [&](int32_t i) {
        return value_of_element(pass.sources[static_cast<size_t>(i)], cat("r", i));
      };
      std::string value;
      if (pass.from_workspace) {
        value = element(0);
      } else {
        Leaves leaves;
        leaves.input = element;
        leaves.index = [&](int32_t axis) {
          const int32_t operand = index_operand(axis);
          return cat("(", read(index_words[static_cast<size_t>(operand - sources)]), " + b", operand, " + ",
                     combined_space.offset(operand, "c"), index_moves(operand) ? " + v" : "", ")");
        };
        leaves.scalar = [&](int32_t i) { return before_scalars[static_cast<size_t>(i)]; };
        value = print_expression(before_, leaves, "        ", "w", builder.functions(), out)[0];
      }
      accumulate("        ", "[0]", value);
      out += "      }\n    }\n";
    }
    out += "  }\n";

    // The items of an output.
    const std::string partner = shape.along_first ? "reach" : "reach * across";
    out +=
        cat("  for (int v = 0; v < ", held, "; ++v) shared[v * ", group, " + id] = ",
            element_of_value(accumulator_, compensated ? total + "(sum[v], lost[v])" : std::string("sum[v]")), ";\n");
    out += "  COMPUTE_BARRIER();\n";
    out += "  for (int reach = along / 2; reach > 0; reach /= 2) {\n    if (item < reach) {\n";
    out += cat("      for (int v = 0; v < ", held, "; ++v) {\n");
    out += cat("        const ", type, " p = ", value_of_element(accumulator_, cat("shared[v * ", group, " + id]")),
               ", q = ", value_of_element(accumulator_, cat("shared[v * ", group, " + id + ", partner, "]")), ";\n");
    out += cat("        shared[v * ", group, " + id] = ", element_of_value(accumulator_, combine(builder, "p", "q")),
               ";\n");
    out += "      }\n    }\n    COMPUTE_BARRIER();\n  }\n";
    out += "  if (item == 0 && column < columns) {\n";
    if (!pass.to_workspace) kept_space.decompose(builder, "    ", "k", "column");
    out += cat("    for (int v = 0; v < ", held, "; ++v) {\n");
    out += cat("      const ", type, " result = ", value_of_element(accumulator_, cat("shared[v * ", group, " + id]")),
               ";\n");
    if (pass.to_workspace) {
      out += cat("      x", sources, "[split * ", read(words.outputs), " + column * ", held,
                 " + v] = ", element_of_value(accumulator_, "result"), ";\n");
    } else {
      Leaves leaves;
      leaves.input = [](int32_t) { return std::string("result"); };
      leaves.index = [](int32_t) { return std::string("0"); };
      leaves.scalar = [&](int32_t i) { return after_scalars[static_cast<size_t>(i)]; };
      const std::string value = print_expression(after_, leaves, "      ", "z", builder.functions(), out)[0];
      const auto operand = static_cast<int>(kept_space.nest().strides.size()) - 1;
      std::string at = kept_space.offset(operand, "k");
      if (held > 1) at += cat(" + v * ", read(inner_output_word_));
      out += cat("      x", sources, "[", at, "] = ", element_of_value(op_.output(0).dtype, value), ";\n");
    }
    out += "    }\n  }\n";
  }

  const Op& op_;
  const Dialect& dialect_;
  const bool with_text_;
  const Kind kind_;
  const compute_plugin_expression& before_;
  const compute_plugin_expression& after_;
  const compute_dtype accumulator_;
  int32_t inner_output_word_ = 0;
};

}  // namespace

BuiltRecipe build_reduce(const Op& op, const Dialect& dialect, bool with_text) {
  return ReduceBuilder(op, dialect, with_text).build();
}

}  // namespace compute::common
