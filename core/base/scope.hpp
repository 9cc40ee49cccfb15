// SPDX-License-Identifier: Apache-2.0
// The scopes of the calling thread: where in the user's program it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace compute {

struct Scope {
  std::string label, file;
  int32_t line = 0;
};

// "train (main.py:12) > forward"; "" outside of any scope.
std::string current_scope();
// The same for who keeps it: NULL outside of any scope.
std::shared_ptr<const std::string> shared_scope();

// Of this thread. False if none is open.
void push_scope(Scope scope);
bool pop_scope();

}  // namespace compute
