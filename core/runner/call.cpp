// SPDX-License-Identifier: Apache-2.0
#include "core/runner/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/mix_hash.hpp"
#include "core/lifetime/open_device.hpp"
#include "core/memory/overlap.hpp"
#include "core/memory/residency.hpp"
#include "core/observation/observed.hpp"
#include "core/observation/placement.hpp"
#include "core/observation/work.hpp"
#include "core/ops/infer.hpp"
#include "core/ops/shapes.hpp"
#include "core/planner/make_plan.hpp"
#include "core/planner/plan_cache.hpp"
#include "core/runner/blocked_op.hpp"
#include "core/runner/observed_op.hpp"
#include "core/runner/recording.hpp"
#include "core/runner/submit.hpp"
#include "core/text/printable.hpp"

namespace compute {
namespace {

std::string describe(const Tensor& tensor) {
  return fmt::format("{} {}", dtype_name(tensor.dtype), shape_text(tensor.shape_span()));
}

// ---- Where a call runs ----------------------------------------------------------------------------------------------

// The stream's device; else the one device other than cpu among the operands; else cpu.
Device& device_of_call(const char* name, compute_stream* stream, std::span<Tensor* const> inputs,
                       std::span<Tensor* const> outputs) {
  Device* chosen = stream != nullptr ? &checked(stream).device : nullptr;
  const bool by_stream = chosen != nullptr;
  const auto consider = [&](Tensor* tensor, const char* role, size_t index, size_t argument) {
    if (tensor == nullptr || tensor->buffer == nullptr) return;
    Device& device = tensor->buffer->device;
    if (device.is_host || &device == chosen) return;
    if (chosen == nullptr) {
      chosen = &device;
      return;
    }
    throw Error(COMPUTE_ERROR_DEVICE_MISMATCH,
                fmt::format("{}: {} {} is on {}, but {} on {}; move one of them (to_device)", name, role, index,
                            device.name, by_stream ? "the stream is" : "another operand is", chosen->name))
        .with_argument(static_cast<int32_t>(argument));
  };
  for (size_t i = 0; i < inputs.size(); ++i) consider(inputs[i], "input", i, i);
  for (size_t i = 0; i < outputs.size(); ++i) consider(outputs[i], "output", i, inputs.size() + i);
  return chosen != nullptr ? *chosen : host_device();
}

// ---- One call -------------------------------------------------------------------------------------------------------

using Places = SmallVector<PlannedCall::Place, 8>;

class Call {
 public:
  Call(const Callee& callee, compute_stream* stream, std::span<Tensor* const> inputs,
       std::span<compute_tensor*> outputs)
      : callee_(callee), inputs_(inputs), out_(outputs), stream_(stream) {}

  void run();
  // Adds the operands to an error.
  void explain(Error& error) const;
  // Everything but running. The plan is borrowed as from PlanCache::find.
  Plan* plan_only();

 private:
  void place();
  void check_outputs_given() const;
  int32_t argument_of_output(size_t index) const { return static_cast<int32_t>(inputs_.size() + index); }
  void place_inputs();
  void place_in_mirror(const Tensor& input, PlannedCall::Place& place);
  void place_outputs(const Plan& plan);
  bool place_given_output(Tensor& tensor, PlannedCall::Place& place);
  void run_plan(Plan& plan);
  uint64_t counts_word() const { return inputs_.size() | out_.size() << 24 | static_cast<uint64_t>(in_place_) << 48; }
  template <class Take>
  bool each_key_word(Take&& take) const;
  size_t key_size() const;
  uint64_t hash_key() const;
  bool is_for(const Plan& plan) const;
  int32_t output_alignment(const Tensor* tensor) const;
  Plan* find_or_make_plan();
  Plan* add_plan(std::span<const uint64_t> key, uint64_t hash);
  bool can_move() const noexcept;
  void fall_back();
  void note_inputs() const noexcept;

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
    bool was_copied = false;
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
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: output {} is a scalar, which cannot be written", callee_.name, i))
          .with_argument(argument_of_output(i));
    }
    if (output->buffer->promise == COMPUTE_WRAP_IMMUTABLE) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: output {} is in immutable memory", callee_.name, i))
          .with_argument(argument_of_output(i));
    }
    if (overlaps_itself(*output)) {
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  fmt::format("{}: output {} {} has strides {} that make its elements overlap", callee_.name, i,
                              describe(*output), shape_text(output->strides_span())))
          .with_argument(argument_of_output(i));
    }
    for (size_t j = 0; j < inputs_.size(); ++j) {
      const Tensor* input = inputs_[j];
      if (input == nullptr || output->buffer != input->buffer) continue;
      if (same_view(*output, *input) && callee_.may_share(i, j, inputs_.size())) continue;
      if (!may_overlap(*output, *input)) continue;
      throw Error(
          COMPUTE_ERROR_INVALID_ARGUMENT,
          fmt::format("{}: output {} overlaps input {}{}", callee_.name, i, j,
                      same_view(*output, *input) ? "; the op cannot work in place" : " but is not the same view"))
          .with_argument(static_cast<int32_t>(j));
    }
    for (size_t j = 0; j < i; ++j) {
      if (out_[j] != nullptr && may_overlap(*output, *out_[j])) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, fmt::format("{}: outputs {} and {} overlap", callee_.name, j, i))
            .with_argument(argument_of_output(i));
      }
    }
  }
}

void Call::explain(Error& error) const {
  if (error.device.empty() && device_ != nullptr) error.device = device_->name;
  if (error.argument < 0) return;
  const auto position = static_cast<size_t>(error.argument);
  const bool is_input = position < inputs_.size();
  const size_t index = is_input ? position : position - inputs_.size();
  if (!is_input && index >= out_.size()) return;
  const Tensor* tensor = is_input ? inputs_[index] : out_[index];
  if (tensor == nullptr || *tensor->label() == '\0') return;
  const std::string label = in_quotes(tensor->label());
  if (error.message.find(label) != std::string::npos) return;
  error.message.insert(std::min(error.message.find('\n'), error.message.size()),
                       fmt::format(" ({} {} is {})", is_input ? "input" : "output", index, label));
}

void Call::place_inputs() {
  PlannedCall::Place* next = input_places_.extend(inputs_.size());
  for (const Tensor* tensor : inputs_) {
    PlannedCall::Place& place = *next++ = {};
    if (tensor != nullptr && tensor->buffer != nullptr && tensor->element_count > 0) {
      Buffer& buffer = *tensor->buffer;
      place.buffer = &buffer;
      place.offset_bytes = tensor->offset_bytes;
      if (&buffer.device != device_) [[unlikely]] {
        place_in_mirror(*tensor, place);
        continue;
      }
      if (buffer.newest.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
        bring_home(buffer);
      place.alignment = buffer.alignment(tensor->offset_bytes);
    }
  }
}

[[gnu::noinline]] void Call::place_in_mirror(const Tensor& input, PlannedCall::Place& place) {
  if (recording_) {
    throw Error(
        COMPUTE_ERROR_INVALID_ARGUMENT,
        fmt::format("{}: a host tensor cannot be used while a graph is recorded on {}", callee_.name, device_->name));
  }
  int64_t begin = 0, end = 0, mirror_begin = 0;
  input.byte_range(&begin, &end);
  const Subject subject = subject_of(input);
  const SubjectInView view(subject);
  const int64_t before = transfers_of_thread();
  mirrors_.push_back(
      {mirror_on(*input.buffer, begin, end, *device_, *timeline_, MirrorUse::kRead, callee_.name, &mirror_begin)});
  mirrors_.back().was_copied = transfers_of_thread() != before;
  place.buffer = mirrors_.back().replica.get();
  place.offset_bytes = input.offset_bytes - mirror_begin;
  place.alignment = place.buffer->alignment(place.offset_bytes);
}

// A given output of the host on another device is written there, in its mirror.
bool Call::place_given_output(Tensor& tensor, PlannedCall::Place& place) {
  Buffer& buffer = *tensor.buffer;
  place = {&buffer, tensor.offset_bytes, is_whole_buffer(tensor)};
  if (tensor.element_count == 0) {
    place.buffer = nullptr;
    return true;
  }
  if (&buffer.device != device_) {
    if (recording_) {
      throw Error(
          COMPUTE_ERROR_INVALID_ARGUMENT,
          fmt::format("{}: a host tensor cannot be used while a graph is recorded on {}", callee_.name, device_->name));
    }
    int64_t begin = 0, end = 0, mirror_begin = 0;
    tensor.byte_range(&begin, &end);
    const bool all = end - begin == tensor.element_count * dtype_size(tensor.dtype);
    const Subject subject = subject_of(tensor);
    const SubjectInView view(subject);
    mirrors_.reserve(mirrors_.size() + 1);  // nothing fails once the mirror is the newest copy
    bool became_newest = false;
    BufferReference replica =
        mirror_on(buffer, begin, end, *device_, *timeline_, all ? MirrorUse::kOverwrite : MirrorUse::kUpdate,
                  callee_.name, &mirror_begin, &became_newest);
    mirrors_.push_back({std::move(replica), &buffer, became_newest});
    place = {mirrors_.back().replica.get(), tensor.offset_bytes - mirror_begin, false};
  } else if (buffer.newest.load(std::memory_order_relaxed) != nullptr) {
    bring_home(buffer);
  }
  return true;
}

void Call::place_outputs(const Plan& plan) {
  for (size_t i = 0; i < out_.size(); ++i) {
    PlannedCall::Place place;
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

// An output that is to be made is aligned as allocations are.
int32_t Call::output_alignment(const Tensor* tensor) const {
  if (tensor == nullptr) return 64;
  const Buffer& buffer = *tensor->buffer;
  return &buffer.device == device_ ? buffer.alignment(tensor->offset_bytes)
                                   : buffer.alignment_in_mirrors(tensor->offset_bytes);
}

// Gives `take` the words of everything that a plan depends on, key_size() of them, until it returns false. One word per
// operand has its dtype, rank, kind and alignment; extents and strides follow.
template <class Take>
[[gnu::always_inline]] inline bool Call::each_key_word(Take&& take) const {
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

// The words are mixed already: one multiplication for all of them.
uint64_t Call::hash_key() const {
  uint64_t hash = callee_.identity();
  const auto add = [&hash](uint64_t word) { hash = std::rotl(hash, 21) ^ word; };
  add(reinterpret_cast<uint64_t>(device_));
  add(callee_.attributes_hash);
  for (size_t i = 0; i < inputs_.size(); ++i)
    add(inputs_[i] == nullptr ? 0 : inputs_[i]->layout_hash + static_cast<uint64_t>(input_places_[i].alignment));
  for (const Tensor* tensor : out_)
    add(tensor == nullptr ? 0 : tensor->layout_hash + static_cast<uint64_t>(output_alignment(tensor)));
  return mix_hash(hash, counts_word());
}

// Compares without storing the key. Words before the first difference determine how many follow, so none is read beyond
// the end.
bool Call::is_for(const Plan& plan) const {
  const uint64_t* known = plan.key.data();
  return each_key_word([&](uint64_t word) __attribute__((always_inline)) { return word == *known++; });
}

Plan* Call::find_or_make_plan() {
  if (callee_.kept != nullptr && is_for(*callee_.kept)) return callee_.kept;
  const uint64_t hash = hash_key();
  Plan* mine = PlanCache::of_thread(hash);
  if (mine != nullptr && mine->hash == hash && is_for(*mine)) return mine;
  PlanKey key;
  uint64_t* to = key.extend(key_size());
  each_key_word([&](uint64_t word) {
    *to++ = word;
    return true;
  });
  Plan* found = device_->plans->find(key, hash);
  return found != nullptr ? found : add_plan(key, hash);
}

Plan* Call::add_plan(std::span<const uint64_t> key, uint64_t hash) {
  std::vector<OperandDesc> operands;
  std::vector<int32_t> input_alignment, output_alignment;
  for (const PlannedCall::Place& place : input_places_) input_alignment.push_back(place.alignment);
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

  PlanReference plan(new Plan(*device_));
  plan->name = callee_.name;
  plan->op = callee_.op;
  std::vector<compute_dtype> wanted;
  std::optional<OpCall> op_call;
  std::optional<MapCall> map_call;
  Inference inference;
  if (callee_.op != nullptr) {
    for (const Tensor* tensor : out_) wanted.push_back(tensor != nullptr ? tensor->dtype : COMPUTE_DTYPE_NONE);
    op_call.emplace(OpCall{*callee_.op, *callee_.attributes, operands, wanted});
    inference = infer(*op_call);
    plan->flops = flops_of(*op_call, inference.outputs);
  } else {
    plan->expression = *callee_.expression;
    if (callee_.reduction != nullptr) plan->after = callee_.reduction->after;
    bool any = false;
    for (Tensor* tensor : out_) {
      wanted.push_back(tensor != nullptr ? tensor->dtype : COMPUTE_DTYPE_NONE);
      any = any || tensor != nullptr;
    }
    map_call.emplace(MapCall{*callee_.expression, operands});
    map_call->reduction = callee_.reduction;
    if (any) {
      map_call->wanted = wanted;
      for (Tensor* tensor : out_) {
        if (tensor != nullptr) map_call->wanted_shape = tensor->shape_span();
      }
    }
    inference = infer(*map_call);
  }
  plan->outputs = inference.outputs;
  if (plan->outputs.size() != out_.size()) {
    throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                fmt::format("{0}: expected {2} outputs, got {1}", callee_.name, out_.size(), plan->outputs.size()));
  }
  std::vector<LoweringTarget::Output> layouts;
  for (size_t i = 0; i < out_.size(); ++i) {
    const OutputDesc& desc = plan->outputs[i];
    plan->output_strides.push_back(row_major_strides(desc.shape));
    if (const Tensor* given = out_[i]) {
      const std::span<const int64_t> shape = given->shape_span();
      if (given->dtype != desc.dtype || !std::equal(shape.begin(), shape.end(), desc.shape.begin(), desc.shape.end())) {
        throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                    fmt::format("{}: output {} is {}, but the result is {} {}", callee_.name, i, describe(*given),
                                dtype_name(desc.dtype), shape_text(desc.shape)))
            .with_argument(argument_of_output(i));
      }
      layouts.push_back({given->dtype, shape, given->strides_span()});
    } else {
      layouts.push_back({desc.dtype, desc.shape, plan->output_strides.back()});
    }
  }

  PlanRequest request{*device_, inference};
  request.call = op_call ? &*op_call : nullptr;
  request.map = map_call ? &*map_call : nullptr;
  request.name = callee_.name;
  request.output_layouts = layouts;
  request.in_place = in_place_;
  request.input_alignment = input_alignment;
  request.output_alignment = output_alignment;
  const int64_t begin = observes(kWatchesWork) ? host_now() : 0;
  make_plan(request, *plan);
  if (observes(kWatchesWork)) record_preparation(callee_.name, *device_, begin);
  plan->key.assign(key.begin(), key.end());
  plan->hash = hash;
  return device_->plans->insert(std::move(plan));
}

// Whether a call that the device refuses may run on the host: operands move by plain transfers, after `copy` has packed
// those that are not row-major. So `copy` itself runs there only for row-major operands.
bool Call::can_move() const noexcept {
  static const OpSchema* const copy = &find_op("copy", 0);
  const auto is_plain = [](const Tensor* tensor) { return tensor == nullptr || tensor->is_row_major; };
  return callee_.op != copy ||
         (std::all_of(inputs_.begin(), inputs_.end(), is_plain) && std::all_of(out_.begin(), out_.end(), is_plain));
}

// Runs a call that the device refuses on the host, with its operands and results moved.
void Call::fall_back() {
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
    const bool moves = tensor != nullptr && tensor->buffer != nullptr;
    if (moves && !tensor->buffer->device.is_host)
      check_implicit_move(*device_, callee_.name, tensor->size_bytes(), tensor->buffer->transfers);
    inputs.push_back(moves ? move(*tensor, host) : tensor);
  }
  // Results have the dtypes of given outputs.
  std::vector<compute_tensor*> results(out_.size(), nullptr);
  for (size_t i = 0; i < out_.size(); ++i) {
    if (out_[i] == nullptr) continue;
    results[i] = make_tensor(host, out_[i]->dtype, out_[i]->shape_span(), &default_timeline(host));
    moved.emplace_back(results[i]);
  }
  Call(callee_, nullptr, inputs, results).run();
  for (size_t i = 0; i < out_.size(); ++i) {
    if (out_[i] == nullptr) moved.emplace_back(results[i]);
  }
  std::vector<TensorReference> made(out_.size());
  for (size_t i = 0; i < out_.size(); ++i) {
    if (out_[i] == nullptr) {
      compute_tensor* there = nullptr;
      throw_if(compute_tensor_to_device(results[i], device_, &there));
      made[i].reset(there);
      continue;
    }
    const Tensor& result = *results[i];
    if (out_[i]->is_row_major) {
      const int64_t size_bytes = out_[i]->size_bytes();
      if (size_bytes > 0)
        throw_if(compute_tensor_write(out_[i], result.buffer->host_address() + result.offset_bytes, size_bytes));
    } else {
      copy_into(*move(*results[i], *device_), *out_[i], *timeline_);
    }
  }
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i]) out_[i] = made[i].release();
  }
}

// Where the call runs and where its operands are.
void Call::place() {
  device_ = &device_of_call(callee_.name, stream_, inputs_, {out_.data(), out_.size()});
  device_->require_usable();
  timeline_ = stream_ != nullptr ? &stream_->timeline : &default_timeline(*device_);
  recording_ = timeline_->recording.load(std::memory_order_relaxed) != nullptr;
  for (Tensor* output : out_) {
    if (output == nullptr) continue;
    check_outputs_given();
    in_place_ = !inputs_.empty() && inputs_[0] != nullptr && out_[0] != nullptr &&
                out_[0]->buffer == inputs_[0]->buffer && same_view(*out_[0], *inputs_[0]);
    break;
  }
  place_inputs();
}

Plan* Call::plan_only() {
  place();
  return find_or_make_plan();
}

void Call::run() {
  place();
  Plan* plan = nullptr;
  try {
    plan = find_or_make_plan();
  } catch (Error& error) {
    const bool runs_on_host = callee_.op != nullptr && callee_.op->runs_on_host();
    if (error.code != COMPUTE_ERROR_UNSUPPORTED || device_->is_host || recording_ || !can_move()) throw;
    if (!may_fall_back(*device_, callee_.name, runs_on_host, error.message)) {
      if (runs_on_host) error.message += " (COMPUTE_FALLBACK=strict)";
      throw;
    }
    if (has_blocks(callee_.op, inputs_)) return run_in_blocks(*callee_.op, *callee_.attributes, stream_, inputs_, out_);
    if (observes(kPlaces)) note_inputs();
    fall_back();
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
  if (observes(kPlaces)) [[unlikely]]
    note_inputs();
  size_t next = 0;
  for (compute_tensor*& out : out_) {
    if (out == nullptr) out = made_[next++];
  }
  made_.clear();
}

// The mirrors of inputs come first, in the order of the inputs.
[[gnu::noinline]] void Call::note_inputs() const noexcept {
  size_t mirror = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor* const tensor = inputs_[i];
    if (tensor == nullptr) continue;
    InputOrigin origin = InputOrigin::kThere;
    if (tensor->buffer == nullptr) {
      origin = InputOrigin::kByValue;
    } else if (&tensor->buffer->device != device_ && tensor->element_count > 0) {
      origin = mirrors_[mirror++].was_copied ? InputOrigin::kCopied : InputOrigin::kMirror;
    }
    note_input(*device_, callee_.name, static_cast<int32_t>(i), origin);
  }
}

// Once the plan is known.
void Call::run_plan(Plan& plan) {
  place_outputs(plan);
  PlannedCall planned;
  planned.plan = &plan;
  planned.timeline = timeline_;
  planned.inputs = input_places_;
  planned.outputs = output_places_;
  planned.operands = inputs_;
  planned.run_time = callee_.run_time;
  planned.makes_outputs = made_.size() == out_.size();
  if (recording_) {
    record(*timeline_->recording, planned);
  } else if (!plan.steps.empty()) {
    submit(planned);
  }
}

}  // namespace

void run_call(const Callee& callee, compute_stream* stream, std::span<Tensor* const> inputs,
              std::span<compute_tensor*> outputs) {
  Call call(callee, stream, inputs, outputs);
  try {
    call.run();
  } catch (Error& error) {
    call.explain(error);
    throw;
  }
}

Plan* plan_of_call(const Callee& callee, compute_stream* stream, std::span<Tensor* const> inputs,
                   std::span<compute_tensor*> outputs) {
  Call call(callee, stream, inputs, outputs);
  try {
    return call.plan_only();
  } catch (Error& error) {
    call.explain(error);
    throw;
  }
}

void copy_into(Tensor& src, Tensor& dst, Timeline& timeline) {
  static const Callee callee = callee_by_default(find_op("copy", 0));
  compute_stream stream_view(device_of(src), timeline, compute_stream::Borrowed{});
  compute_tensor* output = &dst;
  Tensor* input = &src;
  run_call(callee, &stream_view, {&input, 1}, {&output, 1});
}

}  // namespace compute
