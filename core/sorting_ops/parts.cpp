// SPDX-License-Identifier: Apache-2.0
#include "core/sorting_ops/parts.hpp"

#include <bit>
#include <limits>
#include <string_view>

namespace compute {

namespace {

StepAttribute integer(const char* name, int64_t value) {
  StepAttribute attribute;
  attribute.name = name;
  attribute.integers = {value};
  return attribute;
}

StepAttribute text(const char* name, const char* value) {
  StepAttribute attribute;
  attribute.name = name;
  attribute.kind = COMPUTE_KIND_STRING;
  attribute.texts = {value};
  return attribute;
}

StepOperand reversed(StepOperand operand, int32_t axis) {
  const auto i = static_cast<size_t>(axis);
  operand.offset += (operand.shape[i] - 1) * operand.strides[i];
  operand.strides[i] = -operand.strides[i];
  return operand;
}

const char* combined_text(std::string_view kind) {
  if (kind == "sum") return "x + y";
  if (kind == "prod") return "x * y";
  return kind == "min" ? "min(x, y)" : "max(x, y)";
}

}  // namespace

std::vector<int64_t> shape_of(const OpCall& call) {
  const std::span<const int64_t> shape = call.inputs[0].extents();
  return {shape.begin(), shape.end()};
}

NativeParts native_parts(int32_t alternative) {
  return {alternative == 0 || alternative == 1, alternative == 0 || alternative == 2};
}

ScalarBits identity_of(const char* kind, compute_dtype dtype) {
  const std::string_view name = kind;
  if (name == "sum" || name == "prod")
    return convert_scalar(scalar_from_int64(name == "prod", COMPUTE_DTYPE_INT64), COMPUTE_DTYPE_INT64, dtype);
  const bool is_greatest = name == "min";
  if (is_float(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return scalar_from_double(is_greatest ? infinity : -infinity, dtype);
  }
  if (is_bool(dtype)) return scalar_from_int64(is_greatest, dtype);
  const int bits = dtype_size(dtype) * 8;
  if (!is_signed_integer(dtype)) {
    const uint64_t greatest = std::numeric_limits<uint64_t>::max() >> (64 - bits);
    return scalar_from_int64(is_greatest ? std::bit_cast<int64_t>(greatest) : 0, dtype);
  }
  const int64_t greatest = std::numeric_limits<int64_t>::max() >> (64 - bits);
  return scalar_from_int64(is_greatest ? greatest : -greatest - 1, dtype);
}

void fill_with_positions(Steps& steps, const StepOperand& positions, int32_t axis) {
  const std::string index = "index(" + std::to_string(axis) + ")";
  steps.map({convert_text(index, COMPUTE_DTYPE_INT64, positions.dtype)}, {}, positions);
}

// ---- scan -----------------------------------------------------------------------------------------------------------

namespace {

// Doubling: after step s each element is combined from 2^s of x. The two halves of a step write an array that it does
// not read.
void scan_in_steps(Steps& steps, const Scan& scan, StepOperand x, StepOperand y) {
  const auto axis = static_cast<size_t>(scan.axis);
  if (scan.reverse) {
    x = reversed(std::move(x), scan.axis);
    y = reversed(std::move(y), scan.axis);
  }
  if (scan.exclusive) {
    steps.fill(narrowed(y, scan.axis, 0, 1), identity_of(scan.kind, y.dtype));
    const int64_t rest = y.shape[axis] - 1;
    if (rest == 0) return;
    x = narrowed(std::move(x), scan.axis, 0, rest);
    y = narrowed(std::move(y), scan.axis, 1, rest);
  }
  const int64_t n = y.shape[axis];
  StepOperand from = steps.as_dtype(x, scan.accumulator);
  StepOperand other[2];
  for (int64_t distance = 1, turn = 0; distance < n; distance *= 2, turn = 1 - turn) {
    const bool is_last = distance * 2 >= n && scan.accumulator == y.dtype;
    StepOperand& made = other[turn];
    if (!is_last && made.is_absent()) made = steps.temporary(scan.accumulator, y.shape);
    const StepOperand to = is_last ? y : made;
    steps.copy(narrowed(from, scan.axis, 0, distance), narrowed(to, scan.axis, 0, distance));
    steps.map({combined_text(scan.kind)},
              {narrowed(from, scan.axis, 0, n - distance), narrowed(from, scan.axis, distance, n - distance)},
              narrowed(to, scan.axis, distance, n - distance));
    from = to;
  }
  if (n == 1 || scan.accumulator != y.dtype) steps.copy(from, y);
}

}  // namespace

void scan(Steps& steps, const Scan& scan, const StepOperand& x, const StepOperand& y, bool is_native) {
  if (!is_native) return scan_in_steps(steps, scan, x, y);
  Step& step = steps.add("scan", {x}, y);
  StepAttribute accumulator = integer("accumulator", scan.accumulator);
  accumulator.kind = COMPUTE_KIND_DTYPE;
  step.attributes = {integer("axis", scan.axis), text("kind", scan.kind), integer("exclusive", scan.exclusive),
                     integer("reverse", scan.reverse), std::move(accumulator)};
}

// ---- sort -----------------------------------------------------------------------------------------------------------

namespace {

// Pairs of elements that are compared and, where the second belongs before the first, exchanged.
class Exchanges {
 public:
  // Keys and their positions in x, of one shape; positions from `count` on sort after all others.
  Exchanges(Steps& steps, StepOperand keys, StepOperand positions, int32_t axis, int64_t count, bool descending)
      : steps_(steps), keys_(std::move(keys)), positions_(std::move(positions)), axis_(axis), count_(count) {
    const std::string less = descending ? "(y > x)" : "(y < x)", greater = descending ? "(x > y)" : "(x < y)";
    text_ = "p = z >= a; q = x3 >= a; ";
    text_ += is_float(keys_.dtype)
                 ? "n = isnan(x); m = isnan(y); before = (n & ~m) | " + less + "; after = (m & ~n) | " + greater + "; "
                 : "before = " + less + "; after = " + greater + "; ";
    text_ += "s = where(p == q, before | (~after & (x3 < z)), p); ";
    text_ += "where(s, y, x); where(s, x, y); where(s, x3, z); where(s, z, x3)";
  }

  // A bitonic network whose merges begin with a reversed half, so that all exchanges have one direction. K. E. Batcher,
  // "Sorting networks and their applications" (1968).
  void sort(int64_t size) {
    for (int64_t block = 2; block <= size; block *= 2) {
      const int64_t half = block / 2, mirrored[] = {size / block, block};
      exchange([&](const StepOperand& x) { return narrowed(split_axis(x, axis_, mirrored), axis_ + 1, 0, half); },
               [&](const StepOperand& x) {
                 return reversed(narrowed(split_axis(x, axis_, mirrored), axis_ + 1, half, half), axis_ + 1);
               });
      for (int64_t distance = half / 2; distance > 0; distance /= 2) {
        const int64_t parts[] = {size / (2 * distance), 2, distance};
        exchange([&](const StepOperand& x) { return narrowed(split_axis(x, axis_, parts), axis_ + 1, 0, 1); },
                 [&](const StepOperand& x) { return narrowed(split_axis(x, axis_, parts), axis_ + 1, 1, 1); });
      }
    }
  }

 private:
  template <class First, class Second>
  void exchange(const First& first, const Second& second) {
    const std::vector<StepOperand> operands = {first(keys_), second(keys_), first(positions_), second(positions_)};
    steps_.map({text_, {extent_term(count_)}}, operands, operands);
  }

  Steps& steps_;
  const StepOperand keys_, positions_;
  const int32_t axis_;
  const int64_t count_;
  std::string text_;
};

void sort_in_steps(Steps& steps, const StepOperand& x, int32_t axis, bool descending, const StepOperand& values,
                   const StepOperand& indices) {
  const int64_t count = x.shape[static_cast<size_t>(axis)];
  const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
  std::vector<int64_t> shape = x.shape;
  shape[static_cast<size_t>(axis)] = size;
  const compute_dtype key_dtype = is_bool(x.dtype) ? compute_dtype{COMPUTE_DTYPE_UINT8} : computed_in(x.dtype);
  const compute_dtype position_dtype = size <= INT32_MAX ? COMPUTE_DTYPE_INT32 : COMPUTE_DTYPE_INT64;
  const StepOperand keys = steps.temporary(key_dtype, shape), positions = steps.temporary(position_dtype, shape);
  steps.copy(x, narrowed(keys, axis, 0, count));
  if (size > count) steps.fill(narrowed(keys, axis, count, size - count), {});
  fill_with_positions(steps, positions, axis);
  Exchanges(steps, keys, positions, axis, count, descending).sort(size);
  if (!values.is_absent()) steps.copy(narrowed(keys, axis, 0, count), values);
  if (!indices.is_absent()) steps.copy(narrowed(positions, axis, 0, count), indices);
}

}  // namespace

void sort(Steps& steps, const StepOperand& x, int32_t axis, bool descending, const StepOperand& values,
          const StepOperand& indices, bool is_native) {
  if (!is_native) return sort_in_steps(steps, x, axis, descending, values, indices);
  std::vector<StepOperand> outputs;
  if (!values.is_absent()) outputs.push_back(values);
  if (!indices.is_absent()) outputs.push_back(indices);
  const char* wanted = outputs.size() == 2 ? "both" : values.is_absent() ? "indices" : "values";
  Step& step = steps.add("sort", {x}, std::move(outputs));
  step.attributes = {integer("axis", axis), integer("descending", descending), text("outputs", wanted)};
}

}  // namespace compute
