// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace compute {

// The name in `known` that `text` was probably meant to be, or an empty string where none is close.
//
// Closeness is the number of letters to insert, delete, replace or swap, without regard to case: at most one in three
// letters of `text`, at least one. Among equally close names the first wins.
std::string nearest_name(std::string_view text, std::span<const std::string> known);

// The same with at most `most` letters of difference, whatever the length of `text`.
std::string nearest_name(std::string_view text, std::span<const std::string> known, size_t most);

// `; did you mean "cuda"?`, or an empty string where no name is close: the tail of a message.
std::string did_you_mean(std::string_view text, std::span<const std::string> known);

}  // namespace compute
