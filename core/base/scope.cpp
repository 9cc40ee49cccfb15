// SPDX-License-Identifier: Apache-2.0
#include "core/base/scope.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/base/per_thread.hpp"

namespace compute {
namespace {

using Scopes = PerThread<std::vector<Scope>>;

}  // namespace

std::string current_scope() {
  std::string text;
  if (Scopes::find() == nullptr) return text;
  for (const Scope& scope : Scopes::get()) {
    if (!text.empty()) text += " > ";
    text += scope.file.empty() ? scope.label : fmt::format("{} ({}:{})", scope.label, scope.file, scope.line);
  }
  return text;
}

void push_scope(Scope scope) { Scopes::get().push_back(std::move(scope)); }

bool pop_scope() {
  std::vector<Scope>& scopes = Scopes::get();
  if (scopes.empty()) return false;
  scopes.pop_back();
  return true;
}

}  // namespace compute
