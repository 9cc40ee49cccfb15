// SPDX-License-Identifier: Apache-2.0
// The placement report: which op ran where, how often and how.
#include <algorithm>
#include <regex>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime.hpp"

namespace {

TEST(PlacementReport, CountsOpsByDeviceAndTransfers) {
  const compute::Device device = compute::Device::open("minimal0");
  const auto find_device = [&] {
    const nlohmann::json json = nlohmann::json::parse(compute::placement_report(compute::Format::json));
    for (const auto& one : json["devices"]) {
      if (one["name"] == "minimal0") return one;
    }
    return nlohmann::json();
  };
  const nlohmann::json before = find_device();
  const compute::Tensor x = device.full({3}, 2.f);
  for (int call = 0; call < 4; ++call) static_cast<void>(compute::square(x));
  EXPECT_EQ(compute::square(x).to_vector<float>(), std::vector<float>(3, 4.f));
  const nlohmann::json after = find_device();
  EXPECT_EQ(after["transfers_from_device"].get<int64_t>(), before["transfers_from_device"].get<int64_t>() + 1);
  EXPECT_EQ(after["transfers_from_device_bytes"].get<int64_t>(),
            before["transfers_from_device_bytes"].get<int64_t>() + 12);
  int64_t runs = 0;
  const nlohmann::json json = nlohmann::json::parse(compute::placement_report(compute::Format::json));
  for (const auto& row : json["ops"]) {
    if (row["device"] == "minimal0" && row["op"] == "square") {
      EXPECT_EQ(row["how"], "native");
      runs += row["runs"].get<int64_t>();
    }
  }
  EXPECT_EQ(runs, 5);
  const std::string text = compute::placement_report();
  EXPECT_TRUE(std::regex_search(text, std::regex("minimal0  +square  +native  +5\n"))) << text;
}

// One plan that runs on several streams concurrently.
TEST(PlacementReport, CountsRunsOfAllStreams) {
  constexpr int kThreads = 4, kCalls = 500;
  const compute::Device device = compute::Device::open("minimal0");
  const auto runs = [] {
    int64_t sum = 0;
    const nlohmann::json json = nlohmann::json::parse(compute::placement_report(compute::Format::json));
    for (const auto& row : json["ops"]) {
      if (row["device"] == "minimal0" && row["op"] == "negative") sum += row["runs"].get<int64_t>();
    }
    return sum;
  };
  const int64_t before = runs();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const compute::Stream stream(device);
      const compute::Tensor x = device.full({3}, 2.f);
      for (int call = 0; call < kCalls; ++call) static_cast<void>(compute::negative(x, stream));
      stream.synchronize();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runs() - before, kThreads * kCalls);
}

}  // namespace
