// SPDX-License-Identifier: Apache-2.0
// Vectors of what sums of products need of each number.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "dtype.hpp"

namespace compute::oracle {

/// Integers modulo 2^64; or real parts, and of complex numbers also imaginary parts and moduli.
struct Numbers {
  std::vector<uint64_t> integers;
  std::vector<Real> re, im, moduli;
  bool all_finite = true;

  Numbers(const std::vector<Value>& values, Dtype dtype) {
    for (const Value& x : values) {
      if (!is_inexact(dtype)) {
        integers.push_back(static_cast<uint64_t>(x.integer));
        continue;
      }
      re.push_back(x.re);
      all_finite = all_finite && std::isfinite(x.re) && std::isfinite(x.im);
      if (!is_complex(dtype)) continue;
      im.push_back(x.im);
      moduli.push_back(std::hypot(x.re, x.im));
    }
  }
  bool is_finite(size_t i) const { return std::isfinite(re[i]) && (im.empty() || std::isfinite(im[i])); }
};

}  // namespace compute::oracle
