// SPDX-License-Identifier: Apache-2.0
// adam, adamw, sgd and sgd_momentum over many tensors, which core requests by name: a kernel for values that do not
// depend on the element, then one launch for up to kMostTensors tensors.
#include <algorithm>
#include <bit>

#include "plugins/common/source/builder/kernel_builder.hpp"
#include "plugins/common/source/map/ops.hpp"

namespace compute::common {
namespace {

#include "plugins/common/source/map/optimizer.inc"

constexpr int32_t kMostTensors = 32;
constexpr int32_t kConstants = 8;
constexpr int64_t kHostRun = 64;  // elements of a work item on a CPU core

bool is_adam(const Op& op) { return op.name().starts_with("adam"); }
int32_t inputs_of_group(const Op& op) { return is_adam(op) ? 4 : op.name() == "sgd" ? 2 : 3; }
int32_t outputs_of_group(const Op& op) { return inputs_of_group(op) - 1; }
int32_t group_count(const Op& op) { return op.input_count() / inputs_of_group(op); }

class OptimizerBuilder {
 public:
  OptimizerBuilder(const Op& op, const Dialect& dialect, bool with_text)
      : op_(op),
        dialect_(dialect),
        with_text_(with_text),
        dtype_(op.input(0).dtype),
        wide_(computed_in(dtype_)),
        inputs_(inputs_of_group(op)),
        operands_(inputs_ + outputs_of_group(op)),
        groups_(group_count(op)) {
    lanes_ = dialect.is_host ? kHostRun : 16 / dtype_size(dtype_);
    is_vector_ = !dialect.is_host;
    for (int32_t i = 0; i < op.tensor_count(); ++i) is_vector_ = is_vector_ && op.tensor(i).alignment >= 16;
  }

  BuiltKernels build() {
    BuiltKernels built;
    built.workspace_bytes = int64_t{kConstants} * dtype_size(wide_);
    add_constants(built);
    // A pointer, its word of the block, and two words for each tensor; a power of two, so that few kernels are made.
    const int64_t bytes = operands_ * 16 + 16;
    const auto room =
        static_cast<uint64_t>(std::clamp<int64_t>((dialect_.max_block_bytes - 64) / bytes, 1, kMostTensors));
    const auto most = static_cast<int32_t>(std::bit_floor(room));
    for (int32_t first = 0; first < groups_;) {
      const int32_t left = groups_ - first;
      const int32_t places = left >= most ? most : static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(left)));
      add_step(built, first, std::min(left, places), places);
      first += std::min(left, places);
    }
    return built;
  }

 private:
  // Operand `operand` of group `group`: inputs, then outputs.
  int32_t tensor(int32_t operand, int32_t group) const { return operand * groups_ + group; }
  const char* type() const { return type_text(wide_).value; }
  const char* storage() const { return type_text(dtype_).storage; }

  void add_constants(BuiltKernels& built) {
    KernelBuilder builder(dialect_, cat(op_.name(), "_constants"), with_text_);
    builder.sign(wide_);
    builder.pointer(Pointer::kWorkspace, 0, 0);
    builder.declare(0, type_text(wide_).storage, false);
    std::vector<Value> values = {
        {"type", type()}, {"is_adam", is_adam(op_)}, {"decoupled", op_.name() == "adamw" ? 1 : 0}};
    static constexpr const char* kNames[] = {"s0", "s1", "s2", "s3", "s4", "s5"};
    for (int32_t i = 0; i < 6; ++i) {
      // Numbers are complex128; their imaginary part is 0.
      const bool is_given = i < op_.scalar_count();
      if (is_given) builder.sign(op_.scalar_dtype(i));
      const std::string text = is_given ? builder.scalar(i, COMPUTE_DTYPE_FLOAT64) : "0.0";
      values.emplace_back(kNames[i], text);
    }
    if (with_text_) builder.body = fill(kOptimizerConstants, values);
    built.add(builder, 1);
  }

  // Tensors [first, first + count) in a kernel for `places` of them.
  void add_step(BuiltKernels& built, int32_t first, int32_t count, int32_t places) {
    KernelBuilder builder(dialect_, op_.name(), with_text_);
    const bool has_nesterov = op_.integer("nesterov", 0) != 0;
    for (const int64_t value : {int64_t{dtype_}, int64_t{places}, int64_t{is_vector_}, lanes_, int64_t{has_nesterov}})
      builder.sign(value);
    std::vector<int64_t> counts, ends;  // ends: in work groups
    int64_t total = 0;
    const int64_t per_group = dialect_.group_size * lanes_;
    for (int32_t place = 0; place < places; ++place) {
      const int32_t group = place < count ? first + place : first;
      int64_t elements = 1;
      for (const int64_t extent : shape_of(op_.input(group))) elements *= extent;
      counts.push_back(elements);
      if (place < count) total += divide_up(elements, per_group);
      ends.push_back(total);
      builder.is_wide = builder.is_wide || elements > INT32_MAX / 2;
      for (int32_t i = 0; i < operands_; ++i) {
        const int32_t number = builder.pointer(Pointer::kTensor, tensor(i, group), 0);
        if (place == 0) builder.declare(number, storage(), i < inputs_);
      }
    }
    const int32_t constants = builder.pointer(Pointer::kWorkspace, 0, 0);
    builder.declare(constants, type_text(wide_).storage, true);
    std::string choices;
    std::string group_text = KernelBuilder::index_word(builder.word(counts[0]));
    const std::string first_count = group_text;
    std::string base;
    for (int32_t place = 1; place < places; ++place) {
      const std::string start = KernelBuilder::index_word(builder.word(ends[static_cast<size_t>(place) - 1]));
      const std::string elements = KernelBuilder::index_word(builder.word(counts[static_cast<size_t>(place)]));
      if (!with_text_) continue;
      choices += cat("if ((ix)COMPUTE_GROUP_ID(0) >= ", start, ") {\n");
      for (int32_t i = 0; i < operands_; ++i) {
        const int32_t number = place * operands_ + i;
        choices += cat("x", i, " = (COMPUTE_GLOBAL ", i < inputs_ ? "const " : "", storage(), "*)(p", number, " + a.w[",
                       number, "]);\n");
      }
      choices += cat("group = (ix)COMPUTE_GROUP_ID(0) - ", start, ";\ncount = ", elements, ";\n}\n");
    }
    if (with_text_) builder.body = step_text(builder, constants, first_count, choices, has_nesterov);
    built.add(builder, total);
  }

  std::string step_text(KernelBuilder& builder, int32_t constants, const std::string& count, const std::string& choices,
                        bool has_nesterov) {
    std::string loaded, registers, loads, stores;
    const int32_t used = is_adam(op_) ? kConstants : inputs_of_group(op_);
    for (int32_t i = 0; i < used; ++i) loaded += cat("const ", type(), " c", i, " = x", constants, "[", i, "];\n");
    if (is_vector_) {
      const VectorText vector = vector_type(builder, storage(), dtype_size(dtype_), static_cast<int>(lanes_));
      for (int32_t i = 0; i < operands_; ++i) {
        registers += cat(vector.type, " r", i, ";\n");
        for (int w = 0; w < vector.words; ++w) {
          if (i < inputs_) {
            loads +=
                cat("r", i, ".v[", w, "] = ((COMPUTE_GLOBAL const ", vector.word, "*)(x", i, " + first))[", w, "];\n");
          } else {
            stores += cat("((COMPUTE_GLOBAL ", vector.word, "*)(x", i, " + first))[", w, "] = r", i, ".v[", w, "];\n");
          }
        }
      }
    }
    const auto in_vector = [](int32_t i) { return cat("r", i, ".e[v]"); };
    const auto in_memory = [](int32_t i) { return cat("x", i, "[i]"); };
    return fill(kOptimizerStep, {{"count", count},
                                 {"choices", choices},
                                 {"group", dialect_.group_size},
                                 {"lanes", lanes_},
                                 {"constants", loaded},
                                 {"is_vector", is_vector_},
                                 {"registers", registers},
                                 {"vector_loads", loads},
                                 {"vector_point", is_vector_ ? point(builder, in_vector, has_nesterov) : ""},
                                 {"vector_stores", stores},
                                 {"point", point(builder, in_memory, has_nesterov)}});
  }

  template <class Element>
  std::string point(KernelBuilder& builder, const Element& element, bool has_nesterov) {
    Functions& functions = builder.functions();
    const auto value = [&](int32_t i) { return convert_text(element(i), dtype_, wide_, functions); };
    const auto divide = [&](const std::string& x, const std::string& y) {
      return call_text(COMPUTE_PLUGIN_INTRINSIC_DIV, wide_, {x, y}, functions);
    };
    const auto root = [&](const std::string& x) {
      return call_text(COMPUTE_PLUGIN_INTRINSIC_SQRT, wide_, {x}, functions);
    };
    std::string text;
    if (is_adam(op_)) {
      text = fill(kOptimizerAdam, {{"type", type()},
                                   {"decoupled", op_.name() == "adamw"},
                                   {"p", value(0)},
                                   {"d", value(1)},
                                   {"m", value(2)},
                                   {"v", value(3)},
                                   {"step", divide("(c0 * m)", cat("(", root("v1"), " * c1 + c7)"))}});
    } else {
      text = fill(kOptimizerSgd, {{"type", type()},
                                  {"has_velocity", inputs_ > 2},
                                  {"p", value(0)},
                                  {"d", value(1)},
                                  {"m", inputs_ > 2 ? value(2) : ""},
                                  {"along", has_nesterov ? "(g + c2 * m)" : "m"}});
    }
    static constexpr const char* kResults[] = {"next", "m", "v1"};
    for (int32_t i = inputs_; i < operands_; ++i)
      text += cat(element(i), " = ", convert_text(kResults[i - inputs_], wide_, dtype_, functions), ";\n");
    return text;
  }

  const Op& op_;
  const Dialect& dialect_;
  const bool with_text_;
  const compute_dtype dtype_, wide_;
  const int32_t inputs_, operands_, groups_;
  int64_t lanes_ = 1;
  bool is_vector_ = false;
};

}  // namespace

std::optional<Refusal> refuse_optimizer(const Op& op, const Dialect& dialect) {
  if (!dialect.has_fp64)
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, -1, cat(op.name(), ": its constants need float64"), ""};
  for (int32_t i = 0; i < op.tensor_count(); ++i) {
    if (!is_row_major(op.tensor(i)))
      return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, i, cat(op.name(), ": tensors must be row-major"), ""};
  }
  return std::nullopt;
}

BuiltKernels build_optimizer(const Op& op, const Dialect& dialect, bool with_text) {
  return OptimizerBuilder(op, dialect, with_text).build();
}

}  // namespace compute::common
