// SPDX-License-Identifier: Apache-2.0
// compute cache fill: prepares a plain call of every op, so that its kernels are in the cache on disk.
#include <fmt/format.h>
#include <compute/compute.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "commands.hpp"

namespace {

using compute::Attribute;
using compute::DType;
using compute::Tensor;

struct PlainCall {
  std::string_view op, operands, attributes;
};

constexpr PlainCall kCalls[] = {
#define COMPUTE_PLAIN_CALL(op, operands, attributes) {#op, operands, attributes},
#include "plain_calls.def"
#undef COMPUTE_PLAIN_CALL
};

std::vector<std::string> words_of(std::string_view text, char separator = ' ') {
  std::vector<std::string> words;
  std::istringstream stream{std::string(text)};
  for (std::string word; std::getline(stream, word, separator);) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

DType named(const std::string& name) {
  for (const DType dtype : kDtypes) {
    if (dtype.name() == name) return dtype;
  }
  throw std::invalid_argument(fmt::format("there is no dtype {}", name));
}

DType dtype_of(const std::string& name, DType asked) { return name == "T" ? asked : named(name); }

// The dtype that all operands of an op have if it takes no real numbers.
std::optional<DType> dtype_of_class(std::string_view dtypes) {
  if (dtypes == "BOOL") return compute::bool_;
  if (dtypes == "BITS" || dtypes == "INTEGER") return compute::int32;
  if (dtypes == "COMPLEX") return compute::complex64;
  return std::nullopt;
}

// "float64" for "minimum: float64 = 0 !".
std::string kind_of(const compute::OpInfo& info, const std::string& attribute) {
  for (const std::string& declared : words_of(info.attributes, ';')) {
    const size_t colon = declared.find(':'), name = declared.find_first_not_of(' ');
    if (colon == declared.npos || declared.substr(name, colon - name) != attribute) continue;
    return words_of(declared.substr(colon + 1)).front();
  }
  throw std::logic_error(fmt::format("{} has no attribute {}", info.name, attribute));
}

Attribute attribute_of(const compute::OpInfo& info, const std::string& text, DType asked) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals), value = text.substr(equals + 1), kind = kind_of(info, name);
  if (value.front() == '[') {
    compute::Shape list;
    for (const std::string& item : words_of(std::string_view(value).substr(1, value.size() - 2), ','))
      list.push_back(std::stoll(item));
    return {name, list};
  }
  if (kind == "string") return {name, value};
  if (kind == "dtype") return {name, dtype_of(value, asked)};
  if (kind == "int64") return {name, static_cast<int64_t>(std::stoll(value))};
  return {name, std::stod(value)};
}

struct Job {
  const compute::OpInfo* info;
  DType dtype;
};

// What became of the calls.
struct Outcome {
  std::atomic<int64_t> prepared{0}, refused{0};
  std::mutex mutex;
  std::vector<std::string> faults;  // (mutex)
};

void prepare(const compute::Device& device, const Job& job, Outcome& outcome) {
  const compute::OpInfo& info = *job.info;
  try {
    const auto* const known =
        std::find_if(std::begin(kCalls), std::end(kCalls), [&](const PlainCall& one) { return one.op == info.name; });
    std::vector<Tensor> inputs;
    std::vector<Attribute> attributes;
    if (known != std::end(kCalls)) {
      for (const std::string& operand : words_of(known->operands)) {
        const size_t colon = operand.find(':');
        compute::Shape shape;
        for (const std::string& extent : words_of(operand.substr(colon + 1), 'x')) shape.push_back(std::stoll(extent));
        inputs.push_back(device.empty(dtype_of(operand.substr(0, colon), job.dtype), shape));
      }
      for (const std::string& each : words_of(known->attributes))
        attributes.push_back(attribute_of(info, each, job.dtype));
    } else {
      const DType dtype = info.expression.empty() ? job.dtype : dtype_of_class(info.dtypes).value_or(job.dtype);
      for (size_t i = 0; i < words_of(info.inputs).size(); ++i) inputs.push_back(device.empty(dtype, {4096, 128}));
      if (info.name == "where") inputs[0] = device.empty(compute::bool_, {4096, 128});
    }
    const compute::Plan plan(compute::Op(std::string(info.name), info.version), device, inputs, attributes);
    ++outcome.prepared;
  } catch (const compute::Error& error) {
    // The op does not take the dtype, or the device does not run it.
    if (error.code() == COMPUTE_ERROR_INVALID_ARGUMENT || error.code() == COMPUTE_ERROR_UNSUPPORTED) {
      ++outcome.refused;
      return;
    }
    const std::lock_guard guard(outcome.mutex);
    outcome.faults.emplace_back(error.what());
  }
}

}  // namespace

int fill_cache(const std::string& selector, const std::vector<std::string>& ops, const std::vector<std::string>& dtypes,
               int threads, bool json) {
  const compute::Device device = compute::Device::open(selector);
  const std::vector<compute::OpInfo> infos = compute::Op::list();
  for (const std::string& op : ops) {
    if (std::none_of(infos.begin(), infos.end(), [&](const compute::OpInfo& info) { return info.name == op; }))
      throw std::invalid_argument(fmt::format("there is no op {}", op));
  }
  std::vector<Job> jobs;
  for (const std::string& dtype : dtypes) {
    for (const compute::OpInfo& info : infos) {
      if (ops.empty() || std::find(ops.begin(), ops.end(), info.name) != ops.end())
        jobs.push_back({&info, named(dtype)});
    }
  }
  const auto start = std::chrono::steady_clock::now();
  const int64_t before = device.statistics().kernels_compiled;
  if (threads == 0) threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  Outcome outcome;
  std::atomic<size_t> next{0};
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        for (size_t at = next++; at < jobs.size(); at = next++) prepare(device, jobs[at], outcome);
      });
    }
  }
  const int64_t compiled = device.statistics().kernels_compiled - before;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const CacheState cache = state_of_cache();
  if (json) {
    fmt::print("{}\n", nlohmann::json{{"device", device.name()},
                                      {"calls", outcome.prepared.load()},
                                      {"refused", outcome.refused.load()},
                                      {"kernels_compiled", compiled},
                                      {"seconds", seconds},
                                      {"directory", cache.directory},
                                      {"faults", outcome.faults}}
                           .dump(2));
  } else {
    fmt::print("{} calls prepared on {}, {} refused; {} kernels compiled in {:.1f} s with {} threads; {}\n",
               outcome.prepared.load(), device.name(), outcome.refused.load(), compiled, seconds, threads,
               cache.problem.empty() ? "kept in " + cache.directory : "not kept: " + cache.problem);
    for (const std::string& fault : outcome.faults) fmt::print(stderr, "{}\n", fault);
  }
  return outcome.faults.empty() ? 0 : 1;
}
