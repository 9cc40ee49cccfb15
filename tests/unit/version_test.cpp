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

TEST(Version, OfTheInterfaceIsRequired) {
  const auto code = [](int32_t major, int32_t minor) {
    compute_error* error = compute_require_interface(major, minor);
    const compute_error_code found = compute_error_get_code(error);
    compute_error_free(error);
    return found;
  };
  EXPECT_EQ(code(COMPUTE_INTERFACE_MAJOR, COMPUTE_INTERFACE_MINOR), COMPUTE_OK);
  EXPECT_EQ(code(COMPUTE_INTERFACE_MAJOR, 0), COMPUTE_OK);
  EXPECT_EQ(code(COMPUTE_INTERFACE_MAJOR, COMPUTE_INTERFACE_MINOR + 1), COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(code(COMPUTE_INTERFACE_MAJOR + 1, 0), COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(code(COMPUTE_INTERFACE_MAJOR, -1), COMPUTE_ERROR_UNSUPPORTED);
  EXPECT_EQ(code(0, 0), COMPUTE_ERROR_UNSUPPORTED);
}

TEST(Dtypes, AreFoundByName) {
  compute_dtype dtype = 99;
  EXPECT_EQ(compute_dtype_from_name("bfloat16", &dtype), nullptr);
  EXPECT_EQ(dtype, COMPUTE_DTYPE_BFLOAT16);
  for (const char* name : {"", "float", "Float32", static_cast<const char*>(nullptr)}) {
    dtype = 99;
    compute_error* error = compute_dtype_from_name(name, &dtype);
    EXPECT_EQ(compute_error_get_code(error),
              name != nullptr ? COMPUTE_ERROR_NOT_FOUND : COMPUTE_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(dtype, COMPUTE_DTYPE_NONE);
    compute_error_free(error);
  }
}
