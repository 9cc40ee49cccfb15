// SPDX-License-Identifier: Apache-2.0
// Wall time is a partition, amounts and tables are readable, and incomplete files report the reason.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>

#include "core/base/error.hpp"
#include "core/observation/amounts.hpp"
#include "core/observation/output_file.hpp"
#include "core/observation/text_table.hpp"
#include "core/observation/wall_time.hpp"
#include "core/trusted_files/trusted_files.hpp"

namespace compute {
namespace {

using Sums = std::array<int64_t, 3>;

TEST(WallTime, CountsEachInstantOnceForTheFirstUse) {
  WallTime wall;
  wall.add(TimeUse::kCpuOp, {0, 100});
  wall.add(TimeUse::kDeviceOp, {10, 60});
  wall.add(TimeUse::kDeviceOp, {20, 70});
  wall.add(TimeUse::kTransfer, {50, 120});
  wall.add(TimeUse::kTransfer, {200, 200});
  EXPECT_EQ(wall.sums(), (Sums{70, 40, 10}));
}

TEST(WallTime, SettlingChangesNoSums) {
  std::mt19937 random(15);
  WallTime whole, settled;
  for (int64_t now = 0; now < 5000; now += 5) {
    const TimeSpan span{now + static_cast<int64_t>(random() % 50), now + static_cast<int64_t>(random() % 200)};
    const auto use = static_cast<TimeUse>(random() % 3);
    whole.add(use, span);
    settled.add(use, span);
    if (random() % 10 == 0) settled.settle(now);
  }
  EXPECT_EQ(settled.sums(), whole.sums());
  const Sums sums = whole.sums();
  EXPECT_LE(sums[0] + sums[1] + sums[2], 5250);
  EXPECT_GT(sums[2], 0);
}

TEST(WallTime, IgnoresWhatIsBeforeItsBegin) {
  WallTime wall(100);
  wall.add(TimeUse::kTransfer, {0, 150});
  wall.add(TimeUse::kDeviceOp, {0, 90});
  EXPECT_EQ(wall.sums(), (Sums{50, 0, 0}));
}

TEST(Amounts, AreReadable) {
  EXPECT_EQ(time_text(999), "999 ns");
  EXPECT_EQ(time_text(12'340), "12.34 us");
  EXPECT_EQ(time_text(1'500'000'000), "1.500 s");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(4'000'000), "4.0 MB");
  EXPECT_EQ(count_text(1 << 20), "1Mi");
  EXPECT_EQ(rate_text(26'800'000, 1000, "FLOP/s"), "26.8 TFLOP/s");
  EXPECT_EQ(rate_text(500, 1000, "B/s"), "500 MB/s");
  EXPECT_EQ(rate_text(0, 1000, "B/s"), "");
}

TEST(TextTable, ColumnsAreAsWideAsTheirCells) {
  TextTable table{{"op"}, {"calls", true}, {"rate"}};
  table.add({"graph of 9: map→exp negative add multiply", "5", "1 GB/s"});
  table.add({"add", "12000", ""});
  EXPECT_EQ(table.text(),
            "op                                         calls  rate\n"
            "graph of 9: map→exp negative add multiply      5  1 GB/s\n"
            "add                                        12000\n");
}

TEST(TextTable, LongNamesAreShortened) {
  EXPECT_EQ(shortened("exp", 8), "exp");
  EXPECT_EQ(shortened("negative", 8), "negative");
  EXPECT_EQ(shortened("negatives", 8), "negat...");
  EXPECT_EQ(shortened("a→b→c→d→e", 8), "a→b→c...");
}

// The file of an observation, and what closing it says.
std::string written(const std::string& path, const std::string& text) {
  OutputFile file("the trace", path, 16);
  file.put(text);
  return file.close();
}

TEST(OutputFile, TellsWhyItIsNotWhole) {
  const std::string path = ::testing::TempDir() + "compute_output_file";
  EXPECT_EQ(written(path, "a text that is longer than the buffer"), "");
  EXPECT_EQ(written("/dev/full", "text"), "the trace /dev/full was not written completely: No space left on device");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 8;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string too_large = written(path, "123456789");
  const std::string just = written(path, "12345678");
  const bool is_kept = files::write_whole(path, "123456789");
  const int fault = errno;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(too_large, "the trace " + path + " was not written completely: File too large");
  EXPECT_EQ(just, "");
  EXPECT_FALSE(is_kept);
  EXPECT_EQ(fault, EFBIG);
  unlink(path.c_str());
}

TEST(OutputFile, AFifoThatNobodyReadsIsRefusedAtOnce) {
  const std::string path = ::testing::TempDir() + "compute_output_fifo";
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  try {
    const OutputFile file("the profile", path, 16);
    ADD_FAILURE() << "it was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, COMPUTE_ERROR_IO);
    EXPECT_EQ(error.message, "the profile " + path + " cannot be written: it is a FIFO without a reader");
  }
  unlink(path.c_str());
}

}  // namespace
}  // namespace compute
