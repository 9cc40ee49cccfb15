// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/machine.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace compute::bench {
namespace {

#if defined(__x86_64__)

__attribute__((target("avx2"))) unsigned long long read_avx2(const uint8_t* at, size_t size) noexcept {
  __m256i sums[8] = {};
  size_t i = 0;
  for (; i + 256 <= size; i += 256) {
    for (size_t k = 0; k < 8; ++k) {
      sums[k] = _mm256_xor_si256(sums[k], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + i + 32 * k)));
    }
  }
  for (size_t k = 1; k < 8; ++k) sums[0] = _mm256_xor_si256(sums[0], sums[k]);
  alignas(32) unsigned long long words[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(words), sums[0]);
  unsigned long long sum = words[0] ^ words[1] ^ words[2] ^ words[3];
  for (; i < size; ++i) sum += at[i];
  return sum;
}

// As many chains as there are registers for, so that each multiplication finds its unit free. The barrier keeps the
// compiler from folding them; the loop over them is unrolled so that they stay in registers.
#define COMPUTE_MULTIPLY_ADD(name, isa, chain_count, Vector, set, fma) \
  __attribute__((target(isa))) void name(int64_t rounds) noexcept {    \
    Vector chains[chain_count];                                        \
    const Vector half = set(0.5);                                      \
    _Pragma("GCC unroll 16") for (auto& chain : chains) chain = half;  \
    for (int64_t i = 0; i < rounds; ++i) {                             \
      _Pragma("GCC unroll 16") for (auto& chain : chains) {            \
        chain = fma(chain, half, half);                                \
        __asm__ volatile("" : "+v"(chain));                            \
      }                                                                \
    }                                                                  \
  }
COMPUTE_MULTIPLY_ADD(float_avx512, "avx512f", 16, __m512, _mm512_set1_ps, _mm512_fmadd_ps)
COMPUTE_MULTIPLY_ADD(double_avx512, "avx512f", 16, __m512d, _mm512_set1_pd, _mm512_fmadd_pd)
COMPUTE_MULTIPLY_ADD(float_avx2, "avx2,fma", 12, __m256, _mm256_set1_ps, _mm256_fmadd_ps)
COMPUTE_MULTIPLY_ADD(double_avx2, "avx2,fma", 12, __m256d, _mm256_set1_pd, _mm256_fmadd_pd)
#undef COMPUTE_MULTIPLY_ADD

#endif

unsigned long long read_plainly(const uint8_t* at, size_t size) noexcept {
  unsigned long long sum = 0;
  for (; size >= 8; at += 8, size -= 8) {
    unsigned long long word = 0;
    std::memcpy(&word, at, 8);
    sum ^= word;
  }
  for (; size > 0; ++at, --size) sum += *at;
  return sum;
}

}  // namespace

unsigned long long read_all(const void* data, size_t size) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return read_avx2(static_cast<const uint8_t*>(data), size);
#endif
  return read_plainly(static_cast<const uint8_t*>(data), size);
}

double multiply_add(double flops, bool is_double) noexcept {
#if defined(__x86_64__)
  const bool wide = __builtin_cpu_supports("avx512f");
  if (!wide && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))) return 0;
  const int lanes = (wide ? 64 : 32) / (is_double ? 8 : 4);
  const double a_round = 2.0 * lanes * (wide ? 16 : 12);
  const auto rounds = static_cast<int64_t>(flops / a_round) + 1;
  if (wide) {
    (is_double ? double_avx512 : float_avx512)(rounds);
  } else {
    (is_double ? double_avx2 : float_avx2)(rounds);
  }
  return a_round * static_cast<double>(rounds);
#else
  static_cast<void>(flops);
  static_cast<void>(is_double);
  return 0;
#endif
}

}  // namespace compute::bench
