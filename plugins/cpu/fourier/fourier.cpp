// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/fourier/fourier.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/base/walk.hpp"
#include "plugins/cpu/fourier/lines.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kThreadWork = 1 << 16;        // elements times passes that are worth a thread
constexpr int64_t kRowElements = 1 << 10;       // of rows that a thread transforms one by one
constexpr int64_t kMostCopiedBytes = 16 << 20;  // of lines that a thread copies together

// Lines whose elements are apart are copied several at a time, because they share cache lines: rows of `dst` are lines,
// `pitch` apart. E is a real or a complex number.
template <class E>
void gather(const E* src, int64_t step, int64_t line, int64_t n, int64_t count, E* dst, int64_t pitch) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < count; ++j) dst[j * pitch + i] = src[i * step + j * line];
  }
}
template <class E>
void scatter(const E* src, int64_t pitch, int64_t n, int64_t count, E* dst, int64_t step, int64_t line) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < count; ++j) dst[i * step + j * line] = src[j * pitch + i];
  }
}

template <class T>
struct Pair {
  T re, im;
};
template <class T>
const Pair<T>* pairs(const T* p) {
  return reinterpret_cast<const Pair<T>*>(p);
}
template <class T>
Pair<T>* pairs(T* p) {
  return reinterpret_cast<Pair<T>*>(p);
}

// What all plans have: the lines, and which of them a task transforms.
template <class T>
class FourierPlan : public Plan {
 protected:
  // `length` is that of the complex transform, `points` what the norm divides by. Strides are in elements of a tensor.
  FourierPlan(const Op& op, int64_t length, int64_t points) : line_(length) {
    const compute_plugin_tensor &src = op.input(0), &dst = op.output(0);
    const auto axis = static_cast<size_t>(op.integers("axes")[0]);
    src_step_ = src.strides[axis];
    dst_step_ = dst.strides[axis];
    std::vector<int64_t> shape, strides[2];
    for (size_t i = 0; i < static_cast<size_t>(src.rank); ++i) {
      if (i == axis) continue;
      shape.push_back(src.shape[i]);
      strides[0].push_back(src.strides[i]);
      strides[1].push_back(dst.strides[i]);
    }
    const int64_t* const pointers[] = {strides[0].data(), strides[1].data()};
    nest_ = common::collapse(shape, pointers, 1);
    const std::string_view norm = op.text("norm");
    const bool is_inverse = op.name() == "irfft" || op.integer("inverse", 0) != 0;
    const auto count = static_cast<double>(points);
    if (norm == "ortho") scale_ = static_cast<T>(1 / std::sqrt(count));
    if ((norm == "forward" && !is_inverse) || ((norm == "backward" || norm.empty()) && is_inverse))
      scale_ = static_cast<T>(1 / count);
  }

  // Lines are in groups of `group` along the last loop. `copies` is the number of elements that a task needs besides.
  void divide(int64_t group, int64_t copies) {
    group_ = group;
    inner_ = lines();
    groups_ = (inner_ + group - 1) / group;
    outer_ = nest_.points() / inner_;
    const int64_t tasks = outer_ * groups_;
    const auto passes = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(line_.length())));
    const int64_t work = nest_.points() * line_.length() * passes;
    threads_ = std::clamp<int64_t>(work / kThreadWork, 1, thread_count());
    // Many tasks go one to a thread; few share the threads.
    is_shared_ = tasks < threads_ || (tasks < 2 * threads_ && tasks % threads_ != 0);
    const int64_t slots = is_shared_ ? 1 : threads_;
    copies_size_ = (copies + 15) / 16 * 16;
    slot_size_ = copies_size_ + line_.own_size() + (is_shared_ ? threads_ : 1) * line_.worker_size();
    workspace_bytes = slots * slot_size_ * int64_t{sizeof(T)};
  }

  // A group of lines on its way.
  struct Group {
    int64_t src, dst;  // offsets
    int64_t count;
    T *copies, *own;
    FourierWorkers<T> workers;
  };

  // Along the last loop.
  int64_t lines() const { return nest_.rank == 0 ? 1 : nest_.extents[static_cast<size_t>(nest_.rank - 1)]; }
  int64_t src_line() const { return nest_.rank == 0 ? 0 : nest_.strides[0][static_cast<size_t>(nest_.rank - 1)]; }
  int64_t dst_line() const { return nest_.rank == 0 ? 0 : nest_.strides[1][static_cast<size_t>(nest_.rank - 1)]; }

  template <class F>
  void each_group(const compute_plugin_run& run, const F& body) const {
    T* const workspace = reinterpret_cast<T*>(address(run.workspace));
    const FourierWorkers<T> slots{workspace, slot_size_, is_shared_ ? 1 : threads_};
    slots.each(outer_ * groups_, [&](int64_t task, T* slot) {
      int64_t offsets[2] = {nest_.offsets[0], nest_.offsets[1]};
      const Walk walk(nest_, std::max(nest_.rank - 1, 0), task / groups_, offsets);
      const int64_t first = task % groups_ * group_;
      T* const own = slot + copies_size_;
      body(Group{offsets[0] + first * src_line(), offsets[1] + first * dst_line(), std::min(group_, inner_ - first),
                 slot, own, FourierWorkers<T>{own + line_.own_size(), line_.worker_size(), is_shared_ ? threads_ : 1}});
    });
  }

  const T* src_of(const compute_plugin_run& run) const { return reinterpret_cast<const T*>(address(run.tensors[0])); }
  T* dst_of(const compute_plugin_run& run) const { return reinterpret_cast<T*>(address(run.tensors[1])); }

  // How many lines to copy together, where copies of lines are `pitch` elements apart.
  int64_t copied_lines(int64_t pitch) const {
    if (src_line() != 1 && dst_line() != 1) return 1;
    int64_t count = std::min<int64_t>(64 / int64_t{sizeof(Pair<T>)}, lines());
    while (count > 1 && count * pitch * int64_t{sizeof(T)} > kMostCopiedBytes) count /= 2;
    return count;
  }

  // How many rows to transform in one task.
  int64_t rows() const { return std::clamp<int64_t>(kRowElements / line_.length(), 1, lines()); }

  // Whether to transform lines in groups, which takes their elements from where they are.
  bool in_groups() const {
    const bool is_row = src_step_ == 1 && dst_step_ == 1, is_beside = src_line() == 1 || dst_line() == 1;
    return line_.prefers_groups(lines()) ||
           (line_.takes_groups() && !is_row && is_beside && 2 * lines() >= FourierLine<T>::lanes());
  }

  // Complex lines of adjacent elements; `together`, if the line takes groups.
  void transform(const T* src, int64_t src_line, bool swaps_src, T* dst, int64_t dst_line, bool swaps_dst,
                 bool together, const Group& group) const {
    if (together && group.count > 1)
      return line_.group({src, 2, 2 * src_line}, swaps_src, {dst, 2, 2 * dst_line}, swaps_dst, group.count, scale_,
                         group.workers.scratch);
    line_.rows(src, 2 * src_line, swaps_src, dst, 2 * dst_line, swaps_dst, group.count, scale_, group.own,
               group.workers);
  }

  const FourierLine<T> line_;
  common::LoopNest nest_;  // operands: src, dst
  int64_t src_step_ = 0, dst_step_ = 0;
  T scale_ = 1;
  int64_t group_ = 1, inner_ = 1, groups_ = 1, outer_ = 1;
  int64_t threads_ = 1, copies_size_ = 0, slot_size_ = 0;
  bool is_shared_ = false;
};

template <class T>
class ComplexPlan final : public FourierPlan<T> {
  using Base = FourierPlan<T>;
  using Base::line_, Base::src_step_, Base::dst_step_, Base::scale_;

 public:
  explicit ComplexPlan(const Op& op)
      : Base(op, length_of(op), length_of(op)), is_inverse_(op.integer("inverse", 0) != 0) {
    in_groups_ = Base::in_groups();
    copies_src_ = !in_groups_ && src_step_ != 1;
    copies_dst_ = !in_groups_ && dst_step_ != 1;
    pitch_ = 2 * line_.length() + 16;  // not a power of two
    const int64_t count = copies_src_ || copies_dst_ ? Base::copied_lines(pitch_) : Base::rows();
    Base::divide(in_groups_ ? FourierLine<T>::lanes() : count, copies_src_ || copies_dst_ ? count * pitch_ : 0);
  }

  void run(const compute_plugin_run& run) const override {
    const T* const src = Base::src_of(run);
    T* const dst = Base::dst_of(run);
    Base::each_group(run, [&](const typename Base::Group& group) {
      const T* from = src + 2 * group.src;
      T* to = dst + 2 * group.dst;
      if (in_groups_) {
        return line_.group({from, 2 * src_step_, 2 * Base::src_line()}, is_inverse_,
                           {to, 2 * dst_step_, 2 * Base::dst_line()}, is_inverse_, group.count, scale_,
                           group.workers.scratch);
      }
      int64_t from_line = Base::src_line(), to_line = Base::dst_line();
      if (copies_src_) {
        gather(pairs(from), src_step_, from_line, line_.length(), group.count, pairs(group.copies), pitch_ / 2);
        from = group.copies;
        from_line = pitch_ / 2;
      }
      T* const result = copies_dst_ ? group.copies : to;
      Base::transform(from, from_line, is_inverse_, result, copies_dst_ ? pitch_ / 2 : to_line, is_inverse_, false,
                      group);
      if (copies_dst_)
        scatter(pairs(group.copies), pitch_ / 2, line_.length(), group.count, pairs(to), dst_step_, to_line);
    });
  }

 private:
  static int64_t length_of(const Op& op) { return op.input(0).shape[op.integers("axes")[0]]; }

  const bool is_inverse_;
  bool in_groups_ = false, copies_src_ = false, copies_dst_ = false;
  int64_t pitch_ = 0;  // of copies of lines
};

// An even number of real numbers as half as many complex ones, an odd number as complex ones.
template <class T>
class RealPlan final : public FourierPlan<T> {
  using Base = FourierPlan<T>;
  using Base::line_, Base::src_step_, Base::dst_step_, Base::scale_;

 public:
  explicit RealPlan(const Op& op)
      : Base(op, inner_length(size_of(op)), size_of(op)), n_(size_of(op)), is_back_(op.name() == "irfft") {
    const int64_t width = FourierLine<T>::lanes();
    if (is_even()) roots_ = fourier_roots<T>(n_, n_ / 4 + 1 + width);
    is_direct_ = is_even() && Base::in_groups();
    if (is_direct_) {
      Base::divide(width, 0);
      return;
    }
    // Whether the real numbers, or the complex ones, are lines as transforms take them.
    const int64_t real_step = is_back_ ? dst_step_ : src_step_,
                  real_line = is_back_ ? Base::dst_line() : Base::src_line();
    const int64_t half_step = is_back_ ? src_step_ : dst_step_;
    takes_real_ = is_even() && real_step == 1 && real_line % 2 == 0;
    takes_half_ = half_step == 1;
    // Transforms may write a whole line of complex numbers where the half is.
    pitch_ = 2 * (is_even() ? n_ / 2 + 1 : n_) + 16;  // not a power of two
    is_together_ = line_.prefers_groups(Base::lines());
    const int64_t count = is_together_                       ? width
                          : real_step != 1 || half_step != 1 ? Base::copied_lines(2 * pitch_)
                                                             : Base::rows();
    Base::divide(count, 2 * pitch_ * count);
  }

  void run(const compute_plugin_run& run) const override {
    const T* const src = Base::src_of(run);
    T* const dst = Base::dst_of(run);
    Base::each_group(run, [&](const typename Base::Group& group) {
      if (is_direct_) return transform_directly(src, dst, group);
      is_back_ ? back(src + 2 * group.src, dst + group.dst, group) : forth(src + group.src, dst + 2 * group.dst, group);
    });
  }

 private:
  static int64_t size_of(const Op& op) {
    const auto axis = op.integers("axes")[0];
    return op.name() == "irfft" ? op.output(0).shape[axis] : op.input(0).shape[axis];
  }
  static int64_t inner_length(int64_t n) { return n % 2 == 0 ? n / 2 : n; }
  bool is_even() const { return n_ % 2 == 0; }

  void transform_directly(const T* src, T* dst, const typename Base::Group& group) const {
    const auto lines = [&]<class P>(P* data, bool is_real, int64_t at, int64_t step, int64_t line) {
      return is_real ? FourierLines<P>{data + at, 2 * step, line, step}
                     : FourierLines<P>{data + 2 * at, 2 * step, 2 * line};
    };
    line_.group(lines(src, !is_back_, group.src, src_step_, Base::src_line()), false,
                lines(dst, is_back_, group.dst, dst_step_, Base::dst_line()), false, group.count, scale_,
                group.workers.scratch, {roots_.data(), is_back_});
  }

  void forth(const T* src, T* dst, const typename Base::Group& group) const {
    T *const in = group.copies, *const out = in + group.count * pitch_;
    const T* from = src;
    int64_t from_line = Base::src_line() / 2;
    if (!takes_real_) {
      if (is_even()) {
        gather(src, src_step_, Base::src_line(), n_, group.count, in, pitch_);
      } else {
        for (int64_t i = 0; i < n_; ++i) {
          for (int64_t j = 0; j < group.count; ++j)
            pairs(in)[j * (pitch_ / 2) + i] = {src[i * src_step_ + j * Base::src_line()], 0};
        }
      }
      from = in;
      from_line = pitch_ / 2;
    }
    const bool is_direct = is_even() && takes_half_;
    T* const to = is_direct ? dst : out;
    const int64_t to_line = is_direct ? Base::dst_line() : pitch_ / 2;
    Base::transform(from, from_line, false, to, to_line, false, is_together_, group);
    for (int64_t j = 0; j < group.count; ++j) {
      T* const line = to + 2 * j * to_line;
      is_even() ? FourierLine<T>::kernel().to_half(line, roots_.data(), n_) : void(line[1] = 0);
    }
    if (!is_direct) scatter(pairs(out), pitch_ / 2, n_ / 2 + 1, group.count, pairs(dst), dst_step_, Base::dst_line());
  }

  void back(const T* src, T* dst, const typename Base::Group& group) const {
    T *const in = group.copies, *const out = in + group.count * pitch_;
    const T* half = src;
    int64_t half_line = Base::src_line();
    if (!takes_half_) {
      gather(pairs(src), src_step_, half_line, n_ / 2 + 1, group.count, pairs(out), pitch_ / 2);
      half = out;
      half_line = pitch_ / 2;
    }
    for (int64_t j = 0; j < group.count; ++j) {
      const T* const line = half + 2 * j * half_line;
      T* const to = in + j * pitch_;
      if (is_even()) {
        FourierLine<T>::kernel().from_half(line, roots_.data(), n_, to);
        continue;
      }
      to[0] = line[0];
      to[1] = 0;
      for (int64_t i = 1; i <= n_ / 2; ++i) {
        pairs(to)[i] = pairs(line)[i];
        pairs(to)[n_ - i] = {line[2 * i], -line[2 * i + 1]};
      }
    }
    T* const to = takes_real_ ? dst : out;
    const int64_t to_line = takes_real_ ? Base::dst_line() / 2 : pitch_ / 2;
    Base::transform(in, pitch_ / 2, !is_even(), to, to_line, true, is_together_, group);
    if (takes_real_) return;
    for (int64_t i = 0; i < n_; ++i) {
      for (int64_t j = 0; j < group.count; ++j)
        dst[i * dst_step_ + j * Base::dst_line()] = out[j * pitch_ + (is_even() ? i : 2 * i)];
    }
  }

  const int64_t n_;
  const bool is_back_;
  bool is_direct_ = false, takes_real_ = false, takes_half_ = false, is_together_ = false;
  int64_t pitch_ = 0;  // of copies of lines
  std::vector<T> roots_;
};

}  // namespace

std::optional<Refusal> refuse_fourier(const Op& op) {
  if (op.integers("axes").size() != 1)
    return Refusal{COMPUTE_PLUGIN_REFUSE_NOT_IMPLEMENTED, -1,
                   std::string(op.name()) + ": several axes at a time are not supported", ""};
  if (op.name() == "fft" && !is_complex(op.input(0).dtype))
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, "fft: real numbers are not supported", ""};
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_fourier(const Op& op) {
  const bool is_double = op.input(0).dtype == COMPUTE_DTYPE_FLOAT64 || op.input(0).dtype == COMPUTE_DTYPE_COMPLEX128;
  if (op.name() != "fft") {
    if (is_double) return std::make_unique<RealPlan<double>>(op);
    return std::make_unique<RealPlan<float>>(op);
  }
  if (is_double) return std::make_unique<ComplexPlan<double>>(op);
  return std::make_unique<ComplexPlan<float>>(op);
}

}  // namespace compute::cpu
