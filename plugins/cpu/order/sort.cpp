// SPDX-License-Identifier: Apache-2.0
// Stable sorts: each element becomes a key, whose order as an unsigned number is the wanted one, with its position.
// Long lines are sorted digit by digit, by all threads if there are few lines; short ones by comparison.
#include "plugins/cpu/order/sort.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "plugins/common/layout.hpp"
#include "plugins/cpu/order/pairs.hpp"
#include "plugins/cpu/order/philox.hpp"
#include "plugins/cpu/thread_frame.hpp"
#include "plugins/cpu/threads.hpp"
#include "plugins/cpu/walk.hpp"

namespace compute::cpu {
namespace {

constexpr int kDigitBits = 8;
constexpr int64_t kBuckets = int64_t{1} << kDigitBits;
constexpr int64_t kShort = 192;              // sorted by comparison
constexpr int64_t kPiece = 64 << 10;         // of one long line that is shared between threads
constexpr int64_t kPieceElements = 8 << 10;  // what a thread is worth waking for

static_assert(sizeof(uint64_t) * 8 / kDigitBits * kBuckets * sizeof(int64_t) <= kThreadFrameBytes);

// ---- Sorting by digits ----------------------------------------------------------------------------------------------

template <class Pair>
int64_t digit(const Pair& pair, int shift) {
  return static_cast<int64_t>(pair.key() >> shift) & (kBuckets - 1);
}

template <class Pair>
void count_digits(const Pair* pairs, int64_t n, int shift, int64_t* counts) {
  std::fill(counts, counts + kBuckets, 0);
  for (int64_t i = 0; i < n; ++i) ++counts[digit(pairs[i], shift)];
}

// The bits in which keys differ from the first one of their line.
template <class Pair>
uint64_t varying_bits(const Pair* pairs, int64_t n, uint64_t first_key) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < n; ++i) bits |= pairs[i].key() ^ first_key;
  return bits;
}

// The digits of which a key has `key_bits`, without those that are the same in all keys.
struct Digits {
  Digits(uint64_t varying, int key_bits) {
    for (int shift = 0; shift < key_bits; shift += kDigitBits)
      if ((varying >> shift & (kBuckets - 1)) != 0) shifts[count++] = shift;
  }
  const int* begin() const { return shifts; }
  const int* end() const { return shifts + count; }

  int count = 0;
  int shifts[sizeof(uint64_t) * 8 / kDigitBits];
};

// Counts all digits at once.
template <class Pair>
void count_all_digits(const Pair* pairs, int64_t n, const Digits& digits, int64_t* counts) {
  std::fill(counts, counts + digits.count * kBuckets, 0);
  for (int64_t i = 0; i < n; ++i) {
    for (int d = 0; d < digits.count; ++d) ++counts[d * kBuckets + digit(pairs[i], digits.shifts[d])];
  }
}

template <class Pair>
void move_by_digit(const Pair* from, int64_t n, int shift, int64_t* places, Pair* to) {
  for (int64_t i = 0; i < n; ++i) to[places[digit(from[i], shift)]++] = from[i];
}

// Sorts by one thread. The result is in `pairs` or in `other`, which is returned.
template <class Pair>
Pair* sort_pairs(Pair* pairs, Pair* other, int64_t n, int key_bits) {
  if (n < kShort) {
    std::sort(pairs, pairs + n);
    return pairs;
  }
  auto* counts = reinterpret_cast<int64_t*>(thread_frame());
  const Digits digits(varying_bits(pairs, n, pairs[0].key()), key_bits);
  count_all_digits(pairs, n, digits, counts);
  for (const int shift : digits) {
    int64_t place = 0;
    for (int64_t i = 0; i < kBuckets; ++i) place += std::exchange(counts[i], place);
    move_by_digit(pairs, n, shift, counts, other);
    std::swap(pairs, other);
    counts += kBuckets;
  }
  return pairs;
}

// The same by all threads. counts: kBuckets for each piece.
template <class Pair>
Pair* sort_pairs_together(Pair* pairs, Pair* other, int64_t n, int key_bits, int64_t* counts) {
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  const auto for_pieces = [&](const auto& body) {
    parallel_tasks(pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i * kPiece, std::min(kPiece, n - i * kPiece), counts + i * kBuckets);
    });
  };
  std::atomic<uint64_t> varying{0};
  for_pieces([&](int64_t first, int64_t count, int64_t*) {
    varying.fetch_or(varying_bits(pairs + first, count, pairs[0].key()), std::memory_order_relaxed);
  });
  for (const int shift : Digits(varying.load(), key_bits)) {
    for_pieces([&](int64_t first, int64_t count, int64_t* own) { count_digits(pairs + first, count, shift, own); });
    int64_t place = 0;
    for (int64_t bucket = 0; bucket < kBuckets; ++bucket)
      for (int64_t i = 0; i < pieces; ++i) place += std::exchange(counts[i * kBuckets + bucket], place);
    for_pieces(
        [&](int64_t first, int64_t count, int64_t* own) { move_by_digit(pairs + first, count, shift, own, other); });
    std::swap(pairs, other);
  }
  return pairs;
}

// Where each thread would take one line, but the lines are few and long.
bool shares_lines(int64_t lines, int64_t extent) {
  const int64_t threads = thread_count();
  return lines < threads && extent >= 2 * kPiece && threads > 1;
}

// Of sort_pairs_together.
int64_t counts_bytes(int64_t extent) {
  return (extent + kPiece - 1) / kPiece * kBuckets * static_cast<int64_t>(sizeof(int64_t));
}

// ---- The plans ------------------------------------------------------------------------------------------------------

struct Output {
  bool exists = false;
  int32_t tensor = 0;  // of the run
  int operand = 0;     // of the nest
  int64_t stride = 0;  // bytes
};

template <class Pair>
class SortPlan final : public Plan {
 public:
  explicit SortPlan(const Op& op) {
    const compute_plugin_tensor& src = op.input(0);
    const auto axis = static_cast<size_t>(op.integer("axis", 0));
    const std::string_view wanted = op.text("outputs");
    dtype_ = src.dtype;
    size_ = common::dtype_size(dtype_);
    descending_ = op.integer("descending", 0) != 0;
    extent_ = src.shape[axis];
    src_stride_ = src.strides[axis] * size_;
    std::vector<std::vector<int64_t>> strides(1);
    std::vector<int64_t> shape;
    const auto other_axes = [&](const compute_plugin_tensor& tensor, int64_t size) {
      std::vector<int64_t> list;
      for (size_t i = 0; i < static_cast<size_t>(tensor.rank); ++i) {
        if (i != axis) list.push_back(tensor.strides[i] * size);
      }
      return list;
    };
    for (size_t i = 0; i < static_cast<size_t>(src.rank); ++i) {
      if (i != axis) shape.push_back(src.shape[i]);
    }
    strides[0] = other_axes(src, size_);
    const auto add = [&](Output& output, int64_t size) {
      const int32_t number = static_cast<int32_t>(strides.size()) - 1;
      const compute_plugin_tensor& tensor = op.output(number);
      output = {true, 1 + number, static_cast<int>(strides.size()), tensor.strides[axis] * size};
      strides.push_back(other_axes(tensor, size));
    };
    if (wanted != "indices") add(values_, size_);
    if (wanted != "values") add(indices_, sizeof(int64_t));
    std::vector<const int64_t*> pointers;
    for (const auto& list : strides) pointers.push_back(list.data());
    nest_ = common::collapse(shape, pointers, 0);
    together_ = shares_lines(nest_.points(), extent_);
    slots_ = together_ ? 1
                       : std::clamp<int64_t>(nest_.points() * extent_ / kPieceElements, 1,
                                             std::min<int64_t>(nest_.points(), thread_count()));
    counts_bytes_ = together_ ? counts_bytes(extent_) : 0;
    workspace_bytes = counts_bytes_ + slots_ * 2 * extent_ * static_cast<int64_t>(sizeof(Pair));
  }

  void run(const compute_plugin_run& run) const override {
    char* workspace = address(run.workspace);
    auto* counts = reinterpret_cast<int64_t*>(workspace);
    auto* pairs = reinterpret_cast<Pair*>(workspace + counts_bytes_);
    if (together_) {
      for (int64_t line = 0; line < nest_.points(); ++line) sort_together(run, line, pairs, counts);
      return;
    }
    parallel_tasks(slots_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        Pair* own = pairs + slot * 2 * extent_;
        const int64_t last = nest_.points() * (slot + 1) / slots_;
        for (int64_t line = nest_.points() * slot / slots_; line < last; ++line) {
          const Place place(*this, run, line);
          load_pairs(dtype_, descending_, place.src, src_stride_, 0, extent_, own);
          const Pair* sorted = sort_pairs(own, own + extent_, extent_, static_cast<int>(size_ * 8));
          write(place, sorted, 0, extent_);
        }
      }
    });
  }

 private:
  static constexpr bool kHasPositions = !std::is_same_v<Pair, Bare>;

  // Where the tensors of a line are.
  struct Place {
    Place(const SortPlan& plan, const compute_plugin_run& run, int64_t line) {
      int64_t offsets[3] = {};
      Walk(plan.nest_, plan.nest_.rank, line, offsets);
      const auto at = [&](int32_t tensor, int operand) {
        return address(run.tensors[tensor]) + plan.nest_.offsets[static_cast<size_t>(operand)] + offsets[operand];
      };
      src = at(0, 0);
      if (plan.values_.exists) values = at(plan.values_.tensor, plan.values_.operand);
      if (plan.indices_.exists) indices = at(plan.indices_.tensor, plan.indices_.operand);
    }
    const char* src;
    char* values = nullptr;
    char* indices = nullptr;
  };

  void sort_together(const compute_plugin_run& run, int64_t line, Pair* pairs, int64_t* counts) const {
    const Place place(*this, run, line);
    parallel_tasks(extent_, kPiece, [&](int64_t begin, int64_t end) {
      load_pairs(dtype_, descending_, place.src + begin * src_stride_, src_stride_, begin, end - begin, pairs + begin);
    });
    const Pair* sorted = sort_pairs_together(pairs, pairs + extent_, extent_, static_cast<int>(size_ * 8), counts);
    parallel_tasks(extent_, kPiece, [&](int64_t begin, int64_t end) { write(place, sorted, begin, end); });
  }

  void write(const Place& place, const Pair* sorted, int64_t begin, int64_t end) const {
    if (values_.exists) {
      switch (size_) {
        case 1:
          write_values<uint8_t>(place, sorted, begin, end);
          break;
        case 2:
          write_values<uint16_t>(place, sorted, begin, end);
          break;
        case 4:
          write_values<uint32_t>(place, sorted, begin, end);
          break;
        default:
          write_values<uint64_t>(place, sorted, begin, end);
      }
    }
    if constexpr (kHasPositions) {
      if (!indices_.exists) return;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t position = sorted[i].position();
        std::memcpy(place.indices + i * indices_.stride, &position, sizeof position);
      }
    }
  }

  template <class Bits>
  void write_values(const Place& place, const Pair* sorted, int64_t begin, int64_t end) const {
    const common::Category category = common::dtype_row(dtype_).category;
    const bool is_signed = category == common::Category::kSigned;
    if (is_signed || category == common::Category::kUnsigned) {
      // A key of an integer is made of it by steps that undo themselves.
      for (int64_t i = begin; i < end; ++i) {
        const Bits value =
            static_cast<Bits>(integer_key<Bits>(static_cast<Bits>(sorted[i].key()), is_signed, descending_));
        std::memcpy(place.values + i * values_.stride, &value, sizeof value);
      }
      return;
    }
    if constexpr (kHasPositions) {
      for (int64_t i = begin; i < end; ++i) {
        std::memcpy(place.values + i * values_.stride, place.src + int64_t{sorted[i].position()} * src_stride_,
                    sizeof(Bits));
      }
    }
  }

  common::LoopNest nest_;  // the other axes; operands: input, outputs
  compute_dtype dtype_ = 0;
  int64_t size_ = 0, extent_ = 1, src_stride_ = 0;
  bool descending_ = false;
  Output values_, indices_;
  bool together_ = false;  // threads share each line
  int64_t slots_ = 1;      // lines that are sorted at a time
  int64_t counts_bytes_ = 0;
};

// The positions of random 64-bit numbers in ascending order.
class PermutationPlan final : public Plan {
 public:
  explicit PermutationPlan(const Op& op)
      : dtype_(op.output(0).dtype),
        extent_(op.output(0).shape[0]),
        stride_(op.output(0).strides[0] * common::dtype_size(dtype_)),
        together_(shares_lines(1, extent_)),
        counts_bytes_(together_ ? counts_bytes(extent_) : 0) {
    workspace_bytes = counts_bytes_ + 2 * extent_ * static_cast<int64_t>(sizeof(Wide));
  }

  void run(const compute_plugin_run& run) const override {
    char* const workspace = address(run.workspace);
    auto* const counts = reinterpret_cast<int64_t*>(workspace);
    auto* const pairs = reinterpret_cast<Wide*>(workspace + counts_bytes_);
    char* const dst = address(run.tensors[0]);
    uint64_t seed = 0, offset = 0;
    std::memcpy(&seed, &run.scalars[0], sizeof seed);
    std::memcpy(&offset, &run.scalars[1], sizeof offset);
    const auto draw = [&](int64_t begin, int64_t end) { draw_pairs(seed, offset, begin, end, pairs); };
    const auto store = [&](const Wide* sorted, int64_t begin, int64_t end) {
      dtype_ == COMPUTE_DTYPE_INT32 ? write<int32_t>(sorted, begin, end, dst) : write<int64_t>(sorted, begin, end, dst);
    };
    if (!together_) {
      draw(0, extent_);
      return store(sort_pairs(pairs, pairs + extent_, extent_, 64), 0, extent_);
    }
    parallel_tasks(extent_, kPiece, draw);
    const Wide* const sorted = sort_pairs_together(pairs, pairs + extent_, extent_, 64, counts);
    parallel_tasks(extent_, kPiece, [&](int64_t begin, int64_t end) { store(sorted, begin, end); });
  }

 private:
  // A block of random bits has the keys of an even position and of the next one.
  static void draw_pairs(uint64_t seed, uint64_t offset, int64_t begin, int64_t end, Wide* pairs) {
    PhiloxWords words{};
    for (int64_t i = begin; i < end; ++i) {
      if (i == begin || i % 2 == 0) words = philox(seed, offset + static_cast<uint64_t>(i) / 2);
      const int low = i % 2 == 0 ? 0 : 2;
      pairs[i] = Wide::of(uint64_t{words[low + 1]} << 32 | words[low], static_cast<uint32_t>(i));
    }
  }

  template <class Index>
  void write(const Wide* sorted, int64_t begin, int64_t end, char* dst) const {
    for (int64_t i = begin; i < end; ++i) {
      const auto position = static_cast<Index>(sorted[i].position());
      std::memcpy(dst + i * stride_, &position, sizeof position);
    }
  }

  const compute_dtype dtype_;
  const int64_t extent_, stride_;  // elements; bytes
  const bool together_;            // threads share the work
  const int64_t counts_bytes_;
};

}  // namespace

std::optional<Refusal> refuse_permutation(const Op& op) {
  if (op.output(0).shape[0] > int64_t{UINT32_MAX})
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, -1, "random_permutation: 2^32 elements or more", ""};
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_permutation(const Op& op) { return std::make_unique<PermutationPlan>(op); }

std::optional<Refusal> refuse_sort(const Op& op) {
  const compute_plugin_tensor& src = op.input(0);
  if (is_complex(src.dtype))
    return Refusal{COMPUTE_PLUGIN_REFUSE_DTYPE, 0, "sort: complex numbers are not ordered", ""};
  if (src.shape[op.integer("axis", 0)] > int64_t{UINT32_MAX})
    return Refusal{COMPUTE_PLUGIN_REFUSE_SHAPE, 0, "sort: a line has 2^32 elements or more", ""};
  return std::nullopt;
}

std::unique_ptr<Plan> prepare_sort(const Op& op) {
  const compute_dtype dtype = op.input(0).dtype;
  const bool is_integer = dtype == COMPUTE_DTYPE_INT64 || dtype == COMPUTE_DTYPE_UINT64;
  if (is_integer && op.text("outputs") == "values") return std::make_unique<SortPlan<Bare>>(op);
  if (common::dtype_size(dtype) == 8) return std::make_unique<SortPlan<Wide>>(op);
  return std::make_unique<SortPlan<Narrow>>(op);
}

}  // namespace compute::cpu
