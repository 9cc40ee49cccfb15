// SPDX-License-Identifier: Apache-2.0
// Stable sorts: each element becomes a key, whose order as an unsigned number is the wanted one, with its position.
// Threads share each line if there are few, and long, ones. Short lines are sorted many at a time, by a network, also
// for top_k.
#include "plugins/cpu/order/sort.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>
#include <vector>

#include "plugins/common/op/layout.hpp"
#include "plugins/cpu/base/walk.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/order_kernel.hpp"
#include "plugins/cpu/order/pairs.hpp"
#include "plugins/cpu/order/philox.hpp"
#include "plugins/cpu/order/radix.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {
namespace {

constexpr int64_t kPieceElements = 8 << 10;   // least work that justifies waking a thread
constexpr int64_t kMostSlotBytes = 64 << 20;  // of the lines that are sorted at a time, unless the threads need more
constexpr int64_t kSlotsPerThread = 4;        // at most: one that the system runs late holds up a few lines
constexpr int64_t kNetworkLine = 128;         // longer lines are sorted one by one
constexpr int64_t kNetworkLines = 64;         // are sorted at a time, at most, and so many pairs: for the first cache
constexpr int64_t kNetworkPairs = 2 << 10;
constexpr int64_t kLeastNetworkLines = 4;
constexpr int64_t kNetworkUnit = 8;  // lines: a vector of words

// x[i] = the lesser of x[i] and y[i], and y[i] = the other one. n is a multiple of kNetworkUnit.
template <class Pair>
void exchange(Pair* x, Pair* y, int64_t n) {
  if constexpr (sizeof(Pair) == sizeof(uint64_t)) {
    isa().order->exchange_words(reinterpret_cast<uint64_t*>(x), reinterpret_cast<uint64_t*>(y), n);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      // A branch would be mispredicted half of the time.
      const uint64_t exchanges = uint64_t{0} - static_cast<uint64_t>(y[i] < x[i]);
      const uint64_t value = (x[i].value ^ y[i].value) & exchanges, at = (x[i].at ^ y[i].at) & exchanges;
      x[i] = {x[i].value ^ value, x[i].at ^ at};
      y[i] = {y[i].value ^ value, y[i].at ^ at};
    }
  }
}

// Sorts `lines` lines of n pairs by Batcher's odd-even merge sort. Pairs of a line are `lines` pairs apart.
template <class Pair>
void sort_lines(Pair* pairs, int64_t lines, int64_t n) {
  for (int64_t sorted = 1; sorted < n; sorted *= 2) {
    for (int64_t distance = sorted; distance >= 1; distance /= 2) {
      for (int64_t first = distance % sorted; first + distance < n; first += 2 * distance) {
        for (int64_t i = first; i < std::min(first + distance, n - distance); ++i) {
          if ((i ^ (i + distance)) >= 2 * sorted) continue;  // in different pairs of sorted parts
          exchange(pairs + i * lines, pairs + (i + distance) * lines, lines);
        }
      }
    }
  }
}

// ---- The plans ------------------------------------------------------------------------------------------------------

// Whether all threads sort each line.
bool threads_share_lines(const Op& op) {
  const compute_plugin_tensor& src = op.input(0);
  const int64_t extent = src.shape[op.integer("axis", 0)];
  int64_t elements = 1;
  for (int32_t i = 0; i < src.rank; ++i) elements *= src.shape[i];
  return SharedSort::is_for(elements / extent, extent, thread_count());
}

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
    const bool is_top_k = op.name() == "top_k";
    const int64_t given = op.integer("axis", is_top_k ? -1 : 0);
    const auto axis = static_cast<size_t>(given < 0 ? given + src.rank : given);
    const std::string_view wanted = is_top_k ? "" : op.text("outputs");
    dtype_ = src.dtype;
    size_ = common::dtype_size(dtype_);
    descending_ = (is_top_k ? op.integer("largest", 1) : op.integer("descending", 0)) != 0;
    extent_ = src.shape[axis];
    kept_ = op.output(0).shape[axis];
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
    along_ = {0, values_.stride, indices_.stride};
    std::vector<const int64_t*> pointers;
    for (const auto& list : strides) pointers.push_back(list.data());
    nest_ = common::collapse(shape, pointers, 0);
    if constexpr (kHasNetwork) {
      if (extent_ <= kNetworkLine && nest_.rank > 0) plan_network();
    }
    const int64_t lines = nest_.points(), threads = thread_count();
    const int64_t slot_bytes = 2 * extent_ * static_cast<int64_t>(sizeof(Pair));
    together_ = !is_top_k && threads_share_lines(op);
    if (together_) {
      shared_ = SharedSort(extent_, threads);
      workspace_bytes = slot_bytes + shared_.workspace_bytes();
    } else {
      const int64_t most = std::max(threads, std::min(kSlotsPerThread * threads, kMostSlotBytes / slot_bytes));
      slots_ = std::clamp<int64_t>(lines * extent_ / kPieceElements, 1, std::min(lines, most));
      slot_pairs_ = (network_lines_ == 1 ? 2 : round_up(network_lines_)) * extent_;
      workspace_bytes = slots_ * slot_pairs_ * static_cast<int64_t>(sizeof(Pair));
    }
  }

  void run(const compute_plugin_run& run) const override {
    auto* const pairs = reinterpret_cast<Pair*>(address(run.workspace));
    if (together_) {
      for (int64_t line = 0; line < nest_.points(); ++line) sort_together(run, line, pairs);
      return;
    }
    parallel_tasks(slots_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        Pair* own = pairs + slot * slot_pairs_;
        const int64_t last = nest_.points() * (slot + 1) / slots_;
        for (int64_t line = nest_.points() * slot / slots_; line < last; ++line) {
          const Place place(*this, run, line);
          if constexpr (kHasNetwork) {
            if (network_lines_ > 1) {
              const int64_t inner = nest_.extents[static_cast<size_t>(nest_.rank - 1)];
              const int64_t lines = std::min({network_lines_, last - line, inner - line % inner});
              sort_by_network(place, own, lines);
              line += lines - 1;
              continue;
            }
          }
          load_pairs(dtype_, descending_, place.src, src_stride_, 0, extent_, own);
          const Pair* sorted = sort_pairs(own, own + extent_, extent_, static_cast<int>(size_ * 8));
          write(place, along_, sorted, 0, kept_);
        }
      }
    });
  }

 private:
  static constexpr bool kHasPositions = !std::is_same_v<Pair, Bare> && !std::is_same_v<Pair, Short>;
  static constexpr bool kHasNetwork = !std::is_same_v<Pair, Short>;

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

  void sort_together(const compute_plugin_run& run, int64_t line, Pair* pairs) const {
    const Place place(*this, run, line);
    Pair* const other = pairs + extent_;
    std::atomic<uint64_t> varying{0};
    load_pairs(dtype_, descending_, place.src, src_stride_, 0, 1, other);
    const uint64_t key = other[0].key();
    parallel_tasks(extent_, kPieceElements, [&](int64_t begin, int64_t end) {
      load_pairs(dtype_, descending_, place.src + begin * src_stride_, src_stride_, begin, end - begin, pairs + begin);
      varying.fetch_or(varying_bits(pairs + begin, end - begin, key), std::memory_order_relaxed);
    });
    shared_.sort(pairs, other, varying.load(), reinterpret_cast<char*>(other + extent_),
                 [&](const Pair* sorted, int64_t begin, int64_t end) { write(place, along_, sorted, begin, end); });
  }

  static int64_t round_up(int64_t lines) { return (lines + kNetworkUnit - 1) / kNetworkUnit * kNetworkUnit; }

  // Many lines of the innermost loop at a time.
  void plan_network() {
    const int inner = nest_.rank - 1;
    const auto end = nest_.extents.begin() + nest_.rank;
    network_lines_ = std::clamp<int64_t>(kNetworkPairs / extent_, 1, kNetworkLines);
    if (end[-1] < network_lines_) {
      for (auto i = static_cast<int>(std::max_element(nest_.extents.begin(), end) - nest_.extents.begin()); i < inner;
           ++i)
        common::move_loop(nest_, i + 1, i);
    }
    network_lines_ = std::min(network_lines_, end[-1]);
    if (network_lines_ < kLeastNetworkLines) network_lines_ = 1;
    const auto stride = [&](int operand) {
      return nest_.strides[static_cast<size_t>(operand)][static_cast<size_t>(inner)];
    };
    across_ = {stride(0), values_.exists ? stride(values_.operand) : 0, indices_.exists ? stride(indices_.operand) : 0};
  }

  void sort_by_network(Place place, Pair* pairs, int64_t lines) const {
    const int64_t pitch = round_up(lines);
    for (int64_t i = 0; i < extent_; ++i)
      load_pairs(dtype_, descending_, place.src + i * src_stride_, across_.src, i, lines, pairs + i * pitch, 0);
    sort_lines(pairs, pitch, extent_);
    for (int64_t i = 0; i < kept_; ++i) {
      write(place, across_, pairs + i * pitch, 0, lines);
      place.values += values_.stride;
      place.indices += indices_.stride;
    }
  }

  // Bytes between the elements that `write` writes, and between the lines they come from.
  struct Steps {
    int64_t src, values, indices;
  };

  void write(const Place& place, const Steps& steps, const Pair* sorted, int64_t begin, int64_t end) const {
    if (values_.exists) {
      switch (size_) {
        case 1:
          write_values<uint8_t>(place, steps, sorted, begin, end);
          break;
        case 2:
          write_values<uint16_t>(place, steps, sorted, begin, end);
          break;
        case 4:
          write_values<uint32_t>(place, steps, sorted, begin, end);
          break;
        default:
          write_values<uint64_t>(place, steps, sorted, begin, end);
      }
    }
    if constexpr (kHasPositions) {
      if (!indices_.exists) return;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t position = sorted[i].position();
        std::memcpy(place.indices + i * steps.indices, &position, sizeof position);
      }
    }
  }

  template <class Bits>
  void write_values(const Place& place, const Steps& steps, const Pair* sorted, int64_t begin, int64_t end) const {
    const common::Category category = common::dtype_row(dtype_).category;
    const bool is_signed = category == common::Category::kSigned;
    if (category != common::Category::kFloat) {
      // A key of an integer is made of it by steps that undo themselves.
      for (int64_t i = begin; i < end; ++i) {
        const Bits value =
            static_cast<Bits>(integer_key<Bits>(static_cast<Bits>(sorted[i].key()), is_signed, descending_));
        std::memcpy(place.values + i * steps.values, &value, sizeof value);
      }
      return;
    }
    if constexpr (!std::is_same_v<Pair, Bare>) {
      const FloatOfKey<Bits> float_of(descending_);
      int64_t at = 0;  // of a whole line: where the next element of a key that several have may be
      for (int64_t i = begin; i < end; ++i) {
        const auto key = static_cast<Bits>(sorted[i].key());
        Bits value = float_of(key);
        if (!float_of.is_known(key)) {
          if constexpr (kHasPositions) {
            at = sorted[i].position();
          } else {
            if (i > begin && sorted[i - 1].key() != key) at = 0;
            const auto is_it = [&](const char* src) {
              std::memcpy(&value, src, sizeof value);
              return float_key(dtype_, value, descending_) == key;
            };
            while (!is_it(place.src + at * src_stride_)) ++at;
          }
          std::memcpy(&value, place.src + i * steps.src + at++ * src_stride_, sizeof value);
        }
        std::memcpy(place.values + i * steps.values, &value, sizeof value);
      }
    }
  }

  common::LoopNest nest_;  // the other axes; operands: input, outputs
  compute_dtype dtype_ = 0;
  int64_t size_ = 0, extent_ = 1, src_stride_ = 0;
  int64_t kept_ = 1;  // elements of a sorted line
  bool descending_ = false;
  Output values_, indices_;
  Steps along_{}, across_{};  // of a line, and of the innermost of the other axes
  bool together_ = false;     // threads share each line
  SharedSort shared_;
  int64_t slots_ = 1;  // that work at a time, each on one line or on network_lines_
  int64_t slot_pairs_ = 0;
  int64_t network_lines_ = 1;  // that a network sorts at a time, if not 1
};

// The positions of random 64-bit numbers in ascending order. The higher halves of the numbers are sorted; where these
// are equal, which is rare, the lower ones are drawn again.
class PermutationPlan final : public Plan {
 public:
  explicit PermutationPlan(const Op& op)
      : dtype_(op.output(0).dtype),
        extent_(op.output(0).shape[0]),
        room_((extent_ + kDrawn - 1) / kDrawn * kDrawn),
        stride_(op.output(0).strides[0] * common::dtype_size(dtype_)),
        together_(SharedSort::is_for(1, extent_, thread_count())),
        shared_(together_ ? SharedSort(extent_, thread_count()) : SharedSort()) {
    workspace_bytes = 2 * room_ * static_cast<int64_t>(sizeof(Narrow)) + (together_ ? shared_.workspace_bytes() : 0);
  }

  void run(const compute_plugin_run& run) const override {
    auto* const pairs = reinterpret_cast<Narrow*>(address(run.workspace));
    Narrow* const other = pairs + room_;
    char* const dst = address(run.tensors[0]);
    uint64_t seed = 0, offset = 0;
    std::memcpy(&seed, &run.scalars[0], sizeof seed);
    std::memcpy(&offset, &run.scalars[1], sizeof offset);
    const auto draw = [&](int64_t begin, int64_t end) {
      isa().order->random_pairs(seed, offset, begin * kRandomBlocks, end * kRandomBlocks, &pairs->word);
    };
    const auto store = [&](const Narrow* sorted, int64_t begin, int64_t end) {
      dtype_ == COMPUTE_DTYPE_INT32 ? write<int32_t>(seed, offset, sorted, begin, end, dst)
                                    : write<int64_t>(seed, offset, sorted, begin, end, dst);
    };
    if (!together_) {
      draw(0, room_ / kDrawn);
      return store(sort_random_pairs(pairs, other, extent_), 0, extent_);
    }
    parallel_tasks(room_ / kDrawn, kPieceElements / kDrawn, draw);
    shared_.sort(pairs, other, UINT32_MAX, reinterpret_cast<char*>(other + room_), store, true);
  }

 private:
  static constexpr int64_t kDrawn = 2 * kRandomBlocks;

  // A block of random bits has the numbers of an even position and of the next one, the lower halves in front.
  static uint64_t block_of(uint64_t offset, int64_t position) { return offset + static_cast<uint64_t>(position) / 2; }

  // The sorted range has all keys that are equal to one of its own.
  template <class Index>
  void write(uint64_t seed, uint64_t offset, const Narrow* sorted, int64_t begin, int64_t end, char* dst) const {
    const auto lower = [&](uint32_t at) { return philox(seed, block_of(offset, at))[at % 2 == 0 ? 0 : 2]; };
    for (int64_t i = begin; i < end; ++i) {
      if (i + 1 == end || sorted[i].key() != sorted[i + 1].key()) {
        put(static_cast<Index>(sorted[i].position()), dst + i * stride_);
        continue;
      }
      std::vector<Narrow> equal;
      for (const uint64_t key = sorted[i].key(); i < end && sorted[i].key() == key; ++i)
        equal.push_back(Narrow::of(lower(sorted[i].position()), sorted[i].position()));
      std::sort(equal.begin(), equal.end());
      i -= static_cast<int64_t>(equal.size());
      for (const Narrow& pair : equal) put(static_cast<Index>(pair.position()), dst + i++ * stride_);
      --i;
    }
  }
  template <class Index>
  static void put(Index position, char* dst) {
    std::memcpy(dst, &position, sizeof position);
  }

  const compute_dtype dtype_;
  const int64_t extent_, room_;  // elements; rounded up to what is drawn at a time
  const int64_t stride_;         // bytes
  const bool together_;          // threads share the work
  const SharedSort shared_;
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
  const bool is_wide = common::dtype_size(dtype) == 8, values_alone = op.text("outputs") == "values";
  const bool is_integer = dtype == COMPUTE_DTYPE_INT64 || dtype == COMPUTE_DTYPE_UINT64;
  if (is_integer && values_alone) return std::make_unique<SortPlan<Bare>>(op);
  if (is_wide) return std::make_unique<SortPlan<Wide>>(op);
  if (values_alone && op.input(0).shape[op.integer("axis", 0)] > kNetworkLine && !threads_share_lines(op))
    return std::make_unique<SortPlan<Short>>(op);
  return std::make_unique<SortPlan<Narrow>>(op);
}

}  // namespace compute::cpu
