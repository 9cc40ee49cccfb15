// SPDX-License-Identifier: Apache-2.0
// Tensors and views: their properties, and that reading and writing through them reaches the right bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "registry.hpp"

namespace compute::conformance {

namespace {

using oracle::Inputs;

const Bound kExact{Bound::EXACT, 0};

Shape shape_of(compute_tensor* x) {
  const int64_t* shape = compute_tensor_shape(x);
  return Shape(shape, shape + compute_tensor_rank(x));
}

Shape strides_of(compute_tensor* x) {
  const int64_t* strides = compute_tensor_strides(x);
  return Shape(strides, strides + compute_tensor_rank(x));
}

Array counting(Dtype dtype, const Shape& shape) {
  Array x(dtype, shape);
  for (int64_t i = 0; i < x.size(); ++i)
    x.set(i, oracle::is_inexact(dtype) ? Value::of(static_cast<Real>(i)) : Value::of(static_cast<oracle::Integer>(i)));
  return x;
}

void expect_equal(const Session& session, const Operand& x, const std::string& what) {
  EXPECT_EQ(shape_of(x.tensor), x.array.shape()) << what;
  const oracle::Result expected = oracle::reference_copy(std::span(&x.array, 1), {});
  const oracle::Verdict verdict = oracle::judge(session.download(x.tensor), expected, kExact);
  EXPECT_TRUE(verdict.passed()) << what << ": " << verdict.message;
}

// Complex elements at odd multiples of half their size.
void complex_at_halves_of(const Session& session, Dtype dtype) {
  const Shape shape = {8, 9};
  const int64_t length = shape[0] * shape[1];
  Inputs inputs(22);
  const auto operand = [&] { return session.upload(inputs.uniform(dtype, {length + 1}, -2, 2)); };
  const auto in_halves = [&] { return halfway(operand(), shape); };
  const Operand x = in_halves(), y = in_halves();
  expect_equal(session, x, "read");
  session.expect("copy", {}, std::span(&x, 1), kExact, "");
  session.expect("add", {}, std::vector<Operand>{x, y}, bound_of("add", dtype), "");
  session.expect("sum", {}, std::span(&x, 1), bound_of("sum", dtype), "");
  session.expect("matmul", {}, std::vector<Operand>{x, permuted(y, {1, 0})}, bound_of("matmul", dtype), "");
  const auto bank = [&](const Shape& extents) {
    return halfway(session.upload(inputs.uniform(dtype, {oracle::element_count(extents) + 1}, -2, 2)), extents);
  };
  session.expect("convolution", {}, std::vector<Operand>{bank({2, 3, 8, 9}), bank({4, 3, 3, 3})},
                 bound_of("convolution", dtype), "");
  const Dtype other = dtype == dtype::COMPLEX64 ? dtype::COMPLEX128 : dtype::COMPLEX64;
  if (session.supports(dtype, COMPUTE_DTYPE_LEVEL_CONVERT) && session.supports(other, COMPUTE_DTYPE_LEVEL_CONVERT))
    session.expect("cast", {{"dtype", int64_t{other}}}, std::span(&x, 1), bound_of("cast", other), "");
  // Into such a place.
  const Operand memory = operand(), result = halfway(memory, shape);
  const Operand both[] = {x, y};
  session.expect("copy", {}, std::span(&x, 1), kExact, "into halves", nullptr, result.tensor);
  session.expect("add", {}, both, bound_of("add", dtype), "into halves", nullptr, result.tensor);
  session.expect("sum", {{"axes", Shape{1}}, {"keepdims", int64_t{1}}}, std::span(&x, 1), bound_of("sum", dtype),
                 "into halves", nullptr, sliced(result, {0, 4}, {8, 1}, {1, 1}).tensor);
  const Array all = session.download(memory.tensor);
  EXPECT_EQ(all.at(0).re, memory.array.at(0).re) << "wrote in front of the view";
  EXPECT_EQ(all.at(length).im, memory.array.at(length).im) << "wrote behind the view";
  // What is there is read, too.
  const Operand sum[] = {in_halves(), y};
  session.expect("add", {}, sum, bound_of("add", dtype), "in place", nullptr, sum[0].tensor);
  if (!session.supports(dtype::INT64, COMPUTE_DTYPE_LEVEL_STORAGE)) return;
  Array rows(dtype::INT64, {3, shape[1]});
  for (int64_t i = 0; i < rows.size(); ++i) rows.set(i, Value::of(oracle::Integer{5 - 2 * (i / shape[1])}));
  const Operand scattered[] = {in_halves(), session.upload(rows), sliced(y, {0, 0}, rows.shape(), {1, 1})};
  session.expect("scatter", {}, scattered, kExact, "in place", nullptr, scattered[0].tensor);
}

void complex_at_halves(const Session& session) {
  for (const Dtype dtype : {dtype::COMPLEX64, dtype::COMPLEX128}) {
    if (dtype != dtype::COMPLEX64 && session.level() != Level::FULL) continue;
    if (session.supports(dtype, COMPUTE_DTYPE_LEVEL_ARITHMETIC)) complex_at_halves_of(session, dtype);
  }
}

// Up and down again, in every dtype: the very same bytes.
void round_trip(const Session& session) {
  for (const oracle::DtypeInfo& info : oracle::kDtypes) {
    if (!session.supports(info.id, COMPUTE_DTYPE_LEVEL_STORAGE)) continue;
    Inputs inputs(21);
    for (const Shape& shape : std::vector<Shape>{{}, {0}, {1}, {7, 0, 2}, {1027}, {5, 7, 3}}) {
      const Array x = inputs.operand("copy", 0, 1, info.id, shape);
      const Operand up = session.upload(x);
      EXPECT_EQ(compute_tensor_dtype(up.tensor), info.id);
      EXPECT_EQ(shape_of(up.tensor), shape);
      EXPECT_EQ(strides_of(up.tensor), oracle::row_major_strides(shape));
      EXPECT_EQ(compute_tensor_element_count(up.tensor), x.size());
      EXPECT_EQ(compute_tensor_size_bytes(up.tensor), x.size_bytes());
      EXPECT_EQ(compute_tensor_offset_bytes(up.tensor), 0);
      EXPECT_EQ(compute_tensor_device(up.tensor), session.device());
      const Array down = session.download(up.tensor);
      if (x.size() > 0) {
        EXPECT_EQ(std::memcmp(down.data(), up.array.data(), static_cast<size_t>(x.size_bytes())), 0)
            << info.name << oracle::describe(shape);
      }
    }
    // Every element of a full tensor has the value's bytes.
    const Array one = inputs.uniform(info.id, {}, 1, 1);
    const int64_t shape[] = {3, 111};
    Tensor full;
    check(compute_tensor_full(session.device(), info.id, 2, shape, one.data(), full.out()));
    expect_equal(session, {one.broadcast_to({3, 111}), full}, std::string("full ") + info.name);
  }
}

void views(const Session& session) {
  const Operand x = session.upload(counting(dtype::INT32, {4, 6, 5}));
  const auto view_of = [&](auto make) {
    Tensor view;
    check(make(view.out()));
    EXPECT_EQ(compute_tensor_shares_buffer(view, x.tensor), 1);
    return view;
  };

  const int64_t two[] = {8, -1};
  Operand reshaped{x.array.reshape({8, 15}),
                   view_of([&](compute_tensor** out) { return compute_tensor_reshape(x.tensor, 2, two, out); })};
  expect_equal(session, reshaped, "reshape");
  Operand reversed{x.array.permute({2, 1, 0}),
                   view_of([&](compute_tensor** out) { return compute_tensor_permute(x.tensor, 3, nullptr, out); })};
  expect_equal(session, reversed, "permute by NULL");
  EXPECT_EQ(strides_of(reversed.tensor), (Shape{1, 5, 30}));
  expect_equal(session, permuted(x, {1, 2, 0}), "permute");
  Operand expanded{x.array.expand(3),
                   view_of([&](compute_tensor** out) { return compute_tensor_expand(x.tensor, -1, out); })};
  expect_equal(session, expanded, "expand");
  Operand squeezed{x.array, {}};
  check(compute_tensor_squeeze(expanded.tensor, 3, squeezed.tensor.out()));
  expect_equal(session, squeezed, "squeeze");
  const Operand row = sliced(x, {2, 0, 0}, {1, 6, 5}, {1, 1, 1});
  EXPECT_EQ(compute_tensor_offset_bytes(row.tensor), 2 * 30 * 4);
  const Operand repeated = broadcast(row, {3, 6, 5});
  EXPECT_EQ(strides_of(repeated.tensor)[0], 0);
  expect_equal(session, repeated, "broadcast");
  expect_equal(session, broadcast(row, {2, 1, 6, 5}), "broadcast with a new axis");

  // Views of views.
  expect_equal(
      session,
      sliced(permuted(sliced(x, {3, 1, 4}, {2, 5, 3}, {-2, 1, -2}), {2, 0, 1}), {0, 1, 4}, {3, 1, 2}, {1, 1, -3}),
      "views of views");
  for (Layout layout : kEveryLayout) {
    const Shape shape = {3, 4, 5};
    expect_equal(session, view(layout, session.upload(counting(dtype::FLOAT32, base_shape(layout, shape))), shape),
                 name(layout));
  }

  // The same bytes as another dtype.
  if (!session.supports(dtype::UINT32, COMPUTE_DTYPE_LEVEL_STORAGE)) return;
  const int64_t shape[] = {6}, strides[] = {2};
  Tensor bits;
  check(compute_tensor_view(x.tensor, COMPUTE_DTYPE_UINT32, 1, shape, strides, 40, bits.out()));
  EXPECT_EQ(compute_tensor_dtype(bits), COMPUTE_DTYPE_UINT32);
  const Array read = session.download(bits);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(static_cast<int64_t>(read.at(i).integer), 10 + 2 * i);

  // The parts of complex numbers.
  if (!session.supports(dtype::COMPLEX64, COMPUTE_DTYPE_LEVEL_STORAGE)) return;
  Array numbers(dtype::COMPLEX64, {4});
  for (int64_t i = 0; i < 4; ++i)
    numbers.set(i, Value::of(oracle::Complex(static_cast<Real>(2 * i), static_cast<Real>(2 * i + 1))));
  const Operand z = session.upload(numbers);
  const int64_t count[] = {8};
  Tensor parts;
  check(compute_tensor_view(z.tensor, COMPUTE_DTYPE_FLOAT32, 1, count, nullptr, 0, parts.out()));
  const Array each = session.download(parts);
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(each.at(i).re, static_cast<Real>(i));
}

// Python's rules for starts and stops.
void slices(const Session& session) {
  const struct {
    int64_t start, stop, step;
    std::vector<int64_t> elements;
  } kSlices[] = {
      {2, 5, 1, {2, 3, 4}},
      {-3, INT64_MAX, 1, {7, 8, 9}},
      {0, -7, 1, {0, 1, 2}},
      {INT64_MIN, INT64_MAX, 4, {0, 4, 8}},
      {INT64_MIN, INT64_MAX, -4, {9, 5, 1}},
      {-100, 100, 5, {0, 5}},
      {8, 2, -3, {8, 5}},
      {100, -100, -6, {9, 3}},
      {5, 5, 1, {}},
      {7, 3, 1, {}},
      {3, 7, -1, {}},
      {4, 5, 100, {4}},
  };
  const Operand x = session.upload(counting(dtype::INT64, {10}));
  for (const auto& slice : kSlices) {
    Tensor view;
    check(compute_tensor_slice(x.tensor, 1, &slice.start, &slice.stop, &slice.step, view.out()));
    const Array read = session.download(view);
    std::vector<int64_t> elements;
    for (int64_t i = 0; i < read.size(); ++i) elements.push_back(static_cast<int64_t>(read.at(i).integer));
    EXPECT_EQ(elements, slice.elements) << slice.start << ":" << slice.stop << ":" << slice.step;
  }
  Tensor whole;
  check(compute_tensor_slice(x.tensor, 1, nullptr, nullptr, nullptr, whole.out()));
  EXPECT_EQ(shape_of(whole), (Shape{10}));
}

void view_errors(const Session& session) {
  const Operand x = session.upload(counting(dtype::INT32, {4, 6}));
  Tensor view;
  const auto refused = [&](compute_error* raw, compute_error_code code, const char* text) {
    const Error error(raw);
    EXPECT_EQ(error.code(), code) << text << ": " << error.message();
    EXPECT_TRUE(error.mentions(text)) << error.message();
    EXPECT_EQ(view.get(), nullptr);
  };
  const int64_t five[] = {5, 5}, twice[] = {-1, -1}, six[] = {6, 4}, big[] = {3, 6};
  const int32_t same[] = {0, 0}, beyond[] = {0, 2};
  const int64_t zero[] = {0, 0}, far[] = {1 << 20};
  refused(compute_tensor_reshape(x.tensor, 2, five, view.out()), COMPUTE_ERROR_INVALID_ARGUMENT, "[5,5]");
  refused(compute_tensor_reshape(x.tensor, 2, twice, view.out()), COMPUTE_ERROR_INVALID_ARGUMENT, "-1");
  const Operand turned = permuted(x, {1, 0});
  const int64_t flat[] = {24};
  refused(compute_tensor_reshape(turned.tensor, 1, flat, view.out()), COMPUTE_ERROR_UNSUPPORTED, "copy");
  refused(compute_tensor_permute(x.tensor, 2, same, view.out()), COMPUTE_ERROR_INVALID_ARGUMENT, "ax");
  refused(compute_tensor_permute(x.tensor, 2, beyond, view.out()), COMPUTE_ERROR_INVALID_ARGUMENT, "ax");
  refused(compute_tensor_slice(x.tensor, 2, nullptr, nullptr, zero, view.out()), COMPUTE_ERROR_INVALID_ARGUMENT,
          "step");
  refused(compute_tensor_broadcast(x.tensor, 2, big, view.out()), COMPUTE_ERROR_INVALID_ARGUMENT, "[4,6]");
  refused(compute_tensor_squeeze(x.tensor, 0, view.out()), COMPUTE_ERROR_INVALID_ARGUMENT, "4");
  refused(compute_tensor_expand(x.tensor, 7, view.out()), COMPUTE_ERROR_INVALID_ARGUMENT, "7");
  const Error outside(compute_tensor_view(x.tensor, COMPUTE_DTYPE_INT32, 1, far, nullptr, 0, view.out()));
  EXPECT_TRUE(outside.code() == COMPUTE_ERROR_INVALID_ARGUMENT || outside.code() == COMPUTE_ERROR_OUT_OF_RANGE)
      << outside.message();
  const Error other_size(compute_tensor_view(x.tensor, COMPUTE_DTYPE_FLOAT64, 2, six, nullptr, 0, view.out()));
  EXPECT_EQ(other_size.code(), COMPUTE_ERROR_INVALID_ARGUMENT) << other_size.message();
}

// Writing through a view changes only the elements of the view.
void write_through_views(const Session& session) {
  for (Layout layout : {Layout::TRANSPOSED, Layout::STEPPED, Layout::NEGATIVE, Layout::OFFSET, Layout::PERMUTED}) {
    const Shape shape = {5, 7};
    const Operand base = session.upload(counting(dtype::INT16, base_shape(layout, shape)));
    Operand part = view(layout, base, shape);
    Array replacement(dtype::INT16, shape);
    for (int64_t i = 0; i < replacement.size(); ++i) {
      replacement.set(i, Value::of(static_cast<oracle::Integer>(-1 - i)));
      part.array.set(i, replacement.at(i));
    }
    check(compute_tensor_write(part.tensor, replacement.data(), replacement.size_bytes()));
    expect_equal(session, base, std::string("written through ") + name(layout));
  }
}

void map(const Session& session) {
  const Operand x = session.upload(counting(dtype::FLOAT32, {6, 8}));
  for (const Operand& view : {x, permuted(x, {1, 0}), sliced(x, {5, 1}, {3, 4}, {-2, 2})}) {
    void* data = nullptr;
    int32_t is_copy = -1;
    check(compute_tensor_map(view.tensor, COMPUTE_ACCESS_READ, &data, &is_copy));
    ASSERT_NE(data, nullptr);
    const Shape strides = is_copy ? oracle::row_major_strides(view.array.shape()) : strides_of(view.tensor);
    for (int64_t i = 0; i < view.array.shape()[0]; ++i) {
      for (int64_t j = 0; j < view.array.shape()[1]; ++j) {
        const float element = static_cast<float*>(data)[i * strides[0] + j * strides[1]];
        EXPECT_EQ(element, static_cast<float>(view.array.at(i * view.array.shape()[1] + j).re));
      }
    }
    check(compute_tensor_unmap(view.tensor, data));
  }
  // What is written while mapped is seen by ops afterwards.
  void* data = nullptr;
  int32_t is_copy = 0;
  check(compute_tensor_map(x.tensor, COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE, &data, &is_copy));
  static_cast<float*>(data)[9] = 1000;
  check(compute_tensor_unmap(x.tensor, data));
  Array changed = x.array.copy();
  changed.set(9, Value::of(Real{1000}));
  const Operand now{changed, x.tensor};
  session.expect("negative", {}, std::span(&now, 1), bound_of("negative", dtype::FLOAT32), "after unmap");
}

void asynchronous_copies(const Session& session) {
  const Stream stream = session.stream();
  Array x = counting(dtype::FLOAT32, {3000});
  const Operand t{x, session.empty(dtype::FLOAT32, {3000})};
  check(compute_tensor_write_async(t.tensor, x.data(), x.size_bytes(), stream));
  const Tensor doubled = session.run("add", {}, std::vector<Operand>{t, t}, stream);
  Array down(dtype::FLOAT32, {3000});
  check(compute_tensor_read_async(doubled, down.data(), down.size_bytes(), stream));
  check(compute_stream_synchronize(stream));
  const Array inputs[] = {x, x};
  oracle::Result expected = reference("add", {}, std::vector<Operand>{t, t});
  const oracle::Verdict verdict = oracle::judge(down, expected, bound_of("add", dtype::FLOAT32));
  EXPECT_TRUE(verdict.passed()) << verdict.message;
  check(compute_tensor_synchronize(doubled));
}

// Of a dense tensor, of a view with negative and zero strides, while work on it may be queued, and of a scalar.
void elements(const Session& session) {
  const Operand x = session.upload(counting(dtype::INT32, {5, 9}));
  const int64_t starts[] = {4, 1}, stops[] = {0, INT64_MAX}, steps[] = {-2, 3};
  Tensor part;
  check(compute_tensor_slice(x.tensor, 2, starts, stops, steps, part.out()));
  for (const compute_tensor* each : {x.tensor.get(), part.get()}) {
    auto* const tensor = const_cast<compute_tensor*>(each);
    const int64_t rows = compute_tensor_shape(tensor)[0], columns = compute_tensor_shape(tensor)[1];
    std::vector<int32_t> all(static_cast<size_t>(rows * columns));
    check(compute_tensor_read(tensor, all.data(), compute_tensor_size_bytes(tensor)));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t indices[] = {i, j};
        int32_t value = -1;
        check(compute_tensor_read_element(tensor, 2, indices, &value, sizeof value));
        EXPECT_EQ(value, all[static_cast<size_t>(i * columns + j)]) << "at " << i << ", " << j;
      }
    }
  }
  const Tensor doubled = session.run("add", {}, std::vector<Operand>{x, x});
  const int64_t last[] = {4, 8};
  int32_t before = 0, value = 0;
  check(compute_tensor_read_element(x.tensor, 2, last, &before, sizeof before));
  check(compute_tensor_read_element(doubled, 2, last, &value, sizeof value));
  EXPECT_NE(before, 0);
  EXPECT_EQ(value, 2 * before);
  const double number = 2.5;
  Tensor scalar;
  check(compute_tensor_scalar(COMPUTE_DTYPE_FLOAT64, &number, 0, scalar.out()));
  double read = 0;
  check(compute_tensor_read_element(scalar, 0, nullptr, &read, sizeof read));
  EXPECT_EQ(read, number);

  const auto refusal = [&](int32_t rank, std::initializer_list<int64_t> indices, void* dst, int64_t size_bytes) {
    const Error error(compute_tensor_read_element(x.tensor, rank, indices.begin(), dst, size_bytes));
    return error ? compute_error_get_code(error.get()) : 0;
  };
  for (const auto& outside : {std::pair<int64_t, int64_t>{5, 0}, {0, 9}, {-1, 0}, {0, -1}, {0, INT64_MAX}}) {
    EXPECT_EQ(refusal(2, {outside.first, outside.second}, &value, 4), COMPUTE_ERROR_OUT_OF_RANGE);
  }
  EXPECT_EQ(refusal(1, {0}, &value, 4), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(refusal(2, {0, 0}, &value, 8), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(refusal(2, {0, 0}, nullptr, 4), COMPUTE_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(Error(compute_tensor_read_element(x.tensor, 2, nullptr, &value, 4)));
}

void to_device(const Session& session) {
  const Operand x = session.upload(counting(dtype::INT32, {5, 9}));
  Tensor same;
  check(compute_tensor_to_device(x.tensor, session.device(), same.out()));
  EXPECT_EQ(same.get(), x.tensor.get()) << "on its own device, the tensor itself";
  Device cpu;
  check(compute_device_open("cpu", cpu.out()));
  const Operand turned = permuted(x, {1, 0});
  Tensor host, back;
  check(compute_tensor_to_device(turned.tensor, cpu, host.out()));
  EXPECT_EQ(compute_tensor_device(host), cpu.get());
  check(compute_tensor_to_device(host, session.device(), back.out()));
  EXPECT_EQ(compute_tensor_device(back), session.device());
  expect_equal(session, {turned.array, back}, "there and back");
}

void labels_and_scopes(const Session& session) {
  const Tensor x = session.empty(dtype::FLOAT32, {2});
  EXPECT_STREQ(compute_tensor_label(x), "");
  check(compute_tensor_set_label(x, "weights"));
  EXPECT_STREQ(compute_tensor_label(x), "weights");
  check(compute_scope_push("training step", "train.py", 42));
  check(compute_scope_push("forward", nullptr, 0));
  const auto message = [] {
    const Error error(compute_tensor_read(nullptr, nullptr, 0));
    return std::string(compute_error_message(error.get()));
  };
  const std::string inside = "\nscope: training step (train.py:42) > forward";
  EXPECT_TRUE(message().ends_with(inside)) << message();
  check(compute_scope_pop());
  check(compute_scope_pop());
  EXPECT_EQ(message().find("scope"), std::string::npos) << message();
  EXPECT_TRUE(Error(compute_scope_pop())) << "nothing left to pop";
}

// 32 axes, also in ops.
void greatest_rank(const Session& session) {
  Shape shape(COMPUTE_MAX_RANK, 1);
  shape[3] = shape[17] = shape[31] = 3;
  Inputs inputs(22);
  const Operand x = session.upload(inputs.uniform(dtype::FLOAT32, shape, -2, 2));
  std::vector<int> axes(COMPUTE_MAX_RANK);
  std::iota(axes.rbegin(), axes.rend(), 0);
  const Operand turned = permuted(x, axes);
  const Operand both[] = {x, turned};
  session.expect("add", {}, both, bound_of("add", dtype::FLOAT32), "rank 32");
  session.expect("sum", {{"axes", Shape{3, 31}}}, std::span(&turned, 1), bound_of("sum", dtype::FLOAT32), "rank 32");
}

// Every axis twice, in an order that nothing collapses: 20 axes for the index arithmetic.
void many_axes(const Session& session) {
  const Shape shape(12, 2);
  Inputs inputs(23);
  const Operand a = session.upload(inputs.uniform(dtype::FLOAT32, shape, -2, 2)),
                b = session.upload(inputs.uniform(dtype::FLOAT32, shape, -2, 2));
  const Operand operands[] = {permuted(a, {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11}),
                              permuted(b, {11, 0, 10, 1, 9, 2, 8, 3, 7, 4, 6, 5})};
  session.expect("multiply", {}, operands, bound_of("multiply", dtype::FLOAT32), "twelve axes");
  session.expect("sum", {{"axes", Shape{0, 2, 4, 6, 8, 10}}}, std::span(operands, 1), bound_of("sum", dtype::FLOAT32),
                 "twelve axes");
}

}  // namespace

void add_tensor_tests(Registry& registry) {
  const struct {
    const char* name;
    void (*body)(const Session&);
    bool runs_ops;
  } kTests[] = {
      {"round_trip", round_trip, false},
      {"views", views, false},
      {"complex_at_halves", complex_at_halves, false},
      {"slices", slices, false},
      {"view_errors", view_errors, false},
      {"write_through_views", write_through_views, false},
      {"map", map, true},
      {"asynchronous_copies", asynchronous_copies, true},
      {"elements", elements, true},
      {"to_device", to_device, false},
      {"labels_and_scopes", labels_and_scopes, false},
      {"greatest_rank", greatest_rank, true},
      {"many_axes", many_axes, true},
  };
  for (const auto& entry : kTests) {
    Test test{"tensor", entry.name, entry.body};
    test.runs_ops = entry.runs_ops;
    registry.add(std::move(test));
  }
}

}  // namespace compute::conformance
