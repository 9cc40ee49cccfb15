// SPDX-License-Identifier: Apache-2.0
// max_pool_grad: for each window the first element that is its maximum, or a NaN. A task is a plane of x, in which the
// windows are visited in order.
#include "plugins/cpu/reduce/pool_grad.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/reduce/pool_kernel.hpp"
#include "plugins/cpu/thread_frame.hpp"
#include "plugins/cpu/threads.hpp"

namespace compute::cpu {
namespace {

constexpr size_t kLead = 2;  // the axes n and c
constexpr size_t kSpatial = 3;
constexpr int64_t kChunk = 4096;             // windows of a row that are visited together
constexpr int64_t kPieceElements = 4 << 10;  // a grain

static_assert(kChunk <= static_cast<int64_t>(kThreadFrameBytes));

struct Window {
  int64_t extent = 1, size = 1, stride = 1, dilation = 1, before = 0, count = 1;

  // The position of an element of a window, which may lie in the padding.
  int64_t at(int64_t window, int64_t tap) const { return window * stride + tap * dilation - before; }
  bool has(int64_t position) const { return position >= 0 && position < extent; }
  // The windows whose element `tap` is no padding.
  int64_t first(int64_t tap) const { return std::max<int64_t>(0, (before - tap * dilation + stride - 1) / stride); }
  int64_t last(int64_t tap) const {
    const int64_t room = extent - 1 + before - tap * dilation;
    return room < 0 ? 0 : std::min(count, room / stride + 1);
  }
};

// Strides in elements, over n, c and the spatial axes, of which missing ones come first.
using Strides = std::array<int64_t, kLead + kSpatial>;

Strides strides_of(const compute_plugin_tensor& tensor) {
  Strides strides{};
  const size_t missing = kLead + kSpatial - static_cast<size_t>(tensor.rank);
  for (size_t i = 0; i < static_cast<size_t>(tensor.rank); ++i)
    strides[i < kLead ? i : i + missing] = tensor.strides[i];
  return strides;
}

template <class T>
const PoolKernel<T>& kernel() {
  if constexpr (sizeof(T) == 4) {
    return isa().pool->float32;
  } else {
    return isa().pool->float64;
  }
}

template <class T>
class MaxPoolGradPlan final : public Plan {
 public:
  explicit MaxPoolGradPlan(const Op& op)
      : dy_(strides_of(op.input(0))),
        x_(strides_of(op.input(1))),
        y_(strides_of(op.input(2))),
        dx_(strides_of(op.output(0))) {
    const compute_plugin_tensor &x = op.input(1), &y = op.input(2);
    images_ = x.shape[0];
    channels_ = x.shape[1];
    const size_t spatial = static_cast<size_t>(x.rank) - kLead;
    const auto sizes = op.integers("window"), strides = op.integers("strides"), dilations = op.integers("dilations"),
               before = op.integers("pads_begin");
    for (size_t i = 0; i < spatial; ++i) {
      Window& w = windows_[kSpatial - spatial + i];
      w.extent = x.shape[kLead + i];
      w.count = y.shape[kLead + i];
      w.size = sizes[i];
      w.stride = strides.empty() ? w.size : strides[i];
      w.dilation = dilations.empty() ? 1 : dilations[i];
      if (!before.empty()) w.before = before[i];
      if (op.text("padding") == "same") {
        const int64_t reach = (w.size - 1) * w.dilation + 1;
        w.before = std::max<int64_t>((w.count - 1) * w.stride + reach - w.extent, 0) / 2;
      }
      plane_ *= w.extent;
    }
    has_rows_ = true;
    for (const Strides* each : {&dy_, &x_, &y_, &dx_}) has_rows_ = has_rows_ && each->back() == 1;
    const auto is_pair = [](const Window& w) {
      return w.size == 2 && w.stride == 2 && w.dilation == 1 && w.before == 0 && 2 * w.count <= w.extent;
    };
    is_squares_ =
        has_rows_ && windows_[0].extent == 1 && windows_[0].size == 1 && is_pair(windows_[1]) && is_pair(windows_[2]);
  }

  void run(const compute_plugin_run& run) const override {
    const auto* const dy = reinterpret_cast<const T*>(address(run.tensors[0]));
    const auto* const x = reinterpret_cast<const T*>(address(run.tensors[1]));
    const auto* const y = reinterpret_cast<const T*>(address(run.tensors[2]));
    auto* const dx = reinterpret_cast<T*>(address(run.tensors[3]));
    const int64_t grain = std::max<int64_t>(kPieceElements / plane_, 1);
    parallel_for(images_ * channels_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t image = plane / channels_, channel = plane % channels_;
        const auto in_plane = [=](const Strides& strides) { return image * strides[0] + channel * strides[1]; };
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
    const Window &rows = windows_[1], &columns = windows_[2];
    const auto clear = [&](int64_t row, int64_t from) {
      std::fill(plane.dx + row * dx_[3] + from, plane.dx + row * dx_[3] + columns.extent, T{0});
    };
    for (int64_t i = 0; i < rows.count; ++i) {
      const T* const x = plane.x + 2 * i * x_[3];
      T* const dx = plane.dx + 2 * i * dx_[3];
      kernel<T>().give_squares(x, x + x_[3], plane.y + i * y_[3], plane.dy + i * dy_[3], columns.count, dx,
                               dx + dx_[3]);
      if (2 * columns.count == columns.extent) continue;
      clear(2 * i, 2 * columns.count);
      clear(2 * i + 1, 2 * columns.count);
    }
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
  void run_windows(const Plane& plane, const std::array<int64_t, kSpatial>& first, int64_t end, uint8_t* taken) const {
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
    if (has_rows_) return kernel<T>().give(x, y, dy, step, n, taken, dx);
    for (int64_t i = 0; i < n; ++i) {
      const T value = x[i * step * x_[4]];
      if (taken[i] != 0 || (value != y[i * y_[4]] && value == value)) continue;
      taken[i] = 1;
      dx[i * step * dx_[4]] += dy[i * dy_[4]];
    }
  }

  const Strides dy_, x_, y_, dx_;
  std::array<Window, kSpatial> windows_;
  int64_t images_ = 1, channels_ = 1, plane_ = 1;
  bool has_rows_ = false;    // innermost axes are contiguous
  bool is_squares_ = false;  // windows of two by two that share nothing
};

}  // namespace

std::optional<Refusal> refuse_max_pool_grad(const Op& op) {
  const compute_dtype dtype = op.input(1).dtype;
  if (dtype != COMPUTE_DTYPE_FLOAT32 && dtype != COMPUTE_DTYPE_FLOAT64)
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 1, "max_pool_grad: only float32 and float64 are done in one pass", ""};
  if (op.input(1).rank > static_cast<int32_t>(kLead + kSpatial))
    return Refusal{COMPUTE_PLUGIN_REFUSE_RANK, 1, "max_pool_grad: only up to 3 spatial axes are done in one pass", ""};
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_max_pool_grad(const Op& op) {
  if (op.input(1).dtype == COMPUTE_DTYPE_FLOAT64) return std::make_unique<MaxPoolGradPlan<double>>(op);
  return std::make_unique<MaxPoolGradPlan<float>>(op);
}

}  // namespace compute::cpu
