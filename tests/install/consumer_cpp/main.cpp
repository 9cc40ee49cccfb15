// SPDX-License-Identifier: Apache-2.0
// exp on the cpu device, through an installed library: found, linked, its plugin loaded.
#include <compute/compute.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  try {
    const std::vector<double> values{0, 1, 2};
    const compute::Device device = compute::Device::open("cpu");
    const std::vector<double> results = compute::exp(device.from_host(values)).to_vector<double>();
    for (size_t i = 0; i < values.size(); ++i) {
      std::printf("%.15f\n", results[i]);
      if (!(std::abs(results[i] - std::exp(values[i])) < 1e-14)) return 1;
    }
  } catch (const compute::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
