// SPDX-License-Identifier: Apache-2.0
// A training step that runs many times: as it is, or recorded once into a graph and replayed.
//
//   Replay replay(device, true);
//   const Counter count = replay.counter();
//   for (int64_t i = 1; i <= steps; ++i) {
//     replay.set(count, i);
//     replay.run([&] { ... adam.step(rate, count.as("step")); });
//   }
//
// The step's inputs and results must stay in the same tensors, which may be written between runs.
#pragma once

#include "tape.hpp"

#include <optional>

/// A number that each run changes.
class Counter {
 public:
  /// The attribute `name` of an op with this number.
  [[nodiscard]] compute::Attribute as(const std::string& name) const {
    return slot_.get() != nullptr ? compute::Attribute(name, slot_) : compute::Attribute(name, *value_);
  }

 private:
  friend class Replay;
  std::shared_ptr<int64_t> value_ = std::make_shared<int64_t>(0);
  compute::Tensor slot_;  // of a graph
};

class Replay {
 public:
  /// Queues steps on a stream of `device`, which the functions of tape.hpp use.
  Replay(const compute::Device& device, bool records) : records_(records) { tape::stream = compute::Stream(device); }

  [[nodiscard]] Counter counter() const {
    Counter counter;
    if (records_) counter.slot_ = compute::Tensor::slot(compute::int64);
    return counter;
  }
  void set(const Counter& counter, int64_t value) {
    *counter.value_ = value;
    if (!records_) return;
    std::erase_if(counters_, [&](const Counter& one) { return one.value_ == counter.value_; });
    counters_.push_back(counter);
  }
  /// The first run of several records `step`; all of them do the same.
  template <class F>
  void run(const F& step) {
    if (!records_) return step();
    if (!graph_) graph_ = compute::Graph::record(tape::stream, step);
    for (const Counter& counter : counters_) graph_->set_slot(counter.slot_, *counter.value_);
    graph_->run(tape::stream);
  }

 private:
  bool records_;
  std::vector<Counter> counters_;
  std::optional<compute::Graph> graph_;
};
