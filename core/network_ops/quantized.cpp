// SPDX-License-Identifier: Apache-2.0
// quantize, dequantize and quantized_matmul. The layout of packed numbers is that of
// docs/decisions/0051-quantised-weights.md: blocks of 32, of which a byte has the elements j and j + 16 with 4 bits.
#include <algorithm>
#include <utility>

#include "core/network_ops/product_steps.hpp"
#include "core/ops/rules.hpp"
#include "core/ops/steps.hpp"

namespace compute {

namespace {

constexpr int64_t kBlock = 32, kHalf = kBlock / 2;

int64_t divided_up(int64_t x, int64_t y) { return x / y + (x % y != 0 ? 1 : 0); }

struct Format {
  int64_t bits, group;

  int64_t levels() const { return (int64_t{1} << bits) - 1; }
  int64_t groups(int64_t k) const { return divided_up(k, group); }
  int64_t bytes(int64_t k) const { return divided_up(k, kBlock) * 4 * bits; }
  // Numbers in so many bytes.
  int64_t numbers(int64_t bytes) const { return bytes / (4 * bits) * kBlock; }
  // The offset in units of the scale where there are no offsets.
  std::string middle() const { return std::to_string(int64_t{1} << (bits - 1)); }
};

Format read_format(const OpCall& call) {
  const Format format{call.attributes.int64(attribute_index(call, "bits")),
                      call.attributes.int64(attribute_index(call, "group_size"))};
  if (format.bits != 4 && format.bits != 8)
    refuse_attribute(call, "bits", "bits is " + std::to_string(format.bits) + ", not 4 or 8");
  if (format.group != 16 && format.group != 32 && format.group != 64 && format.group != 128) {
    refuse_attribute(call, "group_size",
                     "group_size is " + std::to_string(format.group) + ", not one of 16, 32, 64, 128");
  }
  return format;
}

bool is_float_but_not_64(compute_dtype dtype) {
  return in_class(dtype, DtypeClass::kFloat) && dtype != COMPUTE_DTYPE_FLOAT64;
}

void require_scales(const OpCall& call, int32_t index) {
  const compute_dtype dtype = call.inputs[static_cast<size_t>(index)].dtype;
  if (is_float_but_not_64(dtype)) return;
  refuse(call, call.schema.input_name(index) + " is " + dtype_name(dtype) + "; expected float16, bfloat16 or float32",
         index);
}

compute_dtype dtype_or(const OpCall& call, compute_dtype otherwise) {
  const int32_t index = attribute_index(call, "dtype");
  return call.attributes.has(index) ? call.attributes.dtype(index) : otherwise;
}

// The inputs from `first` on, packed, scales and offsets?, with rows of k numbers.
void check_packed(const OpCall& call, int32_t first, const Format& format, std::span<const int64_t> leading,
                  int64_t k) {
  std::vector<int64_t> shape(leading.begin(), leading.end());
  shape.push_back(format.bytes(k));
  require_tensor(call, first, COMPUTE_DTYPE_UINT8, shape);
  require_scales(call, first + 1);
  shape.back() = format.groups(k);
  const compute_dtype dtype = call.inputs[static_cast<size_t>(first + 1)].dtype;
  require_tensor(call, first + 1, dtype, shape);
  const auto offsets = static_cast<size_t>(first + 2);
  if (offsets < call.inputs.size() && call.inputs[offsets].dtype != COMPUTE_DTYPE_NONE)
    require_tensor(call, first + 2, dtype, shape);
}

// ---- Pieces of rows -------------------------------------------------------------------------------------------------

int32_t last_axis(const StepOperand& x) { return static_cast<int32_t>(x.shape.size()) - 1; }

// Elements [start, start + groups * size) of the last axis as two axes.
StepOperand in_groups(const StepOperand& x, int64_t start, int64_t groups, int64_t size) {
  const int64_t extents[] = {groups, size};
  return split_axis(narrowed(x, last_axis(x), start, groups * size), last_axis(x), extents);
}

// Groups [first, first + count) of scales or offsets as two axes, of which the last repeats.
StepOperand of_groups(const StepOperand& x, int64_t first, int64_t count, int64_t size) {
  const int32_t axis = last_axis(x);
  return with_axis(narrowed(x, axis, first, count), axis + 1, size);
}

// Calls f(first group, groups, size of a group) for the whole groups, and for the last one if it is shorter.
template <class F>
void for_each_piece(const Format& format, int64_t k, const F& f) {
  const int64_t whole = k / format.group, rest = k % format.group;
  if (whole > 0) f(int64_t{0}, whole, format.group);
  if (rest > 0) f(whole, int64_t{1}, rest);
}

ScalarTerm number(compute_dtype dtype, double value, std::string_view name) {
  return ScalarTerm{{ScalarSource::kValue, 0, dtype, scalar_from_double(value, dtype)}, {dtype, false, true}}.named(
      name);
}

// ---- dequantize -----------------------------------------------------------------------------------------------------

// Adds the steps that write y [..., k] from its packed numbers.
void add_dequantize(Steps& steps, const Format& format, const StepOperand& packed, const StepOperand& scales,
                    const StepOperand& offsets, const StepOperand& y) {
  const int64_t k = y.shape.back();
  const compute_dtype computed = computed_in(y.dtype);
  const bool has_offsets = !offsets.is_absent();
  const std::string type = dtype_name(computed);
  const auto value = [&](const std::string& q, const char* scale, const char* offset) {
    const std::string number = "convert(" + q + ", " + type + ")", wide = convert_text(scale, scales.dtype, computed);
    const std::string text = has_offsets ? wide + " * " + number + " + " + convert_text(offset, offsets.dtype, computed)
                                         : wide + " * (" + number + " - " + format.middle() + ")";
    return convert_text(text, computed, y.dtype);
  };
  // Numbers that lie one to a byte, from number `start` of the rows on.
  const auto add_bytes = [&](const StepOperand& bytes, int64_t start, int64_t first, int64_t groups, int64_t size) {
    std::vector<StepOperand> inputs = {in_groups(bytes, first * format.group - start, groups, size),
                                       of_groups(scales, first, groups, size)};
    std::vector<std::string_view> names = {"p", "s"};
    if (has_offsets) {
      inputs.push_back(of_groups(offsets, first, groups, size));
      names.push_back("o");
    }
    steps.map({value("p", "s", "o"), {}, names}, std::move(inputs), in_groups(y, first * format.group, groups, size));
  };
  if (format.bits == 8) {
    for_each_piece(format, k,
                   [&](int64_t first, int64_t groups, int64_t size) { add_bytes(packed, 0, first, groups, size); });
    return;
  }
  // Whole blocks and groups: both halves of each byte at once. The index space is [..., units, blocks of a unit, 16].
  const int64_t unit = std::max(format.group, kBlock), units = k / unit, blocks = unit / kBlock;
  const auto split = [&](const StepOperand& x, int64_t width) {
    const int64_t extents[] = {units, blocks, width};
    return split_axis(narrowed(x, last_axis(x), 0, units * blocks * width), last_axis(x), extents);
  };
  if (units > 0) {
    const StepOperand bytes = split(packed, kHalf), numbers = split(y, kBlock);
    const auto half_of = [&](int64_t half) { return narrowed(numbers, last_axis(numbers), half * kHalf, kHalf); };
    const auto groups_of = [&](const StepOperand& x, int64_t half) {
      if (format.group >= kBlock) return with_axis(of_groups(x, 0, units, blocks), last_axis(x) + 2, kHalf);
      const int32_t last = last_axis(x);  // of group_size 16: each half of a block is a group
      return with_axis(narrowed(in_groups(x, 0, units, 2), last + 1, half, 1), last + 2, kHalf);
    };
    std::vector<StepOperand> inputs = {bytes};
    std::vector<std::string_view> names = {"p"};
    constexpr const char *kScales[] = {"s", "t"}, *kOffsets[] = {"o", "v"};
    const int64_t kinds = format.group >= kBlock ? 1 : 2;
    for (int64_t half = 0; half < kinds; ++half) {
      inputs.push_back(groups_of(scales, half));
      names.emplace_back(kScales[half]);
      if (!has_offsets) continue;
      inputs.push_back(groups_of(offsets, half));
      names.emplace_back(kOffsets[half]);
    }
    const std::string low = value("p & 15", kScales[0], kOffsets[0]),
                      high = value("p >> 4", kScales[kinds - 1], kOffsets[kinds - 1]);
    steps.map({low + "; " + high, {}, names}, std::move(inputs), std::vector<StepOperand>{half_of(0), half_of(1)});
  }
  const int64_t done = units * unit;
  if (done == k) return;
  // The rest, of at most two groups: one number to a byte first.
  const int64_t rest_blocks = divided_up(k - done, kBlock);
  std::vector<int64_t> shape = y.shape;
  shape.back() = rest_blocks * kBlock;
  const StepOperand bytes = steps.temporary(COMPUTE_DTYPE_UINT8, shape),
                    blocks_of_bytes = in_groups(bytes, 0, rest_blocks, kBlock);
  steps.map({"p & 15; p >> 4", {}, {"p"}}, {in_groups(packed, done / 2, rest_blocks, kHalf)},
            std::vector<StepOperand>{narrowed(blocks_of_bytes, last_axis(blocks_of_bytes), 0, kHalf),
                                     narrowed(blocks_of_bytes, last_axis(blocks_of_bytes), kHalf, kHalf)});
  for_each_piece(format, k, [&](int64_t first, int64_t groups, int64_t size) {
    const int64_t begin = std::max(first, done / format.group);
    if (begin < first + groups) add_bytes(bytes, done, begin, first + groups - begin, size);
  });
}

std::vector<OutputDesc> infer_dequantize(const OpCall& call) {
  const Format format = read_format(call);
  const OperandDesc& packed = call.inputs[0];
  if (packed.rank == 0) refuse(call, "packed has rank 0; expected bytes along the last axis", 0);
  require_scales(call, 1);
  const int64_t size = extent_attribute(call, "size");
  const int64_t k = size > 0 ? size : format.numbers(packed.shape[packed.rank - 1]);
  const std::span<const int64_t> leading = packed.extents().first(static_cast<size_t>(packed.rank - 1));
  check_packed(call, 0, format, leading, k);
  std::vector<int64_t> shape(leading.begin(), leading.end());
  shape.push_back(k);
  const compute_dtype dtype = dtype_or(call, call.inputs[1].dtype);
  if (!in_class(dtype, DtypeClass::kFloat))
    refuse_attribute(call, "dtype", "dtype is " + dtype_name(dtype) + "; expected a floating-point dtype");
  return {{dtype, std::move(shape)}};
}

std::optional<Lowering> lower_dequantize(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  add_dequantize(steps, read_format(call), steps.input(0), steps.input(1), steps.input(2), steps.output());
  return steps.take();
}

// ---- quantize -------------------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_quantize(const OpCall& call) {
  const Format format = read_format(call);
  flag_attribute(call, "symmetric");
  require_class(call, 0, DtypeClass::kFloat);
  const OperandDesc& x = call.inputs[0];
  if (x.rank == 0) refuse(call, "x has rank 0; expected numbers along the last axis", 0);
  const compute_dtype dtype = dtype_or(call, x.dtype == COMPUTE_DTYPE_FLOAT64 ? COMPUTE_DTYPE_FLOAT32 : x.dtype);
  if (!is_float_but_not_64(dtype))
    refuse_attribute(call, "dtype", "dtype is " + dtype_name(dtype) + "; expected float16, bfloat16 or float32");
  const int64_t k = x.shape[x.rank - 1];
  std::vector<int64_t> packed(x.extents().begin(), x.extents().end()), groups = packed;
  packed.back() = format.bytes(k);
  groups.back() = format.groups(k);
  return {{COMPUTE_DTYPE_UINT8, std::move(packed)}, {dtype, groups}, {dtype, groups}};
}

std::optional<Lowering> lower_quantize(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  if (alternative > 0) return std::nullopt;
  Steps steps(call, target);
  const Format format = read_format(call);
  const bool is_symmetric = flag_attribute(call, "symmetric");
  const StepOperand x = steps.input(0), packed = steps.output(0), scales = steps.output(1), offsets = steps.output(2);
  const compute_dtype computed = COMPUTE_DTYPE_FLOAT32, stored = scales.dtype;
  const int64_t k = x.shape.back();

  const StepOperand least = steps.temporary(computed, scales.shape), greatest = steps.temporary(computed, scales.shape);
  const auto kept = [&](const StepOperand& of, int64_t first, int64_t groups) {
    return of_groups(of, first, groups, 1);
  };
  const int64_t axis = last_axis(x) + 1;
  const std::string wide_x = convert_text("x", x.dtype, computed);
  for_each_piece(format, k, [&](int64_t first, int64_t groups, int64_t size) {
    const StepOperand piece = in_groups(x, first * format.group, groups, size);
    if (is_symmetric) {
      steps.reduce("max", computed, {&axis, 1}, {"abs(" + wide_x + ")"}, {piece}, {"x"}, kept(greatest, first, groups));
      return;
    }
    steps.reduce("min", computed, {&axis, 1}, {wide_x}, {piece}, {"x"}, kept(least, first, groups));
    steps.reduce("max", computed, {&axis, 1}, {wide_x}, {piece}, {"x"}, kept(greatest, first, groups));
  });
  if (is_symmetric) {
    const auto levels = static_cast<double>(format.levels() / 2);
    steps.map({convert_text("(x / levels)", computed, stored), {number(computed, levels, "levels")}}, {greatest},
              scales);
    steps.map(
        {convert_text("(-" + format.middle() + " * " + convert_text("x", stored, computed) + ")", computed, stored)},
        {scales}, offsets);
  } else {
    steps.map({convert_text("((y - x) / levels)", computed, stored) + "; " + convert_text("x", computed, stored),
               {number(computed, static_cast<double>(format.levels()), "levels")}},
              {least, greatest}, std::vector<StepOperand>{scales, offsets});
  }

  StepOperand bytes = packed;
  if (format.bits == 4) {
    std::vector<int64_t> shape = packed.shape;
    shape.back() *= 2;
    bytes = steps.temporary(COMPUTE_DTYPE_UINT8, shape);
  }
  const std::string levels = std::to_string(format.levels());
  const std::string q = "convert(min(max(round((" + wide_x + " - " + convert_text("o", stored, computed) + ") / " +
                        convert_text("s", stored, computed) + "), 0), " + levels + "), uint8)";
  for_each_piece(format, k, [&](int64_t first, int64_t groups, int64_t size) {
    steps.map({q, {}, {"x", "s", "o"}},
              {in_groups(x, first * format.group, groups, size), of_groups(scales, first, groups, size),
               of_groups(offsets, first, groups, size)},
              in_groups(bytes, first * format.group, groups, size));
  });
  const int64_t padded = bytes.shape.back();
  if (padded > k) steps.fill(narrowed(bytes, last_axis(bytes), k, padded - k), {});
  if (format.bits == 8) return steps.take();
  const StepOperand blocks = in_groups(bytes, 0, padded / kBlock, kBlock);
  steps.map({"x | (y << 4)"},
            {narrowed(blocks, last_axis(blocks), 0, kHalf), narrowed(blocks, last_axis(blocks), kHalf, kHalf)},
            in_groups(packed, 0, padded / kBlock, kHalf));
  return steps.take();
}

// ---- quantized_matmul -----------------------------------------------------------------------------------------------

std::vector<OutputDesc> infer_quantized_matmul(const OpCall& call) {
  const Format format = read_format(call);
  require_class(call, 0, DtypeClass::kFloat);
  const OperandDesc &x = call.inputs[0], &weight = call.inputs[1];
  if (x.rank == 0) refuse(call, "x has rank 0; expected features along the last axis", 0);
  if (weight.rank != 2) refuse(call, "weight has shape " + shape_text(weight.extents()) + "; expected two axes", 1);
  const int64_t n = weight.shape[0];
  check_packed(call, 1, format, {&n, 1}, x.shape[x.rank - 1]);
  std::vector<int64_t> shape(x.extents().begin(), x.extents().end());
  shape.back() = n;
  return {{x.dtype, std::move(shape)}};
}

// Alternative 0: the dequantised weights, and a product; 1: sums of products.
std::optional<Lowering> lower_quantized_matmul(const OpCall& call, const LoweringTarget& target, int32_t alternative) {
  Steps steps(call, target);
  StepOperand x = steps.input(0), y = steps.output();
  const int64_t k = x.shape.back(), n = y.shape.back();
  if (k == 0) {
    if (alternative > 0) return std::nullopt;
    steps.fill(y, {});
    return steps.take();
  }
  if (alternative > 1) return std::nullopt;
  collapse_rows(x, y);
  const int64_t whole[] = {n, k};
  StepOperand weight = steps.temporary(x.dtype, whole);
  add_dequantize(steps, read_format(call), steps.input(1), steps.input(2), steps.input(3), weight);
  constexpr int32_t kTransposed[] = {1, 0};
  weight = permuted(weight, kTransposed);
  std::vector<int64_t> shape(y.shape.begin(), y.shape.end() - 2);
  shape.insert(shape.end(), {k, n});
  weight = broadcast_to(weight, shape);
  if (alternative == 0) {
    add_contraction(steps, x, weight, {}, y);
  } else {
    add_sums(steps, x, weight, y);
  }
  return steps.take();
}

}  // namespace

const OpRules dequantize_1_rules{infer_dequantize, lower_dequantize};
const OpRules quantize_1_rules{infer_quantize, lower_quantize};
const OpRules quantized_matmul_1_rules{infer_quantized_matmul, lower_quantized_matmul, true};

}  // namespace compute
