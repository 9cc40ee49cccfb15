// SPDX-License-Identifier: Apache-2.0
#include <compute/compute.h>

#include <cstdio>

int main() {
  int32_t major = 0;
  int32_t minor = 0;
  int32_t patch = 0;
  compute_version(&major, &minor, &patch);
  std::printf("%d.%d.%d\n", major, minor, patch);
  return major == COMPUTE_VERSION_MAJOR ? 0 : 1;
}
