// SPDX-License-Identifier: Apache-2.0
// Elements as keys, whose order as unsigned numbers is the wanted one, with their positions.
#pragma once

#include <cstdint>
#include <cstring>

#include "plugins/common/op/op.hpp"

namespace compute::cpu {

// A key and the position of its element. Keys of up to 32 bits share a word with the position.
struct Narrow {
  uint64_t word;
  static Narrow of(uint64_t key, uint32_t position) { return {key << 32 | position}; }
  uint64_t key() const { return word >> 32; }
  uint32_t position() const { return static_cast<uint32_t>(word); }
  bool operator<(const Narrow& other) const { return word < other.word; }
};
struct Wide {
  uint64_t value;
  uint64_t at;
  static Wide of(uint64_t key, uint32_t position) { return {key, position}; }
  uint64_t key() const { return value; }
  uint32_t position() const { return static_cast<uint32_t>(at); }
  bool operator<(const Wide& other) const { return value != other.value ? value < other.value : at < other.at; }
};
// A key without a position.
struct Short {
  uint32_t value;
  static Short of(uint64_t key, uint32_t) { return {static_cast<uint32_t>(key)}; }
  uint64_t key() const { return value; }
  bool operator<(const Short& other) const { return value < other.value; }
};
struct Bare {
  uint64_t value;
  static Bare of(uint64_t key, uint32_t) { return {key}; }
  uint64_t key() const { return value; }
  bool operator<(const Bare& other) const { return value < other.value; }
};

// ---- Keys -----------------------------------------------------------------------------------------------------------

// Of floats as bits: a NaN is last in both directions, and the zeros are equal.
template <class Bits, int ExponentBits>
uint64_t float_key(Bits bits, bool descending) {
  constexpr int kWidth = sizeof(Bits) * 8, kFraction = kWidth - 1 - ExponentBits;
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (kWidth - 1));
  constexpr Bits kInfinity = static_cast<Bits>(((Bits{1} << ExponentBits) - 1) << kFraction);
  const Bits magnitude = static_cast<Bits>(bits & static_cast<Bits>(~kSign));
  if (magnitude > kInfinity) return static_cast<Bits>(~Bits{0});
  if (magnitude == 0) bits = 0;
  const Bits key = static_cast<Bits>((bits & kSign) != 0 ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | kSign));
  return descending ? static_cast<Bits>(~key) : key;
}

template <class Bits>
uint64_t float_key(compute_dtype dtype, Bits bits, bool descending) {
  if constexpr (sizeof(Bits) == 8) return float_key<uint64_t, 11>(bits, descending);
  if constexpr (sizeof(Bits) == 2) {
    if (dtype == COMPUTE_DTYPE_FLOAT16) return float_key<uint16_t, 5>(bits, descending);
  }
  return float_key < Bits, sizeof(Bits) == 1 ? 4 : 8 > (bits, descending);
}

// The bits of a float with this key, unless it is the key of several: of the zeros, or of NaN.
template <class Bits>
struct FloatOfKey {
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  explicit FloatOfKey(bool descending)
      : flip(descending ? static_cast<Bits>(~Bits{0}) : Bits{0}), zero(static_cast<Bits>(kSign ^ flip)) {}
  bool is_known(Bits key) const { return key != zero && key != static_cast<Bits>(~Bits{0}); }
  Bits operator()(Bits key) const {
    key ^= flip;
    return static_cast<Bits>((key & kSign) != 0 ? static_cast<Bits>(key ^ kSign) : static_cast<Bits>(~key));
  }
  const Bits flip, zero;
};

template <class Bits>
uint64_t integer_key(Bits bits, bool is_signed, bool descending) {
  Bits key = is_signed ? static_cast<Bits>(bits ^ static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1))) : bits;
  if (descending) key = static_cast<Bits>(~key);
  return key;
}

// Keys of n elements, `stride` bytes apart, with positions from `first` on, `step` apart.
template <class Bits, class Pair, class Key>
void make_pairs(const char* src, int64_t stride, int64_t first, int64_t step, int64_t n, Pair* pairs, const Key& key) {
  for (int64_t i = 0; i < n; ++i) {
    Bits bits;
    std::memcpy(&bits, src + i * stride, sizeof bits);
    pairs[i] = Pair::of(key(bits), static_cast<uint32_t>(first + i * step));
  }
}

template <class Pair>
void load_pairs(compute_dtype dtype, bool descending, const char* src, int64_t stride, int64_t first, int64_t n,
                Pair* pairs, int64_t step = 1) {
  const auto integers = [&]<class Bits>(Bits, bool is_signed) {
    make_pairs<Bits>(src, stride, first, step, n, pairs,
                     [=](Bits bits) { return integer_key(bits, is_signed, descending); });
  };
  const bool is_signed = dtype == COMPUTE_DTYPE_INT8 || dtype == COMPUTE_DTYPE_INT16 || dtype == COMPUTE_DTYPE_INT32 ||
                         dtype == COMPUTE_DTYPE_INT64;
  switch (dtype) {
    case COMPUTE_DTYPE_BOOL:  // every byte but 0 is true
      return make_pairs<uint8_t>(src, stride, first, step, n, pairs, [=](uint8_t b) {
        return integer_key<uint8_t>(static_cast<uint8_t>(b != 0), false, descending);
      });
    case COMPUTE_DTYPE_FLOAT16:
      return make_pairs<uint16_t>(src, stride, first, step, n, pairs,
                                  [=](uint16_t b) { return float_key<uint16_t, 5>(b, descending); });
    case COMPUTE_DTYPE_BFLOAT16:
      return make_pairs<uint16_t>(src, stride, first, step, n, pairs,
                                  [=](uint16_t b) { return float_key<uint16_t, 8>(b, descending); });
    case COMPUTE_DTYPE_FLOAT32:
      return make_pairs<uint32_t>(src, stride, first, step, n, pairs,
                                  [=](uint32_t b) { return float_key<uint32_t, 8>(b, descending); });
    case COMPUTE_DTYPE_FLOAT64:
      return make_pairs<uint64_t>(src, stride, first, step, n, pairs,
                                  [=](uint64_t b) { return float_key<uint64_t, 11>(b, descending); });
    default:
      break;
  }
  switch (common::dtype_size(dtype)) {
    case 1:
      return integers(uint8_t{}, is_signed);
    case 2:
      return integers(uint16_t{}, is_signed);
    case 4:
      return integers(uint32_t{}, is_signed);
    default:
      return integers(uint64_t{}, is_signed);
  }
}

}  // namespace compute::cpu
