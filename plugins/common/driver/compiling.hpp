// SPDX-License-Identifier: Apache-2.0
// Compilers inside the process, and process exit. A driver's compiler registers destructors of its static objects when
// it is first used, and exit() runs them before the handler that core registered earlier.
#pragma once

namespace compute::common {

// During its lifetime, the calling thread loads a driver's compiler or lets it compile. Throws SHUT_DOWN once exit()
// has begun to destroy compilers.
class Compiling {
 public:
  Compiling();
  Compiling(const Compiling&) = delete;
  Compiling& operator=(const Compiling&) = delete;
  ~Compiling();
};

}  // namespace compute::common
