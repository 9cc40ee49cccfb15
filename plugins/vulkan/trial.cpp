// SPDX-License-Identifier: Apache-2.0
#include "trial.hpp"

#include <cstring>
#include <memory>

#include "device.hpp"
#include "ops/builder.hpp"
#include "stream.hpp"

namespace vulkan {

void try_fused(Device& device) {
  const bool has_float64 = device.physical.features.float64;
  const auto free = [&](Buffer* buffer) { device.free(buffer); };
  const std::unique_ptr<Buffer, decltype(free)> results(device.allocate_in_heap(1, 64), free);
  std::memset(results->host, 0, 64);
  Plan plan;
  KernelBuilder k(device, plan, false, "try fused");
  const int x = k.scalars(0, 1), y = k.tensor(0);
  // (1 + e)^2 - (1 + 2 e) is e^2 if it is rounded once, else 0. No compiler knows the operands, which are arguments.
  k.finish(1, [&] {
    k.out += "void main(){if(gl_GlobalInvocationID.x!=0u)return;\nfloat f=uintBitsToFloat(" + k.number(x, "uint") +
             "),e=f-1.0;B32(" + k.address(y, "0") + ").v=fma(f,f,-(1.0+2.0*e))!=0.0?1u:0u;\n";
    if (has_float64) {
      k.out += "double b=packDouble2x32(unpackUint2x32(uint64_t(" + k.at(x + 1) + "))),g=b-1.0lf;B32(" +
               k.address(y, "4") + ").v=fma(b,b,-(1.0lf+2.0lf*g))!=0.0lf?1u:0u;\n";
    }
    k.out += "}\n";
  });
  compute_plugin_scalar scalar = {};
  const float single = 1.0f + 0x1p-12f;
  const double wide = 1.0 + 0x1p-27;
  std::memcpy(scalar.bits, &single, sizeof single);
  std::memcpy(scalar.bits + 8, &wide, sizeof wide);
  const compute_plugin_operand place = {results->address, 0};
  compute_plugin_run run = {};
  run.tensors = &place;
  run.scalars = &scalar;
  Stream& stream = *device.streams.emplace_back(std::make_unique<Stream>(device));
  run_plan(plan, stream, run);
  stream.wait_until(stream.flush(), INT64_MAX);
  stream.is_retired = true;
  uint32_t found[2];
  std::memcpy(found, results->host, sizeof found);
  device.is_fused[0] = found[0] != 0;
  device.is_fused[1] = found[1] != 0;
}

}  // namespace vulkan
