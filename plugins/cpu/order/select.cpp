// SPDX-License-Identifier: Apache-2.0
// Selected elements are written consecutively: each piece counts its own, the prefix sum of the counts gives its first
// position, and then it writes them. The rest of the output is 0.
#include "plugins/cpu/order/select.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/order/pairs.hpp"
#include "plugins/cpu/order/radix.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kWord = 64;                // elements whose flags are one word
constexpr int64_t kPiece = 16 << 10;         // elements; least work that justifies waking a thread
constexpr int64_t kKeys = 256;               // read at a time
constexpr int64_t kPieceElements = 8 << 10;  // that are loaded at a time

int64_t divide_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

int64_t element_count(const compute_plugin_tensor& tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.rank; ++i) count *= tensor.shape[i];
  return count;
}

std::optional<int64_t> step_of(const compute_plugin_tensor& tensor) {
  const auto rank = static_cast<size_t>(tensor.rank);
  return common::row_major_step({tensor.shape, rank}, {tensor.strides, rank});
}

std::optional<Refusal> refuse_layout(const Op& op) {
  if (step_of(op.input(0)) != 1) {
    return Refusal{COMPUTE_PLUGIN_REFUSE_LAYOUT, 0, std::string(op.name()) + ": the input is not row-major", ""};
  }
  return std::nullopt;
}

// A tensor of one axis.
struct Row {
  Row() = default;
  Row(const compute_plugin_tensor& tensor, int64_t stride)
      : size(common::dtype_size(tensor.dtype)), step(stride * size) {}
  template <class T>
  static void store(char* at, const T& value) {
    std::memcpy(at, &value, sizeof value);
  }
  // Makes [begin, end) zero.
  void clear(char* base, int64_t begin, int64_t end) const {
    if (begin >= end) return;
    if (step == size) {
      std::memset(base + begin * step, 0, static_cast<size_t>((end - begin) * size));
    } else {
      for (int64_t i = begin; i < end; ++i) std::memset(base + i * step, 0, static_cast<size_t>(size));
    }
  }
  int64_t size = 0, step = 0;  // bytes
};

// Calls body(piece, begin, end) for the pieces of [0, n).
template <class F>
void for_pieces(int64_t n, const F& body) {
  parallel_tasks(divide_up(n, kPiece), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) body(i, i * kPiece, std::min(n, (i + 1) * kPiece));
  });
}

// ---- nonzero --------------------------------------------------------------------------------------------------------

// The flags of up to 64 elements. `bits` are those in which an element that is not zero has a one.
template <class Bits>
uint64_t flags_of(const char* src, int64_t n, Bits bits) {
  uint8_t flags[kWord] = {};
  for (int64_t i = 0; i < n; ++i) {
    Bits element;
    std::memcpy(&element, src + i * static_cast<int64_t>(sizeof element), sizeof element);
    flags[i] = (element & bits) != 0;
  }
  uint64_t word = 0;
  for (int64_t i = 0; i < kWord; ++i) word |= uint64_t{flags[i]} << i;
  return word;
}

// The same where all 64 are there, so that the loops have a fixed length.
template <class Bits>
uint64_t full_flags_of(const char* src, Bits bits) {
  uint8_t flags[kWord];
  for (int64_t i = 0; i < kWord; ++i) {
    Bits element;
    std::memcpy(&element, src + i * static_cast<int64_t>(sizeof element), sizeof element);
    flags[i] = (element & bits) != 0;
  }
  // The product moves bit 0 of byte i to bit 56 + i.
  constexpr uint64_t kGather = 0x0102040810204080;
  uint64_t word = 0;
  for (int64_t i = 0; i < kWord; i += 8) {
    uint64_t eight = 0;
    for (int64_t j = 0; j < 8; ++j) eight |= uint64_t{flags[i + j]} << (8 * j);
    word |= (eight * kGather >> 56) << i;
  }
  return word;
}

template <class Bits>
void find_flags(const char* src, int64_t n, Bits bits, uint64_t* words) {
  int64_t i = 0;
  for (; i + kWord <= n; i += kWord) *words++ = full_flags_of(src + i * static_cast<int64_t>(sizeof bits), bits);
  if (i < n) *words = flags_of(src + i * static_cast<int64_t>(sizeof bits), n - i, bits);
}

// Of n elements; -0 is zero.
void find_flags(compute_dtype dtype, const char* src, int64_t n, uint64_t* words) {
  switch (dtype) {
    case COMPUTE_DTYPE_FLOAT16:
    case COMPUTE_DTYPE_BFLOAT16:
      return find_flags(src, n, uint16_t{0x7fff}, words);
    case COMPUTE_DTYPE_FLOAT32:
      return find_flags(src, n, ~uint32_t{0} >> 1, words);
    case COMPUTE_DTYPE_FLOAT64:
      return find_flags(src, n, ~uint64_t{0} >> 1, words);
    case COMPUTE_DTYPE_COMPLEX64:
      return find_flags(src, n, uint64_t{0x7fffffff7fffffff}, words);
    case COMPUTE_DTYPE_COMPLEX128:
      for (int64_t i = 0; i < n; i += kWord) {
        const int64_t count = std::min(kWord, n - i);
        uint64_t parts[2 * kWord], word = 0;
        std::memcpy(parts, src + i * 16, static_cast<size_t>(count * 16));
        for (int64_t j = 0; j < count; ++j) word |= uint64_t{(parts[2 * j] | parts[2 * j + 1]) << 1 != 0} << j;
        *words++ = word;
      }
      return;
    default:
      break;
  }
  switch (common::dtype_size(dtype)) {
    case 1:
      return find_flags(src, n, uint8_t{0xff}, words);
    case 2:
      return find_flags(src, n, uint16_t{0xffff}, words);
    case 4:
      return find_flags(src, n, ~uint32_t{0}, words);
    default:
      return find_flags(src, n, ~uint64_t{0}, words);
  }
}

class NonzeroPlan final : public Plan {
 public:
  explicit NonzeroPlan(const Op& op)
      : dtype_(op.input(0).dtype),
        size_(common::dtype_size(dtype_)),
        n_(element_count(op.input(0))),
        rank_(op.input(0).rank),
        row_(op.output(0), op.output(0).strides[1]),
        axis_step_(op.output(0).strides[0] * row_.size) {
    std::copy_n(op.input(0).shape, rank_, shape_.begin());
    workspace_bytes = (divide_up(n_, kWord) + divide_up(n_, kPiece) + 1) * int64_t{sizeof(uint64_t)};
  }

  void run(const compute_plugin_run& run) const override {
    const char* const src = address(run.tensors[0]);
    char* const dst = address(run.tensors[1]);
    auto* const words = reinterpret_cast<uint64_t*>(address(run.workspace));
    auto* const firsts = reinterpret_cast<int64_t*>(words + divide_up(n_, kWord));  // counts, then positions
    for_pieces(n_, [&](int64_t piece, int64_t begin, int64_t end) {
      uint64_t* const own = words + begin / kWord;
      find_flags(dtype_, src + begin * size_, end - begin, own);
      int64_t count = 0;
      for (int64_t i = 0; i < divide_up(end - begin, kWord); ++i) count += std::popcount(own[i]);
      firsts[piece] = count;
    });
    int64_t total = 0;
    for (int64_t i = 0; i < divide_up(n_, kPiece); ++i) total += std::exchange(firsts[i], total);
    Row::store(address(run.tensors[2]), total);
    for_pieces(n_, [&](int64_t piece, int64_t begin, int64_t end) {
      const uint64_t* const own = words + begin / kWord;
      const int64_t count = divide_up(end - begin, kWord);
      if (rank_ == 1 && row_.step == row_.size) {
        store_positions(own, count, begin, reinterpret_cast<int64_t*>(dst) + firsts[piece]);
      } else {
        store_coordinates(own, count, begin, dst + firsts[piece] * row_.step);
      }
      for (int64_t i = 0; i < rank_; ++i) row_.clear(dst + i * axis_step_, std::max(begin, total), end);
    });
  }

 private:
  static void store_positions(const uint64_t* words, int64_t count, int64_t position, int64_t* to) {
    for (int64_t i = 0; i < count; ++i, position += kWord) {
      for (uint64_t word = words[i]; word != 0; word &= word - 1) *to++ = position + std::countr_zero(word);
    }
  }

  void store_coordinates(const uint64_t* words, int64_t count, int64_t first, char* to) const {
    const auto last = static_cast<size_t>(rank_ - 1);
    const int64_t extent = shape_[last];
    std::array<int64_t, COMPUTE_PLUGIN_MAX_RANK> outer;
    int64_t row_begin = 0, row_end = 0;  // none yet
    for (int64_t i = 0; i < count; ++i, first += kWord) {
      for (uint64_t word = words[i]; word != 0; word &= word - 1, to += row_.step) {
        const int64_t position = first + std::countr_zero(word);
        if (position >= row_end) {
          int64_t row = position / extent;
          row_begin = row * extent;
          row_end = row_begin + extent;
          for (size_t axis = last; axis-- > 0; row /= shape_[axis]) outer[axis] = row % shape_[axis];
        }
        for (size_t axis = 0; axis < last; ++axis)
          Row::store(to + static_cast<int64_t>(axis) * axis_step_, outer[axis]);
        Row::store(to + static_cast<int64_t>(last) * axis_step_, position - row_begin);
      }
    }
  }

  const compute_dtype dtype_;
  const int64_t size_, n_, rank_;
  std::array<int64_t, COMPUTE_PLUGIN_MAX_RANK> shape_{};
  const Row row_;            // of the indices, along one axis of x
  const int64_t axis_step_;  // bytes
};

// ---- unique ---------------------------------------------------------------------------------------------------------

class UniquePlan final : public Plan {
 public:
  explicit UniquePlan(const Op& op)
      : dtype_(op.input(0).dtype),
        size_(common::dtype_size(dtype_)),
        n_(element_count(op.input(0))),
        inverse_(op.output(2), *step_of(op.output(2))),
        together_(SharedSort::is_for(1, n_, thread_count())),
        shared_(together_ ? SharedSort(n_, thread_count()) : SharedSort()) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      const compute_plugin_tensor& output = op.output(kOutputs[i]);
      rows_[i] = Row(output, output.strides[0]);
    }
    is_float_ = common::dtype_row(dtype_).category == common::Category::kFloat;
    pair_bytes_ = size_ == 8 ? int64_t{sizeof(Wide)} : int64_t{sizeof(Narrow)};
    workspace_bytes = divide_up(n_, kPiece) * int64_t{sizeof(Piece)} + 2 * n_ * pair_bytes_ +
                      (together_ ? shared_.workspace_bytes() : 0);
  }

  void run(const compute_plugin_run& run) const override {
    const char* const src = address(run.tensors[0]);
    if (size_ < 8) return select<Narrow, Narrow>(run, size_ == 4 ? ~uint32_t{0} : (uint32_t{1} << size_ * 8) - 1);
    if (is_float_) return select<Wide, Wide>(run, ~uint64_t{0});
    // Keys that differ in their lower halves alone are sorted by these.
    Wide first;
    load_pairs(dtype_, false, src, size_, 0, 1, &first);
    std::atomic<uint64_t> varying{0};
    parallel_tasks(n_, kPieceElements, [&](int64_t begin, int64_t end) {
      uint64_t own = 0;
      for (int64_t i = begin; i < end; i += kKeys) {
        Wide keys[kKeys];
        const int64_t count = std::min(kKeys, end - i);
        load_pairs(dtype_, false, src + i * size_, size_, i, count, keys);
        own |= varying_bits(keys, count, first.key());
      }
      varying.fetch_or(own, std::memory_order_relaxed);
    });
    if (varying.load() <= UINT32_MAX) return select<Wide, Narrow>(run, UINT32_MAX);
    select<Wide, Wide>(run, ~uint64_t{0});
  }

 private:
  static constexpr int32_t kOutputs[] = {0, 1, 3};  // values, indices, counts

  struct Piece {
    int64_t count;       // of elements that differ from the one before
    int64_t last_start;  // the last of them; -1: none
  };

  // Loads elements as pairs of the first kind and sorts pairs of the second, whose key is the bits of `mask`.
  template <class Loaded, class Pair>
  void select(const compute_plugin_run& run, uint64_t mask) const {
    auto* const pieces = reinterpret_cast<Piece*>(address(run.workspace));
    auto* const pairs = reinterpret_cast<Pair*>(pieces + divide_up(n_, kPiece));
    const Pair* const sorted = sort<Loaded>(address(run.tensors[0]), pairs, pairs + n_);
    const bool has_nan = is_float_ && sorted[n_ - 1].key() == mask;
    const auto is_new = [&](int64_t i) {
      return i == 0 || sorted[i].key() != sorted[i - 1].key() || (has_nan && sorted[i].key() == mask);
    };
    for_pieces(n_, [&](int64_t piece, int64_t begin, int64_t end) {
      Piece own{0, -1};
      for (int64_t i = begin; i < end; ++i) {
        if (is_new(i)) own = {own.count + 1, i};
      }
      pieces[piece] = own;
    });
    Piece before{0, 0};
    for (int64_t i = 0; i < divide_up(n_, kPiece); ++i) {
      const Piece own = std::exchange(pieces[i], before);
      before = {before.count + own.count, own.last_start < 0 ? before.last_start : own.last_start};
    }
    const int64_t total = before.count;
    Row::store(address(run.tensors[5]), total);
    const char* const src = address(run.tensors[0]);
    char *const values = address(run.tensors[1]), *const indices = address(run.tensors[2]),
                *const inverse = address(run.tensors[3]), *const counts = address(run.tensors[4]);
    for_pieces(n_, [&](int64_t piece, int64_t begin, int64_t end) {
      int64_t rank = pieces[piece].count - 1, start = pieces[piece].last_start;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t position = sorted[i].position();
        if (is_new(i)) {
          if (rank >= 0) Row::store(counts + rank * rows_[2].step, i - start);
          ++rank;
          start = i;
          std::memcpy(values + rank * rows_[0].step, src + position * size_, static_cast<size_t>(size_));
          Row::store(indices + rank * rows_[1].step, position);
        }
        Row::store(inverse + position * inverse_.step, rank);
      }
      if (end == n_) Row::store(counts + rank * rows_[2].step, n_ - start);
      const int64_t first = std::max(begin, total);
      rows_[0].clear(values, first, end);
      rows_[1].clear(indices, first, end);
      rows_[2].clear(counts, first, end);
    });
  }

  template <class Loaded, class Pair>
  const Pair* sort(const char* src, Pair* pairs, Pair* other) const {
    const auto load = [&](int64_t begin, int64_t end) {
      if constexpr (std::is_same_v<Loaded, Pair>) {
        load_pairs(dtype_, false, src + begin * size_, size_, begin, end - begin, pairs + begin);
      } else {
        for (int64_t i = begin; i < end; i += kKeys) {
          Loaded block[kKeys];
          const int64_t count = std::min(kKeys, end - i);
          load_pairs(dtype_, false, src + i * size_, size_, i, count, block);
          for (int64_t j = 0; j < count; ++j)
            pairs[i + j] = Pair::of(static_cast<uint32_t>(block[j].key()), block[j].position());
        }
      }
    };
    if (!together_) {
      load(0, n_);
      return sort_pairs(pairs, other, n_, 64);
    }
    load(0, 1);
    const uint64_t key = pairs[0].key();
    std::atomic<uint64_t> varying{0};
    parallel_tasks(n_, kPieceElements, [&](int64_t begin, int64_t end) {
      load(begin, end);
      varying.fetch_or(varying_bits(pairs + begin, end - begin, key), std::memory_order_relaxed);
    });
    char* const memory = reinterpret_cast<char*>(pairs) + 2 * n_ * pair_bytes_;  // the same for either kind of pair
    shared_.sort(pairs, other, varying.load(), memory, [&](const Pair* sorted, int64_t begin, int64_t end) {
      if (sorted != pairs) std::copy(sorted + begin, sorted + end, pairs + begin);
    });
    return pairs;
  }

  const compute_dtype dtype_;
  const int64_t size_, n_;
  std::array<Row, 3> rows_;  // values, indices, counts
  const Row inverse_;
  const bool together_;  // threads share the work
  const SharedSort shared_;
  bool is_float_ = false;
  int64_t pair_bytes_ = 0;
};

}  // namespace

std::optional<Refusal> refuse_nonzero(const Op& op) { return refuse_layout(op); }

std::unique_ptr<Plan> prepare_nonzero(const Op& op) { return std::make_unique<NonzeroPlan>(op); }

std::optional<Refusal> refuse_unique(const Op& op) {
  const compute_plugin_tensor& src = op.input(0);
  if (common::is_complex(src.dtype))
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, "unique: complex numbers are not supported", ""};
  if (element_count(src) > int64_t{UINT32_MAX})
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, "unique: 2^32 elements or more", ""};
  if (!step_of(op.output(2)))
    return Refusal{COMPUTE_PLUGIN_REFUSE_LAYOUT, op.input_count() + 2, "unique: the inverse is not row-major", ""};
  return refuse_layout(op);
}

std::unique_ptr<Plan> prepare_unique(const Op& op) { return std::make_unique<UniquePlan>(op); }

}  // namespace compute::cpu
