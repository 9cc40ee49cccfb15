// SPDX-License-Identifier: Apache-2.0
// Which faults are asked for; README.md has the grammar.
#pragma once

#include <compute/plugin.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace faulty {

struct Fault {
  std::string action;
  std::string argument;

  bool is(std::string_view name) const { return action == name; }
  int64_t number() const { return argument.empty() ? 0 : std::stoll(argument); }
};

// The fault that this call of `place` is to have, if any. Counts the call.
std::optional<Fault> next_fault(std::string_view place);

// Where errors are made and reported; known once the plugin is open.
inline const compute_plugin_core* core = nullptr;

// What core does not know and may not skip.
inline const compute_struct_header must_be_understood = {sizeof must_be_understood, COMPUTE_STRUCT_MUST_UNDERSTAND | 77,
                                                         nullptr};

// Does what a fault of any call does: throws, crashes, hangs, or makes an error. False: the call continues
// normally.
bool act(const Fault& fault, std::string_view place, compute_error** out_error);
// The same for the fault that this call of `place` is to have.
bool strike(std::string_view place, compute_error** out_error);

compute_error_code code_from_name(std::string_view name);
compute_error* make_error(std::string_view code, std::string_view place, const void* next = nullptr);

}  // namespace faulty
