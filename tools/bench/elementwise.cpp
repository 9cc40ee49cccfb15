// SPDX-License-Identifier: Apache-2.0
// Every elementwise op of ops.def, and conversions, in two sizes. NumPy is their peer, in peers.py.
#include <algorithm>
#include <array>
#include <string_view>

#include "tools/bench/rows.hpp"

namespace compute::bench {
namespace {

constexpr int64_t kCounts[] = {10'000, 1'000'000};

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Numbers in [-1, 1), integers among all; some ops want others, so that NaN is not what is measured.
template <class T>
Tensor operand(std::string_view op, int index, int64_t n) {
  const Tensor x = values<T>({n}, static_cast<uint32_t>(index + 1));
  if constexpr (std::is_floating_point_v<T>) {
    if (op == "acosh") return abs(x) + T(1);
    if (is_one_of(op, {"log", "log2", "log10", "sqrt", "rsqrt"}) || (op == "pow" && index == 0))
      return abs(x) + T(0.001);
  } else if constexpr (std::is_same_v<T, int32_t>) {
    if (is_one_of(op, {"bitwise_left_shift", "bitwise_right_shift"}) && index == 1) return bitwise_and(x, int32_t{31});
    if (is_one_of(op, {"floor_divide", "remainder"}) && index == 1)
      return bitwise_or(bitwise_and(x, int32_t{1023}), int32_t{1});
    if (op == "pow" && index == 1) return bitwise_and(x, int32_t{7});
  }
  return x;
}

// What a row of ops.def takes, by the name in its column `inputs`.
enum Inputs { ANY, BOOL, INTEGER, BITS, REAL, FLOAT, COMPLEX, INEXACT, NUMERIC };

template <class T>
bool takes(Inputs inputs) {
  if (std::is_floating_point_v<T>)
    return inputs == ANY || inputs == REAL || inputs == FLOAT || inputs == INEXACT || inputs == NUMERIC;
  return inputs == ANY || inputs == INTEGER || inputs == BITS || inputs == REAL || inputs == NUMERIC;
}

// Ops with rows in memory_bound.cpp are left to it.
template <class T>
void add_op(const char* name, int arity, Inputs inputs) {
  if (!takes<T>(inputs) || (std::is_floating_point_v<T> && is_one_of(name, {"exp", "tanh", "add", "where"}))) return;
  for (const int64_t n : kCounts) {
    const double bytes = static_cast<double>(n) * sizeof(T) * (arity + 1);
    add_row(std::string(name) + "/" + dtype_text<T>() + "/" + std::to_string(n), {bytes, 0}, [name, arity, n] {
      const compute_op* op = nullptr;
      check(compute_op_find(name, 0, &op));
      std::vector<Tensor> operands;
      for (int i = 0; i < arity; ++i) operands.push_back(operand<T>(name, i, n));
      if (std::string_view(name) == "where") operands[0] = less(operands[0], T(0));
      std::array<compute_tensor*, 3> inputs{};
      for (int i = 0; i < arity; ++i) inputs[static_cast<size_t>(i)] = operands[static_cast<size_t>(i)].get();
      compute_tensor* made = nullptr;
      check(compute_op_run(op, nullptr, nullptr, 0, inputs.data(), arity, &made, 1));
      return [op, arity, operands, inputs, out = Tensor(made)] {
        compute_tensor* output = out.get();
        check(compute_op_run(op, nullptr, nullptr, 0, inputs.data(), arity, &output, 1));
      };
    });
  }
}

template <class From, class To>
void add_cast() {
  for (const int64_t n : kCounts) {
    const std::string row =
        std::string("cast_to_") + dtype_text<To>() + "/" + dtype_text<From>() + "/" + std::to_string(n);
    add_row(row, {static_cast<double>(n) * (sizeof(From) + sizeof(To)), 0}, [n] {
      const Tensor x = values<From>({n});
      return [x, y = cast(x, dtype_of<To>)] { cast_into(x, y, dtype_of<To>); };
    });
  }
}

template <class T>
void add_ops() {
#define COMPUTE_UNARY(name, version, inputs, ...) add_op<T>(#name, 1, inputs);
#define COMPUTE_BINARY(name, version, inputs, ...) add_op<T>(#name, 2, inputs);
#define COMPUTE_TERNARY(name, version, inputs, ...) add_op<T>(#name, 3, inputs);
#define COMPUTE_OP(...)
#include <compute/ops.def>
#undef COMPUTE_UNARY
#undef COMPUTE_BINARY
#undef COMPUTE_TERNARY
#undef COMPUTE_OP
}

}  // namespace

void add_elementwise_rows() {
  add_ops<float>();
  add_ops<double>();
  add_ops<int32_t>();
  add_cast<float, int32_t>();
  add_cast<double, int32_t>();
  add_cast<double, int64_t>();
  add_cast<int32_t, float>();
  add_cast<int32_t, double>();
  add_cast<int64_t, double>();
  add_cast<float, uint8_t>();
  add_cast<uint8_t, float>();
  add_cast<int32_t, int64_t>();
}

}  // namespace compute::bench
