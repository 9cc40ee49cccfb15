// SPDX-License-Identifier: Apache-2.0
// Kernels of programs in GLSL and SPIR-V, and native handles, on the first Vulkan device.
#include <compute/compute.hpp>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("failed: %s\n", what);
  ++failures;
}

// y[i] = factor * x[n - 1 - i], through shared memory.
constexpr const char* kSource = R"(
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(constant_id = 3) const uint local_bytes = 4;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(push_constant) uniform Arguments { Floats x; Floats y; float factor; int64_t n; };
shared float tile[local_bytes / 4];
void main() {
  const int64_t i = int64_t(gl_GlobalInvocationID.x);
  tile[gl_LocalInvocationID.x] = i < n ? x.v[uint(n - 1l - i)] : 0.0;
  barrier();
  if (i < n) y.v[uint(i)] = factor * tile[gl_LocalInvocationID.x];
}
)";

std::vector<float> run(const compute::Device& device, const compute::Kernel& kernel, int group) {
  const int64_t n = 1000;
  std::vector<float> x(n);
  for (int64_t i = 0; i < n; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i);
  const compute::Tensor source = device.from_host(x, {n}), y = device.full({n}, 0.0f);
  kernel.launch({.groups = {(n + group - 1) / group, 1, 1}, .group_size = {group, 1, 1}},
                {compute::reads(source), compute::writes(y), 2.0f, n, compute::local_memory(4 * group)});
  return y.to_vector<float>();
}

bool is_reversed(const std::vector<float>& y) {
  for (size_t i = 0; i < y.size(); ++i)
    if (y[i] != 2.0f * static_cast<float>(y.size() - 1 - i)) return false;
  return !y.empty();
}

}  // namespace

int main(int argc, char** argv) {
  const compute::Device device = compute::Device::open("vulkan0");
  const compute::Kernel glsl(device, "glsl", kSource, "main");
  expect(is_reversed(run(device, glsl, 32)), "a kernel in GLSL");
  expect(is_reversed(run(device, glsl, 128)), "the same kernel with groups of another size");
  try {
    const compute::Kernel wrong(device, "glsl", "#version 460\nvoid main() { nothing(); }\n", "main");
    expect(false, "GLSL that does not compile is an error");
  } catch (const compute::Error& error) {
    expect(std::string(error.what()).find("nothing") != std::string::npos, "the error contains the log");
  }
  if (argc > 1) {  // a file of the same shader
    std::ifstream file(argv[1], std::ios::binary);
    const std::string words((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    compute_kernel* made = nullptr;
    compute_error* error = compute_kernel_compile(device.get(), "spirv", words.data(),
                                                  static_cast<int64_t>(words.size()), "main", nullptr, &made);
    expect(error == nullptr, "SPIR-V is taken");
    if (error == nullptr) expect(is_reversed(run(device, compute::Kernel(made), 64)), "a kernel in SPIR-V");
    compute_error_free(error);
  } else {
    std::fputs(kSource, stdout);
  }
  return failures == 0 ? 0 : 1;
}
