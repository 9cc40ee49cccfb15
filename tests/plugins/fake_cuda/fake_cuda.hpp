// SPDX-License-Identifier: Apache-2.0
// What tests ask of the fake driver, by dlsym from the libcuda.so.1 that the plugin has opened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/cuda/driver_api.hpp"

/// A launched kernel, alone or as a graph's node, with its parameters as one block of words.
struct FakeLaunch {
  std::string kernel;
  std::vector<uint64_t> words;
  bool is_before_a_copy = false;  // of the default stream, which had not ended
};

using FakeTakeLaunches = std::vector<FakeLaunch>* (*)();  // fake_cuda_take_launches; the caller deletes
using FakeKeepLaunches = void (*)(int);                   // fake_cuda_keep_launches; off for measurements
using FakeCopies = int64_t (*)();                         // fake_cuda_copies: copies begun on the default stream
using FakeUsedBytes = int64_t (*)();                      // fake_cuda_used_bytes: of all devices
using FakeHostBlocks = int64_t (*)();                     // fake_cuda_host_blocks: blocks of pinned memory
// fake_cuda_fail: makes the call-th call of a function from now on fail with CUDA_ERROR_OUT_OF_MEMORY.
using FakeFail = void (*)(const char* function, int64_t call);
