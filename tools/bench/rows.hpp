// SPDX-License-Identifier: Apache-2.0
// Rows: what is measured, and beside each the peers that do the same work another way. A peer is called ROW@PEER.
#pragma once

#include <benchmark/benchmark.h>

#include <compute/compute.hpp>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace compute::bench {

struct Options {
  bool large = false;  // 1e8 elements, matrices of 4096
};

void add_overhead_rows(const Options& options);
void add_elementwise_rows();
void add_memory_bound_rows(const Options& options);
void add_matmul_rows(const Options& options);

// The work of one call, in what its rate is given.
struct Work {
  double bytes = 0;
  double flops = 0;
};

// Registers a benchmark, in time of the calling thread: all work is done there. `make` prepares the call that is
// measured; a row and its peers run in turn, so that several prepared calls are kept.
template <class Make>
void add_row(const std::string& name, Work work, Make make) {
  benchmark::RegisterBenchmark(name.c_str(), [name, work, make](benchmark::State& state) {
    using Call = decltype(make());
    static std::list<std::pair<std::string, std::shared_ptr<Call>>> prepared;
    std::shared_ptr<Call> call;
    for (const auto& [known, kept] : prepared) {
      if (known == name) call = kept;
    }
    if (call == nullptr) {
      prepared.emplace_back(name, call = std::make_shared<Call>(make()));
      if (prepared.size() > 2) prepared.pop_front();
    }
    for (auto _ : state) (*call)();
    const auto calls = static_cast<double>(state.iterations());
    if (work.bytes > 0)
      state.counters["bytes_per_second"] = benchmark::Counter(calls * work.bytes, benchmark::Counter::kIsRate);
    if (work.flops > 0) state.counters["flops"] = benchmark::Counter(calls * work.flops, benchmark::Counter::kIsRate);
  });
}

// The device that rows run on: `cpu`.
const Device& cpu();

// Values between -1 and 1, of integers any; other ones in each place, and for each seed.
template <class T>
Tensor values(std::initializer_list<int64_t> shape, uint32_t seed = 1) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  std::vector<T> data(static_cast<size_t>(count));
  uint32_t state = seed;
  for (T& value : data) {
    state = state * 1664525u + 1013904223u;
    if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(state >> 8);
    } else {
      value = static_cast<T>(static_cast<int32_t>(state) * 0x1p-31);
    }
  }
  return cpu().from_host(std::span<const T>(data), std::span(shape.begin(), shape.size()));
}

// The memory of a tensor on `cpu`: as aligned and in as large pages as what ops work on.
class Mapped {
 public:
  explicit Mapped(Tensor tensor) : tensor_(std::move(tensor)) {
    int32_t is_copy = 0;
    check(compute_tensor_map(tensor_.get(), COMPUTE_ACCESS_READ | COMPUTE_ACCESS_WRITE, &data_, &is_copy));
  }
  Mapped(Mapped&&) = default;
  ~Mapped() {
    if (tensor_.defined()) compute_error_free(compute_tensor_unmap(tensor_.get(), data_));
  }

  template <class T = void>
  T* data() const {
    return static_cast<T*>(data_);
  }
  size_t size_bytes() const { return static_cast<size_t>(tensor_.size_bytes()); }

 private:
  Tensor tensor_;
  void* data_ = nullptr;
};

template <class T>
const char* dtype_text() {
  return compute_dtype_name(dtype_of<T>.id());
}

}  // namespace compute::bench
