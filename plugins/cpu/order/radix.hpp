// SPDX-License-Identifier: Apache-2.0
// Stable sorts of pairs by the digits of their keys: of one line by one thread, or by all threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <utility>

#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/kernels/order_kernel.hpp"
#include "plugins/cpu/order/pairs.hpp"
#include "plugins/cpu/threads/thread_frame.hpp"
#include "plugins/cpu/threads/threads.hpp"

namespace compute::cpu {

constexpr int kDigitBits = 8;
constexpr int64_t kBuckets = int64_t{1} << kDigitBits;
constexpr int64_t kShortLine = 192;  // sorted by comparison

static_assert(sizeof(uint64_t) * 8 / kDigitBits * kBuckets * sizeof(uint32_t) <= kThreadFrameBytes);

template <class Pair>
int64_t digit(const Pair& pair, int shift) {
  return static_cast<int64_t>(pair.key() >> shift) & (kBuckets - 1);
}

// The bits in which keys differ from `key`.
template <class Pair>
uint64_t varying_bits(const Pair* pairs, int64_t n, uint64_t key) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < n; ++i) bits |= pairs[i].key() ^ key;
  return bits;
}

template <class Pair>
void move_by_digit(const Pair* from, int64_t n, int shift, uint32_t* places, Pair* to) {
  for (int64_t i = 0; i < n; ++i) to[places[digit(from[i], shift)]++] = from[i];
}

// ---- By one thread --------------------------------------------------------------------------------------------------

// The digits of the bits [low, key_bits) of keys, without digits that are equal in all keys.
struct Digits {
  Digits(uint64_t varying, int low, int key_bits) {
    for (int shift = low; shift < key_bits; shift += kDigitBits)
      if ((varying >> shift & (kBuckets - 1)) != 0) shifts[count++] = shift;
  }
  const int* begin() const { return shifts; }
  const int* end() const { return shifts + count; }

  int count = 0;
  int shifts[sizeof(uint64_t) * 8 / kDigitBits];
};

// Counts all digits in one pass.
template <class Pair>
void count_all_digits(const Pair* pairs, int64_t n, const Digits& digits, uint32_t* counts) {
  std::fill(counts, counts + digits.count * kBuckets, 0);
  for (int64_t i = 0; i < n; ++i) {
    for (int d = 0; d < digits.count; ++d) ++counts[d * kBuckets + digit(pairs[i], digits.shifts[d])];
  }
}

// For pairs of which few are out of place, and those not far.
template <class Pair>
void insert_pairs(Pair* pairs, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    const Pair pair = pairs[i];
    int64_t at = i;
    for (; at > 0 && pair < pairs[at - 1]; --at) pairs[at] = pairs[at - 1];
    pairs[at] = pair;
  }
}

// Sorts fewer than 2^32 pairs. The result is in `pairs` or in `other`, which is returned. Few random keys are equal in
// as many of their highest bits as n has: the digits below are left to comparisons.
template <class Pair>
Pair* sort_pairs(Pair* pairs, Pair* other, int64_t n, int key_bits, bool are_random = false) {
  if (n < kShortLine) {
    std::sort(pairs, pairs + n);
    return pairs;
  }
  auto* counts = reinterpret_cast<uint32_t*>(thread_frame());
  const int counted = (std::bit_width(static_cast<uint64_t>(n)) + kDigitBits - 1) / kDigitBits * kDigitBits;
  const int low = are_random ? std::max(key_bits - counted, 0) : 0;
  const Digits digits(are_random ? ~uint64_t{0} : varying_bits(pairs, n, pairs[0].key()), low, key_bits);
  count_all_digits(pairs, n, digits, counts);
  for (const int shift : digits) {
    uint32_t place = 0;
    for (int64_t i = 0; i < kBuckets; ++i) place += std::exchange(counts[i], place);
    move_by_digit(pairs, n, shift, counts, other);
    std::swap(pairs, other);
    counts += kBuckets;
  }
  if (low > 0) insert_pairs(pairs, n);
  return pairs;
}

// Sorts fewer than 2^32 pairs of random keys of 32 bits. Digits of the highest bits leave groups of about 24 pairs. The
// result is in `pairs` or in `other`, which is returned.
inline Narrow* sort_random_pairs(Narrow* pairs, Narrow* other, int64_t n) {
  constexpr int kGroupBits = 5, kMostDigitBits = 12;
  const int bits = std::max(static_cast<int>(std::bit_width(static_cast<uint64_t>(n))) - kGroupBits, 0);
  const int digits = (bits + kMostDigitBits - 1) / kMostDigitBits;
  int shift = 64 - bits;
  for (int i = 0; i < digits; ++i) {
    const int width = bits * (i + 1) / digits - bits * i / digits;
    const uint64_t mask = (uint64_t{1} << width) - 1;
    uint32_t places[1 << kMostDigitBits];
    std::fill(places, places + mask + 1, 0);
    for (int64_t j = 0; j < n; ++j) ++places[pairs[j].word >> shift & mask];
    uint32_t place = 0;
    for (uint64_t j = 0; j <= mask; ++j) place += std::exchange(places[j], place);
    for (int64_t j = 0; j < n; ++j) other[places[pairs[j].word >> shift & mask]++] = pairs[j];
    std::swap(pairs, other);
    shift += width;
  }
  const uint64_t below = bits == 0 ? ~uint64_t{0} : ~uint64_t{0} >> bits;
  for (int64_t begin = 0, end; begin < n; begin = end) {
    const uint64_t last = pairs[begin].word | below;
    for (end = begin + 1; end < n && pairs[end].word <= last;) ++end;
    if (end - begin > kRankedWords) {
      std::sort(pairs + begin, pairs + end);
      std::copy(pairs + begin, pairs + end, other + begin);
    } else {
      isa().order->sort_words(&pairs[begin].word, end - begin, &other[begin].word);
    }
  }
  return other;
}

// ---- By all threads -------------------------------------------------------------------------------------------------

// One line of n pairs, fewer than 2^32. All threads move the pairs to parts, by the highest digit in which keys differ,
// and again where a part is still long. One thread sorts each of the other parts. The result does not depend on how
// the line is divided: no two pairs are equal, or equal ones are the same.
class SharedSort {
 public:
  SharedSort() = default;
  SharedSort(int64_t n, int64_t threads)
      : n_(n),
        piece_(std::max(kLeastPiece, n / (kPiecesPerThread * threads))),
        most_(std::max(kLeastLong, n / (kPartsPerThread * threads))),
        long_limit_(n / most_ + 1),
        piece_limit_(n / piece_ + long_limit_ + 1),
        part_limit_(2 * n / kJoined + n / piece_ + 4 * kLevels * long_limit_) {}

  // Whether it is worth it.
  static bool is_for(int64_t lines, int64_t extent, int64_t threads) {
    return threads > 1 && lines < threads && extent >= kLeastLine;
  }

  int64_t workspace_bytes() const {
    return piece_limit_ * (kBuckets * int64_t{sizeof(uint32_t)} + int64_t{sizeof(Piece)}) +
           (part_limit_ + 2 * long_limit_) * int64_t{sizeof(Part)};
  }

  // `varying` has the bits in which keys differ; `are_random` is as of sort_pairs. Calls done(sorted, begin, end) for
  // ranges that together are [0, n), on any threads; the range of `sorted`, which is `pairs` or `other`, is sorted.
  template <class Pair, class Done>
  void sort(Pair* pairs, Pair* other, uint64_t varying, char* memory, const Done& done, bool are_random = false) const {
    Pair* const arrays[] = {pairs, other};
    Lists lists(*this, memory);
    lists.longs[0] = {0, n_, static_cast<int32_t>(std::bit_width(varying)), 0};
    for (lists.long_count = 1; lists.long_count > 0;) {
      cut(lists);
      for_each(lists.piece_count, [&](int64_t i) {
        Piece& piece = lists.pieces[i];
        const Part& part = lists.longs[piece.part];
        piece.varying = count_digits(arrays[part.array] + piece.begin, piece.end - piece.begin, part.shift(),
                                     arrays[part.array][part.begin].key(), lists.counts + i * kBuckets);
      });
      divide(lists);
      for_each(lists.piece_count, [&](int64_t i) {
        const Piece& piece = lists.pieces[i];
        const Part& part = lists.longs[piece.part];
        if (!piece.moves) return;
        move_by_digit(arrays[part.array] + piece.begin, piece.end - piece.begin, part.shift(),
                      lists.counts + i * kBuckets, arrays[1 - part.array]);
      });
      std::swap(lists.longs, lists.next);
      lists.long_count = lists.next_count;
    }
    std::atomic<int64_t> next{0};
    parallel_tasks(std::min<int64_t>(lists.part_count, thread_count()), 1, [&](int64_t, int64_t) {
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < lists.part_count;) {
        const Part& part = lists.parts[i];
        Pair *const from = arrays[part.array] + part.begin, *const to = arrays[1 - part.array] + part.begin;
        const Pair* const sorted =
            part.bits == 0 ? from : sort_pairs(from, to, part.end - part.begin, part.bits, are_random);
        done(sorted - part.begin, part.begin, part.end);
      }
    });
  }

 private:
  static constexpr int64_t kLeastLine = 32 << 10;
  static constexpr int64_t kLeastPiece = 8 << 10;  // least work that justifies waking a thread
  static constexpr int64_t kPiecesPerThread = 8, kPartsPerThread = 4;
  static constexpr int64_t kLeastLong = 16 << 10;
  static constexpr int64_t kJoined = 1 << 10;  // adjacent parts are joined up to this many pairs
  static constexpr int64_t kLevels = sizeof(uint64_t) * 8 / kDigitBits + 1;

  // Pairs [begin, end) of pairs or other (array 0 or 1), whose keys differ in the lowest `bits` at most.
  struct Part {
    int64_t begin, end;
    int32_t bits, array;
    int shift() const { return std::max(bits - kDigitBits, 0); }
  };
  // A piece of a long part.
  struct Piece {
    int64_t begin, end;
    uint64_t varying;
    int32_t part;
    int32_t moves;
  };
  struct Lists {
    Lists(const SharedSort& sort, char* memory)
        : longs(reinterpret_cast<Part*>(memory)),
          next(longs + sort.long_limit_),
          parts(next + sort.long_limit_),
          pieces(reinterpret_cast<Piece*>(parts + sort.part_limit_)),
          counts(reinterpret_cast<uint32_t*>(pieces + sort.piece_limit_)) {}
    void add(const Part& part) {
      if (part.begin < part.end) parts[part_count++] = part;
    }
    Part *longs, *next, *parts;
    Piece* pieces;
    uint32_t* counts;  // of digits, kBuckets for each piece
    int64_t long_count = 0, next_count = 0, part_count = 0, piece_count = 0;
  };

  // Calls body(i) for i in [0, count).
  template <class F>
  static void for_each(int64_t count, const F& body) {
    parallel_tasks(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i);
    });
  }

  template <class Pair>
  static uint64_t count_digits(const Pair* pairs, int64_t n, int shift, uint64_t key, uint32_t* counts) {
    uint64_t varying = 0;
    std::fill(counts, counts + kBuckets, 0);
    for (int64_t i = 0; i < n; ++i) {
      varying |= pairs[i].key() ^ key;
      ++counts[digit(pairs[i], shift)];
    }
    return varying;
  }

  void cut(Lists& lists) const {
    lists.piece_count = 0;
    for (int64_t i = 0; i < lists.long_count; ++i) {
      const Part& part = lists.longs[i];
      for (int64_t begin = part.begin; begin < part.end; begin += piece_)
        lists.pieces[lists.piece_count++] = {begin, std::min(begin + piece_, part.end), 0, static_cast<int32_t>(i), 0};
    }
  }

  // Makes parts of the long ones, and places of the counts.
  void divide(Lists& lists) const {
    lists.next_count = 0;
    for (int64_t first = 0, last; first < lists.piece_count; first = last) {
      const int32_t number = lists.pieces[first].part;
      const Part part = lists.longs[number];
      uint64_t varying = 0;
      uint32_t sizes[kBuckets] = {};
      for (last = first; last < lists.piece_count && lists.pieces[last].part == number; ++last) {
        varying |= lists.pieces[last].varying;
        for (int64_t i = 0; i < kBuckets; ++i) sizes[i] += lists.counts[last * kBuckets + i];
      }
      if (varying == 0) {
        add_sorted(lists, part);
      } else if (const auto bits = static_cast<int32_t>(std::bit_width(varying)); bits <= part.shift()) {
        lists.next[lists.next_count++] = {part.begin, part.end, bits, part.array};
      } else {
        for (int64_t i = first; i < last; ++i) lists.pieces[i].moves = 1;
        add_buckets(lists, part, sizes);
        auto place = static_cast<uint32_t>(part.begin);
        for (int64_t i = 0; i < kBuckets; ++i) place += std::exchange(sizes[i], place);
        for (int64_t j = first; j < last; ++j) {
          uint32_t* const counts = lists.counts + j * kBuckets;
          for (int64_t i = 0; i < kBuckets; ++i) sizes[i] += std::exchange(counts[i], sizes[i]);
        }
      }
    }
  }

  // What needs no more than to be passed on.
  void add_sorted(Lists& lists, const Part& part) const {
    for (int64_t begin = part.begin; begin < part.end; begin += piece_)
      lists.add({begin, std::min(begin + piece_, part.end), 0, part.array});
  }

  // What the buckets of a part become, which are now in the other array.
  void add_buckets(Lists& lists, const Part& part, const uint32_t* sizes) const {
    const int32_t array = 1 - part.array;
    if (part.shift() == 0) return add_sorted(lists, {part.begin, part.end, 0, array});
    Part joined{part.begin, part.begin, part.bits, array};
    for (int64_t i = 0; i < kBuckets; ++i) {
      const int64_t begin = joined.end, end = begin + sizes[i];
      if (end - joined.begin > kJoined) {
        lists.add(joined);
        joined.begin = begin;
      }
      joined.end = end;
      if (end - begin > most_) {
        lists.next[lists.next_count++] = {begin, end, part.shift(), array};
        joined.begin = end;
      }
    }
    lists.add(joined);
  }

  int64_t n_ = 0;
  int64_t piece_ = 1;  // pairs
  int64_t most_ = 1;   // pairs that one thread sorts
  int64_t long_limit_ = 0, piece_limit_ = 0, part_limit_ = 0;
};

}  // namespace compute::cpu
