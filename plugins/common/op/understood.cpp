// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/op/understood.hpp"

#include <cstring>
#include <string>

namespace compute::common {

void require_known_entries(const void* next, const char* what) {
  constexpr int kLongest = 64;
  for (int i = 0; next != nullptr; ++i) {
    compute_struct_header entry;
    std::memcpy(&entry, next, sizeof entry);
    if ((entry.struct_type & COMPUTE_STRUCT_MUST_UNDERSTAND) != 0) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED, std::string(what) + " has a `next` entry of type " +
                                                 std::to_string(entry.struct_type) +
                                                 ", which is not supported and must not be ignored");
    }
    if (i == kLongest)
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT,
                  std::string(what) + " has a `next` chain of more than " + std::to_string(kLongest) + " entries");
    next = entry.next;
  }
}

}  // namespace compute::common
