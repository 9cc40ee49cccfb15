// SPDX-License-Identifier: Apache-2.0
// A program that core runs, and whose output it reads.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/trusted_files/trusted_files.hpp"

namespace compute {

class ChildProcess {
 public:
  using Clock = std::chrono::steady_clock;

  // Runs `command` (an absolute path first) in its own process group, without the descriptors, blocked signals and
  // ignored signals of this program, with `variables` (`NAME=value`) before its environment. What it writes to
  // `descriptor` (1 or 3) is kept. False if it could not be started; then *problem says why.
  ChildProcess(const std::vector<std::string>& command, const std::vector<std::string>& variables, int descriptor,
               std::string* problem);
  ~ChildProcess() { end(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  explicit operator bool() const { return pid_ > 0; }

  // Waits until it has ended or `deadline` is past; false then.
  bool wait(Clock::time_point deadline);
  // Kills the child and its descendants if they still run. False if the child cannot be killed because it is stuck in a
  // driver.
  bool end();

  const std::string& output() const { return text_; }
  // The last line that it wrote to stderr.
  std::string last_words() const;
  // As of waitpid; nothing if the program ignores SIGCHLD or has already waited for the child.
  const std::optional<int>& status() const { return status_; }

 private:
  bool has_ended();
  bool read_some(int wait_ms);

  pid_t pid_ = 0;
  bool ended_ = false;
  bool killed_ = false;
  files::Descriptor output_, words_;
  std::string text_;
  std::optional<int> status_;
};

}  // namespace compute
