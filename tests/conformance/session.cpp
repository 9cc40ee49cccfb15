// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/oracle/elementwise.hpp"

namespace compute::conformance {

namespace {

constexpr std::byte kPattern{0xa5};

void fill_with_pattern(Array& array) {
  if (array.size() > 0) std::fill_n(array.data(), array.size_bytes(), kPattern);
}

// Changes true to 1, 2 or 255 in turn: foreign memory may contain any of them.
void vary_truths(Array& array) {
  if (array.dtype() != dtype::BOOL || array.size() == 0) return;
  static constexpr std::byte kTruths[] = {std::byte{1}, std::byte{2}, std::byte{255}};
  for (int64_t i = 0; i < array.size(); ++i) {
    if (array.data()[i] != std::byte{0}) array.data()[i] = kTruths[i % 3];
  }
}

std::vector<compute_tensor*> tensors_of(std::span<const Operand> operands) {
  std::vector<compute_tensor*> tensors;
  for (const Operand& x : operands) tensors.push_back(x.tensor);
  return tensors;
}

std::vector<Array> arrays_of(std::span<const Operand> operands) {
  std::vector<Array> arrays;
  for (const Operand& x : operands) arrays.push_back(x.array);
  return arrays;
}

size_t output_count(const compute_op* op) {
  compute_op_info info{};
  info.struct_size = sizeof info;
  check(compute_op_get_info(op, &info));
  const std::string_view outputs(info.outputs, static_cast<size_t>(info.outputs_size));
  return 1 + static_cast<size_t>(std::ranges::count(outputs, ' '));
}

const compute_op* find_op(const std::string& op) {
  const compute_op* handle = nullptr;
  check(compute_op_find(op.c_str(), 0, &handle));
  return handle;
}

std::string dtypes_text(std::span<const Operand> inputs) {
  std::string text;
  for (const Operand& x : inputs) {
    if (!x.tensor) {
      text += text.empty() ? "none" : ", none";
      continue;
    }
    text += (text.empty() ? "" : ", ") + std::string(oracle::info(x.array.dtype()).name) +
            oracle::describe(x.array.shape());
  }
  return "(" + text + ")";
}

}  // namespace

void check(compute_error* error) {
  if (!error) return;
  const Error owned(error);
  if (owned.code() == COMPUTE_ERROR_UNSUPPORTED) throw Unsupported(owned.message());
  throw UnexpectedError(std::string(compute_error_code_name(owned.code())) + ": " + owned.message());
}

AttributeList::AttributeList(const Attributes& attributes) {
  storage_.reserve(attributes.size());
  for (const auto& [name, attribute] : attributes) {
    Storage& s = storage_.emplace_back();
    compute_attribute a{};
    a.struct_size = sizeof a;
    a.struct_type = COMPUTE_STRUCT_ATTRIBUTE;
    a.name = name.data();
    a.name_size = static_cast<int64_t>(name.size());
    if (name == "dtype") {
      s.dtype = static_cast<compute_dtype>(attribute.integers.at(0));
      a.kind = COMPUTE_KIND_DTYPE;
      a.count = 1;
      a.values = &s.dtype;
    } else if (!attribute.numbers.empty()) {
      const bool real =
          std::all_of(attribute.numbers.begin(), attribute.numbers.end(), [](auto z) { return z.imag() == 0; });
      for (const std::complex<double>& z : attribute.numbers) {
        s.reals.push_back(z.real());
        if (!real) s.reals.push_back(z.imag());
      }
      a.kind = real ? COMPUTE_KIND_FLOAT64 : COMPUTE_KIND_COMPLEX128;
      a.count = static_cast<int64_t>(attribute.numbers.size());
      a.values = s.reals.data();
    } else if (!attribute.text.empty()) {
      s.text = {attribute.text.data(), static_cast<int64_t>(attribute.text.size())};
      a.kind = COMPUTE_KIND_STRING;
      a.count = 1;
      a.values = &s.text;
    } else {
      s.integers = attribute.integers;
      a.kind = COMPUTE_KIND_INT64;
      a.count = static_cast<int64_t>(s.integers.size());
      a.values = s.integers.data();
    }
    structs_.push_back(a);
  }
}

Operand permuted(const Operand& x, const std::vector<int>& axes) {
  Operand result{x.array.permute(axes), {}};
  const std::vector<int32_t> c_axes(axes.begin(), axes.end());
  check(compute_tensor_permute(x.tensor, x.array.rank(), c_axes.data(), result.tensor.out()));
  return result;
}

Operand sliced(const Operand& x, const Shape& starts, const Shape& counts, const Shape& steps) {
  Operand result{x.array, {}};
  Shape stops(starts.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    result.array = result.array.slice(static_cast<int>(i), starts[i], counts[i], steps[i]);
    const int64_t stop = starts[i] + counts[i] * steps[i];
    // Below 0 an index would count from the end: the end in the step's direction is meant.
    stops[i] = stop < 0 ? INT64_MAX : stop;
  }
  check(compute_tensor_slice(x.tensor, x.array.rank(), starts.data(), stops.data(), steps.data(), result.tensor.out()));
  return result;
}

Operand broadcast(const Operand& x, const Shape& shape) {
  Operand result{x.array.broadcast_to(shape), {}};
  check(compute_tensor_broadcast(x.tensor, static_cast<int32_t>(shape.size()), shape.data(), result.tensor.out()));
  return result;
}

Operand halfway(const Operand& x, const Shape& shape) {
  const Dtype dtype = x.array.dtype();
  Operand result{Array(dtype, shape), {}};
  for (int64_t i = 0; i < result.array.size(); ++i) {
    Value value = x.array.at(i);
    value.re = value.im;
    value.im = x.array.at(i + 1).re;
    result.array.set(i, value);
  }
  check(compute_tensor_view(x.tensor, dtype, result.array.rank(), shape.data(), nullptr,
                            oracle::info(dtype).size_bytes / 2, result.tensor.out()));
  return result;
}

const char* name(Layout layout) {
  switch (layout) {
    case Layout::CONTIGUOUS:
      return "contiguous";
    case Layout::TRANSPOSED:
      return "transposed";
    case Layout::STEPPED:
      return "stepped";
    case Layout::NEGATIVE:
      return "negative steps";
    case Layout::BROADCAST:
      return "broadcast";
    case Layout::OFFSET:
      return "offset";
    case Layout::PERMUTED:
      return "permuted";
  }
  return "";
}

Shape base_shape(Layout layout, const Shape& shape) {
  Shape base = shape;
  switch (layout) {
    case Layout::CONTIGUOUS:
      break;
    case Layout::TRANSPOSED:
      std::reverse(base.begin(), base.end());
      break;
    case Layout::STEPPED:
      for (int64_t& extent : base) extent *= 3;
      break;
    case Layout::NEGATIVE:
      for (int64_t& extent : base) extent = 2 * extent + 1;
      break;
    case Layout::BROADCAST:
      for (size_t i = 0; i < base.size(); i += 2) base[i] = 1;
      break;
    case Layout::OFFSET:
      if (!base.empty()) base.back() += 3;
      break;
    case Layout::PERMUTED:
      if (!base.empty()) std::rotate(base.begin(), base.begin() + 1, base.end());
      break;
  }
  return base;
}

Operand view(Layout layout, const Operand& base, const Shape& shape) {
  const auto rank = static_cast<int>(shape.size());
  if (rank == 0) return base;
  const Shape ones(shape.size(), 1), zeros(shape.size(), 0);
  switch (layout) {
    case Layout::CONTIGUOUS:
      return base;
    case Layout::TRANSPOSED: {
      std::vector<int> axes(shape.size());
      for (int i = 0; i < rank; ++i) axes[static_cast<size_t>(i)] = rank - 1 - i;
      return permuted(base, axes);
    }
    case Layout::STEPPED:
      return sliced(base, ones, shape, Shape(shape.size(), 3));
    case Layout::NEGATIVE: {
      Shape starts;
      for (int64_t extent : shape) starts.push_back(std::max<int64_t>(2 * extent - 1, 0));
      return sliced(base, starts, shape, Shape(shape.size(), -2));
    }
    case Layout::BROADCAST:
      return broadcast(base, shape);
    case Layout::OFFSET: {
      Shape starts = zeros;
      starts.back() = 3;
      return sliced(base, starts, shape, ones);
    }
    case Layout::PERMUTED: {
      std::vector<int> axes(shape.size());
      for (int i = 0; i < rank; ++i) axes[static_cast<size_t>(i)] = (i + rank - 1) % rank;
      const Operand rotated = permuted(base, axes);
      Shape starts = zeros, steps = ones;
      starts[0] = std::max<int64_t>(shape[0] - 1, 0);
      steps[0] = -1;
      return sliced(rotated, starts, shape, steps);
    }
  }
  return base;
}

Session::Session(Device device, const compute_device_info& info, Level level)
    : device_(std::move(device)),
      name_(info.name),
      plugin_(info.plugin),
      dtypes_(info.dtypes, info.dtypes + info.dtype_count),
      level_(level),
      flushes_subnormals_(info.subnormals == COMPUTE_SUBNORMALS_FLUSHED) {}

oracle::Result Session::reference(const std::string& op, const Attributes& attributes,
                                  std::span<const Operand> inputs) const {
  oracle::Result expected = conformance::reference(op, attributes, inputs);
  if (!flushes_subnormals_) return expected;
  const bool is_elementwise = oracle::find_elementwise(op) != nullptr;
  oracle::open_flushed(expected, arrays_of(inputs), is_elementwise);
  if (is_elementwise) return expected;
  std::vector<Operand> zeroed;
  bool had_any = false;
  for (const Operand& x : inputs) {
    Array copy = x.array.copy();
    had_any = oracle::flush_subnormals(copy) || had_any;
    zeroed.push_back({std::move(copy), {}});
  }
  if (!had_any) return expected;
  oracle::Result of_zeros = conformance::reference(op, attributes, zeroed);
  oracle::open_flushed(of_zeros, {}, false);
  for (size_t i = 0; i < of_zeros.more.size(); ++i) {
    oracle::open_flushed(of_zeros.more[i], {}, false);
    expected.more[i].flushed = std::move(of_zeros.more[i].elements);
  }
  expected.flushed = std::move(of_zeros.elements);
  return expected;
}

void Session::need(Dtype dtype, uint32_t bits) const {
  if (!supports(dtype, bits)) throw Lacking(name_ + " does not report " + oracle::info(dtype).name);
}

compute_device_statistics Session::statistics() const {
  compute_device_statistics statistics{};
  statistics.struct_size = sizeof statistics;
  statistics.struct_type = COMPUTE_STRUCT_DEVICE_STATISTICS;
  check(compute_device_get_statistics(device_, &statistics));
  return statistics;
}

Stream Session::stream() const {
  Stream stream;
  check(compute_stream_create(device_, nullptr, stream.out()));
  return stream;
}

Tensor Session::empty(Dtype dtype, const Shape& shape) const {
  use(dtype);
  Tensor tensor;
  check(compute_tensor_empty(device_, dtype, static_cast<int32_t>(shape.size()), shape.data(), tensor.out()));
  return tensor;
}

Operand Session::upload(const Array& array) const {
  use(array.dtype());
  Array contiguous = array.row_major() && array.dtype() != dtype::BOOL ? array : array.copy();
  vary_truths(contiguous);
  Operand x{contiguous, {}};
  check(compute_tensor_from_host(device_, array.dtype(), array.rank(), array.shape().data(),
                                 contiguous.size() ? contiguous.data() : nullptr, x.tensor.out()));
  return x;
}

Operand Session::upload(const Array& array, Layout layout) const {
  if (layout == Layout::CONTIGUOUS || array.rank() == 0) return upload(array);
  use(array.dtype());
  Array memory(array.dtype(), base_shape(layout, array.shape()));
  fill_with_pattern(memory);
  // The view of the memory shares its storage: its elements are written before the memory goes up.
  Operand base{memory, {}};
  check(compute_tensor_empty(device_, array.dtype(), memory.rank(), memory.shape().data(), base.tensor.out()));
  Operand x = view(layout, base, array.shape());
  for (int64_t i = 0; i < array.size(); ++i) x.array.set(i, array.at(i));
  vary_truths(memory);
  check(compute_tensor_write(base.tensor, memory.size() ? memory.data() : nullptr, memory.size_bytes()));
  return x;
}

Array Session::download(compute_tensor* tensor) const {
  const int32_t rank = compute_tensor_rank(tensor);
  const int64_t* extents = compute_tensor_shape(tensor);
  Array array(compute_tensor_dtype(tensor), Shape(extents, extents + rank));
  use(array.dtype());
  check(compute_tensor_read(tensor, array.size() ? array.data() : nullptr, array.size_bytes()));
  return array;
}

Error Session::try_run(const std::string& op, const Attributes& attributes, std::span<const Operand> inputs,
                       compute_stream* stream, Tensor& output) const {
  for (const Operand& x : inputs) use_given(x);
  const AttributeList list(attributes);
  const std::vector<compute_tensor*> tensors = tensors_of(inputs);
  std::vector<compute_tensor*> results(output_count(find_op(op)));
  results[0] = output.get();
  const bool given = results[0] != nullptr;
  Error error =
      compute_op_run(find_op(op), stream, list.data(), list.size(), tensors.data(),
                     static_cast<int64_t>(tensors.size()), results.data(), static_cast<int64_t>(results.size()));
  if (!given) *output.out() = results[0];
  for (size_t i = 1; i < results.size(); ++i) compute_tensor_release(results[i]);
  return error;
}

Tensor Session::run(const std::string& op, const Attributes& attributes, std::span<const Operand> inputs,
                    compute_stream* stream, Tensor output) const {
  std::vector<Tensor> outputs(output_count(find_op(op)));
  outputs[0] = std::move(output);
  run_all(op, attributes, inputs, stream, outputs);
  return std::move(outputs[0]);
}

void Session::run_all(const std::string& op, const Attributes& attributes, std::span<const Operand> inputs,
                      compute_stream* stream, std::span<Tensor> outputs) const {
  for (const Operand& x : inputs) use_given(x);
  const AttributeList list(attributes);
  const std::vector<compute_tensor*> tensors = tensors_of(inputs);
  std::vector<compute_tensor*> results;
  for (const Tensor& output : outputs) results.push_back(output.get());
  check(compute_op_run(find_op(op), stream, list.data(), list.size(), tensors.data(),
                       static_cast<int64_t>(tensors.size()), results.data(), static_cast<int64_t>(results.size())));
  for (size_t i = 0; i < results.size(); ++i) {
    if (!outputs[i]) *outputs[i].out() = results[i];
  }
}

void Session::judge(compute_tensor* actual, const oracle::Result& expected, const Bound& bound,
                    const std::string& what) const {
  EXPECT_EQ(compute_tensor_device(actual), device()) << what << ": the result is not on the device";
  const oracle::Verdict verdict = oracle::judge(download(actual), expected, bound);
  if (!verdict.passed()) ADD_FAILURE() << what << ": " << verdict.message;
}

void Session::expect(const std::string& op, const Attributes& attributes, std::span<const Operand> inputs,
                     const Bound& bound, const std::string& what, compute_stream* stream, Tensor output) const {
  // The reference first: where input and output are one, running changes the operand.
  const oracle::Result expected = reference(op, attributes, inputs);
  use_all(expected);
  const std::string text = op + dtypes_text(inputs) + " " + what;
  std::vector<Tensor> outputs(1 + expected.more.size());
  outputs[0] = std::move(output);
  try {
    run_all(op, attributes, inputs, stream, outputs);
    judge(outputs[0], expected, bound, text);
    for (size_t i = 1; i < outputs.size(); ++i)
      judge(outputs[i], expected.more[i - 1], bound, text + ", output " + std::to_string(i));
  } catch (const UnexpectedError& error) {
    ADD_FAILURE() << text << ": " << error.what();
    throw Stop();
  }
}

void Session::expect_into(const std::string& op, const Attributes& attributes, std::span<const Operand> inputs,
                          const Bound& bound, const std::string& what, Layout layout) const {
  const oracle::Result expected = reference(op, attributes, inputs);
  use_all(expected);
  const std::string text = op + dtypes_text(inputs) + " " + what + ", into " + conformance::name(layout);
  struct Place {
    Operand base, output;
  };
  std::vector<Place> places;
  std::vector<Tensor> outputs;
  for (size_t i = 0; i <= expected.more.size(); ++i) {
    const oracle::Result& each = i == 0 ? expected : expected.more[i - 1];
    Array memory(each.dtype, base_shape(layout, each.shape));
    fill_with_pattern(memory);
    const Operand base = upload(memory);
    const Operand output = view(layout, base, each.shape);
    places.push_back({base, output});
    outputs.push_back(output.tensor);
  }
  try {
    run_all(op, attributes, inputs, nullptr, outputs);
  } catch (const UnexpectedError& error) {
    ADD_FAILURE() << text << ": " << error.what();
    throw Stop();
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const Place& place = places[i];
    const oracle::Result& each = i == 0 ? expected : expected.more[i - 1];
    judge(place.output.tensor, each, bound, text + (i == 0 ? "" : ", output " + std::to_string(i)));
    // What the device wrote is put into the memory's own copy: then all of it has to agree, byte for byte.
    const Array written = download(place.output.tensor), all = download(place.base.tensor);
    Array view_of_memory = place.output.array;
    const auto element_bytes = static_cast<size_t>(oracle::info(each.dtype).size_bytes);
    for (int64_t j = 0; j < written.size(); ++j) {
      std::byte* const element = view_of_memory.element(j);
      std::memcpy(element, written.element(j), element_bytes);
      // Every byte but 0 is true, and a copy may change one into another.
      const std::byte kept = all.data()[element - place.base.array.data()];
      if (each.dtype == COMPUTE_DTYPE_BOOL && *element != std::byte{0} && kept != std::byte{0}) *element = kept;
    }
    if (all.size() > 0) {
      EXPECT_EQ(std::memcmp(all.data(), place.base.array.data(), static_cast<size_t>(all.size_bytes())), 0)
          << text << ": wrote outside its elements";
    }
  }
}

oracle::Result reference(const std::string& op, const Attributes& attributes, std::span<const Operand> inputs) {
  const std::vector<Array> arrays = arrays_of(inputs);
  if (const oracle::Elementwise* row = oracle::find_elementwise(op)) return oracle::evaluate(*row, arrays);
  return oracle::find_reference(op)(arrays, attributes);
}

uint64_t seed_of(std::string_view text) {
  // FNV-1a.
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace compute::conformance
