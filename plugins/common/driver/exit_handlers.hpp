// SPDX-License-Identifier: Apache-2.0
// Exit handlers that other libraries register.
#pragma once

namespace compute::common {

// The library that contains `address`, and the libraries that it needs, register handlers with __cxa_atexit. From now
// on each new handler first calls `before` and then the registered function. Earlier handlers are not changed. The
// library must never be unloaded. Does nothing if the format of the libraries is not known.
void run_before_exit_handlers_of(const void* address, void (*before)());

}  // namespace compute::common
