// SPDX-License-Identifier: Apache-2.0
// What the example programs share: options of the command line, a progress bar, and times.
#pragma once

#include <compute/compute.hpp>

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>

namespace program {

/// The options `--name value` and `--name=value` of a program. `known` holds each name with its default; an option with
/// an empty one must be given.
class Options {
 public:
  Options(int argc, char** argv, std::map<std::string, std::string> known) : values_(std::move(known)) {
    compute::config_arguments(argc, argv);  // takes --compute-device= and the other --compute- options
    for (int i = 1; i < argc; ++i) {
      std::string name = argv[i], value;
      if (name == "--help" || name == "-h") {
        show_usage(stdout, argv[0]);
        std::exit(0);
      }
      const size_t equals = name.find('=');
      if (equals != std::string::npos) {
        value = name.substr(equals + 1);
        name.resize(equals);
      } else if (i + 1 < argc) {
        value = argv[++i];
      }
      if (name.rfind("--", 0) != 0 || values_.count(name.substr(2)) == 0 || value.empty())
        refuse(argv[0], name + " is not known or lacks its value");
      values_[name.substr(2)] = value;
    }
    for (const auto& [name, value] : values_)
      if (value.empty()) refuse(argv[0], "--" + name + " is missing");
  }
  [[nodiscard]] const std::string& text(const std::string& name) const { return values_.at(name); }
  [[nodiscard]] int64_t integer(const std::string& name, int64_t least = 0) const {
    const auto result = number<int64_t>(name);
    if (result < least)
      throw std::invalid_argument("--" + name + "=" + text(name) + " is below " + std::to_string(least));
    return result;
  }
  [[nodiscard]] double real(const std::string& name) const { return number<double>(name); }

 private:
  template <class T>
  [[nodiscard]] T number(const std::string& name) const {
    const std::string& text = values_.at(name);
    T result{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
    if (error == std::errc() && end == text.data() + text.size()) return result;
    throw std::invalid_argument("--" + name + "=" + text + " is not a number that this option takes");
  }
  void show_usage(std::FILE* file, const char* program) const {
    std::fprintf(file, "usage: %s [--compute-device=DEVICE]", program);
    for (const auto& [known, value] : values_) std::fprintf(file, " [--%s=%s]", known.c_str(), value.c_str());
    std::fprintf(file, "\n");
  }
  [[noreturn]] void refuse(const char* program, const std::string& problem) const {
    std::fprintf(stderr, "%s: the option %s\n", program, problem.c_str());
    show_usage(stderr, program);
    std::exit(2);
  }
  std::map<std::string, std::string> values_;
};

[[nodiscard]] inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A bar that fills while a loop runs: on a terminal only, so that files hold results alone.
class Progress {
 public:
  Progress(std::string title, int64_t count) : title_(std::move(title)), count_(count) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }
  void show(int64_t done, const std::string& text = "") {
    static const bool is_terminal = isatty(STDERR_FILENO) == 1;
    const double now = seconds();
    if (!is_terminal || (now - last_ < 0.1 && done < count_)) return;
    last_ = now;
    shown_ = true;
    constexpr int64_t kWidth = 40;
    const auto filled = static_cast<size_t>(count_ > 0 ? kWidth * done / count_ : kWidth);
    const std::string bar = std::string(filled, '#') + std::string(static_cast<size_t>(kWidth) - filled, '.');
    std::fprintf(stderr, "\r\033[K%s [%s] %lld/%lld %s", title_.c_str(), bar.c_str(), static_cast<long long>(done),
                 static_cast<long long>(count_), text.c_str());
  }

 private:
  std::string title_;
  int64_t count_;
  double last_ = 0;
  bool shown_ = false;
};

/// Runs `body` and prints an error of the library in one line.
inline int guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace program
