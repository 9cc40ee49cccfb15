// SPDX-License-Identifier: Apache-2.0
// The ops and dtypes that a plugin offers (compute.ext.ops.v1).
#pragma once

#include "core/loading/plugin.hpp"

namespace compute {

// Adds them to those of the library, without those that it cannot take. Throws PLUGIN_REJECTED for an invalid struct.
void add_vendor_ops(const Plugin& plugin);

}  // namespace compute
