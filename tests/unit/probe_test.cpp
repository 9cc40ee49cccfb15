// SPDX-License-Identifier: Apache-2.0
#include "core/probe.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>

namespace compute {
namespace {

ProbeRun run(const std::string& script, int64_t timeout_ms = 20000) {
  return run_probe({"/bin/sh", "-c", script}, timeout_ms);
}

TEST(ProbeRun, TellsHowTheHelperEnded) {
  EXPECT_EQ(run("echo one; echo passed").outcome, ProbeOutcome::kPassed);
  EXPECT_EQ(run("echo passed; kill -SEGV $$").outcome, ProbeOutcome::kPassed);

  const ProbeRun failed = run("echo one; echo no device; exit 3");
  EXPECT_EQ(failed.outcome, ProbeOutcome::kFailed);
  EXPECT_EQ(failed.detail, "no device");

  const ProbeRun crashed = run("echo one; kill -SEGV $$");
  EXPECT_EQ(crashed.outcome, ProbeOutcome::kCrashed);
  EXPECT_EQ(crashed.detail, "SIGSEGV");
  EXPECT_EQ(run("exit 1").outcome, ProbeOutcome::kCrashed);  // as a sanitizer ends a process
  EXPECT_EQ(run("exit 127").detail, "exit status 127");
  EXPECT_EQ(run("exit 0").outcome, ProbeOutcome::kCrashed);  // a plugin called exit

  EXPECT_EQ(run("exec sleep 60", 200).outcome, ProbeOutcome::kHung);
  EXPECT_EQ(run("while :; do echo noise; done", 200).outcome, ProbeOutcome::kHung);
}

TEST(ProbeRun, WithoutAHelperTellsNothing) {
  EXPECT_EQ(run_probe({"/no/such/helper"}, 1000).outcome, ProbeOutcome::kNotRun);
}

TEST(ProbeRun, NeedsNoStatusOfItsChild) {
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGCHLD, &ignore, &before), 0);
  EXPECT_EQ(run("echo passed").outcome, ProbeOutcome::kPassed);
  EXPECT_EQ(run("kill -SEGV $$").outcome, ProbeOutcome::kCrashed);
  ::sigaction(SIGCHLD, &before, nullptr);
}

}  // namespace
}  // namespace compute
