// SPDX-License-Identifier: Apache-2.0
#include "core/loading/probe.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace compute {
namespace {

namespace fs = std::filesystem;

ProbeRun run(const std::string& script, int64_t timeout_ms = 60000) {
  return run_probe({"/bin/sh", "-c", "r() { echo \"$*\" >&3; }; " + script}, timeout_ms);
}

// Runs what hangs in `step` with a limit that suffices to come there, which is long on a busy machine.
ProbeRun hang_in(const std::string& step, int64_t* out_timeout_ms) {
  ProbeRun hung;
  for (const int64_t timeout_ms : {200, 2000, 20000}) {
    *out_timeout_ms = timeout_ms;
    hung = run("r ready; r at " + step + "; exec sleep 600", timeout_ms);
    if (hung.detail.find(step) != std::string::npos) break;
  }
  return hung;
}

TEST(ProbeRun, TellsHowTheHelperEnded) {
  EXPECT_EQ(run("r ready; r at dlopen; r passed").outcome, ProbeOutcome::kPassed);
  EXPECT_EQ(run("echo passed; r ready").outcome, ProbeOutcome::kCrashed);  // a plugin's own words count for nothing

  const ProbeRun failed = run("r ready; r failed: no device");
  EXPECT_EQ(failed.outcome, ProbeOutcome::kFailed);
  EXPECT_EQ(failed.detail, "no device");

  const ProbeRun crashed = run("r ready; r at dlopen; r at compute_plugin_query; kill -SEGV $$");
  EXPECT_EQ(crashed.outcome, ProbeOutcome::kCrashed);
  EXPECT_EQ(crashed.detail, "SIGSEGV in compute_plugin_query");
  for (const char* status : {"0", "1", "3", "127"}) {  // a plugin called exit; 1 is a sanitizer's way, too
    const ProbeRun exited = run(std::string("r ready; r at dlopen; exit ") + status);
    EXPECT_EQ(exited.outcome, ProbeOutcome::kCrashed) << status;
    EXPECT_EQ(exited.detail, std::string("exit status ") + status + " in dlopen");
  }
  EXPECT_EQ(run("r ready; r at open; echo first >&2; printf 'bad \\033[1m chip\\n\\n' >&2; kill -ABRT $$").detail,
            "SIGABRT in open; it wrote: bad \\x1b[1m chip");
  EXPECT_EQ(run("r ready; for i in 1 2 3 4 5 6 7 8; do head -c 20000 /dev/zero >&2; done; exit 1").detail,
            "exit status 1");  // more than is kept
  EXPECT_EQ(run("r ready; r passed; kill -SEGV $$").detail, "SIGSEGV at process exit");
  EXPECT_TRUE(run("r ready; kill -SEGV $$").is_lasting);
  EXPECT_FALSE(run("r ready; kill -KILL $$").is_lasting);  // the system, for want of memory, or the user

  int64_t timeout_ms = 0;
  const ProbeRun hung = hang_in("enumerate", &timeout_ms);
  EXPECT_EQ(hung.outcome, ProbeOutcome::kHung);
  EXPECT_EQ(hung.detail, std::to_string(timeout_ms / 1000) + " s in enumerate");
  EXPECT_EQ(run("r ready; while :; do r noise; done", 200).outcome, ProbeOutcome::kHung);
}

TEST(ProbeRun, WithoutAHelperTellsNothing) {
  EXPECT_EQ(run_probe({"/no/such/helper"}, 1000).outcome, ProbeOutcome::kNotRun);
  EXPECT_EQ(run("exit 127").detail, "compute-probe did not start: exit status 127");
}

TEST(ProbeRun, NeedsNoStatusOfItsChild) {
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGCHLD, &ignore, &before), 0);
  EXPECT_EQ(run("r ready; r passed").outcome, ProbeOutcome::kPassed);
  EXPECT_EQ(run("r ready; kill -SEGV $$").outcome, ProbeOutcome::kCrashed);
  EXPECT_EQ(run("r ready; exec sleep 60", 200).outcome, ProbeOutcome::kHung);
  ::sigaction(SIGCHLD, &before, nullptr);
}

TEST(ProbeRun, LeavesTheProgramsChildrenAlone) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(7);
  ::usleep(50000);
  EXPECT_EQ(run("r ready; r passed").outcome, ProbeOutcome::kPassed);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

// The kernel shows a traced process's end to its tracer first: as long as that does not look, the child cannot be
// waited for, like one that a driver holds.
TEST(ProbeRun, LeavesAChildThatCannotBeEnded) {
  std::array<int, 2> pid{}, seized{};
  ASSERT_EQ(::pipe(pid.data()), 0);
  ASSERT_EQ(::pipe(seized.data()), 0);
  const pid_t tracer = ::fork();
  if (tracer == 0) {
    ::close(pid[1]);
    std::string digits;
    for (char c = 0; ::read(pid[0], &c, 1) == 1 && c != '\n';) digits += c;
    const bool is_seized = ::ptrace(PTRACE_SEIZE, static_cast<pid_t>(std::atoi(digits.c_str())), nullptr, nullptr) == 0;
    if (::write(seized[1], is_seized ? "y" : "n", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  const std::string to = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(pid[1]);
  const ProbeRun hung = run("r ready; r at enumerate; echo $$ >" + to + "; exec sleep 60", 2000);
  pollfd answer = {seized[0], POLLIN, 0};
  char is_seized = 'n';
  const bool answered = ::poll(&answer, 1, 10000) == 1 && ::read(seized[0], &is_seized, 1) == 1;
  ::kill(tracer, SIGKILL);
  ::waitpid(tracer, nullptr, 0);
  for (const int end : {pid[0], pid[1], seized[0], seized[1]}) ::close(end);
  if (!answered || is_seized != 'y') GTEST_SKIP() << "processes may not be traced here";
  EXPECT_EQ(hung.outcome, ProbeOutcome::kHung);
  EXPECT_EQ(hung.detail, "2 s in enumerate; its process cannot be killed");
}

TEST(ProbeRun, TellsOfAPluginThatItDidNotSee) {
  const ProbeRun untried = run("r ready; r failed: listing; r untried: no such file");
  EXPECT_EQ(untried.outcome, ProbeOutcome::kNotRun);
  EXPECT_EQ(untried.detail, "no such file");
}

// Its orphaned processes hold no descriptor of ours, and nothing waits for them.
TEST(ProbeRun, InheritsNothingAndWaitsForItselfAlone) {
  const int open_file = ::fcntl(STDIN_FILENO, F_DUPFD, 10);  // without O_CLOEXEC
  ASSERT_GE(open_file, 10);
  EXPECT_EQ(run("r ready; test -e /proc/self/fd/" + std::to_string(open_file) + " || r passed").outcome,
            ProbeOutcome::kPassed);
  ::close(open_file);
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  EXPECT_EQ(run("r ready; kill -TERM $$; r passed").detail, "SIGTERM");
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(run("r ready; r passed; sleep 1 & exit 0").outcome, ProbeOutcome::kPassed);
}

TEST(Prober, WithoutAHelperSaysSo) {
  ProbeOptions options;
  options.when = ProbeWhen::kNew;
  Prober prober(options);  // there is none next to this test
  EXPECT_EQ(prober.reason_against({}), "");
  EXPECT_EQ(prober.reason_against({}), "");
  ASSERT_EQ(prober.notes().size(), 1U);
  EXPECT_TRUE(prober.notes()[0].starts_with("Plugins are not probed in a separate process: /")) << prober.notes()[0];

  options.privileged = true;
  Prober privileged(options);
  EXPECT_EQ(privileged.reason_against({}), "");
  EXPECT_EQ(privileged.notes().at(0), "Plugins are not probed in a separate process: the process is privileged");
}

// ---- Verdicts -------------------------------------------------------------------------------------------------------

class VerdictKey : public testing::Test {
 protected:
  VerdictKey() {
    std::string pattern = (fs::temp_directory_path() / "compute-verdict-XXXXXX").string();
    root_ = fs::canonical(mkdtemp(pattern.data()));
    plugin_.library = plugin_.real = root_ / "compute_plugin_acme.so";
    plugin_.name = "acme";
    fs::copy_file(std::string(COMPUTE_TEST_PLUGIN_DIR) + "/minimal/compute_plugin_minimal.so", plugin_.real);
    ManifestDrivers drivers;
    drivers.libraries = {"libacme.so.1"};
    drivers.modules = {"acme"};
    drivers.variables = {"ACME_LAYERS"};
    drivers.lists = {{"/etc/acme/drivers", "ACME_DRIVERS"}};
    plugin_.drivers = {drivers};
    ::setenv("ACME_DRIVERS", root_.c_str(), 1);
  }
  ~VerdictKey() override {
    ::unsetenv("ACME_DRIVERS");
    ::unsetenv("ACME_LAYERS");
    ::unsetenv("COMPUTE_ACME_MODE");
    fs::remove_all(root_);
  }

  fs::path root_;
  PluginCandidate plugin_;
};

TEST_F(VerdictKey, ChangesWithWhateverTheVerdictDependsOn) {
  const std::string first = verdict_key(plugin_);
  EXPECT_EQ(verdict_key(plugin_), first);
  std::ofstream(root_ / "acme.icd") << "libacme_driver.so\n";
  const std::string vendor = verdict_key(plugin_);
  EXPECT_NE(vendor, first);
  ::setenv("ACME_LAYERS", "1", 1);
  EXPECT_NE(verdict_key(plugin_), vendor);
  ::unsetenv("ACME_LAYERS");
  ::setenv("COMPUTE_ACME_MODE", "fast", 1);
  const std::string setting = verdict_key(plugin_);
  EXPECT_NE(setting, vendor);
  ::setenv("COMPUTE_ACMES", "1", 1);  // another plugin's
  EXPECT_EQ(verdict_key(plugin_), setting);
  ::unsetenv("COMPUTE_ACMES");
  // the same bytes and the same time in another file: a reinstalled package
  const auto time = fs::last_write_time(plugin_.real);
  fs::copy_file(plugin_.real, root_ / "new");
  fs::rename(root_ / "new", plugin_.real);
  fs::last_write_time(plugin_.real, time);
  EXPECT_NE(verdict_key(plugin_), setting);
}

// As the drivers of Vulkan are listed.
TEST_F(VerdictKey, FollowsJsonFilesAndFilesInTheVariable) {
  const fs::path list = root_ / "acme.json", library = root_ / "libacme_driver.so";
  std::ofstream(list) << R"({"file_format_version": "1.0.1", "ICD": {"library_path": "./libacme_driver.so"}})";
  const std::string without = verdict_key(plugin_);
  std::ofstream(library) << "a driver";
  const std::string with = verdict_key(plugin_);
  EXPECT_NE(with, without);
  ::setenv("ACME_DRIVERS", ("/nowhere/other.json:" + list.string()).c_str(), 1);
  const std::string by_file = verdict_key(plugin_);
  std::ofstream(root_ / "more.icd") << "libmore.so\n";  // which the variable does not name
  EXPECT_EQ(verdict_key(plugin_), by_file);
  fs::remove(library);
  EXPECT_NE(verdict_key(plugin_), by_file);
  for (const char* text : {"no JSON", "[]", R"({"ICD": 1})", R"({"ICD": {"library_path": 1}})"}) {
    std::ofstream(list) << text;
    EXPECT_NE(verdict_key(plugin_), by_file) << text;
  }
}

TEST_F(VerdictKey, OfAPluginWithoutDriversKnowsNone) {
  plugin_.drivers = {};
  const std::string first = verdict_key(plugin_);
  std::ofstream(root_ / "acme.icd") << "libacme_driver.so\n";
  EXPECT_EQ(verdict_key(plugin_), first);
}

}  // namespace
}  // namespace compute
