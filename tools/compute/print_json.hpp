// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

// To stdout. Bytes that are not UTF-8 are replaced.
inline void print_json(const nlohmann::json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}
