// SPDX-License-Identifier: Apache-2.0
#include "core/loading/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <thread>

extern char** environ;

namespace compute {
namespace {

constexpr size_t kMaxOutputBytes = 1 << 16;
constexpr size_t kUsualOutputBytes = 1 << 10;
constexpr std::chrono::seconds kDeathTakes(5);  // on a busy machine

// A file in memory that cannot grow, for the first kMaxOutputBytes that a child writes to stderr. Its number is above
// those that the child is given.
files::Descriptor make_file_of_words() {
  files::Descriptor file(::memfd_create("compute-child", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0 || ::ftruncate(file.get(), kMaxOutputBytes) != 0) return {};
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_GROW) != 0) return {};
  return files::Descriptor(::fcntl(file.get(), F_DUPFD_CLOEXEC, 10));
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const std::vector<std::string>& variables,
                           int descriptor, std::string* problem) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    *problem = std::generic_category().message(errno);
    return;
  }
  output_.reset(ends[0]);
  const files::Descriptor writing(ends[1]);
  text_.reserve(kUsualOutputBytes);
  words_ = make_file_of_words();
  std::vector<std::string> words = command, settings = variables;
  std::vector<char*> arguments, environment;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  for (std::string& setting : settings) environment.push_back(setting.data());
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) environment.push_back(*at);
  environment.push_back(nullptr);

  // Nothing of this program reaches it: no descriptor, no signal that is blocked or ignored; and its end does not reach
  // this program's group.
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, writing.get(), descriptor);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (descriptor != STDOUT_FILENO)
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (words_) {
    ::posix_spawn_file_actions_adddup2(&actions, words_.get(), STDERR_FILENO);
  } else {
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
  ::posix_spawn_file_actions_addclosefrom_np(&actions, std::max(descriptor, STDERR_FILENO) + 1);
#endif
  const int failure =
      ::posix_spawn(&pid_, arguments.front(), &actions, &attributes, arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failure != 0) {
    pid_ = 0;
    *problem = std::generic_category().message(failure);
  }
}

// Waits for this child only: other children belong to the program.
bool ChildProcess::has_ended() {
  if (ended_) return true;
  int status = 0;
  pid_t answer = 0;
  do {
    answer = ::waitpid(pid_, &status, WNOHANG);
  } while (answer < 0 && errno == EINTR);
  if (answer == pid_) status_ = status;
  ended_ = answer != 0;  // ended without a status if SIGCHLD is ignored
  return ended_;
}

// False once the other end is closed.
bool ChildProcess::read_some(int wait_ms) {
  pollfd waiting = {output_.get(), POLLIN, 0};
  const int ready = ::poll(&waiting, 1, wait_ms);
  if (ready <= 0) return true;
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(output_.get(), buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (count == 0) return false;
  if (text_.size() < kMaxOutputBytes) text_.append(buffer.data(), static_cast<size_t>(count));
  return true;
}

bool ChildProcess::wait(Clock::time_point deadline) {
  bool is_open = true;
  // Its descendants may keep the pipe open, so the child's own exit counts; otherwise the end of the pipe shows it.
  while (!has_ended()) {
    if (Clock::now() >= deadline) return false;
    if (is_open) {
      is_open = read_some(50);
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  for (size_t before = 0; is_open;) {
    before = text_.size();
    is_open = read_some(0) && text_.size() != before;
  }
  return true;
}

std::string ChildProcess::last_words() const {
  std::string text(kMaxOutputBytes, '\0');
  const ssize_t count = !words_ ? 0 : ::pread(words_.get(), text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  text.erase(text.find_last_not_of(std::string_view("\0\n ", 3)) + 1);
  return text.substr(text.rfind('\n') + 1);
}

bool ChildProcess::end() {
  if (pid_ <= 0 || has_ended()) return true;
  if (killed_) return false;
  killed_ = true;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  for (const Clock::time_point end = Clock::now() + kDeathTakes; !has_ended();) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

}  // namespace compute
