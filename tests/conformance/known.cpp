// SPDX-License-Identifier: Apache-2.0
#include "known.hpp"

#include <fstream>
#include <stdexcept>

namespace compute::conformance {

bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() != '*')
    return !text.empty() && text.front() == pattern.front() && matches(pattern.substr(1), text.substr(1));
  for (size_t skip = 0; skip <= text.size(); ++skip) {
    if (matches(pattern.substr(1), text.substr(skip))) return true;
  }
  return false;
}

void Known::read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Entry>* list = nullptr;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const auto fail = [&](const std::string& why) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + why);
    };
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    line = line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
    if (line == "[unsupported]") {
      list = &unsupported_;
    } else if (line == "[expected to fail]") {
      list = &expected_to_fail_;
    } else if (line.front() == '[') {
      fail("no such list: " + line);
    } else {
      const size_t end = line.find_first_of(" \t");
      if (!list) fail("an entry before [unsupported] or [expected to fail]");
      if (end == std::string::npos) fail("an entry without a reason: " + line);
      list->push_back({line.substr(0, end), line.substr(line.find_first_not_of(" \t", end))});
    }
  }
}

std::optional<std::string> Known::find(const std::vector<Entry>& entries, std::string_view test) {
  for (const Entry& entry : entries) {
    if (matches(entry.pattern, test)) return entry.reason;
  }
  return std::nullopt;
}

}  // namespace compute::conformance
