// SPDX-License-Identifier: Apache-2.0
// max_pool_grad: for each window the first element that is its maximum, or a NaN. average_pool_grad: a share of each
// window for each of its elements. A task is a plane of x, in which the windows are visited in order.
#include "plugins/cpu/reduce/pool_grad.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "plugins/cpu/reduce/pool_windows.hpp"
#include "plugins/cpu/threads/thread_frame.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kChunk = 4096;             // windows of a row that are visited together
constexpr int64_t kPieceElements = 4 << 10;  // a grain

static_assert(kChunk * sizeof(double) <= kThreadFrameBytes);

template <class T>
class MaxPoolGradPlan final : public Plan {
 public:
  explicit MaxPoolGradPlan(const Op& op)
      : dy_(pool_strides(op.input(0))),
        x_(pool_strides(op.input(1))),
        y_(pool_strides(op.input(2))),
        dx_(pool_strides(op.output(0))),
        windows_(pool_windows(op, op.input(1), op.input(2))) {
    images_ = op.input(1).shape[0];
    channels_ = op.input(1).shape[1];
    for (const PoolWindow& w : windows_) plane_ *= w.extent;
    has_rows_ = true;
    for (const PoolStrides* each : {&dy_, &x_, &y_, &dx_}) has_rows_ = has_rows_ && each->back() == 1;
    is_squares_ = has_rows_ && are_squares(windows_);
  }

  void run(const compute_plugin_run& run) const override {
    const auto* const dy = reinterpret_cast<const T*>(address(run.tensors[0]));
    const auto* const x = reinterpret_cast<const T*>(address(run.tensors[1]));
    const auto* const y = reinterpret_cast<const T*>(address(run.tensors[2]));
    auto* const dx = reinterpret_cast<T*>(address(run.tensors[3]));
    parallel_for(images_ * channels_, Grain::of(plane_, kPieceElements), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t image = plane / channels_, channel = plane % channels_;
        const auto in_plane = [=](const PoolStrides& strides) { return image * strides[0] + channel * strides[1]; };
        const Plane at{dy + in_plane(dy_), x + in_plane(x_), y + in_plane(y_), dx + in_plane(dx_)};
        is_squares_ ? run_squares(at) : run_plane(at);
      }
    });
  }

 private:
  struct Plane {
    const T *dy, *x, *y;
    T* dx;
  };

  void run_squares(const Plane& plane) const {
    const PoolWindow &rows = windows_[1], &columns = windows_[2];
    const auto clear = [&](int64_t row, int64_t from) {
      std::fill(plane.dx + row * dx_[3] + from, plane.dx + row * dx_[3] + columns.extent, T{0});
    };
    pool_kernel<T>().give_squares(
        {plane.x, plane.y, plane.dy, plane.dx, x_[3], y_[3], dy_[3], dx_[3], rows.count, columns.count});
    for (int64_t row = 0; 2 * columns.count < columns.extent && row < 2 * rows.count; ++row)
      clear(row, 2 * columns.count);
    for (int64_t row = 2 * rows.count; row < rows.extent; ++row) clear(row, 0);
  }

  void run_plane(const Plane& plane) const {
    auto* const taken = reinterpret_cast<uint8_t*>(thread_frame());
    for (int64_t i = 0; i < windows_[0].extent; ++i) {
      for (int64_t j = 0; j < windows_[1].extent; ++j) {
        T* const row = plane.dx + i * dx_[2] + j * dx_[3];
        for (int64_t k = 0; k < windows_[2].extent; ++k) row[k * dx_[4]] = T{0};
      }
    }
    for (int64_t i = 0; i < windows_[0].count; ++i) {
      for (int64_t j = 0; j < windows_[1].count; ++j) {
        for (int64_t k = 0; k < windows_[2].count; k += kChunk)
          run_windows(plane, {i, j, k}, std::min(windows_[2].count, k + kChunk), taken);
      }
    }
  }

  // The windows from `first` to `end` along the innermost axis.
  void run_windows(const Plane& plane, const std::array<int64_t, kPoolSpatial>& first, int64_t end,
                   uint8_t* taken) const {
    std::memset(taken, 0, static_cast<size_t>(end - first[2]));
    const T* const dy = plane.dy + first[0] * dy_[2] + first[1] * dy_[3];
    const T* const y = plane.y + first[0] * y_[2] + first[1] * y_[3];
    for (int64_t a = 0; a < windows_[0].size; ++a) {
      const int64_t i = windows_[0].at(first[0], a);
      if (!windows_[0].has(i)) continue;
      for (int64_t b = 0; b < windows_[1].size; ++b) {
        const int64_t j = windows_[1].at(first[1], b);
        if (!windows_[1].has(j)) continue;
        for (int64_t c = 0; c < windows_[2].size; ++c) {
          const int64_t from = std::max(first[2], windows_[2].first(c)), to = std::min(end, windows_[2].last(c));
          if (from >= to) continue;
          const int64_t k = windows_[2].at(from, c);
          give(plane.x + i * x_[2] + j * x_[3] + k * x_[4], y + from * y_[4], dy + from * dy_[4], to - from,
               taken + (from - first[2]), plane.dx + i * dx_[2] + j * dx_[3] + k * dx_[4]);
        }
      }
    }
  }

  void give(const T* x, const T* y, const T* dy, int64_t n, uint8_t* taken, T* dx) const {
    const int64_t step = windows_[2].stride;
    if (has_rows_) return pool_kernel<T>().give(x, y, dy, step, n, taken, dx);
    for (int64_t i = 0; i < n; ++i) {
      const T value = x[i * step * x_[4]];
      if (taken[i] != 0 || (value != y[i * y_[4]] && value == value)) continue;
      taken[i] = 1;
      dx[i * step * dx_[4]] += dy[i * dy_[4]];
    }
  }

  const PoolStrides dy_, x_, y_, dx_;
  const PoolWindows windows_;
  int64_t images_ = 1, channels_ = 1, plane_ = 1;
  bool has_rows_ = false;    // innermost axes are contiguous
  bool is_squares_ = false;  // windows of two by two that share nothing
};

template <class T>
class AveragePoolGradPlan final : public Plan {
 public:
  explicit AveragePoolGradPlan(const Op& op)
      : counts_padding_(op.integer("count_include_pad", 0) != 0),
        dy_(pool_strides(op.input(0))),
        dx_(pool_strides(op.output(0))),
        windows_(pool_windows(op, op.output(0), op.input(0))),
        images_(op.output(0).shape[0]),
        channels_(op.output(0).shape[1]) {
    int64_t elements = 1;
    for (const PoolWindow& w : windows_) elements *= w.extent + w.count * w.size;
    grain_ = Grain::of(elements, kPieceElements);
  }

  void run(const compute_plugin_run& run) const override {
    const auto* const dy = reinterpret_cast<const T*>(address(run.tensors[0]));
    auto* const dx = reinterpret_cast<T*>(address(run.tensors[1]));
    parallel_for(images_ * channels_, grain_, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t image = plane / channels_, channel = plane % channels_;
        share_plane(dy + image * dy_[0] + channel * dy_[1], dx + image * dx_[0] + channel * dx_[1]);
      }
    });
  }

 private:
  void share_plane(const T* dy, T* dx) const {
    for (int64_t i = 0; i < windows_[0].extent; ++i) {
      for (int64_t j = 0; j < windows_[1].extent; ++j) {
        T* const row = dx + i * dx_[2] + j * dx_[3];
        for (int64_t k = 0; k < windows_[2].extent; ++k) row[k * dx_[4]] = T{0};
      }
    }
    for (int64_t i = 0; i < windows_[0].count; ++i) {
      for (int64_t j = 0; j < windows_[1].count; ++j) {
        for (int64_t k = 0; k < windows_[2].count; k += kChunk)
          share_windows(dy + i * dy_[2] + j * dy_[3], {i, j, k}, std::min(windows_[2].count, k + kChunk), dx);
      }
    }
  }

  // The windows from `first` to `end` along the innermost axis, whose row of dy is given.
  void share_windows(const T* dy, const std::array<int64_t, kPoolSpatial>& first, int64_t end, T* dx) const {
    auto* const shares = reinterpret_cast<T*>(thread_frame());
    const auto elements = [this](size_t axis, int64_t window) {
      const PoolWindow& w = windows_[axis];
      return counts_padding_ ? w.size : std::max<int64_t>(w.inside(window), 1);
    };
    const int64_t lines = elements(0, first[0]) * elements(1, first[1]);
    for (int64_t k = first[2]; k < end; ++k)
      shares[k - first[2]] = dy[k * dy_[4]] / static_cast<T>(lines * elements(2, k));
    for (int64_t a = 0; a < windows_[0].size; ++a) {
      const int64_t i = windows_[0].at(first[0], a);
      if (!windows_[0].has(i)) continue;
      for (int64_t b = 0; b < windows_[1].size; ++b) {
        const int64_t j = windows_[1].at(first[1], b);
        if (!windows_[1].has(j)) continue;
        for (int64_t c = 0; c < windows_[2].size; ++c) {
          const int64_t from = std::max(first[2], windows_[2].first(c)), to = std::min(end, windows_[2].last(c));
          if (from >= to) continue;
          pool_kernel<T>().share(shares + (from - first[2]), windows_[2].stride * dx_[4], to - from,
                                 dx + i * dx_[2] + j * dx_[3] + windows_[2].at(from, c) * dx_[4]);
        }
      }
    }
  }

  const bool counts_padding_;
  const PoolStrides dy_, dx_;
  const PoolWindows windows_;
  const int64_t images_, channels_;
  Grain grain_;
};

}  // namespace

std::optional<Refusal> refuse_max_pool_grad(const Op& op) {
  const compute_dtype dtype = op.input(1).dtype;
  if (dtype != COMPUTE_DTYPE_FLOAT32 && dtype != COMPUTE_DTYPE_FLOAT64)
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 1, "max_pool_grad: only float32 and float64 are supported in one pass",
                   ""};
  if (op.input(1).rank > static_cast<int32_t>(kPoolLead + kPoolSpatial))
    return Refusal{COMPUTE_PLUGIN_REFUSE_RANK, 1, "max_pool_grad: at most 3 spatial axes are supported in one pass",
                   ""};
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_max_pool_grad(const Op& op) {
  if (op.input(1).dtype == COMPUTE_DTYPE_FLOAT64) return std::make_unique<MaxPoolGradPlan<double>>(op);
  return std::make_unique<MaxPoolGradPlan<float>>(op);
}

std::optional<Refusal> refuse_average_pool_grad(const Op& op) {
  const compute_dtype dtype = op.input(0).dtype;
  if (dtype != COMPUTE_DTYPE_FLOAT32 && dtype != COMPUTE_DTYPE_FLOAT64) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0,
                   "average_pool_grad: only float32 and float64 are supported in one pass", ""};
  }
  return common::refuse_pooling(op);
}

std::unique_ptr<Plan> prepare_average_pool_grad(const Op& op) {
  if (op.input(0).dtype == COMPUTE_DTYPE_FLOAT64) return std::make_unique<AveragePoolGradPlan<double>>(op);
  return std::make_unique<AveragePoolGradPlan<float>>(op);
}

}  // namespace compute::cpu
