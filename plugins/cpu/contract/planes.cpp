// SPDX-License-Identifier: Apache-2.0
// Convolutions with a kernel of several rows. The rows of the input that a band of results needs are copied into
// planes, one per channel and column of the kernel, each shifted by that column and padded. The elements that one row
// of the kernel is multiplied with form a matrix in these planes, of kernel columns and channels by results, which the
// packed product reads in place. So windows are copied once per column of the kernel, not once per element. With a
// stride of several rows, rows at that distance are adjacent in a plane.
#include <algorithm>

#include "plugins/cpu/contract/patches.hpp"
#include "plugins/cpu/contract/window_part.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/gemm_kernel.hpp"

namespace compute::cpu {
namespace {

using common::kMaxSpatial;
using common::WindowProduct;

constexpr int64_t kLeastDepth = 32;         // of a product
constexpr int64_t kLeastResults = 96;       // of an image and row, or of a task that is made smaller for more threads
constexpr int64_t kResults = 512;           // of a band and row
constexpr int64_t kRowBlock = 128;          // rows whose sums are made together
constexpr int64_t kPlaneBytes = 512 << 10;  // of a band
constexpr int64_t kTasksPerThread = 3;
constexpr int64_t kAlignment = 64;

int64_t ceiling(int64_t x, int64_t unit) { return (x + unit - 1) / unit; }
int64_t round_up(int64_t x, int64_t unit) { return ceiling(x, unit) * unit; }

class Planes final : public WindowPart {
 public:
  Planes(const WindowProduct& p, bool has_bias, int32_t threads)
      : p_(p),
        kernel_(isa().gemm->by_dtype[COMPUTE_DTYPE_FLOAT32]),
        has_bias_(has_bias),
        y_(p.start[1], p.depth[2], p.depth_step[1]),
        y_step_(p.column_step[1]),
        depth_(p.depth[0] * p.depth[3]),
        width_(p.column[3]),
        is_in_place_(!has_bias && p.c_column[3] == 1 && p.c_column[2] == width_) {
    const auto cut = [this](int64_t results) {
      const int64_t most = std::clamp<int64_t>(results / width_, 1, p_.column[2]);
      band_ = ceiling(p_.column[2], ceiling(p_.column[2], most));
    };
    cut(kResults);
    for (int64_t results = kResults / 2; results >= kLeastResults; results /= 2) {
      if (plane_bytes() > kPlaneBytes || (threads > 1 && tasks() < kTasksPerThread * threads)) cut(results);
    }
    const int64_t row_block = std::min(p.rows, kRowBlock), sums = is_in_place_ ? 0 : row_block * band_ * width_;
    sums_at_ = round_up(plane_bytes(), kAlignment);
    kernel_at_ = sums_at_ + round_up(sums * static_cast<int64_t>(sizeof(float)), kAlignment);
    int64_t kernel_bytes = 0;
    for (const int64_t m : {row_block, p.rows % kRowBlock}) {
      for (const int64_t rows : {band_, p.column[2] % band_}) {
        if (m > 0 && rows > 0) kernel_bytes = std::max(kernel_bytes, kernel_.scratch_bytes(m, rows * width_, depth_));
      }
    }
    scratch_bytes_ = kernel_at_ + kernel_bytes;
    shared_bytes_ = round_up(p.groups * p.rows * p.depth[2] * depth_ * static_cast<int64_t>(sizeof(float)), kAlignment);
  }

  bool suits() const { return plane_bytes() <= 2 * kPlaneBytes && band_ * width_ >= kLeastResults; }

  int64_t packing_tasks() const override { return p_.groups * p_.rows; }
  int64_t tasks() const override { return p_.groups * p_.column[0] * bands(); }

  // a [group, row of the kernel, row, column of the kernel, channel].
  void pack(const WindowMemory& memory, int64_t task) const override {
    const int64_t group = task / p_.rows, row = task % p_.rows;
    const float* const a = static_cast<const float*>(memory.a) + p_.a_offset + group * p_.a_group + row * p_.a_row;
    float* const to = reinterpret_cast<float*>(memory.shared) + (group * p_.depth[2] * p_.rows + row) * depth_;
    for (int64_t channel = 0; channel < p_.depth[0]; ++channel) {
      const float* const from = a + channel * p_.a_depth[0];
      for (int64_t y = 0; y < p_.depth[2]; ++y) {
        for (int64_t x = 0; x < p_.depth[3]; ++x)
          to[y * p_.rows * depth_ + x * p_.depth[0] + channel] = from[y * p_.a_depth[2] + x * p_.a_depth[3]];
      }
    }
  }

  void run(const WindowMemory& memory, int64_t task) const override {
    const int64_t first = task % bands() * band_, rows = std::min(band_, p_.column[2] - first);
    const int64_t image = task / bands() % p_.column[0], group = task / bands() / p_.column[0];
    float* const planes = reinterpret_cast<float*>(memory.scratch);
    const int64_t plane = plane_rows(rows) * width_;
    const float* const b = static_cast<const float*>(memory.b) + group * p_.b_group + image * p_.b_column;
    for (int64_t x = 0; x < p_.depth[3]; ++x) {
      for (int64_t channel = 0; channel < p_.depth[0]; ++channel)
        copy_rows(b + channel * p_.b_depth, x, first, rows, planes + (x * p_.depth[0] + channel) * plane);
    }
    for (int64_t row = 0; row < p_.rows; row += kRowBlock) {
      const PointRange range = {row, std::min(row + kRowBlock, p_.rows)};
      float* const c = static_cast<float*>(memory.c) + p_.c_offset + group * p_.c_group + row * p_.c_row +
                       image * p_.c_column[0] + first * p_.c_column[2];
      float* const sums = is_in_place_ ? c : reinterpret_cast<float*>(memory.scratch + sums_at_);
      add_up(memory, group, range, rows, planes, sums);
      if (!is_in_place_) store(memory, group, range, rows, c);
    }
  }

 private:
  int64_t bands() const { return ceiling(p_.column[2], band_); }
  int64_t plane_rows(int64_t rows) const { return (rows - 1) * y_step_ + y_.kernel; }
  // The position of line `line` of a plane.
  int64_t place_of(int64_t rows, int64_t line) const {
    int64_t before = 0;
    for (int64_t i = 0; i < line % y_step_; ++i) before += ceiling(plane_rows(rows) - i, y_step_);
    return before + line / y_step_;
  }
  int64_t plane_bytes() const { return depth_ * plane_rows(band_) * width_ * static_cast<int64_t>(sizeof(float)); }

  // One plane: the elements of one channel that column x of the kernel meets.
  void copy_rows(const float* b, int64_t x, int64_t first, int64_t rows, float* plane) const {
    const PlaneAxis columns = {p_.stride[2], p_.extent[2], p_.start[2] + x * p_.depth_step[2], width_,
                               p_.column_step[2]};
    const int64_t lines = plane_rows(rows);
    for (int64_t i = 0; i < std::min(y_step_, lines); ++i) {
      copy_plane(sizeof(float), b,
                 {p_.stride[1], p_.extent[1], y_.least + first * y_step_ + i, ceiling(lines - i, y_step_), y_step_},
                 columns, plane + place_of(rows, i) * width_);
    }
  }

  // One product for each row of the kernel.
  void add_up(const WindowMemory& memory, int64_t group, PointRange range, int64_t rows, const float* planes,
              float* sums) const {
    static constexpr float kOne = 1;
    GemmCall call{};
    call.m = range.size();
    call.n = rows * width_;
    call.k = depth_;
    call.a_row = depth_;
    call.a_column = 1;
    call.b_row = plane_rows(rows) * width_;
    call.b_column = 1;
    call.c = sums;
    call.c_row = is_in_place_ ? p_.c_row : band_ * width_;
    call.c_column = 1;
    call.alpha = &kOne;
    call.scratch = memory.scratch + kernel_at_;
    for (int64_t y = 0; y < p_.depth[2]; ++y) {
      call.a =
          reinterpret_cast<const float*>(memory.shared) + ((group * p_.depth[2] + y) * p_.rows + range.begin) * depth_;
      call.b = planes + place_of(rows, p_.start[1] + y * p_.depth_step[1] - y_.least) * width_;
      kernel_.run(call);
      call.accumulate = true;
    }
  }

  void store(const WindowMemory& memory, int64_t group, PointRange range, int64_t rows, float* c) const {
    const float* from = reinterpret_cast<const float*>(memory.scratch + sums_at_);
    const int64_t step = p_.c_column[kMaxSpatial];
    for (int64_t row = range.begin; row < range.end; ++row, c += p_.c_row, from += band_ * width_) {
      const float bias =
          has_bias_ ? static_cast<const float*>(memory.bias)[group * p_.bias_group + row * p_.bias_row] : 0;
      for (int64_t i = 0; i < rows; ++i) {
        float* const to = c + i * p_.c_column[2];
        for (int64_t x = 0; x < width_; ++x)
          to[x * step] = has_bias_ ? from[i * width_ + x] + bias : from[i * width_ + x];
      }
    }
  }

  const WindowProduct p_;
  const GemmKernel kernel_;
  const bool has_bias_;
  const Reach y_;
  const int64_t y_step_;
  const int64_t depth_;  // of a product: columns of the kernel and channels
  const int64_t width_;
  const bool is_in_place_;  // sums are made in c itself
  int64_t band_ = 1;        // rows of results of a task
  int64_t sums_at_ = 0, kernel_at_ = 0;
};

}  // namespace

std::unique_ptr<WindowPart> make_plane_part(const WindowProduct& product, compute_dtype dtype, bool has_bias,
                                            int32_t threads) {
  const bool is_flat =
      product.depth[1] == 1 && product.column[1] == 1 && product.extent[0] == 1 && product.start[0] == 0;
  const bool is_forward = product.column_step[1] > 0 && product.column_step[2] > 0;
  if (dtype != COMPUTE_DTYPE_FLOAT32 || !is_flat || !is_forward || product.depth[2] < 2 ||
      product.depth[0] * product.depth[3] < kLeastDepth)
    return nullptr;
  auto part = std::make_unique<Planes>(product, has_bias, threads);
  if (!part->suits()) return nullptr;
  return part;
}

}  // namespace compute::cpu
