// SPDX-License-Identifier: Apache-2.0
// The first k elements of each line in the order of sort. A few more candidates than k are kept; when their place is
// full, the k first of them remain, and the last of these is a limit for all elements that follow. Most blocks have
// nothing below it. Where all keys of a line fit in a thread's frame, such a limit is found by bisection. Short lines
// are sorted.
#include "plugins/cpu/order/top_k.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/base/walk.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/order_kernel.hpp"
#include "plugins/cpu/order/pairs.hpp"
#include "plugins/cpu/order/sort.hpp"
#include "plugins/cpu/threads/thread_frame.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kBlock = 128;
constexpr int64_t kLeastSpare = 64;          // candidates beyond k
constexpr int64_t kMostSelected = 8 << 10;   // k that is selected rather than sorted
constexpr int64_t kShort = 256;              // lines up to this length use selection for any k
constexpr int64_t kSortedLine = 48;          // lines up to this length are sorted
constexpr int64_t kPiece = 64 << 10;         // of one long line that is shared between threads
constexpr int64_t kPieceElements = 8 << 10;  // least work that justifies waking a thread
constexpr int64_t kSlotsPerThread = 4;

// Lines whose keys are held together.
constexpr int64_t kMostKeys = 8 << 10;
constexpr int64_t kMostFound = 1 << 10;  // keys up to the limit
constexpr int64_t kMostRanked = 160;     // of these, which are sorted by counting
constexpr int64_t kVectorKeys = 16;      // of the widest vectors

constexpr int64_t kKeysPerSelected = 16;  // of 64 bits: finding a limit for fewer among many takes longer
static_assert(kMostKeys * int64_t{sizeof(uint32_t)} + kMostFound * int64_t{sizeof(Wide)} +
                  (kMostFound + kVectorKeys) * int64_t{sizeof(uint64_t) + sizeof(uint32_t)} <=
              int64_t{kThreadFrameBytes});

// The candidates of a line, in the memory of `capacity` pairs.
template <class Pair>
class Candidates {
 public:
  Candidates(Pair* pairs, int64_t k, int64_t capacity) : pairs_(pairs), k_(k), capacity_(capacity) {}

  // Whether elements from now on must have a lesser key than limit().
  bool is_limited() const { return is_limited_; }
  uint64_t limit() const { return limit_; }

  void add(const Pair& pair) {
    if (is_limited_ && pair.key() >= limit_) return;
    pairs_[count_++] = pair;
    if (count_ == capacity_) keep_first();
  }

  // How many there are, at most k.
  int64_t finish() {
    if (count_ > k_) keep_first();
    return count_;
  }

 private:
  void keep_first() {
    std::nth_element(pairs_, pairs_ + k_ - 1, pairs_ + count_);
    count_ = k_;
    limit_ = pairs_[k_ - 1].key();
    is_limited_ = true;
  }

  Pair* const pairs_;
  const int64_t k_, capacity_;
  int64_t count_ = 0;
  uint64_t limit_ = 0;
  bool is_limited_ = false;
};

template <class Pair>
class TopKPlan final : public Plan {
 public:
  explicit TopKPlan(const Op& op) {
    const compute_plugin_tensor &src = op.input(0), &values = op.output(0), &indices = op.output(1);
    int64_t given = op.integer("axis", -1);
    if (given < 0) given += src.rank;
    const auto axis = static_cast<size_t>(given);
    dtype_ = src.dtype;
    size_ = common::dtype_size(dtype_);
    descending_ = op.integer("largest", 1) != 0;
    extent_ = src.shape[axis];
    k_ = values.shape[axis];
    capacity_ = k_ + std::max(k_, kLeastSpare);
    const compute_plugin_tensor* const tensors[] = {&src, &values, &indices};
    std::vector<int64_t> shape, strides[3];
    for (size_t i = 0; i < 3; ++i) {
      const int64_t bytes = i < 2 ? size_ : static_cast<int64_t>(sizeof(int64_t));
      strides_[i] = tensors[i]->strides[axis] * bytes;
      for (size_t j = 0; j < static_cast<size_t>(src.rank); ++j) {
        if (j != axis) strides[i].push_back(tensors[i]->strides[j] * bytes);
      }
    }
    for (size_t j = 0; j < static_cast<size_t>(src.rank); ++j) {
      if (j != axis) shape.push_back(src.shape[j]);
    }
    const int64_t* const pointers[] = {strides[0].data(), strides[1].data(), strides[2].data()};
    nest_ = common::collapse(shape, pointers, 0);
    const int64_t lines = nest_.points(), threads = thread_count();
    if (threads > 1 && lines < threads && extent_ >= 2 * kPiece) pieces_ = (extent_ + kPiece - 1) / kPiece;
    spare_ = std::max(k_ / 4, int64_t{8});
    const bool has_wide_vectors = isa().set >= InstructionSet::avx2;  // SSE2 does not compare 64 bits
    holds_keys_ = extent_ * static_cast<int64_t>(sizeof(Key)) <= kMostKeys * static_cast<int64_t>(sizeof(uint32_t)) &&
                  k_ + spare_ <= kMostFound &&
                  (sizeof(Key) == 4 || (has_wide_vectors && extent_ <= std::max(kShort, kKeysPerSelected * k_)));
    if (holds_keys_) return;
    const int64_t most = std::min(lines, kSlotsPerThread * threads);
    slots_ = pieces_ > 1 ? pieces_ : std::clamp<int64_t>(lines * extent_ / kPieceElements, 1, most);
    workspace_bytes = slots_ * (static_cast<int64_t>(sizeof(int64_t)) + capacity_ * static_cast<int64_t>(sizeof(Pair)));
  }

  void run(const compute_plugin_run& run) const override {
    if (holds_keys_) {
      const int64_t grain = std::max(kPieceElements / extent_, int64_t{1});
      return parallel_tasks(nest_.points(), grain, [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) select_by_limit(Place(*this, run, line));
      });
    }
    auto* const pairs = reinterpret_cast<Pair*>(address(run.workspace));
    auto* const counts = reinterpret_cast<int64_t*>(pairs + slots_ * capacity_);
    if (pieces_ > 1) {
      for (int64_t line = 0; line < nest_.points(); ++line) select_together(Place(*this, run, line), pairs, counts);
      return;
    }
    parallel_tasks(slots_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        Pair* const own = pairs + slot * capacity_;
        const int64_t last = nest_.points() * (slot + 1) / slots_;
        for (int64_t line = nest_.points() * slot / slots_; line < last; ++line) {
          const Place place(*this, run, line);
          select(place.src, 0, extent_, own);
          write(place, own);
        }
      }
    });
  }

 private:
  using Bared = std::conditional_t<std::is_same_v<Pair, Narrow>, Short, Bare>;
  using Key = decltype(Bared::value);

  // Where the tensors of a line are.
  struct Place {
    Place(const TopKPlan& plan, const compute_plugin_run& run, int64_t line) {
      int64_t offsets[3] = {};
      Walk(plan.nest_, plan.nest_.rank, line, offsets);
      src = address(run.tensors[0]) + plan.nest_.offsets[0] + offsets[0];
      values = address(run.tensors[1]) + plan.nest_.offsets[1] + offsets[1];
      indices = address(run.tensors[2]) + plan.nest_.offsets[2] + offsets[2];
    }
    const char* src;
    char *values, *indices;
  };

  // The first k of the elements [begin, end) of a line, in no order; returns how many there are.
  int64_t select(const char* src, int64_t begin, int64_t end, Pair* pairs) const {
    Candidates<Pair> candidates(pairs, k_, capacity_);
    const bool has_kernel = this->has_kernel();
    for (int64_t first = begin; first < end; first += kBlock) {
      const int64_t n = std::min(kBlock, end - first);
      const char* const from = src + first * strides_[0];
      has_kernel ? add_floats(from, first, n, candidates) : add(from, first, n, candidates);
    }
    return candidates.finish();
  }

  void add(const char* src, int64_t first, int64_t n, Candidates<Pair>& candidates) const {
    Pair block[kBlock];
    load_pairs(dtype_, descending_, src, strides_[0], first, n, block);
    for (int64_t i = 0; i < n; ++i) candidates.add(block[i]);
  }

  void add_floats(const char* src, int64_t first, int64_t n, Candidates<Pair>& candidates) const {
    uint32_t keys[kBlock];
    const auto limit = static_cast<uint32_t>(candidates.limit());
    const int64_t less = isa().order->float32_keys(reinterpret_cast<const uint32_t*>(src), n, descending_, limit, keys);
    if (candidates.is_limited() && less == 0) return;
    for (int64_t i = 0; i < n; ++i) {
      if (!candidates.is_limited() || keys[i] < candidates.limit())
        candidates.add(Pair::of(keys[i], static_cast<uint32_t>(first + i)));
    }
  }

  // Keys up to a limit, which are k or a few more, unless many are equal; then their ranks.
  void select_by_limit(const Place& place) const {
    const KeyKernels& kernels = sizeof(Key) == 4 ? isa().order->narrow_keys : isa().order->wide_keys;
    auto* const pairs = reinterpret_cast<Pair*>(thread_frame());
    auto *const found = reinterpret_cast<Key*>(pairs + kMostFound), *const keys = found + kMostFound + kVectorKeys;
    auto* const positions = reinterpret_cast<uint32_t*>(keys + kMostKeys * sizeof(uint32_t) / sizeof(Key));
    auto* const ranks = reinterpret_cast<uint32_t*>(pairs);
    load_keys(place.src, keys);
    Key low, high;  // fewer than k keys are below low; `count` up to high, at least k
    kernels.range(keys, extent_, &low, &high);
    int64_t count = extent_;
    while (count > k_ + spare_ && low < high) {
      const Key middle = low + (high - low) / 2;
      const int64_t up_to = kernels.up_to(keys, extent_, middle);
      if (up_to < k_) {
        low = middle + 1;
      } else {
        high = middle;
        count = up_to;
      }
    }
    if (count <= k_ + spare_) {
      kernels.find_up_to(keys, extent_, high, positions);
    } else {
      count = high == 0 ? 0 : kernels.find_up_to(keys, extent_, high - 1, positions);
      for (int64_t i = 0; count < k_; ++i) {
        positions[count] = static_cast<uint32_t>(i);
        count += keys[i] == high;
      }
    }
    for (int64_t i = 0; i < count; ++i) found[i] = keys[positions[i]];
    if (count <= kMostRanked) {
      kernels.ranks(found, count, ranks);
      for (int64_t i = 0; i < count; ++i) {
        if (ranks[i] < k_) write_element(place, ranks[i], positions[i]);
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i) pairs[i] = Pair::of(found[i], positions[i]);
    std::sort(pairs, pairs + count);
    for (int64_t i = 0; i < k_; ++i) write_element(place, i, pairs[i].position());
  }

  void load_keys(const char* src, Key* keys) const {
    if constexpr (sizeof(Key) == 4) {
      if (has_kernel()) {
        isa().order->float32_keys(reinterpret_cast<const uint32_t*>(src), extent_, descending_, 0, keys);
        return;
      }
    }
    load_pairs(dtype_, descending_, src, strides_[0], 0, extent_, reinterpret_cast<Bared*>(keys));
  }

  bool has_kernel() const {
    return dtype_ == COMPUTE_DTYPE_FLOAT32 && strides_[0] == static_cast<int64_t>(sizeof(float));
  }

  void write_element(const Place& place, int64_t rank, int64_t position) const {
    std::memcpy(place.values + rank * strides_[1], place.src + position * strides_[0], static_cast<size_t>(size_));
    std::memcpy(place.indices + rank * strides_[2], &position, sizeof position);
  }

  // A piece of the line each; then the candidates of all pieces.
  void select_together(const Place& place, Pair* pairs, int64_t* counts) const {
    parallel_tasks(pieces_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        counts[i] = select(place.src, i * kPiece, std::min(extent_, (i + 1) * kPiece), pairs + i * capacity_);
    });
    int64_t total = counts[0];
    for (int64_t i = 1; i < pieces_; total += counts[i++]) std::copy_n(pairs + i * capacity_, counts[i], pairs + total);
    if (total > k_) std::nth_element(pairs, pairs + k_ - 1, pairs + total);
    write(place, pairs);
  }

  // The selected pairs, which it sorts.
  void write(const Place& place, Pair* pairs) const {
    std::sort(pairs, pairs + k_);
    for (int64_t i = 0; i < k_; ++i) write_element(place, i, pairs[i].position());
  }

  common::LoopNest nest_;  // the other axes; operands: x, values, indices
  compute_dtype dtype_ = 0;
  int64_t size_ = 0, extent_ = 1, k_ = 1;
  int64_t strides_[3] = {};  // bytes, along the axis
  bool descending_ = false;
  int64_t capacity_ = 0;
  int64_t spare_ = 0;  // keys beyond k that need no lower limit
  bool holds_keys_ = false;
  int64_t pieces_ = 1;  // of a line that threads share
  int64_t slots_ = 1;   // memories of candidates
};

}  // namespace

std::optional<Refusal> refuse_top_k(const Op& op) {
  const compute_plugin_tensor& src = op.input(0);
  int64_t axis = op.integer("axis", -1);
  if (axis < 0) axis += src.rank;
  const int64_t extent = src.shape[axis], k = op.output(0).shape[axis];
  if (extent > int64_t{UINT32_MAX})
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, "top_k: a line has more than 2^32 elements", ""};
  if (extent > kShort && (k > extent / 8 || k > kMostSelected))
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, "top_k: so many elements are sorted rather than selected", ""};
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_top_k(const Op& op) {
  const compute_plugin_tensor& src = op.input(0);
  const int64_t axis = op.integer("axis", -1);
  if (src.shape[axis < 0 ? axis + src.rank : axis] <= kSortedLine) return prepare_sort(op);
  if (common::dtype_size(op.input(0).dtype) == 8) return std::make_unique<TopKPlan<Wide>>(op);
  return std::make_unique<TopKPlan<Narrow>>(op);
}

}  // namespace compute::cpu
