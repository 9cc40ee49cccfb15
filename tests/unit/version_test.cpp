// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "compute/compute.h"

TEST(Version, IsThatOfTheHeader) {
  int32_t major = -1;
  int32_t minor = -1;
  int32_t patch = -1;
  compute_version(&major, &minor, &patch);
  EXPECT_EQ(major, COMPUTE_VERSION_MAJOR);
  EXPECT_EQ(minor, COMPUTE_VERSION_MINOR);
  EXPECT_EQ(patch, COMPUTE_VERSION_PATCH);
}
