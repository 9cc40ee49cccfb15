// SPDX-License-Identifier: Apache-2.0
// Resize, LRN, LSTM and GRU, which version 1.1 of compute has. Resize to the nearest element and RNN are composed here.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <stdexcept>

#include "../op_table.hpp"

namespace onnxruntime_compute {
namespace {

bool has_op(const char* name) {
  const compute_op* op = nullptr;
  compute_error* const error = compute_op_find(name, 1, &op);
  compute_error_free(error);
  return error == nullptr;
}

std::string refuse_missing(const char* name) { return has_op(name) ? "" : "this compute has no " + std::string(name); }

// ---- Resize ---------------------------------------------------------------------------------------------------------

// Where element `i` of an axis that is resampled lies, in float32 as ONNX Runtime computes it.
float coordinate(const std::string& mode, float i, float scale, float extent, float size) {
  if (mode == "asymmetric") return i / scale;
  if (mode == "align_corners") return size == 1 ? 0 : i * (extent - 1) / (size - 1);
  if (mode == "pytorch_half_pixel") return size > 1 ? (i + 0.5f) / scale - 0.5f : 0;
  if (mode == "tf_half_pixel_for_nn") return (i + 0.5f) / scale;
  if (mode == "half_pixel_symmetric") return extent / 2 * (1 - size / (scale * extent)) + (i + 0.5f) / scale - 0.5f;
  return (i + 0.5f) / scale - 0.5f;
}

float nearest(const std::string& mode, float x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  return mode == "round_prefer_ceil" ? std::floor(x + 0.5f) : std::ceil(x - 0.5f);
}

std::string refuse_resize(const Claim& claim) {
  const std::string mode = claim.node.text("mode", "nearest");
  const bool is_nearest = mode == "nearest";
  if (is_nearest && claim.node.text("coordinate_transformation_mode") != "tf_crop_and_resize") return "";
  if (!is_real(claim.dtype(0))) return "the dtype " + std::string(claim.dtype(0).name());
  if (claim.node.text("coordinate_transformation_mode") == "tf_half_pixel_for_nn") return "tf_half_pixel_for_nn";
  return refuse_missing("resize");
}

std::vector<double> reals_of(Call& c, const Value& value) {
  return compute::cast(c.t.to_host(value), compute::float64).to_vector<double>();
}

void run_resize(Call& c) {
  Value x = c.in(0);
  const bool is_old = c.node.version < 11;
  const size_t scales_at = is_old ? 1 : 2;
  std::vector<int64_t> axes = c.node.integers("axes");
  if (axes.empty()) {
    for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  for (int64_t& axis : axes) axis = Call::axis_of(axis, x.rank());
  std::vector<double> scales;
  std::vector<int64_t> sizes;
  if (c.has(scales_at)) scales = reals_of(c, c.in(scales_at));
  const bool by_scales = !scales.empty();
  const auto extent_of = [&](size_t i) { return x.shape.at(static_cast<size_t>(axes[i])); };
  if (by_scales) {
    for (size_t i = 0; i < axes.size(); ++i) {
      sizes.push_back(
          static_cast<int64_t>(std::floor(static_cast<float>(extent_of(i)) * static_cast<float>(scales.at(i)))));
    }
  } else {
    sizes = c.t.to_integers(c.in(3));
    const std::string policy = c.node.text("keep_aspect_ratio_policy", "stretch");
    if (policy != "stretch") {
      double scale = 0;
      for (size_t i = 0; i < axes.size(); ++i) {
        const double one = static_cast<double>(sizes[i]) / static_cast<double>(extent_of(i));
        scale = i == 0 ? one : policy == "not_larger" ? std::min(scale, one) : std::max(scale, one);
      }
      for (size_t i = 0; i < axes.size(); ++i) {
        sizes[i] = static_cast<int64_t>(std::floor(scale * static_cast<double>(extent_of(i)) + 0.5));
        scales.push_back(scale);
      }
    } else {
      for (size_t i = 0; i < axes.size(); ++i) {
        scales.push_back(static_cast<double>(sizes[i]) / static_cast<double>(extent_of(i)));
      }
    }
  }
  const std::string mode = c.node.text("mode", "nearest");
  std::string place = c.node.text("coordinate_transformation_mode", is_old ? "asymmetric" : "half_pixel");
  if (mode == "nearest" && place != "tf_crop_and_resize") {
    for (size_t i = axes.size(); i-- > 0;) {
      // Before version 11 an axis that shrinks is rounded up.
      const std::string rounding = !is_old         ? c.node.text("nearest_mode", "round_prefer_floor")
                                   : scales[i] < 1 ? "ceil"
                                                   : "floor";
      const int64_t extent = extent_of(i), size = sizes[i];
      std::vector<int64_t> positions;
      bool is_identity = size == extent;
      for (int64_t at = 0; at < size; ++at) {
        // With scales the corners of the result lie at the scaled extent, which need not be whole.
        const auto scale = static_cast<float>(scales[i]);
        const float resized = by_scales && place == "align_corners" && !is_old ? scale * static_cast<float>(extent)
                                                                               : static_cast<float>(size);
        const float from = coordinate(place, static_cast<float>(at), scale, static_cast<float>(extent), resized);
        positions.push_back(std::clamp<int64_t>(static_cast<int64_t>(nearest(rounding, from)), 0, extent - 1));
        is_identity = is_identity && positions.back() == at;
      }
      if (!is_identity) x = c.t.op("take", {x, Tracer::integers(positions)}, {Attribute("axis", axes[i])});
    }
    return c.out(0, x);
  }
  // The corners of a scaled extent that is not whole, as a part of the input.
  std::vector<double> roi;
  if (place == "align_corners" && by_scales) {
    for (size_t i = 0; i < axes.size(); ++i) {
      const double corner = scales[i] * static_cast<double>(extent_of(i)) - 1;
      roi.push_back(corner > 0 && sizes[i] > 1 ? static_cast<double>(sizes[i] - 1) / corner : 0);
    }
    const bool are_whole = std::all_of(roi.begin(), roi.end(), [](double end) { return end == 1; });
    if (are_whole) {
      roi.clear();
    } else {
      roi.insert(roi.begin(), axes.size(), 0.0);
      place = "tf_crop_and_resize";
    }
  }
  std::vector<Attribute> attributes{Attribute("sizes", sizes),
                                    Attribute("axes", axes),
                                    Attribute("mode", mode),
                                    Attribute("coordinate_transformation_mode", place),
                                    Attribute("nearest_mode", c.node.text("nearest_mode", "round_prefer_floor")),
                                    Attribute("cubic_coeff_a", c.node.real("cubic_coeff_a", -0.75)),
                                    Attribute("exclude_outside", c.node.integer("exclude_outside", 0)),
                                    Attribute("antialias", c.node.integer("antialias", 0)),
                                    Attribute("extrapolation_value", c.node.real("extrapolation_value", 0))};
  attributes.emplace_back("scales", scales);
  if (!roi.empty()) {
    attributes.emplace_back("roi", roi);
  } else if (place == "tf_crop_and_resize") {
    attributes.emplace_back("roi", reals_of(c, c.in(1)));
  }
  c.out(0, c.t.op("resize", {x}, attributes));
}

// ---- LRN ------------------------------------------------------------------------------------------------------------

std::string refuse_lrn(const Claim&) { return refuse_missing("local_response_norm"); }

void run_lrn(Call& c) {
  c.out(0, c.t.op("local_response_norm", {c.in(0)},
                  {Attribute("size", c.node.integer("size", 1)), Attribute("alpha", c.node.real("alpha", 0.0001)),
                   Attribute("beta", c.node.real("beta", 0.75)), Attribute("bias", c.node.real("bias", 1))}));
}

// ---- Recurrent layers -----------------------------------------------------------------------------------------------

std::string refuse_recurrent(const Claim& claim) {
  const Node& node = claim.node;
  for (const char* const key : {"activation_alpha", "activation_beta", "clip"}) {
    if (node.has_attribute(key)) return key;
  }
  if (const NodeAttribute* const given = node.find("activations")) {
    const std::vector<std::string> defaults{"sigmoid", "tanh", "tanh"};
    const size_t count = node.type == "LSTM" ? 3 : 2;
    for (size_t i = 0; i < given->texts.size(); ++i) {
      std::string lower = given->texts[i];
      for (char& letter : lower) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      if (lower != defaults[i % count]) return "the activation " + given->texts[i];
    }
  }
  if (node.integer("input_forget", 0) != 0) return "input_forget";
  return refuse_missing(node.type == "LSTM" ? "lstm" : "gru");
}

void run_recurrent(Call& c) {
  const bool is_lstm = c.node.type == "LSTM";
  const bool batch_first = c.node.integer("layout", 0) != 0;
  const auto swapped = [&](const Value& value, const std::vector<int32_t>& axes) {
    return batch_first && value.is_present() ? c.t.permute(value, axes) : value;
  };
  const Value x = swapped(c.in(0), {1, 0, 2});
  const int64_t gates = c.in(1).shape.at(1);
  Value bias, recurrent_bias;
  if (c.has(3)) {
    bias = c.t.slice_axis(c.in(3), 1, 0, gates);
    recurrent_bias = c.t.slice_axis(c.in(3), 1, gates, 2 * gates);
  }
  const Value initial_h = swapped(c.in(5), {1, 0, 2});
  std::vector<Value> inputs{x, c.in(1), c.in(2), bias, recurrent_bias, initial_h};
  if (is_lstm) {
    inputs.push_back(swapped(c.in(6), {1, 0, 2}));
    inputs.push_back(c.in(7));
  }
  inputs.push_back(c.in(4));
  std::vector<Attribute> attributes{Attribute("direction", c.node.text("direction", "forward"))};
  if (!is_lstm) attributes.emplace_back("linear_before_reset", c.node.integer("linear_before_reset", 0));
  const std::vector<Value> made = c.t.ops(is_lstm ? "lstm" : "gru", is_lstm ? 4 : 2, inputs, attributes);
  c.out(0, swapped(made[0], {2, 0, 1, 3}));
  c.out(1, swapped(made[1], {1, 0, 2}));
  if (is_lstm) c.out(2, swapped(made[2], {1, 0, 2}));
}

// Step by step: the library has no such layer.
void run_rnn(Call& c) {
  const bool batch_first = c.node.integer("layout", 0) != 0;
  const Value x = batch_first ? c.t.permute(c.in(0), {1, 0, 2}) : c.t.settle(c.in(0));
  const DType dtype = x.dtype;
  const int64_t times = x.shape.at(0), batch = x.shape.at(1), directions = c.in(1).shape.at(0);
  const int64_t hidden = c.in(1).shape.at(1);
  const std::string direction = c.node.text("direction", "forward");
  const auto of_direction = [&](const Value& value, int64_t i) {
    return c.t.reshape(c.t.slice_axis(value, 0, i, i + 1), Shape(value.shape.begin() + 1, value.shape.end()));
  };
  std::vector<Value> all, last;
  for (int64_t i = 0; i < directions; ++i) {
    const Value weight = c.t.permute(of_direction(c.in(1), i), {1, 0});
    const Value recurrent = c.t.permute(of_direction(c.in(2), i), {1, 0});
    Value inputs = c.t.op("matmul", {x, weight});
    if (c.has(3)) {
      const Value biases = of_direction(c.in(3), i);
      inputs = c.t.settle(c.t.map(
          "$0 + $1 + $2", {inputs, c.t.slice_axis(biases, 0, 0, hidden), c.t.slice_axis(biases, 0, hidden, 2 * hidden)},
          dtype));
    }
    Value state;
    if (c.has(5)) state = of_direction(batch_first ? c.t.permute(c.in(5), {1, 0, 2}) : c.t.settle(c.in(5)), i);
    std::vector<Value> states(static_cast<size_t>(times));
    for (int64_t step = 0; step < times; ++step) {
      const int64_t time = direction == "reverse" || i == 1 ? times - 1 - step : step;
      const Value here = of_direction(inputs, time);
      state =
          c.t.settle(state.is_present() ? c.t.map("tanh($0 + $1)", {here, c.t.op("matmul", {state, recurrent})}, dtype)
                                        : c.t.map("tanh($0)", {here}, dtype));
      states[static_cast<size_t>(time)] = c.t.reshape(state, {1, 1, batch, hidden});
    }
    all.push_back(times == 1 ? states[0] : c.t.op("concat", states, {Attribute("axis", int64_t{0})}));
    last.push_back(c.t.reshape(state, {1, batch, hidden}));
  }
  const Value y = all.size() == 1 ? all[0] : c.t.op("concat", all, {Attribute("axis", int64_t{1})});
  const Value h = last.size() == 1 ? last[0] : c.t.op("concat", last, {Attribute("axis", int64_t{0})});
  c.out(0, batch_first ? c.t.permute(y, {2, 0, 1, 3}) : y);
  c.out(1, batch_first ? c.t.permute(h, {1, 0, 2}) : h);
}

std::string refuse_rnn(const Claim& claim) {
  const Node& node = claim.node;
  for (const char* const key : {"activation_alpha", "activation_beta", "clip"}) {
    if (node.has_attribute(key)) return key;
  }
  if (const NodeAttribute* const given = node.find("activations")) {
    for (const std::string& name : given->texts) {
      if (name != "Tanh" && name != "tanh") return "the activation " + name;
    }
  }
  return node.has_input(4) ? "sequence_lens" : "";
}

}  // namespace

void add_resampling(std::vector<OpEntry>& table) {
  table.push_back({"Resize", 10, kNewest, kAny, 0b1110, refuse_resize, run_resize});
  table.push_back({"Upsample", 9, 9, kAny, 0b10, refuse_resize, run_resize});
  table.push_back({"LRN", 1, kNewest, kReal, 0, refuse_lrn, run_lrn});
  table.push_back({"LSTM", 7, kNewest, kReal, 0, refuse_recurrent, run_recurrent});
  table.push_back({"RNN", 7, kNewest, kReal, 0, refuse_rnn, run_rnn});
  table.push_back({"GRU", 7, kNewest, kReal, 0, refuse_recurrent, run_recurrent});
}

}  // namespace onnxruntime_compute
