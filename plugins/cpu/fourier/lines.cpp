// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/fourier/lines.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <type_traits>

#include "plugins/cpu/isa/isa.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kLine = 64;  // bytes of a cache line

template <class T>
int64_t rounded(int64_t elements) {
  constexpr int64_t kUnit = kLine / int64_t{sizeof(T)};
  return (elements + kUnit - 1) / kUnit * kUnit;
}

/// exp(-2 pi i k / n), from two tables whose entries are multiplied. In more precision than T, so that roots are
/// rounded once.
template <class T>
class Roots {
 public:
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;

  explicit Roots(int64_t n) : n_(n), step_(n <= kDirect ? n : static_cast<int64_t>(std::sqrt(double(n))) + 1) {
    for (int64_t k = 0; k < step_; ++k) fine_.push_back(exact(k));
    for (int64_t k = 0; k * step_ < n; ++k) coarse_.push_back(exact(k * step_));
  }

  std::complex<T> operator()(int64_t k) const {
    const std::complex<Wide> a = coarse_[static_cast<size_t>(k / step_)], b = fine_[static_cast<size_t>(k % step_)];
    return {static_cast<T>(a.real() * b.real() - a.imag() * b.imag()),
            static_cast<T>(a.real() * b.imag() + a.imag() * b.real())};
  }

  void add_to(std::vector<T>& list, int64_t k) const {
    const std::complex<T> root = (*this)(k);
    list.push_back(root.real());
    list.push_back(root.imag());
  }

 private:
  static constexpr int64_t kDirect = 1024;

  // The angle is reduced to an eighth of a turn exactly.
  std::complex<Wide> exact(int64_t k) const {
    const int64_t quarter = (8 * k + n_) / (2 * n_);
    const Wide angle = std::numbers::pi_v<Wide> / 2 * static_cast<Wide>(4 * k - quarter * n_) / static_cast<Wide>(n_);
    const Wide c = std::cos(angle), s = std::sin(angle);
    switch (quarter % 4) {
      case 0:
        return {c, -s};
      case 1:
        return {-s, -c};
      case 2:
        return {-c, s};
      default:
        return {s, c};
    }
  }

  int64_t n_, step_;
  std::vector<std::complex<Wide>> fine_, coarse_;
};

/// The radices of the passes for n elements; none if n has a prime factor above kMostFourierRadix.
std::vector<int32_t> radices_of(int64_t n) {
  std::vector<int32_t> radices;
  for (const int32_t radix : {8, 4, 2, 3, 5, 7}) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  }
  for (int32_t radix = 11; radix <= kMostFourierRadix; radix += 2) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  }
  // 8 x 2 as 4 x 4.
  const auto two = std::find(radices.begin(), radices.end(), 2);
  if (two != radices.end() && two != radices.begin()) *two = *std::prev(two) = 4;
  if (n > 1) radices.clear();
  return radices;
}

/// The radices of a row for vectors of `width` elements; none if it does not suit them. The first passes leave at
/// least a vector of elements beside each other, and the last one finds as many. With vectors of 4, a first radix of 4
/// needs fewer shuffles than one of 8.
std::vector<int32_t> row_radices_of(int64_t n, int64_t width) {
  for (const int32_t first : {8, 4}) {
    const int64_t m = n / first, filled = (m + width - 1) / width * width;
    if (n % first != 0 || m < width || first == 2 * width) continue;
    if (first == 8 && 2 * filled > 3 * m) continue;  // many lanes would be idle
    std::vector<int32_t> radices = radices_of(m);
    const auto suits = [&](int32_t radix) { return first * radix >= width && n / radix >= width; };
    const auto second = std::find_if(radices.begin(), radices.end(), suits);
    if (second == radices.end() || *std::max_element(radices.begin(), radices.end()) > 8) continue;
    std::rotate(radices.begin(), second, second + 1);
    if (n / radices.back() < width) continue;
    radices.insert(radices.begin(), first);
    return radices;
  }
  return {};
}

/// The shortest length from `least` on that has the prime factors 2, 3 and 5 only, and a power of two among them that
/// fills the lanes of a square.
int64_t smooth_length(int64_t least) {
  int64_t best = 16;
  while (best < least) best *= 2;
  for (int64_t odd5 = 1; odd5 < best; odd5 *= 5) {
    for (int64_t odd = odd5; odd < best; odd *= 3) {
      int64_t n = odd * 16;
      while (n < least) n *= 2;
      best = std::min(best, n);
    }
  }
  return best;
}

}  // namespace

template <class T>
std::vector<T> fourier_roots(int64_t n, int64_t count) {
  const Roots<T> roots(n);
  std::vector<T> list;
  list.reserve(static_cast<size_t>(2 * count));
  for (int64_t k = 0; k < count; ++k) roots.add_to(list, k);
  return list;
}

template <class T>
std::unique_ptr<typename FourierLine<T>::Passes> FourierLine<T>::passes_of(int64_t n,
                                                                           const std::vector<int32_t>& radices,
                                                                           int64_t least_done) {
  if (radices.empty() && n > 1) return nullptr;
  auto passes = std::make_unique<Passes>();
  FourierPasses<T>& table = passes->table;
  table.n = n;
  table.count = static_cast<int32_t>(radices.size());
  const Roots<T> roots(n);
  int64_t rest = n, done = 1;
  std::vector<size_t> starts, own_starts;
  for (const int32_t radix : radices) {
    const int64_t m = rest / radix;
    starts.push_back(passes->roots.size());
    if (done < least_done) {
      for (int64_t first = 0; first < m * done; first += least_done) {
        for (int64_t j = 1; j < radix; ++j) {
          std::vector<T> list;
          for (int64_t i = 0; i < least_done; ++i)
            roots.add_to(list, (std::min(first, m * done - least_done) + i) / done * j * (n / rest));
          for (const size_t part : {0, 1}) {
            for (size_t i = part; i < list.size(); i += 2) passes->roots.push_back(list[i]);
          }
        }
      }
    } else {
      for (int64_t p = 0; p < m && m > 1; ++p) {
        for (int64_t j = 1; j < radix; ++j) roots.add_to(passes->roots, p * j * (n / rest));
      }
    }
    own_starts.push_back(passes->roots.size());
    for (int64_t k = 0; k < radix && radix > 8; ++k) roots.add_to(passes->roots, k * (n / radix));
    rest = m;
    done *= radix;
  }
  for (size_t i = 0; i < radices.size(); ++i) {
    table.radix[i] = radices[i];
    table.roots[i] = passes->roots.data() + starts[i];
    table.own_roots[i] = passes->roots.data() + own_starts[i];
  }
  return passes;
}

template <class T>
std::unique_ptr<typename FourierLine<T>::Passes> FourierLine<T>::passes_of(int64_t n) {
  return passes_of(n, radices_of(n), 1);
}

template <class T>
const FourierKernel<T>& FourierLine<T>::kernel() {
  if constexpr (std::is_same_v<T, float>) {
    return isa().fourier->float32;
  } else {
    return isa().fourier->float64;
  }
}

template <class T>
FourierLine<T>::FourierLine(int64_t n) : n_(n) {
  const int64_t width = lanes();
  if (n <= kMostInLanes) in_lanes_ = passes_of(n);
  if (n > 1 && n <= kMostInRow) in_row_ = passes_of(n, row_radices_of(n, width), width);
  const bool is_smooth = in_lanes_ != nullptr || !radices_of(n).empty();
  // The factors that leave the fewest lanes empty; among those, the nearest to each other.
  const auto filled = [&](int64_t x) { return (x + width - 1) / width * width; };
  int64_t best = 0, least = in_lanes_ ? n * width : INT64_MAX;
  for (int64_t d = 2; is_smooth && d * d <= n; ++d) {
    if (n % d != 0) continue;
    const int64_t cost = filled(n / d) * d + filled(d) * (n / d) + (d + n / d) * width;
    if (cost >= least) continue;
    least = cost;
    best = d;
  }
  if (best != 0 && !in_row_) {
    make_square(best);
  } else if (!in_lanes_) {
    make_chirp();
  } else {
    worker_size_ = rounded<T>(4 * std::max(width * (n + 1), rows_together() * (n + 2 * width)));
  }
}

template <class T>
FourierLine<T>::~FourierLine() = default;

template <class T>
void FourierLine<T>::make_square(int64_t columns) {
  kind_ = Kind::kSquare;
  column_length_ = columns;
  row_length_ = n_ / columns;
  of_columns_ = passes_of(column_length_);
  of_rows_ = passes_of(row_length_);
  const int64_t width = lanes(), blocks = (row_length_ + width - 1) / width;
  const Roots<T> roots(n_);
  twist_steps_.reserve(static_cast<size_t>(2 * blocks * column_length_));
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t k = 0; k < column_length_; ++k) roots.add_to(twist_steps_, k * block * width % n_);
  }
  twist_lanes_.resize(static_cast<size_t>(2 * width * column_length_));
  for (int64_t k = 0; k < column_length_; ++k) {
    for (int64_t j = 0; j < width; ++j) {
      const std::complex<T> root = roots(k * j % n_);
      twist_lanes_[static_cast<size_t>(2 * width * k + j)] = root.real();
      twist_lanes_[static_cast<size_t>(2 * width * k + width + j)] = root.imag();
    }
  }
  own_size_ = rounded<T>(2 * n_);
  worker_size_ = rounded<T>(4 * width * (std::max({column_length_, row_length_, in_lanes_ ? n_ : 0}) + 1));
}

template <class T>
void FourierLine<T>::make_chirp() {
  kind_ = Kind::kChirp;
  const int64_t longer = smooth_length(2 * n_ - 1);
  longer_ = std::make_unique<FourierLine>(longer);
  const Roots<T> roots(2 * n_);
  std::vector<T> filter(static_cast<size_t>(2 * longer));
  for (int64_t k = 0; k < n_; ++k) {
    // k^2 modulo 2 n, where k^2 may not fit.
    const auto square = static_cast<int64_t>(static_cast<unsigned __int128>(k) * static_cast<uint64_t>(k) %
                                             static_cast<uint64_t>(2 * n_));
    const std::complex<T> root = roots(square);
    chirp_.push_back(root.real());
    chirp_.push_back(root.imag());
    for (const int64_t at : {k, (longer - k) % longer}) {
      filter[static_cast<size_t>(2 * at)] = root.real();
      filter[static_cast<size_t>(2 * at + 1)] = -root.imag();
    }
  }
  filter_.resize(filter.size());
  std::vector<T> own(static_cast<size_t>(longer_->own_size() + kLine)),
      scratch(static_cast<size_t>(longer_->worker_size() + kLine));
  longer_->row(filter.data(), false, filter_.data(), false, static_cast<T>(1 / static_cast<double>(longer)), own.data(),
               {scratch.data(), 0});
  own_size_ = 2 * rounded<T>(2 * longer) + longer_->own_size();
  worker_size_ = longer_->worker_size();
}

template <class T>
void FourierLine<T>::group(FourierLines<const T> src, bool swaps_src, FourierLines<T> dst, bool swaps_dst,
                           int64_t count, T scale, T* scratch, FourierHalf<T> half) const {
  kernel().transform(in_lanes_->table, src, swaps_src, dst, swaps_dst, count, scale, nullptr, half, scratch);
}

template <class T>
void FourierLine<T>::rows(const T* src, int64_t src_row, bool swaps_src, T* dst, int64_t dst_row, bool swaps_dst,
                          int64_t count, T scale, T* own, const FourierWorkers<T>& workers) const {
  const int64_t together = in_row_ ? rows_together() : 1;
  for (int64_t i = 0; i < count; i += together) {
    const T* const from = src + i * src_row;
    T* const to = dst + i * dst_row;
    if (in_row_) {
      kernel().rows(in_row_->table, from, src_row, swaps_src, to, dst_row, swaps_dst, std::min(together, count - i),
                    scale, workers.scratch);
    } else if (kind_ == Kind::kSquare) {
      run_square(from, swaps_src, to, swaps_dst, scale, own, workers);
    } else if (kind_ == Kind::kChirp) {
      run_chirp(from, swaps_src, to, swaps_dst, scale, own, workers);
    } else {
      group({from, 2, 0}, swaps_src, {to, 2, 0}, swaps_dst, 1, scale, workers.scratch);
    }
  }
}

template <class T>
void FourierLine<T>::run_square(const T* src, bool swaps_src, T* dst, bool swaps_dst, T scale, T* own,
                                const FourierWorkers<T>& workers) const {
  const int64_t width = lanes(), m = column_length_, n = row_length_;
  workers.each((n + width - 1) / width, [&](int64_t block, T* scratch) {
    const int64_t first = block * width;
    const FourierTwist<T> twist{twist_steps_.data() + 2 * block * m, twist_lanes_.data()};
    kernel().transform(of_columns_->table, {src + 2 * first, 2 * n, 2}, swaps_src, {own + 2 * first, 2 * n, 2}, false,
                       std::min(width, n - first), T{1}, &twist, {}, scratch);
  });
  workers.each((m + width - 1) / width, [&](int64_t block, T* scratch) {
    const int64_t first = block * width;
    kernel().transform(of_rows_->table, {own + 2 * first * n, 2, 2 * n}, false, {dst + 2 * first, 2 * m, 2}, swaps_dst,
                       std::min(width, m - first), scale, nullptr, {}, scratch);
  });
}

// jk = (j^2 + k^2 - (j - k)^2) / 2: the transform is a convolution of x times a chirp with the conjugate chirp
// (Bluestein).
template <class T>
void FourierLine<T>::run_chirp(const T* src, bool swaps_src, T* dst, bool swaps_dst, T scale, T* own,
                               const FourierWorkers<T>& workers) const {
  const int64_t longer = longer_->length();
  T *const a = own, *const b = a + rounded<T>(2 * longer), *const rest = b + rounded<T>(2 * longer);
  const auto multiply = [&](const T* x, bool swaps_x, const T* y, T by, bool swaps, T* to, int64_t n) {
    constexpr int64_t kPiece = 4096;
    workers.each((n + kPiece - 1) / kPiece, [&](int64_t piece, T*) {
      const int64_t at = 2 * piece * kPiece;
      kernel().multiply(x + at, swaps_x, y + at, by, swaps, to + at, std::min(kPiece, n - piece * kPiece));
    });
  };
  multiply(src, swaps_src, chirp_.data(), T{1}, false, a, n_);
  std::fill(a + 2 * n_, a + 2 * longer, T{0});
  longer_->row(a, false, b, false, T{1}, rest, workers);
  multiply(b, false, filter_.data(), T{1}, true, a, longer);
  longer_->row(a, false, b, true, T{1}, rest, workers);
  multiply(b, false, chirp_.data(), scale, swaps_dst, dst, n_);
}

template class FourierLine<float>;
template class FourierLine<double>;
template std::vector<float> fourier_roots(int64_t, int64_t);
template std::vector<double> fourier_roots(int64_t, int64_t);

}  // namespace compute::cpu
