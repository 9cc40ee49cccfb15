// SPDX-License-Identifier: Apache-2.0
#include "placement.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>

namespace onnxruntime_compute {
namespace {

// The host reaches at least this part of its rates in small steps.
constexpr double kHostShare = 0.5;
// A run on the host that is estimated at more than this many times the bound of the device is not compared with runs.
constexpr double kFar = 8;
constexpr int kTrials = 5;

// In seconds.
struct DeviceCosts {
  double run;   // of a run: inputs go there, results come back
  double step;  // of a step that needs the one before
};
struct HostCosts {
  double step;  // of a call
  double multiplication;
  double byte;
};

// The least time of some trials, after one that prepares.
template <class F>
double least_seconds(const F& f) {
  double least = 1e9;
  for (int i = 0; i <= kTrials; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    if (i > 0) least = std::min(least, passed.count());
  }
  return least;
}

const compute::Expression& successor() {
  static const compute::Expression made("x + 1.0", {"x"});
  return made;
}

void add_one(const Tensor& from, const Tensor& to, const compute::Stream& stream) {
  compute_tensor *in = from.get(), *out = to.get();
  compute::check(compute_map(stream.get(), successor().get(), &in, 1, nullptr, 0, &out, 1));
}

// Graphs of one and of many steps between a transfer there and one back.
DeviceCosts measure(const compute::Device& device) {
  constexpr int64_t kElements = 256;
  constexpr int kSteps = 65;
  const compute::Stream stream(device);
  const std::vector<float> values(kElements, 0);
  std::vector<float> back(kElements);
  const Tensor tensors[] = {device.empty(compute::float32, {kElements}), device.empty(compute::float32, {kElements})};
  const auto seconds_of = [&](int steps) {
    const compute::Graph graph = compute::Graph::record(stream, [&] {
      for (int i = 0; i < steps; ++i) add_one(tensors[i % 2], tensors[(i + 1) % 2], stream);
    });
    return least_seconds([&] {
      tensors[0].write_async(values.data(), kElements * 4, stream);
      graph.run(stream);
      tensors[1].read_async(back.data(), kElements * 4, stream);
      stream.synchronize();
    });
  };
  const double one = seconds_of(1), many = seconds_of(kSteps);
  const double step = std::max(0.0, (many - one) / (kSteps - 1));
  return {std::max(0.0, one - step), step};
}

HostCosts measure_host() {
  const compute::Device cpu = compute::Device::open("cpu");
  constexpr int64_t kSide = 256, kFew = 16, kMany = int64_t{1} << 20;
  const Tensor square = cpu.full({kSide, kSide}, 0.5f), product = cpu.empty(compute::float32, {kSide, kSide});
  const Tensor few = cpu.full({kFew}, 0.5f), few_more = cpu.empty(compute::float32, {kFew});
  const Tensor many = cpu.full({kMany}, 0.5f), many_more = cpu.empty(compute::float32, {kMany});
  const double step = least_seconds([&] { add_one(few, few_more, {}); });
  const double multiplying = least_seconds([&] { compute::matmul_into(square, square, product); });
  const double moving = least_seconds([&] { add_one(many, many_more, {}); });
  return {step, multiplying / static_cast<double>(kSide * kSide * kSide), moving / static_cast<double>(8 * kMany)};
}

struct Work {
  double multiplications = 0, bytes = 0;
  int64_t steps = 0;  // each needs the one before
};

double size_of(const Shape& shape) {
  double size = 1;
  for (const int64_t extent : shape) size *= static_cast<double>(extent);
  return size;
}

void add_step(const Tape& tape, const Step& step, Work& work) {
  std::vector<Shape> in, out;
  const auto take = [&](const std::vector<OperandPlace>& places, std::vector<Shape>& shapes) {
    for (const OperandPlace& place : places) {
      const auto at = static_cast<size_t>(place.index);
      Shape& shape = shapes.emplace_back();
      if (place.kind == OperandPlace::kNone) continue;
      DType dtype;
      if (place.kind == OperandPlace::kConstant) {
        shape.assign(tape.constants[at].shape().begin(), tape.constants[at].shape().end());
        dtype = tape.constants[at].dtype();
      } else {
        shape = tape.layouts[at].shape;
        dtype = tape.layouts[at].dtype;
      }
      work.bytes += size_of(shape) * static_cast<double>(dtype.size());
    }
  };
  take(step.inputs, in);
  take(step.outputs, out);
  ++work.steps;
  if (in.empty() || out.empty()) return;
  if (step.op == "convolution" && in[1].size() > 1) {
    work.multiplications += size_of(out[0]) * size_of(in[1]) / static_cast<double>(std::max<int64_t>(in[1][0], 1));
  } else if (step.op == "convolution_transpose" && in[1].size() > 1) {
    work.multiplications += size_of(in[0]) * size_of(in[1]) / static_cast<double>(std::max<int64_t>(in[1][0], 1));
  } else if ((step.op == "matmul" || step.op == "affine") && !in[0].empty()) {
    work.multiplications += size_of(out[0]) * static_cast<double>(in[0].back());
  } else if ((step.op == "lstm" || step.op == "gru") && in.size() > 2 && in[0].size() == 3) {
    work.multiplications += static_cast<double>(in[0][0] * in[0][1]) * (size_of(in[1]) + size_of(in[2]));
    work.steps += 2 * in[0][0];  // a product and the gates of each time
  }
}

}  // namespace

Placement place(const Tape& tape, const compute::Device& device, const std::function<void()>& run_there) {
  static std::mutex lock;
  static std::map<std::string, DeviceCosts> known;
  static const HostCosts host = measure_host();
  DeviceCosts costs{};
  {
    const std::lock_guard guard(lock);
    const std::string name(device.name());
    if (!known.contains(name)) known[name] = measure(device);
    costs = known[name];
  }
  Work work;
  for (const Step& step : tape.steps) add_step(tape, step, work);
  const double there = costs.run + static_cast<double>(work.steps) * costs.step;
  const double here = static_cast<double>(tape.steps.size()) * host.step +
                      (work.multiplications * host.multiplication + work.bytes * host.byte) / kHostShare;
  bool is_on_host = here < there;
  char seen[64] = "";
  if (!is_on_host && here < kFar * there) {
    const double run = least_seconds(run_there);
    is_on_host = here < run;
    std::snprintf(seen, sizeof seen, ", %.0f us seen", 1e6 * run);
  }
  char text[320];
  std::snprintf(
      text, sizeof text,
      "about %.0f us there (%.2g million multiplications, %.2g MB), on %s at least %.0f us (%.0f us for a run "
      "and %.1f us for each of %lld steps)%s",
      1e6 * here, 1e-6 * work.multiplications, 1e-6 * work.bytes, std::string(device.name()).c_str(), 1e6 * there,
      1e6 * costs.run, 1e6 * costs.step, static_cast<long long>(work.steps), seen);
  return {is_on_host, text};
}

}  // namespace onnxruntime_compute
