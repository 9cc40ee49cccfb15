// SPDX-License-Identifier: Apache-2.0
// For tests of COMPUTE_PROMOTION=strict, which a process reads once. ctest runs each test in a process of its own.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/expressions/dtype.hpp"

#define COMPUTE_REQUIRE_STRICT_PROMOTION()  \
  setenv("COMPUTE_PROMOTION", "strict", 1); \
  if (compute::kinds_mix()) GTEST_SKIP() << "the process has read the setting before"
