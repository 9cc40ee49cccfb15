// SPDX-License-Identifier: Apache-2.0
// A library with an object that is made at its first use, and destroyed when the process ends.
#include <cstdio>

namespace {

struct Writer {
  const char* name;
  ~Writer() { std::fprintf(stderr, "%s ", name); }
};

}  // namespace

#if defined(COMPUTE_TEST_INNER)
extern "C" __attribute__((visibility("default"))) void use_inner() { static const Writer writer{"inner"}; }
#else
extern "C" void use_inner();
extern "C" __attribute__((visibility("default"))) void use_outer() {
  static const Writer writer{"outer"};
  use_inner();
}
#endif
