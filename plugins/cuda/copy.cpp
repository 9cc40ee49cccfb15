// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/copy.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "plugins/cuda/plan.hpp"

namespace compute::cuda {
namespace {

void require(Stream& stream, CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) [[unlikely]]
    throw stream.failure(result, what);
}

}  // namespace

void copy_from_host(Stream& stream, const void* src, CUdeviceptr dst, int64_t size_bytes) {
  require(stream, cu.memcpy_htod_async(dst, src, static_cast<size_t>(size_bytes), stream.handle()),
          "copying from the host");
}

void copy_to_host(Stream& stream, CUdeviceptr src, void* dst, int64_t size_bytes) {
  require(stream, cu.memcpy_dtoh_async(dst, src, static_cast<size_t>(size_bytes), stream.handle()),
          "copying to the host");
}

void copy_peer(Stream& stream, Device& src_device, CUdeviceptr src, CUdeviceptr dst, int64_t size_bytes) {
  Device& device = stream.device();
  device.reach(src_device);
  src_device.reach(device);
  require(stream,
          cu.memcpy_peer_async(dst, device.context(), src, src_device.context(), static_cast<size_t>(size_bytes),
                               stream.handle()),
          "copying from another device");
}

void fill(Stream& stream, CUdeviceptr dst, int64_t size_bytes, const void* pattern, int32_t pattern_size) {
  // 16 bytes of it; a pattern that repeats a shorter one is that one.
  std::array<uint8_t, 16> bytes;
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<const uint8_t*>(pattern)[i % static_cast<size_t>(pattern_size)];
  const auto repeats = [&](size_t period) {
    return std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(period), bytes.end(), bytes.begin());
  };
  uint32_t words[4];
  std::memcpy(words, bytes.data(), sizeof words);
  const auto size = static_cast<size_t>(size_bytes);
  const bool whole_words = dst % 4 == 0 && size % 4 == 0;
  CUresult result = CUDA_SUCCESS;
  if (whole_words && repeats(4)) {
    result = cu.memset_d32_async(dst, words[0], size / 4, stream.handle());
  } else if (repeats(1)) {
    result = cu.memset_d8_async(dst, bytes[0], size, stream.handle());
  } else if (repeats(2)) {
    result = cu.memset_d16_async(dst, static_cast<uint16_t>(words[0]), size / 2, stream.handle());
  } else if (const Kernel* kernel = dst % 16 == 0 && size % 16 == 0 ? stream.device().fill_kernel() : nullptr) {
    constexpr uint64_t kGroupSize = 256, kPointsPerItem = 4;
    uint64_t parameters[4] = {dst, size / 16, 0, 0};
    std::memcpy(parameters + 2, bytes.data(), bytes.size());
    const uint64_t groups = std::clamp<uint64_t>(size / 16 / (kGroupSize * kPointsPerItem), 1, 1 << 20);
    stream.note_launch(kernel->name.c_str());
    result = launch(*kernel, {static_cast<unsigned>(groups), kGroupSize}, {parameters, 4}, stream.handle());
  } else {
    // Writes each word of the pattern down a separate column.
    const auto period = static_cast<size_t>(pattern_size);
    for (size_t word = 0; word < period / 4 && result == CUDA_SUCCESS; ++word) {
      result = cu.memset_d2d32_async(dst + word * 4, period, words[word], 1, size / period, stream.handle());
      if (result != CUDA_SUCCESS && word > 0) throw stream.break_off(stream.failure(result, "filling"));
    }
  }
  require(stream, result, "filling");
}

}  // namespace compute::cuda
