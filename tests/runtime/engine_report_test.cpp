// SPDX-License-Identifier: Apache-2.0
// What the load report says about a library that is searched when it is first needed. The library path holds a library
// that has oneDNN's file name and none of its functions.
#include <gtest/gtest.h>
#include <compute/compute.hpp>

#include <string>

namespace {

using compute::load_report;

TEST(EngineReport, SaysWhyALibraryWasRefused) {
  const std::string why = "libdnnl.so.2: has no dnnl_version";
  EXPECT_EQ(load_report().find(why), std::string::npos) << "nothing has looked for it yet";
  const compute::Device cpu = compute::Device::open("cpu");
  const compute::Tensor x = cpu.full({1, 16, 16, 16}, 1.f), weight = cpu.full({16, 16, 3, 3}, 1.f);
  EXPECT_EQ(compute::convolution(x, weight).to_vector<float>()[0], 144.f);
  const std::string report = load_report();
  EXPECT_NE(report.find(why), std::string::npos) << report;
  EXPECT_NE(report.find("convolutions use"), std::string::npos) << report;
}

}  // namespace
