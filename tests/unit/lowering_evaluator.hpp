// SPDX-License-Identifier: Apache-2.0
// Runs typed expressions and lowerings on plain memory, element by element: slow, simple, and independent of every
// plugin.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/ops/lower.hpp"
#include "core/ops/shapes.hpp"

namespace compute {

// A tensor in separate memory: `start` is the byte of the element with all indices 0.
struct TestTensor {
  compute_dtype dtype = COMPUTE_DTYPE_NONE;
  std::vector<int64_t> shape, strides;
  std::vector<uint8_t> bytes;
  int64_t start = 0;
  bool is_scalar = false, weak = false;
  ScalarBits bits{};  // of a scalar

  OperandDesc desc() const {
    return {dtype, static_cast<int32_t>(shape.size()), shape.data(), strides.data(), is_scalar, weak};
  }
  int64_t count() const { return element_count(shape); }
};

inline TestTensor empty_tensor(compute_dtype dtype, std::vector<int64_t> shape) {
  TestTensor t{dtype, shape, row_major_strides(shape), {}, 0};
  // Unwritten memory is recognizable.
  t.bytes.assign(static_cast<size_t>(t.count() * dtype_size(dtype)), 0xA5);
  return t;
}

inline TestTensor scalar_tensor(compute_dtype dtype, double value, bool weak = false) {
  TestTensor t{dtype, {}, {}, {}, 0, true, weak};
  t.bits = scalar_from_double(value, dtype);
  return t;
}

// Row-major values, converted to `dtype`.
inline TestTensor tensor(compute_dtype dtype, std::vector<int64_t> shape,
                         const std::vector<std::complex<double>>& values) {
  TestTensor t = empty_tensor(dtype, std::move(shape));
  EXPECT_EQ(t.count(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    const ScalarBits bits = scalar_from_complex(values[i].real(), values[i].imag(), dtype);
    std::memcpy(t.bytes.data() + i * static_cast<size_t>(dtype_size(dtype)), bits.bits,
                static_cast<size_t>(dtype_size(dtype)));
  }
  return t;
}

// Calls `f` with every index of `shape` in row-major order.
inline void for_each_index(std::span<const int64_t> shape, const std::function<void(const std::vector<int64_t>&)>& f) {
  if (!has_elements(shape)) return;
  std::vector<int64_t> index(shape.size(), 0);
  while (true) {
    f(index);
    size_t axis = shape.size();
    while (axis-- > 0 && ++index[axis] == shape[axis]) index[axis] = 0;
    if (axis == SIZE_MAX) return;
  }
}

inline std::vector<std::complex<double>> values(const TestTensor& t) {
  std::vector<std::complex<double>> result;
  for_each_index(t.shape, [&](const std::vector<int64_t>& index) {
    int64_t at = t.start;
    for (size_t i = 0; i < index.size(); ++i) at += index[i] * t.strides[i] * dtype_size(t.dtype);
    const ScalarBits wide =
        convert_scalar(scalar_from_memory(t.dtype, t.bytes.data() + at), t.dtype, COMPUTE_DTYPE_COMPLEX128);
    double parts[2];
    std::memcpy(parts, wide.bits, sizeof parts);
    result.emplace_back(parts[0], parts[1]);
  });
  return result;
}

inline std::vector<double> reals(const TestTensor& t) {
  std::vector<double> result;
  for (const auto& value : values(t)) result.push_back(value.real());
  return result;
}

class LoweringEvaluator {
 public:
  // One value per output. `index` is the position in the index space.
  static std::vector<ScalarBits> evaluate(const TypedExpression& expression, std::span<const ScalarBits> inputs,
                                          std::span<const ScalarBits> scalars, std::span<const int64_t> index) {
    std::vector<ScalarBits> made;
    for (const compute_plugin_node& node : expression.nodes()) {
      const auto value = static_cast<size_t>(node.value);
      switch (node.kind) {
        case COMPUTE_PLUGIN_NODE_INPUT:
          made.push_back(inputs[value]);
          break;
        case COMPUTE_PLUGIN_NODE_SCALAR:
          made.push_back(scalars[value]);
          break;
        case COMPUTE_PLUGIN_NODE_INDEX:
          made.push_back(scalar_from_int64(index[value], node.dtype));
          break;
        case COMPUTE_PLUGIN_NODE_CONSTANT:
          made.push_back(scalar_from_memory(node.dtype, node.bits));
          break;
        default: {
          const std::span<const int32_t> operands = expression.operands(node);
          const compute_dtype dtype = expression.nodes()[static_cast<size_t>(operands.back())].dtype;
          ScalarBits x[3];
          for (size_t i = 0; i < operands.size(); ++i) x[i] = made[static_cast<size_t>(operands[i])];
          const compute_dtype first = expression.nodes()[static_cast<size_t>(operands[0])].dtype;
          made.push_back(call(node, first, dtype, x));
        }
      }
    }
    std::vector<ScalarBits> outputs;
    for (int32_t i = 0; i < expression.output_count(); ++i) {
      outputs.push_back(made[static_cast<size_t>(expression.plugin_view().outputs[i])]);
    }
    return outputs;
  }

  LoweringEvaluator(const OpSchema* schema, std::span<TestTensor> inputs, std::span<TestTensor> outputs,
                    std::span<const RunTimeValue> run_time)
      : schema_(schema), inputs_(inputs), outputs_(outputs), run_time_(run_time) {}

  void run(const Lowering& lowering) {
    temporaries_.assign(static_cast<size_t>(lowering.temporary_bytes), 0x5A);
    lowering_ = &lowering;
    for (const Step& step : lowering.steps) {
      check(step);
      const std::string_view name = step.name;
      if (name == "map") {
        map(step);
      } else if (name == "copy") {
        copy(step);
      } else if (name == "row") {
        row(step);
      } else if (name == "reduce") {
        reduce(step);
      } else if (name == "gather") {
        gather(step);
      } else if (name == "scatter") {
        scatter(step);
      } else if (name == "contraction") {
        contraction(step);
      } else if (name == "arg_reduce") {
        arg_reduce(step);
      } else {
        ADD_FAILURE() << "no primitive: " << name;
      }
    }
  }

 private:
  using Complex = std::complex<double>;

  static Complex number(const ScalarBits& bits, compute_dtype dtype) {
    const ScalarBits wide = convert_scalar(bits, dtype, COMPUTE_DTYPE_COMPLEX128);
    double parts[2];
    std::memcpy(parts, wide.bits, sizeof parts);
    return {parts[0], parts[1]};
  }
  static ScalarBits pack(Complex value, compute_dtype dtype) {
    return scalar_from_complex(value.real(), value.imag(), dtype);
  }
  static int64_t integer(const ScalarBits& bits, compute_dtype dtype) {
    int64_t value;
    std::memcpy(&value, convert_scalar(bits, dtype, COMPUTE_DTYPE_INT64).bits, sizeof value);
    return value;
  }
  static bool truth(const ScalarBits& bits) { return bits.bits[0] != 0; }
  static bool less(const ScalarBits& a, const ScalarBits& b, compute_dtype dtype) {
    if (is_float(dtype)) return number(a, dtype).real() < number(b, dtype).real();
    const int64_t x = integer(a, dtype), y = integer(b, dtype);
    return dtype == COMPUTE_DTYPE_UINT64 ? static_cast<uint64_t>(x) < static_cast<uint64_t>(y) : x < y;
  }
  static bool is_nan(const ScalarBits& a, compute_dtype dtype) {
    const Complex z = number(a, dtype);
    return std::isnan(z.real()) || std::isnan(z.imag());
  }
  static bool equal(const ScalarBits& a, const ScalarBits& b, compute_dtype dtype) {
    return is_float(dtype) || is_complex(dtype) ? number(a, dtype) == number(b, dtype) : scalars_equal(a, b);
  }
  static ScalarBits extreme(const ScalarBits& a, const ScalarBits& b, compute_dtype dtype, bool greatest) {
    if (is_nan(a, dtype)) return a;
    if (is_nan(b, dtype)) return b;
    return less(a, b, dtype) != greatest ? a : b;
  }

  static ScalarBits call(const compute_plugin_node& node, compute_dtype first, compute_dtype dtype,
                         const ScalarBits* x) {
    const auto boolean = [](bool value) { return scalar_from_int64(value, COMPUTE_DTYPE_BOOL); };
    const auto i = [&](int n) { return static_cast<uint64_t>(integer(x[n], dtype)); };
    const auto wrapped = [&](uint64_t value) { return scalar_from_int64(static_cast<int64_t>(value), dtype); };
    const auto z = [&](int n) { return number(x[n], dtype); };
    const bool exact = !is_float(dtype) && !is_complex(dtype);
    switch (node.value) {
      case COMPUTE_PLUGIN_INTRINSIC_CONVERT:
        return convert_scalar(x[0], first, node.dtype);
      case COMPUTE_PLUGIN_INTRINSIC_BITCAST:
        return x[0];
      case COMPUTE_PLUGIN_INTRINSIC_WHERE:
        return truth(x[0]) ? x[1] : x[2];
      case COMPUTE_PLUGIN_INTRINSIC_ADD:
        return exact ? wrapped(i(0) + i(1)) : pack(z(0) + z(1), dtype);
      case COMPUTE_PLUGIN_INTRINSIC_SUB:
        return exact ? wrapped(i(0) - i(1)) : pack(z(0) - z(1), dtype);
      case COMPUTE_PLUGIN_INTRINSIC_MUL:
        return exact             ? wrapped(i(0) * i(1))
               : is_float(dtype) ? pack(z(0).real() * z(1).real(), dtype)
                                 : pack(z(0) * z(1), dtype);
      case COMPUTE_PLUGIN_INTRINSIC_DIV:
        return is_float(dtype) ? pack(z(0).real() / z(1).real(), dtype) : pack(z(0) / z(1), dtype);
      case COMPUTE_PLUGIN_INTRINSIC_NEG:
        return exact ? wrapped(0 - i(0)) : pack(-z(0), dtype);
      case COMPUTE_PLUGIN_INTRINSIC_ABS:
        return exact ? wrapped(static_cast<int64_t>(i(0)) < 0 ? 0 - i(0) : i(0)) : pack(std::abs(z(0)), node.dtype);
      case COMPUTE_PLUGIN_INTRINSIC_MIN:
      case COMPUTE_PLUGIN_INTRINSIC_MAX:
        return extreme(x[0], x[1], dtype, node.value == COMPUTE_PLUGIN_INTRINSIC_MAX);
      case COMPUTE_PLUGIN_INTRINSIC_EQ:
        return boolean(equal(x[0], x[1], dtype));
      case COMPUTE_PLUGIN_INTRINSIC_NE:
        return boolean(!equal(x[0], x[1], dtype));
      case COMPUTE_PLUGIN_INTRINSIC_LT:
        return boolean(less(x[0], x[1], dtype));
      case COMPUTE_PLUGIN_INTRINSIC_GT:
        return boolean(less(x[1], x[0], dtype));
      case COMPUTE_PLUGIN_INTRINSIC_BIT_AND:
        return wrapped(i(0) & i(1));
      case COMPUTE_PLUGIN_INTRINSIC_BIT_OR:
        return wrapped(i(0) | i(1));
      case COMPUTE_PLUGIN_INTRINSIC_SQRT:
        return pack(std::sqrt(z(0)), dtype);
      case COMPUTE_PLUGIN_INTRINSIC_EXP:
        return pack(std::exp(z(0)), dtype);
      case COMPUTE_PLUGIN_INTRINSIC_LOG1P:
        return pack(std::log1p(z(0).real()), dtype);
      case COMPUTE_PLUGIN_INTRINSIC_ATAN2:
        return pack(std::atan2(z(0).real(), z(1).real()), dtype);
      case COMPUTE_PLUGIN_INTRINSIC_ISNAN:
        return boolean(is_nan(x[0], dtype));
      case COMPUTE_PLUGIN_INTRINSIC_ISFINITE:
        return boolean(std::isfinite(z(0).real()) && std::isfinite(z(0).imag()));
      case COMPUTE_PLUGIN_INTRINSIC_REAL:
        return pack(z(0).real(), node.dtype);
      case COMPUTE_PLUGIN_INTRINSIC_IMAG:
        return pack(z(0).imag(), node.dtype);
      case COMPUTE_PLUGIN_INTRINSIC_COMPLEX:
        return pack({z(0).real(), z(1).real()}, node.dtype);
      case COMPUTE_PLUGIN_INTRINSIC_ARG:
        return pack(std::arg(z(0)), node.dtype);
      case COMPUTE_PLUGIN_INTRINSIC_LOGADDEXP:
        return pack(std::log(std::exp(z(0).real()) + std::exp(z(1).real())), node.dtype);
      default:
        return call_of_real(node, dtype, x);
    }
  }

  static ScalarBits call_of_real(const compute_plugin_node& node, compute_dtype dtype, const ScalarBits* x) {
    const auto boolean = [](bool value) { return scalar_from_int64(value, COMPUTE_DTYPE_BOOL); };
    switch (node.value) {
      case COMPUTE_PLUGIN_INTRINSIC_LE:
        return boolean(less(x[0], x[1], dtype) || equal(x[0], x[1], dtype));
      case COMPUTE_PLUGIN_INTRINSIC_GE:
        return boolean(less(x[1], x[0], dtype) || equal(x[0], x[1], dtype));
      case COMPUTE_PLUGIN_INTRINSIC_SHL:
        return scalar_from_int64(integer(x[0], dtype) << integer(x[1], dtype), dtype);
      case COMPUTE_PLUGIN_INTRINSIC_SHR:
        return scalar_from_int64(integer(x[0], dtype) >> integer(x[1], dtype), dtype);
      case COMPUTE_PLUGIN_INTRINSIC_ROUND:
        return pack(std::nearbyint(number(x[0], dtype).real()), dtype);
      case COMPUTE_PLUGIN_INTRINSIC_ISINF:
        return boolean(std::isinf(number(x[0], dtype).real()));
      default:
        ADD_FAILURE() << "the evaluator does not know " << find_intrinsic(node.value)->name;
        return {};
    }
  }

  // ---- Operands ----

  uint8_t* address(const StepOperand& operand, std::span<const int64_t> index) {
    EXPECT_LE(operand.shape.size(), size_t{COMPUTE_PLUGIN_MAX_RANK});
    int64_t at = operand.offset;
    for (size_t i = 0; i < index.size(); ++i) at += index[i] * operand.strides[i];
    at *= dtype_size(operand.dtype);
    const auto number = static_cast<size_t>(operand.index);
    std::vector<uint8_t>* memory = &temporaries_;
    if (operand.kind == ValueKind::kTemporary) {
      const Temporary& temporary = lowering_->temporaries[number];
      EXPECT_GE(at, 0);
      EXPECT_LE(at + dtype_size(operand.dtype), temporary.size_bytes);
      at += temporary.offset_bytes;
    } else {
      TestTensor& tensor = operand.kind == ValueKind::kInput ? inputs_[number] : outputs_[number];
      EXPECT_EQ(tensor.dtype, operand.dtype);
      EXPECT_FALSE(tensor.is_scalar);
      memory = &tensor.bytes;
      at += tensor.start;
    }
    if (at < 0 || at + dtype_size(operand.dtype) > static_cast<int64_t>(memory->size())) {
      ADD_FAILURE() << "an operand reaches outside of its memory";
      std::abort();
    }
    return memory->data() + at;
  }
  ScalarBits load(const StepOperand& operand, std::span<const int64_t> index) {
    return scalar_from_memory(operand.dtype, address(operand, index));
  }
  void store(const StepOperand& operand, std::span<const int64_t> index, const ScalarBits& value) {
    std::memcpy(address(operand, index), value.bits, static_cast<size_t>(dtype_size(operand.dtype)));
  }

  std::vector<ScalarBits> scalars(const Step& step) {
    std::vector<ScalarBits> result;
    for (const StepScalar& scalar : step.scalars) {
      const auto i = static_cast<size_t>(scalar.index);
      switch (scalar.source) {
        case ScalarSource::kValue:
          result.push_back(scalar.bits);
          break;
        case ScalarSource::kOperand:
          EXPECT_TRUE(inputs_[i].is_scalar);
          result.push_back(convert_scalar(inputs_[i].bits, inputs_[i].dtype, scalar.dtype));
          break;
        case ScalarSource::kRunTimeAttribute:
          result.push_back(run_time_scalar(*schema_, scalar.index, run_time_[i], scalar.dtype));
      }
    }
    return result;
  }

  static const StepAttribute& attribute(const Step& step, std::string_view name) {
    for (const StepAttribute& a : step.attributes) {
      if (a.name == name) return a;
    }
    ADD_FAILURE() << "no attribute " << name;
    std::abort();
  }

  // What plugin.h promises to plugins.
  void check(const Step& step) {
    int32_t scalar_count = 0;
    for (const TypedExpression& e : step.expressions) scalar_count += e.plugin_view().scalar_count;
    EXPECT_EQ(static_cast<size_t>(scalar_count), step.scalars.size());
    size_t next = 0;
    for (const TypedExpression& e : step.expressions) {
      for (const compute_plugin_node& node : e.nodes()) {
        if (node.kind != COMPUTE_PLUGIN_NODE_SCALAR) continue;
        EXPECT_EQ(step.scalars[next + static_cast<size_t>(node.value)].dtype, node.dtype);
      }
      next += static_cast<size_t>(e.plugin_view().scalar_count);
    }
    for (const auto* operands : {&step.inputs, &step.outputs}) {
      for (const StepOperand& operand : *operands) {
        EXPECT_EQ(operand.shape.size(), operand.strides.size());
        for (size_t i = 0; i < operand.shape.size(); ++i) {
          EXPECT_GE(operand.shape[i], 1);
          EXPECT_TRUE(operands == &step.inputs || operand.strides[i] != 0 || operand.shape[i] == 1);
        }
      }
    }
    for (const StepOperand& operand : step.inputs) EXPECT_EQ(operand.access, COMPUTE_PLUGIN_TENSOR_INPUT);
    for (const StepOperand& operand : step.outputs) EXPECT_TRUE(operand.access & COMPUTE_PLUGIN_TENSOR_OUTPUT);
  }

  // ---- Primitives ----

  std::vector<ScalarBits> load_inputs(const Step& step, std::span<const int64_t> index) {
    std::vector<ScalarBits> result;
    for (const StepOperand& operand : step.inputs) result.push_back(load(operand, index));
    return result;
  }

  void map(const Step& step) {
    const std::vector<ScalarBits> given = scalars(step);
    const TypedExpression& expression = step.expressions[0];
    ASSERT_EQ(static_cast<size_t>(expression.input_count()), step.inputs.size());
    for (const StepOperand& operand : step.inputs) ASSERT_EQ(operand.shape, step.outputs[0].shape);
    for_each_index(step.outputs[0].shape, [&](const std::vector<int64_t>& index) {
      const std::vector<ScalarBits> made = evaluate(expression, load_inputs(step, index), given, index);
      for (size_t i = 0; i < made.size(); ++i) {
        ASSERT_EQ(step.outputs[i].dtype, expression.output_dtype(static_cast<int32_t>(i)));
        store(step.outputs[i], index, made[i]);
      }
    });
  }

  void copy(const Step& step) {
    ASSERT_EQ(step.inputs[0].shape, step.outputs[0].shape);
    for_each_index(step.outputs[0].shape, [&](const std::vector<int64_t>& index) {
      store(step.outputs[0], index,
            convert_scalar(load(step.inputs[0], index), step.inputs[0].dtype, step.outputs[0].dtype));
    });
  }

  void reduce(const Step& step) {
    const TypedExpression &before = step.expressions[0], &after = step.expressions[1];
    const std::vector<int64_t>& axes = attribute(step, "axes").integers;
    const std::string& kind = attribute(step, "kind").texts.front();
    const auto dtype = static_cast<compute_dtype>(attribute(step, "accumulator").integers[0]);
    ASSERT_EQ(before.output_dtype(0), dtype);
    ASSERT_EQ(after.output_dtype(0), step.outputs[0].dtype);
    ASSERT_FALSE(dtype == COMPUTE_DTYPE_FLOAT16 || dtype == COMPUTE_DTYPE_BFLOAT16);
    const std::vector<ScalarBits> given = scalars(step);
    const auto split = static_cast<size_t>(before.plugin_view().scalar_count);
    const std::span<const ScalarBits> all(given);
    std::vector<int64_t> space = step.inputs[0].shape, kept = space, reduced(space.size(), 1);
    for (const StepOperand& operand : step.inputs) ASSERT_EQ(operand.shape, space);
    for (const int64_t axis : axes) std::swap(kept[static_cast<size_t>(axis)], reduced[static_cast<size_t>(axis)]);
    ASSERT_EQ(step.outputs[0].shape, kept);
    for_each_index(kept, [&](const std::vector<int64_t>& base) {
      bool first = true;
      ScalarBits total{};
      for_each_index(reduced, [&](const std::vector<int64_t>& more) {
        std::vector<int64_t> index = base;
        for (size_t i = 0; i < index.size(); ++i) index[i] += more[i];
        const ScalarBits x = evaluate(before, load_inputs(step, index), all.first(split), index)[0];
        total = first ? x : combine(kind, total, x, dtype);
        first = false;
      });
      store(step.outputs[0], base, evaluate(after, {&total, 1}, all.subspan(split), {})[0]);
    });
  }

  // Outputs of the map come first, then the results that are stored.
  void row(const Step& step) {
    const std::vector<std::string>& kinds = attribute(step, "kinds").texts;
    const std::vector<int64_t>& accumulators = attribute(step, "accumulators").integers;
    const std::vector<int64_t>& stored = attribute(step, "stored").integers;
    ASSERT_EQ(kinds.size(), accumulators.size());
    ASSERT_EQ(step.expressions.size() / 2, kinds.size());
    const size_t mapped = step.outputs.size() - stored.size();
    const std::vector<ScalarBits> given = scalars(step);
    std::vector<std::span<const ScalarBits>> parts;  // of the scalars, per expression
    std::span<const ScalarBits> rest(given);
    for (const TypedExpression& expression : step.expressions) {
      const auto count = static_cast<size_t>(expression.plugin_view().scalar_count);
      parts.push_back(rest.first(count));
      rest = rest.subspan(count);
    }
    const std::vector<int64_t>& space = step.inputs[0].shape;
    std::vector<int64_t> kept = space, reduced(space.size(), 1);
    for (const int64_t axis : attribute(step, "axes").integers)
      std::swap(kept[static_cast<size_t>(axis)], reduced[static_cast<size_t>(axis)]);
    for_each_index(kept, [&](const std::vector<int64_t>& base) {
      std::vector<ScalarBits> results;
      const auto at = [&](size_t expression, std::vector<ScalarBits> first, const std::vector<int64_t>& index) {
        first.insert(first.end(), results.begin(), results.end());
        return evaluate(step.expressions[expression], first, parts[expression], index);
      };
      const auto for_each_term = [&](const auto& visit) {
        for_each_index(reduced, [&](const std::vector<int64_t>& more) {
          std::vector<int64_t> index = base;
          for (size_t i = 0; i < index.size(); ++i) index[i] += more[i];
          visit(index);
        });
      };
      for (size_t stage = 0; stage < kinds.size(); ++stage) {
        std::optional<ScalarBits> total;
        for_each_term([&](const std::vector<int64_t>& index) {
          const ScalarBits x = at(2 * stage, load_inputs(step, index), index)[0];
          total = total ? combine(kinds[stage], *total, x, static_cast<compute_dtype>(accumulators[stage])) : x;
        });
        results.push_back(at(2 * stage + 1, {*total}, {})[0]);
      }
      for (size_t i = 0; i < stored.size(); ++i) {
        const auto stage = static_cast<size_t>(stored[i]);
        const StepOperand& output = step.outputs[mapped + i];
        ASSERT_EQ(output.shape, kept);
        const compute_dtype dtype = step.expressions[2 * stage + 1].output_dtype(0);
        store(output, base, convert_scalar(results[stage], dtype, output.dtype));
      }
      if (step.expressions.size() % 2 == 0) return;
      for_each_term([&](const std::vector<int64_t>& index) {
        const std::vector<ScalarBits> made = at(step.expressions.size() - 1, load_inputs(step, index), index);
        for (size_t i = 0; i < mapped; ++i) store(step.outputs[i], index, made[i]);
      });
    });
  }

  static ScalarBits combine(const std::string& kind, const ScalarBits& a, const ScalarBits& b, compute_dtype dtype) {
    compute_plugin_node node{};
    node.dtype = dtype;
    const ScalarBits x[] = {a, b, {}};
    if (kind == "min" || kind == "max") return extreme(a, b, dtype, kind == "max");
    if (kind == "all" || kind == "any") {
      EXPECT_EQ(dtype, COMPUTE_DTYPE_BOOL);
      node.value = kind == "all" ? COMPUTE_PLUGIN_INTRINSIC_BIT_AND : COMPUTE_PLUGIN_INTRINSIC_BIT_OR;
    } else {
      EXPECT_TRUE(kind == "sum" || kind == "prod") << kind;
      node.value = kind == "sum" ? COMPUTE_PLUGIN_INTRINSIC_ADD : COMPUTE_PLUGIN_INTRINSIC_MUL;
    }
    return call(node, dtype, dtype, x);
  }

  // The index with coordinate `axis` replaced by what `indices` holds there.
  std::vector<int64_t> replaced(const StepOperand& indices, std::vector<int64_t> index, int64_t axis, int64_t extent) {
    EXPECT_TRUE(indices.dtype == COMPUTE_DTYPE_INT32 || indices.dtype == COMPUTE_DTYPE_INT64);
    int64_t i = integer(load(indices, index), indices.dtype);
    if (i < -extent || i >= extent) {
      ++faults;
      i = 0;
    }
    index[static_cast<size_t>(axis)] = i < 0 ? i + extent : i;
    return index;
  }

  void gather(const Step& step) {
    const int64_t axis = attribute(step, "axis").integers[0];
    const StepOperand &src = step.inputs[0], &indices = step.inputs[1], &dst = step.outputs[0];
    ASSERT_EQ(indices.shape, dst.shape);
    std::vector<int64_t> expected = dst.shape;
    expected[static_cast<size_t>(axis)] = src.shape[static_cast<size_t>(axis)];
    ASSERT_EQ(src.shape, expected);
    ASSERT_EQ(src.dtype, dst.dtype);
    for_each_index(dst.shape, [&](const std::vector<int64_t>& index) {
      store(dst, index, load(src, replaced(indices, index, axis, src.shape[static_cast<size_t>(axis)])));
    });
  }

  void scatter(const Step& step) {
    const int64_t axis = attribute(step, "axis").integers[0];
    const std::string& reduction = attribute(step, "reduction").texts.front();
    const StepOperand &indices = step.inputs[0], &updates = step.inputs[1], &dst = step.outputs[0];
    const bool copies = step.inputs.size() > 2;
    ASSERT_EQ(dst.access, (copies ? 0 : COMPUTE_PLUGIN_TENSOR_INPUT) | COMPUTE_PLUGIN_TENSOR_OUTPUT);
    ASSERT_EQ(indices.shape, updates.shape);
    ASSERT_EQ(updates.dtype, dst.dtype);
    if (copies) {
      ASSERT_EQ(step.inputs[2].shape, dst.shape);
      ASSERT_EQ(step.inputs[2].dtype, dst.dtype);
      for_each_index(dst.shape,
                     [&](const std::vector<int64_t>& index) { store(dst, index, load(step.inputs[2], index)); });
    }
    for_each_index(indices.shape, [&](const std::vector<int64_t>& index) {
      const auto at = replaced(indices, index, axis, dst.shape[static_cast<size_t>(axis)]);
      const ScalarBits x = load(updates, index);
      const std::string kind = reduction == "add" ? "sum" : reduction == "mul" ? "prod" : reduction;
      store(dst, at, kind == "set" ? x : combine(kind, load(dst, at), x, dst.dtype));
    });
  }

  void contraction(const Step& step) {
    const StepOperand &a = step.inputs[0], &b = step.inputs[1], &out = step.outputs[0];
    ASSERT_TRUE(a.dtype == out.dtype || computed_in(a.dtype) == out.dtype);
    ASSERT_EQ(b.dtype, a.dtype);
    const size_t rank = out.shape.size();
    ASSERT_EQ(a.shape.size(), rank);
    ASSERT_EQ(b.shape.size(), rank);
    ASSERT_EQ(a.shape[rank - 1], b.shape[rank - 2]);
    for_each_index(out.shape, [&](const std::vector<int64_t>& index) {
      Complex sum = 0;
      for (int64_t k = 0; k < a.shape[rank - 1]; ++k) {
        std::vector<int64_t> i = index, j = index;
        i[rank - 1] = j[rank - 2] = k;
        sum += number(load(a, i), a.dtype) * number(load(b, j), b.dtype);
      }
      if (step.inputs.size() > 3) sum += number(load(step.inputs[3], index), out.dtype);
      if (step.expressions.empty()) {
        store(out, index, pack(sum, out.dtype));
      } else {
        const ScalarBits result[] = {pack(sum, computed_in(out.dtype))};
        store(out, index, evaluate(step.expressions[0], result, scalars(step), index)[0]);
      }
    });
  }

  void arg_reduce(const Step& step) {
    const int64_t axis = attribute(step, "axis").integers[0];
    const bool greatest = attribute(step, "kind").texts.front() == "max";
    const StepOperand &x = step.inputs[0], &out = step.outputs[0];
    for_each_index(out.shape, [&](const std::vector<int64_t>& index) {
      std::vector<int64_t> at = index;
      int64_t best = 0;
      ScalarBits held = load(x, at);
      for (int64_t i = 1; i < x.shape[static_cast<size_t>(axis)]; ++i) {
        at[static_cast<size_t>(axis)] = i;
        const ScalarBits next = load(x, at);
        if (is_nan(held, x.dtype)) break;
        if (is_nan(next, x.dtype) || (greatest ? less(held, next, x.dtype) : less(next, held, x.dtype))) {
          best = i;
          held = next;
        }
      }
      store(out, index, scalar_from_int64(best, COMPUTE_DTYPE_INT64));
    });
  }

  const OpSchema* schema_;
  std::span<TestTensor> inputs_, outputs_;
  std::span<const RunTimeValue> run_time_;
  std::vector<uint8_t> temporaries_;
  const Lowering* lowering_ = nullptr;

 public:
  int64_t faults = 0;  // indices out of range
};

}  // namespace compute
