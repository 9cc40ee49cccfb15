// SPDX-License-Identifier: Apache-2.0
//
// Any bytes are a manifest or are rejected in one line.
#include "core/loading/manifest.hpp"

#include <compute/compute.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const compute::Manifest manifest =
        compute::parse_manifest({reinterpret_cast<const char*>(data), size}, "/opt/acme.json");
    if (!compute::is_plugin_name(manifest.name) || !manifest.library.is_absolute()) std::abort();
  } catch (const compute::Error& error) {
    if (error.code != COMPUTE_ERROR_PLUGIN_REJECTED) std::abort();
    if (!error.message.starts_with("/opt/acme.json: ")) std::abort();
    if (error.message.find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
