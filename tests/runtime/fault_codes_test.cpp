// SPDX-License-Identifier: Apache-2.0
// What core makes of the codes of fault records. The minimal plugin reports an index out of range by any code.
#include <compute/plugin.h>
#include <unistd.h>

#include "runtime.hpp"

namespace runtime {
namespace {

// Of a `take` whose element 3 has the index 9.
Thrown fault_of_code(int32_t code) {
  setenv("COMPUTE_MINIMAL_FAULT", std::to_string(code).c_str(), 1);
  const compute::Tensor x = remote().from_host(iota(5));
  const compute::Tensor places = remote().from_host(std::vector<int64_t>{0, 1, 2, 9});
  const Thrown thrown = thrown_by([&] { static_cast<void>(compute::take(x, places, 0).to_vector<float>()); });
  unsetenv("COMPUTE_MINIMAL_FAULT");
  const compute::Stream stream = compute::Stream::default_of(remote());
  EXPECT_EQ(thrown_by([&] { stream.synchronize(); }).code, thrown.code);  // and never again
  return thrown;
}

TEST(FaultCodes, AnIndex) {
  const Thrown thrown = fault_of_code(COMPUTE_PLUGIN_FAULT_INDEX);
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_KERNEL_FAILED);
  EXPECT_EQ(thrown.message, "take: index 9 is out of range for axis 0 of extent 5, at indices[3]");
}

TEST(FaultCodes, AMatrixWithoutAResult) {
  Thrown thrown = fault_of_code(COMPUTE_PLUGIN_FAULT_SINGULAR);
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_NUMERICAL);
  EXPECT_EQ(thrown.message, "take: matrix 3 of the batch is singular, at pivot 9");
  thrown = fault_of_code(COMPUTE_PLUGIN_FAULT_NOT_POSITIVE_DEFINITE);
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_NUMERICAL);
  EXPECT_EQ(thrown.message, "take: matrix 3 of the batch is not positive definite, at pivot 9");
  thrown = fault_of_code(COMPUTE_PLUGIN_FAULT_NOT_CONVERGED);
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_NUMERICAL);
  EXPECT_EQ(thrown.message, "take: matrix 3 of the batch has no result: the iteration did not converge, at pivot 9");
}

TEST(FaultCodes, OneThatCoreDoesNotKnow) {
  const Thrown thrown = fault_of_code(77);
  EXPECT_EQ(thrown.code, COMPUTE_ERROR_KERNEL_FAILED);
  EXPECT_EQ(thrown.message,
            "take: a kernel detected fault 77 (value 9, at position 3), which this library does not know");
}

TEST(DeviceProcesses, AreListed) {
  const compute::Tensor x = remote().from_host(iota(1000));
  compute_device_process processes[2] = {
      {sizeof(compute_device_process), COMPUTE_STRUCT_DEVICE_PROCESS, nullptr, 0, 0}};
  int64_t count = -1;
  compute::check(compute_device_processes(remote().get(), processes, 2, &count));
  ASSERT_EQ(count, 1);
  EXPECT_EQ(processes[0].process_id, getpid());
  EXPECT_GE(processes[0].memory_bytes, 4000);
  EXPECT_EQ(remote().processes().size(), 1u);
  EXPECT_EQ(host().processes().size(), 0u);
}

TEST(DeviceLimits, AreKnown) {
  const compute::DeviceInfo info = remote().info();
  EXPECT_EQ(info.subnormals, compute::Subnormals::kept);
  EXPECT_EQ(static_cast<int32_t>(compute::DeviceInfo{}.subnormals), COMPUTE_SUBNORMALS_UNKNOWN);
  EXPECT_EQ(info.subgroup_size_min, 1);
  EXPECT_EQ(info.subgroup_size_max, 4);
  EXPECT_EQ(info.local_memory_bytes, 1 << 15);
  EXPECT_EQ(info.argument_bytes, 128);
  EXPECT_EQ(info.max_group_size, 64);
  EXPECT_EQ(info.atomic_alignment, 4);
  std::string all;
  for (const compute::DeviceAttribute& attribute : remote().attributes())
    all += std::string(attribute.name) + "=" + std::string(attribute.value) + ";";
  EXPECT_NE(all.find("subnormals=kept;subgroup_size=1 to 4;local_memory=32768 bytes;kernel_arguments=128 bytes;"
                     "max_group_size=64;atomic_alignment=4 bytes;"),
            std::string::npos)
      << all;
}

}  // namespace
}  // namespace runtime
