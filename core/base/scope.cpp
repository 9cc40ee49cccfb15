// SPDX-License-Identifier: Apache-2.0
#include "core/base/scope.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/base/per_thread.hpp"

namespace compute {
namespace {

struct OpenScopes {
  std::vector<Scope> list;
  std::shared_ptr<const std::string> text;  // made when it is asked for
};
using Scopes = PerThread<OpenScopes>;

}  // namespace

std::shared_ptr<const std::string> shared_scope() {
  if (Scopes::find() == nullptr) return nullptr;
  OpenScopes& open = Scopes::get();
  if (open.text != nullptr || open.list.empty()) return open.text;
  std::string text;
  for (const Scope& scope : open.list) {
    if (!text.empty()) text += " > ";
    text += scope.file.empty() ? scope.label : fmt::format("{} ({}:{})", scope.label, scope.file, scope.line);
  }
  open.text = std::make_shared<const std::string>(std::move(text));
  return open.text;
}

std::string current_scope() {
  const auto text = shared_scope();
  return text != nullptr ? *text : std::string();
}

void push_scope(Scope scope) {
  OpenScopes& open = Scopes::get();
  open.list.push_back(std::move(scope));
  open.text.reset();
}

bool pop_scope() {
  OpenScopes& open = Scopes::get();
  if (open.list.empty()) return false;
  open.list.pop_back();
  open.text.reset();
  return true;
}

}  // namespace compute
