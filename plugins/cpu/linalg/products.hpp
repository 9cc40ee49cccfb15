// SPDX-License-Identifier: Apache-2.0
// Products of parts of column-major matrices, each on the calling thread: the plugin's own for real numbers, and those
// of OpenBLAS for complex ones, which may be conjugated.
#pragma once

#include <algorithm>
#include <type_traits>

#include "plugins/cpu/contract/matmul.hpp"
#include "plugins/cpu/linalg/matrix.hpp"

namespace compute::cpu {

// A matrix of a product, or its adjoint.
template <class T>
struct Factor {
  const T* data;
  Int stride;
  bool is_adjoint = false;
};

template <class T>
class Products {
 public:
  explicit Products(const Lapack<T>& library) : l_(library) {}

  // c = a b or, with `adds`, c + factor a b, for a [m, k] and b [k, n].
  void multiply(Int m, Int n, Int k, T factor, Factor<T> a, Factor<T> b, bool adds, T* c, Int stride,
                char* scratch) const {
    if (m == 0 || n == 0) return;
    if constexpr (!kIsComplex<T>) {
      const MatmulPlan plan = plan_of(m, n, k, a, b, adds, stride);
      if (plan.workspace_bytes() <= scratch_bytes_) {
        MatmulRun run{a.data, b.data, c};
        if (adds) run.addend = c;
        run.alpha = &factor;
        run.workspace = scratch;
        return plan.run(run);
      }
    }
    const T rest = adds ? T(1) : T(0);
    const char* const adjoint = kIsComplex<T> ? "C" : "T";
    l_.gemm(a.is_adjoint ? adjoint : "N", b.is_adjoint ? adjoint : "N", &m, &n, &k, &factor, a.data, &a.stride, b.data,
            &b.stride, &rest, c, &stride, 1, 1);
  }

  // Products of this form will be computed; before `scratch_bytes` is asked.
  void expect(Int m, Int n, Int k, bool a_adjoint, bool b_adjoint, Int stride) {
    if (m == 0 || n == 0) return;
    if constexpr (!kIsComplex<T>) {
      const MatmulPlan plan =
          plan_of(m, n, k, {nullptr, stride, a_adjoint}, {nullptr, stride, b_adjoint}, true, stride);
      scratch_bytes_ =
          std::max(scratch_bytes_, (plan.workspace_bytes() + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment);
    }
  }
  // Of `scratch`, which is aligned to kArrayAlignment.
  int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  static MatmulPlan plan_of(Int m, Int n, Int k, const Factor<T>& a, const Factor<T>& b, bool adds, Int stride) {
    constexpr compute_dtype kDtype = std::is_same_v<T, float> ? COMPUTE_DTYPE_FLOAT32 : COMPUTE_DTYPE_FLOAT64;
    const auto view = [](const Factor<T>& x) {
      return x.is_adjoint ? MatmulView{nullptr, x.stride, 1} : MatmulView{nullptr, 1, x.stride};
    };
    const MatmulView c = {nullptr, 1, stride};
    return MatmulPlan({kDtype, m, n, k, 0, nullptr, view(a), view(b), c, adds ? &c : nullptr, nullptr}, {});
  }

  const Lapack<T>& l_;
  int64_t scratch_bytes_ = 0;
};

}  // namespace compute::cpu
