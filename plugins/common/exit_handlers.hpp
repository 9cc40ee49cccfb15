// SPDX-License-Identifier: Apache-2.0
// Handlers that libraries of others register for the end of the process.
#pragma once

namespace compute::common {

// The library that holds `address`, and the libraries that it needs, register handlers with __cxa_atexit. From now on
// each of these runs `before` and then what was registered. What they have registered by then is not changed. The
// library must never be unloaded. Does nothing where the libraries' format is not known.
void run_before_exit_handlers_of(const void* address, void (*before)());

}  // namespace compute::common
