// SPDX-License-Identifier: Apache-2.0
// The library of functions in GLSL. Functions of one name differ by the types of their parameters, and most are made
// from one text for float32 and float64.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace vulkan {

// A function for a class of dtypes, as "exp/f".
std::string function_id(std::string_view name, char cls);

// The text of the functions and of all that they call.
std::string function_texts(const std::set<std::string>& ids, bool has_float64);

}  // namespace vulkan
