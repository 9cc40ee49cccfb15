// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/driver/exit_handlers.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace compute::common {
namespace {

void say_before() { std::fprintf(stderr, "before "); }

void use_library_and_exit(bool is_covered) {
  void* library = dlopen(COMPUTE_TEST_OUTER_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
  const auto use = library != nullptr ? reinterpret_cast<void (*)()>(dlsym(library, "use_outer")) : nullptr;
  if (use == nullptr) std::_Exit(1);
  if (is_covered) {
    run_before_exit_handlers_of(reinterpret_cast<const void*>(use), say_before);
    run_before_exit_handlers_of(reinterpret_cast<const void*>(use), say_before);
  }
  use();
  std::exit(0);
}

// Each handler runs behind the function, those of the libraries that are needed too: one binds its symbols at once and
// makes the table read-only, the other when they are called.
TEST(ExitHandlersDeathTest, RunBehindTheFunction) {
  EXPECT_EXIT(use_library_and_exit(false), testing::ExitedWithCode(0), "^inner outer $");
  EXPECT_EXIT(use_library_and_exit(true), testing::ExitedWithCode(0), "^before inner before outer $");
}

}  // namespace
}  // namespace compute::common
