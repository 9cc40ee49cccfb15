// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of complex lines of one length, forward, or backward with real and imaginary parts exchanged
// before and after.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "plugins/cpu/kernels/fourier_kernel.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {

/// Scratch memory for workers, and the work that they share.
template <class T>
struct FourierWorkers {
  T* scratch;
  int64_t size;       // elements of scratch for each, at least FourierLine::worker_size()
  int64_t count = 1;  // with 1, all runs on the calling thread

  /// Calls body(index, scratch) for each index in [0, tasks).
  template <class F>
  void each(int64_t tasks, const F& body) const {
    const int64_t used = std::min(count, tasks);
    const auto run = [&](int64_t begin, int64_t end) {
      for (int64_t worker = begin; worker < end; ++worker) {
        const int64_t first = tasks * worker / used, last = tasks * (worker + 1) / used;
        for (int64_t task = first; task < last; ++task) body(task, scratch + worker * size);
      }
    };
    if (used <= 1) return run(0, used);
    parallel_tasks(used, 1, run);
  }
};

template <class T>
class FourierLine {
 public:
  explicit FourierLine(int64_t n);
  ~FourierLine();

  int64_t length() const { return n_; }
  /// Elements of scratch memory that a call needs, and each of its workers. Multiples of a cache line.
  int64_t own_size() const { return own_size_; }
  int64_t worker_size() const { return worker_size_; }
  /// Whether so many lines are best transformed together wherever their elements are.
  bool prefers_groups(int64_t lines) const {
    return in_lanes_ != nullptr && in_row_ == nullptr &&
           (kind_ == Kind::kPasses || (n_ <= kShort && 4 * lines >= lanes()));
  }
  /// Whether lines that lie side by side can be transformed together.
  bool takes_groups() const { return in_lanes_ != nullptr; }
  static const FourierKernel<T>& kernel();
  static int64_t lanes() { return kernel().lanes; }

  /// Up to lanes() lines, where takes_groups(). `scratch` is that of a worker.
  void group(FourierLines<const T> src, bool swaps_src, FourierLines<T> dst, bool swaps_dst, int64_t count, T scale,
             T* scratch, FourierHalf<T> half = {}) const;
  /// Lines of adjacent elements, whose first ones are src_row and dst_row apart; src may be dst.
  void rows(const T* src, int64_t src_row, bool swaps_src, T* dst, int64_t dst_row, bool swaps_dst, int64_t count,
            T scale, T* own, const FourierWorkers<T>& workers) const;
  void row(const T* src, bool swaps_src, T* dst, bool swaps_dst, T scale, T* own,
           const FourierWorkers<T>& workers) const {
    rows(src, 0, swaps_src, dst, 0, swaps_dst, 1, scale, own, workers);
  }

 private:
  enum class Kind { kPasses, kSquare, kChirp };

  static constexpr int64_t kShort = 2048;
  static constexpr int64_t kMostInLanes = 8192;
  static constexpr int64_t kMostInRow = 4096;
  static constexpr int64_t kRowsTogether = 1024;  // elements

  struct Passes {
    FourierPasses<T> table{};
    std::vector<T> roots;
  };

  static std::unique_ptr<Passes> passes_of(int64_t n, const std::vector<int32_t>& radices, int64_t least_done);
  static std::unique_ptr<Passes> passes_of(int64_t n);
  int64_t rows_together() const { return std::max<int64_t>(kRowsTogether / n_, 1); }
  void make_square(int64_t columns);
  void make_chirp();
  void run_square(const T* src, bool swaps_src, T* dst, bool swaps_dst, T scale, T* own,
                  const FourierWorkers<T>& workers) const;
  void run_chirp(const T* src, bool swaps_src, T* dst, bool swaps_dst, T scale, T* own,
                 const FourierWorkers<T>& workers) const;

  int64_t n_;
  Kind kind_ = Kind::kPasses;
  std::unique_ptr<Passes> in_lanes_, in_row_;
  // kSquare: the line is a matrix of column_length_ rows and row_length_ columns.
  int64_t column_length_ = 0, row_length_ = 0;
  std::unique_ptr<Passes> of_columns_, of_rows_;
  std::vector<T> twist_steps_, twist_lanes_;
  // kChirp
  std::unique_ptr<FourierLine> longer_;
  std::vector<T> chirp_, filter_;
  int64_t own_size_ = 0, worker_size_ = 0;
};

/// exp(-2 pi i k / n) for k in [0, count).
template <class T>
std::vector<T> fourier_roots(int64_t n, int64_t count);

}  // namespace compute::cpu
