// SPDX-License-Identifier: Apache-2.0
// Compilers inside the process, and process exit. A driver's compiler registers destructors of its static objects when
// it is first used. If these ran while it still compiles on another thread, the process would crash.
#pragma once

namespace compute::common {

// While it lives the calling thread lets the driver compile, loads its compiler, or waits for it. exit() waits for that
// before it destroys anything of the compiler. Throws SHUT_DOWN if the process is already exiting.
class Compiling {
 public:
  Compiling();
  Compiling(const Compiling&) = delete;
  Compiling& operator=(const Compiling&) = delete;
  ~Compiling();
};

// Registers fork handlers, before the first compilation. A fork that has already begun by then does not run them.
void prepare_for_forks();

// For a compiler's library that stays loaded: the library that contains `address`, and the libraries that it needs.
// Exit handlers that these register from now on do not run while a thread compiles, whatever else the process has
// registered.
void exit_waits_for_compilers_of(const void* address);

}  // namespace compute::common
