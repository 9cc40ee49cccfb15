// SPDX-License-Identifier: Apache-2.0
// What the load report says of libraries that are looked for when they are first needed. The library path holds
// libraries that are called oneDNN and are not.
#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <string>
#include <vector>

namespace {

using compute::load_report;

TEST(EngineReport, SaysWhyALibraryThatIsThereWasRefused) {
  const std::string why = "libdnnl.so.3: has no dnnl_sgemm";
  EXPECT_EQ(load_report().find(why), std::string::npos) << "nothing has looked for it yet";
  const compute::Device cpu = compute::Device::open("cpu");
  const compute::Tensor x = cpu.full({2, 2}, 1.f);
  {
    // COMPUTE_CPU_MATMUL selects oneDNN, so one warning reports its absence.
    std::vector<std::string> warnings;
    const compute::LogSink sink([&](compute::LogLevel level, std::string_view, std::string_view text) {
      if (level == compute::LogLevel::warning) warnings.emplace_back(text);
    });
    EXPECT_EQ(compute::matmul(x, x).to_vector<float>(), std::vector<float>(4, 2.f));
    EXPECT_EQ(compute::matmul(x, cpu.full({2, 3}, 1.f)).to_vector<float>(), std::vector<float>(6, 2.f));
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("oneDNN, which COMPUTE_CPU_MATMUL selects, cannot be used"), std::string::npos)
        << warnings[0];
  }
  const std::string report = load_report();
  EXPECT_NE(report.find(why), std::string::npos) << report;
  EXPECT_NE(report.find("float32 matrix products"), std::string::npos) << report;
}

}  // namespace
