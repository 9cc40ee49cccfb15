// SPDX-License-Identifier: Apache-2.0
// One call: where it runs, where its operands are, which plan it uses.
#pragma once

#include <compute/compute.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/execution/execution.hpp"
#include "core/streams/stream.hpp"

namespace compute {

// What is called: an op with its attributes, or a user's expression.
struct Callee {
  const OpSchema* op = nullptr;
  const Attributes* attributes = nullptr;
  uint64_t attributes_hash = 0;
  std::span<const RunTimeValue> run_time;
  const ExpressionTemplate* expression = nullptr;
  const char* name = "";
  CallPlan* kept = nullptr;  // tried first

  bool in_place() const { return op == nullptr || op->in_place(); }
  uint64_t identity() const {
    return op != nullptr ? reinterpret_cast<uint64_t>(op) : reinterpret_cast<uint64_t>(&expression->data());
  }
};

using Places = SmallVector<Execution::Place, 8>;

class Call {
 public:
  Call(const Callee& callee, compute_stream* stream, std::span<Tensor* const> inputs, compute_tensor** outputs, size_t output_count)
      : callee_(callee), inputs_(inputs), out_(outputs, output_count), stream_(stream) {}

  void run();
  // Everything but running. The plan is borrowed as from PlanCache::find.
  CallPlan* prepare();

 private:
  void settle();
  void check_outputs_given() const;
  void place_inputs();
  void place_outputs(const CallPlan& plan);
  bool place_given_output(Tensor& tensor, Execution::Place& place);
  void run_plan(CallPlan& plan);
  uint64_t counts_word() const { return inputs_.size() | out_.size() << 24 | static_cast<uint64_t>(in_place_) << 48; }
  template <class Take>
  bool each_key_word(Take&& take) const;
  size_t key_size() const;
  uint64_t hash_key() const;
  bool is_for(const CallPlan& plan) const;
  int32_t output_alignment(const Tensor* tensor) const;
  CallPlan* plan();
  CallPlan* make_plan(std::span<const uint64_t> key, uint64_t hash);
  void fall_back(const Error& refusal);

  const Callee& callee_;
  const std::span<Tensor* const> inputs_;
  const std::span<compute_tensor*> out_;
  compute_stream* const stream_;
  Device* device_ = nullptr;
  Timeline* timeline_ = nullptr;
  bool recording_ = false;
  bool in_place_ = false;
  Places input_places_, output_places_;
  // Of a host operand on the device.
  struct UsedMirror {
    BufferReference replica;
    Buffer* written = nullptr;  // the host buffer of an output
    bool became_newest = false;
  };
  std::vector<UsedMirror> mirrors_;
  SmallVector<Tensor*, 4> made_;  // outputs that this call made; released unless it succeeds

 public:
  ~Call() {
    for (Tensor* tensor : made_) release_handle(tensor);
  }
};

Callee callee_of(const OpSchema& schema, const Attributes& attributes, uint64_t attributes_hash);
// For a call without attributes.
Callee callee_by_default(const OpSchema& schema);

// Elements of `src` into `dst`: one shape, dtype and device.
void copy_into(Tensor& src, Tensor& dst, Timeline& timeline);

}  // namespace compute
