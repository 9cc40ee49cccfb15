// SPDX-License-Identifier: Apache-2.0
// Products of matrices, beside the libraries called directly and as many fused multiply-adds on one core.
#include "tools/bench/blas.hpp"
#include "tools/bench/machine.hpp"
#include "tools/bench/rows.hpp"

namespace compute::bench {
namespace {

struct Extents {
  int64_t batch, m, n, k;

  std::string text() const {
    const std::string product = std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n);
    return batch == 1 ? product : std::to_string(batch) + "x" + product;
  }
  double flops() const { return 2.0 * static_cast<double>(batch * m * n) * static_cast<double>(k); }
  // Leaves a batch of one out.
  Tensor operand(const Tensor& stack) const { return batch == 1 ? stack.squeeze(0) : stack; }
};

// The plugin opens its libraries at the first product; the peers find them as it set them up.
void open_libraries() {
  static const Tensor product = matmul(values<float>({64, 64}), values<float>({64, 64}));
  static const Tensor other = matmul(values<double>({64, 64}), values<double>({64, 64}));
}

template <class T, class Engine>
void add_engine(const std::string& row, Extents extents, Engine (*find)()) {
  open_libraries();
  const Engine engine = find();
  if (engine == nullptr) return;
  add_row(row, {0, extents.flops()}, [extents, engine] {
    const auto [batch, m, n, k] = extents;
    return [extents, engine, a = Mapped(values<T>({batch, m, k})), b = Mapped(values<T>({batch, k, n})),
            c = Mapped(values<T>({batch, m, n}))] {
      const auto [batch, m, n, k] = extents;
      for (int64_t i = 0; i < batch; ++i) {
        engine(m, n, k, a.template data<T>() + i * m * k, b.template data<T>() + i * k * n,
               c.template data<T>() + i * m * n);
      }
    };
  });
}

template <class T>
void add_product(Extents extents) {
  const std::string row = std::string("matmul/") + dtype_text<T>() + "/" + extents.text();
  add_row(row, {0, extents.flops()}, [extents] {
    const auto [batch, m, n, k] = extents;
    return [a = extents.operand(values<T>({batch, m, k})), b = extents.operand(values<T>({batch, k, n})),
            c = extents.operand(values<T>({batch, m, n}))] {
      check(compute_matmul_into(nullptr, a.get(), b.get(), nullptr, c.get()));
    };
  });
  if constexpr (std::is_same_v<T, float>) {
    add_engine<T>(row + "@onednn", extents, onednn_sgemm);
    add_engine<T>(row + "@openblas", extents, openblas_sgemm);
  } else {
    add_engine<T>(row + "@openblas", extents, openblas_dgemm);
  }
  // A rate is what is wanted of the peak, so that a fraction of the work will do.
  const double done = multiply_add(std::min(extents.flops(), 1e8), sizeof(T) == 8);
  if (done > 0) {
    add_row(row + "@peak", {0, done}, [done] { return [done] { multiply_add(done - 1, sizeof(T) == 8); }; });
  }
}

template <class T>
void add_all(const Options& options) {
  for (int64_t n = 64; n <= (options.large ? 4096 : 2048); n *= 2) add_product<T>({1, n, n, n});
  for (int64_t n = 1024; n <= (options.large ? 4096 : 1024); n *= 2) add_product<T>({1, 1, n, n});
  add_product<T>({1, 8, 8, 8});
  add_product<T>({1, 64, 64, 100'000});
  add_product<T>({1024, 32, 32, 32});
}

}  // namespace

void add_matmul_rows(const Options& options) {
  add_all<float>(options);
  add_all<double>(options);
}

}  // namespace compute::bench
