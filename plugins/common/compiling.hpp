// SPDX-License-Identifier: Apache-2.0
// Compilers inside the process, and its end. A driver's compiler registers destructors of its static objects when it is
// first used; were they to run while it still compiles on another thread, the process would crash.
#pragma once

namespace compute::common {

// While it lives the calling thread has the driver compile, load its compiler, or wait for it. exit() waits for that
// before it destroys anything of the compiler's. Throws SHUT_DOWN when the process is ending already.
class Compiling {
 public:
  Compiling();
  Compiling(const Compiling&) = delete;
  Compiling& operator=(const Compiling&) = delete;
  ~Compiling();
};

// Registers what forks need, before the first compilation: a fork that has begun by then does not know of it.
void prepare_for_forks();

// Of a compiler's library that stays loaded: the one that holds `address`, with those that it needs. No handler that
// these register from now on runs while a thread compiles, whatever else the process has registered.
void exit_waits_for_compilers_of(const void* address);

}  // namespace compute::common
