// SPDX-License-Identifier: Apache-2.0
// The outcomes of each device's tests, and the support matrix made from them.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "known.hpp"
#include "registry.hpp"

namespace compute::conformance {

enum class Ending { PASS, FAIL, UNSUPPORTED, XFAIL };
const char* ending_name(Ending ending);

/// A device under test, with its plugin and the outcome of each test.
struct Target {
  std::unique_ptr<Session> session;
  std::string description;
  Known known;
  std::map<std::string, Ending> endings;
  std::map<std::string, std::string> reasons;
};

/// How many tests ended in which way.
struct Totals {
  int64_t count[4] = {};
  int64_t of(Ending ending) const { return count[static_cast<int>(ending)]; }
  int64_t run_at_all() const { return of(Ending::PASS) + of(Ending::FAIL) + of(Ending::XFAIL); }
};

/// The support matrix: per device, op and dtype how the device says that it runs it (native, decomposed, host or none,
/// with the reason) and how its test ended.
nlohmann::ordered_json support_matrix(const std::vector<Target>& targets, const std::vector<Test>& tests);

/// Writes it as JSON and as a table of text, to the files that are named; to standard output for "-".
void write_matrix(const nlohmann::ordered_json& matrix, const std::string& json_path, const std::string& text_path);

}  // namespace compute::conformance
