// SPDX-License-Identifier: Apache-2.0
#include "robustness.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace robustness {

// ---- Processes ------------------------------------------------------------------------------------------------------

bool Outcome::exited(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
bool Outcome::was_killed_by(int signal) const { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }

Outcome run_in_child(const std::function<void()>& body) {
  constexpr std::chrono::seconds kHangs(300);
  int ends[2];
  if (pipe(ends) != 0) return {};
  std::fflush(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    body();
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  }
  close(ends[1]);
  Outcome outcome;
  bool is_late = false;
  for (char buffer[4096];;) {
    const auto spent = std::chrono::steady_clock::now() - start;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(kHangs - spent).count();
    pollfd waiting = {ends[0], POLLIN, 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) == 0) {
      is_late = true;
      kill(child, SIGKILL);
      break;
    }
    const ssize_t size = ::read(ends[0], buffer, sizeof buffer);
    if (size <= 0) break;
    outcome.output.append(buffer, static_cast<size_t>(size));
  }
  close(ends[0]);
  waitpid(child, &outcome.status, 0);
  if (is_late) outcome.output += "\n(killed after " + std::to_string(kHangs.count()) + " s)";
  return outcome;
}

std::string plugin_folder(std::string_view name) {
  return std::string(COMPUTE_TEST_PLUGIN_DIR) + "/" + std::string(name);
}

void use_plugins(std::initializer_list<const char*> names) {
  std::string path;
  for (const char* name : names) path += (path.empty() ? "" : ":") + plugin_folder(name);
  setenv("COMPUTE_PLUGIN_PATH", path.c_str(), 1);
  setenv("COMPUTE_PROBE", "0", 0);  // a fault is to strike here
}

void put_between(const std::string& plugin, std::atomic<int>* armed) {
  const std::string file = "compute_plugin_" + plugin + ".so";
  char cell[32];
  std::snprintf(cell, sizeof cell, "%llx", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(armed)));
  setenv("COMPUTE_BETWEEN_CELL", cell, 1);
  setenv("COMPUTE_BETWEEN",
         ((plugin == "minimal" ? plugin_folder(plugin) : std::string(COMPUTE_PLUGIN_FOLDER)) + "/" + file).c_str(), 1);
  std::string files = plugin_folder("between") + "/" + file;
  if (plugin != "minimal") files += ":" + plugin_folder("minimal") + "/compute_plugin_minimal.so";
#if defined(COMPUTE_HAS_CPU_PLUGIN)
  if (plugin != "cpu") files += std::string(":") + COMPUTE_PLUGIN_FOLDER + "/compute_plugin_cpu.so";
#endif
  setenv("COMPUTE_PLUGIN_FILES", files.c_str(), 1);
}

void set_faults(const std::string& rules) { setenv("COMPUTE_FAULTY", rules.c_str(), 1); }

// ---- Errors ---------------------------------------------------------------------------------------------------------

testing::AssertionResult fails_with(compute_error* error, compute_error_code code,
                                    std::initializer_list<std::string_view> parts) {
  const Error owner(error);
  if (error == nullptr)
    return testing::AssertionFailure() << "it succeeded; expected " << compute_error_code_name(code);
  const std::string message = compute_error_message(error);
  const compute_error_code actual = compute_error_get_code(error);
  if (actual != code) {
    return testing::AssertionFailure() << compute_error_code_name(actual) << " in place of "
                                       << compute_error_code_name(code) << ": " << message;
  }
  if (message.empty() || message[0] == '\n') return testing::AssertionFailure() << "there is no message";
  for (const std::string_view part : parts) {
    if (message.find(part) == std::string::npos) {
      return testing::AssertionFailure() << "\"" << part << "\" is not in the message: " << message;
    }
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult succeeds(compute_error* error) {
  const Error owner(error);
  if (error == nullptr) return testing::AssertionSuccess();
  return testing::AssertionFailure() << compute_error_code_name(compute_error_get_code(error)) << ": "
                                     << compute_error_message(error);
}

compute_error_code code_of(compute_error* error) {
  const Error owner(error);
  return error == nullptr ? static_cast<compute_error_code>(COMPUTE_OK) : compute_error_get_code(error);
}

std::string message_of(compute_error* error) {
  const Error owner(error);
  return error == nullptr ? "" : compute_error_message(error);
}

std::string take_text(compute_text* text) {
  std::string result(compute_text_data(text), static_cast<size_t>(compute_text_size(text)));
  compute_text_free(text);
  return result;
}

// ---- Handles --------------------------------------------------------------------------------------------------------

Device open(const char* selector) {
  Device device;
  EXPECT_OK(compute_device_open(selector, device.out()));
  return device;
}

Stream make_stream(compute_device* device) {
  Stream stream;
  EXPECT_OK(compute_stream_create(device, nullptr, stream.out()));
  return stream;
}

// ---- Tensors and ops ------------------------------------------------------------------------------------------------

compute_attribute int_attribute(const char* name, const int64_t* values, int64_t count) {
  return {sizeof(compute_attribute),
          COMPUTE_STRUCT_ATTRIBUTE,
          nullptr,
          name,
          name == nullptr ? 0 : static_cast<int64_t>(std::strlen(name)),
          COMPUTE_KIND_INT64,
          0,
          count,
          values};
}

compute_error* run_op(const char* name, compute_stream* stream, std::vector<compute_tensor*> inputs,
                      compute_tensor** output, std::vector<compute_attribute> attributes) {
  const compute_op* op = nullptr;
  if (compute_error* error = compute_op_find(name, 0, &op)) return error;
  return compute_op_run(op, stream, attributes.data(), static_cast<int64_t>(attributes.size()), inputs.data(),
                        static_cast<int64_t>(inputs.size()), output, 1);
}

}  // namespace robustness
