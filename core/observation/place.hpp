// SPDX-License-Identifier: Apache-2.0
// Places in the user's program: the scope that a binding pushed, else the return address of the call of this library.
#pragma once

#include <compare>
#include <memory>
#include <string>

namespace compute {

struct ProgramPlace {
  std::shared_ptr<const std::string> scope;  // NULL: outside of any scope
  const void* address = nullptr;             // without a scope: where the call returns to; NULL: unknown

  bool operator==(const ProgramPlace& other) const noexcept {
    if (scope == nullptr || other.scope == nullptr) return scope == other.scope && address == other.address;
    return *scope == *other.scope;
  }
};

// Of the calling thread. Without a scope it walks the stack, which takes microseconds.
ProgramPlace current_place() noexcept;

// "train (main.py:12) > forward", "affine_loop.c:41", "main+0x1f (affine_loop)"; "" if nothing is known. Reads debug
// information with libdw or libbacktrace, which are opened at the first call.
std::string place_text(const ProgramPlace& place);

}  // namespace compute
