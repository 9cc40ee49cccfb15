/* SPDX-License-Identifier: Apache-2.0 */
#include <compute/compute.h>
#include <stdio.h>

int main(void) {
  int32_t major, minor, patch;
  compute_version(&major, &minor, &patch);
  printf("%d.%d.%d\n", (int)major, (int)minor, (int)patch);
  return major == COMPUTE_VERSION_MAJOR ? 0 : 1;
}
