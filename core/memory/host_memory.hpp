// SPDX-License-Identifier: Apache-2.0
// Memory of the host for a pool.
#pragma once

#include <memory>

#include "core/memory/pool.hpp"

namespace compute {

// Anonymous pages; huge pages for large sizes.
std::unique_ptr<RawMemory> make_host_memory();

}  // namespace compute
