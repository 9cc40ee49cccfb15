// SPDX-License-Identifier: Apache-2.0
// Divides the tests among processes (--jobs), which report to the one that started them.
#pragma once

#include <cstdio>
#include <string>

#include "options.hpp"
#include "report.hpp"

namespace compute::conformance {

/// What a shard writes, a line at a time, so that nothing is lost when it crashes.
class ShardLog {
 public:
  /// Nothing is written if `path` is empty.
  explicit ShardLog(const std::string& path);
  ~ShardLog();
  ShardLog(const ShardLog&) = delete;
  ShardLog& operator=(const ShardLog&) = delete;

  void tests(int count);
  void begin(const std::string& test);
  void end(Ending ending);
  void device(const Target& target);
  /// The last line: without it the shard has crashed.
  void done();

 private:
  void line(const std::string& text);
  std::FILE* file_ = nullptr;
};

/// Runs this program again in `options.jobs` processes, each with a share of the tests, and prints one summary. The
/// exit status covers all processes: 1 also if a process crashed, 2 if one could not test at all.
int run_in_shards(const Options& options, int argc, char** argv);

/// The last lines of a run.
void print_totals(const Totals& totals);

}  // namespace compute::conformance
