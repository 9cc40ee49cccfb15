// SPDX-License-Identifier: Apache-2.0
// What a plugin's devices do not support: two lists, each entry with its reason.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace compute::conformance {

/// A file of lines `PATTERN REASON`, below the heads [unsupported] and [expected to fail]. A pattern is a test's name
/// with * for any text; # begins a comment. Entries without a reason are refused.
class Known {
 public:
  /// Reads `path`. Throws std::runtime_error that names the line.
  void read(const std::string& path);

  /// The reason why the test may be refused as unsupported, or is expected to fail.
  std::optional<std::string> unsupported(std::string_view test) const { return find(unsupported_, test); }
  std::optional<std::string> expected_to_fail(std::string_view test) const { return find(expected_to_fail_, test); }

 private:
  struct Entry {
    std::string pattern;
    std::string reason;
  };
  static std::optional<std::string> find(const std::vector<Entry>& entries, std::string_view test);

  std::vector<Entry> unsupported_;
  std::vector<Entry> expected_to_fail_;
};

/// Whether `text` matches `pattern`, in which * matches any text.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace compute::conformance
