// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the CPU's matrix product: operands of every layout, and the oracle that judges a result.
#pragma once

#include <gtest/gtest.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "plugins/cpu/contract/matmul.hpp"

namespace compute::cpu::matmul_test {

using Number = std::complex<long double>;

constexpr compute_dtype kDtypes[] = {
    COMPUTE_DTYPE_BOOL,    COMPUTE_DTYPE_INT8,      COMPUTE_DTYPE_INT16,      COMPUTE_DTYPE_INT32,
    COMPUTE_DTYPE_INT64,   COMPUTE_DTYPE_UINT8,     COMPUTE_DTYPE_UINT16,     COMPUTE_DTYPE_UINT32,
    COMPUTE_DTYPE_UINT64,  COMPUTE_DTYPE_FLOAT16,   COMPUTE_DTYPE_BFLOAT16,   COMPUTE_DTYPE_FLOAT32,
    COMPUTE_DTYPE_FLOAT64, COMPUTE_DTYPE_COMPLEX64, COMPUTE_DTYPE_COMPLEX128,
};

inline const char* name_of(compute_dtype dtype) {
  static constexpr const char* kNames[] = {"none",    "bool",    "int8",      "int16",     "int32",   "int64",
                                           "uint8",   "uint16",  "uint32",    "uint64",    "float16", "bfloat16",
                                           "float32", "float64", "complex64", "complex128"};
  return kNames[dtype];
}

inline int64_t size_of(compute_dtype dtype) {
  static constexpr int64_t kSizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return kSizes[dtype];
}

inline bool is_integer(compute_dtype dtype) { return dtype <= COMPUTE_DTYPE_UINT64; }
inline bool is_half(compute_dtype dtype) { return dtype == COMPUTE_DTYPE_FLOAT16 || dtype == COMPUTE_DTYPE_BFLOAT16; }

/// Unit roundoff and least positive number of the format of a dtype's results.
struct Precision {
  int bits;
  long double least;
  long double unit() const { return std::ldexp(1.0L, -bits); }
};

inline Precision precision_of(compute_dtype dtype) {
  switch (dtype) {
    case COMPUTE_DTYPE_FLOAT16:
      return {11, std::ldexp(1.0L, -24)};
    case COMPUTE_DTYPE_BFLOAT16:
      return {8, std::ldexp(1.0L, -133)};
    case COMPUTE_DTYPE_FLOAT64:
    case COMPUTE_DTYPE_COMPLEX128:
      return {53, std::ldexp(1.0L, -1074)};
    default:
      return {24, std::ldexp(1.0L, -149)};
  }
}

inline compute_dtype accumulator_of(compute_dtype dtype) { return is_half(dtype) ? COMPUTE_DTYPE_FLOAT32 : dtype; }

template <class T>
T read_as(const std::byte* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

inline long double decode_half(uint16_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const long double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<long double>::quiet_NaN()
                         : sign * std::numeric_limits<long double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<long double>(mantissa), 1 - bias - mantissa_bits);
  return sign * std::ldexp(static_cast<long double>(mantissa + (1 << mantissa_bits)), exponent - bias - mantissa_bits);
}

inline Number read_number(compute_dtype dtype, const std::byte* p) {
  switch (dtype) {
    case COMPUTE_DTYPE_FLOAT16:
      return decode_half(read_as<uint16_t>(p), 5);
    case COMPUTE_DTYPE_BFLOAT16:
      return decode_half(read_as<uint16_t>(p), 8);
    case COMPUTE_DTYPE_FLOAT32:
      return read_as<float>(p);
    case COMPUTE_DTYPE_FLOAT64:
      return read_as<double>(p);
    case COMPUTE_DTYPE_COMPLEX64:
      return Number(read_as<std::complex<float>>(p));
    default:
      return Number(read_as<std::complex<double>>(p));
  }
}

inline uint64_t read_integer(compute_dtype dtype, const std::byte* p) {
  uint64_t x = 0;
  std::memcpy(&x, p, static_cast<size_t>(size_of(dtype)));
  return x;
}

using Bytes = std::array<std::byte, 16>;

template <class T>
inline Bytes bytes_of(T x) {
  Bytes bytes{};
  std::memcpy(bytes.data(), &x, sizeof x);
  return bytes;
}

/// A value that is exact in every float dtype.
inline Bytes encode(compute_dtype dtype, double re, double im = 0) {
  const uint32_t single = read_as<uint32_t>(bytes_of(static_cast<float>(re)).data());
  switch (dtype) {
    case COMPUTE_DTYPE_FLOAT16: {
      for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto value = static_cast<double>(decode_half(static_cast<uint16_t>(bits), 5));
        if (value == re || (std::isnan(value) && std::isnan(re))) return bytes_of(static_cast<uint16_t>(bits));
      }
      throw std::logic_error("not a float16");
    }
    case COMPUTE_DTYPE_BFLOAT16:
      return bytes_of(static_cast<uint16_t>(single >> 16));
    case COMPUTE_DTYPE_FLOAT32:
      return bytes_of(static_cast<float>(re));
    case COMPUTE_DTYPE_FLOAT64:
      return bytes_of(re);
    case COMPUTE_DTYPE_COMPLEX64:
      return bytes_of(std::complex<float>(static_cast<float>(re), static_cast<float>(im)));
    case COMPUTE_DTYPE_COMPLEX128:
      return bytes_of(std::complex<double>(re, im));
    default:
      return bytes_of(static_cast<int64_t>(re));  // little-endian: the low bytes
  }
}

struct Shape {
  int64_t m, n, k;
};

// ---- Operands -----------------------------------------------------------------------------------------------------

enum class Layout { row_major, transposed, padded, reversed, strided, repeated_row, repeated_column };

constexpr Layout kInputLayouts[] = {Layout::row_major, Layout::transposed,   Layout::padded,         Layout::reversed,
                                    Layout::strided,   Layout::repeated_row, Layout::repeated_column};
constexpr Layout kOutputLayouts[] = {Layout::row_major, Layout::transposed, Layout::padded, Layout::reversed,
                                     Layout::strided};

/// A batch of matrices in a separate buffer with guard space around it.
struct Operand {
  compute_dtype dtype;
  int64_t rows, columns;
  std::vector<int64_t> batch_shape, batch_strides;
  int64_t row_stride, column_stride;
  int64_t first;  // element with all indices 0
  std::vector<std::byte> bytes;

  Operand(compute_dtype type, std::vector<int64_t> batch, int64_t m, int64_t n, Layout layout,
          bool repeats_batch = false)
      : dtype(type), rows(m), columns(n), batch_shape(std::move(batch)) {
    constexpr int64_t kRoom = 5;
    int64_t span = 0;
    switch (layout) {
      case Layout::transposed:
        row_stride = 1, column_stride = m, span = m * n;
        break;
      case Layout::padded:
        row_stride = n + 3, column_stride = 1, span = m * (n + 3);
        break;
      case Layout::reversed:
        row_stride = -n, column_stride = -1, span = m * n;
        break;
      case Layout::strided:
        row_stride = 2 * n + 1, column_stride = 2, span = m * (2 * n + 1) + 1;
        break;
      case Layout::repeated_row:
        row_stride = 0, column_stride = 1, span = n;
        break;
      case Layout::repeated_column:
        row_stride = 1, column_stride = 0, span = m;
        break;
      default:
        row_stride = n, column_stride = 1, span = m * n;
        break;
    }
    int64_t entries = 1;
    batch_strides.resize(batch_shape.size());
    for (size_t axis = batch_shape.size(); axis-- > 0;) {
      batch_strides[axis] = repeats_batch ? 0 : span * entries;
      if (!repeats_batch) entries *= batch_shape[axis];
    }
    first = kRoom + (layout == Layout::reversed && m > 0 && n > 0 ? m * n - 1 : 0);
    bytes.resize(static_cast<size_t>((entries * span + 2 * kRoom) * size_of(dtype)));
  }

  MatmulView view() const { return {batch_strides.data(), row_stride, column_stride}; }
  std::byte* data() { return bytes.data() + first * size_of(dtype); }
  const std::byte* at(const std::vector<int64_t>& batch, int64_t i, int64_t j) const {
    int64_t index = first + i * row_stride + j * column_stride;
    for (size_t axis = 0; axis < batch.size(); ++axis) index += batch[axis] * batch_strides[axis];
    return bytes.data() + index * size_of(dtype);
  }
  void set(const std::vector<int64_t>& batch, int64_t i, int64_t j, const Bytes& value) {
    std::memcpy(const_cast<std::byte*>(at(batch, i, j)), value.data(), static_cast<size_t>(size_of(dtype)));
  }

  /// Every byte of the buffer: integers of their whole range; floats in [-1, 1], a few of them far smaller.
  void fill(std::mt19937_64& random) {
    std::uniform_real_distribution<double> real(-1, 1);
    const auto draw = [&] { return random() % 16 == 0 ? real(random) * 0x1p-20 : real(random); };
    for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(size_of(dtype))) {
      Bytes value{};
      if (dtype == COMPUTE_DTYPE_BOOL) {
        value = bytes_of(static_cast<uint8_t>(random() % 8 == 0));
      } else if (is_integer(dtype)) {
        value = bytes_of(random() % 4 == 0 ? ~uint64_t{0} << (random() % 64) : random());
      } else if (dtype == COMPUTE_DTYPE_FLOAT16) {
        uint16_t bits;
        do {
          bits = static_cast<uint16_t>(random());
        } while ((bits & 0x7fff) > 0x3c00);  // |x| <= 1
        value = bytes_of(bits);
      } else {
        value = encode(dtype, draw(), draw());
      }
      std::memcpy(bytes.data() + at, value.data(), static_cast<size_t>(size_of(dtype)));
    }
  }
};

// ---- Running and judging ------------------------------------------------------------------------------------------

inline void parallel_by_tbb(int64_t count, int64_t, void (*body)(void*, int64_t, int64_t), void* user) {
  tbb::parallel_for(int64_t{0}, count, [&](int64_t i) { body(user, i, i + 1); });
}

struct Setting {
  std::string name;
  MatmulOptions options;
};

inline MatmulOptions options_of(InstructionSet isa = widest_instruction_set(), int32_t threads = 1) {
  MatmulOptions options;
  options.isa = isa;
  options.threads = threads;
  return options;
}

/// Every instruction set of this machine.
inline std::vector<Setting> all_settings() {
  std::vector<Setting> all;
  static constexpr const char* kNames[] = {"baseline", "avx2", "avx512", "amx"};
  for (int isa = 0; isa <= static_cast<int>(widest_instruction_set()); ++isa)
    all.push_back({kNames[isa], options_of(static_cast<InstructionSet>(isa))});
  return all;
}

/// The workspace of a plan, filled with NaN.
class Workspace {
 public:
  explicit Workspace(const MatmulPlan& plan)
      : bytes_(static_cast<size_t>(plan.workspace_bytes()) + kAlignment, std::byte{0xff}) {}

  void* data() {
    void* aligned = bytes_.data();
    size_t room = bytes_.size();
    return std::align(kAlignment, room - kAlignment, aligned, room);
  }

 private:
  static constexpr size_t kAlignment = 64;
  std::vector<std::byte> bytes_;
};

struct Product {
  Operand a, b, c;
  Operand* addend = nullptr;
  Operand* bias = nullptr;
  const Bytes* alpha = nullptr;
  const Bytes* beta = nullptr;

  MatmulProblem problem(MatmulView (&views)[2]) const {
    if (addend != nullptr) views[0] = addend->view();
    if (bias != nullptr) views[1] = bias->view();
    return {c.dtype,
            c.rows,
            c.columns,
            a.columns,
            static_cast<int32_t>(c.batch_shape.size()),
            c.batch_shape.data(),
            a.view(),
            b.view(),
            c.view(),
            addend != nullptr ? &views[0] : nullptr,
            bias != nullptr ? &views[1] : nullptr};
  }

  void run(const MatmulOptions& options) {
    MatmulView views[2];
    const MatmulPlan plan(problem(views), options);
    Workspace workspace(plan);
    MatmulRun run{a.data(), b.data(), c.data()};
    if (addend != nullptr) run.addend = addend->data();
    if (bias != nullptr) run.bias = bias->data();
    run.alpha = alpha;
    run.beta = beta;
    run.workspace = workspace.data();
    if (options.threads > 1) run.parallel_for = parallel_by_tbb;
    plan.run(run);
  }
};

template <class F>
inline void for_each_batch(const std::vector<int64_t>& shape, const F& f) {
  std::vector<int64_t> index(shape.size(), 0);
  const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  for (int64_t flat = 0; flat < count; ++flat) {
    int64_t rest = flat;
    for (size_t axis = shape.size(); axis-- > 0;) {
      index[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    f(index);
  }
}

inline uint64_t low_bits(compute_dtype dtype, uint64_t x) {
  return size_of(dtype) == 8 ? x : x & ((uint64_t{1} << (8 * size_of(dtype))) - 1);
}

/// The elements of one matrix of a batch as numbers, row after row or column after column, each with its modulus.
struct Lines {
  int64_t length;
  std::vector<long double> re, im, modulus;
  std::vector<uint64_t> integers;

  Lines(const Operand& operand, const std::vector<int64_t>& batch, bool by_columns)
      : length(by_columns ? operand.rows : operand.columns) {
    const auto count = static_cast<size_t>(operand.rows * operand.columns);
    const int64_t lines = by_columns ? operand.columns : operand.rows;
    const bool whole = is_integer(operand.dtype);
    (whole ? integers.reserve(count) : re.reserve(count));
    for (int64_t line = 0; line < lines; ++line) {
      for (int64_t at = 0; at < length; ++at) {
        const std::byte* const element = by_columns ? operand.at(batch, at, line) : operand.at(batch, line, at);
        if (whole) {
          integers.push_back(read_integer(operand.dtype, element));
          continue;
        }
        const Number number = read_number(operand.dtype, element);
        re.push_back(number.real());
        if (operand.dtype < COMPUTE_DTYPE_COMPLEX64) continue;
        im.push_back(number.imag());
        modulus.push_back(std::abs(number));
      }
    }
  }
};

/// The sum of the products of two lines, and of their moduli.
struct SumOfProducts {
  Number sum = 0;
  long double magnitude = 0;

  SumOfProducts(const Lines& a, int64_t row, const Lines& b, int64_t column) {
    const int64_t x = row * a.length, y = column * b.length;
    const long double *a_re = a.re.data() + x, *b_re = b.re.data() + y;
    long double re = 0, im = 0;
    if (a.im.empty()) {
      for (int64_t l = 0; l < a.length; ++l) {
        const long double term = a_re[l] * b_re[l];
        re += term;
        magnitude += std::fabs(term);
      }
    } else {
      const long double *a_im = a.im.data() + x, *b_im = b.im.data() + y;
      const long double *a_modulus = a.modulus.data() + x, *b_modulus = b.modulus.data() + y;
      for (int64_t l = 0; l < a.length; ++l) {
        re += a_re[l] * b_re[l] - a_im[l] * b_im[l];
        im += a_re[l] * b_im[l] + a_im[l] * b_re[l];
        magnitude += a_modulus[l] * b_modulus[l];
      }
    }
    sum = {re, im};
  }
};

/// Judges every element of `product.c`, whose bytes were `before`; the elements between them must be as they were.
inline void judge(const Product& product, const Operand& addend_before, const std::vector<std::byte>& before) {
  const Operand& c = product.c;
  const compute_dtype dtype = c.dtype;
  const int64_t k = product.a.columns;
  const compute_dtype accumulator = accumulator_of(dtype);
  const auto factor = [&](const Bytes* bytes) {
    return bytes == nullptr ? Number(1) : read_number(accumulator, bytes->data());
  };
  const Number alpha = factor(product.alpha);
  const auto integer_factor = [&](const Bytes* bytes) {
    return bytes == nullptr ? uint64_t{1} : read_integer(dtype, bytes->data());
  };
  std::vector<std::byte> untouched = c.bytes;
  for_each_batch(c.batch_shape, [&](const std::vector<int64_t>& batch) {
    const Lines a(product.a, batch, false), b(product.b, batch, true);
    for (int64_t i = 0; i < c.rows; ++i) {
      for (int64_t j = 0; j < c.columns; ++j) {
        const std::byte* const got = c.at(batch, i, j);
        const auto at = static_cast<size_t>(got - c.bytes.data());
        std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(at), size_of(dtype),
                    untouched.begin() + static_cast<std::ptrdiff_t>(at));
        if (is_integer(dtype)) {
          uint64_t sum = 0;
          const bool boolean = dtype == COMPUTE_DTYPE_BOOL;
          const uint64_t *x = a.integers.data() + i * k, *y = b.integers.data() + j * k;
          for (int64_t l = 0; l < k; ++l) sum = boolean ? sum | (x[l] & y[l]) : sum + x[l] * y[l];
          sum *= integer_factor(product.alpha);
          uint64_t terms = 0;
          if (product.addend != nullptr)
            terms += integer_factor(product.beta) * read_integer(dtype, addend_before.at(batch, i, j));
          if (product.bias != nullptr) terms += read_integer(dtype, product.bias->at(batch, i, j));
          const uint64_t expected = boolean ? (sum | terms) != 0 : low_bits(dtype, sum + terms);
          ASSERT_EQ(read_integer(dtype, got), expected) << "at " << i << ", " << j;
          continue;
        }
        Number expected = 0;
        long double magnitude = 0;
        if (alpha != Number(0)) {
          const SumOfProducts products(a, i, b, j);
          expected = alpha * products.sum;
          magnitude = products.magnitude * std::abs(alpha);
        }
        if (product.addend != nullptr && factor(product.beta) != Number(0)) {
          const Number term = factor(product.beta) * read_number(dtype, addend_before.at(batch, i, j));
          expected += term;
          magnitude += std::abs(term);
        }
        if (product.bias != nullptr) {
          const Number term = read_number(dtype, product.bias->at(batch, i, j));
          expected += term;
          magnitude += std::abs(term);
        }
        const long double terms = static_cast<long double>(k + 4) * (dtype >= COMPUTE_DTYPE_COMPLEX64 ? 2 : 1);
        const Precision result = precision_of(dtype);
        const long double bound = terms * precision_of(accumulator).unit() * magnitude +
                                  result.unit() * std::abs(expected) + result.least * (k + 4);
        const long double error = std::abs(read_number(dtype, got) - expected);
        ASSERT_TRUE(error <= bound) << "at " << i << ", " << j << ": " << read_number(dtype, got) << " instead of "
                                    << expected << ", error " << error << ", bound " << bound;
      }
    }
  });
  ASSERT_TRUE(std::equal(untouched.begin(), untouched.end(), before.begin())) << "wrote between its elements";
}

inline void run_and_judge(Product& product, const MatmulOptions& options) {
  const std::vector<std::byte> before = product.c.bytes;
  const Operand addend_before = product.addend != nullptr ? *product.addend : product.a;
  product.run(options);
  judge(product, addend_before, before);
}

/// Judges that the product has the same bits with one thread and with each of `threads`.
inline void judge_threads(const Product& product, MatmulOptions options, std::initializer_list<int32_t> threads) {
  Product one = product;
  one.run(options);
  for (const int32_t count : threads) {
    Product many = product;
    options.threads = count;
    many.run(options);
    ASSERT_TRUE(one.c.bytes == many.c.bytes) << count << " threads";
  }
}

}  // namespace compute::cpu::matmul_test
