// SPDX-License-Identifier: Apache-2.0
// What compute-bench does without Python in between: the limits of the machine on several threads, each with memory
// that it touched first, and stretches of calls. Limits are of the best of several rounds.
#include <time.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

// Reads every byte of [data, data + size); the result depends on all of them.
unsigned long long read_all(const void* data, size_t size) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return read_avx2(static_cast<const uint8_t*>(data), size);
#endif
  return read_plainly(static_cast<const uint8_t*>(data), size);
}

// Performs about `flops` operations by fused multiply-adds in the widest vectors; returns how many exactly, 0 if no
// such code is here.
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

constexpr int kRounds = 7;

// Amount per second, where `work` does a thread's part and returns its amount.
double rate(int threads, const std::function<double(int thread, bool first)>& work) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  std::vector<double> amounts(static_cast<size_t>(threads));
  Clock::time_point start;
  std::barrier together(threads, [&]() noexcept { start = Clock::now(); });
  int round = -1;
  std::barrier done(threads, [&]() noexcept {
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    double amount = 0;
    for (const double one : amounts) amount += one;
    if (round++ >= 0) best = std::max(best, amount / seconds);
  });
  const auto run = [&](int thread) {
    for (int i = 0; i <= kRounds; ++i) {
      if (i == 0) work(thread, true);
      together.arrive_and_wait();
      amounts[static_cast<size_t>(thread)] = work(thread, false);
      done.arrive_and_wait();
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(run, i);
  run(0);
  for (std::thread& one : others) one.join();
  return best;
}

struct Memory {
  std::unique_ptr<uint8_t[]> src, dst;
};

template <class Call>
double seconds_of(clockid_t clock, int64_t count, const Call& call) {
  timespec start{}, end{};
  clock_gettime(clock, &start);
  for (int64_t i = 0; i < count; ++i) call();
  clock_gettime(clock, &end);
  return static_cast<double>(end.tv_sec - start.tv_sec) + 1e-9 * static_cast<double>(end.tv_nsec - start.tv_nsec);
}

// What is timed through a pointer, with arguments that are all pointers or integers. A function that takes fewer
// ignores the others.
using Word = uintptr_t;
using Function = Word (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);
using CblasSgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                            int);
using CblasDgemm = void (*)(int, int, int, int, int, int, double, const double*, int, const double*, int, double,
                            double*, int);
using DnnlSgemm = int (*)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t,
                          float, float*, int64_t);

struct Product {
  int64_t batch, m, n, k;
};

template <class T, class Call>
double seconds_of_products(clockid_t clock, int64_t count, const Product& p, const T* a, const T* b, T* c, Call gemm) {
  return seconds_of(clock, count, [&] {
    for (int64_t i = 0; i < p.batch; ++i) gemm(a + i * p.m * p.k, b + i * p.k * p.n, c + i * p.m * p.n);
  });
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED double compute_bench_copy(int threads, int64_t bytes) {
  std::vector<Memory> memory(static_cast<size_t>(threads));
  const auto size = static_cast<size_t>(bytes / threads / 2);
  return rate(threads, [&](int thread, bool first) {
    Memory& own = memory[static_cast<size_t>(thread)];
    if (first) own = {std::make_unique<uint8_t[]>(size), std::make_unique<uint8_t[]>(size)};
    std::memcpy(own.dst.get(), own.src.get(), size);
    return 2.0 * static_cast<double>(size);
  });
}

EXPORTED double compute_bench_read(int threads, int64_t bytes) {
  std::vector<Memory> memory(static_cast<size_t>(threads));
  const auto size = static_cast<size_t>(bytes / threads);
  return rate(threads, [&](int thread, bool first) {
    Memory& own = memory[static_cast<size_t>(thread)];
    if (first) own.src = std::make_unique<uint8_t[]>(size);
    const unsigned long long sum = read_all(own.src.get(), size);
    __asm__ volatile("" : : "r"(sum));
    return static_cast<double>(size);
  });
}

EXPORTED double compute_bench_multiply_add(int threads, int is_double) {
  return rate(threads, [&](int, bool) { return multiply_add(1e8, is_double != 0); });
}

EXPORTED uint64_t compute_bench_read_all(const void* data, size_t size) { return read_all(data, size); }

// Returns how many operations it performed.
EXPORTED int64_t compute_bench_operate(int64_t flops, int is_double) {
  return static_cast<int64_t>(multiply_add(static_cast<double>(flops), is_double != 0));
}

// Seconds that `count` calls of `function` take. After each, *fresh is given to `release`. *out_last is the last
// result.
EXPORTED double compute_bench_calls(Function function, const Word* a, int64_t count, int clock, void** fresh,
                                    void (*release)(void*), Word* out_last) {
  return seconds_of(clock, count, [&] {
    *out_last = function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
    if (fresh != nullptr && *fresh != nullptr) {
      release(*fresh);
      *fresh = nullptr;
    }
  });
}

// The same of row-major products by a library: 's' and 'd' are cblas_sgemm and cblas_dgemm, 'o' is dnnl_sgemm.
EXPORTED double compute_bench_products(void* gemm, int kind, const Product* product, void* a, void* b, void* c,
                                       int64_t count, int clock) {
  constexpr int kRowMajor = 101, kPlain = 111;
  const int64_t m = product->m, n = product->n, k = product->k;
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), depth = static_cast<int>(k);
  const auto floats = [&](auto call) {
    return seconds_of_products(clock, count, *product, static_cast<float*>(a), static_cast<float*>(b),
                               static_cast<float*>(c), call);
  };
  if (kind == 'o') {
    return floats([&, call = reinterpret_cast<DnnlSgemm>(gemm)](const float* x, const float* y, float* z) {
      call('N', 'N', m, n, k, 1, x, k, y, n, 0, z, n);
    });
  }
  if (kind == 's') {
    return floats([&, call = reinterpret_cast<CblasSgemm>(gemm)](const float* x, const float* y, float* z) {
      call(kRowMajor, kPlain, kPlain, rows, columns, depth, 1, x, depth, y, columns, 0, z, columns);
    });
  }
  return seconds_of_products(
      clock, count, *product, static_cast<double*>(a), static_cast<double*>(b), static_cast<double*>(c),
      [&, call = reinterpret_cast<CblasDgemm>(gemm)](const double* x, const double* y, double* z) {
        call(kRowMajor, kPlain, kPlain, rows, columns, depth, 1, x, depth, y, columns, 0, z, columns);
      });
}
