// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.hpp"

#include <gtest/gtest.h>

namespace {

compute_error* plugin_error() {
  auto* cause = new compute_error;
  cause->code = COMPUTE_ERROR_COMPILE_FAILED;
  cause->message = "line 3";
  auto* error = new compute_error;
  error->code = COMPUTE_ERROR_UNSUPPORTED;
  error->message = "no kernel";
  error->cause = cause;
  return error;
}

TEST(Error, KeepsItsCauseOnTheWayOut) {
  compute_error* error = compute::guard([] { compute::throw_if(plugin_error()); });
  const compute_error* cause = compute_error_cause(error);
  ASSERT_NE(cause, nullptr);
  EXPECT_EQ(compute_error_get_code(cause), COMPUTE_ERROR_COMPILE_FAILED);
  EXPECT_STREQ(compute_error_message(cause), "line 3");
  EXPECT_EQ(compute_error_cause(cause), nullptr);
  compute_error_free(error);
}

TEST(Error, OfAStreamKeepsItsCause) {
  compute_error* kept = plugin_error();
  compute_error* error = compute::guard([&] { throw compute::Error::adopt(compute::copy_error(kept)); });
  ASSERT_NE(compute_error_cause(error), nullptr);
  EXPECT_NE(compute_error_cause(error), compute_error_cause(kept));
  compute_error_free(error);
  compute_error_free(kept);
}

}  // namespace
