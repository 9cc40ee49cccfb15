// SPDX-License-Identifier: Apache-2.0
// Stable sorting of lines by keys, which sort and scatter share.
#pragma once

#include <functional>
#include <string>

#include "ops.hpp"

namespace vulkan {

// Lines of keys, which are unsigned integers of 4 or 8 bytes. Kernels get the statements of `locate`, with the variable
// `line`, and behind it those of the others.
struct Sorting {
  int64_t lines, length;
  int key_bytes;
  int first_bit, digits;                              // the digits of 8 bits that differ between keys
  std::string value_type;                             // of `value`
  std::function<void(KernelBuilder&)> add_arguments;  // and signs what the statements depend on
  std::function<void(KernelBuilder&)> locate;         // writes to KernelBuilder::out, as the others do
  std::function<void(KernelBuilder&)> load;           // sets `key` to the one at position `j`
  std::function<void(KernelBuilder&)> fetch;          // sets `value` to what is at position `from`
  std::function<void(KernelBuilder&)> store;          // stores `value`, or `from`, at position `j`
};

// Adds launches that sort every line.
void sort_lines(const Request& request, const Sorting& sorting);

}  // namespace vulkan
