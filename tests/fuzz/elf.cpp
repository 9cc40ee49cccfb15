// SPDX-License-Identifier: Apache-2.0
//
// Any bytes are a library or have a problem; none is read outside of them. The same for the cache of ld.so.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "core/loading/elf_needed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const compute::ElfImage image = compute::read_elf(bytes);
  if (image.problem.empty() && size < 64) std::abort();
  if (compute::exported_names(bytes).size() > size) std::abort();
  if (compute::find_in_cache(bytes, "libc.so.6").size() > size) std::abort();
  return 0;
}
