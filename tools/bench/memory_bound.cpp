// SPDX-License-Identifier: Apache-2.0
// Work that memory bounds: elementwise ops and transposed copies beside memcpy of as many bytes, sums beside reading
// them.
#include <cstring>
#include <memory>

#include "tools/bench/machine.hpp"
#include "tools/bench/rows.hpp"

namespace compute::bench {
namespace {

// A copy that moves `bytes`, half of them read and half written.
void add_memcpy(const std::string& row, double bytes) {
  const auto size = static_cast<size_t>(bytes / 2);
  add_row(row + "@memcpy", {bytes, 0}, [size] {
    const auto count = static_cast<int64_t>(size);
    return [src = Mapped(cpu().full<uint8_t>({count}, 1)), dst = Mapped(cpu().full<uint8_t>({count}, 2))] {
      std::memcpy(dst.data(), src.data(), src.size_bytes());
      benchmark::ClobberMemory();
    };
  });
}

template <class T>
void add_elementwise(int64_t n) {
  const auto name = [n](const char* op) { return std::string(op) + "/" + dtype_text<T>() + "/" + std::to_string(n); };
  const auto count = static_cast<double>(n);
  const double size = sizeof(T);
  const auto add_op = [&](const char* op, double bytes, auto make) {
    add_row(name(op), {bytes, 0}, make);
    add_memcpy(name(op), bytes);
  };
  add_op("exp", 2 * count * size, [n] {
    return [x = values<T>({n}), y = values<T>({n})] { check(compute_exp_into(nullptr, x.get(), y.get())); };
  });
  add_op("tanh", 2 * count * size, [n] {
    return [x = values<T>({n}), y = values<T>({n})] { check(compute_tanh_into(nullptr, x.get(), y.get())); };
  });
  add_op("add", 3 * count * size, [n] {
    return [x = values<T>({n}), y = values<T>({n}), z = values<T>({n})] {
      check(compute_add_into(nullptr, x.get(), y.get(), z.get()));
    };
  });
  add_op("where", count * (3 * size + 1), [n] {
    return [x = less(values<T>({n}), Tensor(T{0})), y = values<T>({n}), z = values<T>({n}), out = values<T>({n})] {
      check(compute_where_into(nullptr, x.get(), y.get(), z.get(), out.get()));
    };
  });
  // Between the two floating-point dtypes.
  using Other = std::conditional_t<std::is_same_v<T, float>, double, float>;
  add_op("cast", count * (sizeof(T) + sizeof(Other)),
         [n] { return [x = values<T>({n}), y = values<Other>({n})] { cast_into(x, y, dtype_of<Other>); }; });
}

// The values that a row and its peer share: other memory may be slower or faster to read.
template <class T>
Tensor shared_values(int64_t rows, int64_t columns) {
  static Tensor kept;
  if (!kept.defined() || kept.shape()[0] != rows || kept.shape()[1] != columns) kept = values<T>({rows, columns});
  return kept;
}

template <class T>
void add_sums(int64_t rows, int64_t columns) {
  const std::string shape =
      std::string("/") + dtype_text<T>() + "/" + std::to_string(rows) + "x" + std::to_string(columns);
  const double bytes = static_cast<double>(rows * columns) * sizeof(T);
  const auto add_sum = [&](const char* name, std::vector<int64_t> axes) {
    const std::string row = name + shape;
    add_row(row, {bytes, 0}, [rows, columns, axes] {
      return [x = shared_values<T>(rows, columns), axes] {
        compute_sum_options options{};
        options.struct_size = sizeof options;
        options.axes = axes.data();
        options.axes_count = static_cast<int64_t>(axes.size());
        compute_tensor* y = nullptr;
        check(compute_sum(nullptr, x.get(), &options, &y));
        compute_tensor_release(y);
      };
    });
    add_row(row + "@read", {bytes, 0}, [rows, columns] {
      return [x = Mapped(shared_values<T>(rows, columns))] {
        benchmark::DoNotOptimize(read_all(x.data(), x.size_bytes()));
      };
    });
  };
  add_sum("sum_all", {0, 1});
  add_sum("sum_over_columns", {1});
  add_sum("sum_over_rows", {0});
}

template <class T>
void add_transposed(int64_t rows, int64_t columns) {
  const std::string row =
      std::string("transposed_copy/") + dtype_text<T>() + "/" + std::to_string(rows) + "x" + std::to_string(columns);
  const double bytes = 2 * static_cast<double>(rows * columns) * sizeof(T);
  add_row(row, {bytes, 0}, [rows, columns] {
    return [x = values<T>({rows, columns}).transpose(), y = values<T>({columns, rows})] {
      check(compute_copy_into(nullptr, x.get(), nullptr, y.get()));
    };
  });
  add_memcpy(row, bytes);
}

template <class T>
void add_all(const Options& options) {
  for (int64_t n = 1000; n <= (options.large ? 100'000'000 : 10'000'000); n *= 10) add_elementwise<T>(n);
  for (const int64_t n : {100, 1000, 4000}) {
    add_sums<T>(n, n);
    add_transposed<T>(n, n);
  }
  add_sums<T>(100'000, 64);
  add_sums<T>(64, 100'000);
}

}  // namespace

void add_memory_bound_rows(const Options& options) {
  add_all<float>(options);
  add_all<double>(options);
}

}  // namespace compute::bench
