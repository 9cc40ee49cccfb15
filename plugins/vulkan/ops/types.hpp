// SPDX-License-Identifier: Apache-2.0
// Dtypes in GLSL: how values look in registers and in memory.
#pragma once

#include <cstdint>
#include <string>

namespace vulkan {

// b bool; i int8 to int32; u uint8 to uint32; l int64; m uint64; f float32; d float64; c complex64; z complex128;
// h float16 and bfloat16, which are bits in a uint until they are converted
char class_of(int32_t dtype);
int bits_of(int32_t dtype);
inline int64_t bytes_of(int32_t dtype) { return bits_of(dtype) / 8; }
inline bool is_integer(char c) { return c == 'i' || c == 'u' || c == 'l' || c == 'm'; }
inline bool is_real(char c) { return c == 'f' || c == 'd'; }
inline bool is_complex(char c) { return c == 'c' || c == 'z'; }
bool needs_float64(int32_t dtype);

std::string type_of(int32_t dtype);  // in registers
// Narrow integers live in 32 bits: what has left their range wraps.
std::string wrapped(int32_t dtype, const std::string& value);

// The bits of a value as a uint, from 64 bits on as a uint64_t, and back. Not for complex128.
std::string bits_from(int32_t dtype, const std::string& value);
std::string value_from(int32_t dtype, const std::string& bits);

// Elements at an address, which is a uint64_t. `block` is 'C' for what other groups of the launch write or read.
std::string load(int32_t dtype, const std::string& address, char block = 'B');
std::string store(int32_t dtype, const std::string& address, const std::string& value, char block = 'B');

// A run of four elements in an array of words w[4 * bytes / 4], and one element of it. For elements of up to 8 bytes.
constexpr int kRun = 4;
std::string load_run(int32_t dtype, const std::string& words, const std::string& address);
std::string store_run(int32_t dtype, const std::string& words, const std::string& address);
std::string from_run(int32_t dtype, const std::string& words, const std::string& index);
std::string to_run(int32_t dtype, const std::string& words, const std::string& index, const std::string& value);
int words_of_run(int32_t dtype);

}  // namespace vulkan
