// SPDX-License-Identifier: Apache-2.0
//
// Any text is a selector or is refused in the stated form, with a caret within the line.
#include "core/devices/selector.hpp"

#include <compute/compute.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"

namespace {

void check_refusal(const compute::Error& error) {
  const std::string& message = error.message;
  if (error.code != COMPUTE_ERROR_INVALID_ARGUMENT) std::abort();
  std::vector<std::string> lines(1);
  for (const char c : message) {
    if (c == '\n') {
      lines.emplace_back();
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      std::abort();
    } else {
      lines.back() += c;
    }
  }
  if (lines.size() == 1 && message.find("the limit is") != std::string::npos) return;
  if (lines.size() != 3 || lines[2].back() != '^') std::abort();
  if (lines[2].size() > lines[1].size() + 1) std::abort();  // at most just past the end
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> known = {"acme", "cuda", "opencl"};
  try {
    static_cast<void>(compute::parse_selector(text, "COMPUTE_DEVICE", known).is_strict());
  } catch (const compute::Error& error) {
    check_refusal(error);
  }
  try {
    static_cast<void>(compute::parse_named_selectors(text, "COMPUTE_DEVICES", known));
  } catch (const compute::Error& error) {
    check_refusal(error);
  }
  return 0;
}
