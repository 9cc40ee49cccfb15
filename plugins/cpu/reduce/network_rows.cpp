// SPDX-License-Identifier: Apache-2.0
// Rows that fit in a cache use special kernels. Other layouts, dtypes and lengths are refused; core then passes the
// primitive `row`.
#include "plugins/cpu/reduce/network_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/base/walk.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/block_kernels.hpp"
#include "plugins/cpu/kernels/network_kernel.hpp"
#include "plugins/cpu/threads/thread_frame.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kLeastRow = 32, kLongestRow = 32 << 10;
constexpr int64_t kLeastGradRow = 8;             // of layer_norm_grad
constexpr int64_t kLeastChannel = 16;            // of a group, or of an image
constexpr int64_t kLongestChannel = 256 << 10;   // of all images: fits in the second cache
constexpr int64_t kPieceElements = 4 << 10;      // a grain
constexpr int64_t kFarBytes = int64_t(1) << 25;  // of all rows, from which on no cache holds them
constexpr int64_t kLine = 64;
constexpr int64_t kLeastHalfRow = 256;  // below it, one conversion of several rows takes less time
constexpr int64_t kLongestHalfRow = kThreadFrameBytes / sizeof(float);

int64_t axis_of(const Op& op, int32_t input) {
  const int64_t axis = op.integer("axis", -1);
  return axis < 0 ? axis + op.input(input).rank : axis;
}

// Of batch_norm.
int64_t channel_axis(const Op& op) {
  const int64_t axis = op.integer("axis", 1);
  return axis < 0 ? axis + op.input(0).rank : axis;
}

bool is_given(const compute_plugin_tensor& tensor) { return tensor.rank >= 0; }

// The elements of the axes from `axis` on.
int64_t row_of(const compute_plugin_tensor& tensor, int64_t axis) {
  int64_t n = 1;
  for (int64_t i = axis; i < tensor.rank; ++i) n *= tensor.shape[i];
  return n;
}

// `like` is an input with all axes; every tensor of `rows` has its rows from `axis` on, and `parameters` from their
// first axis on.
std::optional<Refusal> refuse_rows(const Op& op, int32_t like, int64_t axis, std::initializer_list<int32_t> rows,
                                   std::initializer_list<int32_t> parameters = {}, bool takes_halves = false,
                                   int64_t least = kLeastRow) {
  const auto refusal = [&](int32_t reason, int32_t tensor, const char* what) {
    return Refusal{reason, tensor, std::string(op.name()) + ": " + what + " use the primitive row", ""};
  };
  const compute_dtype dtype = op.input(like).dtype;
  const bool is_half = dtype == COMPUTE_DTYPE_FLOAT16 || dtype == COMPUTE_DTYPE_BFLOAT16;
  if (dtype != COMPUTE_DTYPE_FLOAT32 && !(takes_halves && is_half))
    return refusal(COMPUTE_PLUGIN_REFUSE_DTYPE, like, "dtypes other than float32");
  const int64_t n = row_of(op.input(like), axis);
  if (n < (is_half ? kLeastHalfRow : least) || n > (is_half ? kLongestHalfRow : kLongestRow))
    return refusal(COMPUTE_PLUGIN_REFUSE_SHAPE, like, "rows that are so short, or so long,");
  const auto check = [&](std::initializer_list<int32_t> tensors, int64_t first) -> std::optional<Refusal> {
    for (const int32_t i : tensors) {
      if (is_given(op.tensor(i)) && !common::is_row_major(op.tensor(i), first))
        return refusal(COMPUTE_PLUGIN_REFUSE_SHAPE, i, "rows that are not contiguous");
    }
    return std::nullopt;
  };
  if (std::optional<Refusal> found = check(rows, axis)) return found;
  return check(parameters, 0);
}

// The loops over rows; operands are tensors of the op.
class Rows {
 public:
  Rows(const Op& op, int32_t like, int64_t axis, std::initializer_list<int32_t> tensors)
      : n_(row_of(op.input(like), axis)) {
    const compute_plugin_tensor& shaped = op.input(like);
    const std::vector<int64_t> shape(shaped.shape, shaped.shape + axis);
    std::vector<std::vector<int64_t>> strides;
    std::vector<const int64_t*> pointers;
    for (const int32_t i : tensors) {
      const compute_plugin_tensor& tensor = op.tensor(i);
      is_row_[count_] = row_of(tensor, axis) == n_;
      tensors_[count_++] = i;
      strides.emplace_back(tensor.strides, tensor.strides + axis);
      for (int64_t& stride : strides.back()) stride *= common::dtype_size(tensor.dtype);
    }
    for (const auto& list : strides) pointers.push_back(list.data());
    nest_ = common::collapse(shape, pointers, 0);
    const int64_t row_bytes = n_ * static_cast<int64_t>(sizeof(float));
    int64_t bytes = 0;
    may_be_far_ = nest_.rank == 1 && row_bytes % kLine == 0 && row_bytes <= int64_t(kThreadFrameBytes);
    for (size_t i = 0; i < count_; ++i) {
      if (!is_row_[i]) continue;
      bytes += nest_.points() * row_bytes;
      may_be_far_ = may_be_far_ && nest_.strides[i][0] == row_bytes;  // not of halves
    }
    may_be_far_ = may_be_far_ && bytes >= kFarBytes;
  }

  int64_t n() const { return n_; }
  int64_t count() const { return nest_.points(); }

  // Whether NetworkKernels::far is for this run.
  bool is_far(const compute_plugin_run& run) const {
    if (!may_be_far_) return false;
    for (size_t i = 0; i < count_; ++i) {
      if (!is_row_[i]) continue;
      const char* const at = address(run.tensors[tensors_[i]]) + nest_.offsets[i];
      if (reinterpret_cast<uintptr_t>(at) % kLine != 0) return false;
    }
    return true;
  }

  // f(addresses of the operands) for the rows [begin, end).
  template <class F>
  void visit(const compute_plugin_run& run, int64_t begin, int64_t end, const F& f) const {
    int64_t offsets[kMost] = {};
    char* at[kMost] = {};
    Walk walk(nest_, nest_.rank, begin, offsets);
    for (int64_t row = begin; row < end; ++row) {
      for (size_t i = 0; i < count_; ++i) at[i] = address(run.tensors[tensors_[i]]) + nest_.offsets[i] + offsets[i];
      f(static_cast<char* const*>(at));
      walk.next();
    }
  }

  // The same for all rows, by all threads.
  template <class F>
  void visit(const compute_plugin_run& run, const F& f) const {
    parallel_for(count(), Grain::of(n_, kPieceElements),
                 [&](int64_t begin, int64_t end) { visit(run, begin, end, f); });
  }

  // f(kernels, addresses of the operands) for all rows, by all threads.
  template <class F>
  void visit_with_kernels(const compute_plugin_run& run, const F& f) const {
    const NetworkKernels& kernels = *isa().network;
    const bool far = is_far(run);
    const RowKernels& row = far ? kernels.far : kernels.near;
    parallel_for(count(), Grain::of(n_, kPieceElements), [&](int64_t begin, int64_t end) {
      visit(run, begin, end, [&](char* const* at) { f(row, at); });
      if (far) kernels.end_far();
    });
  }

 private:
  static constexpr size_t kMost = 5;

  const int64_t n_;
  size_t count_ = 0;
  int32_t tensors_[kMost] = {};
  bool is_row_[kMost] = {};  // else one element for each row
  common::LoopNest nest_;
  bool may_be_far_ = false;
};

float* floats(char* at) { return reinterpret_cast<float*>(at); }

class SoftmaxPlan final : public Plan {
 public:
  SoftmaxPlan(const Op& op, decltype(RowKernels::softmax) RowKernels::*kernel)
      : rows_(op, 0, axis_of(op, 0), {0, 1}), dtype_(op.input(0).dtype), kernel_(kernel) {}

  void run(const compute_plugin_run& run) const override {
    if (dtype_ != COMPUTE_DTYPE_FLOAT32) return run_halves(run);
    rows_.visit_with_kernels(run, [&](const RowKernels& kernels, char* const* at) {
      (kernels.*kernel_)(floats(at[0]), rows_.n(), floats(thread_frame()), floats(at[1]));
    });
  }

 private:
  void run_halves(const compute_plugin_run& run) const {
    const BlockFunction widen = isa().blocks->converts[dtype_][COMPUTE_DTYPE_FLOAT32];
    const BlockFunction narrow = isa().blocks->converts[COMPUTE_DTYPE_FLOAT32][dtype_];
    const RowKernels& kernels = isa().network->near;
    rows_.visit(run, [&](char* const* at) {
      float* const row = floats(thread_frame());
      const int64_t n = rows_.n(), step = 1;
      const void* const src = at[0];
      widen(&src, &step, row, n);
      (kernels.*kernel_)(row, n, nullptr, row);
      const void* const made = row;
      narrow(&made, &step, at[1], n);
    });
  }

  const Rows rows_;
  const compute_dtype dtype_;
  decltype(RowKernels::softmax) RowKernels::*const kernel_;
};

class SoftmaxGradPlan final : public Plan {
 public:
  SoftmaxGradPlan(const Op& op, decltype(RowKernels::softmax_grad) RowKernels::*kernel)
      : rows_(op, 0, axis_of(op, 0), {0, 1, 2}), kernel_(kernel) {}

  void run(const compute_plugin_run& run) const override {
    rows_.visit_with_kernels(run, [&](const RowKernels& kernels, char* const* at) {
      (kernels.*kernel_)(floats(at[0]), floats(at[1]), rows_.n(), floats(at[2]));
    });
  }

 private:
  const Rows rows_;
  decltype(RowKernels::softmax_grad) RowKernels::*const kernel_;
};

// Inputs x, scale?, bias?; outputs y, mean, rstd; the scalar epsilon.
class LayerNormPlan final : public Plan {
 public:
  explicit LayerNormPlan(const Op& op)
      : rows_(op, 0, axis_of(op, 0), {0, op.input_count(), op.input_count() + 1, op.input_count() + 2}),
        scale_(op.input_count() > 1 && is_given(op.input(1)) ? 1 : -1),
        bias_(op.input_count() > 2 && is_given(op.input(2)) ? 2 : -1) {}

  void run(const compute_plugin_run& run) const override {
    double epsilon;
    std::memcpy(&epsilon, &run.scalars[0], sizeof epsilon);
    const float* const scale = scale_ >= 0 ? floats(address(run.tensors[scale_])) : nullptr;
    const float* const bias = bias_ >= 0 ? floats(address(run.tensors[bias_])) : nullptr;
    rows_.visit_with_kernels(run, [&](const RowKernels& kernels, char* const* at) {
      kernels.layer_norm(floats(at[0]), scale, bias, static_cast<float>(epsilon), rows_.n(), floats(at[1]),
                         floats(at[2]), floats(at[3]));
    });
  }

 private:
  const Rows rows_;
  const int32_t scale_, bias_;
};

// Inputs x, scale?, bias?; outputs y, mean, rstd; the scalar epsilon. All are contiguous.
class GroupNormPlan final : public Plan {
 public:
  explicit GroupNormPlan(const Op& op)
      : groups_(op.integer("groups", 1)),
        channels_(op.input(0).shape[1] / groups_),
        count_(op.input(0).shape[0] * groups_),
        n_(channels_ * row_of(op.input(0), 2)),
        scale_(op.input_count() > 1 && is_given(op.input(1)) ? 1 : -1),
        bias_(op.input_count() > 2 && is_given(op.input(2)) ? 2 : -1),
        y_(op.input_count()),
        may_be_far_(n_ / channels_ * kFloat % kLine == 0 && 2 * count_ * n_ * kFloat >= kFarBytes) {}

  void run(const compute_plugin_run& run) const override {
    double epsilon;
    std::memcpy(&epsilon, &run.scalars[0], sizeof epsilon);
    const auto data = [&](int32_t i) { return i < 0 ? nullptr : floats(address(run.tensors[i])); };
    const float *const x = data(0), *const scale = data(scale_), *const bias = data(bias_);
    float *const y = data(y_), *const mean = data(y_ + 1), *const rstd = data(y_ + 2);
    const bool far = may_be_far_ && (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % kLine == 0;
    const NetworkKernels& kernels = *isa().network;
    const RowKernels& of_row = far ? kernels.far : kernels.near;
    parallel_for(count_, Grain::of(n_, kPieceElements), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t channel = row % groups_ * channels_;
        of_row.group_norm(x + row * n_, scale != nullptr ? scale + channel : nullptr,
                          bias != nullptr ? bias + channel : nullptr, static_cast<float>(epsilon), n_, channels_,
                          y + row * n_, mean + row, rstd + row);
      }
      if (far) kernels.end_far();
    });
  }

 private:
  static constexpr int64_t kFloat = sizeof(float);

  const int64_t groups_, channels_, count_, n_;
  const int32_t scale_, bias_, y_;
  const bool may_be_far_;
};

// Inputs x, scale?, bias?; outputs y, mean, variance; the scalar epsilon. All are contiguous. A thread has a channel of
// all images.
class BatchNormPlan final : public Plan {
 public:
  explicit BatchNormPlan(const Op& op)
      : channels_(op.input(0).shape[channel_axis(op)]),
        length_(row_of(op.input(0), channel_axis(op) + 1)),
        images_(row_of(op.input(0), 0) / (channels_ * length_)),
        scale_(op.input_count() > 1 && is_given(op.input(1)) ? 1 : -1),
        bias_(op.input_count() > 2 && is_given(op.input(2)) ? 2 : -1),
        y_(op.input_count()) {}

  void run(const compute_plugin_run& run) const override {
    double epsilon;
    std::memcpy(&epsilon, &run.scalars[0], sizeof epsilon);
    const auto data = [&](int32_t i) { return i < 0 ? nullptr : floats(address(run.tensors[i])); };
    const float *const x = data(0), *const scale = data(scale_), *const bias = data(bias_);
    float *const y = data(y_), *const mean = data(y_ + 1), *const variance = data(y_ + 2);
    const NetworkKernels& kernels = *isa().network;
    const int64_t n = images_ * length_, stride = channels_ * length_;
    parallel_for(channels_, Grain::of(n, kPieceElements), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const int64_t first = c * length_, last = first + images_ * stride;
        double sum = 0, squares = 0;
        for (int64_t at = first; at < last; at += stride) sum += static_cast<double>(kernels.sum(x + at, length_));
        const auto m = static_cast<float>(sum / static_cast<double>(n));
        for (int64_t at = first; at < last; at += stride)
          squares += static_cast<double>(kernels.square_differences(x + at, m, length_));
        mean[c] = m;
        variance[c] = static_cast<float>(squares / static_cast<double>(n));
        const float rstd = 1 / std::sqrt(variance[c] + static_cast<float>(epsilon));
        for (int64_t at = first; at < last; at += stride) {
          kernels.normalise_channel(x + at, m, rstd, scale != nullptr ? scale[c] : 1, bias != nullptr ? bias[c] : -0.0F,
                                    length_, y + at);
        }
      }
    });
  }

 private:
  const int64_t channels_, length_, images_;
  const int32_t scale_, bias_, y_;
};

// Inputs dy, x, mean, rstd, scale?; outputs dx, dscale, dbias. A task has a part of the rows, whose number depends on
// the shape alone, and sums in float64 of groups of a few rows in float32.
class LayerNormGradPlan final : public Plan {
 public:
  explicit LayerNormGradPlan(const Op& op)
      : rows_(op, 1, axis_of(op, 1), {1, 0, 2, 3, op.input_count()}),
        scale_(op.input_count() > 4 && is_given(op.input(4)) ? 4 : -1),
        dscale_(op.input_count() + 1) {
    const int64_t count = rows_.count();
    tasks_ = std::clamp<int64_t>(count * rows_.n() / kTaskElements, 1, std::min(count, kMostTasks));
    workspace_bytes = tasks_ * task_bytes();
  }

  void run(const compute_plugin_run& run) const override {
    char* const workspace = address(run.workspace);
    parallel_tasks(tasks_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) add_up(run, task, workspace + task * task_bytes());
    });
    float* const outputs[] = {floats(address(run.tensors[dscale_])), floats(address(run.tensors[dscale_ + 1]))};
    const int64_t n = rows_.n();
    parallel_for(2 * n, kPieceElements, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        double sum = 0;
        for (int64_t task = 0; task < tasks_; ++task)
          sum += reinterpret_cast<const double*>(workspace + task * task_bytes())[i];
        outputs[i / n][i % n] = static_cast<float>(sum);
      }
    });
  }

 private:
  static constexpr int64_t kTaskElements = 128 << 10, kMostTasks = 64;
  static constexpr int64_t kGroup = 8;  // rows

  int64_t task_bytes() const { return 2 * rows_.n() * static_cast<int64_t>(sizeof(double) + sizeof(float)); }

  void add_up(const compute_plugin_run& run, int64_t task, char* memory) const {
    const int64_t n = rows_.n(), count = rows_.count();
    auto* const sums = reinterpret_cast<double*>(memory);
    auto* const terms = reinterpret_cast<float*>(sums + 2 * n);
    std::fill_n(sums, 2 * n, 0.0);
    std::fill_n(terms, 2 * n, 0.0F);
    const float* const scale = scale_ >= 0 ? floats(address(run.tensors[scale_])) : nullptr;
    const NetworkKernels& kernels = *isa().network;
    const bool far = rows_.is_far(run);
    const RowKernels& of_row = far ? kernels.far : kernels.near;
    const int64_t end = count * (task + 1) / tasks_;
    for (int64_t row = count * task / tasks_; row < end; row += kGroup) {
      rows_.visit(run, row, std::min(end, row + kGroup), [&](char* const* at) {
        of_row.layer_norm_grad(floats(at[1]), floats(at[0]), scale, *floats(at[2]), *floats(at[3]), n, floats(at[4]),
                               terms, terms + n);
      });
      kernels.flush(terms, 2 * n, sums);
    }
    if (far) kernels.end_far();
  }

  const Rows rows_;
  const int32_t scale_, dscale_;
  int64_t tasks_ = 1;
};

// Inputs logits, labels; outputs loss, logsumexp; the scalar label_smoothing.
class CrossEntropyPlan final : public Plan {
 public:
  explicit CrossEntropyPlan(const Op& op)
      : rows_(op, 0, axis_of(op, 0), {0, 1, 2, 3}),
        labels_(op.input(1).dtype),
        ignores_(!op.integers("ignore_index").empty()),
        ignored_(op.integer("ignore_index", 0)) {}

  void run(const compute_plugin_run& run) const override {
    double given;
    std::memcpy(&given, &run.scalars[0], sizeof given);
    const auto smoothing = static_cast<float>(given);
    parallel_for(rows_.count(), Grain::of(rows_.n(), kPieceElements), [&](int64_t begin, int64_t end) {
      const int64_t step = std::clamp<int64_t>(kTogetherElements / rows_.n(), 1, kTogether);
      for (int64_t row = begin; row < end; row += step) run_rows(run, smoothing, row, std::min(end, row + step));
    });
  }

 private:
  static constexpr int64_t kTogether = 16, kTogetherElements = 4 << 10;  // rows; in the first cache

  // Each pass over all rows, because the processor works on several at a time if nothing else comes between them.
  void run_rows(const compute_plugin_run& run, float smoothing, int64_t begin, int64_t end) const {
    const NetworkKernels& kernels = *isa().network;
    const int64_t n = rows_.n();
    char* rows[kTogether][4];
    float base[kTogether], sum[kTogether];
    int64_t count = 0;
    rows_.visit(run, begin, end, [&](char* const* at) { std::copy_n(at, 4, rows[count++]); });
    for (int64_t i = 0; i < count; ++i) {
      const float most = kernels.greatest(floats(rows[i][0]), n);
      base[i] = std::isfinite(most) ? most : 0;
    }
    for (int64_t i = 0; i < count; ++i) sum[i] = kernels.exponentials(floats(rows[i][0]), base[i], n);
    for (int64_t i = 0; i < count; ++i) {
      char* const* const at = rows[i];
      const float* const x = floats(at[0]);
      const float logsumexp = std::log(sum[i]) + base[i];
      *floats(at[3]) = logsumexp;
      const int64_t label = label_at(at[1]);
      float logit = label >= 0 && label < n ? x[label] * (1 - smoothing) : 0;
      if (smoothing != 0) logit += kernels.sum(x, n) * (smoothing / static_cast<float>(n));
      *floats(at[2]) = ignores_ && label == ignored_ ? 0 : logsumexp - logit;
    }
  }

  template <class T>
  static int64_t read(const char* at) {
    T label;
    std::memcpy(&label, at, sizeof label);
    return static_cast<int64_t>(label);
  }

  int64_t label_at(const char* at) const {
    switch (labels_) {
      case COMPUTE_DTYPE_INT8:
        return read<int8_t>(at);
      case COMPUTE_DTYPE_UINT8:
        return read<uint8_t>(at);
      case COMPUTE_DTYPE_INT16:
        return read<int16_t>(at);
      case COMPUTE_DTYPE_UINT16:
        return read<uint16_t>(at);
      case COMPUTE_DTYPE_INT32:
        return read<int32_t>(at);
      case COMPUTE_DTYPE_UINT32:
        return read<uint32_t>(at);
      default:
        return read<int64_t>(at);
    }
  }

  const Rows rows_;
  const compute_dtype labels_;
  const bool ignores_;
  const int64_t ignored_;
};

// Along the last axis alone.
std::optional<Refusal> refuse_last_axis(const Op& op, std::initializer_list<int32_t> rows, bool takes_halves = false) {
  const int64_t axis = axis_of(op, 0);
  if (axis != op.input(0).rank - 1)
    return Refusal{COMPUTE_PLUGIN_REFUSE_ATTRIBUTE, -1,
                   std::string(op.name()) + ": for axes other than the last, use the primitive row", ""};
  return refuse_rows(op, 0, axis, rows, {}, takes_halves);
}

}  // namespace

std::optional<Refusal> refuse_softmax(const Op& op) { return refuse_last_axis(op, {0, 1}, true); }
std::unique_ptr<Plan> prepare_softmax(const Op& op) { return std::make_unique<SoftmaxPlan>(op, &RowKernels::softmax); }

std::optional<Refusal> refuse_log_softmax(const Op& op) { return refuse_last_axis(op, {0, 1}, true); }
std::unique_ptr<Plan> prepare_log_softmax(const Op& op) {
  return std::make_unique<SoftmaxPlan>(op, &RowKernels::log_softmax);
}

std::optional<Refusal> refuse_softmax_grad(const Op& op) { return refuse_last_axis(op, {0, 1, 2}); }
std::unique_ptr<Plan> prepare_softmax_grad(const Op& op) {
  return std::make_unique<SoftmaxGradPlan>(op, &RowKernels::softmax_grad);
}

std::optional<Refusal> refuse_log_softmax_grad(const Op& op) { return refuse_last_axis(op, {0, 1, 2}); }
std::unique_ptr<Plan> prepare_log_softmax_grad(const Op& op) {
  return std::make_unique<SoftmaxGradPlan>(op, &RowKernels::log_softmax_grad);
}

std::optional<Refusal> refuse_layer_norm(const Op& op) {
  const int32_t output = op.input_count();
  if (output == 3) return refuse_rows(op, 0, axis_of(op, 0), {0, output}, {1, 2});
  if (output == 2) return refuse_rows(op, 0, axis_of(op, 0), {0, output}, {1});
  return refuse_rows(op, 0, axis_of(op, 0), {0, output});
}
std::unique_ptr<Plan> prepare_layer_norm(const Op& op) { return std::make_unique<LayerNormPlan>(op); }

std::optional<Refusal> refuse_group_norm(const Op& op) {
  const compute_plugin_tensor& x = op.input(0);
  const int64_t length = row_of(x, 2), n = x.shape[1] / op.integer("groups", 1) * length;
  const auto refusal = [](int32_t reason, int32_t tensor, const char* what) {
    return Refusal{reason, tensor, std::string("group_norm: ") + what + " use the primitive row", ""};
  };
  if (x.dtype != COMPUTE_DTYPE_FLOAT32) return refusal(COMPUTE_PLUGIN_REFUSE_DTYPE, 0, "dtypes other than float32");
  if (length < kLeastChannel || n < kLeastRow || n > kLongestRow)
    return refusal(COMPUTE_PLUGIN_REFUSE_SHAPE, 0, "short channels and long groups");
  for (int32_t i = 0; i < op.input_count() + 3; ++i) {
    if (is_given(op.tensor(i)) && !common::is_row_major(op.tensor(i), 0))
      return refusal(COMPUTE_PLUGIN_REFUSE_SHAPE, i, "tensors that are not contiguous");
  }
  return std::nullopt;
}
std::optional<Refusal> refuse_batch_norm(const Op& op) {
  const compute_plugin_tensor& x = op.input(0);
  const int64_t axis = channel_axis(op), length = row_of(x, axis + 1);
  const int64_t n = x.shape[axis] == 0 ? 0 : row_of(x, 0) / x.shape[axis];
  const auto refusal = [](int32_t reason, int32_t tensor, const char* what) {
    return Refusal{reason, tensor, std::string("batch_norm: ") + what + " use the primitive row", ""};
  };
  if (x.dtype != COMPUTE_DTYPE_FLOAT32) return refusal(COMPUTE_PLUGIN_REFUSE_DTYPE, 0, "dtypes other than float32");
  if (length < kLeastChannel || n == 0 || n > kLongestChannel)
    return refusal(COMPUTE_PLUGIN_REFUSE_SHAPE, 0, "short images and long channels");
  for (int32_t i = 0; i < op.input_count() + 3; ++i) {
    if (is_given(op.tensor(i)) && !common::is_row_major(op.tensor(i), 0))
      return refusal(COMPUTE_PLUGIN_REFUSE_SHAPE, i, "tensors that are not contiguous");
  }
  return std::nullopt;
}
std::unique_ptr<Plan> prepare_batch_norm(const Op& op) { return std::make_unique<BatchNormPlan>(op); }

std::unique_ptr<Plan> prepare_group_norm(const Op& op) { return std::make_unique<GroupNormPlan>(op); }

std::optional<Refusal> refuse_layer_norm_grad(const Op& op) {
  const int32_t output = op.input_count();
  const auto refusal = [&](std::initializer_list<int32_t> parameters) {
    return refuse_rows(op, 1, axis_of(op, 1), {0, 1, output}, parameters, false, kLeastGradRow);
  };
  return output == 5 ? refusal({4, output + 1, output + 2}) : refusal({output + 1, output + 2});
}
std::unique_ptr<Plan> prepare_layer_norm_grad(const Op& op) { return std::make_unique<LayerNormGradPlan>(op); }

std::optional<Refusal> refuse_cross_entropy(const Op& op) { return refuse_last_axis(op, {0}); }
std::unique_ptr<Plan> prepare_cross_entropy(const Op& op) { return std::make_unique<CrossEntropyPlan>(op); }

}  // namespace compute::cpu
