// SPDX-License-Identifier: Apache-2.0
// Convolutions with few rows per group, such as those of single channels. The positions that a band of results needs
// are copied into a padded plane, in which the term of a kernel element has the same distance from every result.
// Results of several rows are then one long row, with some unused elements between the rows.
#include <algorithm>
#include <cstring>

#include "plugins/cpu/contract/patches.hpp"
#include "plugins/cpu/contract/window_part.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/window_kernel.hpp"

namespace compute::cpu {
namespace {

using common::kMaxSpatial;
using common::WindowProduct;

constexpr int64_t kMostRows = 4;
constexpr int64_t kBandBytes = 96 << 10;  // of a band's planes
constexpr int64_t kMostBytes = 2 << 20;   // for a band of one row
constexpr int64_t kTasksPerThread = 3;
constexpr int64_t kFewResults = 16;  // of an image, which are not worth a plane
constexpr int64_t kChunks = 16;      // of images, whose sums are added up in order
constexpr int64_t kAlignment = 64;

int64_t ceiling(int64_t x, int64_t unit) { return (x + unit - 1) / unit; }
int64_t round_up(int64_t x, int64_t unit) { return ceiling(x, unit) * unit; }

template <class T>
const ShiftedRows<T>& kernels() {
  if constexpr (sizeof(T) == 4) {
    return isa().windows->float32;
  } else {
    return isa().windows->float64;
  }
}

/// c [row, image and position] = sums over few channels and the kernel.
template <class T>
class Bands final : public WindowPart {
 public:
  Bands(const WindowProduct& p, bool has_bias, int32_t threads)
      : p_(p),
        has_bias_(has_bias),
        y_(p.start[1], p.depth[2], p.depth_step[1]),
        x_(p.start[2], p.depth[3], p.depth_step[2]),
        y_step_(p.column_step[1]),
        x_step_(p.column_step[2]),
        width_(p.column[3]),
        pitch_(round_up((width_ - 1) * x_step_ + x_.kernel, x_step_)),
        out_pitch_(y_step_ * pitch_ / x_step_) {
    band_ = p.column[2];
    channels_ = p.depth[0];
    const int64_t tasks_wanted = threads > 1 ? kTasksPerThread * threads : 1;
    while (tasks() < tasks_wanted && band_ > 8) band_ = ceiling(band_, 2);
    // The rows of the kernel's height are copied for each band again.
    while (plane_bytes() > kBandBytes && (band_ > 1 || channels_ > 1)) {
      int64_t& part = channels_ == 1 || band_ * y_step_ > 2 * y_.kernel ? band_ : channels_;
      part = ceiling(part, 2);
    }
    const auto add = [&](int64_t size) {
      const int64_t at = scratch_bytes_;
      scratch_bytes_ += round_up(size, kAlignment);
      return at;
    };
    planes_at_ = add(plane_bytes());
    const int64_t terms = channels_ * taps(), results = p.rows * band_ * out_pitch_;
    factors_at_ = add(p.rows * terms * static_cast<int64_t>(sizeof(T)));
    sources_at_ = add(terms * static_cast<int64_t>(sizeof(T*)));
    runs_at_ = add(terms * static_cast<int64_t>(sizeof(PointRun)));
    results_at_ = add(results * static_cast<int64_t>(sizeof(T)));
    if (channels_ < p.depth[0]) before_at_ = add(results * static_cast<int64_t>(sizeof(T)));
  }

  // Whether it is worth it, and the plane fits.
  bool suits() const {
    return out_pitch_ <= 3 * width_ && p_.column[2] * out_pitch_ >= kFewResults && plane_bytes() <= kMostBytes &&
           y_step_ > 0 && x_step_ > 0;
  }

  int64_t tasks() const override { return p_.groups * p_.column[0] * bands(); }

  void run(const WindowMemory& memory, int64_t task) const override {
    const int64_t first = task % bands() * band_, rows = std::min(band_, p_.column[2] - first);
    const int64_t image = task / bands() % p_.column[0], group = task / bands() / p_.column[0];
    T* const planes = reinterpret_cast<T*>(memory.scratch + planes_at_);
    const auto** const sources = reinterpret_cast<const T**>(memory.scratch + sources_at_);
    T* const factors = reinterpret_cast<T*>(memory.scratch + factors_at_);
    T* results = reinterpret_cast<T*>(memory.scratch + results_at_);
    T* before = reinterpret_cast<T*>(memory.scratch + before_at_);
    const int64_t plane_rows = (rows - 1) * y_step_ + y_.kernel;
    const T* const b = static_cast<const T*>(memory.b) + group * p_.b_group + image * p_.b_column;
    const T* const a = static_cast<const T*>(memory.a) + p_.a_offset + group * p_.a_group;
    T initial[kMostRows] = {};
    for (int64_t row = 0; has_bias_ && row < p_.rows; ++row)
      initial[row] = static_cast<const T*>(memory.bias)[group * p_.bias_group + row * p_.bias_row];
    find_sources(planes, plane_rows, sources);
    for (int64_t channel = 0; channel < p_.depth[0]; channel += channels_) {
      const int64_t channels = std::min(channels_, p_.depth[0] - channel), terms = channels * taps();
      for (int64_t i = 0; i < channels; ++i) {
        copy_plane(sizeof(T), b + (channel + i) * p_.b_depth,
                   {p_.stride[1], p_.extent[1], y_.least + first * y_step_, plane_rows},
                   {p_.stride[2], p_.extent[2], x_.least, pitch_}, planes + i * plane_rows * pitch_);
      }
      copy_factors(p_, sizeof(T), a, {0, p_.rows}, {channel * taps(), channel * taps() + terms}, factors, terms,
                   reinterpret_cast<PointRun*>(memory.scratch + runs_at_));
      if (channel > 0) std::swap(results, before);
      kernels<T>().add_up(sources, factors, terms, x_step_, initial, channel == 0 ? nullptr : before,
                          static_cast<int32_t>(p_.rows), results, band_ * out_pitch_, (rows - 1) * out_pitch_ + width_);
    }
    for (int64_t row = 0; row < p_.rows; ++row) {
      T* const c = static_cast<T*>(memory.c) + p_.c_offset + group * p_.c_group + row * p_.c_row +
                   image * p_.c_column[0] + first * p_.c_column[2];
      for (int64_t i = 0; i < rows; ++i) store(results + (row * band_ + i) * out_pitch_, c + i * p_.c_column[2]);
    }
  }

 private:
  int64_t bands() const { return ceiling(p_.column[2], band_); }
  int64_t taps() const { return p_.depth[2] * p_.depth[3]; }
  int64_t plane_bytes() const {
    return channels_ * ((band_ - 1) * y_step_ + y_.kernel) * pitch_ * static_cast<int64_t>(sizeof(T));
  }

  void find_sources(const T* planes, int64_t plane_rows, const T** sources) const {
    for (int64_t channel = 0; channel < channels_; ++channel) {
      for (int64_t y = 0; y < p_.depth[2]; ++y) {
        const int64_t line = p_.start[1] + y * p_.depth_step[1] - y_.least;
        for (int64_t x = 0; x < p_.depth[3]; ++x) {
          *sources++ = planes + (channel * plane_rows + line) * pitch_ + p_.start[2] + x * p_.depth_step[2] - x_.least;
        }
      }
    }
  }

  void store(const T* results, T* c) const {
    const int64_t stride = p_.c_column[kMaxSpatial];
    if (stride == 1) {
      std::memcpy(c, results, static_cast<size_t>(width_) * sizeof(T));
    } else {
      for (int64_t i = 0; i < width_; ++i) c[i * stride] = results[i];
    }
  }

  const WindowProduct p_;
  const bool has_bias_;
  const Reach y_, x_;
  const int64_t y_step_, x_step_, width_;
  const int64_t pitch_, out_pitch_;  // of a row of the plane, and of one of results
  int64_t band_ = 1;                 // rows of results of a task
  int64_t channels_ = 1;             // whose planes are in memory at a time
  int64_t planes_at_ = 0, factors_at_ = 0, sources_at_ = 0, runs_at_ = 0;
  int64_t results_at_ = 0, before_at_ = 0;  // the sums, and those without the last channels
};

/// c [row, kernel element] = sums over images and positions of single channels.
template <class T>
class Correlations final : public WindowPart {
 public:
  explicit Correlations(const WindowProduct& p)
      : p_(p),
        y_(p.start[1], p.column[2], p.column_step[1]),
        x_(p.start[2], p.column[3], p.column_step[2]),
        pitch_(p.depth[3] - 1 + x_.kernel),
        plane_rows_(p.depth[2] - 1 + y_.kernel),
        taps_(p.columns()),
        chunks_(std::min(kChunks, p.depth[0])) {
    shared_bytes_ = round_up(chunks_ * p_.groups * p_.rows * taps_ * static_cast<int64_t>(sizeof(T)), kAlignment);
    factors_at_ = round_up(plane_rows_ * pitch_ * static_cast<int64_t>(sizeof(T)), kAlignment);
    sources_at_ =
        factors_at_ + kAlignment + round_up(p_.depth[2] * pitch_ * static_cast<int64_t>(sizeof(T)), kAlignment);
    scratch_bytes_ = sources_at_ + kAlignment + round_up(taps_ * static_cast<int64_t>(sizeof(T*)), kAlignment);
  }

  bool suits() const { return pitch_ <= 2 * p_.depth[3] && scratch_bytes_ <= kMostBytes; }

  int64_t tasks() const override { return p_.groups * chunks_; }
  int64_t joining_tasks() const override { return p_.groups; }

  void run(const WindowMemory& memory, int64_t task) const override {
    const int64_t group = task / chunks_, chunk = task % chunks_;
    T* const plane = reinterpret_cast<T*>(memory.scratch);
    T* const factors = reinterpret_cast<T*>(memory.scratch + factors_at_);
    const auto** const sources = reinterpret_cast<const T**>(memory.scratch + sources_at_);
    for (int64_t tap = 0; tap < taps_; ++tap) {
      const int64_t y = p_.start[1] + tap / p_.column[3] * p_.column_step[1] - y_.least;
      const int64_t x = p_.start[2] + tap % p_.column[3] * p_.column_step[2] - x_.least;
      sources[tap] = plane + y * pitch_ + x;
    }
    T* const sums = reinterpret_cast<T*>(memory.shared) + (chunk * p_.groups + group) * p_.rows * taps_;
    std::fill_n(sums, p_.rows * taps_, T{0});
    const int64_t each = ceiling(p_.depth[0], chunks_);
    for (int64_t image = chunk * each; image < std::min(p_.depth[0], (chunk + 1) * each); ++image) {
      copy_plane(sizeof(T), static_cast<const T*>(memory.b) + group * p_.b_group + image * p_.b_depth,
                 {p_.stride[1], p_.extent[1], y_.least, plane_rows_}, {p_.stride[2], p_.extent[2], x_.least, pitch_},
                 plane);
      for (int64_t row = 0; row < p_.rows; ++row) {
        const T* const a =
            static_cast<const T*>(memory.a) + p_.a_offset + group * p_.a_group + row * p_.a_row + image * p_.a_depth[0];
        copy_plane(sizeof(T), a, {p_.a_depth[2], p_.depth[2], 0, p_.depth[2]}, {p_.a_depth[3], p_.depth[3], 0, pitch_},
                   factors);
        kernels<T>().multiply(factors, sources, taps_, p_.depth[2], pitch_, p_.depth[3], sums + row * taps_);
      }
    }
  }

  void join(const WindowMemory& memory, int64_t group) const override {
    const T* const sums = reinterpret_cast<const T*>(memory.shared) + group * p_.rows * taps_;
    for (int64_t i = 0; i < p_.rows * taps_; ++i) {
      T total = 0;
      for (int64_t chunk = 0; chunk < chunks_; ++chunk) total += sums[chunk * p_.groups * p_.rows * taps_ + i];
      const int64_t tap = i % taps_;
      static_cast<T*>(memory.c)[p_.c_offset + group * p_.c_group + i / taps_ * p_.c_row +
                                tap / p_.column[3] * p_.c_column[2] + tap % p_.column[3] * p_.c_column[3]] = total;
    }
  }

 private:
  const WindowProduct p_;
  const Reach y_, x_;
  const int64_t pitch_, plane_rows_, taps_, chunks_;
  int64_t factors_at_ = 0, sources_at_ = 0;
};

template <class T>
std::unique_ptr<WindowPart> make_part(const WindowProduct& p, bool has_bias, int32_t threads) {
  // Where results are many and terms few, else the other way around.
  if (p.column[3] >= p.depth[3]) {
    auto part = std::make_unique<Bands<T>>(p, has_bias, threads);
    if (part->suits()) return part;
  } else if (p.column[0] == 1 && p.depth_step[1] == 1 && p.depth_step[2] == 1 && !has_bias) {
    auto part = std::make_unique<Correlations<T>>(p);
    if (part->suits()) return part;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<WindowPart> make_shifted_part(const WindowProduct& product, compute_dtype dtype, bool has_bias,
                                              int32_t threads) {
  const bool is_flat =
      product.depth[1] == 1 && product.column[1] == 1 && product.extent[0] == 1 && product.start[0] == 0;
  if (!is_flat || product.rows > kMostRows || product.depth_points() == 0) return nullptr;
  if (dtype == COMPUTE_DTYPE_FLOAT32) return make_part<float>(product, has_bias, threads);
  if (dtype == COMPUTE_DTYPE_FLOAT64) return make_part<double>(product, has_bias, threads);
  return nullptr;
}

}  // namespace compute::cpu
