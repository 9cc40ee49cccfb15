// SPDX-License-Identifier: Apache-2.0
#include "core/ops/schema.hpp"

#include <limits>
#include <set>

#include "tests/unit/op_caller.hpp"

namespace compute {
namespace {

struct Read {
  Attributes attributes;
  std::vector<RunTimeValue> run_time{kMaxRunTimeAttributes};
};

Read read(std::string_view op, const TestAttributes& given) {
  Read result;
  read_attributes(find_op(op, 0), given.list().data(), static_cast<int64_t>(given.list().size()), result.attributes,
                  result.run_time.data());
  return result;
}

std::string refusal(std::string_view op, const TestAttributes& given) {
  return error_of([&] { read(op, given); });
}

TEST(Schema, EveryRowIsThere) {
  std::set<std::string> names;
  const OpSchema* before = nullptr;
  size_t count = 0;
  for (const OpSchema* op : op_schemas()) {
    if (op->is_registered) continue;  // by another test in this process
    ++count;
    EXPECT_EQ(&op_schema(op->id), op);
    EXPECT_EQ(&find_op(op->name, op->version), op);
    EXPECT_TRUE(before == nullptr || before->name < op->name);
    before = op;
    names.insert(op->name);
    EXPECT_FALSE(op->summary.empty());
    EXPECT_EQ(op->inputs.size(), op->optional.size());
    EXPECT_EQ(static_cast<size_t>(op->output_count), op->outputs.size());
    EXPECT_GE(op->output_count, 1);
    EXPECT_LE(op->run_time.size(), op->attributes.size());
    if (op->is_elementwise) {
      EXPECT_TRUE(op->in_place());
      EXPECT_EQ(op->expression.input_count(), static_cast<int32_t>(op->inputs.size()));
    }
    EXPECT_EQ(op->name.find('.'), std::string::npos);
  }
  EXPECT_EQ(count, static_cast<size_t>(OpId::kCount));
  EXPECT_TRUE(names.contains("matmul") && names.contains("where") && names.contains("take_along_axis"));
}

TEST(Schema, Find) {
  EXPECT_EQ(find_op("exp", 0).id, OpId::k_exp_1);
  EXPECT_EQ(find_op("exp", 1).version, 1);
  const auto missing = [](std::string_view name, int32_t version) {
    return error_of([&] { find_op(name, version); }, COMPUTE_ERROR_NOT_FOUND);
  };
  EXPECT_EQ(missing("matmull", 0), "unknown op \"matmull\"; did you mean \"matmul\"?");
  EXPECT_EQ(missing("convolve", 0), "unknown op \"convolve\"");
  EXPECT_EQ(missing("", 0), "unknown op \"\"");
  EXPECT_EQ(missing("exp", 7), "exp has no version 7; known: 1");
}

TEST(Schema, ParsedRow) {
  const OpSchema& arange = op_schema(OpId::k_arange_1);
  EXPECT_TRUE(arange.inputs.empty());
  ASSERT_EQ(arange.attributes.size(), 4u);
  EXPECT_EQ(arange.attributes[0].name, "start");
  EXPECT_TRUE(arange.attributes[0].run_time);
  EXPECT_EQ(arange.attributes[0].kind, AttributeKind::kNumber);
  EXPECT_EQ(arange.attributes[1].default_int64, 1);
  EXPECT_TRUE(arange.attributes[2].required);
  EXPECT_EQ(arange.attributes[3].kind, AttributeKind::kDtype);
  EXPECT_EQ(arange.run_time, (std::vector<int32_t>{0, 1}));
  const OpSchema& concat = op_schema(OpId::k_concat_1);
  EXPECT_TRUE(concat.is_variadic);
  EXPECT_EQ(concat.input_name(0), "xs[0]");
  EXPECT_EQ(concat.input_name(3), "xs[3]");
  EXPECT_FALSE(concat.in_place());
  const OpSchema& scatter = op_schema(OpId::k_scatter_1);
  EXPECT_EQ(scatter.inputs, (std::vector<std::string>{"x", "indices", "updates"}));
  EXPECT_EQ(scatter.input_name(1), "indices");
  EXPECT_EQ(scatter.attributes[1].default_text, "set");
  EXPECT_TRUE(scatter.in_place());
  EXPECT_TRUE(op_schema(OpId::k_sum_1).attributes[0].is_list);
  EXPECT_FALSE(op_schema(OpId::k_sum_1).attributes[0].has_default);
}

TEST(Schema, OperandCounts) {
  const auto counts = [](const char* op, int64_t inputs, int64_t outputs) {
    return error_of([&] { check_operand_counts(find_op(op, 0), inputs, outputs); });
  };
  check_operand_counts(find_op("add", 0), 2, 1);
  check_operand_counts(find_op("concat", 0), 5, 1);
  check_operand_counts(find_op("fill", 0), 0, 1);
  EXPECT_EQ(counts("add", 3, 1), "add: expected 2 inputs, got 3");
  EXPECT_EQ(counts("exp", -1, 1), "exp: expected 1 input, got -1");
  EXPECT_EQ(counts("concat", 0, 1), "concat: expected 1 or more inputs, got 0");
  EXPECT_EQ(counts("concat", 100000, 1), "concat: expected 1 or more inputs, got 100000");
  EXPECT_EQ(counts("exp", 1, 2), "exp: expected 1 output, got 2");
}

TEST(Schema, DefaultsAreFilledIn) {
  const Read r = read("sum", {});
  EXPECT_FALSE(r.attributes.has(0));
  EXPECT_EQ(r.attributes.int64(1), 0);
  EXPECT_FALSE(r.attributes.has(2));
  for (int32_t i = 0; i < 3; ++i) EXPECT_TRUE(is_default(op_schema(OpId::k_sum_1), r.attributes, i));
  const Read same = read("sum", TestAttributes().int64("keepdims", 0));
  EXPECT_EQ(r.attributes, same.attributes);
  EXPECT_EQ(r.attributes.hash(), same.attributes.hash());
  const Read other =
      read("sum", TestAttributes().int64("keepdims", 1).ints("axes", {0, -1}).dtype("dtype", COMPUTE_DTYPE_INT8));
  EXPECT_FALSE(r.attributes == other.attributes);
  EXPECT_FALSE(is_default(op_schema(OpId::k_sum_1), other.attributes, 0));
  EXPECT_FALSE(is_default(op_schema(OpId::k_sum_1), other.attributes, 1));
  EXPECT_EQ(std::vector(other.attributes.int64_list(0).begin(), other.attributes.int64_list(0).end()),
            (std::vector<int64_t>{0, -1}));
  EXPECT_EQ(other.attributes.int64(1), 1);
  EXPECT_EQ(other.attributes.dtype(2), COMPUTE_DTYPE_INT8);
  // No axes is not the default of all axes.
  EXPECT_FALSE(read("sum", TestAttributes().ints("axes", {})).attributes == r.attributes);
  const Read scatter = read("scatter", {});
  EXPECT_EQ(scatter.attributes.string(1), "set");
  EXPECT_EQ(scatter.attributes, read("scatter", TestAttributes().string("reduction", "set")).attributes);
  EXPECT_EQ(read("scatter", TestAttributes().string("reduction", "")).attributes.string(1), "");
  EXPECT_EQ(read("scatter", TestAttributes().string("reduction", "a longer text").int64("deterministic", 1))
                .attributes.int64(2),
            1);
}

TEST(Schema, ManyValuesSpill) {
  std::vector<int64_t> axes(500);
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  const Read r = read("sum", TestAttributes().ints("axes", axes).int64("keepdims", 1));
  EXPECT_EQ(r.attributes.int64_list(0).size(), 500u);
  EXPECT_EQ(r.attributes.int64_list(0)[499], 499);
  EXPECT_EQ(r.attributes.int64(1), 1);
  Attributes copy = r.attributes;
  EXPECT_EQ(copy, r.attributes);
  const Attributes moved = std::move(copy);
  EXPECT_EQ(moved, r.attributes);
  copy = moved;
  EXPECT_EQ(copy.hash(), r.attributes.hash());
}

TEST(Schema, RunTimeAttributesArePutAside) {
  const Read r =
      read("arange", TestAttributes().int64("size", 3).dtype("dtype", COMPUTE_DTYPE_FLOAT32).float64("step", 0.5));
  EXPECT_EQ(r.run_time[0].kind, COMPUTE_KIND_INT64);
  EXPECT_TRUE(scalars_equal(r.run_time[0].bits, scalar_from_int64(0, COMPUTE_DTYPE_INT64)));
  EXPECT_EQ(r.run_time[1].kind, COMPUTE_KIND_FLOAT64);
  EXPECT_EQ(scalar_text(r.run_time[1].bits, r.run_time[1].dtype), "0.5");
  const Read other =
      read("arange", TestAttributes().int64("size", 3).dtype("dtype", COMPUTE_DTYPE_FLOAT32).float64("step", 7));
  EXPECT_EQ(r.attributes, other.attributes);
  EXPECT_EQ(read("var", {}).run_time[0].dtype, COMPUTE_DTYPE_FLOAT64);
  // A scalar tensor is handed on as it is.
  auto* handle = reinterpret_cast<compute_tensor*>(uintptr_t{64});
  const Read slot = read("fill", TestAttributes()
                                     .ints("shape", {1})
                                     .dtype("dtype", COMPUTE_DTYPE_INT8)
                                     .add("value", COMPUTE_KIND_SCALAR, 1, &handle));
  EXPECT_EQ(slot.run_time[0].scalar, handle);
  EXPECT_EQ(slot.run_time[0].kind, COMPUTE_KIND_SCALAR);
}

TEST(Schema, RefusalsNameOpAndAttribute) {
  EXPECT_EQ(refusal("sum", TestAttributes().int64("axs", 1)), "sum: unknown attribute \"axs\"; did you mean \"axes\"?");
  EXPECT_EQ(refusal("exp", TestAttributes().int64("axis", 1)),
            "exp: unknown attribute \"axis\"; the op takes no attributes");
  EXPECT_EQ(refusal("sum", TestAttributes().string("keepdims", "yes")),
            "sum: attribute keepdims takes an int64, not a string");
  EXPECT_EQ(refusal("sum", TestAttributes().float64("axes", 1)), "sum: attribute axes takes an int64, not a float64");
  EXPECT_EQ(refusal("sum", TestAttributes().int64("dtype", 3)), "sum: attribute dtype takes a dtype, not an int64");
  EXPECT_EQ(refusal("var", TestAttributes().int64("correction", 1)),
            "var: attribute correction takes a float64, not an int64");
  EXPECT_EQ(refusal("fill", TestAttributes().string("value", "1")),
            "fill: attribute value takes a number, not a string");
  EXPECT_EQ(refusal("sum", TestAttributes().add("keepdims", 77, 1, "")),
            "sum: attribute keepdims takes an int64, not kind 77");
  EXPECT_EQ(refusal("sum", TestAttributes().ints("keepdims", {1, 2})),
            "sum: attribute keepdims takes one value, not 2 values");
  EXPECT_EQ(refusal("sum", TestAttributes().add("axes", COMPUTE_KIND_INT64, -1, nullptr)),
            "sum: attribute axes takes a list, not -1 values");
  EXPECT_EQ(refusal("sum", TestAttributes().add("axes", COMPUTE_KIND_INT64, 2, nullptr)),
            "sum: attribute axes: values is NULL");
  EXPECT_EQ(refusal("sum", TestAttributes().ints("axes", std::vector<int64_t>(5000))),
            "sum: attribute axes has 5000 values; the limit is 4096");
  EXPECT_EQ(refusal("sum", TestAttributes().int64("keepdims", 1).int64("keepdims", 1)),
            "sum: attribute keepdims is given twice");
  EXPECT_EQ(refusal("sum", TestAttributes().dtype("dtype", 99)), "sum: attribute dtype: 99 is not a dtype");
  EXPECT_EQ(refusal("sum", TestAttributes().dtype("dtype", COMPUTE_DTYPE_NONE)),
            "sum: attribute dtype: 0 is not a dtype");
  EXPECT_EQ(refusal("cast", {}), "cast: attribute dtype is required");
  EXPECT_EQ(refusal("linspace", TestAttributes().int64("size", 1).dtype("dtype", 12).int64("start", 1)),
            "linspace: attribute stop is required");
  compute_tensor* none = nullptr;
  EXPECT_EQ(refusal("var", TestAttributes().add("correction", COMPUTE_KIND_SCALAR, 1, &none)),
            "var: attribute correction: the scalar is NULL");
  EXPECT_EQ(refusal("sum", TestAttributes().add("keepdims", COMPUTE_KIND_SCALAR, 1, &none)),
            "sum: attribute keepdims takes an int64, not a scalar");
  const compute_string bad{nullptr, 3};
  EXPECT_EQ(refusal("scatter", TestAttributes().add("reduction", COMPUTE_KIND_STRING, 1, &bad)),
            "scatter: attribute reduction: invalid string size 3");
}

TEST(Schema, StructSizes) {
  // A newer program's structs are larger; the step between them is the first one's size.
  struct Larger {
    compute_attribute attribute;
    int64_t more;
  };
  const int64_t one = 1, zero = 0;
  Larger list[2] = {};
  const char* names[] = {"keepdims", "axes"};
  const int64_t* given[] = {&one, &zero};
  for (int i = 0; i < 2; ++i) {
    list[i].attribute.struct_size = sizeof(Larger);
    list[i].attribute.name = names[i];
    list[i].attribute.name_size = static_cast<int64_t>(std::strlen(names[i]));
    list[i].attribute.kind = COMPUTE_KIND_INT64;
    list[i].attribute.count = 1;
    list[i].attribute.values = given[i];
  }
  Attributes attributes;
  const OpSchema& sum = op_schema(OpId::k_sum_1);
  const auto run = [&](const compute_attribute* first, int64_t count) {
    read_attributes(sum, first, count, attributes, nullptr);
  };
  run(&list[0].attribute, 2);
  EXPECT_EQ(attributes.int64(1), 1);
  EXPECT_EQ(attributes.int64_list(0).size(), 1u);
  const auto refused = [&](const compute_attribute* first, int64_t count) {
    return error_of([&] { run(first, count); });
  };
  list[1].attribute.struct_size = sizeof(compute_attribute);
  EXPECT_EQ(refused(&list[0].attribute, 2),
            "sum: attribute 1 has an invalid struct_size of " + std::to_string(sizeof(compute_attribute)));
  list[0].attribute.struct_size = 0;
  EXPECT_EQ(refused(&list[0].attribute, 2), "sum: attribute 0 has an invalid struct_size of 0");
  list[0].attribute.struct_size = sizeof(Larger) + 1;
  EXPECT_EQ(refused(&list[0].attribute, 1),
            "sum: attribute 0 has an invalid struct_size of " + std::to_string(sizeof(Larger) + 1));
  list[0].attribute.struct_size = sizeof(Larger);
  list[0].attribute.name = nullptr;
  EXPECT_EQ(refused(&list[0].attribute, 1), "sum: attribute 0 has no name");
  EXPECT_EQ(refused(nullptr, 1), "sum: attributes is NULL");
  EXPECT_EQ(refused(nullptr, -1), "sum: attribute_count is -1");
  run(nullptr, 0);
}

TEST(Schema, RunTimeScalarsKeepTheirMeaning) {
  const OpSchema& fill = op_schema(OpId::k_fill_1);
  const auto made = [&](RunTimeValue value, compute_dtype dtype) {
    return scalar_text(run_time_scalar(fill, 0, value, dtype), dtype);
  };
  const auto integer = [](int64_t x) {
    return RunTimeValue{COMPUTE_KIND_INT64, COMPUTE_DTYPE_INT64, scalar_from_int64(x, COMPUTE_DTYPE_INT64)};
  };
  const auto real = [](double x) {
    return RunTimeValue{COMPUTE_KIND_FLOAT64, COMPUTE_DTYPE_FLOAT64, scalar_from_double(x, COMPUTE_DTYPE_FLOAT64)};
  };
  const auto complex = [](double x, double y) {
    return RunTimeValue{COMPUTE_KIND_COMPLEX128, COMPUTE_DTYPE_COMPLEX128,
                        scalar_from_complex(x, y, COMPUTE_DTYPE_COMPLEX128)};
  };
  EXPECT_EQ(made(integer(-128), COMPUTE_DTYPE_INT8), "-128");
  EXPECT_EQ(made(real(3), COMPUTE_DTYPE_INT32), "3");
  EXPECT_EQ(made(real(-0.0), COMPUTE_DTYPE_UINT8), "0");
  EXPECT_EQ(made(integer(3), COMPUTE_DTYPE_FLOAT16), "3");
  EXPECT_EQ(made(real(0.1), COMPUTE_DTYPE_FLOAT32), "0.1");
  EXPECT_EQ(made(complex(2, 0), COMPUTE_DTYPE_FLOAT32), "2");
  EXPECT_EQ(made(complex(2, 1), COMPUTE_DTYPE_COMPLEX64), "2+1i");
  EXPECT_EQ(made(integer(7), COMPUTE_DTYPE_BOOL), "true");
  EXPECT_EQ(made(real(std::ldexp(1.0, 63)), COMPUTE_DTYPE_UINT64), "9223372036854775808");
  EXPECT_EQ(made(real(1e300), COMPUTE_DTYPE_FLOAT32), "inf");
  const auto refused = [&](RunTimeValue value, compute_dtype dtype, compute_error_code code) {
    return error_of([&] { run_time_scalar(fill, 0, value, dtype); }, code);
  };
  constexpr auto kArgument = COMPUTE_ERROR_INVALID_ARGUMENT, kRange = COMPUTE_ERROR_OUT_OF_RANGE;
  EXPECT_EQ(refused(real(1.5), COMPUTE_DTYPE_INT32, kArgument), "fill: value is 1.5, which does not fit in int32");
  EXPECT_EQ(refused(real(std::nan("")), COMPUTE_DTYPE_INT32, kArgument),
            "fill: value is nan, which does not fit in int32");
  EXPECT_EQ(refused(integer(300), COMPUTE_DTYPE_INT8, kRange), "fill: value is 300, which does not fit in int8");
  EXPECT_EQ(refused(integer(-1), COMPUTE_DTYPE_UINT64, kRange), "fill: value is -1, which does not fit in uint64");
  EXPECT_EQ(refused(integer(-129), COMPUTE_DTYPE_INT8, kRange), "fill: value is -129, which does not fit in int8");
  EXPECT_EQ(refused(real(1e30), COMPUTE_DTYPE_INT64, kRange), "fill: value is 1e+30, which does not fit in int64");
  EXPECT_EQ(refused(real(std::ldexp(1.0, 63)), COMPUTE_DTYPE_INT64, kRange),
            "fill: value is 9223372036854775808, which does not fit in int64");
  EXPECT_EQ(refused(complex(2, 1), COMPUTE_DTYPE_FLOAT32, kArgument),
            "fill: value is 2+1i, which does not fit in float32");
  const RunTimeValue large{COMPUTE_KIND_SCALAR, COMPUTE_DTYPE_UINT64,
                           scalar_from_uint64(UINT64_MAX, COMPUTE_DTYPE_UINT64)};
  EXPECT_EQ(refused(large, COMPUTE_DTYPE_INT64, kRange),
            "fill: value is 18446744073709551615, which does not fit in int64");
  EXPECT_EQ(made(large, COMPUTE_DTYPE_UINT64), "18446744073709551615");
}

}  // namespace
}  // namespace compute
