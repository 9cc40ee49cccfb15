// SPDX-License-Identifier: Apache-2.0
// A trace in the Trace Event Format, which Perfetto and chrome://tracing show.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/observation/output_file.hpp"
#include "core/observation/work.hpp"

namespace compute {

// Writes the JSON array form, which viewers accept even if it is truncated. Times are relative to `begin`. Threads of
// the program appear in process 1, and each device is a process whose threads are its streams.
class Trace {
 public:
  // Throws if the file cannot be written.
  Trace(const std::string& path, int64_t begin);

  void add(const Work& work);
  void add_wait(const Work& wait);
  void add_preparation(std::string_view name, const compute_device& device, int32_t thread, TimeSpan span);
  void add_memory(std::string_view device, int64_t used, int64_t change, int64_t now);
  // Ends the list and closes the file. Empty, or why it was not written completely.
  std::string close();
  // Closes the file as it is: in the child of a fork.
  void drop() noexcept { file_.drop(); }

 private:
  struct Event {
    std::string_view name, category;
    int64_t process = 1;
    int64_t thread = 0;
    TimeSpan span;
  };

  // `arguments` writes the members of an object.
  template <class F>
  void put(const Event& event, F&& arguments);
  void put_name(int64_t process, int64_t thread, const char* what, std::string_view name);
  void put_line(const std::string& line);
  int64_t process_of(const compute_device& device);
  void name_track(int64_t process, int64_t thread);

  const int64_t begin_;
  OutputFile file_;
  bool is_first_ = true;
  std::map<std::string, int64_t, std::less<>> processes_;  // by device
  std::set<std::pair<int64_t, int64_t>> named_;
};

}  // namespace compute
