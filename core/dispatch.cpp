// SPDX-License-Identifier: Apache-2.0
#include "core/dispatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>

#include "core/config.hpp"
#include "core/fault_records.hpp"
#include "core/graph.hpp"
#include "core/mix_hash.hpp"
#include "core/residency.hpp"
#include "core/sized.hpp"
#include "core/stream.hpp"
#include "core/submission.hpp"

namespace compute {
namespace {

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

using Tensors = SmallVector<Tensor*, 8>;
using Places = SmallVector<Execution::Place, 8>;

std::string describe(const Tensor& tensor) {
  return fmt::format("{} {}", dtype_name(tensor.dtype), shape_text(tensor.shape_span()));
}

bool same_view(const Tensor& a, const Tensor& b) {
  return a.buffer == b.buffer && a.dtype == b.dtype && a.offset_bytes == b.offset_bytes && a.rank == b.rank &&
         std::equal(a.shape(), a.shape() + 2 * a.rank, b.shape());
}

// Whether two layouts over one buffer may share a byte. Exact for ranges and for interleaved grids, careful otherwise.
bool may_overlap(const Tensor& a, const Tensor& b) {
  if (a.buffer != b.buffer || a.buffer == nullptr || a.element_count == 0 || b.element_count == 0) return false;
  int64_t a_begin = 0, a_end = 0, b_begin = 0, b_end = 0;
  a.byte_range(&a_begin, &a_end);
  b.byte_range(&b_begin, &b_end);
  if (a_end <= b_begin || b_end <= a_begin) return false;
  int64_t grid = 0;
  const auto fold = [&](const Tensor& tensor) {
    for (int32_t i = 0; i < tensor.rank; ++i) {
      if (tensor.shape()[i] > 1) grid = std::gcd(grid, tensor.strides()[i] * dtype_size(tensor.dtype));
    }
  };
  fold(a);
  fold(b);
  if (grid == 0) return true;
  const int64_t distance = ((a.offset_bytes - b.offset_bytes) % grid + grid) % grid;
  return distance < dtype_size(b.dtype) || distance > grid - dtype_size(a.dtype);
}

bool is_whole_buffer(const Tensor& tensor) {
  return tensor.offset_bytes == 0 && tensor.is_row_major && tensor.size_bytes() == tensor.buffer->size_bytes;
}

int32_t alignment_at(const Buffer& buffer, int64_t offset_bytes) noexcept {
  // Elsewhere than on the host allocations are aligned, so that what counts is the place in one.
  const uint64_t base = buffer.device.is_host ? buffer.handle : 0;
  const uint64_t address = (base + static_cast<uint64_t>(buffer.base_offset + offset_bytes)) | 64;
  return static_cast<int32_t>(address & -address);
}

// COMPUTE_SYNC=1: every submission is waited for, so that an error names its op.
bool waits_after_each_op() {
  static const bool waits = setting(SettingId::kSync).flag;
  return waits;
}

// ---- Where a call runs ----------------------------------------------------------------------------------------------

// The stream's device; else the one device other than cpu among the operands; else cpu.
Device& device_of_call(const char* name, compute_stream* stream, std::span<Tensor* const> inputs,
                       std::span<Tensor* const> outputs) {
  Device* chosen = stream != nullptr ? &checked(stream).device : nullptr;
  const bool by_stream = chosen != nullptr;
  const auto consider = [&](Tensor* tensor, const char* role, size_t index) {
    if (tensor == nullptr || tensor->buffer == nullptr) return;
    Device& device = tensor->buffer->device;
    if (device.is_host || &device == chosen) return;
    if (chosen == nullptr) {
      chosen = &device;
      return;
    }
    throw Error(COMPUTE_ERROR_DEVICE_MISMATCH,
                fmt::format("{}: {} {} is on {}, {} on {}; move one with compute_tensor_to_device", name, role, index, device.name,
                            by_stream ? "the stream is" : "another operand is", chosen->name))
        .with_argument(static_cast<int32_t>(index));
  };
  for (size_t i = 0; i < inputs.size(); ++i) consider(inputs[i], "input", i);
  for (size_t i = 0; i < outputs.size(); ++i) consider(outputs[i], "output", i);
  return chosen != nullptr ? *chosen : host_device();
}

// ---- One call -------------------------------------------------------------------------------------------------------

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

// Overlaps and layouts of outputs that the program gave. Shapes and dtypes are compared once they have been inferred.
void Call::check_outputs_given() const {
  for (size_t i = 0; i < out_.size(); ++i) {
    const Tensor* output = out_[i];
    if (output == nullptr) continue;
    if (output->buffer == nullptr) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: output {} is a scalar, which cannot be written", callee_.name, i));
    }
    if (output->buffer->promise == COMPUTE_WRAP_IMMUTABLE) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: output {} is over immutable memory", callee_.name, i));
    }
    if (overlaps_itself(*output)) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: output {} {} has strides {} that make its elements share memory",
                                                              callee_.name, i, describe(*output), shape_text(output->strides_span())));
    }
    for (size_t j = 0; j < inputs_.size(); ++j) {
      const Tensor* input = inputs_[j];
      if (input == nullptr || !may_overlap(*output, *input)) continue;
      if (same_view(*output, *input) && callee_.in_place()) continue;
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: output {} overlaps input {}{}", callee_.name, i, j,
                              same_view(*output, *input) ? "; the op cannot work in place" : " without being the same view"))
          .with_argument(static_cast<int32_t>(j));
    }
    for (size_t j = 0; j < i; ++j) {
      if (out_[j] != nullptr && may_overlap(*output, *out_[j])) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: outputs {} and {} overlap", callee_.name, j, i));
      }
    }
  }
}

void Call::place_inputs() {
  for (Tensor* tensor : inputs_) {
    Execution::Place place;
    if (tensor != nullptr && tensor->buffer != nullptr && tensor->element_count > 0) {
      Buffer& buffer = *tensor->buffer;
      place.buffer = &buffer;
      place.offset_bytes = tensor->offset_bytes;
      if (&buffer.device != device_) {
        if (recording_) {
          throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                      fmt::format("{}: a host tensor cannot be used while a graph is recorded on {}", callee_.name, device_->name));
        }
        int64_t begin = 0, end = 0, mirror_begin = 0;
        tensor->byte_range(&begin, &end);
        mirrors_.push_back(
            {mirror_on(buffer, begin, end, *device_, *timeline_, MirrorUse::kRead, callee_.name, &mirror_begin)});
        place.buffer = mirrors_.back().replica.get();
        place.offset_bytes = tensor->offset_bytes - mirror_begin;
      } else if (buffer.newest.load(std::memory_order_relaxed) != nullptr) {
        bring_home(buffer);
      }
      place.alignment = alignment_at(*place.buffer, place.offset_bytes);
    }
    input_places_.push_back(place);
  }
}

// A given output of the host on another device is written there, in its mirror.
bool Call::place_given_output(Tensor& tensor, Execution::Place& place) {
  Buffer& buffer = *tensor.buffer;
  place = {&buffer, tensor.offset_bytes, is_whole_buffer(tensor)};
  if (tensor.element_count == 0) {
    place.buffer = nullptr;
    return true;
  }
  if (&buffer.device != device_) {
    if (recording_) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: a host tensor cannot be used while a graph is recorded on {}", callee_.name, device_->name));
    }
    int64_t begin = 0, end = 0, mirror_begin = 0;
    tensor.byte_range(&begin, &end);
    const bool all = end - begin == tensor.element_count * dtype_size(tensor.dtype);
    mirrors_.reserve(mirrors_.size() + 1);  // nothing fails once the mirror is the newest copy
    bool became_newest = false;
    BufferReference replica = mirror_on(buffer, begin, end, *device_, *timeline_, all ? MirrorUse::kOverwrite : MirrorUse::kUpdate,
                                        callee_.name, &mirror_begin, &became_newest);
    mirrors_.push_back({std::move(replica), &buffer, became_newest});
    place = {mirrors_.back().replica.get(), tensor.offset_bytes - mirror_begin, false};
  } else if (buffer.newest.load(std::memory_order_relaxed) != nullptr) {
    bring_home(buffer);
  }
  return true;
}

void Call::place_outputs(const CallPlan& plan) {
  for (size_t i = 0; i < out_.size(); ++i) {
    Execution::Place place;
    if (out_[i] != nullptr) {
      place_given_output(*out_[i], place);
    } else {
      const OutputDesc& desc = plan.outputs[i];
      Tensor* tensor = make_tensor(*device_, desc.dtype, desc.shape, plan.output_strides[i], timeline_);
      made_.push_back(tensor);
      if (tensor->element_count > 0) {
        place = {tensor->buffer, 0, true};
        place.made = true;
      }
    }
    output_places_.push_back(place);
  }
}

// An output that is to be made is aligned; of one that is written in a mirror nothing is promised.
int32_t Call::output_alignment(const Tensor* tensor) const {
  if (tensor == nullptr) return 64;
  return tensor->element_count > 0 && &tensor->buffer->device == device_ ? alignment_at(*tensor->buffer, tensor->offset_bytes) : 1;
}

// Gives `take` the words of everything that a plan depends on, key_size() of them, until it returns false. One word per operand tells its
// dtype, rank, kind and alignment; extents and strides follow.
template <class Take>
bool Call::each_key_word(Take&& take) const {
  if (!take(callee_.identity()) || !take(reinterpret_cast<uint64_t>(device_)) || !take(counts_word())) return false;
  if (callee_.attributes != nullptr) {
    for (const uint64_t word : callee_.attributes->words()) {
      if (!take(word)) return false;
    }
  }
  const auto operand = [&](const Tensor* tensor, int32_t alignment) __attribute__((always_inline)) {
    if (tensor == nullptr) return take(0);
    if (!take(tensor->key_word | static_cast<uint64_t>(alignment) << 32)) return false;
    const int64_t* dims = tensor->shape();
    for (const int64_t* end = dims + 2 * tensor->rank; dims != end; ++dims) {
      if (!take(static_cast<uint64_t>(*dims))) return false;
    }
    return true;
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!operand(inputs_[i], input_places_[i].alignment)) return false;
  }
  for (const Tensor* tensor : out_) {
    if (!operand(tensor, output_alignment(tensor))) return false;
  }
  return true;
}

size_t Call::key_size() const {
  size_t size = 3 + inputs_.size() + out_.size();
  if (callee_.attributes != nullptr) size += callee_.attributes->words().size();
  for (const Tensor* tensor : inputs_) size += tensor != nullptr ? 2 * static_cast<size_t>(tensor->rank) : 0;
  for (const Tensor* tensor : out_) size += tensor != nullptr ? 2 * static_cast<size_t>(tensor->rank) : 0;
  return size;
}

uint64_t Call::hash_key() const {
  uint64_t hash = mix_hash(callee_.identity() ^ counts_word(), reinterpret_cast<uint64_t>(device_));
  hash = mix_hash(hash, callee_.attributes_hash);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    hash = mix_hash(hash, inputs_[i] == nullptr ? 0 : inputs_[i]->layout_hash + static_cast<uint64_t>(input_places_[i].alignment));
  }
  for (const Tensor* tensor : out_) {
    hash = mix_hash(hash, tensor == nullptr ? 0 : tensor->layout_hash + static_cast<uint64_t>(output_alignment(tensor)));
  }
  return hash;
}

// Compares without writing the key down. Words before the first difference tell how many follow, so none is read behind the end.
bool Call::is_for(const CallPlan& plan) const {
  const uint64_t* known = plan.key.data();
  return each_key_word([&](uint64_t word) { return word == *known++; });
}

CallPlan* Call::plan() {
  if (callee_.kept != nullptr && is_for(*callee_.kept)) return callee_.kept;
  const uint64_t hash = hash_key();
  CallPlan* mine = PlanCache::of_thread(hash);
  if (mine != nullptr && mine->hash == hash && is_for(*mine)) return mine;
  CallKey key;
  uint64_t* to = key.extend(key_size());
  each_key_word([&](uint64_t word) {
    *to++ = word;
    return true;
  });
  CallPlan* found = device_->plans->find(key, hash);
  return found != nullptr ? found : make_plan(key, hash);
}

CallPlan* Call::make_plan(std::span<const uint64_t> key, uint64_t hash) {
  std::vector<OperandDesc> operands;
  std::vector<int32_t> input_alignment, output_alignment;
  for (const Execution::Place& place : input_places_) input_alignment.push_back(place.alignment);
  for (const Tensor* tensor : out_) output_alignment.push_back(this->output_alignment(tensor));
  for (const Tensor* tensor : inputs_) {
    OperandDesc desc;
    if (tensor != nullptr) {
      desc.dtype = tensor->dtype;
      desc.rank = tensor->rank;
      desc.shape = tensor->shape();
      desc.strides = tensor->strides();
      desc.is_scalar = tensor->kind != Tensor::Kind::kMemory;
      desc.weak = tensor->weak;
    }
    operands.push_back(desc);
  }

  CallPlanReference plan(new CallPlan(*device_));
  plan->name = callee_.name;
  plan->op = callee_.op;
  std::vector<compute_dtype> wanted;
  std::optional<OpCall> op_call;
  std::optional<MapCall> map_call;
  if (callee_.op != nullptr) {
    op_call.emplace(OpCall{*callee_.op, *callee_.attributes, operands});
    plan->outputs = infer(*op_call);
  } else {
    plan->expression = *callee_.expression;
    bool any = false;
    for (Tensor* tensor : out_) {
      wanted.push_back(tensor != nullptr ? tensor->dtype : COMPUTE_DTYPE_NONE);
      any = any || tensor != nullptr;
    }
    map_call.emplace(MapCall{*callee_.expression, operands});
    if (any) {
      map_call->wanted = wanted;
      for (Tensor* tensor : out_) {
        if (tensor != nullptr) map_call->wanted_shape = tensor->shape_span();
      }
    }
    plan->outputs = infer(*map_call);
  }
  if (plan->outputs.size() != out_.size()) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: {} outputs were given room for, there are {}", callee_.name,
                                                            out_.size(), plan->outputs.size()));
  }
  std::vector<LoweringTarget::Output> layouts;
  for (size_t i = 0; i < out_.size(); ++i) {
    const OutputDesc& desc = plan->outputs[i];
    plan->output_strides.push_back(row_major_strides(desc.shape));
    if (const Tensor* given = out_[i]) {
      const std::span<const int64_t> shape = given->shape_span();
      if (given->dtype != desc.dtype || !std::equal(shape.begin(), shape.end(), desc.shape.begin(), desc.shape.end())) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: output {} is {}, the result is {} {}", callee_.name, i,
                                                                describe(*given), dtype_name(desc.dtype), shape_text(desc.shape)));
      }
      layouts.push_back({given->dtype, shape, given->strides_span()});
    } else {
      layouts.push_back({desc.dtype, desc.shape, plan->output_strides.back()});
    }
  }

  PlanRequest request{*device_};
  request.call = op_call ? &*op_call : nullptr;
  request.map = map_call ? &*map_call : nullptr;
  request.name = callee_.name;
  request.outputs = plan->outputs;
  request.output_layouts = layouts;
  request.in_place = in_place_;
  request.input_alignment = input_alignment;
  request.output_alignment = output_alignment;
  prepare_call(request, *plan);
  plan->key.assign(key.begin(), key.end());
  plan->hash = hash;
  return device_->plans->insert(std::move(plan));
}

// Runs a call that the device refuses on the host, with its operands and results moved.
void Call::fall_back(const Error& refusal) {
  std::vector<TensorReference> moved;
  std::vector<Tensor*> inputs;
  Device& host = host_device();
  const auto move = [&](Tensor& tensor, Device& device) {
    compute_tensor* copy = nullptr;
    throw_if(compute_tensor_to_device(&tensor, &device, &copy));
    moved.emplace_back(copy);
    return copy;
  };
  for (Tensor* tensor : inputs_) {
    inputs.push_back(tensor != nullptr && tensor->buffer != nullptr ? move(*tensor, host) : tensor);
  }
  std::vector<compute_tensor*> results(out_.size(), nullptr);
  Call(callee_, nullptr, inputs, results.data(), results.size()).run();
  for (Tensor* result : results) moved.emplace_back(result);
  std::vector<TensorReference> made(out_.size());
  for (size_t i = 0; i < out_.size(); ++i) {
    if (out_[i] == nullptr) {
      compute_tensor* there = nullptr;
      throw_if(compute_tensor_to_device(results[i], device_, &there));
      made[i].reset(there);
      continue;
    }
    Tensor* there = move(*results[i], *device_);
    if (out_[i]->dtype != there->dtype || out_[i]->rank != there->rank ||
        !std::equal(there->shape(), there->shape() + there->rank, out_[i]->shape())) {
      throw refusal;
    }
    copy_into(*there, *out_[i], *timeline_);
  }
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i]) out_[i] = made[i].release();
  }
}

// Where the call runs and where its operands are.
void Call::settle() {
  device_ = &device_of_call(callee_.name, stream_, inputs_, {out_.data(), out_.size()});
  device_->require_usable();
  timeline_ = stream_ != nullptr ? &stream_->timeline : &default_timeline(*device_);
  recording_ = timeline_->recording.load(std::memory_order_relaxed) != nullptr;
  for (Tensor* output : out_) {
    if (output == nullptr) continue;
    check_outputs_given();
    in_place_ = !inputs_.empty() && inputs_[0] != nullptr && out_[0] != nullptr && out_[0]->buffer == inputs_[0]->buffer &&
                same_view(*out_[0], *inputs_[0]);
    break;
  }
  place_inputs();
}

CallPlan* Call::prepare() {
  settle();
  return plan();
}

void Call::run() {
  settle();
  CallPlan* plan = nullptr;
  try {
    plan = this->plan();
  } catch (const Error& error) {
    if (error.code != COMPUTE_ERROR_UNSUPPORTED || device_->is_host || recording_ ||
        !may_fall_back(*device_, callee_.name, error.message)) {
      throw;
    }
    fall_back(error);
    return;
  }
  try {
    run_plan(*plan);
  } catch (...) {
    for (UsedMirror& mirror : mirrors_) {
      if (mirror.became_newest) take_back_write(*mirror.written, *mirror.replica);
    }
    throw;
  }
  for (UsedMirror& mirror : mirrors_) {
    if (mirror.written != nullptr && mirror.written->is_exposed()) bring_home(*mirror.written);
  }
  size_t next = 0;
  for (compute_tensor*& out : out_) {
    if (out == nullptr) out = made_[next++];
  }
  made_.clear();
}

// Once the plan is known.
void Call::run_plan(CallPlan& plan) {
  place_outputs(plan);
  Execution execution;
  execution.plan = &plan;
  execution.timeline = timeline_;
  execution.inputs = input_places_;
  execution.outputs = output_places_;
  execution.operands = inputs_;
  execution.run_time = callee_.run_time;
  execution.makes_outputs = made_.size() == out_.size();
  if (recording_) {
    record(*timeline_->recording, execution);
  } else if (!plan.steps.empty()) {
    execute(execution);
  }
}

}  // namespace

// ---- Submission -----------------------------------------------------------------------------------------------------

compute_plugin_operand operand_at(const Buffer& buffer, int64_t offset_bytes) noexcept {
  if (buffer.device.is_host) return {buffer.handle + static_cast<uint64_t>(buffer.base_offset + offset_bytes), 0};
  return {buffer.handle, buffer.base_offset + offset_bytes};
}

void fill_scalars(const Execution& execution, const PreparedStep& step, compute_plugin_scalar* out) {
  for (size_t i = 0; i < step.scalars.size(); ++i) {
    const StepScalar& scalar = step.scalars[i];
    const auto index = static_cast<size_t>(scalar.index);
    switch (scalar.source) {
      case ScalarSource::kValue:
        out[i] = scalar.bits;
        break;
      case ScalarSource::kOperand: {
        const Tensor& tensor = *execution.operands[index];
        out[i] = convert_scalar(scalar_from_memory(tensor.dtype, tensor.bits.data()), tensor.dtype, scalar.dtype);
        break;
      }
      case ScalarSource::kRunTimeAttribute:
        out[i] = run_time_scalar(*execution.plan->op, scalar.index, execution.run_time[index], scalar.dtype);
        break;
    }
  }
}

namespace {

// For COMPUTE_DEBUG=memory: temporaries hold no numbers before a step writes them.
void fill_new(Device& device, const Block& block, Timeline& timeline) {
  if (device.plugin == nullptr) return;
  Submission submission(timeline, {}, "debug fill");
  const compute_plugin_operand place = device.is_host
                                           ? compute_plugin_operand{block.buffer + static_cast<uint64_t>(block.offset_bytes), 0}
                                           : compute_plugin_operand{block.buffer, block.offset_bytes};
  submission.check(device.table.fill(timeline.plugin_stream, place, block.size_bytes, kNewPattern.data(), 2));
}

}  // namespace

void execute(const Execution& execution) {
  CallPlan& plan = *execution.plan;
  Timeline& timeline = *execution.timeline;
  Device& device = plan.device;
  std::optional<OwnedBlock> owned;
  if (plan.block_bytes > 0) owned.emplace(*device.memory, plan.block_bytes, timeline, MemoryUse::kTemporary);
  const Block none, &block = owned ? owned->block() : none;
  if (owned && debugs_memory()) fill_new(device, block, timeline);
  std::shared_ptr<FaultRecords> faults;
  if (plan.checks_faults) faults = FaultRecords::make(device, 1);
  SmallVector<Use, 16> uses;
  Use* use = uses.extend(execution.inputs.size() + execution.outputs.size());
  for (const auto& place : execution.inputs) {
    if (place.buffer != nullptr) *use++ = {place.buffer, false, false};
  }
  for (const auto& place : execution.outputs) {
    if (place.buffer != nullptr) *use++ = {place.buffer, true, place.covers};
  }
  uses.resize(static_cast<size_t>(use - uses.data()));
  const auto at = [is_host = device.is_host](uint64_t buffer, int64_t offset) {
    return is_host ? compute_plugin_operand{buffer + static_cast<uint64_t>(offset), 0} : compute_plugin_operand{buffer, offset};
  };
  uint64_t number = 0;
  try {
    Submission submission(timeline, uses, plan.name);
    number = submission.number();
    if (owned) owned->used_by(timeline, number);
    if (faults) faults->used_by(timeline, number);
    // Before anything is queued that may write the record.
    if (faults && !timeline.immediate) timeline.expect_fault_locked(number, plan.name, faults->at(0), faults);
    SmallVector<compute_plugin_operand, 8> operands;
    SmallVector<compute_plugin_scalar, 8> scalars;
    for (const PreparedStep& step : plan.steps) {
      operands.clear();
      compute_plugin_operand* to = operands.extend(step.operands.size());
      for (const PreparedStep::Operand& operand : step.operands) {
        const auto index = static_cast<size_t>(operand.index);
        if (operand.kind == ValueKind::kTemporary) {
          *to++ = at(block.buffer, block.offset_bytes + plan.temporary_offsets[index] + operand.offset_bytes);
          continue;
        }
        const Execution::Place& place = operand.kind == ValueKind::kInput ? execution.inputs[index] : execution.outputs[index];
        *to++ = at(place.buffer->handle, place.buffer->base_offset + place.offset_bytes + operand.offset_bytes);
      }
      scalars.clear();
      scalars.resize(step.scalars.size());
      if (!step.scalars.empty()) fill_scalars(execution, step, scalars.data());
      compute_plugin_run run{};
      run.struct_size = sizeof run;
      run.struct_type = COMPUTE_PLUGIN_STRUCT_RUN;
      run.stream = timeline.plugin_stream;
      run.tensors = operands.data();
      run.scalars = scalars.data();
      run.tensor_count = static_cast<int32_t>(operands.size());
      run.scalar_count = static_cast<int32_t>(scalars.size());
      run.workspace_bytes = step.workspace_bytes;
      if (block) run.workspace = at(block.buffer, block.offset_bytes + plan.workspace_offset);
      if (faults && step.reports_faults) run.fault = faults->operand(0);
      submission.check(device.table.op_run(step.plan, run), plan.name);
    }
    timeline.count_op();
    if (faults && timeline.immediate && faults->at(0)->code != COMPUTE_FAULT_NONE) {
      const Error error = fault_error(plan.name, *faults->at(0), device);
      if (!execution.makes_outputs) submission.spoil(error);
      throw error;
    }
  } catch (...) {
    // Where part of it was queued the stream has failed; only the plugin knows.
    timeline.poll();
    throw;
  }
  owned.reset();
  plan.runs.fetch_add(1, std::memory_order_relaxed);
  if (waits_after_each_op() && !timeline.immediate) timeline.wait(number, COMPUTE_TIMEOUT_NONE);
}

// ---- Entry points ---------------------------------------------------------------------------------------------------

void note_failed_call(Error& error, const char* name, compute_stream* stream) noexcept {
  error.with_op(name);
  if (stream != nullptr && stream->is_alive()) note_recording_error(stream->timeline, error);
}

namespace {

void check_inputs(const char* name, compute_tensor* const* inputs, int64_t count, const OpSchema* schema) {
  for (int64_t i = 0; i < count; ++i) {
    if (inputs[i] == nullptr) {
      const bool optional = schema != nullptr && static_cast<size_t>(i) < schema->optional.size() &&
                            schema->optional[static_cast<size_t>(i)];
      if (optional) continue;
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: input {} is NULL", name, i)).with_argument(static_cast<int32_t>(i));
    }
    if (!inputs[i]->is_alive()) checked(inputs[i]);
  }
}

}  // namespace

CallAttributes::CallAttributes(const OpSchema& schema, const compute_attribute* given, int64_t count)
    : run_time(schema.run_time.size()) {
  if (count > 0) require_not_null(given, "attributes");
  read_attributes(schema, given, count, statics, run_time.data());
  statics_hash = statics.hash();
  read_scalars(schema);
}

void CallAttributes::change_run_time(const OpSchema& schema, const compute_attribute* given, int64_t count) {
  compute::change_run_time(schema, given, count, run_time.data());
  read_scalars(schema);
}

void CallAttributes::read_scalars(const OpSchema& schema) {
  for (size_t i = 0; i < schema.run_time.size(); ++i) {
    RunTimeValue& value = run_time[i];
    if (value.kind != COMPUTE_KIND_SCALAR) continue;
    const Tensor& scalar = checked(value.scalar);
    if (scalar.kind == Tensor::Kind::kMemory) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: attribute {} is a tensor with memory; give a scalar or a slot", schema.name,
                              schema.attributes[static_cast<size_t>(schema.run_time[i])].name));
    }
    value.dtype = scalar.dtype;
    value.bits = scalar_from_memory(scalar.dtype, scalar.bits.data());
  }
}

namespace {

Callee callee_of(const OpSchema& schema, const Attributes& attributes, uint64_t attributes_hash) {
  Callee callee;
  callee.op = &schema;
  callee.attributes = &attributes;
  callee.attributes_hash = attributes_hash;
  callee.name = schema.name.c_str();
  return callee;
}

Callee callee_of(const OpSchema& schema, const CallAttributes& attributes) {
  Callee callee = callee_of(schema, attributes.statics, attributes.statics_hash);
  callee.run_time = attributes.run_time;
  return callee;
}

// For a call without attributes.
Callee callee_by_default(const OpSchema& schema) { return callee_of(schema, *schema.defaults, schema.defaults_hash); }

void check_operands(const OpSchema& schema, compute_tensor* const* inputs, int64_t input_count, compute_tensor* const* outputs,
                    int64_t output_count) {
  if (input_count > 0) require_not_null(inputs, "inputs");
  if (output_count > 0) require_not_null(outputs, "outputs");
  check_operand_counts(schema, input_count, output_count);
  check_inputs(schema.name.c_str(), inputs, input_count, &schema);
  for (int64_t i = 0; i < output_count; ++i) {
    if (outputs[i] != nullptr) checked(outputs[i]);
  }
}

}  // namespace

void run_op(const OpSchema& schema, compute_stream* stream, const compute_attribute* attributes, int64_t attribute_count,
            compute_tensor* const* inputs, int64_t input_count, compute_tensor** outputs, int64_t output_count) {
  named_call(schema.name.c_str(), stream, [&] {
    check_operands(schema, inputs, input_count, outputs, output_count);
    const auto run = [&](const Callee& callee) {
      Call(callee, stream, {inputs, static_cast<size_t>(input_count)}, outputs, static_cast<size_t>(output_count)).run();
    };
    if (attribute_count == 0 && schema.defaults) return run(callee_by_default(schema));
    const CallAttributes read(schema, attributes, attribute_count);
    run(callee_of(schema, read));
  });
}

CallPlanReference prepare_op(const OpSchema& schema, Device& device, const CallAttributes& attributes, compute_tensor* const* inputs,
                             int64_t input_count, compute_tensor* const* outputs, int64_t output_count) {
  check_operands(schema, inputs, input_count, outputs, output_count);
  const Callee callee = callee_of(schema, attributes);
  std::vector<compute_tensor*> given(outputs, outputs + output_count);
  compute_stream stream(device, default_timeline(device), compute_stream::Borrowed{});
  CallPlan* plan = Call(callee, &stream, {inputs, static_cast<size_t>(input_count)}, given.data(), given.size()).prepare();
  plan->retain();
  return CallPlanReference(plan);
}

void run_prepared(CallPlan& kept, const CallAttributes& attributes, compute_stream* stream, compute_tensor* const* inputs,
                  int64_t input_count, compute_tensor** outputs, int64_t output_count) {
  Callee callee = callee_of(*kept.op, attributes);
  callee.kept = &kept;
  const auto run = [&](compute_stream& queue) {
    Call(callee, &queue, {inputs, static_cast<size_t>(input_count)}, outputs, static_cast<size_t>(output_count)).run();
  };
  if (stream != nullptr) return run(*stream);
  compute_stream queue(kept.device, default_timeline(kept.device), compute_stream::Borrowed{});
  run(queue);
}

compute_error* run_elementwise(OpId id, compute_stream* stream, compute_tensor* const* inputs, int64_t input_count,
                               compute_tensor** out, compute_tensor* into) noexcept {
  if (out != nullptr) *out = nullptr;
  return guard([&] {
    const Callee callee = callee_by_default(op_schema(id));
    compute_tensor* output = into;
    named_call(callee.name, stream, [&] {
      check_inputs(callee.name, inputs, input_count, nullptr);
      if (out == nullptr) {
        if (into == nullptr) throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: the place of the output is NULL", callee.name));
        checked(into);
      }
      Call(callee, stream, {inputs, static_cast<size_t>(input_count)}, &output, 1).run();
    });
    if (out != nullptr) *out = output;
  });
}

void run_map(const ExpressionTemplate& expression, compute_stream* stream, std::span<Tensor* const> operands,
             compute_tensor** outputs, int64_t output_count) {
  Callee callee;
  callee.expression = &expression;
  callee.name = "map";
  Call(callee, stream, operands, outputs, static_cast<size_t>(output_count)).run();
}

void copy_into(Tensor& src, Tensor& dst, Timeline& timeline) {
  static const Callee callee = callee_by_default(find_op("copy", 0));
  compute_stream stream_view(src.device(), timeline, compute_stream::Borrowed{});
  compute_tensor* output = &dst;
  Tensor* input = &src;
  Call(callee, &stream_view, {&input, 1}, &output, 1).run();
}

TensorReference pack(Tensor& tensor, Timeline& timeline) {
  TensorReference packed(make_tensor(tensor.device(), tensor.dtype, tensor.shape_span(), &timeline));
  copy_into(tensor, *packed, timeline);
  return packed;
}

}  // namespace compute
