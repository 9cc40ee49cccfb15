// SPDX-License-Identifier: Apache-2.0
// Ops of ONNX for signals: Fourier transforms and windows. A complex number is a pair of numbers along the last axis.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "../op_table.hpp"

namespace onnxruntime_compute {
namespace {

constexpr int64_t kFloat = 1;  // the element type of ONNX

// [..., 1] or [..., 2] as a real or a complex tensor [...].
Value without_pairs(Call& c, const Value& x, bool to_complex) {
  const int64_t last = x.rank() - 1;
  const auto part = [&](int64_t i) {
    return c.t.reshape(c.t.slice_axis(x, last, i, i + 1), Shape(x.shape.begin(), x.shape.end() - 1));
  };
  const Value real = part(0);
  if (!to_complex) return real;
  const Value imaginary = x.shape.back() == 2 ? part(1) : c.t.fill(0, x.dtype, real.shape);
  return c.t.settle(c.t.map("complex($0, $1)", {real, imaginary}, compute::complex64));
}

Value with_pairs(Call& c, const Value& x) {
  Shape apart = x.shape;
  apart.push_back(1);
  const bool is_complex = x.dtype == compute::complex64;
  if (!is_complex) return c.t.reshape(x, apart);
  const Value real = c.t.settle(c.t.map("real($0)", {x}, compute::float32));
  const Value imaginary = c.t.settle(c.t.map("imag($0)", {x}, compute::float32));
  return c.t.op("concat", {c.t.reshape(real, apart), c.t.reshape(imaginary, apart)}, {Attribute("axis", x.rank())});
}

// The first `size` elements along an axis, or zeros behind those that are there.
Value cut_or_filled(Call& c, const Value& x, int64_t axis, int64_t size) {
  const int64_t extent = x.shape.at(static_cast<size_t>(axis));
  if (extent >= size) return extent == size ? x : c.t.slice_axis(x, axis, 0, size);
  std::vector<int64_t> before(x.shape.size(), 0), after(x.shape.size(), 0);
  after[static_cast<size_t>(axis)] = size - extent;
  return c.t.op("pad", {x}, {Attribute("pads_begin", before), Attribute("pads_end", after)});
}

Value transform(Call& c, const Value& x, int64_t axis, int64_t size, bool inverse, bool onesided) {
  const std::vector<int64_t> axes{axis};
  if (inverse && onesided) {
    const Value half = cut_or_filled(c, without_pairs(c, x, true), axis, size / 2 + 1);
    return with_pairs(c, c.t.op("irfft", {half}, {Attribute("axes", axes), Attribute("size", size)}));
  }
  if (onesided && x.shape.back() == 1) {
    const Value whole = cut_or_filled(c, without_pairs(c, x, false), axis, size);
    return with_pairs(c, c.t.op("rfft", {whole}, {Attribute("axes", axes)}));
  }
  const Value whole = cut_or_filled(c, without_pairs(c, x, true), axis, size);
  Value y = c.t.op("fft", {whole}, {Attribute("axes", axes), Attribute("inverse", int64_t{inverse ? 1 : 0})});
  if (onesided) y = c.t.slice_axis(y, axis, 0, size / 2 + 1);
  return with_pairs(c, y);
}

void run_dft(Call& c) {
  const Value x = c.t.settle(c.in(0));
  const bool by_attribute = c.node.version < 20, inverse = c.node.integer("inverse", 0) != 0;
  const bool onesided = c.node.integer("onesided", 0) != 0;
  int64_t axis = by_attribute ? c.node.integer("axis", 1) : -2;
  if (!by_attribute && c.has(2)) axis = c.t.to_integers(c.in(2)).at(0);
  axis = Call::axis_of(axis, x.rank());
  const int64_t extent = x.shape.at(static_cast<size_t>(axis));
  const int64_t size = c.has(1) ? c.t.to_integers(c.in(1)).at(0) : inverse && onesided ? 2 * (extent - 1) : extent;
  c.out(0, transform(c, x, axis, size, inverse, onesided));
}

void run_stft(Call& c) {
  Value x = c.t.settle(c.in(0));
  if (x.rank() == 2) x = c.t.reshape(x, {x.shape[0], x.shape[1], 1});
  const int64_t step = c.t.to_integers(c.in(1)).at(0), length = x.shape.at(1), parts = x.shape.at(2);
  const int64_t size = c.has(3) ? c.t.to_integers(c.in(3)).at(0) : c.has(2) ? c.in(2).size() : length;
  const int64_t frames = 1 + (length - size) / step;
  std::vector<int64_t> places;
  for (int64_t frame = 0; frame < frames; ++frame) {
    for (int64_t i = 0; i < size; ++i) places.push_back(frame * step + i);
  }
  Value framed = c.t.op("take", {x, Tracer::integers(places)}, {Attribute("axis", int64_t{1})});
  framed = c.t.reshape(framed, {x.shape[0], frames, size, parts});
  if (c.has(2)) framed = c.t.settle(c.t.map("$0 * $1", {framed, c.t.reshape(c.in(2), {1, 1, size, 1})}, x.dtype));
  c.out(0, transform(c, framed, 2, size, false, c.node.integer("onesided", 1) != 0 && parts == 1));
}

std::string refuse_transform(const Claim& claim) {
  if (claim.dtype(0) != compute::float32) return "the dtype " + std::string(claim.dtype(0).name());
  return claim.rank(0) < 1 ? "an unknown rank" : "";
}

void run_window(Call& c) {
  const int64_t size = c.t.to_integers(c.in(0)).at(0);
  const double period = static_cast<double>(c.node.integer("periodic", 1) != 0 ? size : size - 1);
  const std::string& type = c.node.type;
  // Coefficients of 1, cos(x) and cos(2 x), for the angle x.
  const double constant = type == "HannWindow" ? 0.5 : type == "HammingWindow" ? 25.0 / 46 : 0.42;
  const double once = type == "BlackmanWindow" ? -0.5 : constant - 1, twice = type == "BlackmanWindow" ? 0.08 : 0;
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / period;
    values.push_back(constant + once * std::cos(angle) + twice * std::cos(2 * angle));
  }
  const Value window = Tracer::constant(compute::Device::open("cpu").from_host(values));
  c.out(0, c.t.cast(window, dtype_of_onnx(static_cast<int32_t>(c.node.integer("output_datatype", kFloat)))));
}

}  // namespace

void add_signals(std::vector<OpEntry>& table) {
  table.push_back({"DFT", 17, kNewest, kReal, 0b110, refuse_transform, run_dft});
  table.push_back({"STFT", 17, kNewest, kReal, 0b1010, refuse_transform, run_stft});
  for (const char* const name : {"HannWindow", "HammingWindow", "BlackmanWindow"})
    table.push_back({name, 17, kNewest, kIntegers, 0b1, nullptr, run_window});
}

}  // namespace onnxruntime_compute
